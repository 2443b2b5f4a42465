"""Pictures and TIFF: values are those that other decoders give, however they are stored."""

import imagecodecs
import imageio.v3 as imageio
import numpy as np
import pytest
import skimage.io
import tifffile
from io_helpers import assert_channels, assert_reads, assert_refused, noise
from PIL import Image

from ecc_core.cli import main
from ecc_core.io import open_image, read_file


class TestFormats:
    @pytest.mark.parametrize("samples", [2, 3, 4])
    def test_all_bits_of_png_are_read(self, tmp_path, samples):
        image = noise(7, 5, samples, dtype="u2")
        path = tmp_path / "a.png"
        path.write_bytes(imagecodecs.png_encode(image))
        assert_channels(path, image, axis=2)
        assert read_file(path).axes == "YXS"

    @pytest.mark.parametrize("shape", [(20, 17), (20, 17, 3)])
    @pytest.mark.parametrize(
        ("suffix", "options"), [("bmp", {}), ("gif", {}), ("webp", {"lossless": True})]
    )
    def test_values(self, tmp_path, shape, suffix, options):
        image = noise(*shape) // 64 * 64
        path = tmp_path / f"a.{suffix}"
        Image.fromarray(image).save(path, **options)
        with Image.open(path) as other:
            colours = np.asarray(other.convert("RGB"))
        file = read_file(path)
        expected = image if file.axes == "YX" else colours
        np.testing.assert_array_equal(file.values, expected)
        np.testing.assert_array_equal(colours[..., 0].ravel(), image.reshape(20 * 17, -1)[:, 0])
        assert (file.axes, file.values.dtype) == ("YXS"[: expected.ndim], "u1")

    @pytest.mark.parametrize("suffix", ["jp2", "j2k"])
    @pytest.mark.parametrize(
        ("shape", "dtype"),
        [((20, 17), "u1"), ((20, 17), "u2"), ((20, 17, 3), "u2"), ((20, 17, 4), "u1")],
    )
    def test_jpeg_2000(self, tmp_path, shape, dtype, suffix):
        image = noise(*shape, dtype=dtype)
        path = tmp_path / f"a.{suffix}"
        content = imagecodecs.jpeg2k_encode(image, codecformat=suffix, reversible=True, level=0)
        path.write_bytes(content)
        if dtype == "u1" or image.ndim == 2:  # Pillow keeps 8 bits of colours.
            with Image.open(path) as other:
                np.testing.assert_array_equal(np.asarray(other), image)
        file = read_file(path)
        assert file.axes == ("YX" if image.ndim == 2 else "YXS")
        assert file.values.dtype == image.dtype
        np.testing.assert_array_equal(file.values, image)

    @pytest.mark.parametrize("suffix", ["gif", "webp"])
    def test_animations(self, tmp_path, suffix):
        first, *others = (Image.fromarray(noise(9, 8, seed=seed)) for seed in range(3))
        first.save(tmp_path / f"a.{suffix}", save_all=True, append_images=others)
        assert_refused(tmp_path / f"a.{suffix}", f"animated {suffix.upper()} is not supported")


PLANAR = {"photometric": "rgb", "planarconfig": "separate"}


class TestZeroIsWhite:
    @pytest.mark.parametrize("dtype", ["?", "u1", "u2", "i2", "f4"])
    @pytest.mark.parametrize("tile", [None, (16, 16)])
    def test_values_are_as_stored(self, tmp_path, dtype, tile):
        image = noise(5, 20, 17).astype(dtype) if dtype != "?" else noise(5, 20, 17) > 100
        path = tmp_path / "a.tif"
        tifffile.imwrite(path, image, tile=tile, photometric="miniswhite")
        np.testing.assert_array_equal(skimage.io.imread(path), image)
        assert_reads(path, image)
        part = (slice(1, 3), slice(2, 19), slice(0, 5))
        opened = open_image(path)
        np.testing.assert_array_equal(opened[part], image[part])
        assert opened.notes == ("0 is white and the largest value black; values are as stored",)

    def test_masks_of_tifffile(self, tmp_path, capsys, monkeypatch):
        """tifffile stores masks with 0 as white, which does not change the values of the array."""
        monkeypatch.chdir(tmp_path)
        mask = np.zeros((8, 8), bool)
        mask[2:5, 2:5] = True
        tifffile.imwrite("m.tif", mask)
        np.save("m.npy", mask)
        np.save("a.npy", np.arange(64).reshape(8, 8))
        command = ["curve", "a.npy", "--thresholds", "0,20,63", "--mask"]
        assert main([*command, "m.tif"]) == 0
        of_tiff = capsys.readouterr().out
        assert main([*command, "m.npy"]) == 0
        assert of_tiff == capsys.readouterr().out


class TestPlanar:
    """The samples of a colour can be stored one after the other."""

    @pytest.mark.parametrize(
        ("shape", "axes", "options"),
        [
            ((3, 20, 17), "SYX", PLANAR),
            ((3, 20, 17), "SYX", PLANAR | {"rowsperstrip": 6, "compression": "zlib"}),
            ((4, 20, 17), "SYX", PLANAR | {"extrasamples": ["unassalpha"], "compression": "lzw"}),
            ((3, 40, 37), "SYX", PLANAR | {"tile": (16, 16), "compression": "zstd"}),
            ((5, 3, 20, 17), "ZSYX", PLANAR),
            ((5, 3, 40, 37), "ZSYX", PLANAR | {"tile": (16, 16), "predictor": True}),
            ((3, 8, 32, 40), "SZYX", PLANAR | {"tile": (8, 16, 16), "volumetric": True}),
            ((4, 20, 17), "CYX", PLANAR | {"photometric": "separated"}),
            ((5, 20, 17), "CYX", PLANAR | {"photometric": "minisblack", "rowsperstrip": 7}),
        ],
    )
    @pytest.mark.parametrize("dtype", ["u1", "u2"])
    def test_values(self, tmp_path, shape, axes, options, dtype):
        path = tmp_path / "a.tif"
        image = noise(*shape, dtype=dtype)
        if options.get("predictor"):
            options = options | {"compression": "zlib"}
        tifffile.imwrite(path, image, **options)
        np.testing.assert_array_equal(tifffile.imread(path), image)
        opened = open_image(path)
        order = sorted(axes, key="ZCYXS".index if "C" in axes else "ZYXS".index)
        assert opened.axes == "".join(order)
        expected = image.transpose([axes.index(letter) for letter in order])
        np.testing.assert_array_equal(read_file(path).values, expected)
        colours = axes.index(axes.strip("ZYX"))
        assert_channels(path, image, colours)
        ends = [(n // 3, n - n // 4) for n in expected.shape]
        box = tuple(slice(*pair) for pair in ends)
        np.testing.assert_array_equal(opened[box], expected[box])

    def test_several_images(self, tmp_path):
        images = [noise(3, 20, 17), noise(3, 9, 8)]
        with tifffile.TiffWriter(tmp_path / "a.tif") as file:
            for image in images:
                file.write(image, **PLANAR)
        assert_reads(tmp_path / "a.tif", images[0][1], series=0, channel="g")
        assert_reads(tmp_path / "a.tif", images[1][1], series=1, channel="g")


class TestNotes:
    """What is easily overlooked is said."""

    @pytest.mark.parametrize(
        ("photometric", "shape", "words"),
        [
            ("separated", (7, 5, 4), "ink: cyan, magenta, yellow and black"),
            ("cielab", (7, 5, 3), "CIE L*a*b*"),
            ("palette", (7, 5), "indices into a palette"),
        ],
    )
    def test_colours(self, tmp_path, photometric, shape, words):
        colours = noise(3, 256, dtype="u2") if photometric == "palette" else None
        image = noise(*shape)
        tifffile.imwrite(tmp_path / "a.tif", image, photometric=photometric, colormap=colours)
        opened = open_image(tmp_path / "a.tif")
        assert len(opened.notes) == 1
        assert words in opened.notes[0]
        expected = np.moveaxis(image, -1, 0) if image.ndim > 2 else image
        np.testing.assert_array_equal(read_file(tmp_path / "a.tif").values, expected)

    def test_orientation(self, tmp_path):
        image = noise(7, 5)
        tifffile.imwrite(tmp_path / "a.tif", image, extratags=[(274, "H", 1, 6, True)])
        with Image.open(tmp_path / "a.tif") as other:
            assert other.getexif()[274] == 6
        opened = open_image(tmp_path / "a.tif")
        assert "orientation tag 6 is not applied" in opened.notes[0]
        assert_reads(tmp_path / "a.tif", image)

    def test_orientation_of_png(self, tmp_path, capsys):
        image = noise(20, 17)
        path = tmp_path / "a.png"
        exif = Image.Exif()
        exif[0x112] = 6
        Image.fromarray(image).save(path, exif=exif)
        np.testing.assert_array_equal(imageio.imread(path), image)
        assert_reads(path, image)
        note = "rows and columns are as stored; its orientation tag 6 is not applied"
        assert open_image(path).notes == (note,)
        assert main(["info", str(path)]) == 0
        assert f"  note    {note}\n" in capsys.readouterr().out
        assert main(["curve", str(path), "--thresholds", "9"]) == 0
        assert capsys.readouterr().err == f"ecc: {path}: {note}\n"

    def test_cmyk(self, tmp_path):
        path = tmp_path / "a.jpg"
        colours = Image.fromarray(noise(20, 17, 4), mode=None).convert("RGB")
        colours.convert("CMYK").save(path)
        with Image.open(path) as other:
            inks = np.asarray(other)
        words = "channels are amounts of ink: cyan, magenta, yellow and black"
        assert open_image(path).notes == (words,)
        assert_reads(path, inks[..., 3], channel=3)
        assert_refused(path, "must be one of 0 to 3, got 'r'", channel="r")
