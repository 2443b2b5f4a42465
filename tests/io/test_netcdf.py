"""NetCDF 3 and 4, as xarray reads what it wrote."""

import subprocess
import sys

import h5py
import numpy as np
import pytest
import xarray
from io_helpers import assert_refused, noise

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.io import open_image

ENGINES = {"h5netcdf": "NETCDF4", "scipy": "NETCDF3_64BIT"}
IMAGE = noise(4, 5, 6, dtype="i2").astype("f4") / 100


def write(path, engine, image=IMAGE, encoding=None, **attributes):
    """Write a variable `a` of time, lat and lon; latitudes are from north to south."""
    coordinates = {
        "time": ("time", 6.0 * np.arange(4), {"units": "hours since 2020-01-01"}),
        "lat": ("lat", 50 - 0.25 * np.arange(5), {"units": "degrees_north"}),
        "lon": ("lon", 7 + 0.5 * np.arange(6), {"units": "degrees_east"}),
    }
    data = xarray.Dataset({"a": (("time", "lat", "lon"), image, attributes)}, coordinates)
    data.to_netcdf(path, engine=engine, format=ENGINES[engine], encoding={"a": encoding or {}})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "encoding",
    [
        {},
        {"dtype": "f8"},
        {"dtype": "i2", "scale_factor": -0.01, "_FillValue": -32768},
        {"dtype": "i2", "scale_factor": 0.02, "add_offset": 300.0, "_FillValue": -1},
        {"_FillValue": -9999.0},
    ],
)
def test_values_are_those_of_xarray(tmp_path, engine, encoding):
    """Scaled, and NaN where values are missing; axes and steps are those of coordinates."""
    path = tmp_path / "a.nc"
    image = IMAGE.copy()
    if "_FillValue" in encoding:
        image[1, 2, 3] = np.nan
    write(path, engine, image, encoding)
    with xarray.open_dataset(path, engine=engine, decode_times=False) as reference:
        expected = reference["a"].values
        opened = open_image(path / "a")
        assert (opened.axes, opened.dtype.newbyteorder("=")) == ("TYX", expected.dtype)
        np.testing.assert_array_equal(np.ma.filled(opened.read(), np.nan), expected)
        box = (slice(1, 3), slice(2, 4), slice(0, 5))
        np.testing.assert_array_equal(opened[box], expected[box])
    assert (opened.spacing, opened.unit) == ({"Y": 0.25, "X": 0.5}, "degree")
    time = opened.description.axes[0]
    assert (time.name, time.step, time.unit) == ("time", 6.0, "hour")
    np.testing.assert_array_equal(opened.affine.steps["Y"], [0, -0.25, 0])
    np.testing.assert_array_equal(opened.affine.origin, [7, 50, 0])
    if "_FillValue" in encoding:
        assert opened.missing.name.startswith("missing values (_FillValue")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_only_variable_need_not_be_named(tmp_path, engine):
    """Coordinates and bounds are no images."""
    path = tmp_path / "a.nc"
    bounds = xarray.DataArray(np.zeros((6, 2)), dims=("lon", "nv"))
    lon = xarray.DataArray(np.arange(6.0), dims="lon", attrs={"bounds": "lon_bnds"})
    data = xarray.Dataset({"a": (("lat", "lon"), IMAGE[0]), "lon_bnds": bounds}, {"lon": lon})
    data.to_netcdf(path, engine=engine, format=ENGINES[engine])
    opened = open_image(path)
    assert (opened.axes, opened.spacing) == ("YX", {"X": 1.0})
    assert not any("evenly" in note for note in opened.notes)
    np.testing.assert_array_equal(opened.read(), IMAGE[0])
    data["b"] = data["a"] + 1
    data.to_netcdf(tmp_path / "b.nc", engine=engine, format=ENGINES[engine])
    assert_refused(tmp_path / "b.nc", "variables: a, b")
    assert_refused(tmp_path / "b.nc" / "c", "has no variable c; variables: a, b")


@pytest.mark.parametrize(
    ("attributes", "names", "axes"),
    [
        ({"y": {"axis": "X"}, "x": {"axis": "Y"}}, "yx", "YX"),
        ({"p": {"positive": "down"}, "q": {"units": "degrees_north"}}, "pq", "ZY"),
        ({"j": {"standard_name": "projection_y_coordinate"}, "i": {"axis": "X"}}, "ji", "YX"),
        ({"s": {"units": "days since 1970-01-01"}}, "spq", "TYX"),
    ],
)
def test_axes_by_their_coordinates(tmp_path, attributes, names, axes):
    """Axes go by CF's axis, standard_name, units and positive, rather than by their names."""
    path = tmp_path / "a.nc"
    shape = range(3, 3 + len(names))
    image = noise(*shape, dtype="i2")
    coordinates = {n: (n, np.arange(image.shape[names.index(n)]), a) for n, a in attributes.items()}
    data = xarray.Dataset({"a": (tuple(names), image)}, coordinates)
    data.to_netcdf(path, engine="h5netcdf")
    opened = open_image(path / "a")
    assert opened.axes == axes
    expected = image.T if attributes.get("y") else image
    np.testing.assert_array_equal(opened.read(), expected)


def test_uneven_coordinates_are_said(tmp_path):
    path = tmp_path / "a.nc"
    places = {"y": ("y", [0.0, 1, 3, 7, 9]), "x": ("x", np.arange(6) * 0.1)}
    xarray.Dataset({"a": (("y", "x"), IMAGE[0])}, places).to_netcdf(path, engine="h5netcdf")
    opened = open_image(path)
    assert opened.spacing == pytest.approx({"X": 0.1})
    assert any("not evenly spaced" in note for note in opened.notes)


@pytest.mark.parametrize("engine", ENGINES)
def test_commands(tmp_path, engine):
    """Commands read parts of a file, and a mask in the same format."""
    path = tmp_path / "a.nc"
    out = tmp_path / "o.csv"
    write(path, engine)
    mask = tmp_path / "m.nc"
    write(mask, engine, (IMAGE > 0).astype("i2"))
    command = ["stack", str(path / "a"), "--thresholds", "0,100", "--out", str(out)]
    assert main([*command, "--mask", str(mask / "a")]) == 0
    found = [int(line.rsplit(",", 1)[1]) for line in out.read_text().split()[1:]]
    expected = ecc.euler_curve(IMAGE, [0, 100], mask=IMAGE > 0, axis=(1, 2)).values
    assert found == expected.ravel().tolist()


def test_values_in_other_files(tmp_path):
    path = tmp_path / "a.nc"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", (2, 3), "u1", external=[("/etc/passwd", 0, 6)])
    assert_refused(path, "variables: none")


@pytest.mark.parametrize(
    "content", [b"", b"CDF\1", b"CDF\5" + bytes(99), b"\x89HDF\r\n", b"x" * 99]
)
def test_other_files(tmp_path, content):
    path = tmp_path / "a.nc"
    path.write_bytes(content)
    assert_refused(path)


@pytest.mark.parametrize("engine", ["scipy", "h5netcdf"])
def test_what_is_not_installed_is_named(tmp_path, engine):
    """The message of `file.nc/variable` names it, too."""
    path = tmp_path / "a.nc"
    write(path, engine)
    library = {"scipy": "scipy", "h5netcdf": "h5py"}[engine]
    code = f"import sys; sys.modules[{library!r}] = None; from ecc_core.cli import main; "
    code += f"sys.exit(main(['info', {str(path / 'a')!r}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert ".[netcdf]" in done.stderr
