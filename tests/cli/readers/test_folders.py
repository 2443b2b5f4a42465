"""Folders of slices: their order, and files that do not fit."""

from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import pytest
import tifffile
from io_helpers import curve_at_levels, noise


class TestFolders:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "slices").mkdir()
        return tmp_path / "slices"

    @pytest.mark.parametrize("suffix", [".tif", ".png", ".npy"])
    def test_natural_order(self, curves, folder, suffix):
        image = np.arange(12)[:, None, None] * 20 + noise(12, 5, 6) // 16
        image = image.astype(np.uint8)
        for i, plane in enumerate(image, 1):
            write = np.save if suffix == ".npy" else imageio.imwrite
            write(folder / f"slice{i}{suffix}", plane)
        (folder / "Thumbs.db").write_text("")
        (folder / f"._slice1{suffix}").write_text("")
        assert curves(folder) == [curve_at_levels(image)]
        assert curve_at_levels(image) != curve_at_levels(
            image[sorted(range(12), key=lambda i: str(i + 1))]
        )

    def test_an_order_that_is_ambiguous(self, refused, folder):
        for name in ("a1.tif", "a01.tif"):
            tifffile.imwrite(folder / name, noise(5, 6))
        assert "the order of" in refused(folder)

    @pytest.mark.parametrize(
        ("other", "words"),
        [
            (noise(32, 128, dtype="u2"), "b2.tif has shape (32, 128), b1.tif (64, 64)"),
            (noise(64, 64, dtype="i2"), "b2.tif has dtype int16, b1.tif uint16"),
            (noise(64, 32, dtype="f4"), "b2.tif has shape (64, 32), b1.tif (64, 64)"),
            (noise(64, 64, 3, dtype="u2"), "b2.tif has shape (64, 64, 3), b1.tif (64, 64)"),
        ],
    )
    def test_a_file_that_differs_is_named(self, refused, folder, other, words):
        for i in range(3):
            tifffile.imwrite(folder / f"b{i + 1}.tif", noise(64, 64, dtype="u2"))
        photometric = "rgb" if other.ndim == 3 else "minisblack"
        tifffile.imwrite(folder / "b2.tif", other, photometric=photometric)
        assert words in refused(folder)

    def test_several_formats(self, refused, folder):
        tifffile.imwrite(folder / "1.tif", noise(5, 6))
        imageio.imwrite(folder / "2.png", noise(5, 6))
        assert "holds files of several formats" in refused(folder)

    def test_a_truncated_slice_is_named(self, refused, folder):
        for i in range(3):
            tifffile.imwrite(folder / f"{i}.tif", noise(40, 50))
        (folder / "1.tif").write_bytes((folder / "1.tif").read_bytes()[:900])
        assert str(folder / "1.tif") in refused(folder)
