"""No input of `ecc` brings a traceback."""

import sys

import imageio.v3 as imageio
import numpy as np
import pytest
from io_helpers import noise


class TestBadInput:
    def test_colours(self, refuse, tmp_path):
        imageio.imwrite(tmp_path / "a.png", noise(7, 5, 3))
        assert "choose one with --channel: 0 to 2, r, g, b, gray" in refuse(
            "curve", tmp_path / "a.png"
        )

    @pytest.mark.parametrize(
        ("command", "array", "words"),
        [
            ("curve", np.float64(3), "shape ()"),
            ("curve", np.zeros((2, 2, 2, 2)), "shape (2, 2, 2, 2)"),
            ("curve", np.zeros((0, 5)), "--range"),
            ("curve", np.full((3, 3), np.nan), "NaN"),
            ("curve", np.zeros((3, 3), complex), "complex128"),
            ("stack", np.zeros((3, 3), complex), "boolean, integer or real floating dtype"),
            ("curve", np.full((3, 3), "a"), "<U1"),
        ],
    )
    def test_arrays_without_a_curve(self, refuse, tmp_path, command, array, words):
        np.save(tmp_path / "a.npy", array)
        message = refuse(command, tmp_path / "a.npy", "--out", tmp_path / "out.csv")
        assert message.startswith(f"ecc: error: {tmp_path / 'a.npy'}: ")
        assert words in message

    @pytest.mark.parametrize("flag", ["--mask", "--labels"])
    def test_mask_and_labels(self, refuse, image_file, tmp_path, flag):
        np.save(tmp_path / "other.npy", np.ones((3, 3), np.uint8))
        imageio.imwrite(tmp_path / "colour.png", noise(12, 9, 3))
        np.save(tmp_path / "negative.npy", np.full((12, 9), -1))
        np.save(tmp_path / "float.npy", np.ones((12, 9)))
        assert f"{flag} must have the image's shape Y 12 x X 9, got Y 3 x X 3" in refuse(
            "curve", image_file, flag, tmp_path / "other.npy"
        )
        assert "colour.png: a mask or label image must have one channel" in refuse(
            "curve", image_file, flag, tmp_path / "colour.png"
        )
        assert "none.png: no such file" in refuse("curve", image_file, flag, "none.png")
        if flag == "--labels":
            for name in ("negative", "float"):
                assert "--labels" in refuse("curve", image_file, flag, tmp_path / f"{name}.npy")

    def test_missing_extra(self, refuse, monkeypatch, image_file, tmp_path):
        for library, extra, flag, name in (
            ("pyarrow", "parquet", "--out", "c.parquet"),
            ("matplotlib", "io", "--plot", "c.png"),
        ):
            with monkeypatch.context() as patch:
                for module in [m for m in sys.modules if m.partition(".")[0] == library]:
                    patch.delitem(sys.modules, module)
                patch.setitem(sys.modules, library, None)
                message = refuse("curve", image_file, flag, tmp_path / name)
            assert f"needs {library}: pip install 'napari-ecc[{extra}]'" in message

    def test_too_little_memory(self, refuse, monkeypatch, image_file):
        def fail(*_: object, **__: object) -> None:
            raise MemoryError("Unable to allocate 9 TiB")

        monkeypatch.setattr("ecc_core.euler_curve", fail)
        assert "not enough memory: Unable to allocate 9 TiB" in refuse("curve", image_file)
