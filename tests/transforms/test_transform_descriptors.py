"""Directions to sample, smooth transforms and distances."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid, trapezoid

import ecc_core as ecc


def blob(seed, shape=(20, 20)):
    return np.random.default_rng(seed).random(shape) < 0.6


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 12, 64, 100])
def test_circle(n):
    directions = ecc.sample_directions(n, 2)
    angles = 2 * np.pi * np.arange(n) / n
    np.testing.assert_allclose(
        directions, np.stack([np.cos(angles), np.sin(angles)], 1), atol=1e-15
    )
    assert not np.signbit(directions[directions == 0]).any()
    rows = set(map(tuple, directions))  # They must be exactly symmetric.
    assert {(first, -second + 0.0) for first, second in rows} == rows
    if n % 2 == 0:
        assert {(-first + 0.0, -second + 0.0) for first, second in rows} == rows
    if n % 4 == 0:
        assert {(-second + 0.0, first) for first, second in rows} == rows
        assert {(second, first) for first, second in rows} == rows


@pytest.mark.parametrize("n", [1, 2, 5, 64, 1000])
def test_sphere(n):
    directions = ecc.sample_directions(n, 3)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1, rtol=1e-15)
    # Slices of the sphere of equal height have equal area: one direction in each.
    np.testing.assert_allclose(directions[:, 0], 1 - (2 * np.arange(n) + 1) / n, atol=1e-15)
    if n >= 64:
        assert np.linalg.norm(directions.mean(axis=0)) < 1 / n
        nearest = np.sort(directions @ directions.T, axis=1)[:, -2]
        spacing = np.arccos(nearest) * np.sqrt(n / (4 * np.pi))
        assert spacing.min() > 0.7


def test_line():
    assert ecc.sample_directions(3, 1).tolist() == [[1.0], [-1.0], [1.0]]
    assert ecc.sample_directions(0, 3).shape == (0, 3)
    assert ecc.sample_directions(0, 2).shape == (0, 2)


@pytest.mark.parametrize("heights", [64, np.sort(np.random.default_rng(0).uniform(-9, 9, 30))])
def test_smooth_transform_integrates_what_is_left_of_the_mean(heights):
    ect = ecc.euler_transform(blob(0), 8, heights)
    sect = ecc.smooth_transform(ect)
    assert type(sect) is type(ect)
    t = ect.heights
    chi = ect.values.astype(float)
    mean = trapezoid(chi, t) / (t[-1] - t[0])
    expected = cumulative_trapezoid(chi - mean[:, None], t, initial=0)
    np.testing.assert_allclose(sect.values, expected, atol=1e-12)
    np.testing.assert_allclose(sect.values[:, [0, -1]], 0, atol=1e-12)


def test_smooth_transform_of_regions():
    labels = np.kron(np.arange(1, 7).reshape(2, 3), np.ones((4, 5), int))
    regions = ecc.region_transforms(labels, 5, 20)
    smooth = ecc.smooth_transform(regions)
    each = [
        ecc.EulerTransform(regions.directions, regions.heights, values) for values in regions.values
    ]
    expected = [ecc.smooth_transform(one).values for one in each]
    np.testing.assert_array_equal(smooth.values, expected)


@pytest.mark.parametrize("heights", [[], [0.0], [1.0, 1.0]], ids=len)
def test_smooth_transform_of_few_heights(heights):
    result = ecc.smooth_transform(ecc.euler_transform(blob(0), 3, heights))
    np.testing.assert_array_equal(result.values, np.zeros((3, len(heights))))


@pytest.mark.parametrize("metric", ["L1", "L2"])
@pytest.mark.parametrize("smooth", [False, True])
def test_distance(metric, smooth):
    def transform(image):
        result = ecc.euler_transform(image, 12, 40, range=(-15, 15))
        return ecc.smooth_transform(result) if smooth else result

    def between(x, y, invariant=False):
        return ecc.transform_distance(x, y, metric=metric, rotation_invariant=invariant)

    image = blob(1)
    power = int(metric[1])
    a = transform(image)
    b = transform(blob(2))
    c = transform(blob(3))
    turned = [transform(np.rot90(image, turns)) for turns in (1, 2, 3)]
    assert min(between(a, other) for other in turned) > 1e-3
    assert [between(a, other, True) for other in turned] == [0, 0, 0]
    gaps = [np.abs(np.roll(a.values, s, axis=0) - b.values * 1.0) for s in range(12)]
    every = [trapezoid(gap**power, a.heights) for gap in gaps]
    distances = [one.mean() ** (1 / power) for one in every]
    assert between(a, b) == pytest.approx(distances[0], rel=1e-12)
    assert between(a, b, True) == pytest.approx(min(distances), rel=1e-12)
    assert between(a, b) == between(b, a)
    assert between(a, c) <= between(a, b) + between(b, c)


def made(directions, heights=20) -> ecc.EulerTransform:
    """A transform, whose values do not matter."""
    directions = ecc.sample_directions(directions, 2) if isinstance(directions, int) else directions
    heights = np.linspace(-5, 5, heights) if isinstance(heights, int) else heights
    values = np.zeros((len(directions), len(heights)), np.int64)
    return ecc.EulerTransform(directions, heights, values)


A = made(8)
INFINITE = made(8, np.array([0.0, np.inf]))
UNEVEN = made(ecc.sample_directions(8, 2)[:5])
SOLID = made(ecc.sample_directions(8, 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ecc.sample_directions(4, 4), ValueError, "`ndim` must be 1, 2 or 3, got 4"),
        (lambda: ecc.sample_directions(-1, 2), ValueError, "`n` must not be negative, got -1"),
        (lambda: ecc.sample_directions(1.5, 2), TypeError, "`n` must be an int or an array, got"),
        (lambda: ecc.sample_directions([1], 2), TypeError, r"`n` must be an int, got \[1\]"),
        (lambda: ecc.smooth_transform(INFINITE), ValueError, "finite heights, got infinite ones"),
        (lambda: ecc.smooth_transform(A.values), TypeError, "be an EulerTransform or RegionTran"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        (A, A, {"metric": "max"}, '`metric` must be "L1" or "L2", got \'max\''),
        (A, dataclasses.replace(A, heights=A.heights + 1), {}, "the same heights, got different"),
        (A, dataclasses.replace(A, directions=-A.directions), {}, "the same directions, got diff"),
        (A, dataclasses.replace(A, values=A.values[None]), {}, r"one object .* and \(1, 8, 20\)"),
        (UNEVEN, UNEVEN, {"rotation_invariant": True}, "`rotation_invariant` must be False unless"),
        (SOLID, SOLID, {"rotation_invariant": True}, "`rotation_invariant` must be False unless"),
        (INFINITE, INFINITE, {}, "at least 2 finite heights, got less"),
    ],
)
def test_transforms_without_a_distance(a, b, options, message):
    with pytest.raises(ValueError, match=message):
        ecc.transform_distance(a, b, **options)
