"""Sizes of components and persistent regions on CUDA devices equal those on NumPy arrays."""

import numpy as np
import pytest
from filtrations import with_sides
from gpu_helpers import PUT, assert_same, cupy, to_torch
from scipy.ndimage import gaussian_filter

import ecc_core as ecc

RNG = np.random.default_rng(17)
SHAPES = [(41,), (1,), (13, 17), (1, 9), (6, 1), (7, 8, 9), (1, 6, 5), (33, 34, 70)]
FEW = np.array([-1.0, 0.5, 1.0, 77.0, 150.0, 300.0])


def sides(ndim):
    return [
        {"connectivity": connectivity, "superlevel": superlevel}
        for connectivity in {1, ndim}
        for superlevel in (False, True)
    ]


@pytest.mark.parametrize(("shape", "options"), with_sides(SHAPES))
@pytest.mark.parametrize("levels", [1, 2, 5, 256])
def test_curves_of_any_shape(shape, options, levels):
    image = RNG.integers(0, levels, shape, np.uint8)
    assert_same(ecc.component_curves, image, FEW, **options)
    mask = RNG.random(shape) < 0.8
    mask.flat[0] = True  # Without a point there is no range.
    assert_same(ecc.component_curves, image, 9, mask=mask, **options)


@pytest.mark.parametrize(
    "thresholds", [FEW, 16, np.linspace(0, 200, 5000)], ids=["given", "16", "5000"]
)
@PUT
@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "i4", "i8", "f2", "f4", "f8"])
def test_curves_of_any_dtype(dtype, put, thresholds):
    if put is to_torch and dtype == "u2":
        pytest.skip("torch has few functions of uint16")
    image = RNG.integers(0, 200, (9, 20, 35)).astype(dtype)
    assert_same(ecc.component_curves, image, thresholds, put=put, superlevel=True)


@pytest.mark.parametrize("ends", [["inlet"], ["outlet"], ["inlet", "outlet"]], ids=str)
def test_curves_between_ends_and_of_batches(ends):
    images = RNG.random((3, 12, 15, 40), np.float32)
    images[RNG.random(images.shape) < 0.05] = np.nan
    mask = RNG.random(images.shape) < 0.9
    mask[..., :4] = False
    options = {"axis": (1, 2, 3), "nan": "omit"}
    assert_same(ecc.component_curves, images, np.linspace(0, 1, 30), mask=mask, **options)
    given = {name: RNG.random(images.shape) < 0.02 for name in ends}
    there = {name: cupy.asarray(end) for name, end in given.items()}
    known = ecc.component_curves(images, 20, range=(0, 1), **given, **options)
    found = ecc.component_curves(cupy.asarray(images), 20, range=(0, 1), **there, **options)
    np.testing.assert_array_equal(found.values.get(), known.values)
    with pytest.raises(ValueError, match="NaN"):
        ecc.component_curves(cupy.asarray(images), 20, range=(0, 1), axis=(1, 2, 3))
    empty = ecc.component_curves(cupy.zeros((0, 4)), [1.0])
    np.testing.assert_array_equal(empty.values.get(), np.zeros((4, 1)))


def test_curves_of_a_large_smooth_volume():
    image = gaussian_filter(RNG.random((96, 130, 200)), 3).astype(np.float32)
    assert_same(ecc.component_curves, image, 256, connectivity=1)


@PUT
@pytest.mark.parametrize(("shape", "options"), with_sides(SHAPES))
@pytest.mark.parametrize("dtype", ["u1", "f4", "i8"])
def test_regions_of_any_shape(put, shape, options, dtype):
    image = RNG.integers(0, 60, shape).astype(dtype)
    mask = RNG.random(shape) < 0.8
    assert_same(ecc.persistent_regions, image, 9, put=put, **options)
    cut = {"rel_height": 0.4, "threshold": 33}
    assert_same(ecc.persistent_regions, image, 0, mask=mask, put=put, **cut, **options)


@pytest.mark.parametrize("dtype", ["bool", "i1", "u2", "i4", "f2", "f8"])
@pytest.mark.parametrize(
    "options", [{}, {"rel_height": 0.5}, {"threshold": 10}, {"connectivity": 1}], ids=str
)
@pytest.mark.parametrize("superlevel", [False, True])
def test_regions_of_any_dtype(dtype, options, superlevel):
    image = RNG.normal(0, 40, (9, 20, 35)).astype(dtype)
    assert_same(ecc.persistent_regions, image, 1, superlevel=superlevel, **options)


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("height", [None, 0.5])
def test_regions_of_floats_that_are_not_finite(height, superlevel):
    image = RNG.normal(size=(12, 15, 40)).astype(np.float32)
    for value in (np.nan, np.inf, -np.inf, -0.0):
        image[RNG.random(image.shape) < 0.05] = value
    options = {"rel_height": height, "superlevel": superlevel, "nan": "omit"}
    assert_same(ecc.persistent_regions, image, 0.5, **options)
    with pytest.raises(ValueError, match="NaN"):
        ecc.persistent_regions(cupy.asarray(image), 1)


@pytest.mark.parametrize("sigma", [0, 3])
def test_regions_of_a_large_volume(sigma):
    image = gaussian_filter(RNG.random((96, 130, 200)), sigma)
    least = 0.2 * float(np.ptp(image))
    given = image.astype(np.float32)
    assert_same(ecc.persistent_regions, given, least, superlevel=True, rel_height=0.7)


def test_regions_of_no_points():
    found = ecc.persistent_regions(cupy.zeros((0, 4)), 1)
    assert found.labels.shape == (0, 4)
    assert found.births.size == 0
    masked = ecc.persistent_regions(cupy.zeros((3, 4)), 1, mask=cupy.zeros((3, 4), bool))
    assert not masked.labels.any()


PERIODIC = [
    ((9,), "periodic"),
    ((1,), "periodic"),
    ((13, 17), "periodic"),
    ((2, 33), ("periodic", "closed")),
    ((33, 70), ("closed", "periodic")),
    ((9, 20, 70), "periodic"),
    ((9, 20, 70), ("closed", "periodic", "closed")),
    ((2, 20, 2), "periodic"),
    ((1, 6, 5), ("periodic", "periodic", "closed")),
    ((7, 1, 1), ("closed", "periodic", "periodic")),
]


@pytest.mark.parametrize(("levels", "dtype"), [(2, "u1"), (9, "u1"), (60, "f4"), (60, "i8")])
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("cubes", [False, True])
@PUT
@pytest.mark.parametrize(("shape", "boundary"), PERIODIC)
def test_periodic_images(shape, boundary, put, cubes, superlevel, levels, dtype):
    mask = RNG.random(shape) < 0.95
    options = {"connectivity": len(shape) if cubes else 1, "superlevel": superlevel}
    options["boundary"] = boundary
    image = RNG.integers(0, levels, shape).astype(dtype)
    assert_same(ecc.component_curves, image, FEW, mask=mask, put=put, **options)
    least = levels // 6
    assert_same(ecc.persistent_regions, image, least, put=put, **options)
    cut = {"rel_height": 0.4, "threshold": levels // 2, "mask": mask}
    assert_same(ecc.persistent_regions, image, 0, put=put, **cut, **options)


@pytest.mark.parametrize("connectivity", [1, 3])
@pytest.mark.parametrize("boundary", ["periodic", ("closed", "periodic", "periodic")], ids=str)
@pytest.mark.parametrize("sigma", [0, 1, 3, 10])
def test_large_periodic_volumes(sigma, boundary, connectivity):
    """Ways to minima are long, and components wind around all axes."""
    image = gaussian_filter(RNG.random((60, 50, 90)), sigma, mode="wrap").astype(np.float32)
    options = {"connectivity": connectivity, "boundary": boundary}
    assert_same(ecc.component_curves, image, 256, **options)
    least = 0.2 * float(np.ptp(image))
    assert_same(ecc.persistent_regions, image, least, rel_height=0.7, **options)


def test_tubes_that_wind_twice():
    """One that is closed after two turns crosses the side twice in the same direction."""
    image = np.full((3, 5, 8), 9, np.uint8)
    low = image[0]
    high = image[2]
    low[1, :4] = low[1:4, 3] = low[3, 3:] = low[3, :2] = low[1, 5:] = 0
    high[3, 1:6] = high[1:4, 5] = image[1, 3, 1] = image[1, 1, 5] = 0
    options = {"connectivity": 1, "boundary": ("closed", "closed", "periodic")}
    found = ecc.component_curves(cupy.asarray(image), [0], **options)
    assert found.spanning.get()[:, 0].tolist() == [
        1,
        0,
        1,
    ]  # It also reaches the first and the last slice.
    assert_same(ecc.component_curves, image, np.zeros(1), **options)
