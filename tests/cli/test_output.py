"""Tables and figures that `ecc curve` writes."""

import json
from importlib.metadata import version
from pathlib import Path

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
