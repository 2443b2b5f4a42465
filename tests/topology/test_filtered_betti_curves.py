"""Betti curves of the classes that last, against GUDHI's diagrams."""

import numpy as np
import pytest
from filtrations import connectivities
from numpy.testing import assert_array_equal
from topology_helpers import alive, intervals

import ecc_core as ecc

DTYPES = [bool, np.uint8, np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64]


def known(image, at, least, connectivity, superlevel):
    sign = -1 if superlevel else 1
    parts = intervals(sign * image.astype(np.float64), connectivity)
    return alive(parts, sign * np.asarray(at, float), least)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(40,), (9, 12), (5, 6, 7)])
@pytest.mark.parametrize("superlevel", [False, True])
def test_equal_to_counted_intervals(dtype, shape, superlevel):
    rng = np.random.default_rng(len(shape))
    image = (rng.random(shape) * (2 if dtype is bool else 90)).astype(dtype)
    at = np.linspace(-3, 95, 50)
    for connectivity in connectivities(len(shape)):
        options = {"connectivity": connectivity, "superlevel": superlevel}
        for least in (0.5, 1, 17.5, 60):
            found = ecc.betti_curves(
                image, at, axis=tuple(range(len(shape))), min_persistence=least, **options
            )
            expected = known(image, at, least, connectivity, superlevel)
            assert_array_equal(found.values, expected)
            assert_array_equal(found.thresholds, at)
            assert (found.superlevel, found.ndim) == (superlevel, len(shape))


def test_batches_masks_nan_and_default_thresholds():
    rng = np.random.default_rng(0)
    images = rng.random((3, 12, 10)).astype(np.float32)
    images[1, 4, 4] = np.nan
    mask = rng.random((12, 10)) < 0.8
    options = {"axis": (1, 2), "nan": "omit", "mask": mask, "min_persistence": 0.3}
    found = ecc.betti_curves(images, **options)
    assert found.values.shape == (3, 2, 256)
    shown = images[np.isfinite(images) & mask]
    assert_array_equal(found.thresholds[[0, -1]], [shown.min(), shown.max()])
    for image, values in zip(images, found.values, strict=True):
        # Points that never enter are as good as points that enter last.
        filled = np.where(mask & ~np.isnan(image), image, 10)
        assert_array_equal(values, known(filled, found.thresholds, 0.3, 2, False))


def test_exact_thresholds_and_no_filter():
    image = np.random.default_rng(1).integers(0, 30, (14, 15))
    found = ecc.betti_curves(image, "exact", min_persistence=6)
    every = np.unique(image)
    expected = known(image, every, 6, 2, False)
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
    assert_array_equal(found.values, known(image, found.thresholds, least, 2, False))
    pairs = ecc.persistence_pairs(image, min_persistence=least)
    assert pairs.betti_curves("exact") == found


def test_bad_persistence():
    image = np.zeros((4, 4))
    wrong = (-1, ValueError), (np.nan, ValueError), ("2", TypeError), (True, TypeError)
    for least, error in wrong:
        with pytest.raises(error, match="`min_persistence` must"):
            ecc.betti_curves(image, min_persistence=least)
