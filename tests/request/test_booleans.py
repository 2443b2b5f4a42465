"""Booleans whose True is another byte than 1, as 1-bit PNGs and views of uint8 have it."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import ecc_core as ecc

RNG = np.random.default_rng(5)
SHAPES = [(70,), (9, 67), (5, 9, 66)]


def odd_bytes(mask):
    """The same mask, True stored as any byte but 0."""
    return (mask * RNG.integers(1, 256, mask.shape)).astype(np.uint8).view(np.bool_)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("size", ["small", "large"])
def test_curves(shape, superlevel, size):
    shape = (*shape[:-1], 140_000 // len(shape)) if size == "large" else shape
    mask = RNG.random(shape) < 0.5
    odd = odd_bytes(mask)
    for connectivity in {1, len(shape)}:
        options = {"connectivity": connectivity, "superlevel": superlevel}
        for thresholds in ([0, 1], [-1, 0.5, 2], np.array([False, True]), 3, "exact"):
            found = ecc.euler_curve(odd, thresholds, **options)
            known = ecc.euler_curve(mask, thresholds, **options)
            assert_array_equal(found.values, known.values)
            assert_array_equal(found.thresholds, known.thresholds)
        shown = RNG.random(shape) < 0.7
        known = ecc.euler_curve(mask, [0, 1], mask=shown, **options)
        found = ecc.euler_curve(odd, [0, 1], mask=odd_bytes(shown), **options)
        assert_array_equal(found.values, known.values)
        assert_array_equal(
            ecc.euler_coefficients(odd, mask=odd_bytes(shown), **options),
            ecc.euler_coefficients(mask, mask=shown, **options),
        )
        assert ecc.euler_number(odd, connectivity) == ecc.euler_number(mask, connectivity)


def test_the_first_example():
    found = ecc.euler_curve((np.eye(5, dtype=np.uint8) * 255).view(bool), "exact")
    assert_array_equal(found.thresholds, [False, True])
    assert_array_equal(found.values, [-2, 1])


def test_thresholds_that_are_booleans():
    thresholds = np.array([0, 255], np.uint8).view(bool)
    image = np.array([[0, 1, 2], [2, 1, 200]], np.uint8)
    assert_array_equal(
        ecc.euler_curve(image, thresholds).values, ecc.euler_curve(image, [0, 1]).values
    )


def test_regions_and_transforms():
    mask = RNG.random((9, 11)) < 0.5
    odd, labels = odd_bytes(mask), RNG.integers(0, 4, mask.shape)
    for thresholds in ([0, 1], 2):
        found, known = (ecc.region_curves(i, labels, thresholds) for i in (odd, mask))
        assert_array_equal(found.values, known.values)
        found, known = (ecc.region_curves(labels, i, [0, 1, 3]) for i in (odd, mask))
        assert_array_equal(found.labels, known.labels)
        assert_array_equal(found.values, known.values)
    for weighted in (False, True):
        found, known = (ecc.euler_transform(i, 4, 9, weighted=weighted) for i in (odd, mask))
        assert_array_equal(found.values, known.values)
    found, known = (ecc.region_transforms(i, 4, 9) for i in (odd, mask))
    assert_array_equal(found.values, known.values)


def test_masked_arrays_and_shards():
    mask, hidden = RNG.random((2, 9, 11)) < 0.5
    known = ecc.euler_curve(mask, [0, 1], mask=~hidden).values
    found = ecc.euler_curve(np.ma.array(odd_bytes(mask), mask=odd_bytes(hidden)), [0, 1]).values
    assert_array_equal(found, known)
    parts = np.array_split(odd_bytes(mask), 3)
    found = ecc.euler_curve_shards(parts, [0, 1]).values
    assert_array_equal(found, ecc.euler_curve(mask, [0, 1]).values)


def test_tensors():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    mask = RNG.random((9, 11)) < 0.5
    found = ecc.euler_curve(torch.from_numpy(odd_bytes(mask)), [0, 1]).values
    assert_array_equal(found.numpy(), ecc.euler_curve(mask, [0, 1]).values)


def test_chunks_and_tiles():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    from ecc_core.dask import local_curves

    mask, shown = RNG.random((2, 9, 11)) < 0.5
    lazy = da.from_array(odd_bytes(mask), chunks=4)
    for options in ({}, {"mask": odd_bytes(shown)}):
        plain = {"mask": shown} if options else {}
        known = ecc.euler_curve(mask, [0, 1], **plain).values
        assert_array_equal(ecc.euler_curve(lazy, [0, 1], **options).values.compute(), known)
        assert_array_equal(
            local_curves(odd_bytes(mask), 3, [0, 1], **options).values,
            local_curves(mask, 3, [0, 1], **plain).values,
        )
    assert_array_equal(ecc.euler_coefficients(lazy).compute(), ecc.euler_coefficients(mask))
