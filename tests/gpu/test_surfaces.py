"""Surfaces of CuPy arrays and torch tensors equal those of NumPy arrays."""

import numpy as np
import pytest
from gpu_helpers import PUT, assert_same, cupy

import ecc_core as ecc

RNG = np.random.default_rng(7)


@PUT
@pytest.mark.parametrize("shape", [(300,), (90, 130), (20, 33, 65), (200, 70, 60)])
@pytest.mark.parametrize("connectivity", [1, None])
@pytest.mark.parametrize("superlevel", [(False, True), (True, False)])
def test_surfaces(put, shape, connectivity, superlevel):
    first = RNG.integers(0, 100, shape).astype(np.uint8)
    second = RNG.normal(size=shape).astype(np.float32)
    options = {"connectivity": connectivity, "superlevel": superlevel, "range_second": (-2, 2)}
    for counts in ((64, 64), (300, 50)):
        assert_same(ecc.euler_surface, (first, second), *counts, put=put, **options)


@PUT
def test_masks_nan_and_batches(put):
    first = RNG.normal(size=(5, 40, 50)).astype(np.float64)
    second = RNG.integers(-9, 9, (5, 40, 50)).astype(np.int64)
    mask = RNG.random((40, 50)) < 0.8
    first[1, 3, 4] = np.nan
    with pytest.raises(ValueError, match="must not contain NaN"):
        ecc.euler_surface(put(first), put(second), [0.0], [1], axis=(1, 2))
    options = {"axis": (2, 1), "nan": "omit", "range_first": (-2, 2)}
    assert_same(ecc.euler_surface, (first, second), 9, 5, put=put, mask=mask.T, **options)


def test_devices_are_not_mixed():
    image = RNG.random((5, 6))
    with pytest.raises(ValueError, match="`second` must be on the image's device"):
        ecc.euler_surface(cupy.asarray(image), image)
