"""The transform of masks: against counting every cell, scikit-image, and what theory says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import transform as reference
from skimage.measure import euler_number

import ecc_core as ecc
from ecc_core._orthants import coefficient_table
from ecc_core.testing import known_shapes

SHAPES = [(7,), (1,), (9, 6), (1, 5), (5, 1), (3, 130), (40, 64), (3, 4, 5), (2, 3, 66), (1, 1, 4)]


def random_mask(shape, density, seed):
    return np.random.default_rng(seed).random(shape) < density


def some_directions(ndim, seed):
    """Random ones, and those that put many vertices at one height."""
    rng = np.random.default_rng(seed)
    special = np.concatenate([np.eye(ndim), -np.eye(ndim), [np.ones(ndim), -np.ones(ndim)]])
    mixed = np.where(rng.random((3, ndim)) < 0.5, 1.0, -1.0)
    return np.concatenate([rng.standard_normal((8, ndim)), special, mixed])


def some_heights(reach, seed):
    """Evenly spaced ones, ones that hit vertices, uneven, repeated and infinite ones."""
    rng = np.random.default_rng(seed)
    return [
        np.linspace(-reach, reach, 33),
        np.arange(-4, 4.25, 0.25),
        np.arange(-4, 4.25, 0.25) - 1e-9,  # just below vertices
        np.arange(-4, 4.25, 0.25) + 1e-9,
        np.sort(rng.uniform(-reach, reach, 20)),
        np.array([-np.inf, -1.0, -1.0, 0.0, 0.5, 2.0, np.inf]),
        np.array([0.0]),
    ]


def check(mask, directions, heights, connectivity, spacing=1.0):
    result = ecc.euler_transform(
        mask, directions, heights, connectivity=connectivity, spacing=spacing
    )
    steps = np.broadcast_to(np.asarray(spacing, dtype=float), (mask.ndim,))
    truth = reference.euler_transform(
        mask.astype(np.int64), result.directions, result.heights, connectivity, steps
    )
    assert result.values.dtype == np.int64
    np.testing.assert_array_equal(result.values, truth)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("density", [0.2, 0.5, 0.8, 1.0])
def test_equals_counting_of_cells(shape, density):
    seed = len(shape) * 100 + shape[-1]
    mask = random_mask(shape, density, seed)
    reach = np.linalg.norm(shape) / 2
    for connectivity in {1, mask.ndim}:
        for heights in some_heights(reach, seed):
            check(mask, some_directions(mask.ndim, seed), heights, connectivity)


@given(st.integers(1, 3), st.integers(0, 2**16), st.floats(0.05, 0.95), st.booleans())
def test_equals_counting_of_cells_with_spacing(ndim, seed, density, dual):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, [12, 9, 7][ndim - 1], ndim))
    spacing = rng.choice([0.25, 0.5, 1.0, 1.7, 3.0], ndim)
    reach = np.linalg.norm(shape * spacing) / 2
    heights = some_heights(reach, seed)[seed % 7]
    mask = random_mask(shape, density, seed)
    check(mask, some_directions(ndim, seed), heights, ndim if dual else 1, spacing)


@pytest.mark.parametrize("direction", [[1, 0], [-1, 0], [3, 4], [-0.3, 0.7]])
@pytest.mark.parametrize("side", [-np.inf, np.inf])
def test_levels_next_to_the_height_of_a_single_point(direction, side):
    """Alone, so that no other point makes the guess of its bin uncertain."""
    for place in np.ndindex(9, 3):
        mask = np.zeros((9, 3), dtype=bool)
        mask[place] = True
        levels = np.arange(-4, 4.5, 0.5)
        unit = ecc.euler_transform(mask, [direction], 0).directions[0]
        at = reference.vertex_heights(mask.shape, unit, np.ones(2), 1)[place]
        for heights in (np.nextafter(levels, side), at + np.nextafter(levels, side)):
            check(mask, [direction], heights, 1)


@pytest.mark.parametrize(("shape", "connectivity"), [((300, 900), 2), ((9, 200, 130), 3)])
def test_more_points_and_words_than_are_handled_at_once(shape, connectivity):
    mask = random_mask(shape, 0.6, connectivity)
    directions = ecc.sample_directions(9, mask.ndim)[[1, 6]]
    for chosen in (1, connectivity):
        check(mask, directions, [-20.0, 10.5], chosen)


@pytest.mark.parametrize("connectivity", [1, 2])
def test_sublevel_sets_of_the_height_in_scikit_image(connectivity):
    """For V the cells below a height are those of the vertices below it."""
    mask = random_mask((17, 23), 0.7, 5)
    directions, heights, values = ecc.euler_transform(mask, 8, 21, connectivity=connectivity)
    for direction, curve in zip(directions, values, strict=True):
        if connectivity == 1:
            at = reference.vertex_heights(mask.shape, direction, np.ones(2), 1)
            expected = [euler_number(mask & (at <= t), 1) for t in heights]
            np.testing.assert_array_equal(curve, expected)
        assert curve[-1] == euler_number(mask, connectivity)


@pytest.mark.parametrize("shape", known_shapes(), ids=lambda shape: shape.name)
def test_last_height_is_the_euler_number(shape):
    for connectivity, expected in ((1, shape.euler_1), (shape.image.ndim, shape.euler_d)):
        if shape.image.size:
            result = ecc.euler_transform(shape.image, 16, 3, connectivity=connectivity)
            np.testing.assert_array_equal(result.values[:, -1], expected)
            np.testing.assert_array_equal(result.values[:, 0], 0)


@pytest.mark.parametrize("connectivity", [1, 2])
def test_rotation_by_90_degrees_permutes_directions(connectivity):
    mask = random_mask((21, 30), 0.6, 2)
    directions, heights, values = ecc.euler_transform(mask, 12, 40, connectivity=connectivity)
    # np.rot90 takes the second axis to the first, reversed.
    rotated = ecc.euler_transform(np.rot90(mask), 12, heights, connectivity=connectivity).values
    turned = np.stack([-directions[:, 1], directions[:, 0]], axis=1)
    match = [int(np.flatnonzero((directions == t + 0.0).all(axis=1))[0]) for t in turned]
    assert sorted(match) == list(range(12))
    np.testing.assert_array_equal(rotated[match], values)


@pytest.mark.parametrize("ndim", [2, 3])
def test_reflections_and_permutations_of_axes(ndim):
    mask = random_mask((6, 9, 8)[:ndim], 0.5, ndim)
    directions = some_directions(ndim, 3)[:8]
    values = ecc.euler_transform(mask, directions, np.linspace(-8, 8, 50)).values
    for axis in range(ndim):
        mirrored = directions.copy()
        mirrored[:, axis] *= -1
        result = ecc.euler_transform(np.flip(mask, axis), mirrored, np.linspace(-8, 8, 50))
        np.testing.assert_array_equal(result.values, values)
    if ndim == 2:  # in 3-D the sum of three terms rounds differently in another order
        result = ecc.euler_transform(mask.T, directions[:, ::-1], np.linspace(-8, 8, 50))
        np.testing.assert_array_equal(result.values, values)


@pytest.mark.parametrize("connectivity", [1, 2, 3])
def test_opposite_directions(connectivity):
    """chi(below t) + chi(above t) - chi(level t) = chi(all), at levels between the vertices."""
    ndim = 3 if connectivity != 2 else 2
    mask = random_mask((8, 7, 9)[:ndim], 0.6, connectivity)
    n = mask.shape[0]
    total = euler_number(mask, connectivity)
    # Levels between the planes of vertices along the first axis, and the cells they cut.
    if connectivity == 1:
        levels, cut = np.arange(n - 1) + 0.5 - (n - 1) / 2, mask[1:] & mask[:-1]
    else:
        levels, cut = np.arange(n) - (n - 1) / 2, mask
    axis = np.eye(ndim)[:1]
    below = ecc.euler_transform(mask, axis, levels, connectivity=connectivity).values[0]
    above = ecc.euler_transform(mask, -axis, -levels[::-1], connectivity=connectivity).values[0]
    sliced = [ecc.euler_number(part, 1 if connectivity == 1 else ndim - 1) for part in cut]
    np.testing.assert_array_equal(below + above[::-1] - sliced, total)


def test_padding_moves_the_frame_only():
    mask = random_mask((9, 12), 0.5, 1)
    directions, heights, values = ecc.euler_transform(mask, 8, 33)
    padded = ecc.euler_transform(np.pad(mask, 4), directions, heights)
    np.testing.assert_array_equal(padded.values, values)


def test_upsampling_scales_heights():
    mask = random_mask((9, 12), 0.5, 1)
    directions, heights, values = ecc.euler_transform(mask, 8, 33)
    twice = ecc.euler_transform(np.kron(mask, np.ones((2, 2), bool)), directions, 2 * heights)
    half = ecc.euler_transform(mask, directions, heights / 2, spacing=0.5)
    np.testing.assert_array_equal(twice.values, values)
    np.testing.assert_array_equal(half.values, values)


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_threads_change_nothing(workers):
    mask = random_mask((60, 70, 66), 0.5, 0)
    one = ecc.euler_transform(mask, 11, 64, workers=1).values
    np.testing.assert_array_equal(ecc.euler_transform(mask, 11, 64, workers=workers).values, one)


@pytest.mark.parametrize(("ndim", "connectivity"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 3)])
def test_every_pattern_of_a_window(ndim, connectivity):
    """Planes of bits give the coefficients that the lookup table of regions holds."""
    table = coefficient_table(ndim, connectivity)
    window = (2,) * ndim
    for orthant in range(2**ndim):
        signs = [1 - 2 * (orthant >> (ndim - 1 - axis) & 1) for axis in range(ndim)]
        direction = np.array(signs) * [1.0, 0.01, 0.0001][:ndim]
        direction /= np.linalg.norm(direction)
        at = reference.vertex_heights(window, direction, np.ones(ndim), connectivity)
        owner = at[tuple(int(s > 0) for s in signs) if connectivity == 1 else (1,) * ndim]
        before = np.max(at[at < owner], initial=-np.inf)
        for pattern in range(table.shape[1]):
            mask = (pattern >> np.arange(2**ndim) & 1).astype(bool).reshape(window)
            transform = ecc.euler_transform(
                mask, [direction], [before, owner], connectivity=connectivity
            )
            assert np.diff(transform.values[0]) == table[orthant, pattern]
