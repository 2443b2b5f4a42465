"""Dask arrays of CuPy chunks are computed on their device, and stay there until asked for."""

import csv

import numpy as np
import pytest

import ecc_core as ecc
from ecc_core.cli import main

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")

LEVELS = np.arange(0, 256, 5)


@pytest.fixture
def image() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (40, 50, 60), dtype=np.uint8)


def on_device(array: np.ndarray, chunks: tuple[int, ...] = (17, 25, 32)) -> object:
    meta = cupy.empty((0,) * array.ndim, array.dtype)
    return da.from_array(array, chunks=chunks).map_blocks(cupy.asarray, meta=meta)


@pytest.mark.parametrize("connectivity", [1, 3])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_curves(image, connectivity, dtype):
    image = image.astype(dtype)
    mask = image > 20
    options = {"connectivity": connectivity}
    values = ecc.euler_curve(on_device(image), LEVELS, mask=on_device(mask), **options).values
    found = values.compute()
    assert isinstance(found, cupy.ndarray)
    expected = ecc.euler_curve(image, LEVELS, mask=mask, **options).values
    np.testing.assert_array_equal(found.get(), expected)


def test_regions(image):
    labels = np.indices(image.shape).sum(axis=0).astype(np.int32) // 30
    ids, _, values = ecc.region_curves(on_device(image), on_device(labels), LEVELS)
    expected = ecc.region_curves(image, labels, LEVELS)
    np.testing.assert_array_equal(ids.compute().get(), expected.labels)
    np.testing.assert_array_equal(values.compute().get(), expected.values)


def test_coefficients(image):
    found = ecc.euler_coefficients(on_device(image)).compute()
    np.testing.assert_array_equal(found.get(), ecc.euler_coefficients(image))


def test_stack(image, tmp_path):
    np.save(tmp_path / "a.npy", image)
    out = tmp_path / "a.csv"
    means = ["--device", "cuda", "--max-memory", "1M"]
    assert main(["stack", str(tmp_path / "a.npy"), "--out", str(out), *means]) == 0
    with out.open() as file:
        values = [int(row["euler_number"]) for row in csv.DictReader(file)]
    assert values == ecc.euler_curve(image, 256, range=(0, 255)).values.tolist()
