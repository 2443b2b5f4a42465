"""Pictures: values are those that other decoders give."""

import imagecodecs
import imageio.v3 as imageio
import numpy as np
import pytest
from io_helpers import assert_reads, assert_refused, noise, write_deep_png
from PIL import Image

from ecc_core.cli import main
from ecc_core.io import open_image, read_file


class TestDeepPng:
    @pytest.mark.parametrize(("colour_type", "samples"), [(2, 3), (4, 2), (6, 4)])
    def test_all_bits_are_read(self, tmp_path, colour_type, samples):
        image = noise(7, 5, samples, dtype="u2")
        write_deep_png(tmp_path / "a.png", image, colour_type)
        for channel in range(samples):
            assert_reads(tmp_path / "a.png", image[..., channel], channel=channel)
        assert read_file(tmp_path / "a.png").axes == "YXS"


class TestFormats:
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
        np.testing.assert_array_equal(
            colours.reshape(20, 17, 3)[..., 0], image.reshape(20, 17, -1)[..., 0]
        )
        file = read_file(path)
        if file.axes == "YX":
            assert_reads(path, image)
        else:
            assert file.axes == "YXS"
            for channel, name in enumerate("rgb"):
                assert_reads(path, colours[..., channel], channel=name)

    @pytest.mark.parametrize("suffix", ["jp2", "j2k"])
    @pytest.mark.parametrize(
        ("shape", "dtype"),
        [((20, 17), "u1"), ((20, 17), "u2"), ((20, 17, 3), "u2"), ((20, 17, 4), "u1")],
    )
    def test_jpeg_2000(self, tmp_path, shape, dtype, suffix):
        image, path = noise(*shape, dtype=dtype), tmp_path / f"a.{suffix}"
        content = imagecodecs.jpeg2k_encode(image, codecformat=suffix, reversible=True, level=0)
        path.write_bytes(content)
        if dtype == "u1" or image.ndim == 2:  # Pillow keeps 8 bits of colours
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


class TestNotes:
    def test_orientation(self, tmp_path, capsys):
        image, path = noise(20, 17), tmp_path / "a.png"
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
        Image.fromarray(noise(20, 17, 4), mode=None).convert("RGB").convert("CMYK").save(path)
        with Image.open(path) as other:
            inks = np.asarray(other)
        assert open_image(path).notes == (
            "channels are amounts of ink: cyan, magenta, yellow and black",
        )
        assert_reads(path, inks[..., 3], channel=3)
