"""Betti curves, also of the classes that last and of periodic images, against GUDHI's diagrams."""

import numpy as np
import pytest
from filtrations import connectivities
from numpy.testing import assert_array_equal
from topology_helpers import alive, intervals, sorted_pairs

import ecc_core as ecc

DTYPES = [bool, np.uint8, np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64]


def known(image, at, least, connectivity):
    return alive(intervals(image.astype(np.float64), connectivity), at, least)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(40,), (9, 12), (5, 6, 7)])
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("periodic", [False, True])
def test_equal_to_counted_intervals(dtype, shape, superlevel, periodic):
    rng = np.random.default_rng(len(shape))
    image = (rng.random(shape) * (2 if dtype is bool else 90)).astype(dtype)
    every, sign = np.unique(image), -1.0 if superlevel else 1.0
    options = {"superlevel": superlevel, "boundary": "periodic" if periodic else "closed"}
    options["axis"] = tuple(range(len(shape)))
    for connectivity in connectivities(len(shape)):
        options["connectivity"] = connectivity
        parts = intervals(sign * image.astype(np.float64), connectivity, periodic)
        for least in (0, 0.5, 1, 17.5, 60):
            for thresholds in (256, np.linspace(-3, 95, 50)):
                found = ecc.betti_curves(image, thresholds, min_persistence=least, **options)
                at = sign * found.thresholds.astype(np.float64)
                assert found.values.dtype == np.int64
                assert_array_equal(found.values, alive(parts, at, least))
        assert_array_equal(found.thresholds, thresholds)
        exact = ecc.betti_curves(image, "exact", **options)
        values = alive(parts, sign * every.astype(np.float64))
        steps = np.diff(values[:, :: int(sign)], prepend=0, axis=1)[:, :: int(sign)].any(axis=0)
        assert_array_equal(exact.thresholds, every[steps])
        assert_array_equal(exact.values, values[:, steps])


@pytest.mark.parametrize("shape", [(12, 10), (5, 6, 4)])
@pytest.mark.parametrize("periodic", [False, True])
def test_batches_masks_nan_and_default_thresholds(shape, periodic):
    rng = np.random.default_rng(0)
    images = rng.random((3, *shape)).astype(np.float32)
    images[1].flat[7] = np.nan
    mask = rng.random(shape) < 0.8
    options = {"nan": "omit", "mask": mask, "boundary": "periodic" if periodic else "closed"}
    axis = tuple(range(1, images.ndim))
    curves = [
        ecc.betti_curves(images, axis=axis, min_persistence=least, **options) for least in (0, 0.3)
    ]
    at, shown = curves[0].thresholds, images[np.isfinite(images) & mask]
    assert_array_equal(at[[0, -1]], [shown.min(), shown.max()])
    for image, *values in zip(images, *(found.values for found in curves), strict=True):
        # Points that never enter are as good as points that enter last.
        parts = intervals(np.where(mask & ~np.isnan(image), image, 10), len(shape), periodic)
        assert_array_equal(values, [alive(parts, at), alive(parts, at, 0.3)])
        pairs = ecc.persistence_pairs(image, **options)
        for own, part in zip(pairs.to_gudhi(), parts, strict=True):
            entered = part[part[:, 0] < 10]
            entered[entered[:, 1] == 10, 1] = np.inf
            assert_array_equal(sorted_pairs(*own.T), sorted_pairs(*entered.T))


def test_exact_thresholds_and_no_filter():
    image = np.random.default_rng(1).integers(0, 30, (14, 15))
    found = ecc.betti_curves(image, "exact", min_persistence=6)
    every = np.unique(image)
    expected = known(image, every, 6, 2)
    jumps = np.diff(expected, prepend=0, axis=1).any(axis=0)
    assert_array_equal(found.thresholds, every[jumps])
    assert_array_equal(found.values, expected[:, jumps])
    assert ecc.betti_curves(image, min_persistence=0) == ecc.betti_curves(image)


@pytest.mark.parametrize("least", [0, 0.5])
def test_exact_thresholds_of_many_equal_float16(least):
    """NumPy's own sort of float16 may leave so many of them out of order."""
    image = (np.random.default_rng(0).integers(0, 6, (90, 90)) / 3 - 1).astype(np.float16)
    found = ecc.betti_curves(image, "exact", min_persistence=least)
    assert_array_equal(found.thresholds, np.unique(image.astype(float)))
    assert_array_equal(found.values, known(image, found.thresholds, least, 2))
    pairs = ecc.persistence_pairs(image, min_persistence=least)
    assert pairs.betti_curves("exact") == found
