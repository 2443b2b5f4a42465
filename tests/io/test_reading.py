"""Images that are read are those that were written."""

import imageio.v3 as imageio
import nibabel
import numpy as np
import pytest
import tifffile
from io_helpers import assert_reads, assert_refused, noise, write_hdf5, write_picture, write_zarr
from PIL import Image
from skimage.color import rgb2gray
from skimage.util import img_as_float

from ecc_core._io import stored
from ecc_core._io.stored import StoredImage
from ecc_core.io import ImageFile, read_file, read_image, select_channel


class TestReading:
    @pytest.mark.parametrize("image", [noise(7, 5, dtype="u2"), noise(7, 5) > 100])
    def test_png(self, tmp_path, image):
        write_picture(tmp_path / "a.PNG", image)
        assert_reads(tmp_path / "a.PNG", image)

    @pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "i4", "f4", "f8", ">u2"])
    @pytest.mark.parametrize("compression", [None, "zlib"])
    def test_tiff(self, tmp_path, dtype, compression):
        image = noise(9, 8, 7, dtype=np.dtype(dtype).newbyteorder("=").str).astype(dtype)
        tifffile.imwrite(
            tmp_path / "a.tif", image, compression=compression, photometric="minisblack"
        )
        assert_reads(tmp_path / "a.tif", image.astype(image.dtype.newbyteorder("=")))
        assert read_file(tmp_path / "a.tif").axes == "ZYX"

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
        monkeypatch.setattr(stored, "LEAST_PART", 1 << 10)
        return sizes

    @pytest.mark.parametrize("name", ["a.zarr", "sharded.zarr", "a.zarr.zip", "a.h5", "a.nii"])
    def test_a_volume(self, tmp_path, read, name):
        path, image = tmp_path / name, noise(24, 33, 40)
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
        assert max(read) <= 1 << 13  # a chunk of both channels

    def test_tiff_needs_no_copy(self, tmp_path, read):
        image = noise(24, 33, 40)
        tifffile.imwrite(tmp_path / "a.tif", image, compression="zlib")
        assert_reads(tmp_path / "a.tif", image)
        assert read == [image.nbytes]


class TestChannels:
    def test_a_colour_image_needs_a_channel(self, tmp_path):
        imageio.imwrite(tmp_path / "a.png", noise(7, 5, 3))
        assert_refused(tmp_path / "a.png", "has 3 channels", "`channel`", "0 to 2, r, g, b, gray")

    @pytest.mark.parametrize("suffix", [".png", ".tif"])
    @pytest.mark.parametrize("count", [3, 4])
    def test_index_and_name(self, tmp_path, suffix, count):
        path, image = tmp_path / f"a{suffix}", noise(7, 5, count)
        imageio.imwrite(path, image, **({"photometric": "rgb"} if suffix == ".tif" else {}))
        for index, name in enumerate("rgba"[:count]):
            assert_reads(path, image[..., index], channel=index)
            assert_reads(path, image[..., index], channel=name)
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
        for row, column in np.ndindex(100, 12):
            part = np.s_[row : row + 1, 11 * column : 11 * column + 1]
            found = select_channel(ImageFile(colours[part], "YXS"), "gray")
            np.testing.assert_array_equal(found, whole[part])

    def test_gray_needs_opaque_colours(self):
        colours = noise(7, 5, 4)
        with pytest.raises(ValueError, match="not defined where colours are transparent"):
            select_channel(ImageFile(colours, "YXS"), "gray")
        colours[..., 3] = 255
        np.testing.assert_allclose(
            select_channel(ImageFile(colours, "YXS"), "gray"), rgb2gray(colours[..., :3])
        )

    def test_gray_needs_a_known_white(self):
        with pytest.raises(ValueError, match="uint or float, got int16"):
            select_channel(ImageFile(noise(7, 5, 3, dtype="i2"), "YXS"), "gray")

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

    def test_inks_have_no_names(self, tmp_path):
        Image.fromarray(noise(8, 8, 4), "CMYK").save(tmp_path / "a.jpg")
        assert_refused(tmp_path / "a.jpg", "must be one of 0 to 3, got 'r'", channel="r")
        assert read_image(tmp_path / "a.jpg", channel=3).shape == (8, 8)

    def test_axes_say_what_an_array_means(self, tmp_path):
        image = noise(3, 7, 5)
        np.save(tmp_path / "a.npy", image)
        assert_reads(tmp_path / "a.npy", image)
        assert_reads(tmp_path / "a.npy", image[1], axes="CYX", channel=1)
        assert_reads(tmp_path / "a.npy", image[1], axes="syx", channel="g")
        assert_refused(tmp_path / "a.npy", "`axes` must be one letter per axis", "'YX'", axes="YX")
        assert_refused(tmp_path / "a.npy", "must have one axis of channels", axes="CSX")

    def test_a_channel_of_none(self, tmp_path):
        np.save(tmp_path / "a.npy", noise(7, 5))
        assert_refused(
            tmp_path / "a.npy", "`channel` must be left out, the axes YX have none", channel=0
        )
