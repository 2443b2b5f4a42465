"""Booleans whose True is another byte than 1, where `test_stored_arrays.py` has none of them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from stored_arrays import odd_bytes

import ecc_core as ecc

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("shape", [(140_000,), (9, 70_000), (5, 9, 46_000)])
def test_images_of_many_blocks(shape):
    mask, shown = RNG.random((2, *shape)) < 0.5
    for connectivity in {1, len(shape)}:
        options = {"connectivity": connectivity}
        for thresholds in ([0, 1], [-1, 0.5, 2], np.array([False, True]), 3, "exact"):
            known = ecc.euler_curve(mask, thresholds, **options)
            assert ecc.euler_curve(odd_bytes(mask), thresholds, **options) == known
        options["mask"] = shown
        known = ecc.euler_curve(mask, [0, 1], **options)
        coefficients = ecc.euler_coefficients(mask, **options)
        options["mask"] = odd_bytes(shown)
        assert ecc.euler_curve(odd_bytes(mask), [0, 1], **options) == known
        assert_array_equal(ecc.euler_coefficients(odd_bytes(mask), **options), coefficients)


def test_the_first_example():
    found = ecc.euler_curve((np.eye(5, dtype=np.uint8) * 255).view(bool), "exact")
    assert_array_equal(found.thresholds, [False, True])
    assert_array_equal(found.values, [-2, 1])


def test_masked_arrays_weights_tensors_and_tiles():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("dask", reason="dask is not installed")
    from ecc_core.dask import local_curves

    mask, hidden = RNG.random((2, 9, 11)) < 0.5
    odd, at = odd_bytes(mask), [0, 1]
    masked = np.ma.array(odd, mask=odd_bytes(hidden))
    assert ecc.euler_curve(masked, at) == ecc.euler_curve(mask, at, mask=~hidden)
    known = ecc.euler_transform(mask, 4, 9, weighted=True)
    assert ecc.euler_transform(odd, 4, 9, weighted=True) == known
    found = ecc.euler_curve(torch.from_numpy(odd), at).values
    assert_array_equal(found.numpy(), ecc.euler_curve(mask, at).values)
    tiles = local_curves(odd, 3, at, mask=odd_bytes(hidden))
    assert_array_equal(tiles.values, local_curves(mask, 3, at, mask=hidden).values)
