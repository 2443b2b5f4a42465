"""Files that are not what they should be are refused."""

import os
import pickle
import sys
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import pytest
from io_helpers import assert_refused, czi_library, noise

from ecc_core.io import IMAGE_SUFFIXES, read_image


class TestBadFiles:
    @pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".npy", ".npz"])
    def test_not_found(self, tmp_path, suffix):
        assert_refused(tmp_path / f"a{suffix}", "no such file")

    @pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
    def test_not_permitted(self, tmp_path):
        imageio.imwrite(tmp_path / "a.png", noise(7, 5))
        (tmp_path / "a.png").chmod(0)
        assert_refused(tmp_path / "a.png", "Permission denied")

    def test_unknown_type(self, tmp_path):
        (tmp_path / "a.txt").write_text("1 2 3")
        assert_refused(tmp_path / "a.txt", "type not supported, got .txt; ecc info --help lists")

    @pytest.mark.parametrize("suffix", sorted({*IMAGE_SUFFIXES} - {".nd2", ".zarr"}))
    def test_something_else_under_that_name(self, tmp_path, suffix):
        if suffix == ".czi":
            czi_library()
        starts = b"", b"just some text\n", b"PK\x03\x04 ", b"\xff\x4f\xff\x51 ", b"ZISRAWFILE "
        for number, start in enumerate(starts):
            path = tmp_path / f"{number}{suffix}"
            path.write_bytes(start + b"nothing")
            assert_refused(path)

    def test_pickles_are_never_loaded(self, tmp_path):
        class Trap:
            def __reduce__(self) -> tuple[object, ...]:
                return Path.touch, (tmp_path / "loaded",)

        objects = np.array([Trap()], dtype=object)
        np.save(tmp_path / "objects.npy", objects, allow_pickle=True)
        np.savez(tmp_path / "objects.npz", objects)
        for name in ("pickle.npy", "pickle.npz", "pickle.png", "pickle.tif"):
            (tmp_path / name).write_bytes(pickle.dumps(Trap()))
        for path in sorted(tmp_path.iterdir()):
            assert_refused(path)
        assert not (tmp_path / "loaded").exists()

    def test_a_decoder_that_says_much(self, tmp_path, monkeypatch):
        def fail(*_: object, **__: object) -> None:
            raise RuntimeError("first line\nsecond line")

        np.save(tmp_path / "a.npy", noise(7, 5))
        monkeypatch.setattr(np, "load", fail)
        assert_refused(tmp_path / "a.npy", "first line")

    def test_several_arrays(self, tmp_path):
        np.savez(tmp_path / "a.npz", one=noise(2, 3), two=noise(2, 3))
        assert_refused(
            tmp_path / "a.npz",
            "must hold one array or one be named, as in a.npz/NAME; arrays: one, two",
        )

    @pytest.mark.parametrize(("name", "library"), [("a.png", "imageio"), ("a.tif", "tifffile")])
    def test_missing_library(self, tmp_path, monkeypatch, name, library):
        imageio.imwrite(tmp_path / name, noise(7, 5))
        for module in [m for m in sys.modules if m.partition(".")[0] == library]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(ImportError, match=rf"{library}: pip install 'napari-ecc\[io\]'"):
            read_image(tmp_path / name)
