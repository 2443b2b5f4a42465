"""Functionals and surfaces of CuPy arrays and torch tensors equal those of NumPy arrays."""

import numpy as np
import pytest
from filtrations import ESTIMATORS, connectivities, size_of, with_connectivities
from gpu_helpers import PUT, assert_same, cupy

import ecc_core as ecc
from ecc_core.errors import BackendError

RNG = np.random.default_rng(7)
SPACING = (1.5, 2.0, 0.5)
SHAPES = [(300,), (90, 130), (1, 37), (20, 33, 65), (5, 1, 64), (200, 70, 60)]
BOUNDARIES = ("closed", "periodic", "half-open")
MIXED = [
    ("periodic", "closed", "half-open"),
    ("half-open", "periodic", "closed"),
    ("closed", "half-open", "periodic"),
]
"""Borders along the axes of a volume; images of fewer axes have the last ones."""


@PUT
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32"])
@pytest.mark.parametrize(("shape", "connectivity"), with_connectivities(SHAPES))
def test_curves(put, boundary, dtype, shape, connectivity):
    """Euler curves at every boundary."""
    image = RNG.integers(0, 200, shape).astype(dtype)
    mask = RNG.random(shape) < 0.9
    options = {"boundary": boundary, "connectivity": connectivity, "put": put}
    options |= {"superlevel": connectivity == 1}
    assert_same(ecc.euler_curve, image, 64, **options)
    assert_same(ecc.euler_curve, image, np.array([-1, 3.5, 3.5, 40, 201]), **options)
    assert_same(ecc.euler_curve, image, "exact", **options)
    assert_same(ecc.euler_curve, image, 64, mask=mask, **options)


ESTIMATED = [
    pytest.param(shape, connectivity, name, id=f"{size_of(shape)}-{connectivity}-{name}")
    for shape in SHAPES
    for connectivity in connectivities(len(shape))
    for name in ESTIMATORS[len(shape)]
]


@PUT
@pytest.mark.parametrize(("shape", "connectivity", "estimator"), ESTIMATED)
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_minkowski_curves(put, shape, connectivity, estimator, boundary, dtype):
    """Functionals at every boundary."""
    image = RNG.integers(0, 200, shape).astype(dtype)
    options = {"boundary": boundary, "connectivity": connectivity, "put": put}
    options |= {"superlevel": connectivity == 1, "spacing": SPACING[: len(shape)]}
    options["estimator"] = estimator
    assert_same(ecc.minkowski_curves, image, 256, **options)
    assert_same(ecc.minkowski_curves, image, np.array([-1, 3.5, 3.5, 40, 201]), **options)


@PUT
@pytest.mark.parametrize("shape", SHAPES[1:])
@pytest.mark.parametrize("boundary", MIXED)
@pytest.mark.parametrize("cubes", [False, True])
def test_every_axis_has_its_own_border(put, shape, boundary, cubes):
    image = RNG.integers(0, 200, shape).astype(np.float32)
    ndim = len(shape)
    options = {"boundary": boundary[-ndim:], "put": put, "axis": tuple(range(ndim))}
    options |= {"connectivity": ndim if cubes else 1, "superlevel": cubes}
    assert_same(ecc.euler_curve, image, 64, **options)
    assert_same(ecc.euler_curve, image, "exact", **options)
    for estimator in ESTIMATORS[ndim]:
        assert_same(ecc.minkowski_curves, image, 64, estimator=estimator, **options)


@PUT
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", [ecc.minkowski_curves, ecc.euler_curve])
def test_masks_nan_and_batches(put, boundary, dtype, function):
    image = RNG.normal(size=(5, 40, 50)).astype(dtype)
    mask = RNG.random((40, 50)) < 0.8
    image[1, 3, 4] = image[0, 0, 5] = image[2, 39, 49] = np.nan
    options = {"axis": (2, 1), "boundary": boundary}
    with pytest.raises(ValueError, match="must not contain NaN"):
        function(put(image), [0.0], **options)
    options |= {"nan": "omit", "range": (-2, 2)}
    if boundary == "half-open" and function is ecc.minkowski_curves:
        with pytest.raises(BackendError, match="copy the arrays to the host"):
            function(put(image), 9, mask=put(mask.T), **options)
        return
    assert_same(function, image, 9, put=put, mask=mask.T, **options)
    # There are fewer copies of bins.
    assert_same(function, image, 5000, put=put, mask=mask.T, **options)
    # Bins are in global memory.
    assert_same(function, image, 20_000, put=put, mask=mask.T, **options)


@PUT
def test_no_points(put):
    assert_same(ecc.minkowski_curves, np.zeros((0, 4), np.float32), np.array([0.0, 1]), put=put)


@PUT
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64"])
@pytest.mark.parametrize(
    ("shape", "connectivity", "estimator"),
    [row for row in ESTIMATED if row.values[0] in [(300,), (90, 130), (20, 33, 65)]],
)
def test_regions(put, dtype, shape, connectivity, estimator):
    image = RNG.normal(size=shape).astype(np.float32)
    labels = RNG.integers(0, 2, shape).astype(dtype)
    for axis, length in enumerate(shape):
        bands = (np.arange(length) // 9 % 3).astype(dtype)
        labels = labels * np.expand_dims(bands, list(range(1, len(shape) - axis)))
    options = {"connectivity": connectivity, "estimator": estimator}
    options |= {"range": (-2, 2), "superlevel": connectivity == 1}
    assert_same(ecc.region_minkowski, (image, labels), 30, put=put, **options)


@PUT
@pytest.mark.parametrize("shape", [(300,), (90, 130), (20, 33, 65), (200, 70, 60)])
@pytest.mark.parametrize("connectivity", [1, None])
@pytest.mark.parametrize("superlevel", [(False, True), (True, False)])
def test_surfaces(put, shape, connectivity, superlevel):
    first = RNG.integers(0, 100, shape).astype(np.uint8)
    second = RNG.normal(size=shape).astype(np.float32)
    options = {"connectivity": connectivity, "superlevel": superlevel, "range_second": (-2, 2)}
    assert_same(ecc.euler_surface, (first, second), 64, 64, put=put, **options)
    assert_same(ecc.euler_surface, (first, second), 300, 50, put=put, **options)


@PUT
def test_masks_and_nan_of_surfaces(put):
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


@PUT
@pytest.mark.parametrize("dtype", ["u1", "i8", "f2", "f4", "f8", "?"])
@pytest.mark.parametrize("superlevel", [False, True])
def test_masks_and_regions_of_half_open_images_are_windows(put, dtype, superlevel):
    rng = np.random.default_rng(2)
    image = rng.integers(0, 9, (12, 20, 24))
    image = image > 4 if dtype == "?" else image.astype(dtype)
    mask = rng.random(image.shape) < 0.6
    labels = rng.integers(0, 4, image.shape)
    options = {"boundary": "half-open", "superlevel": superlevel, "put": put}
    at = np.arange(-1.0, 10)
    assert_same(ecc.euler_curve, image, at, mask=mask, **options)
    assert_same(ecc.euler_curve, image, "exact", mask=mask, **options)
    assert_same(ecc.region_curves, (image, labels), at, **options)
