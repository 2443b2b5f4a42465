"""Spacing and unit come from the file unless an option says otherwise; a table has one unit."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import io_helpers
import numpy as np
import pytest
import tifffile
from io_helpers import noise, rows_of

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.io import read_result


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.ome.tif"
    sizes = {f"PhysicalSize{axis}": size for axis, size in (("X", 0.5), ("Y", 0.25))}
    tifffile.imwrite(path, noise(9, 8) // 128, metadata={"axes": "YX", **sizes})
    return path


class TestSpacing:
    """It comes from the file unless an option says otherwise."""

    def test_info(self, path, run):
        assert "  spacing Y 0.25, X 0.5 micrometer\n" in run("info", path)[1]

    def test_info_of_an_unknown_unit(self, tmp_path, run):
        write_nifti(tmp_path / "a.nii", "unknown")
        expected = "  spacing Z 2.0, Y 0.5, X 0.25 (unknown unit)\n"
        assert expected in run("info", tmp_path / "a.nii")[1]

    @pytest.mark.parametrize("options", [[], ["--spacing", "2,3"]])
    def test_transform(self, path, tmp_path, capsys, options):
        out = tmp_path / "out.npz"
        assert main(["transform", str(path), "--out", str(out), *options]) == 0
        said = "" if options else f"ecc: spacing 0.25,0.5 micrometer, from {path}\n"
        assert capsys.readouterr().err == said
        spacing, units = ((2, 3), None) if options else ((0.25, 0.5), "micrometer")
        expected = ecc.euler_transform(tifffile.imread(path) != 0, spacing=spacing)
        assert read_result(out) == replace(expected, axes="YX", units=units)

    @pytest.mark.parametrize("options", [[], ["--spacing", "2,3"]])
    def test_directions(self, path, tmp_path, options):
        out = tmp_path / "out.json"
        command = ["stack", str(path), "--out", str(out), "--thresholds", "0,1,2"]
        assert main([*command, "--direction", "1,1", *options]) == 0
        spacing, unit = ([2.0, 3.0], None) if options else ([0.25, 0.5], "micrometer")
        table = json.loads(out.read_text())
        (described,) = table["metadata"]["inputs"]
        assert (described["spacing"], described["unit"]) == (spacing, unit)
        assert table["columns"]["unit"] == [unit or ""] * 3
        options = {"direction": (1, 1), "spacing": spacing}
        expected = ecc.euler_curve(tifffile.imread(path), [0, 1, 2], **options)
        assert read_result(out) == replace(expected, spacing_units=unit)


VOLUME = noise(3, 5, 4) // 128
STEPS = (2.0, 0.5, 0.25)


def write_nifti(path: Path, unit: str, factor: float = 1.0) -> str:
    """Write a volume whose spacing, times a factor, has a unit."""
    return io_helpers.write_nifti(path, VOLUME, [factor * step for step in STEPS[::-1]], unit)


EMPTY = np.count_nonzero(VOLUME == 0) * np.prod(STEPS)


@pytest.fixture
def volumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command; the volume of the points that are 0 in each image, its unit, what is said."""

    def run(command: str, *arguments: object, code: int = 0) -> tuple[list[Any], str]:
        out = tmp_path / "out.csv"
        fixed = ["--thresholds", "0,", "--minkowski", "exact", "--out", str(out)]
        assert main([command, *map(str, arguments), *fixed]) == code
        name = "volume 0" if command == "batch" else "volume"
        rows = rows_of(out) if out.exists() else []
        return [(float(row[name]), row["unit"]) for row in rows], capsys.readouterr().err

    return run


@pytest.mark.parametrize("command", ["curve", "stack", "batch"])
class TestUnits:
    @pytest.mark.parametrize(
        ("unit", "name"), [("mm", "millimeter"), ("micron", "micrometer"), ("unknown", "")]
    )
    def test_a_table_has_the_unit_of_the_file(self, tmp_path, volumes, command, unit, name):
        path = write_nifti(tmp_path / "a.nii", unit)
        shown = name or "(unknown unit)"
        said = f"ecc: spacing 2.0,0.5,0.25 {shown}, from {path}\n"
        assert volumes(command, path) == ([(pytest.approx(EMPTY, rel=1e-12), name)], said)

    @pytest.mark.parametrize(
        ("unit", "name", "factor"),
        [("um", "micrometer", 1e3), ("mm", "millimeter", 1.0), ("m", "meter", 1e-3)],
    )
    def test_conversion(self, tmp_path, volumes, command, unit, name, factor):
        found, _ = volumes(command, write_nifti(tmp_path / "a.nii", "mm"), "--unit", unit)
        assert found == [(pytest.approx(EMPTY * factor**3, rel=1e-12), name)]

    def test_an_unknown_unit_is_not_converted(self, tmp_path, volumes, command):
        path = write_nifti(tmp_path / "a.nii", "unknown")
        _, said = volumes(command, path, "--unit", "mm", code=1 if command == "batch" else 2)
        message = "it does not say its unit, so that --unit millimeter needs --spacing"
        assert said.endswith(f"{path}: {message}\n")
        found = volumes(command, path, "--unit", "mm", "--spacing", "2,.5,.25")
        assert found == ([(pytest.approx(EMPTY, rel=1e-12), "millimeter")], "")

    def test_no_spacing(self, tmp_path, volumes, command):
        """It is 1, which is said."""
        np.save(tmp_path / "a.npy", VOLUME)
        tags = {"resolution": (4, 2), "resolutionunit": "CENTIMETER", "metadata": None}
        tifffile.imwrite(tmp_path / "b.tif", VOLUME, photometric="minisblack", **tags)
        for name, words in (("a.npy", "none is"), ("b.tif", "only Y 0.5, X 0.25 centimeter is")):
            said = f"ecc: spacing 1 (unknown unit), as {words} given by {tmp_path / name}\n"
            found = volumes(command, tmp_path / name)
            assert found == ([(np.count_nonzero(VOLUME == 0), "")], said)

    def test_a_unit_without_lengths(self, tmp_path, capsys, volumes, command):
        path, out = write_nifti(tmp_path / "a.nii", "mm"), tmp_path / "out.csv"
        assert main([command, path, "--thresholds", "0,", "--out", str(out), "--unit", "mm"]) != 0
        assert "--unit" in capsys.readouterr().err
        with pytest.raises(SystemExit):
            volumes(command, path, "--unit", "parsnip")
        assert "must be one of kilometer, meter" in capsys.readouterr().err


class TestMixedUnits:
    @pytest.fixture
    def paths(self, tmp_path: Path) -> list[str]:
        return [
            write_nifti(tmp_path / "a.nii", "mm"),
            write_nifti(tmp_path / "b.nii", "micron", 1000.0),
        ]

    @pytest.mark.parametrize("command", ["curve", "batch"])
    @pytest.mark.parametrize("other", ["micron", "unknown"])
    def test_refused(self, tmp_path, volumes, paths, command, other):
        write_nifti(tmp_path / "b.nii", other)
        found, said = volumes(command, *paths, code=2 if command == "curve" else 1)
        name = "micrometer" if other == "micron" else "an unknown unit"
        assert said.endswith(
            f"{paths[1]}: its lengths are in {name}, those of {paths[0]} in millimeter, but a "
            "table has one unit: give --unit, or --spacing\n"
        )
        assert len(found) == (0 if command == "curve" else 1)

    @pytest.mark.parametrize("command", ["curve", "batch"])
    def test_converted(self, volumes, paths, command):
        found, _ = volumes(command, *paths, "--unit", "mm")
        assert found == [(pytest.approx(EMPTY, rel=1e-12), "millimeter")] * 2

    def test_each_calibration_is_said_once(self, tmp_path, volumes):
        for name in "abc":
            write_nifti(tmp_path / f"{name}.nii", "mm")
        assert volumes("batch", tmp_path / "*.nii")[1].count("spacing") == 1

    def test_directions(self, tmp_path, capsys, paths):
        arguments = ["batch", *paths, "--thresholds", "0,", "--direction", "1,0,0"]
        assert main([*arguments, "--out", str(tmp_path / "out.csv")]) == 1
        assert "a table has one unit" in capsys.readouterr().err
