"""The command `ecc`: tables hold what `euler_curve` returns, no input brings a traceback."""

import csv
import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import imageio.v3 as imageio
import numpy as np
import pyarrow.parquet as parquet
import pytest
import tifffile
from PIL import Image
from scipy.ndimage import gaussian_filter

import ecc_core as ecc
from ecc_core._cli.curve import _read as read
from ecc_core.cli import main

Rows = list[dict[str, str]]


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


@pytest.fixture
def image() -> np.ndarray:
    return noise(12, 9)


@pytest.fixture
def image_file(tmp_path: Path, image: np.ndarray) -> str:
    path = tmp_path / "image.png"
    imageio.imwrite(path, image)
    return str(path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `ecc curve` in this process and return the rows that it prints."""

    def rows(*arguments: object) -> Rows:
        assert main(["curve", *map(str, arguments)]) == 0
        output, errors = capsys.readouterr()
        assert errors == ""
        return list(csv.DictReader(io.StringIO(output)))

    return rows


@pytest.fixture
def refuse(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `ecc` with something it must refuse and return what it says."""

    def message(*arguments: object) -> str:
        try:
            code = main([*map(str, arguments)])
        except SystemExit as exit_:  # wrong arguments
            code = exit_.code
        output, errors = capsys.readouterr()
        assert code == 2
        assert output == ""
        assert re.fullmatch(r"ecc( curve| info)?: error: .*\n", errors), errors
        return errors

    return message


def assert_rows_are(rows: Rows, curve: ecc.EulerCurve, path: object) -> None:
    assert {row["input"] for row in rows} == {str(path)}
    assert [float(row["threshold"]) for row in rows] == curve.thresholds.tolist()
    assert [int(row["euler_number"]) for row in rows] == curve.values.tolist()


class TestCurve:
    def test_default(self, run: Any, image_file: str, image: np.ndarray) -> None:
        rows = run(image_file)
        assert list(rows[0]) == ["input", "threshold", "euler_number"]
        assert len(rows) == 256
        assert_rows_are(rows, ecc.euler_curve(image), image_file)

    @pytest.mark.parametrize(
        ("name", "shape"),
        [
            ("a.tif", (7, 9)),
            ("a.tif", (4, 5, 6)),
            ("a.npy", (50,)),
            ("a.npy", (4, 5, 6)),
            ("a.npz", (7, 9)),
        ],
    )
    def test_types_and_axes(
        self, run: Any, tmp_path: Path, name: str, shape: tuple[int, ...]
    ) -> None:
        path, image = tmp_path / name, noise(*shape)
        if path.suffix == ".tif":
            tifffile.imwrite(path, image, photometric="minisblack")
        else:
            {".npy": np.save, ".npz": np.savez}[path.suffix](path, image)
        assert_rows_are(run(path), ecc.euler_curve(image), path)

    @pytest.mark.parametrize(
        ("text", "thresholds"),
        [
            ("17", 17),
            ("1", 1),
            ("exact", "exact"),
            ("3,50,200", [3, 50, 200]),
            ("100,", [100]),
            ("-3,", [-3]),
            ("-1,99.5,300", [-1, 99.5, 300]),
            ("99.5", [99.5]),
            ("-inf,inf", [-np.inf, np.inf]),
        ],
    )
    def test_thresholds(
        self, run: Any, image_file: str, image: np.ndarray, text: str, thresholds: Any
    ) -> None:
        expected = ecc.euler_curve(image, thresholds)
        assert_rows_are(run(image_file, "--thresholds", text), expected, image_file)

    def test_integer_thresholds_stay_integers(self, run: Any, tmp_path: Path) -> None:
        image = np.array([2**53, 2**53 + 1, 2**53 + 2])
        np.save(tmp_path / "a.npy", image)
        rows = run(tmp_path / "a.npy", "--thresholds", f"{2**53},{2**53 + 1}", "--superlevel")
        assert [row["threshold"] for row in rows] == [str(2**53), str(2**53 + 1)]
        expected = ecc.euler_curve(image, np.array([2**53, 2**53 + 1]), superlevel=True)
        assert [int(row["euler_number"]) for row in rows] == expected.values.tolist()

    @pytest.mark.parametrize("text", ["20,60", "-20.5,300", "-20.5,-1"])
    def test_range(self, run: Any, image_file: str, image: np.ndarray, text: str) -> None:
        low, high = map(float, text.split(","))
        expected = ecc.euler_curve(image, 5, range=(low, high))
        rows = run(image_file, "--thresholds", 5, "--range", text)
        assert_rows_are(rows, expected, image_file)
        assert rows == run(image_file, "--thresholds=5", f"--range={text}")

    @pytest.mark.parametrize("connectivity", [1, 2])
    @pytest.mark.parametrize("superlevel", [False, True])
    def test_connectivity_and_superlevel(
        self, run: Any, image_file: str, image: np.ndarray, connectivity: int, superlevel: bool
    ) -> None:
        flags = ["--connectivity", connectivity, *(["--superlevel"] if superlevel else [])]
        expected = ecc.euler_curve(image, connectivity=connectivity, superlevel=superlevel)
        assert_rows_are(run(image_file, *flags), expected, image_file)

    def test_mask(self, run: Any, image_file: str, image: np.ndarray, tmp_path: Path) -> None:
        mask = noise(12, 9, seed=1) // 100  # 0, 1 and 2
        tifffile.imwrite(tmp_path / "mask.tif", mask)
        expected = ecc.euler_curve(image, mask=mask > 0)
        assert expected.values.tolist() != ecc.euler_curve(image).values.tolist()
        assert_rows_are(run(image_file, "--mask", tmp_path / "mask.tif"), expected, image_file)

    @pytest.mark.parametrize("masked", [False, True])
    def test_labels(
        self, run: Any, image_file: str, image: np.ndarray, tmp_path: Path, masked: bool
    ) -> None:
        labels = noise(12, 9, seed=1) // 60
        mask = noise(12, 9, seed=2) > 60
        np.save(tmp_path / "labels.npy", labels)
        np.save(tmp_path / "mask.npy", mask)
        flags = ["--labels", tmp_path / "labels.npy", "--thresholds", "10,100,255"]
        flags += ["--mask", tmp_path / "mask.npy"] if masked else []
        rows = run(image_file, *flags)
        assert list(rows[0]) == ["input", "label", "threshold", "euler_number"]
        for label in (1, 2, 3, 4):
            own = (labels == label) & (mask if masked else True)
            expected = ecc.euler_curve(image, [10, 100, 255], mask=own)
            assert_rows_are([r for r in rows if r["label"] == str(label)], expected, image_file)
        assert len(rows) == 12

    @pytest.mark.parametrize("labelled", [False, True])
    def test_nan(self, run: Any, refuse: Any, tmp_path: Path, labelled: bool) -> None:
        image = noise(12, 9).astype(np.float32)
        image[3, 4] = image[0, 0] = np.nan
        np.save(tmp_path / "a.npy", image)
        labels = np.ones(image.shape, np.uint8)
        np.save(tmp_path / "labels.npy", labels)
        flags = [tmp_path / "a.npy", "--thresholds", "0,99,255"]
        flags += ["--labels", tmp_path / "labels.npy"] if labelled else []
        assert "NaN" in refuse("curve", *flags)
        expected = ecc.euler_curve(image, [0, 99, 255], nan="omit")
        assert_rows_are(run(*flags, "--nan", "omit"), expected, tmp_path / "a.npy")

    def test_channel_and_axes(self, run: Any, tmp_path: Path) -> None:
        image = noise(7, 5, 3)
        imageio.imwrite(tmp_path / "a.png", image)
        np.save(tmp_path / "a.npy", image)
        expected = ecc.euler_curve(image[..., 1])
        for flags in (["a.png", "--channel", "g"], ["a.npy", "--axes", "YXC", "--channel", 1]):
            path = tmp_path / flags[0]
            assert_rows_are(run(path, *flags[1:]), expected, path)

    @pytest.mark.parametrize(
        ("dtype", "precision"),
        [("u1", "f4"), ("i2", "f4"), ("f4", "f4"), ("i4", "f8"), ("f8", "f8")],
    )
    def test_smooth(
        self, run: Any, image: np.ndarray, tmp_path: Path, dtype: str, precision: str
    ) -> None:
        np.save(tmp_path / "a.npy", image.astype(dtype))
        expected = ecc.euler_curve(gaussian_filter(image.astype(precision), 1.5))
        assert_rows_are(run(tmp_path / "a.npy", "--smooth", 1.5), expected, tmp_path / "a.npy")

    def test_binary_image(self, run: Any, image: np.ndarray, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", image > 99)
        rows = run(tmp_path / "a.npy", "--thresholds", "exact")
        assert {row["threshold"] for row in rows} <= {"0", "1"}
        assert rows[-1]["euler_number"] == "1"

    def test_several_inputs(self, run: Any, tmp_path: Path) -> None:
        images = {tmp_path / f"{i}.npy": noise(9, 7 + i, seed=i) for i in range(3)}
        for path, image in images.items():
            np.save(path, image)
        rows = run(*images, "--thresholds", 8)
        assert [row["input"] for row in rows] == [str(p) for p in images for _ in range(8)]
        for path, image in images.items():
            own = [row for row in rows if row["input"] == str(path)]
            assert_rows_are(own, ecc.euler_curve(image, 8), path)

    def test_exact_thresholds_of_several_types(self, run: Any, refuse: Any, tmp_path: Path) -> None:
        levels = {"i8": 2**53 + 1, "u1": 7, "f4": 0.5}
        for dtype, level in levels.items():
            np.save(tmp_path / f"{dtype}.npy", np.array([[level]], dtype))
        small = run(tmp_path / "u1.npy", tmp_path / "f4.npy", "--thresholds", "exact")
        assert [float(row["threshold"]) for row in small] == [7, 0.5]
        message = refuse("curve", tmp_path / "i8.npy", tmp_path / "f4.npy", "--thresholds", "exact")
        assert "float32, int64 do not fit into one table exactly" in message


class TestOutput:
    def test_csv_is_what_stdout_gets(
        self, capsys: pytest.CaptureFixture[str], image_file: str, tmp_path: Path
    ) -> None:
        assert main(["curve", image_file]) == 0
        printed = capsys.readouterr().out
        assert main(["curve", image_file, "--out", str(tmp_path / "c.csv")]) == 0
        assert capsys.readouterr() == ("", "")
        assert (tmp_path / "c.csv").read_text() == printed

    @pytest.mark.parametrize("suffix", [".json", ".parquet"])
    def test_settings_are_kept(
        self, image_file: str, image: np.ndarray, tmp_path: Path, suffix: str
    ) -> None:
        path = tmp_path / f"c{suffix}"
        flags = ["--thresholds", "1,2.5,inf", "--connectivity", "1", "--out", str(path)]
        assert main(["curve", image_file, *flags]) == 0
        if suffix == ".json":
            table = json.loads(path.read_text())
            columns, metadata = table["columns"], table["metadata"]
        else:
            table = parquet.read_table(path)
            columns, metadata = table.to_pydict(), json.loads(table.schema.metadata[b"ecc"])
        expected = ecc.euler_curve(image, [1, 2.5, np.inf], connectivity=1)
        assert columns["input"] == [image_file] * 3
        assert [float(t) for t in columns["threshold"]] == [1, 2.5, np.inf]
        assert columns["euler_number"] == expected.values.tolist()
        (found,) = metadata["inputs"]
        assert found.pop("result")["facts"] == json.loads(json.dumps(expected.facts))
        assert metadata == {
            "software": f"napari-ecc {version('napari-ecc')}",
            "settings": {
                "thresholds": [1.0, 2.5, "inf"],
                "range": None,
                "connectivity": 1,
                "superlevel": False,
                "betti": False,
                "labels": None,
                "mask": None,
                "nan": "raise",
                "smooth": None,
                "series": None,
                "level": 0,
                "axes": None,
                "channel": None,
                "time": None,
                "roi": None,
            },
            "inputs": [{"path": image_file, "axes": "YX", "shape": [12, 9], "dtype": "uint8"}],
        }

    @pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
    def test_plot(self, run: Any, image_file: str, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / f"c{suffix}"
        assert len(run(image_file, "--plot", path)) == 256
        start = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}[suffix]
        assert path.read_bytes().startswith(start)

    def test_plot_names_every_curve(
        self, monkeypatch: pytest.MonkeyPatch, image_file: str, tmp_path: Path
    ) -> None:
        import ecc_core.plotting

        names: list[list[str]] = []
        original = ecc_core.plotting.plot_curves
        monkeypatch.setattr(
            ecc_core.plotting,
            "plot_curves",
            lambda curves, **options: (names.append(list(curves)), original(curves, **options))[1],
        )
        other = tmp_path / "folder" / "image.png"
        other.parent.mkdir()
        imageio.imwrite(other, noise(12, 9, seed=3))
        np.save(tmp_path / "labels.npy", np.repeat([[1], [7]], 6, axis=0) * np.ones((1, 9), int))
        plot = ["--plot", str(tmp_path / "c.png"), "--out", str(tmp_path / "c.csv")]
        labels = ["--labels", str(tmp_path / "labels.npy")]
        assert main(["curve", image_file, *plot]) == 0
        assert main(["curve", image_file, str(other), *plot]) == 0
        assert main(["curve", image_file, *plot, *labels]) == 0
        assert names == [["image.png"], [image_file, str(other)], ["label 1", "label 7"]]

    def test_full_disk(
        self, monkeypatch: pytest.MonkeyPatch, refuse: Any, image_file: str, tmp_path: Path
    ) -> None:
        path = tmp_path / "c.csv"
        path.write_text("old")

        def fail(_: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", fail)
        message = refuse("curve", image_file, "--out", path)
        assert message == f"ecc: error: {path}: No space left on device\n"
        assert path.read_text() == "old"
        assert sorted(p.name for p in tmp_path.iterdir()) == ["c.csv", "image.png"]

    @pytest.mark.parametrize(
        ("flag", "name", "words"),
        [
            ("--out", "c.txt", "must be one of .csv, .parquet, .json"),
            ("--plot", "c.csv", "must be one of .png, .pdf, .svg"),
            ("--out", "none/c.csv", "there is no folder"),
            ("--out", "folder.csv", "not a regular file"),
        ],
    )
    def test_refused_before_any_work(
        self, refuse: Any, tmp_path: Path, flag: str, name: str, words: str
    ) -> None:
        (tmp_path / "folder.csv").mkdir()
        message = refuse("curve", tmp_path / "not there.png", flag, tmp_path / name)
        assert words in message
        assert "not there" not in message

    def test_inputs_are_not_overwritten(self, refuse: Any, image_file: str, tmp_path: Path) -> None:
        content = Path(image_file).read_bytes()
        link = tmp_path / "link.png"
        link.symlink_to(image_file)
        for plot in (image_file, link):
            assert "would overwrite" in refuse("curve", image_file, "--plot", plot)
        np.save(tmp_path / "a.npy", noise(12, 9))
        assert "would overwrite" in refuse(
            "curve", tmp_path / "a.npy", "--mask", image_file, "--plot", image_file
        )
        assert Path(image_file).read_bytes() == content

    def test_nothing_is_written_if_one_input_is_bad(
        self, refuse: Any, image_file: str, tmp_path: Path
    ) -> None:
        flags = ["--out", tmp_path / "c.csv", "--plot", tmp_path / "c.png"]
        assert "missing.png: no such file" in refuse("curve", image_file, "missing.png", *flags)
        assert [p.name for p in tmp_path.iterdir()] == ["image.png"]


class TestBadInput:
    @pytest.mark.parametrize("command", ["curve", "info"])
    @pytest.mark.parametrize("name", ["cut.png", "cut.jpg", "cut.tif", "cut.npy", "cut.npz"])
    def test_truncated(self, refuse: Any, tmp_path: Path, command: str, name: str) -> None:
        path, image = tmp_path / name, noise(40, 50)
        write = {".npy": np.save, ".npz": np.savez}.get(path.suffix, imageio.imwrite)
        write(path, image)
        path.write_bytes(path.read_bytes()[:-300])
        assert refuse(command, path).startswith(f"ecc: error: {path}: ")

    @pytest.mark.parametrize("command", ["curve", "info"])
    def test_not_an_image(self, refuse: Any, tmp_path: Path, command: str) -> None:
        (tmp_path / "text.png").write_text("no image")
        (tmp_path / "folder.png").mkdir()
        np.save(tmp_path / "pickled.npy", np.array([{}], dtype=object), allow_pickle=True)
        assert "not a PNG or JPEG image" in refuse(command, tmp_path / "text.png")
        assert "neither a Zarr image nor image files" in refuse(command, tmp_path / "folder.png")
        assert "no such file" in refuse(command, tmp_path / "none.png")
        assert "Python objects" in refuse(command, tmp_path / "pickled.npy")
        assert "type not supported" in refuse(command, __file__)

    def test_colours(self, refuse: Any, tmp_path: Path) -> None:
        imageio.imwrite(tmp_path / "a.png", noise(7, 5, 3))
        assert "choose one with `channel`: 0 to 2, r, g, b, gray" in refuse(
            "curve", tmp_path / "a.png"
        )

    @pytest.mark.parametrize(
        ("array", "words"),
        [
            (np.float64(3), "shape ()"),
            (np.zeros((2, 2, 2, 2)), "shape (2, 2, 2, 2)"),
            (np.zeros((0, 5)), "`range`"),
            (np.full((3, 3), np.nan), "NaN"),
            (np.zeros((3, 3), complex), "complex128"),
            (np.full((3, 3), "a"), "<U1"),
        ],
    )
    def test_arrays_without_a_curve(
        self, refuse: Any, tmp_path: Path, array: np.ndarray, words: str
    ) -> None:
        np.save(tmp_path / "a.npy", array)
        message = refuse("curve", tmp_path / "a.npy")
        assert message.startswith(f"ecc: error: {tmp_path / 'a.npy'}: ")
        assert words in message

    @pytest.mark.parametrize(
        ("flags", "words"),
        [
            (["--thresholds", "9,1"], "`thresholds`"),
            (["--thresholds", "1,nan"], "`thresholds`"),
            (["--thresholds", "0"], "must be how many"),
            (["--thresholds", "some"], "must be how many, exact, or numbers"),
            (["--thresholds", "1,,2"], "must be how many, exact, or numbers"),
            (["--thresholds", "-3"], "must be how many"),
            (["--range", "1"], "must be two numbers lo,hi, got '1'"),
            (["--range", "1,2,3"], "must be two numbers lo,hi"),
            (["--range", "5,1"], "`range`"),
            (["--range", "0,1", "--thresholds", "exact"], "`range`"),
            (["--connectivity", "3"], "`connectivity` must be 1 or 2 for a 2-D image, got 3"),
            (["--connectivity", "x"], "invalid int value: 'x'"),
            (["--smooth", "0"], "must be a positive number of pixels, got '0'"),
            (["--smooth", "x"], "must be a positive number of pixels"),
            (["--smooth", "nan"], "must be a positive number of pixels"),
            (["--nan", "drop"], "invalid choice: 'drop'"),
            (["--channel", "0"], "`channel` must be left out"),
            (["--axes", "X"], "`axes` must be one letter per axis"),
            (["--conn", "1"], "unrecognized arguments"),
        ],
    )
    def test_options(self, refuse: Any, image_file: str, flags: list[str], words: str) -> None:
        assert words in refuse("curve", image_file, *flags)

    def test_no_arguments(self, refuse: Any) -> None:
        assert "COMMAND" in refuse()
        assert "INPUT" in refuse("curve")
        assert "invalid choice: 'frob'" in refuse("frob")

    @pytest.mark.parametrize("flag", ["--mask", "--labels"])
    def test_mask_and_labels(self, refuse: Any, image_file: str, tmp_path: Path, flag: str) -> None:
        np.save(tmp_path / "other.npy", np.ones((3, 3), np.uint8))
        imageio.imwrite(tmp_path / "colour.png", noise(12, 9, 3))
        np.save(tmp_path / "negative.npy", np.full((12, 9), -1))
        np.save(tmp_path / "float.npy", np.ones((12, 9)))
        assert f"{flag} must have the image's shape (12, 9), got (3, 3)" in refuse(
            "curve", image_file, flag, tmp_path / "other.npy"
        )
        assert "colour.png: a mask or label image must have one channel" in refuse(
            "curve", image_file, flag, tmp_path / "colour.png"
        )
        assert "none.png: no such file" in refuse("curve", image_file, flag, "none.png")
        if flag == "--labels":
            for name in ("negative", "float"):
                assert "`labels`" in refuse("curve", image_file, flag, tmp_path / f"{name}.npy")

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_smoothing_would_spread(self, refuse: Any, tmp_path: Path, bad: float) -> None:
        np.save(tmp_path / "a.npy", np.array([[0.0, bad], [1.0, 2.0]]))
        assert "--smooth needs an image without NaN and infinity" in refuse(
            "curve", tmp_path / "a.npy", "--smooth", 1
        )

    def test_missing_extra(
        self, refuse: Any, monkeypatch: pytest.MonkeyPatch, image_file: str, tmp_path: Path
    ) -> None:
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

    def test_too_little_memory(
        self, refuse: Any, monkeypatch: pytest.MonkeyPatch, image_file: str
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise MemoryError("Unable to allocate 9 TiB")

        monkeypatch.setattr("ecc_core.curves.euler_curve", fail)
        assert "not enough memory: Unable to allocate 9 TiB" in refuse("curve", image_file)


class TestInfo:
    def test_image(self, capsys: pytest.CaptureFixture[str], image_file: str) -> None:
        assert main(["info", image_file]) == 0
        low, high = noise(12, 9).min(), noise(12, 9).max()
        assert capsys.readouterr().out.splitlines() == [
            image_file,
            "  shape   12 x 9 (YX)",
            "  dtype   uint8",
            f"  range   {low} to {high}",
            f"  curve   256 thresholds from {low} to {high}, 8-connected, sublevel sets",
        ]

    def test_floats(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        image = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 4
        image[0, 0, :3] = np.nan, np.inf, -np.inf
        image[1] = np.nan
        np.save(tmp_path / "a.npy", image)
        assert main(["info", str(tmp_path / "a.npy")]) == 0
        assert capsys.readouterr().out.splitlines()[1:] == [
            "  shape   2 x 3 x 4 (ZYX)",
            "  dtype   float32",
            "  range   0.75 to 2.75",
            "  NaN     13",
            "  inf     2",
            "  curve   none: has NaN, choose --nan omit",
        ]

    def test_channels(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        Image.fromarray(noise(6, 8, 3)).save(tmp_path / "a.png")
        assert main(["info", str(tmp_path / "a.png")]) == 0
        assert "  shape   6 x 8 x 3 (YXS)\n" in (lines := capsys.readouterr().out)
        assert "choose one with `channel`: 0 to 2, r, g, b, gray" in lines
        assert main(["info", str(tmp_path / "a.png"), "--channel", "g"]) == 0
        green = noise(6, 8, 3)[..., 1]
        assert f"  range   {green.min()} to {green.max()}\n" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("array", "words"),
        [
            (np.float64(3), "none: needs 1 to 3 axes, got 0"),
            (
                np.zeros((2, 2, 2, 2)),
                "none: nothing says what the axes of shape (2, 2, 2, 2) are, "
                "give `axes`, such as TZYX or CZYX",
            ),
            (np.zeros((0, 5)), "none: no finite value"),
            (np.full(3, np.inf), "none: no finite value"),
            (np.zeros(3, complex), "none: values are not real numbers"),
            (np.arange(4.0), "256 thresholds from 0.0 to 3.0, 2-connected, sublevel sets"),
        ],
    )
    def test_no_curve(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, array: np.ndarray, words: str
    ) -> None:
        np.save(tmp_path / "a.npy", array)
        assert main(["info", str(tmp_path / "a.npy")]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == f"  curve   {words}"


def command(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start `ecc` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "ecc_core.cli", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


class TestProcess:
    def test_version(self) -> None:
        with command("--version") as process:
            assert process.communicate() == (f"ecc {version('napari-ecc')}\n", "")
            assert process.returncode == 0

    def test_bad_input(self) -> None:
        with command("curve", "none.png") as process:
            output, errors = process.communicate()
        assert (process.returncode, output) == (2, "")
        assert errors == "ecc: error: none.png: no such file or folder\n"

    def test_help_is_quick_to_load(self) -> None:
        """What makes a start slow is what it imports."""
        heavy = ("numba", "scipy", "matplotlib", "imageio", "tifffile", "pyarrow", "PIL", "tqdm")
        code = (
            "import sys; from ecc_core.cli import main\n"
            "try: main(['curve', '--help'])\n"
            f"finally: assert not (loaded := sys.modules.keys() & {set(heavy)}), loaded"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        for option in ("--out", "--plot", "--labels", "--mask", "--channel", "gaussian_filter"):
            assert option in done.stdout

    @pytest.mark.skipif(os.name != "posix", reason="POSIX signals and pipes")
    def test_nobody_reads(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.arange(200_000))
        with command("curve", tmp_path / "a.npy", "--thresholds", 200_000) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "input,threshold,euler_number\n"
            process.stdout.close()
            assert process.stderr is not None
            assert process.stderr.read() == ""
        assert process.returncode == 141

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
    @pytest.mark.parametrize("arguments", [["--help"], ["info", "a.npy"], ["curve", "a.npy"]])
    @pytest.mark.parametrize(
        ("redirection", "code", "errors"),
        [
            (">/dev/full", 2, "ecc: error: No space left on device\n"),
            (">&-", 2, "ecc: error: stdout is closed\n"),
            (">/dev/full 2>&-", 2, ""),
            (">/dev/null 2>&-", 0, ""),
        ],
    )
    def test_output_that_cannot_be_written(
        self, tmp_path: Path, arguments: list[str], redirection: str, code: int, errors: str
    ) -> None:
        np.save(tmp_path / "a.npy", np.arange(1000))
        shell = ["sh", "-c", f'"$0" -m ecc_core.cli "$@" {redirection}', sys.executable]
        done = subprocess.run(
            [*shell, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (code, errors)

    @pytest.mark.skipif(os.name != "posix", reason="POSIX signals and pipes")
    def test_interrupted(self, image_file: str, tmp_path: Path) -> None:
        code = (
            "import os, signal, sys, ecc_core.curves\n"
            "from ecc_core.cli import main\n"
            "def interrupt(*_, **__): os.kill(os.getpid(), signal.SIGINT)\n"
            "ecc_core.curves.euler_curve = interrupt\n"
            "sys.exit(main(sys.argv[1:]))"
        )
        flags = [image_file, "--out", str(tmp_path / "c.csv")]
        done = subprocess.run(
            [sys.executable, "-c", code, "curve", *flags],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (
            128 + signal.SIGINT,
            "",
            "ecc: interrupted\n",
        )
        assert [p.name for p in tmp_path.iterdir()] == ["image.png"]

    @pytest.mark.skipif(os.name != "posix", reason="POSIX signals and pipes")
    @pytest.mark.parametrize("module", ["numpy", "ecc_core.errors", "numba", "imageio"])
    @pytest.mark.parametrize("swallowed", [False, True])
    def test_interrupted_while_it_loads(
        self, image_file: str, module: str, swallowed: bool
    ) -> None:
        code = (
            "import contextlib, os, signal, sys\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "class Interrupting:\n"
            "    def find_spec(self, name, *_):\n"
            f"        if name == {module!r}:\n"
            f"            sys.meta_path.remove(self)\n"
            f"            with contextlib.suppress({'BaseException' if swallowed else ''}):\n"
            "                os.kill(os.getpid(), signal.SIGINT)\n"
            "sys.meta_path.insert(0, Interrupting())\n"
            "from ecc_command import main\n"
            "sys.exit(main())"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "curve", image_file, "--thresholds", "2"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (128 + signal.SIGINT, "ecc: interrupted\n")

    @pytest.mark.skipif(sys.platform != "linux", reason="such names are possible on Linux")
    def test_names_that_are_no_unicode(self, tmp_path: Path) -> None:
        path = tmp_path / os.fsdecode(b"\xff.npy")
        np.save(path, noise(5, 5))
        plot = ["--plot", tmp_path / "c.svg"]
        for arguments in (["info"], ["curve", "--out", tmp_path / "c.csv", *plot]):
            with command(*arguments, path, errors="surrogateescape") as process:
                output, errors = process.communicate()
            assert (process.returncode, errors) == (0, "")
            assert output.partition("\n")[0] == (str(path) if arguments == ["info"] else "")
        assert os.fsencode(path) in (tmp_path / "c.csv").read_bytes()
        assert r"\xff.npy" in (tmp_path / "c.svg").read_text()


def read_slowly(path: str, arguments: Any) -> Any:
    time.sleep(0.2)
    return read(path, arguments)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class TestProgress:
    @pytest.mark.parametrize("slow", [False, True])
    @pytest.mark.parametrize("terminal", [False, True])
    def test_only_on_a_terminal_and_only_if_it_takes_long(
        self,
        run: Any,
        monkeypatch: pytest.MonkeyPatch,
        image_file: str,
        slow: bool,
        terminal: bool,
    ) -> None:
        stream = Terminal() if terminal else io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        if slow:
            monkeypatch.setattr("ecc_core._cli.progress.PATIENCE", 0.1)
            monkeypatch.setattr("ecc_core._cli.curve._read", read_slowly)
        run(image_file)
        shown = stream.getvalue()
        assert ("curve of image.png" in shown) == (slow and terminal)
        assert (shown != "") == (slow and terminal)
