"""Every command reads a file in the same way, or refuses it with the same line."""

import csv
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import imageio.v3 as imageio
import numcodecs
import numpy as np
import pytest
import tifffile
from io_helpers import write_hdf5, write_zarr
from skimage.color import rgb2gray

import ecc_core as ecc
from ecc_core._cli import batch
from ecc_core.cli import main

COMMANDS = ("curve", "stack", "batch", "transform", "info")
LEVELS = "0,64,128,255"


def noise(*shape: int, dtype: str = "u1", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape).astype(dtype)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run a command on an input; returns its exit code and what it says or writes."""

    def result(command: str, path: Path | str, *options: str) -> tuple[int, str]:
        out = tmp_path / ("out.npz" if command == "transform" else "out.csv")
        arguments = [command, str(path), *options]
        if command != "info":
            arguments += ["--out", str(out)]
        if command in ("curve", "stack", "batch"):
            arguments += ["--thresholds", LEVELS]
        code = main(arguments)
        output, errors = capsys.readouterr()
        if code:
            assert errors.count("\n") == 1
            assert not out.exists()
            return code, errors
        if command in ("curve", "stack", "batch"):
            output = out.read_text()
        out.unlink(missing_ok=True)
        return code, output

    return result


@pytest.fixture
def refused(run: Any) -> Callable[..., str]:
    """What every command says of an input, which is the same."""

    def message(path: Path | str, *options: str) -> str:
        said = set()
        for command in COMMANDS:
            code, line = run(command, path, *options)
            assert code == (1 if command == "batch" else 2), (command, line)
            said.add(line.removeprefix("ecc: ").partition(": ")[2])
        assert len(said) == 1, said
        return said.pop()

    return message


@pytest.fixture
def curves(run: Any) -> Callable[..., list[list[int]]]:
    """The curves of an input, which `curve`, `stack` and `batch` agree about."""

    def values(path: Path | str, *options: str) -> list[list[int]]:
        found = []
        for command in ("curve", "stack", "batch"):
            code, text = run(command, path, *options)
            assert code == 0, text
            rows = list(csv.DictReader(io.StringIO(text)))
            if command == "batch":
                found.append([[int(row[level]) for level in LEVELS.split(",")] for row in rows])
            else:
                flat = [int(row["euler_number"]) for row in rows]
                found.append([flat[i : i + 4] for i in range(0, len(flat), 4)])
        assert found[0] == found[1] == found[2]
        return found[0]

    return values


def curve_of(image: np.ndarray) -> list[int]:
    return ecc.euler_curve(image, [int(t) for t in LEVELS.split(",")]).values.tolist()


class TestFormats:
    @pytest.mark.parametrize("suffix", [".png", ".tif", ".npy", ".npz", ".h5", ".zarr", ".zip"])
    def test_every_format_in_every_command(self, curves, run, tmp_path, suffix):
        path, image = tmp_path / f"a{suffix}", noise(20, 17)
        write = {".npy": np.save, ".npz": np.savez, ".h5": write_hdf5}.get(suffix, imageio.imwrite)
        if suffix in (".zarr", ".zip"):
            write = write_zarr
        write(path, image)
        assert curves(path) == [curve_of(image)]
        assert "shape   20 x 17 (YX)" in run("info", path)[1]
        assert run("transform", path)[0] == 0

    @pytest.mark.parametrize("pack", [False, True])
    def test_zarr_in_an_archive(self, curves, tmp_path, pack):
        """At its root, or in a folder there as `zip -r` makes it."""
        image = noise(9, 20, 17)
        write_zarr(tmp_path / "made" / "a.zarr", image)
        root = tmp_path / "made" if pack else tmp_path / "made" / "a.zarr"
        shutil.make_archive(str(tmp_path / "a.zarr"), "zip", root)
        assert curves(tmp_path / "a.zarr.zip") == [curve_of(image)]

    def test_a_part(self, curves, tmp_path):
        image = noise(3, 2, 9, 8)
        tifffile.imwrite(tmp_path / "a.tif", image, imagej=True, metadata={"axes": "TCYX"})
        path = tmp_path / "a.tif"
        assert curves(path, "--time", "1", "--channel", "0") == [curve_of(image[1, 0])]
        assert curves(path, "--time", "1:3", "--channel", "1", "--roi", "2:,:5") == [
            curve_of(plane[2:, :5]) for plane in image[1:, 1]
        ]

    def test_gray(self, run, curves, tmp_path):
        colours = noise(20, 17, 3)
        imageio.imwrite(tmp_path / "a.png", colours)
        (green,) = curves(tmp_path / "a.png", "--channel", "g")
        assert green == curve_of(colours[..., 1])
        gray = rgb2gray(colours)
        for command in ("curve", "stack"):
            _, text = run(command, tmp_path / "a.png", "--channel", "gray")
            expected = ecc.euler_curve(gray, [0, 64, 128, 255]).values.tolist()
            found = [int(row["euler_number"]) for row in csv.DictReader(io.StringIO(text))]
            assert found == expected

    def test_pyramids_and_series(self, curves, refused, tmp_path):
        big, small, other = noise(32, 32), noise(16, 16, seed=1), noise(5, 6, seed=2)
        with tifffile.TiffWriter(tmp_path / "a.svs") as file:
            file.write(big, subifds=1, tile=(16, 16))
            file.write(small, subfiletype=1, tile=(16, 16))
            file.write(other)
        path = tmp_path / "a.svs"
        assert curves(path, "--series", "0") == [curve_of(big)]
        assert curves(path, "--series", "0", "--level", "1") == [curve_of(small)]
        assert curves(path, "--series", "1") == [curve_of(other)]
        assert "holds 2 images, choose one with `series`" in refused(path)
        assert "has levels 0 to 1, got level 2" in refused(path, "--series", "0", "--level", "2")


class TestTime:
    @pytest.mark.parametrize("kind", ["imagej", "ome"])
    def test_a_movie_is_a_series_of_curves(self, curves, run, tmp_path, kind):
        movie = noise(4, 9, 8)
        path = tmp_path / "a.ome.tif" if kind == "ome" else tmp_path / "a.tif"
        tifffile.imwrite(path, movie, **{kind: True}, metadata={"axes": "TYX"})
        assert curves(path) == [curve_of(frame) for frame in movie]
        _, text = run("curve", path, "--time", "2:")
        assert [row["t"] for row in csv.DictReader(io.StringIO(text))] == ["2"] * 4 + ["3"] * 4
        assert "one for each of 4 along T" in run("info", path)[1]
        assert "choose one with --time" in run("transform", path)[1]
        assert run("transform", path, "--time", "1")[0] == 0

    def test_labels_mask_and_smoothing_of_a_movie(self, run, tmp_path):
        movie, labels = noise(3, 9, 8), noise(3, 9, 8, seed=1) // 100
        tifffile.imwrite(tmp_path / "a.tif", movie, imagej=True, metadata={"axes": "TYX"})
        np.save(tmp_path / "labels.npy", labels)
        np.save(tmp_path / "mask.npy", labels[0])
        expected = [
            row
            for frame, own in zip(movie, labels, strict=True)
            for row in ecc.region_curves(frame, own, [0, 64, 128, 255]).values.ravel().tolist()
        ]
        for command in ("curve", "stack"):
            _, text = run(command, tmp_path / "a.tif", "--labels", str(tmp_path / "labels.npy"))
            table = list(csv.DictReader(io.StringIO(text)))
            assert [int(row["euler_number"]) for row in table] == expected
        _, text = run("curve", tmp_path / "a.tif", "--mask", str(tmp_path / "mask.npy"))
        table = list(csv.DictReader(io.StringIO(text)))
        expected = [
            value
            for frame in movie
            for value in ecc.euler_curve(
                frame, [0, 64, 128, 255], mask=labels[0] != 0
            ).values.tolist()
        ]
        assert [int(row["euler_number"]) for row in table] == expected
        _, smooth = run("curve", tmp_path / "a.tif", "--smooth", "1")
        np.save(tmp_path / "frame.npy", movie[1])
        _, alone = run("curve", tmp_path / "frame.npy", "--smooth", "1")
        numbers = [
            [row["euler_number"] for row in csv.DictReader(io.StringIO(text))]
            for text in (smooth, alone)
        ]
        assert numbers[0][4:8] == numbers[1]

    def test_arrays_of_four_axes_say_nothing(self, run, curves, tmp_path):
        image = noise(2, 3, 4, 5)
        np.save(tmp_path / "a.npy", image)
        for command in ("curve", "stack", "transform"):
            assert (
                "nothing says what the axes of shape (2, 3, 4, 5) are"
                in run(command, tmp_path / "a.npy")[1]
            )
        assert curves(tmp_path / "a.npy", "--axes", "TZYX") == [curve_of(i) for i in image]


class TestTiff:
    @pytest.mark.parametrize("kind", ["imagej", "ome", "shaped"])
    @pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
    def test_truncated_stacks(self, refused, tmp_path, kind, share):
        path = tmp_path / ("a.ome.tif" if kind == "ome" else "a.tif")
        named = {"imagej": True} if kind == "imagej" else {}
        tifffile.imwrite(path, noise(9, 40, 30), **named, compression=None)
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])
        assert str(path) in refused(path)

    def test_a_missing_file_of_an_image_in_several(self, refused, tmp_path):
        path = write_ome_pair(tmp_path)
        (tmp_path / "b.ome.tif").unlink()
        assert "other files, which are missing" in refused(path)

    def test_parts_in_other_folders_are_not_read(self, refused, tmp_path):
        (tmp_path / "x").mkdir()
        path = write_ome_pair(tmp_path / "x", other="../b.ome.tif")
        assert (tmp_path / "b.ome.tif").exists()
        assert "its parts lie outside of its folder, in ../b.ome.tif" in refused(path)

    def test_strips_of_no_rows(self, refused, tmp_path):
        path = tmp_path / "a.tif"
        tifffile.imwrite(path, noise(40, 30), rowsperstrip=8, compression="zlib")
        with tifffile.TiffFile(path, mode="r+") as file:
            file.pages[0].tags["RowsPerStrip"].overwrite(0)
        assert str(path) in refused(path)


def write_ome_pair(folder: Path, other: str = "b.ome.tif") -> Path:
    """Two planes in two files."""
    ids = {"a.ome.tif": "urn:uuid:a", other: "urn:uuid:b"}
    planes = "".join(
        f'<TiffData FirstZ="{z}" IFD="0" PlaneCount="1"><UUID FileName="{name}">{ids[name]}</UUID>'
        "</TiffData>"
        for z, name in enumerate(ids)
    )
    for name, uuid in ids.items():
        xml = (
            '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" '
            f'UUID="{uuid}"><Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYZCT" '
            'Type="uint8" SizeX="8" SizeY="9" SizeZ="2" SizeC="1" SizeT="1">'
            f'<Channel ID="Channel:0:0" SamplesPerPixel="1"/>{planes}</Pixels></Image></OME>'
        )
        tifffile.imwrite(folder / name, noise(9, 8), description=xml, metadata=None)
    return folder / "a.ome.tif"


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
        assert curves(folder) == [curve_of(image)]
        assert curve_of(image) != curve_of(image[sorted(range(12), key=lambda i: str(i + 1))])

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


class TestForeignCode:
    @pytest.mark.parametrize("where", ["filters", "compressor"])
    def test_zarr_arrays_are_not_unpickled(self, refused, tmp_path, where):
        class Trap:
            def __reduce__(self) -> tuple[object, ...]:
                return Path.touch, (tmp_path / "loaded",)

        path = tmp_path / "a.zarr"
        path.mkdir()
        codec = {"id": "pickle", "protocol": 5}
        described = {
            "zarr_format": 2,
            "shape": [4, 4],
            "chunks": [4, 4],
            "dtype": "|u1",
            "order": "C",
            "fill_value": 0,
            "filters": None,
            "compressor": None,
        }
        described[where] = [codec] if where == "filters" else codec
        (path / ".zarray").write_text(json.dumps(described))
        trap = np.empty(1, object)
        trap[0] = Trap()
        (path / "0.0").write_bytes(numcodecs.Pickle().encode(trap))
        assert "pickled Python objects, which are never loaded" in refused(path)
        assert not (tmp_path / "loaded").exists()

    def test_hdf5_values_in_other_files(self, refused, tmp_path):
        noise(4, 5).tofile(tmp_path / "secret.bin")
        write_hdf5(tmp_path / "secret.h5", noise(4, 5))
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file.create_dataset("raw", (4, 5), "u1", external=str(tmp_path / "secret.bin"))
        layout = h5py.VirtualLayout((4, 5), "u1")
        layout[...] = h5py.VirtualSource(tmp_path / "secret.h5", "raw", (4, 5))
        with h5py.File(tmp_path / "b.h5", "w") as file:
            file.create_virtual_dataset("raw", layout)
        for name in ("a.h5", "b.h5"):
            assert "the values of raw lie in other files, which are not read" in refused(
                tmp_path / name
            )

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_a_folder_in_the_place_of_a_chunk(self, refused, tmp_path, zarr_format):
        write_zarr(tmp_path / "a.zarr", noise(9, 9), zarr_format=zarr_format)
        chunk = tmp_path / "a.zarr" / ("0.0" if zarr_format == 2 else "c/0/0")
        chunk.unlink()
        chunk.mkdir()
        assert f"{chunk} is a folder" in refused(tmp_path / "a.zarr")

    def test_zarr_chunks_of_size_0(self, refused, tmp_path):
        write_zarr(tmp_path / "a.zarr", noise(9, 9))
        file = tmp_path / "a.zarr" / "zarr.json"
        described = json.loads(file.read_text())
        described["chunk_grid"]["configuration"]["chunk_shape"] = [0, 8]
        file.write_text(json.dumps(described))
        assert str(tmp_path / "a.zarr") in refused(tmp_path / "a.zarr")


class TestBatch:
    def test_it_finishes_whatever_one_image_does(self, tmp_path, monkeypatch, capsys):
        for name in "abc":
            np.save(tmp_path / f"{name}.npy", noise(9, 8))
        compute = batch.curves_of

        def fail(stack: Any, *rest: Any, **named: Any) -> Any:
            if Path(stack.blocks.image.source.path).stem == "b":
                raise ZeroDivisionError("division by zero")
            return compute(stack, *rest, **named)

        monkeypatch.setattr(batch, "curves_of", fail)
        out = tmp_path / "out.csv"
        command = ["batch", str(tmp_path / "*.npy"), "--out", str(out), "--thresholds", LEVELS]
        assert main(command) == 1
        assert capsys.readouterr().err == f"ecc: failed: {tmp_path / 'b.npy'}: division by zero\n"
        with out.open() as file:
            assert [Path(row["input"]).stem for row in csv.DictReader(file)] == ["a", "c"]

    def test_names_that_are_not_unicode(self, tmp_path):
        path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.npy")
        np.save(path, noise(9, 8))
        for suffix in (".csv", ".json", ".parquet"):
            out = tmp_path / f"out{suffix}"
            command = ["batch", path, "--out", str(out), "--thresholds", LEVELS]
            assert main(command) == 0
            assert out.stat().st_size > 0
        assert os.fsencode(path) in (tmp_path / "out.csv").read_bytes()


class TestSpacing:
    """It comes from the file unless an option says otherwise."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / "a.ome.tif"
        sizes = {f"PhysicalSize{axis}": size for axis, size in (("X", 0.5), ("Y", 0.25))}
        tifffile.imwrite(path, noise(9, 8) // 128, metadata={"axes": "YX", **sizes})
        return path

    def test_info(self, path, run):
        assert "  spacing Y 0.25, X 0.5 micrometer\n" in run("info", path)[1]

    @pytest.mark.parametrize("options", [[], ["--spacing", "2,3"]])
    def test_transform(self, path, tmp_path, capsys, options):
        out = tmp_path / "out.npz"
        assert main(["transform", str(path), "--out", str(out), *options]) == 0
        said = capsys.readouterr().err
        assert said == ("" if options else f"ecc: spacing 0.25,0.5 micrometer, from {path}\n")
        spacing = (2, 3) if options else (0.25, 0.5)
        expected = ecc.euler_transform(tifffile.imread(path) != 0, spacing=spacing)
        with np.load(out) as found:
            np.testing.assert_array_equal(found["heights"], expected.heights)
            np.testing.assert_array_equal(found["values"], expected.values)

    @pytest.mark.parametrize("options", [[], ["--spacing", "2,3"]])
    def test_directions(self, path, tmp_path, options):
        out = tmp_path / "out.json"
        command = ["stack", str(path), "--out", str(out), "--thresholds", "0,1,2"]
        assert main([*command, "--direction", "1,1", *options]) == 0
        spacing = [2.0, 3.0] if options else [0.25, 0.5]
        table = json.loads(out.read_text())
        assert table["metadata"]["inputs"][0]["spacing"] == spacing
        expected = ecc.euler_curve(
            tifffile.imread(path), [0, 1, 2], direction=(1, 1), spacing=spacing
        )
        assert table["columns"]["euler_number"] == expected.values.tolist()
