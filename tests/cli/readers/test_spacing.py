"""The spacing comes from the file unless an option says otherwise."""

import json
from pathlib import Path

import numpy as np
import pytest
import tifffile
from io_helpers import noise

import ecc_core as ecc
from ecc_core.cli import main


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
