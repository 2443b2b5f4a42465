"""Dask arrays of CuPy chunks are computed on their device, and stay there until asked for."""

import csv

import numpy as np
import pytest

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.testing import assert_arrays_equal

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")

LEVELS = np.arange(0, 256, 5)


@pytest.fixture
def image() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (40, 50, 60), dtype=np.uint8)


def on_device(array: np.ndarray) -> object:
    lazy = da.from_array(array, chunks=(17, 25, 32)[: array.ndim])
    return lazy.map_blocks(cupy.asarray, meta=cupy.empty((0,) * array.ndim, array.dtype))


@pytest.mark.parametrize("connectivity", [1, 3])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_curves(image, connectivity, dtype):
    image = image.astype(dtype)
    mask = image > 20
    options = {"connectivity": connectivity}
    found = ecc.euler_curve(on_device(image), LEVELS, mask=on_device(mask), **options).values
    expected = ecc.euler_curve(image, LEVELS, mask=mask, **options).values
    assert_arrays_equal(found.compute(), expected, like=cupy.empty(0))


def test_regions(image):
    labels = np.indices(image.shape).sum(axis=0).astype(np.int32) // 30
    found = ecc.region_curves(on_device(image), on_device(labels), LEVELS)
    expected = ecc.region_curves(image, labels, LEVELS)
    assert_arrays_equal(found.labels.compute(), expected.labels, like=cupy.empty(0))
    assert_arrays_equal(found.values.compute(), expected.values, like=cupy.empty(0))


def test_coefficients_and_surfaces(image):
    found = ecc.euler_coefficients(on_device(image)).compute()
    assert_arrays_equal(found, ecc.euler_coefficients(image), like=cupy.empty(0))
    pair = image[:2].astype(int)
    found = ecc.euler_surface(*map(on_device, pair), [9, 40, 70], [20, 50]).values
    expected = ecc.euler_surface(*pair, [9, 40, 70], [20, 50]).values
    assert_arrays_equal(found.compute(), expected, like=cupy.empty(0))


@pytest.mark.parametrize("estimator", ["exact", "crofton-4"])
@pytest.mark.parametrize("boundary", ["closed", "periodic", "half-open"])
def test_functionals(image, estimator, boundary):
    """The functionals are on the host: they are computed from counts."""
    options = {"estimator": estimator, "boundary": boundary}
    plane = image[0].astype(int)
    labels = image[1].astype(int) // 30
    found = ecc.minkowski_curves(on_device(plane), LEVELS, **options).values.compute()
    np.testing.assert_array_equal(found, ecc.minkowski_curves(plane, LEVELS, **options).values)
    if boundary == "half-open":  # Windows are measured on the host.
        return
    found = ecc.region_minkowski(on_device(plane), on_device(labels), LEVELS, **options)
    expected = ecc.region_minkowski(plane, labels, LEVELS, **options)
    np.testing.assert_array_equal(found.values.compute(), expected.values)
    np.testing.assert_array_equal(found.labels.compute(), expected.labels)


def test_stack(image, tmp_path):
    np.save(tmp_path / "a.npy", image)
    out = tmp_path / "a.csv"
    means = ["--device", "cuda", "--max-memory", "1M"]
    assert main(["stack", str(tmp_path / "a.npy"), "--out", str(out), *means]) == 0
    with out.open() as file:
        values = [int(row["euler_number"]) for row in csv.DictReader(file)]
    assert values == ecc.euler_curve(image, 256, range=(0, 255)).values.tolist()
