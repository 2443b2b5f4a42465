"""Descriptors and distances of curves, by hand-made curves and by identities."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import ecc_core as ecc
from ecc_core.features import (
    align_curves,
    curve_descriptors,
    curve_distance,
    descriptor_table,
    distance_matrix,
)

METRICS = ("L1", "L2", "W1")
T = np.array([0.0, 1.0, 3.0, 4.0, 6.0])
CHI = np.array([2, 5, 0, -4, 1])


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(3).normal(size=(6, 20, 17)).round(2)


def step(curve, at):
    """Value of a sublevel curve: that of the last threshold reached."""
    thresholds, values = map(np.asarray, curve)
    reached = np.searchsorted(thresholds, at, side="right")
    return np.concatenate([[0], values])[reached]


# Descriptors


def test_descriptors_of_a_curve_by_hand():
    found = curve_descriptors((T, CHI))
    assert found._asdict() == {
        "area": 2 * 1 + 5 * 2 + 0 * 1 - 4 * 2,
        "absolute_area": 2 * 1 + 5 * 2 + 0 * 1 + 4 * 2,
        "maximum": 5,
        "maximum_at": 1,
        "minimum": -4,
        "minimum_at": 4,
        "zero_crossings": 2,
        "first_zero_crossing": 4,
        "positive_peak": 5,
        "positive_peak_at": 1,
        "negative_peak": -4,
        "negative_peak_at": 4,
    }
    assert all(np.ndim(number) == 0 for number in found)


@pytest.mark.parametrize(
    ("thresholds", "values", "expected"),
    [
        pytest.param(
            np.arange(9),
            [0, -1, 0, -3, 2, 4, -9, 8, 1],
            {"negative_peak": -3, "negative_peak_at": 3, "positive_peak": 4, "positive_peak_at": 5}
            | {"minimum": -9, "maximum": 8, "zero_crossings": 3, "first_zero_crossing": 4},
            id="a peak is that of the first lobe of its sign",
        ),
        pytest.param(
            np.arange(6),
            [1, 3, 2, 7, 0, 5],
            {"positive_peak_at": 3, "zero_crossings": 0, "first_zero_crossing": np.nan}
            | {"negative_peak": np.nan, "negative_peak_at": np.nan},
            id="ripples within a lobe do not matter",
        ),
        pytest.param(
            T,
            np.zeros(5),
            {"area": 0, "zero_crossings": 0, "first_zero_crossing": np.nan}
            | {"positive_peak": np.nan, "negative_peak_at": np.nan},
            id="zero",
        ),
        pytest.param([2.0], [7], {"area": 0, "maximum": 7}, id="constant"),
    ],
)
def test_descriptors_of_other_curves_by_hand(thresholds, values, expected):
    found = curve_descriptors((thresholds, values))._asdict()
    np.testing.assert_equal({name: found[name] for name in expected}, expected)


@pytest.mark.parametrize(("superlevel", "places"), [(False, (1, 4)), (True, (3, 6))])
def test_ties_go_to_the_first_threshold_that_enters(superlevel, places):
    values = [1, 4, 4, -2, -2]
    found = curve_descriptors((T, values), superlevel=superlevel)
    assert (found.maximum_at, found.minimum_at) == places


def test_superlevel_curves_are_read_from_the_top(images):
    sub = curve_descriptors(ecc.euler_curve(images[0], "exact"))
    mirrored = ecc.euler_curve(-images[0], "exact", superlevel=True)
    up = curve_descriptors(mirrored)
    assert curve_descriptors(mirrored, superlevel=True) == up
    assert curve_descriptors(tuple(mirrored), superlevel=True) == up
    places = {name for name in sub._fields if name.endswith("_at")} | {"first_zero_crossing"}
    expected = [-value if name in places else value for name, value in sub._asdict().items()]
    assert_allclose(up, expected, rtol=1e-12)


def test_aligned_curves_keep_what_they_share(images):
    curves = [ecc.euler_curve(i, 8, superlevel=True, connectivity=1) for i in images[:2]]
    aligned = align_curves(curves)
    assert aligned.facts == curves[0].facts
    curves.append(ecc.EulerCurve([0, 1], [2, 1], superlevel=True))  # Its connectivity is unknown.
    assert align_curves(curves).connectivity is None
    assert align_curves(curves).superlevel


def test_a_batch_is_its_curves_one_by_one(images):
    batch = ecc.euler_curve(images.reshape(2, 3, 20, 17), 40, axis=(2, 3))
    found = curve_descriptors(batch)
    singles = [
        curve_descriptors((batch.thresholds, values)) for values in batch.values.reshape(6, 40)
    ]
    expected = np.reshape(singles, (2, 3, len(found)))
    assert_allclose(np.stack(found, axis=2), expected, rtol=1e-12)
    assert found.area.shape == (2, 3)
    assert found.zero_crossings.dtype == np.int64


def test_descriptors_of_transforms(images):
    directions = ecc.sample_directions(3, 2)
    shapes = {name: image > image.mean() for name, image in zip("ab", images, strict=False)}
    found = {n: ecc.euler_transform(s, directions, 12, range=(-15, 15)) for n, s in shapes.items()}
    table = descriptor_table(found)
    one = found["b"]
    expected = [
        curve_descriptors((transform.heights, values))
        for transform in found.values()
        for values in transform.values
    ]
    assert_allclose(table, expected)
    labels = np.where(shapes["a"], 5, 2)
    regions = ecc.region_transforms(labels, directions, one.heights)
    rows = descriptor_table(regions)
    assert rows.index.names == ["label", "direction"]
    assert_allclose(rows.loc[5, 1], curve_descriptors((one.heights, regions.values[1, 1])))
    with pytest.raises(ValueError, match="`superlevel` must be left out for transforms"):
        curve_descriptors(one, superlevel=True)


def test_size_divides_what_counts_and_leaves_positions(images):
    curve = ecc.euler_curve(images[0], 64)
    plain = curve_descriptors(curve)
    dense = curve_descriptors(curve, size=images[0].size)
    places = {name for name in plain._fields if name.endswith("_at") or "crossing" in name}
    expected = [
        value if name in places else value / images[0].size
        for name, value in plain._asdict().items()
    ]
    assert_allclose(dense, expected)
    assert_array_equal(curve_descriptors((T, [CHI, CHI]), size=[1, 10]).maximum, [5, 0.5])


def test_table_of_regions_named_curves_and_batches(images):
    labels = np.zeros((20, 17), int)
    labels[2:9, 3:12], labels[11:18, 1:15] = 4, 9
    regions = ecc.region_curves(images[0], labels, 32)
    table = descriptor_table(regions)
    assert isinstance(table, pd.DataFrame)
    assert (table.index.name, list(table.index)) == ("label", [4, 9])
    assert table.loc[9, "maximum"] == regions.values[1].max()
    named = descriptor_table({"a": (T, CHI), "b": (T, -CHI)}, size=[1, 2])
    assert list(named.index) == ["a", "b"]
    assert named.loc["b", "minimum"] == -2.5
    batch = descriptor_table((T, [CHI, CHI, CHI]))
    assert len(batch) == 3
    betti = descriptor_table(ecc.betti_curves(images[0], 32))
    assert (betti.index.name, list(betti.index)) == ("dimension", [0, 1])
    minkowski = ecc.minkowski_curves(images, 32, axis=(1, 2))
    one = descriptor_table(ecc.minkowski_curves(images[4], minkowski.thresholds))
    assert (one.index.name, list(one.index)) == ("measure", ["area", "perimeter", "euler"])
    assert one.loc["area", "maximum"] == images[4].size
    many = descriptor_table(minkowski)
    assert list(many.index.names) == ["batch_0", "measure"]
    pd.testing.assert_frame_equal(many.loc[4], one)
    each = descriptor_table(ecc.region_minkowski(images[0], labels, 32))
    assert list(each.index.names) == ["label", "measure"]
    assert each.loc[(9, "area"), "maximum"] == np.count_nonzero(labels == 9)
    assert list(batch.columns) == list(named.columns) == list(table.columns)


# Distances


def random_curve(rng, count):
    """Thresholds, which are quarters, and as many numbers."""
    quarters = rng.choice(28, count, replace=False)
    return np.sort(quarters) / 4 - 1, rng.integers(-6, 7, count)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(4))
def test_distances_are_the_integrals_they_claim_to_be(seed, metric):
    rng = np.random.default_rng(seed)
    a, b = (random_curve(rng, count) for count in (5, 8))
    places = np.append(a[0], b[0])
    width = 1e-5
    at = np.arange(places.min(), places.max(), width) + width / 2
    difference = step(a, at) - step(b, at)
    expected = {
        "L1": np.abs(difference).sum() * width,
        "L2": np.sqrt((difference**2).sum() * width),
        "W1": np.abs(np.cumsum(difference) * width).sum() * width,
    }
    assert_allclose(curve_distance(a, b, metric=metric), expected[metric], rtol=1e-5)


@pytest.mark.parametrize("superlevel", [False, True])
def test_aligned_curves_are_those_of_the_images_at_the_union(superlevel, images):
    curves = [ecc.euler_curve(image, "exact", superlevel=superlevel) for image in images[:3]]
    union, values = align_curves(curves)
    curves = [ecc.euler_curve(image, union, superlevel=superlevel) for image in images[:3]]
    assert_array_equal(values, [curve.values for curve in curves])


@pytest.mark.parametrize("metric", METRICS)
def test_superlevel_distances_mirror_those_of_sublevels(metric, images):
    down = [ecc.euler_curve(image, "exact") for image in images[:2]]
    up = [ecc.euler_curve(-image, "exact", superlevel=True) for image in images[:2]]
    expected = curve_distance(*down, metric=metric)
    assert_allclose(curve_distance(*up, metric=metric), expected, rtol=1e-12)
    bare = [tuple(curve) for curve in up]
    assert_allclose(curve_distance(*bare, metric=metric, superlevel=True), expected, rtol=1e-12)
    assert curve_distance(*bare, metric=metric) != pytest.approx(expected, rel=1e-6)


# What is refused


@pytest.mark.parametrize(
    ("curve", "error", "message"),
    [
        (5, TypeError, "`curve` must be a pair of thresholds and values, got a int"),
        ((T, CHI, CHI), TypeError, "thresholds and values, got a tuple of 3"),
        ((T, ["a"] * 5), TypeError, "`curve` must be of real numbers, got <U1"),
        ((T, CHI[:4]), ValueError, r"values, got shapes \(5,\) and \(4,\)"),
        (([], []), ValueError, "`curve` must have at least one threshold, got none"),
        ((T[::-1], CHI), ValueError, "increasing thresholds, got some that decrease"),
        (([0, np.inf], [1, 1]), ValueError, "finite thresholds and values, got infinity or NaN"),
        (([0, 1], [1, np.nan]), ValueError, "finite thresholds and values, got infinity or NaN"),
    ],
)
def test_what_is_no_curve(curve, error, message):
    with pytest.raises(error, match=message):
        curve_descriptors(curve)


def test_other_arguments_that_are_refused():
    one = (T, CHI)
    many = (T, [CHI, CHI])
    with pytest.raises(ValueError, match='`metric` must be "L1", "L2" or "W1", got \'L3\''):
        curve_distance(one, one, metric="L3")
    with pytest.raises(ValueError, match=r"`b` must be a single curve, got values of shape \(2, 5"):
        curve_distance(one, many)
    with pytest.raises(ValueError, match=r"`a` must have \(k, n\) values, got shape \(5,\)"):
        distance_matrix(one)
    with pytest.raises(ValueError, match=r"`a\[1\]` must be a single curve"):
        distance_matrix([one, many])
    with pytest.raises(ValueError, match="`curves` must hold at least one curve, got none"):
        align_curves([])
    with pytest.raises(TypeError, match="`curves` must be a list of curves, got a tuple"):
        align_curves(one)
    with pytest.raises(ValueError, match="`size` must be positive and finite, got 0"):
        curve_descriptors(one, size=0)
    with pytest.raises(ValueError, match=r"`size` must be a number or of shape \(2,\), got shape"):
        curve_descriptors(many, size=[1, 2, 3])
    with pytest.raises(ValueError, match="`curves` must hold at least one curve, got none"):
        descriptor_table({})
    with pytest.raises(ValueError, match=r"`curves\['x'\]` must be a single curve"):
        descriptor_table({"x": many})


def test_inputs_are_not_written(images):
    curve = ecc.euler_curve(images, 30, axis=(1, 2))
    for part in curve:
        part.flags.writeable = False
    before = curve.values.copy()
    curve_descriptors(curve)
    distance_matrix(curve, metric="W1")
    assert_array_equal(curve.values, before)
