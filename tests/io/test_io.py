"""Files: what is read is what was written, and what is written is whole or not there."""

import csv
import errno
import json
import os
import pickle
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import pyarrow.parquet as parquet
import pytest
import tifffile
from PIL import Image
from skimage.color import rgb2gray
from skimage.util import img_as_float

from ecc_core._io.open import open_image
from ecc_core.errors import InputFileError
from ecc_core.io import (
    FIGURE_SUFFIXES,
    TABLE_SUFFIXES,
    ImageFile,
    atomic_file,
    check_output,
    read_file,
    read_image,
    select_channel,
    write_figure,
    write_table,
)


def noise(*shape: int, dtype: str = "u1") -> np.ndarray:
    generator = np.random.default_rng(0)
    if np.dtype(dtype).kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    return generator.integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def write_png(path: Path, image: np.ndarray, colour_type: int) -> None:
    """Write a 16-bit PNG, colours included, which no library at hand does."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        length, checksum = len(content), zlib.crc32(kind + content)
        return struct.pack(">I", length) + kind + content + struct.pack(">I", checksum)

    rows, columns = image.shape[:2]
    header = struct.pack(">IIBBBBB", columns, rows, 16, colour_type, 0, 0, 0)
    pixels = b"".join(b"\0" + row.astype(">u2").tobytes() for row in image)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(pixels)), (b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*c) for c in chunks))


def assert_reads(path: Path, image: np.ndarray, **options: object) -> None:
    actual = read_image(path, **options)
    assert actual.dtype == image.dtype
    np.testing.assert_array_equal(actual, image)


def assert_refused(path: Path, *words: str, **options: object) -> None:
    with pytest.raises(InputFileError) as caught:
        read_image(path, **options)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    for word in words:
        assert word in message


class TestReading:
    @pytest.mark.parametrize("dtype", ["u1", "u2"])
    def test_gray_png(self, tmp_path: Path, dtype: str) -> None:
        image = noise(7, 5, dtype=dtype)
        imageio.imwrite(tmp_path / "a.png", image)
        assert_reads(tmp_path / "a.png", image)

    def test_binary_png(self, tmp_path: Path) -> None:
        image = noise(7, 5) > 100
        Image.fromarray(image).save(tmp_path / "a.PNG")
        assert_reads(tmp_path / "a.PNG", image)

    def test_jpeg_as_its_decoder_reads_it(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jpeg"
        Image.fromarray(noise(16, 16)).save(path)
        with Image.open(path) as decoded:
            assert_reads(path, np.asarray(decoded))

    @pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "i4", "f4", "f8", ">u2"])
    @pytest.mark.parametrize("compression", [None, "zlib"])
    def test_tiff(self, tmp_path: Path, dtype: str, compression: str | None) -> None:
        image = noise(9, 8, 7, dtype=np.dtype(dtype).newbyteorder("=").str).astype(dtype)
        tifffile.imwrite(
            tmp_path / "a.tif", image, compression=compression, photometric="minisblack"
        )
        assert_reads(tmp_path / "a.tif", image.astype(image.dtype.newbyteorder("=")))
        assert read_file(tmp_path / "a.tif").axes == "ZYX"

    @pytest.mark.parametrize("dtype", ["?", "u1", "u2", "i2", "f4"])
    @pytest.mark.parametrize("tile", [None, (16, 16)])
    def test_tiff_of_which_0_is_white(
        self, tmp_path: Path, dtype: str, tile: tuple[int, int] | None
    ) -> None:
        """Unsigned values are inverted, as a whole and in parts."""
        image = noise(3, 20, 17).astype(dtype) if dtype != "?" else noise(3, 20, 17) > 100
        tifffile.imwrite(tmp_path / "a.tif", image, tile=tile, photometric="miniswhite")
        most = {"?": True, "u1": 255, "u2": 65_535}.get(dtype)
        shown = image if most is None else image.dtype.type(most) ^ image
        assert_reads(tmp_path / "a.tif", shown)
        part = (slice(1, 3), slice(2, 19), slice(0, 5))
        np.testing.assert_array_equal(open_image(tmp_path / "a.tif")[part], shown[part])

    def test_pages_become_the_first_axis(self, tmp_path: Path) -> None:
        image = noise(5, 8, 7)
        first, *others = (Image.fromarray(page) for page in image)
        first.save(tmp_path / "a.tiff", save_all=True, append_images=others)
        assert_reads(tmp_path / "a.tiff", image)

    @pytest.mark.parametrize("shape", [(3,), (1, 9), (4, 5), (2, 3, 4), (2, 3, 4, 5), (0, 5)])
    def test_npy_and_npz(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        image = noise(*shape, dtype="f8")
        np.save(tmp_path / "a.npy", image)
        np.savez_compressed(tmp_path / "a.npz", image)
        assert_reads(tmp_path / "a.npy", image)
        assert_reads(tmp_path / "a.npz", image)

    def test_npy_is_mapped_and_cannot_be_written(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", noise(4, 5))
        image = read_image(tmp_path / "a.npy")
        assert isinstance(image, np.memmap)
        assert not image.flags.writeable

    def test_images_beyond_pillows_limit(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        image = noise(40, 50)
        imageio.imwrite(tmp_path / "a.png", image)
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
        assert_reads(tmp_path / "a.png", image)
        assert Image.MAX_IMAGE_PIXELS == 100


class TestChannels:
    def test_a_colour_image_needs_a_channel(self, tmp_path: Path) -> None:
        imageio.imwrite(tmp_path / "a.png", noise(7, 5, 3))
        assert_refused(tmp_path / "a.png", "has 3 channels", "`channel`", "0 to 2, r, g, b, gray")

    @pytest.mark.parametrize("suffix", [".png", ".tif"])
    @pytest.mark.parametrize("count", [3, 4])
    def test_index_and_name(self, tmp_path: Path, suffix: str, count: int) -> None:
        path, image = tmp_path / f"a{suffix}", noise(7, 5, count)
        imageio.imwrite(path, image, **({"photometric": "rgb"} if suffix == ".tif" else {}))
        for index, name in enumerate("rgba"[:count]):
            assert_reads(path, image[..., index], channel=index)
            assert_reads(path, image[..., index], channel=name)
        assert_refused(path, "must be one of 0 to", f"got {count}", channel=count)
        assert_refused(path, "got -1", channel=-1)
        assert_refused(path, "got 'x'", channel="x")

    @pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8"])
    def test_gray_is_scikit_images(self, dtype: str) -> None:
        colours = noise(7, 5, 3, dtype=dtype)
        expected = rgb2gray(img_as_float(colours))
        actual = select_channel(ImageFile(colours, "YXS"), "gray")
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-6 if dtype == "f4" else 1e-14)

    def test_gray_needs_opaque_colours(self) -> None:
        colours = noise(7, 5, 4)
        with pytest.raises(ValueError, match="not defined where colours are transparent"):
            select_channel(ImageFile(colours, "YXS"), "gray")
        colours[..., 3] = 255
        np.testing.assert_allclose(
            select_channel(ImageFile(colours, "YXS"), "gray"), rgb2gray(colours[..., :3])
        )

    def test_gray_needs_a_known_white(self) -> None:
        with pytest.raises(ValueError, match="uint or float, got int16"):
            select_channel(ImageFile(noise(7, 5, 3, dtype="i2"), "YXS"), "gray")

    def test_gray_and_alpha(self, tmp_path: Path) -> None:
        image = noise(7, 5, 2)
        Image.fromarray(image).save(tmp_path / "a.png")
        assert_refused(tmp_path / "a.png", "0 to 1, gray, a")
        assert_reads(tmp_path / "a.png", image[..., 0], channel="gray")
        assert_reads(tmp_path / "a.png", image[..., 1], channel="a")

    def test_channels_without_names(self, tmp_path: Path) -> None:
        image = noise(4, 3, 7, 5)
        tifffile.imwrite(tmp_path / "a.tif", image, imagej=True, metadata={"axes": "ZCYX"})
        assert_refused(tmp_path / "a.tif", "has 3 channels, axes ZCYX", "0 to 2")
        assert_refused(tmp_path / "a.tif", "must be one of 0 to 2, got 'r'", channel="r")
        assert_reads(tmp_path / "a.tif", image[:, 2], channel=2)

    def test_inks_have_no_names(self, tmp_path: Path) -> None:
        Image.fromarray(noise(8, 8, 4), "CMYK").save(tmp_path / "a.jpg")
        assert_refused(tmp_path / "a.jpg", "must be one of 0 to 3, got 'r'", channel="r")
        assert read_image(tmp_path / "a.jpg", channel=3).shape == (8, 8)

    def test_axes_say_what_an_array_means(self, tmp_path: Path) -> None:
        image = noise(3, 7, 5)
        np.save(tmp_path / "a.npy", image)
        assert_reads(tmp_path / "a.npy", image)
        assert_reads(tmp_path / "a.npy", image[1], axes="CYX", channel=1)
        assert_reads(tmp_path / "a.npy", image[1], axes="syx", channel="g")
        assert_refused(tmp_path / "a.npy", "`axes` must be one letter per axis", "'YX'", axes="YX")
        assert_refused(tmp_path / "a.npy", "must have one axis of channels", axes="CSX")

    def test_a_channel_of_none(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", noise(7, 5))
        assert_refused(
            tmp_path / "a.npy", "`channel` must be left out, the axes YX have none", channel=0
        )


class TestBadFiles:
    @pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".npy", ".npz"])
    def test_not_found(self, tmp_path: Path, suffix: str) -> None:
        assert_refused(tmp_path / f"a{suffix}", "no such file")

    def test_directory(self, tmp_path: Path) -> None:
        (tmp_path / "a.png").mkdir()
        assert_refused(tmp_path / "a.png", "holds neither a Zarr image nor image files")

    @pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
    def test_not_permitted(self, tmp_path: Path) -> None:
        imageio.imwrite(tmp_path / "a.png", noise(7, 5))
        (tmp_path / "a.png").chmod(0)
        assert_refused(tmp_path / "a.png", "Permission denied")

    def test_unknown_type(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("1 2 3")
        assert_refused(tmp_path / "a.txt", "type not supported, must be one of .png, .jpg")

    @pytest.mark.parametrize("content", [b"", b"just some text\n", b"PK\x03\x04 not really"])
    @pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".npy", ".npz"])
    def test_something_else_under_that_name(
        self, tmp_path: Path, suffix: str, content: bytes
    ) -> None:
        path = tmp_path / f"a{suffix}"
        path.write_bytes(content)
        assert_refused(path)

    @pytest.mark.parametrize("kept", [0.01, 0.1, 0.5, 0.9, 0.99])
    @pytest.mark.parametrize(
        "name",
        ["a.png", "a.jpg", "a.npy", "a.npz", "compressed.npz", "a.tif", "zlib.tif", "pages.tif"],
    )
    def test_truncated(self, tmp_path: Path, name: str, kept: float) -> None:
        path, image = tmp_path / name, noise(6, 40, 50)
        pages = [Image.fromarray(page) for page in image]
        if name == "pages.tif":
            pages[0].save(path, save_all=True, append_images=pages[1:])
        elif path.suffix == ".tif":
            tifffile.imwrite(path, image, compression="zlib" if name == "zlib.tif" else None)
        elif path.suffix == ".npz":
            (np.savez_compressed if name == "compressed.npz" else np.savez)(path, image)
        elif path.suffix == ".npy":
            np.save(path, image)
        else:
            pages[0].save(path)
        assert read_file(path).values.size in (image.size, image[0].size)
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content[: int(kept * len(content))])
        assert_refused(path)

    def test_every_truncation_of_a_tiff_is_noticed(self, tmp_path: Path) -> None:
        """Without the check, tifffile would return the pages before the cut as if they were all."""
        whole, image = tmp_path / "whole.tif", noise(3, 6, 5)
        first, *others = (Image.fromarray(page) for page in image)
        first.save(whole, save_all=True, append_images=others)
        content = whole.read_bytes()
        for size in range(len(content)):
            path = tmp_path / f"{size}.tif"
            path.write_bytes(content[:size])
            try:
                actual = read_image(path)
            except InputFileError:
                continue
            np.testing.assert_array_equal(actual, image)  # what was cut off was not needed
            assert size > 0.98 * len(content)

    def test_flipped_bits(self, tmp_path: Path) -> None:
        image = noise(40, 50)
        imageio.imwrite(tmp_path / "a.png", image)
        np.savez_compressed(tmp_path / "a.npz", image)
        for path in (tmp_path / "a.png", tmp_path / "a.npz"):
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 0xFF
            path.write_bytes(content)
            assert_refused(path)

    def test_pickles_are_never_loaded(self, tmp_path: Path) -> None:
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

    def test_a_decoder_that_says_much(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise RuntimeError("first line\nsecond line")

        np.save(tmp_path / "a.npy", noise(7, 5))
        monkeypatch.setattr(np, "load", fail)
        assert_refused(tmp_path / "a.npy", "first line")

    def test_several_arrays(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", one=noise(2, 3), two=noise(2, 3))
        assert_refused(
            tmp_path / "a.npz",
            "must hold one array or one be named, as in a.npz/NAME; arrays: one, two",
        )

    def test_several_images(self, tmp_path: Path) -> None:
        with tifffile.TiffWriter(tmp_path / "a.tif") as file:
            file.write(noise(7, 5))
            file.write(noise(8, 5))
        assert_refused(
            tmp_path / "a.tif", "holds 2 images, choose one with `series`: 0 ((7, 5)), 1 ((8, 5))"
        )

    @pytest.mark.parametrize(("colour_type", "samples"), [(2, 3), (4, 2), (6, 4)])
    def test_png_that_would_lose_bits(self, tmp_path: Path, colour_type: int, samples: int) -> None:
        write_png(tmp_path / "a.png", noise(7, 5, samples, dtype="u2"), colour_type)
        assert_refused(tmp_path / "a.png", "16-bit PNG", "save it as TIFF", channel=0)

    def test_the_hand_written_png_is_one(self, tmp_path: Path) -> None:
        image = noise(7, 5, dtype="u2")
        write_png(tmp_path / "a.png", image, 0)
        assert_reads(tmp_path / "a.png", image)

    @pytest.mark.parametrize(("name", "library"), [("a.png", "imageio"), ("a.tif", "tifffile")])
    def test_missing_library(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, library: str
    ) -> None:
        imageio.imwrite(tmp_path / name, noise(7, 5))
        for module in [m for m in sys.modules if m.partition(".")[0] == library]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(ImportError, match=rf"{library}: pip install 'napari-ecc\[io\]'"):
            read_image(tmp_path / name)


COLUMNS = {
    "input": np.array(["a.png", "b, \u00e9.png", 'c"\n.png']),
    "threshold": np.array([-np.inf, 0.1, np.inf], np.float32),
    "euler_number": np.array([-(2**62), 0, 2**53 + 1]),
}
METADATA = {"version": "1", "settings": {"range": [0, 1], "labels": None}}


class TestTables:
    def test_csv(self, tmp_path: Path) -> None:
        write_table(tmp_path / "t.csv", COLUMNS, metadata=METADATA)
        with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        assert header == list(COLUMNS)
        names, thresholds, values = zip(*rows, strict=True)
        assert list(names) == COLUMNS["input"].tolist()
        np.testing.assert_array_equal(np.array(thresholds, np.float64), COLUMNS["threshold"])
        assert [int(v) for v in values] == COLUMNS["euler_number"].tolist()

    def test_text_that_spreadsheets_would_run(self, tmp_path: Path) -> None:
        names = ["=1+1.png", "+a", "-a", "@a", "\ta", "a=1", "a\rb", "\rc"]
        numbers = np.arange(8) - 1
        write_table(tmp_path / "t.csv", {"input": np.array(names), "n": numbers})
        with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        assert header == ["input", "n"]
        escaped = ["'=1+1.png", "'+a", "'-a", "'@a", "'\ta", "a=1", "a\rb", "'\rc"]
        assert rows == [[name, str(n)] for name, n in zip(escaped, numbers, strict=True)]

    @pytest.mark.parametrize("suffix", TABLE_SUFFIXES)
    def test_names_that_are_not_unicode(self, tmp_path: Path, suffix: str) -> None:
        name = os.fsdecode(b"caf\xe9-\xc3\xa9.png")
        path = tmp_path / f"t{suffix}"
        write_table(path, {"input": np.array([name])}, metadata={"inputs": [name]})
        if suffix == ".csv":
            assert path.read_bytes() == b"input\ncaf\xe9-\xc3\xa9.png\n"
        elif suffix == ".json":
            assert json.loads(path.read_text())["columns"]["input"] == [name]
        else:
            assert parquet.read_table(path)["input"].to_pylist() == ["caf\\xe9-\u00e9.png"]

    def test_json(self, tmp_path: Path) -> None:
        write_table(tmp_path / "t.json", COLUMNS, metadata=METADATA)
        text = (tmp_path / "t.json").read_text(encoding="utf-8")
        table = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        assert table["metadata"] == METADATA
        assert table["columns"] == {
            "input": COLUMNS["input"].tolist(),
            "threshold": ["-inf", float(np.float32(0.1)), "inf"],
            "euler_number": COLUMNS["euler_number"].tolist(),
        }

    @pytest.mark.parametrize("dtype", ["u1", "i8", "u8", "f4", "f8", ">f4", "?"])
    def test_parquet(self, tmp_path: Path, dtype: str) -> None:
        columns = {**COLUMNS, "threshold": np.array([0, 1, 1], dtype)}
        write_table(tmp_path / "t.parquet", columns, metadata=METADATA)
        table = parquet.read_table(tmp_path / "t.parquet")
        assert table.column_names == list(columns)
        for name, expected in columns.items():
            np.testing.assert_array_equal(table[name].to_numpy(), expected)
        assert table["threshold"].to_numpy().dtype == np.dtype(dtype).newbyteorder("=")
        assert json.loads(table.schema.metadata[b"ecc"]) == METADATA

    @pytest.mark.parametrize("suffix", TABLE_SUFFIXES)
    def test_empty(self, tmp_path: Path, suffix: str) -> None:
        write_table(tmp_path / f"t{suffix}", {"threshold": np.empty(0)})
        assert (tmp_path / f"t{suffix}").stat().st_size > 0

    def test_columns_of_different_length(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="`columns` must be 1-D and of the same length"):
            write_table(tmp_path / "t.csv", {"a": [1], "b": [1, 2]})
        assert list(tmp_path.iterdir()) == []


class FullDisk:
    """Make writing, or bringing to the disk, fail as on a full one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
        def fail(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, where, fail)


class TestAtomicity:
    @pytest.mark.parametrize("suffix", [*TABLE_SUFFIXES, *FIGURE_SUFFIXES])
    @pytest.mark.parametrize("where", ["fsync", "replace"])
    @pytest.mark.parametrize("existed", [False, True])
    def test_full_disk(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        suffix: str,
        where: str,
        existed: bool,
    ) -> None:
        path = tmp_path / f"t{suffix}"
        if existed:
            path.write_text("old")
        FullDisk(monkeypatch, where)
        with pytest.raises(OSError, match="No space left on device") as caught:
            self.write(path)
        assert caught.value.filename == str(path)
        assert [p.name for p in tmp_path.iterdir()] == ([path.name] if existed else [])
        if existed:
            assert path.read_text() == "old"

    @staticmethod
    def write(path: Path) -> None:
        if path.suffix in TABLE_SUFFIXES:
            write_table(path, COLUMNS)
        else:
            from matplotlib.figure import Figure

            write_figure(path, Figure(figsize=(1, 1)))

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
    @pytest.mark.parametrize("suffix", TABLE_SUFFIXES)
    def test_no_write_succeeds(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
    ) -> None:
        path = tmp_path / f"t{suffix}"
        path.write_text("old")
        open_really = Path.open

        def open_full(self: Path, mode: str = "r", *rest: object, **named: object) -> object:
            if "x" in mode:
                open_really(self, mode).close()
                return open_really(Path("/dev/full"), "wb")
            return open_really(self, mode, *rest, **named)

        monkeypatch.setattr(Path, "open", open_full)
        with pytest.raises(OSError, match="No space left on device"):
            self.write(path)
        assert path.read_text() == "old"
        assert [p.name for p in tmp_path.iterdir()] == [path.name]

    @pytest.mark.skipif(os.name != "posix", reason="POSIX locks")
    def test_what_a_killed_process_has_left(self, tmp_path: Path) -> None:
        """It goes with the next write of that file; what is being written stays."""
        code = (
            "import sys, time\n"
            "from ecc_core.io import atomic_file\n"
            "with atomic_file(sys.argv[1]) as file:\n"
            "    print('open', flush=True)\n"
            "    time.sleep(60)"
        )
        path = tmp_path / "t[1].csv"
        command = [sys.executable, "-c", code, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            (left,) = tmp_path.iterdir()
            other = tmp_path / left.name.replace("t[1]", "t1")
            other.write_text("another file's")
            write_table(path, COLUMNS)
            assert left.exists()
            process.kill()
        assert left.exists()
        write_table(path, COLUMNS)
        assert set(tmp_path.iterdir()) == {path, other}

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_an_error_while_writing(self, tmp_path: Path, error: type[BaseException]) -> None:
        path = tmp_path / "t.csv"
        path.write_text("old")

        def write_half() -> None:
            with atomic_file(path) as file:
                file.write(b"half")
                file.flush()
                assert path.read_text() == "old"
                raise error

        with pytest.raises(error):
            write_half()
        assert path.read_text() == "old"
        assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]

    @pytest.mark.parametrize("suffix", [*TABLE_SUFFIXES, *FIGURE_SUFFIXES])
    def test_nothing_else_is_left(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / f"t{suffix}"
        path.write_text("old")
        self.write(path)
        assert [p.name for p in tmp_path.iterdir()] == [path.name]
        assert path.stat().st_size > 100

    def test_the_content_is_on_the_disk_before_the_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        events = []
        for name in ("fsync", "replace"):
            original = getattr(os, name)
            monkeypatch.setattr(
                os, name, lambda *a, name=name, f=original: (events.append(name), f(*a))[1]
            )
        write_table(tmp_path / "t.csv", COLUMNS)
        assert events[:2] == ["fsync", "replace"]

    @pytest.mark.skipif(os.name != "posix", reason="POSIX permissions and links")
    def test_permissions_and_links_are_the_usual(self, tmp_path: Path) -> None:
        (tmp_path / "plain").write_text("")
        (tmp_path / "real").mkdir()
        (tmp_path / "t.csv").symlink_to(tmp_path / "real" / "t.csv")
        write_table(tmp_path / "t.csv", COLUMNS)
        assert (tmp_path / "t.csv").is_symlink()
        written = tmp_path / "real" / "t.csv"
        assert written.stat().st_mode == (tmp_path / "plain").stat().st_mode


class TestCheckOutput:
    def test_good(self, tmp_path: Path) -> None:
        assert check_output(tmp_path / "t.CSV", TABLE_SUFFIXES) == tmp_path / "t.CSV"
        assert list(tmp_path.iterdir()) == []

    def test_suffix(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"must be one of \.png, \.pdf, \.svg"):
            check_output(tmp_path / "t.csv", FIGURE_SUFFIXES)

    def test_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="there is no folder"):
            check_output(tmp_path / "none" / "t.csv", TABLE_SUFFIXES)

    def test_not_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").mkdir()
        with pytest.raises(FileExistsError, match="not a regular file"):
            check_output(tmp_path / "t.csv", TABLE_SUFFIXES)

    def test_folder_not_writable(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(PermissionError, match="is not writable"):
            check_output(tmp_path / "t.csv", TABLE_SUFFIXES)
