"""Axes are in the order T, C, Z, Y, X, whatever their order in the file."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import tifffile
from io_helpers import noise, write_ome_zarr

from ecc_core.io import open_image, read_file, read_image


def write_hdf5(path: Path, image: np.ndarray, axes: str) -> None:
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("raw", data=image, chunks=(2,) * image.ndim)
        for dim, letter in zip(dataset.dims, axes, strict=True):
            dim.label = letter


class TestOrder:
    @pytest.mark.parametrize("suffix", [".zarr", ".h5"])
    @pytest.mark.parametrize("axes", ["xyz", "yxc", "zcyxt"])
    def test_named_axes(self, tmp_path, suffix, axes):
        image = noise(*(5, 4, 3, 6, 2)[: len(axes)])
        path = tmp_path / f"a{suffix}"
        if suffix == ".zarr":
            write_ome_zarr(path, [image], axes)
        else:
            write_hdf5(path, image, axes)
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
        write_ome_zarr(tmp_path / "a.zarr", [image], "xyz")
        opened = open_image(tmp_path / "a.zarr")
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
