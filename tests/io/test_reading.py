"""Images that are read are those that were written; their axes have names and an order."""

import json
from pathlib import Path

import h5py
import imageio.v3 as imageio
import nibabel
import numpy as np
import pytest
import tifffile
import zarr
from io_helpers import (
    assert_channels,
    assert_reads,
    assert_refused,
    noise,
    write_hdf5,
    write_ome_zarr,
    write_picture,
    write_zarr,
)
from PIL import Image
from skimage.color import rgb2gray
from skimage.util import img_as_float

from ecc_core._io import stored
from ecc_core._io.description import named_axes
from ecc_core._io.stored import StoredImage
from ecc_core._partition import Partition
from ecc_core.io import ImageFile, open_image, read_file, read_image, select_channel


class TestReading:
    @pytest.mark.parametrize("image", [noise(7, 5, dtype="u2"), noise(7, 5) > 100])
    def test_png(self, tmp_path, image):
        write_picture(tmp_path / "a.PNG", image)
        assert_reads(tmp_path / "a.PNG", image)

    @pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "i4", "f4", "f8", ">u2"])
    @pytest.mark.parametrize("compression", [None, "zlib"])
    def test_tiff(self, tmp_path, dtype, compression):
        path = tmp_path / "a.tif"
        native = np.dtype(dtype).newbyteorder("=")
        image = noise(9, 8, 7, dtype=native.str).astype(dtype)
        tifffile.imwrite(path, image, compression=compression, photometric="minisblack")
        assert_reads(path, image.astype(native))
        assert read_file(path).axes == "ZYX"

    @pytest.mark.parametrize("shape", [(3,), (1, 9), (4, 5), (2, 3, 4), (2, 3, 4, 5), (0, 5)])
    def test_npy_and_npz(self, tmp_path, shape):
        image = noise(*shape, dtype="f8")
        np.save(tmp_path / "a.npy", image)
        np.savez_compressed(tmp_path / "a.npz", image)
        assert_reads(tmp_path / "a.npy", image)
        assert_reads(tmp_path / "a.npz", image)

    def test_npy_is_mapped_and_cannot_be_written(self, tmp_path):
        np.save(tmp_path / "a.npy", noise(4, 5))
        image = read_image(tmp_path / "a.npy")
        assert isinstance(image, np.memmap)
        assert not image.flags.writeable

    def test_images_beyond_pillows_limit(self, tmp_path, monkeypatch):
        image = noise(40, 50)
        imageio.imwrite(tmp_path / "a.png", image)
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
        assert_reads(tmp_path / "a.png", image)
        assert Image.MAX_IMAGE_PIXELS == 100


class TestParts:
    """Readers that would need memory for a copy of all read small parts."""

    @pytest.fixture
    def read(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """Bytes that are read at once."""
        sizes: list[int] = []
        get = StoredImage.read_box

        def noted(self: StoredImage, index: stored.Box) -> np.ndarray:
            values = get(self, index)
            sizes.append(values.nbytes)
            return values

        monkeypatch.setattr(StoredImage, "read_box", noted)
        monkeypatch.setattr(stored, "LEAST_BYTES_AT_ONCE", 1 << 10)
        return sizes

    @pytest.mark.parametrize("name", ["a.zarr", "sharded.zarr", "a.zarr.zip", "a.h5", "a.nii"])
    def test_a_volume(self, tmp_path, read, name):
        path = tmp_path / name
        image = noise(24, 33, 40)
        if name == "a.h5":
            write_hdf5(path, image, chunks=(8, 8, 8))
        elif name == "a.nii":
            scaled = nibabel.Nifti1Image(image / 3, np.eye(4), dtype="i2")
            nibabel.save(scaled, path)
            image = np.asanyarray(nibabel.load(path).dataobj).T
        else:
            write_zarr(path, image, **({"shards": (24, 40, 40)} if "sharded" in name else {}))
        assert_reads(path, image)
        assert sum(read) == image.nbytes
        assert max(read) <= max(1 << 10, image.nbytes // 128)

    def test_a_channel(self, tmp_path, read):
        image = noise(2, 24, 33, 40)
        write_zarr(tmp_path / "a.zarr", image)
        assert_reads(tmp_path / "a.zarr", image[1], axes="CZYX", channel=1)
        assert max(read) <= 1 << 13  # A chunk holds both channels.

    def test_tiff_needs_no_copy(self, tmp_path, read):
        image = noise(24, 33, 40)
        tifffile.imwrite(tmp_path / "a.tif", image, compression="zlib")
        assert_reads(tmp_path / "a.tif", image)
        assert read == [image.nbytes]


class TestChannels:
    @pytest.mark.parametrize("suffix", [".png", ".tif"])
    @pytest.mark.parametrize("count", [3, 4])
    def test_index_and_name(self, tmp_path, suffix, count):
        path = tmp_path / f"a{suffix}"
        image = noise(7, 5, count)
        imageio.imwrite(path, image, **({"photometric": "rgb"} if suffix == ".tif" else {}))
        assert_channels(path, image, axis=2)
        assert_channels(path, image, axis=2, names="rgba"[:count])
        assert_refused(path, "must be one of 0 to", f"got {count}", channel=count)
        assert_refused(path, "got -1", channel=-1)
        assert_refused(path, "got 'x'", channel="x")

    @pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8"])
    def test_gray_is_scikit_images(self, dtype):
        colours = noise(7, 5, 3, dtype=dtype)
        expected = rgb2gray(img_as_float(colours))
        actual = select_channel(ImageFile(colours, "YXS"), "gray")
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-6 if dtype == "f4" else 1e-14)

    def test_gray_does_not_depend_on_the_part_that_is_read(self):
        colours = noise(101, 133, 3)
        whole = select_channel(ImageFile(colours, "YXS"), "gray")
        alone = np.empty((100, 12), whole.dtype)
        for row, column in np.ndindex(100, 12):
            part = np.s_[row : row + 1, 11 * column : 11 * column + 1]
            alone[row, column] = select_channel(ImageFile(colours[part], "YXS"), "gray")[0, 0]
        np.testing.assert_array_equal(alone, whole[:100, :132:11])

    def test_gray_needs_opaque_colours_and_a_known_white(self):
        with pytest.raises(ValueError, match="uint or float, got int16"):
            select_channel(ImageFile(noise(7, 5, 3, dtype="i2"), "YXS"), "gray")
        colours = noise(7, 5, 4)
        with pytest.raises(ValueError, match="not defined where colours are transparent"):
            select_channel(ImageFile(colours, "YXS"), "gray")
        colours[..., 3] = 255
        gray = select_channel(ImageFile(colours, "YXS"), "gray")
        np.testing.assert_allclose(gray, rgb2gray(colours[..., :3]))

    def test_gray_and_alpha(self, tmp_path):
        image = noise(7, 5, 2)
        Image.fromarray(image).save(tmp_path / "a.png")
        assert_refused(tmp_path / "a.png", "0 to 1, gray, a")
        assert_reads(tmp_path / "a.png", image[..., 0], channel="gray")
        assert_reads(tmp_path / "a.png", image[..., 1], channel="a")

    def test_channels_without_names(self, tmp_path):
        image = noise(4, 3, 7, 5)
        tifffile.imwrite(tmp_path / "a.tif", image, imagej=True, metadata={"axes": "ZCYX"})
        assert_refused(tmp_path / "a.tif", "has 3 channels, axes CZYX", "0 to 2")
        assert_refused(tmp_path / "a.tif", "must be one of 0 to 2, got 'r'", channel="r")
        assert_reads(tmp_path / "a.tif", image[:, 2], channel=2)

    def test_axes_say_what_an_array_means(self, tmp_path):
        image = noise(3, 7, 5)
        np.save(tmp_path / "a.npy", image)
        assert_reads(tmp_path / "a.npy", image)
        assert_reads(tmp_path / "a.npy", image[1], axes="CYX", channel=1)
        assert_reads(tmp_path / "a.npy", image[1], axes="syx", channel="g")
        assert_refused(tmp_path / "a.npy", "`axes` must be one letter per axis", "'YX'", axes="YX")
        assert_refused(tmp_path / "a.npy", "must have one axis of channels", axes="CSX")


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
        order = "".join(axis for axis in "tczyx" if axis in axes)
        expected = np.einsum(f"{axes}->{order}", image)
        opened = open_image(path)
        assert opened.axes == order.upper()
        assert opened.shape == expected.shape
        np.testing.assert_array_equal(opened.read(), expected)
        np.testing.assert_array_equal(read_file(path).values, expected)
        box = (1, *(slice(1, n) for n in expected.shape[1:-1]), 0)
        np.testing.assert_array_equal(opened[box], expected[box])

    def test_files_of_chunks(self, tmp_path):
        """Each part is stamped by its own file."""
        image = noise(5, 4, 3)
        opened = open_image(write_ome_zarr(tmp_path / "a.zarr", [image], "xyz", chunk=2))
        assert opened.chunks == (2, 2, 2)
        stored = Partition.of_chunks(opened.shape, opened.chunks)
        chunks = stored.that_meet((slice(2, 3), slice(0, 2), slice(4, 5)))
        assert [Path(opened.file_of(chunk)).name for chunk in chunks] == ["2.0.1"]

    @pytest.mark.parametrize(
        "index", [np.s_[1], np.s_[-1, 2:], np.s_[:, ::2, -1], np.s_[0, ::-1, 4:1:-2], np.s_[3:1]]
    )
    def test_indices_are_those_of_numpy(self, tmp_path, index):
        image = noise(3, 4, 5)
        write_ome_zarr(tmp_path / "a.zarr", [image.transpose(2, 1, 0)], "xyz")
        np.testing.assert_array_equal(open_image(tmp_path / "a.zarr")[index], image[index])

    def test_axes_that_are_given(self, tmp_path):
        """The axes are those of an array that nibabel has saved."""
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
    @pytest.mark.parametrize(
        ("zarr_format", "named"),
        [
            (2, {"attributes": {"_ARRAY_DIMENSIONS": ["c", "y", "x"]}}),
            (3, {"dimension_names": ["c", "y", "x"]}),
        ],
    )
    def test_axes(self, tmp_path, zarr_format, named):
        path = tmp_path / "a.zarr"
        image = noise(3, 8, 9)
        zarr.create_array(path, data=image, zarr_format=zarr_format, **named)
        assert open_image(path).axes == "CYX"
        assert_reads(path, image[1], channel=1)
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

    @pytest.mark.parametrize(
        "name", ["one", "group/d", "g/two", "three", "group/two", "hard", "g/d"]
    )
    def test_links_within_a_file(self, tmp_path, name):
        image = noise(4, 5)
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["g/d"] = image
            file["one"] = h5py.SoftLink("/g/d")
            file["group"] = h5py.SoftLink("g")
            file["g/two"] = h5py.SoftLink("d")
            file["three"] = h5py.SoftLink("/group/two")
            file["hard"] = file["g/d"]
        with h5py.File(tmp_path / "a.h5") as file:
            np.testing.assert_array_equal(file[name][()], image)
        assert_reads(tmp_path / "a.h5" / name, image)

    def test_datasets_are_listed_without_links(self, tmp_path):
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["g/d"] = noise(4, 5)
            file["one"] = h5py.SoftLink("/g/d")
        assert_refused(tmp_path / "a.h5" / "none", "has no dataset none; datasets: g/d")

    def test_one_of_several_datasets(self, tmp_path):
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["g/one"], file["two"] = noise(4, 5), "text"
        words = "must hold one dataset or one be named; datasets: g/one, two"
        assert_refused(tmp_path / "a.h5", words)
        assert_refused(tmp_path / "a.h5" / "two", "the dataset two is a single value")

    @pytest.mark.parametrize(
        "name", ["loop", "nowhere", "below", "outside", "all/raw", "to_outside", "in_all"]
    )
    def test_links_that_lead_elsewhere(self, tmp_path, name):
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
        assert_refused(tmp_path / "a.h5" / name, f"has no dataset {name}")
