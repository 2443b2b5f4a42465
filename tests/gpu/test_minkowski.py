"""Minkowski functionals of CuPy arrays and torch tensors equal those of NumPy arrays."""

import numpy as np
import pytest
from gpu_helpers import PUT, assert_same, cupy

import ecc_core as ecc
from ecc_core.testing import assert_arrays_equal

RNG = np.random.default_rng(7)
SPACING = (1.5, 2.0, 0.5)
SHAPES = [(300,), (90, 130), (1, 37), (20, 33, 65), (5, 1, 64), (200, 70, 60)]
BOUNDARIES = ("closed", "periodic", "half-open")


def estimators(ndim):
    return {1: ("exact",), 2: ("exact", "crofton-4"), 3: ("exact", "crofton-3", "crofton-13")}[ndim]


@PUT
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_curves(put, shape, boundary, dtype):
    image = RNG.integers(0, 200, shape).astype(dtype)
    for connectivity in {1, len(shape)}:
        for estimator in estimators(len(shape)):
            options = {"boundary": boundary, "estimator": estimator, "connectivity": connectivity}
            options |= {"spacing": SPACING[: len(shape)], "superlevel": connectivity == 1}
            for thresholds in (256, np.array([-1, 3.5, 3.5, 40, 201])):
                assert_same(ecc.minkowski_curves, image, thresholds, put=put, **options)


@PUT
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_masks_nan_and_batches(put, boundary):
    image = RNG.normal(size=(5, 40, 50)).astype(np.float64)
    mask = RNG.random((40, 50)) < 0.8
    image[1, 3, 4] = np.nan
    options = {"axis": (2, 1), "boundary": boundary}
    with pytest.raises(ValueError, match="must not contain NaN"):
        ecc.minkowski_curves(put(image), [0.0], **options)
    options |= {"nan": "omit", "range": (-2, 2)}
    for thresholds in (9, 5000, 20_000):  # fewer copies of bins, and bins in global memory
        assert_same(ecc.minkowski_curves, image, thresholds, put=put, mask=mask.T, **options)


@PUT
def test_no_points(put):
    found = ecc.minkowski_curves(put(np.zeros((0, 4), np.float32)), [0.0, 1.0])
    assert_arrays_equal(found.values, np.zeros((3, 2)), like=put(np.zeros(1)))


@PUT
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64"])
@pytest.mark.parametrize("shape", [(300,), (90, 130), (20, 33, 65)])
def test_regions(put, dtype, shape):
    image = RNG.normal(size=shape).astype(np.float32)
    labels = RNG.integers(0, 2, shape).astype(dtype)
    for axis, length in enumerate(shape):
        bands = (np.arange(length) // 9 % 3).astype(dtype)
        labels = labels * bands.reshape([-1] + [1] * (len(shape) - 1 - axis))
    for connectivity in {1, len(shape)}:
        for estimator in estimators(len(shape)):
            options = {"connectivity": connectivity, "estimator": estimator}
            options |= {"range": (-2, 2), "superlevel": connectivity == 1}
            assert_same(ecc.region_minkowski, (image, labels), 30, put=put, **options)


@pytest.mark.parametrize("estimator", ["exact", "crofton-4"])
def test_chunks_of_cupy_arrays(estimator):
    da = pytest.importorskip("dask.array")
    image, labels = RNG.integers(0, 9, (2, 30, 40))
    lazy, regions = (
        da.from_array(array, chunks=16).map_blocks(cupy.asarray, meta=cupy.empty((0, 0), int))
        for array in (image, labels)
    )
    for boundary in BOUNDARIES:
        options = {"estimator": estimator, "boundary": boundary}
        found = ecc.minkowski_curves(lazy, [1, 4, 7], **options).values.compute()
        expected = ecc.minkowski_curves(image, [1, 4, 7], **options).values
        np.testing.assert_array_equal(found, expected)
    found = ecc.region_minkowski(lazy, regions, [1, 4], estimator=estimator)
    expected = ecc.region_minkowski(image, labels, [1, 4], estimator=estimator)
    np.testing.assert_array_equal(found.values.compute(), expected.values)
    np.testing.assert_array_equal(found.labels.compute(), expected.labels)


@PUT
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("boundary", BOUNDARIES[1:])
def test_euler_curves_of_other_boundaries(put, dtype, shape, boundary):
    image, mask = RNG.integers(0, 200, shape).astype(dtype), RNG.random(shape) < 0.9
    for connectivity in {1, len(shape)}:
        options = {"boundary": boundary, "connectivity": connectivity, "put": put}
        options |= {"superlevel": connectivity == 1}
        for thresholds in (64, np.array([-1.0, 3.5, 40, 201]), "exact"):
            assert_same(ecc.euler_curve, image, thresholds, **options)
        assert_same(ecc.euler_curve, image, 64, mask=mask, **options)


@PUT
@pytest.mark.parametrize("boundary", BOUNDARIES[1:])
def test_other_boundaries_of_batches_with_nan(put, boundary):
    image = RNG.normal(size=(3, 20, 30)).astype(np.float32)
    image[0, 0, 5] = image[2, 19, 29] = np.nan
    options = {"boundary": boundary, "axis": (1, 2)}
    with pytest.raises(ValueError, match="must not contain NaN"):
        ecc.euler_curve(put(image), [0.0], **options)
    assert_same(ecc.euler_curve, image, 20, put=put, nan="omit", range=(-2, 2), **options)
