"""Betti numbers and persistence of periodic images: GUDHI, and a reduced boundary matrix."""

import itertools
from functools import partial

import dask.array as da
import numpy as np
import pytest
from filtrations import connectivities, sides
from numpy.testing import assert_array_equal
from topology_helpers import alive, assert_diagrams, check_points, intervals, sorted_pairs

import ecc_core as ecc
from ecc_core._backends.cpu.betti import torus

DTYPES = [bool, np.uint8, np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64]
SHAPES = [(1,), (2,), (7,), (1, 4), (2, 5), (6, 7), (1, 1, 4), (1, 3, 4), (2, 2, 2), (3, 4, 5)]


diagrams = partial(intervals, periodic=True)


def every_axis(image):
    return {"boundary": "periodic", "axis": tuple(range(image.ndim))}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_pairs_and_curves_are_those_of_gudhi(shape, levels):
    rng = np.random.default_rng(levels)
    for connectivity, _ in itertools.product(connectivities(len(shape)), range(10)):
        image = rng.integers(0, levels, shape).astype(np.float32)
        options = {"connectivity": connectivity, **every_axis(image)}
        pairs = ecc.persistence_pairs(image, **options)
        expected = diagrams(image, connectivity)
        assert_diagrams(pairs.to_gudhi(), expected)
        assert pairs.boundary == "periodic"
        assert pairs.dimensions.max() == image.ndim
        at = np.unique(image)
        curves = ecc.betti_curves(image, at, **options)
        assert_array_equal(curves.values, alive(expected, at))
        assert pairs.betti_curves(at) == curves
        euler = ecc.euler_curve(image, at, **options)
        assert_array_equal(curves.euler, euler.values)
        assert curves.boundary == euler.boundary


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3), (3, 3, 3), (2, 3, 4), (1, 3, 3)])
@pytest.mark.parametrize("levels", [2, 4, 100])
def test_points_are_those_of_a_reduced_matrix(shape, levels):
    rng = np.random.default_rng(levels)
    for options in sides(len(shape)):
        image = rng.integers(0, levels, shape)
        check_points(image, np.ones(shape, bool), periodic=True, **options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(40,), (9, 12), (5, 6, 7)])
@pytest.mark.parametrize("superlevel", [False, True])
def test_every_dtype_at_values_outside_and_by_default(dtype, shape, superlevel):
    rng = np.random.default_rng(len(shape))
    image = (rng.random(shape) * (2 if dtype is bool else 90)).astype(dtype)
    sign = -1.0 if superlevel else 1.0
    for connectivity in connectivities(len(shape)):
        options = {"connectivity": connectivity, "superlevel": superlevel, **every_axis(image)}
        parts = diagrams(sign * image.astype(np.float64), connectivity)
        for least in (0, 17.5):
            for thresholds in (256, np.linspace(-3, 95, 50)):
                found = ecc.betti_curves(image, thresholds, min_persistence=least, **options)
                at = sign * found.thresholds.astype(np.float64)
                assert found.values.dtype == np.int64
                assert_array_equal(found.values, alive(parts, at, least))
        exact = ecc.betti_curves(image, "exact", **options)
        every = np.unique(image)
        known = alive(parts, sign * every.astype(np.float64))
        steps = np.diff(known[:, :: int(sign)], prepend=0, axis=1)[:, :: int(sign)].any(axis=0)
        assert_array_equal(exact.thresholds, every[steps])
        assert_array_equal(exact.values, known[:, steps])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_both_ends_of_integers(dtype):
    ends = np.iinfo(dtype)
    ranks = np.random.default_rng(2).integers(0, 4, (6, 7))
    image = np.array([ends.min, ends.min + 1, ends.max - 1, ends.max], dtype)[ranks]
    for connectivity in (1, 2):
        pairs = ecc.persistence_pairs(image, connectivity=connectivity, boundary="periodic")
        for k, part in enumerate(diagrams(ranks, connectivity)):
            found = pairs.select(k)
            assert len(found.births) == len(part)
            lasting = ~found.essential
            levels = np.array([ends.min, ends.min + 1, ends.max - 1, ends.max], dtype)
            known = part[np.isfinite(part[:, 1])].astype(int)
            both = sorted_pairs(found.births[lasting], found.deaths[lasting])
            assert_array_equal(both, sorted_pairs(*levels[known].T))


@pytest.mark.parametrize("shape", [(12, 10), (5, 6, 4)])
def test_batches_masks_and_nan(shape):
    rng = np.random.default_rng(0)
    images = rng.random((3, *shape)).astype(np.float32)
    images[1].flat[7] = np.nan
    mask = rng.random(shape) < 0.8
    options = {"axis": tuple(range(1, images.ndim)), "nan": "omit", "mask": mask}
    found = ecc.betti_curves(images, boundary="periodic", **options)
    assert found.values.shape == (3, len(shape) + 1, 256)
    for image, values in zip(images, found.values, strict=True):
        # Points that never enter are as good as points that enter last.
        filled = np.where(mask & ~np.isnan(image), image, 10)
        parts = diagrams(filled, len(shape))
        assert_array_equal(values, alive(parts, found.thresholds))
        pairs = ecc.persistence_pairs(image, nan="omit", mask=mask, boundary="periodic")
        for own, part in zip(pairs.to_gudhi(), parts, strict=True):
            shown = part[part[:, 0] < 10]
            shown[shown[:, 1] == 10, 1] = np.inf
            assert_array_equal(sorted_pairs(*own.T), sorted_pairs(*shown.T))
    with pytest.raises(ValueError, match="nan="):
        ecc.betti_curves(images[1], boundary="periodic")
    with pytest.raises(ValueError, match="nan="):
        ecc.persistence_pairs(images[1], boundary="periodic")


def test_numbers_of_a_binary_image():
    cross = np.zeros((5, 6, 7), bool)
    cross[2], cross[:, 3, 3] = True, True  # a plane, and a line across it
    assert ecc.betti_numbers(cross) == (1, 0, 0)
    assert ecc.betti_numbers(cross, boundary="periodic") == (1, 3, 1, 0)
    assert ecc.betti_numbers(np.ones((3, 4, 5)), boundary="periodic") == (1, 3, 3, 1)
    assert ecc.betti_numbers(np.zeros((3, 4, 5)), boundary="periodic") == (0, 0, 0, 0)


def test_a_larger_volume():
    image = np.random.default_rng(5).normal(size=(40, 30, 25)).astype(np.float32)
    at = np.linspace(-2, 2, 30)
    for connectivity in (1, 3):
        options = {"connectivity": connectivity, "boundary": "periodic"}
        curves = ecc.betti_curves(image, at, **options)
        assert_array_equal(curves.values, alive(diagrams(image, connectivity), at))


def test_images_whose_paths_need_64_bits(monkeypatch):
    image = np.random.default_rng(7).random((6, 7, 8))
    narrow = ecc.persistence_pairs(image, boundary="periodic")
    monkeypatch.setattr(torus, "MOST_NARROW", 0)
    assert ecc.persistence_pairs(image, boundary="periodic") == narrow
    assert_diagrams(narrow.to_gudhi(), diagrams(image, 3))


def test_results_say_what_they_are():
    image = np.random.default_rng(6).random((8, 9))
    pairs = ecc.persistence_pairs(image, boundary="periodic")
    assert pairs.counts[2] == 1
    assert pairs.select(2).essential.all()
    assert ecc.persistence_pairs(image, 2, boundary="periodic").births == image.max()
    assert pairs.euler_curve([0.5]).boundary == "periodic"
    with pytest.raises(ValueError, match="all 3 dimensions"):
        pairs.select(1).betti_curves(3)
    curves = ecc.betti_curves(image, boundary="periodic")
    assert list(dict.fromkeys(curves.to_pandas()["dimension"])) == [0, 1, 2]
    assert "$b_2$" in [line.get_label() for line in curves.plot().lines]
    names = [text.get_text() for text in pairs.plot().get_legend().get_texts()]
    assert names == ["components", "holes", "torus"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: ecc.betti_curves(x, boundary="half-open"), "window are no complex"),
        (lambda x: ecc.betti_numbers(x, boundary="half-open"), "window are no complex"),
        (lambda x: ecc.persistence_pairs(x, boundary="torus"), "`boundary` must be"),
        (lambda x: ecc.persistence_pairs(x, 3, boundary="periodic"), "0, 1, 2 or None"),
        (lambda x: ecc.betti_curves(da.asarray(x), [1], boundary="periodic"), "dask array"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.zeros((4, 5)))


def test_empty():
    image = np.zeros((0, 4))
    assert ecc.betti_curves(image, [1, 2], boundary="periodic").values.tolist() == [[0, 0]] * 3
    assert ecc.persistence_pairs(image, boundary="periodic").counts == (0, 0, 0)
    nothing = {"mask": np.zeros((3, 4), bool), "boundary": "periodic"}
    assert ecc.persistence_pairs(np.zeros((3, 4)), **nothing).counts == (0, 0, 0)
