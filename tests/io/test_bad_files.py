"""Files that are not what they should be, or claim too much memory, are refused."""

import os
import pickle
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import h5py
import imageio.v3 as imageio
import numpy as np
import pytest
import zarr
from io_helpers import assert_reads, assert_refused, czi_library, noise, write_itk, write_picture
from PIL import Image

from ecc_core._io import limits
from ecc_core.cli import main
from ecc_core.io import IMAGE_SUFFIXES, open_image


class TestBadFiles:
    @pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".npy", ".npz"])
    def test_not_found(self, tmp_path, suffix):
        assert_refused(tmp_path / f"a{suffix}", "no such file")

    @pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
    def test_not_permitted(self, tmp_path):
        imageio.imwrite(tmp_path / "a.png", noise(7, 5))
        (tmp_path / "a.png").chmod(0)
        assert_refused(tmp_path / "a.png", "Permission denied")

    @pytest.mark.parametrize("suffix", sorted({*IMAGE_SUFFIXES} - {".nd2", ".zarr"}))
    @pytest.mark.parametrize(
        "start",
        [b"", b"just some text\n", b"PK\x03\x04 ", b"\xff\x4f\xff\x51 ", b"ZISRAWFILE "],
        ids=["nothing", "text", "zip", "JPEG 2000", "CZI"],
    )
    def test_something_else_under_that_name(self, tmp_path, suffix, start):
        if suffix == ".czi":
            czi_library()
        path = tmp_path / f"a{suffix}"
        path.write_bytes(start + b"nothing")
        assert_refused(path)

    @pytest.mark.parametrize(
        "name",
        ["objects.npy", "objects.npz", "pickle.npy", "pickle.npz", "pickle.png", "pickle.tif"],
    )
    def test_pickles_are_never_loaded(self, tmp_path, name):
        class Trap:
            def __reduce__(self) -> tuple[object, ...]:
                return Path.touch, (tmp_path / "loaded",)

        objects = np.array([Trap()], dtype=object)
        path = tmp_path / name
        if name == "objects.npy":
            np.save(path, objects, allow_pickle=True)
        elif name == "objects.npz":
            np.savez(path, objects)
        else:
            path.write_bytes(pickle.dumps(Trap()))
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


SHAPE = (1 << 14, 1 << 13, 1 << 13)
"""1 TiB of bytes."""


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Fail if more than 64 MiB are taken."""
    tracemalloc.start()
    yield
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 26


@pytest.mark.usefixtures("little_memory")
class TestClaims:
    @pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    def test_npz(self, tmp_path, compression):
        header = BytesIO()
        described = {"descr": "|u1", "fortran_order": False, "shape": SHAPE}
        np.lib.format.write_array_header_1_0(header, described)
        with zipfile.ZipFile(tmp_path / "a.npz", "w", compression) as archive:
            archive.writestr("a.npy", header.getvalue() + bytes(9))
        assert_refused(tmp_path / "a.npz", "it describes 1099511627776 bytes", "9 bytes in it")

    def test_npz_whose_archive_claims_more_than_it_has(self, tmp_path):
        np.savez_compressed(tmp_path / "a.npz", np.zeros(1000, np.uint8))
        content = bytearray((tmp_path / "a.npz").read_bytes())
        entry = content.rindex(b"PK\x01\x02")  # The entry of the directory has its size at 24.
        content[entry + 24 : entry + 28] = struct.pack("<I", 0xFFFFFFF0)
        (tmp_path / "a.npz").write_bytes(content)
        assert_refused(tmp_path / "a.npz", "it describes 4294967280 bytes")

    def test_png(self, tmp_path):
        """The file is right but for its size, as is one of 43 s and 3.6 GB."""
        path = tmp_path / "a.png"
        write_picture(path, np.zeros((3000, 4000), np.uint8), compress_level=9)
        content = bytearray(path.read_bytes())
        assert len(content) < 12_100
        content[16:24] = struct.pack(">II", 60_000, 60_000)
        content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
        path.write_bytes(content)
        assert_refused(path, "it describes 3600000000 bytes")

    @pytest.mark.parametrize("name", ["2.zarr", "3.zarr", "whole.h5", "chunks.h5"])
    def test_sparse_images_are_read_in_blocks_only(self, tmp_path, capsys, name):
        path = tmp_path / name
        chunks = (64, 64, 64)
        if path.suffix == ".zarr":
            version = int(path.stem)
            zarr.create_array(path, shape=SHAPE, dtype="u1", chunks=chunks, zarr_format=version)
        else:
            layout = {"chunks": chunks, "compression": "gzip"} if name == "chunks.h5" else {}
            with h5py.File(path, "w") as file:
                file.create_dataset("a", SHAPE, "u1", **layout)
        assert_refused(path, "needs 1024.0 GiB of memory", "`ecc stack` reads")
        assert main(["curve", str(path)]) == 2
        assert "needs 1024.0 GiB of memory" in capsys.readouterr().err
        box = open_image(path)[5:9, 5:9, 5:9]
        np.testing.assert_array_equal(box, np.zeros((4, 4, 4), np.uint8))
        table = tmp_path / "t.csv"
        options = ["--roi", "0:9,0:9,0:9", "--thresholds", "0.0", "--out", str(table)]
        assert main(["stack", str(path), *options]) == 0
        assert table.read_text().splitlines()[1] == "0.0,1"

    def test_a_chunk_of_1_tib(self, tmp_path):
        zarr.create_array(tmp_path / "a.zarr", shape=SHAPE, dtype="u1", chunks=SHAPE)
        assert_refused(tmp_path / "a.zarr", "needs 1024.0 GiB of memory")


class TestWhatMustBeRead:
    """However well values can be compressed, they are read."""

    def test_constant_images(self, tmp_path, monkeypatch):
        monkeypatch.setattr(limits, "ALWAYS_ALLOWED_BYTES", 0)
        image = np.zeros((3000, 4000), np.uint8)
        np.savez_compressed(tmp_path / "a.npz", image)
        imageio.imwrite(tmp_path / "a.png", image, compress_level=9)
        write_itk(tmp_path / "a.mha", image, compressed=True)
        Image.fromarray(image > 0).save(tmp_path / "bits.png", compress_level=9)
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file.create_dataset("a", data=image, compression="gzip", compression_opts=9)
            file.create_dataset("missing", image.shape, "u1", chunks=(100, 100))
        zarr.create_array(tmp_path / "a.zarr", shape=image.shape, dtype="u1", chunks=(100, 100))
        assert_reads(tmp_path / "a.npz", image)
        assert_reads(tmp_path / "a.png", image)
        assert_reads(tmp_path / "a.mha", image)
        assert_reads(tmp_path / "a.h5/a", image)
        assert_reads(tmp_path / "a.h5/missing", image)
        assert_reads(tmp_path / "a.zarr", image)
        assert_reads(tmp_path / "bits.png", image > 0)
        assert image.size / (tmp_path / "a.npz").stat().st_size > 900

    def test_where_nothing_is_known_of_memory(self, tmp_path, monkeypatch):
        monkeypatch.setattr(limits, "ALWAYS_ALLOWED_BYTES", 0)
        monkeypatch.setattr(limits, "available_bytes", lambda: None)
        path = tmp_path / "a.zarr"
        zarr.create_array(path, shape=(9, 9), dtype="u1", chunks=(4, 4))
        assert_reads(path, np.zeros((9, 9), np.uint8))
        monkeypatch.setattr(limits, "available_bytes", lambda: 80)
        assert_refused(path, "needs 0.0 GiB of memory")

    def test_available_memory(self):
        found = limits.available_bytes()
        assert found is None or 1 << 24 < found < 1 << 50
