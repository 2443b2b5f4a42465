"""Attributes of the CF conventions in Zarr and HDF5: values are those of xarray."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
import zarr
from io_helpers import assert_refused, noise

from ecc_core.io import open_image

ENCODINGS: dict[str, dict[str, Any]] = {
    "scale and fill": {"dtype": "i2", "scale_factor": -0.01, "_FillValue": -32768},
    "single precision": {
        "dtype": "i2",
        "scale_factor": np.float32(0.5),
        "add_offset": np.float32(3),
        "_FillValue": -1,
    },
    "wide integers": {"dtype": "i4", "scale_factor": 0.5, "add_offset": 3.0, "_FillValue": -1},
    "offset": {"dtype": "u1", "add_offset": -7, "_FillValue": 255},
    "floats": {"dtype": "f4", "_FillValue": np.float32(1e20)},
    "unsigned": {
        "dtype": "i1",
        "_Unsigned": "true",
        "scale_factor": 0.5,
        "_FillValue": np.int8(-1),
    },
}
WRITERS = ["zarr 2", "zarr 3", "hdf5"]


def written(folder: Path, image: Any, kind: str, **encoding: Any) -> tuple[Path, np.ndarray]:
    """The path of an array, and what xarray reads."""
    dataset = xarray.Dataset({"a": image})
    if kind == "hdf5":
        path = folder / "a.h5"
        dataset.to_netcdf(path, engine="h5netcdf", encoding={"a": encoding})
        with xarray.open_dataset(path, engine="h5netcdf") as read:
            return path / "a", read["a"].values
    path = folder / "a.zarr"
    version: Any = int(kind[-1])
    dataset.to_zarr(path, zarr_format=version, consolidated=False, encoding={"a": encoding})
    with xarray.open_zarr(path, consolidated=False) as read:
        return path / "a", read["a"].values


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
def test_decoded_as_xarray_does(tmp_path, kind, encoding):
    values = np.arange(20, dtype=np.float64).reshape(4, 5)
    if "_FillValue" in encoding:
        values[1, 2] = np.nan
    path, expected = written(tmp_path, (("y", "x"), values), kind, **encoding)
    opened = open_image(path)
    read = opened.read()
    assert (opened.axes, opened.dtype, read.dtype) == ("YX", expected.dtype, expected.dtype)
    np.testing.assert_array_equal(np.ma.filled(read, np.nan), expected)
    np.testing.assert_array_equal(opened[1:3, 2:4], expected[1:3, 2:4])
    if "_FillValue" in encoding:
        assert np.ma.getmaskarray(read).nonzero() == (1, 2)
        assert len(opened.notes) == 1


@pytest.mark.parametrize("kind", WRITERS)
def test_integers_stay_integers(tmp_path, kind):
    """Where nothing is scaled, a mask tells what is missing, as in netCDF4; xarray makes NaN."""
    values = noise(4, 5, dtype="i2")
    attributes = {"_FillValue": values[1, 2]}
    path, expected = written(tmp_path, (("y", "x"), values, attributes), kind)
    opened = open_image(path)
    assert opened.dtype == np.int16
    read = opened.read()
    np.testing.assert_array_equal(np.ma.getmaskarray(read), np.isnan(expected))
    np.testing.assert_array_equal(read.data, values)


@pytest.mark.parametrize("kind", WRITERS)
def test_time_is_no_axis_of_the_image(tmp_path, kind):
    image = (("time", "lat", "lon"), noise(3, 4, 5))
    path, _ = written(tmp_path, image, kind)
    opened = open_image(path)
    assert opened.axes == "TYX"
    assert [axis.name for axis in opened.description.axes] == ["time", "lat", "lon"]


def test_dimension_scales_are_no_images(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["t"], file["raw"] = np.arange(3), noise(3, 4, 5)
        file["t"].make_scale("time")
        file["raw"].dims[0].attach_scale(file["t"])
    opened = open_image(tmp_path / "a.h5")
    assert (opened.axes, opened.shape) == ("TYX", (3, 4, 5))


def test_a_fill_value_of_0_is_said(tmp_path):
    """Most programs write it without a meaning, and xarray takes it for missing values."""
    array = zarr.create_array(
        tmp_path / "a.zarr", shape=(4, 5), dtype="u1", zarr_format=2, fill_value=0
    )
    array.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    opened = open_image(tmp_path / "a.zarr")
    assert opened.missing is None
    assert opened.notes == ("its fill value 0 is not taken for missing values, as xarray does",)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"scale_factor": [1, 2]}, "its scale must be one number"),
        ({"_FillValue": "none"}, "its missing values must be numbers"),
    ],
)
def test_bad_attributes(tmp_path, attributes, words):
    array = zarr.create_array(tmp_path / "a.zarr", shape=(4, 5), dtype="u1")
    array.attrs.update(attributes)
    assert_refused(tmp_path / "a.zarr", words)
