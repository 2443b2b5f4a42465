"""Pairs of all dimensions: a reduced boundary matrix, GUDHI, and curves of what lasts."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from topology_helpers import assert_diagrams, intervals

import ecc_core as ecc


@pytest.mark.parametrize(("count", "most", "ndim"), [(200, 12, 2), (100, 7, 3)])
@pytest.mark.parametrize("cubes", [False, True])
@pytest.mark.parametrize("levels", [2, 3, 10, 1000])
def test_pairs_of_many_small_images(count, most, ndim, cubes, levels):
    rng, connectivity = np.random.default_rng(levels), ndim if cubes else 1
    for _ in range(count):
        image = rng.integers(0, levels, rng.integers(1, most, ndim)).astype(np.float32)
        options = {"connectivity": connectivity, "axis": tuple(range(ndim))}
        pairs = ecc.persistence_pairs(image, **options)
        assert_diagrams(pairs.to_gudhi(), intervals(image, connectivity))
        for dimension in range(ndim):
            alone = ecc.persistence_pairs(image, dimension, **options)
            assert pairs.select(dimension) == alone == alone.select(dimension)
    assert pairs.dimension is None
    assert_array_equal(np.bincount(pairs.dimensions, minlength=ndim), pairs.counts)
    assert_array_equal(pairs.to_pandas()["dimension"][::2], pairs.dimensions)
    with pytest.raises(KeyError, match="no dimension 0"):
        alone.select(0)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.uint64])
@pytest.mark.parametrize("shape", [(90, 150), (300, 64), (30, 20, 25)])
@pytest.mark.parametrize("cubes", [False, True])
def test_larger_images(dtype, shape, cubes):
    image = (np.random.default_rng(2).random(shape) * 1000).astype(dtype)
    image[5:20, 5:12] = 7  # a plateau
    connectivity = image.ndim if cubes else 1
    pairs = ecc.persistence_pairs(image, connectivity=connectivity)
    assert_diagrams(pairs.to_gudhi(), intervals(image, connectivity))


@pytest.mark.parametrize("connectivity", [1, 2])
def test_long_paths(connectivity):
    """Valleys that wind through the whole image, and lead to one minimum."""
    image = np.zeros((41, 70))
    image[1::2] = 5000
    image[1::4, -1], image[3::4, 0] = 1, 1
    places = np.argwhere(image < 5000)
    turns = np.where(places[:, 0] % 4 < 2, places[:, 1], 69 - places[:, 1])
    image[tuple(places[np.lexsort((turns, places[:, 0]))].T)] = np.arange(len(places))[::-1]
    image += np.random.default_rng(0).random(image.shape) / 2
    image[::9, ::7] += 3
    pairs = ecc.persistence_pairs(image, connectivity=connectivity)
    assert_diagrams(pairs.to_gudhi(), intervals(image, connectivity))


def test_axes_of_length_one():
    image = np.random.default_rng(4).random((1, 6, 7))
    plane = ecc.persistence_pairs(image, axis=(1, 2))
    assert plane == ecc.persistence_pairs(image[0])
    turned = ecc.persistence_pairs(image[0], axis=(1, 0))
    assert_array_equal(turned.births, plane.births)
    assert_array_equal(turned.birth_points, plane.birth_points[:, ::-1])


@pytest.mark.parametrize(
    ("dtype", "low", "high", "gap"),
    [
        (np.uint8, 0, 255, 255),
        (np.int8, -128, 127, 255),
        (np.int64, -(2**63), 2**63 - 1, 2**64 - 1),
        (np.uint64, 1, 2**64 - 1, 2**64 - 2),
        (np.float32, -1, 2.5, 3.5),
        (np.float64, 0.25, np.inf, np.inf),
        (bool, False, True, 1),
    ],
)
@pytest.mark.parametrize("superlevel", [False, True])
def test_differences_do_not_overflow(dtype, low, high, gap, superlevel):
    image = np.array([low, high, low], dtype)
    image = np.array([high, low, high], dtype) if superlevel else image
    reached = ecc.persistence_pairs(image, min_persistence=gap, superlevel=superlevel)
    assert len(reached.births) == 2
    if not np.isinf(gap):
        more = gap + 1 if isinstance(gap, int) else np.nextafter(gap, np.inf)
        beyond = ecc.persistence_pairs(image, min_persistence=more, superlevel=superlevel)
        assert_array_equal(beyond.essential, [True])
    beyond = ecc.persistence_pairs(image[:1], min_persistence=np.inf)
    assert_array_equal(beyond.essential, [True])


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, bool])
@pytest.mark.parametrize("shape", [(40,), (12, 14), (7, 8, 9)])
@pytest.mark.parametrize("superlevel", [False, True])
def test_curves_of_pairs(dtype, shape, superlevel):
    image = np.random.default_rng(5).integers(0, 30, shape) % 29
    image = (image > 9) if dtype is bool else image.astype(dtype)
    options = {"superlevel": superlevel, "connectivity": 1}
    pairs = ecc.persistence_pairs(image, **options)
    for thresholds in (np.array([-1, 0, 0.5, 3, 7.25, 28, 1e9]), [0, 1], "exact"):
        expected = ecc.betti_curves(image, thresholds, **options)
        assert pairs.betti_curves(thresholds) == expected
        euler = ecc.euler_curve(image, np.asarray(expected.thresholds), **options)
        assert_array_equal(pairs.euler_curve(thresholds).values[:], euler.values)
    least, at = 4, np.arange(-1, 31)
    options["min_persistence"] = least
    curves = pairs.betti_curves(at, least)
    assert curves == ecc.persistence_pairs(image, **options).betti_curves(at)
    assert curves == ecc.betti_curves(image, at, **options)


def test_curves_of_pairs_at_even_and_large_thresholds():
    pairs = ecc.persistence_pairs(np.array([1.0, np.inf, 0.0, 4.0, 2.0, -np.inf]))
    curves = pairs.betti_curves(5)
    assert_array_equal(curves.thresholds, [0, 1, 2, 3, 4])
    assert_array_equal(curves.values, [[2, 3, 3, 3, 2]])
    large = ecc.persistence_pairs(np.array([2**53, 2**53 + 3, 2**53 + 1]))
    assert_array_equal(large.betti_curves(np.array([2**53, 2**53 + 1])).values, [[1, 2]])
    none = ecc.persistence_pairs(np.zeros((0, 4)))
    assert_array_equal(none.betti_curves([0.0]).values, [[0], [0]])
    with pytest.raises(ValueError, match="`range` must be given"):
        none.betti_curves(3)
