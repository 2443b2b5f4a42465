"""Tables and figures that `ecc curve` writes."""

import json
from importlib.metadata import version
from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import pyarrow.parquet as parquet
import pytest
from io_helpers import noise

import ecc_core as ecc
from ecc_core.cli import main


class TestOutput:
    def test_csv_is_what_stdout_gets(self, capsys, image_file, tmp_path, say):
        printed = say("curve", image_file)
        assert main(["curve", image_file, "--out", str(tmp_path / "c.csv")]) == 0
        assert capsys.readouterr() == ("", "")
        assert (tmp_path / "c.csv").read_text() == printed

    @pytest.mark.parametrize("suffix", [".json", ".parquet"])
    def test_settings_are_kept(self, image_file, image, tmp_path, suffix):
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
        given = {"thresholds": [1.0, 2.5, "inf"], "connectivity": 1, "boundary": "closed"}
        given |= {"nan": "raise", "level": 0}
        given |= dict.fromkeys(("superlevel", "betti", "components", "density"), False)
        absent = "range direction direction_scale minkowski spacing unit labels mask persistence"
        absent += " smooth series axes channel time roi"
        described = {"path": image_file, "axes": "YX", "shape": [12, 9], "dtype": "uint8"}
        assert metadata == {
            "software": f"napari-ecc {version('napari-ecc')}",
            "settings": given | dict.fromkeys(absent.split()),
            "inputs": [described | {"spacing": None, "unit": None}],
        }

    @pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
    def test_plot(self, run, image_file, tmp_path, suffix):
        path = tmp_path / f"c{suffix}"
        assert len(run(image_file, "--plot", path)) == 256
        start = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}[suffix]
        assert path.read_bytes().startswith(start)

    def test_plot_names_every_curve(self, monkeypatch, image_file, tmp_path):
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

    @pytest.mark.parametrize(
        ("flag", "name", "words"),
        [
            ("--out", "c.txt", "must be one of .csv, .parquet, .json"),
            ("--plot", "c.csv", "must be one of .png, .pdf, .svg"),
            ("--out", "none/c.csv", "there is no folder"),
            ("--out", "folder.csv", "not a regular file"),
        ],
    )
    def test_refused_before_any_work(self, refuse, tmp_path, flag, name, words):
        (tmp_path / "folder.csv").mkdir()
        message = refuse("curve", tmp_path / "not there.png", flag, tmp_path / name)
        assert words in message
        assert "not there" not in message

    def test_inputs_are_not_overwritten(self, refuse, image_file, tmp_path):
        content = Path(image_file).read_bytes()
        link = tmp_path / "link.png"
        link.symlink_to(image_file)
        for plot in (image_file, link):
            assert "would overwrite" in refuse("curve", image_file, "--plot", plot)
        np.save(tmp_path / "a.npy", noise(12, 9))
        assert "would overwrite" in refuse(
            "curve", tmp_path / "a.npy", "--mask", image_file, "--plot", image_file
        )
        code = main(["stack", image_file, "--out", str(tmp_path / "c.csv"), "--plot", image_file])
        assert code == 2
        assert Path(image_file).read_bytes() == content

    def test_nothing_is_written_if_one_input_is_bad(self, refuse, image_file, tmp_path):
        flags = ["--out", tmp_path / "c.csv", "--plot", tmp_path / "c.png"]
        assert "missing.png: no such file" in refuse("curve", image_file, "missing.png", *flags)
        assert [p.name for p in tmp_path.iterdir()] == ["image.png"]


@pytest.mark.parametrize("command", ["curve", "batch"])
def test_help_on_names_that_spreadsheets_take_for_formulas(capsys, tmp_path, command, monkeypatch):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "an apostrophe precedes file names that begin with =, +, - or @" in said
    monkeypatch.chdir(tmp_path)
    for start in "=+@-":
        name = f"{start}a.npy"
        np.save(name, noise(4, 5))
        flags = ["--thresholds", "99.0", "--out", "c.csv"]
        assert main([command, *flags, "--", name]) == 0
        header, row = Path("c.csv").read_text().splitlines()
        assert header.split(",")[0] == "input"
        assert row.split(",")[0] == f"'{name}"
