"""`ecc stack`: what can be read."""

import h5py
import numpy as np
import pytest
import tifffile
from io_helpers import write_ome_zarr, write_zarr
from stack_helpers import LEVELS, assert_curve, noise

import ecc_core as ecc
from ecc_core._io.stored import View, grown_chunks
from ecc_core.io import open_image


def test_zarr_shards(stack, tmp_path, image):
    path = write_zarr(tmp_path / "a.zarr", image, shards=(8, 8, 8))
    assert_curve(stack(path, "--thresholds", LEVELS), image)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_ome_zarr(stack, tmp_path, image, zarr_format):
    levels = [image, image[::2, ::2, ::2]]
    path = write_ome_zarr(tmp_path / "a.zarr", levels, "ZYX", zarr_format=zarr_format)
    assert_curve(stack(path, "--thresholds", LEVELS), image)
    assert_curve(stack(path, "--thresholds", LEVELS, "--level", 1), image[::2, ::2, ::2])


def test_signal(stack, tmp_path):
    image = noise(50)
    np.save(tmp_path / "a.npy", image)
    assert_curve(stack(tmp_path / "a.npy", "--thresholds", LEVELS), image)


def test_a_transposed_image(stack, tmp_path, image):
    axes = np.ascontiguousarray(image.transpose(1, 2, 0))
    path = write_ome_zarr(tmp_path / "a.zarr", [axes], "YXZ")
    table = stack(path, "--thresholds", LEVELS, "--roi", "3:,2:18,:")
    assert_curve(table, image[3:, 2:18])


def test_ome_tiff(stack, tmp_path):
    """Pages in any order of the axes; channels are batch axes."""
    image = noise(3, 2, 10, 11)
    tifffile.imwrite(tmp_path / "a.ome.tif", image, ome=True, metadata={"axes": "ZCYX"})
    table = stack(tmp_path / "a.ome.tif", "--thresholds", LEVELS)
    expected = ecc.euler_curve(image, np.arange(9), axis=(0, 2, 3)).values
    assert table["euler_number"] == expected.ravel().tolist()


def test_one_of_several_hdf5_datasets(stack, refused, tmp_path, image):
    path = tmp_path / "a.hdf5"
    with h5py.File(path, "w") as file:
        file["raw/data"] = image
        file["raw/other"] = 8 - image
    assert "must hold one dataset or one be named; datasets: raw/data, raw/other" in refused(path)
    message = refused(path / "raw" / "none")
    words = "has no dataset raw/none; datasets: raw/data, raw/other"
    assert f"{path / 'raw' / 'none'}: {words}" in message
    assert_curve(stack(path / "raw" / "other", "--thresholds", LEVELS), 8 - image)


def test_blocks_of_whole_shards_are_read(tmp_path, image):
    path = write_zarr(tmp_path / "a.zarr", image, shards=(8, 8, 8))
    assert open_image(path).chunks == (8, 8, 8)
    blocks = View(open_image(path), (0, 1, 2), (3, 0, 0), (6, 20, 9), {}).chunks((8, 8, 8))
    assert blocks == ((5, 1), (8, 8, 4), (8, 1))  # they end where shards do


def test_pages_are_read_several_at_once(tmp_path, image):
    tifffile.imwrite(tmp_path / "a.tif", image)
    volume = open_image(tmp_path / "a.tif")
    assert volume.chunks == (1, 20, 17)
    assert grown_chunks(volume.chunks, image.shape, (0, 1, 2), 1, limit=1500) == (4, 20, 17)
