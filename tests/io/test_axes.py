"""Axes have names and an order, and arrays in files have names, too."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import tifffile
import zarr
from io_helpers import assert_reads, assert_refused, noise, write_hdf5, write_ome_zarr, write_zarr

from ecc_core._io.stored import named_axes
from ecc_core.io import open_image, read_file, read_image


@pytest.mark.parametrize(
    ("names", "axes"),
    [
        (["c", "y", "x"], "CYX"),
        (["Time", "CHANNEL", "z", "y", "x"], "TCZYX"),
        (["x", "y", "z"], "XYZ"),
        (["row", "column", "band"], "YXC"),
        (["y", "x", "rgb"], "YXS"),
        (["time", "lat", "lon"], "TYX"),
        ([None, None, None], "ZYX"),
        (["a", "b", "c", "d"], "ZYCX"),
        (["layer", "y", "x"], "?YX"),
        ([None, None, None, None], "?ZYX"),
        ([], ""),
    ],
)
def test_letters_of_names(names, axes):
    assert named_axes(names) == axes


class TestOrder:
    """Axes are in the order T, C, Z, Y, X, whatever their order in the file."""

    @pytest.mark.parametrize("suffix", [".zarr", ".h5"])
    @pytest.mark.parametrize("axes", ["xyz", "yxc", "zcyxt"])
    def test_named_axes(self, tmp_path, suffix, axes):
        image = noise(*(5, 4, 3, 6, 2)[: len(axes)])
        path = tmp_path / f"a{suffix}"
        if suffix == ".zarr":
            write_ome_zarr(path, [image], axes)
        else:
            write_hdf5(path, image, axes, chunks=(2,) * image.ndim)
        expected = np.einsum(f"{axes}->{''.join(a for a in 'tczyx' if a in axes)}", image)
        opened = open_image(path)
        assert (opened.axes, opened.shape) == (
            "".join(a for a in "TCZYX" if a.lower() in axes),
            expected.shape,
        )
        np.testing.assert_array_equal(opened.read(), expected)
        np.testing.assert_array_equal(read_file(path).values, expected)
        box = (1, *(slice(1, n) for n in expected.shape[1:-1]), 0)
        np.testing.assert_array_equal(opened[box], expected[box])

    def test_files_of_chunks(self, tmp_path):
        """Each part is stamped by its own file."""
        image = noise(5, 4, 3)
        opened = open_image(write_ome_zarr(tmp_path / "a.zarr", [image], "xyz", chunk=2))
        assert opened.chunks == (2, 2, 2)
        chunks = opened._chunks_of((slice(2, 3), slice(0, 2), slice(4, 5)))
        assert [Path(opened.file_of(chunk)).name for chunk in chunks] == ["2.0.1"]

    def test_imagej_puts_slices_before_channels(self, tmp_path):
        image = noise(2, 3, 4, 6, 5)
        tifffile.imwrite(tmp_path / "a.tif", image, imagej=True, metadata={"axes": "TZCYX"})
        opened = open_image(tmp_path / "a.tif")
        assert opened.axes == "TCZYX"
        np.testing.assert_array_equal(opened.read(), image.swapaxes(1, 2))
        box = (1, slice(1, 3), 0, slice(0, 6), slice(1, 4))
        np.testing.assert_array_equal(opened[box], image[1, 0, 1:3, :, 1:4])
        assert opened.chunks == (1, 1, 1, 6, 5)

    @pytest.mark.parametrize(
        "index", [np.s_[1], np.s_[-1, 2:], np.s_[:, ::2, -1], np.s_[0, ::-1, 4:1:-2], np.s_[3:1]]
    )
    def test_indices_are_those_of_numpy(self, tmp_path, index):
        image = noise(3, 4, 5)
        write_ome_zarr(tmp_path / "a.zarr", [image.transpose(2, 1, 0)], "xyz")
        np.testing.assert_array_equal(open_image(tmp_path / "a.zarr")[index], image[index])

    def test_axes_that_are_given(self, tmp_path):
        """As an array of nibabel is saved."""
        image = noise(5, 4, 3)
        np.save(tmp_path / "a.npy", image)
        opened = open_image(tmp_path / "a.npy", axes="xyz")
        assert (opened.axes, opened.chunks) == ("ZYX", (3, 1, 1))
        np.testing.assert_array_equal(read_image(tmp_path / "a.npy", axes="xyz"), image.T)

    def test_rows_of_arrays_in_fortran_order(self, tmp_path):
        image = np.asfortranarray(noise(5, 4, 3))
        np.save(tmp_path / "a.npy", image)
        assert open_image(tmp_path / "a.npy").chunks == (5, 1, 1)
        np.testing.assert_array_equal(read_image(tmp_path / "a.npy"), image)


class TestZarr:
    @pytest.fixture(params=[2, 3])
    def path(self, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
        path, image = tmp_path / "a.zarr", noise(3, 8, 9)
        names = ["c", "y", "x"]
        named = {3: {"dimension_names": names}, 2: {"attributes": {"_ARRAY_DIMENSIONS": names}}}
        zarr.create_array(path, data=image, zarr_format=request.param, **named[request.param])
        return path

    def test_axes(self, path):
        assert open_image(path).axes == "CYX"
        assert_reads(path, noise(3, 8, 9)[1], channel=1)
        assert_refused(path, "has 3 channels", "choose one with `channel`")

    def test_ome_zarr_has_axes_of_its_own(self, tmp_path):
        path = tmp_path / "a.zarr"
        write_ome_zarr(path, [noise(3, 8, 9)], "zyx", zarr_format=3)
        names = {"dimension_names": ["c", "y", "x"]}
        zarr.create_array(path, name="0", data=noise(3, 8, 9), overwrite=True, **names)
        assert open_image(path).axes == "ZYX"

    @pytest.mark.parametrize("escape", ["../secret", "/secret", "0/../../secret"])
    def test_paths_stay_inside(self, tmp_path, escape):
        write_zarr(tmp_path / "secret", noise(4, 5))
        path = write_ome_zarr(tmp_path / "a.zarr", [noise(4, 5)], "YX", zarr_format=3)
        group = zarr.open_group(path)
        described = group.attrs["ome"]
        described["multiscales"][0]["datasets"][0]["path"] = escape
        group.attrs["ome"] = described
        assert_refused(path, f"the path of level 0 leaves the image: {escape}")


class TestHdf5:
    def test_tags_of_ilastik(self, tmp_path):
        image = noise(8, 9, 3)
        write_hdf5(tmp_path / "a.h5", image)
        with h5py.File(tmp_path / "a.h5", "a") as file:
            keys = [{"key": key, "typeFlags": 2} for key in "yxc"]
            file["raw"].attrs["axistags"] = json.dumps({"axes": keys})
        assert_reads(tmp_path / "a.h5", image[..., 2], channel=2)

    def test_links_within_a_file(self, tmp_path):
        image = noise(4, 5)
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["g/d"] = image
            file["one"] = h5py.SoftLink("/g/d")
            file["group"] = h5py.SoftLink("g")
            file["g/two"] = h5py.SoftLink("d")
            file["three"] = h5py.SoftLink("/group/two")
            file["hard"] = file["g/d"]
        for name in ("one", "group/d", "g/two", "three", "group/two", "hard", "g/d"):
            with h5py.File(tmp_path / "a.h5") as file:
                np.testing.assert_array_equal(file[name][()], image)
            assert_reads(tmp_path / "a.h5" / name, image)
        assert_refused(tmp_path / "a.h5" / "none", "has no dataset none; datasets: g/d")

    def test_one_of_several_datasets(self, tmp_path):
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["g/one"], file["two"] = noise(4, 5), "text"
        words = "must hold one dataset or one be named; datasets: g/one, two"
        assert_refused(tmp_path / "a.h5", words)
        assert_refused(tmp_path / "a.h5" / "two", "the dataset two is a single value")

    def test_links_that_lead_elsewhere(self, tmp_path):
        write_hdf5(tmp_path / "other.h5", noise(4, 5))
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["g/d"] = noise(4, 5)
            file["loop"] = h5py.SoftLink("/loop")
            file["nowhere"] = h5py.SoftLink("/nothing")
            file["below"] = h5py.SoftLink("/g/d/below")
            file["outside"] = h5py.ExternalLink("other.h5", "raw")
            file["all"] = h5py.ExternalLink("other.h5", "/")
            file["to_outside"] = h5py.SoftLink("/outside")
            file["in_all"] = h5py.SoftLink("/all/raw")
        for name in ("loop", "nowhere", "below", "outside", "all/raw", "to_outside", "in_all"):
            assert_refused(tmp_path / "a.h5" / name, f"has no dataset {name}")
