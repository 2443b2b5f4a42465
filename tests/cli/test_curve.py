"""`ecc curve`: tables hold what `euler_curve` returns, and no input brings a traceback."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import pyarrow.parquet as parquet
import pytest
from io_helpers import columns_of, noise
from scipy.ndimage import gaussian_filter

import ecc_core as ecc
from ecc_core.cli import main


def assert_rows_are(rows: list[dict[str, str]], curve: ecc.EulerCurve, path: object) -> None:
    assert {row["input"] for row in rows} == {str(path)}
    assert [float(row["threshold"]) for row in rows] == curve.thresholds.tolist()
    assert [int(row["euler_number"]) for row in rows] == curve.values.tolist()


class TestCurve:
    def test_default(self, run, image_file, image):
        rows = run(image_file)
        assert list(rows[0]) == ["input", "threshold", "euler_number"]
        assert len(rows) == 256
        assert_rows_are(rows, ecc.euler_curve(image), image_file)

    @pytest.mark.parametrize(
        ("text", "thresholds"),
        [
            ("17", 17),
            ("1", 1),
            ("exact", "exact"),
            ("3,50,200", [3, 50, 200]),
            ("100,", [100]),
            ("-3,", [-3]),
            ("0,", [0]),
            ("-1,99.5,300", [-1, 99.5, 300]),
            ("99.5", [99.5]),
            ("-inf,inf", [-np.inf, np.inf]),
        ],
    )
    def test_thresholds(self, run, image_file, image, text, thresholds):
        expected = ecc.euler_curve(image, thresholds)
        assert_rows_are(run(image_file, "--thresholds", text), expected, image_file)

    def test_integer_thresholds_stay_integers(self, run):
        image = np.array([2**53, 2**53 + 1, 2**53 + 2])
        rows = run(image, "--thresholds", f"{2**53},{2**53 + 1}", "--superlevel")
        assert [row["threshold"] for row in rows] == [str(2**53), str(2**53 + 1)]
        expected = ecc.euler_curve(image, np.array([2**53, 2**53 + 1]), superlevel=True)
        assert [int(row["euler_number"]) for row in rows] == expected.values.tolist()

    @pytest.mark.parametrize("text", ["20,60", "-20.5,300", "-20.5,-1"])
    def test_range(self, run, image_file, image, text):
        low, high = map(float, text.split(","))
        expected = ecc.euler_curve(image, 5, range=(low, high))
        rows = run(image_file, "--thresholds", 5, "--range", text)
        assert_rows_are(rows, expected, image_file)
        assert rows == run(image_file, "--thresholds=5", f"--range={text}")

    def test_smooth_a_window(self, run, image, tmp_path):
        """What lies beyond a window is unknown: as for a closed image, its reflection."""
        rows = run(image, "--smooth", 1.5, "--boundary", "half-open")
        smooth = gaussian_filter(image.astype(np.float32), 1.5, mode="reflect")
        expected = ecc.euler_curve(smooth, boundary="half-open")
        assert_rows_are(rows, expected, tmp_path / "0.npy")

    def test_binary_image(self, run, image):
        rows = run(image > 99, "--thresholds", "exact")
        assert {row["threshold"] for row in rows} <= {"0", "1"}
        assert rows[-1]["euler_number"] == "1"

    def test_several_inputs_have_one_range(self, run, tmp_path):
        images = {tmp_path / f"{i}.npy": noise(9, 7 + i, seed=i) for i in range(3)}
        for path, image in images.items():
            np.save(path, image)
        rows = run(*images, "--thresholds", 8)
        assert [row["input"] for row in rows] == [str(p) for p in images for _ in range(8)]
        low = min(image.min() for image in images.values())
        high = max(image.max() for image in images.values())
        for path, image in images.items():
            own = [row for row in rows if row["input"] == str(path)]
            assert_rows_are(own, ecc.euler_curve(image, 8, range=(low, high)), path)

    def test_exact_thresholds_of_several_types(self, run, refuse, tmp_path):
        levels = {"i8": 2**53 + 1, "u1": 7, "f4": 0.5}
        for dtype, level in levels.items():
            np.save(tmp_path / f"{dtype}.npy", np.array([[level]], dtype))
        small = run(tmp_path / "u1.npy", tmp_path / "f4.npy", "--thresholds", "exact")
        assert [float(row["threshold"]) for row in small] == [7, 0.5]
        message = refuse("curve", tmp_path / "i8.npy", tmp_path / "f4.npy", "--thresholds", "exact")
        assert "float32, int64 do not fit into one table exactly" in message


class TestOutput:
    def test_csv_is_what_stdout_gets(self, capsys, image_file, tmp_path, say):
        printed = say("curve", image_file, "--plot", tmp_path / "c.svg")
        assert (tmp_path / "c.svg").exists()
        assert main(["curve", image_file, "--out", str(tmp_path / "c.csv")]) == 0
        assert capsys.readouterr() == ("", "")
        assert (tmp_path / "c.csv").read_text() == printed

    @pytest.mark.parametrize("suffix", [".json", ".parquet"])
    def test_settings_are_kept(self, image_file, image, tmp_path, suffix):
        path = tmp_path / f"c{suffix}"
        flags = ["--thresholds", "1,2.5,inf", "--connectivity", "1", "--out", str(path)]
        assert main(["curve", image_file, *flags]) == 0
        columns = columns_of(path)
        if suffix == ".json":
            metadata = json.loads(path.read_text())["metadata"]
        else:
            metadata = json.loads(parquet.read_schema(path).metadata[b"ecc"])
        expected = ecc.euler_curve(image, [1, 2.5, np.inf], connectivity=1)
        assert columns["input"] == [image_file] * 3
        assert [float(t) for t in columns["threshold"]] == [1, 2.5, np.inf]
        assert columns["euler_number"] == expected.values.tolist()
        (found,) = metadata["inputs"]
        assert found.pop("result")["facts"] == json.loads(json.dumps(expected.facts))
        given = {"thresholds": [1.0, 2.5, "inf"], "connectivity": 1, "boundary": "closed"}
        given |= {"nan": "raise", "level": 0, "offset": 0, "order": "C"}
        given |= dict.fromkeys(("superlevel", "betti", "components", "density"), False)
        absent = "range direction direction_scale minkowski spacing unit labels mask persistence"
        absent += " mask_label smooth series axes channel time roi dtype labels_dtype mask_dtype"
        absent += " shape values"
        described = {"path": image_file, "axes": "YX", "shape": [12, 9], "dtype": "uint8"}
        assert metadata == {
            "software": f"napari-ecc {version('napari-ecc')}",
            "settings": given | dict.fromkeys(absent.split()),
            "inputs": [described | {"spacing": None, "unit": None}],
        }

    def test_inputs_are_not_overwritten(self, refuse, image_file, tmp_path):
        content = Path(image_file).read_bytes()
        link = tmp_path / "link.png"
        link.symlink_to(image_file)
        assert "would overwrite" in refuse("curve", image_file, "--plot", image_file)
        assert "would overwrite" in refuse("curve", image_file, "--plot", link)
        masked = [noise(12, 9), "--mask", image_file]
        assert "would overwrite" in refuse("curve", *masked, "--plot", image_file)
        stack = ["stack", image_file, "--out", tmp_path / "c.csv"]
        assert "would overwrite" in refuse(*stack, "--plot", image_file)
        assert Path(image_file).read_bytes() == content


class TestBadInput:
    def test_colours(self, refuse, tmp_path):
        imageio.imwrite(tmp_path / "a.png", noise(7, 5, 3))
        message = refuse("curve", tmp_path / "a.png")
        assert "choose one with --channel: 0 to 2, r, g, b, gray" in message

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
        message = refuse(command, np.asarray(array), "--out", tmp_path / "out.csv")
        assert message.startswith(f"ecc: error: {tmp_path / '1.npy'}: ")
        assert words in message

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ("small.npy", "must have the image's shape Y 12 x X 9, got Y 3 x X 3"),
            ("colour.png", "colour.png: a mask or label image must have one channel"),
            ("none.png", "none.png: no such file"),
        ],
    )
    @pytest.mark.parametrize("flag", ["--mask", "--labels"])
    def test_mask_and_labels(self, refuse, image_file, tmp_path, flag, given, words):
        imageio.imwrite(tmp_path / "colour.png", noise(12, 9, 3))
        np.save(tmp_path / "small.npy", np.ones((3, 3), np.uint8))
        assert words in refuse("curve", image_file, flag, tmp_path / given)

    @pytest.mark.parametrize("value", [-1, 0.5])
    def test_values_that_are_no_labels(self, refuse, image_file, value):
        labels = np.full((12, 9), value)
        assert "--labels must" in refuse("curve", image_file, "--labels", labels)

    @pytest.mark.parametrize(
        ("library", "extra", "name", "output"),
        [
            ("imageio", "io", "a.png", None),
            ("tifffile", "io", "a.tif", None),
            ("pyarrow", "parquet", "a.npy", ("--out", "c.parquet")),
            ("matplotlib", "io", "a.npy", ("--plot", "c.png")),
        ],
    )
    def test_missing_extra(self, refuse, monkeypatch, tmp_path, library, extra, name, output):
        np.save(tmp_path / "a.npy", noise(7, 5))
        imageio.imwrite(tmp_path / "a.tif", noise(7, 5))
        imageio.imwrite(tmp_path / "a.png", noise(7, 5))
        output = [] if output is None else [output[0], tmp_path / output[1]]
        with monkeypatch.context() as patch:
            for module in [m for m in sys.modules if m.partition(".")[0] == library]:
                patch.delitem(sys.modules, module)
            patch.setitem(sys.modules, library, None)
            message = refuse("curve", tmp_path / name, *output)
        assert f'needs {library}: pip install ".[{extra}]"' in message

    def test_too_little_memory(self, refuse, monkeypatch, image_file):
        def fail(*_: object, **__: object) -> None:
            raise MemoryError("Unable to allocate 9 TiB")

        monkeypatch.setattr("ecc_core.euler_curve", fail)
        assert "not enough memory: Unable to allocate 9 TiB" in refuse("curve", image_file)
