"""Lengths in headers: spacing and units, and places at which labels and masks must lie."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import io_helpers
import nibabel
import nrrd
import numpy as np
import pytest
import tifffile
from io_helpers import noise, rows_of, write_dicom, write_itk
from scipy.spatial.transform import Rotation

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.io import read_result

SHAPE = (6, 7, 8)
"""Points along x, y and z."""
AFFINE = np.array([[-0.5, 0, 0, 90], [0, 0.6, 0, -120], [0, 0, 2, -70], [0, 0, 0, 1]])
IMAGE = noise(*SHAPE)
LABELS = (IMAGE % 3).astype(np.uint8)


def write_nifti(path: Path, values: np.ndarray, affine: Any = AFFINE, unit: str = "mm") -> str:
    return io_helpers.write_nifti(path, values.T, affine, unit)


def write_nrrd(path: Path, values: np.ndarray, affine: np.ndarray, space: str) -> str:
    """Write the place in the coordinates of a space, as ITK does in LPS."""
    signs = [-1 if space[0] == "l" else 1, -1 if "posterior" in space else 1, 1]
    moved = np.diag(signs) @ affine[:3]
    header = {"space": space, "space directions": moved[:, :3].T, "space origin": moved[:, 3]}
    nrrd.write(str(path), values, {**header, "space units": ["mm"] * 3})
    return str(path)


def write_metaimage(path: Path, values: np.ndarray, affine: np.ndarray) -> str:
    return write_itk(path, values.T, np.diag([-1, -1, 1, 1]) @ affine)


def turned(vector: Any, degrees: float) -> np.ndarray:
    """The affine, rotated about its first point."""
    affine = AFFINE.copy()
    vector = np.array(vector) * np.radians(degrees)
    affine[:3, :3] = Rotation.from_rotvec(vector).as_matrix() @ AFFINE[:3, :3]
    return affine


def mirrored(*axes: int) -> np.ndarray:
    """The affine of an array that is flipped, but whose points are where they were."""
    flip = np.eye(4)
    for axis in axes:
        flip[axis, axis], flip[axis, 3] = -1, SHAPE[axis] - 1
    return AFFINE @ flip


ELSEWHERE = [
    (mirrored(0), "mirrored along X"),
    (mirrored(1, 2), "mirrored along Z, Y"),
    (np.diag([-1, 1, 1, 1]) @ AFFINE, "mirrored along X"),
    (AFFINE @ np.diag([1, 1, 1.5, 1]), "scaled by 1.5 along Z"),
    (AFFINE @ np.diag([-1, 2, 1, 1]), "mirrored along X and scaled by 2 along Y"),
    (AFFINE + np.array([[0, 0, 0, 0], [0, 0, 0, 0.3], [0, 0, 0, -2], [0] * 4]), "shifted by"),
    (turned([0, 0, 1], 10), "rotated by 10 degrees"),
    (turned([1, 0, 0], 3), "rotated by 3 degrees"),
    (
        AFFINE @ np.array([[1, 0, 0, 3], [0, 1, 0, 0], [0, 0, 1, -0.5], [0, 0, 0, 1]]),
        # In points along the axes of the image.
        "shifted by -0.5 along Z and shifted by 3 along X",
    ),
    (AFFINE[:, [1, 0, 2, 3]], "its axes Z, Y, X lie along Z, X, Y and scaled by"),
]


def commands(image: str, other: str, out: Path) -> list[list[str]]:
    fixed = ["--thresholds", "0,", "--out", str(out)]
    return [
        ["curve", image, "--mask", other, *fixed],
        ["curve", image, "--labels", other, *fixed],
        ["stack", image, "--labels", other, *fixed],
        ["batch", image, "--labels", other, *fixed],
        ["surface", image, other, "--out", str(out)],
    ]


class TestAffines:
    @pytest.fixture
    def image(self, tmp_path: Path) -> str:
        return write_nifti(tmp_path / "image.nii", IMAGE)

    @pytest.mark.parametrize(("affine", "words"), ELSEWHERE)
    def test_elsewhere(self, tmp_path, capsys, image, affine, words, refuse):
        labels = write_nifti(tmp_path / "labels.nii", LABELS, affine)
        out = tmp_path / "out.csv"
        for command in commands(image, labels, out):
            assert main(command) == (1 if command[0] == "batch" else 2)
            message = capsys.readouterr().err
            assert f"{labels} must lie where the image does, but its header says it is" in message
            assert (image in message, words in message, message.count("\n")) == (True, True, 1)
        header = nibabel.load(labels).affine
        flat = write_nrrd(tmp_path / "labels.nrrd", LABELS, header, "left-posterior-superior")
        meta = write_metaimage(tmp_path / "labels.mha", LABELS, header)
        assert words in refuse(*commands(image, flat, out)[0])
        assert words in refuse(*commands(image, meta, out)[0])

    def test_rotation_in_quaternions(self, tmp_path):
        """The single precision of quaternions is worst for half turns."""
        affine = AFFINE.copy()
        affine[:3, :3] = Rotation.from_rotvec([3.1414, 0.01, 0.02]).as_matrix() @ AFFINE[:3, :3]
        image = write_nifti(tmp_path / "image.nii", IMAGE, affine)
        stored = nibabel.Nifti1Image(LABELS, None)
        stored.set_qform(affine, 1)
        stored.header.set_xyzt_units("mm")
        nibabel.save(stored, tmp_path / "labels.nii")
        assert nibabel.load(tmp_path / "labels.nii").header["sform_code"] == 0
        runs = commands(image, str(tmp_path / "labels.nii"), tmp_path / "out.csv")
        assert [main(command) for command in runs] == [0] * len(runs)

    def test_the_same_place(self, tmp_path, image):
        """Places agree if numbers are rounded, in micrometers, or in other formats' coordinates."""
        rounded = AFFINE.astype(np.float32) * np.float32(1 + 1e-6)
        rounded[3] = 0, 0, 0, 1
        shifted = AFFINE + np.array([[0, 0, 0, 0.02]] * 3 + [[0] * 4])
        places = [
            write_nifti(tmp_path / "same.nii", LABELS, AFFINE),
            write_nifti(tmp_path / "rounded.nii", LABELS, rounded),
            write_nifti(tmp_path / "shifted.nii", LABELS, shifted),
            write_nifti(tmp_path / "turned.nii", LABELS, turned([0, 1, 0], 0.01)),
            write_nifti(tmp_path / "a.nii", LABELS, np.diag([1e3, 1e3, 1e3, 1]) @ AFFINE, "micron"),
            write_nrrd(tmp_path / "b.nrrd", LABELS, AFFINE, "left-posterior-superior"),
            write_nrrd(tmp_path / "c.nrrd", LABELS, AFFINE, "right-anterior-superior"),
            write_nrrd(tmp_path / "d.nrrd", LABELS, AFFINE, "left-anterior-superior"),
            write_metaimage(tmp_path / "e.mha", LABELS, AFFINE),
        ]
        runs = [run for labels in places for run in commands(image, labels, tmp_path / "out.csv")]
        codes = {" ".join(command): main(command) for command in runs}
        assert set(codes.values()) == {0}, codes

    def test_nothing_is_said(self, tmp_path, image):
        """A header without a place, or an array without a header."""
        np.save(tmp_path / "a.npy", LABELS.T)
        stored = nibabel.Nifti1Image(LABELS, None)
        assert not stored.header["sform_code"]
        nibabel.save(stored, tmp_path / "b.nii")
        nrrd.write(str(tmp_path / "c.nrrd"), LABELS)
        codes = []
        tables = []
        for name in ("a.npy", "b.nii", "c.nrrd"):
            out = tmp_path / f"{name}.csv"
            _, command, *_ = commands(image, str(tmp_path / name), out)
            codes.append(main(command))
            tables.append([row["euler_number"] for row in rows_of(out)])
        assert codes == [0, 0, 0]
        assert tables[0] == tables[1] == tables[2]

    def test_a_region_of_interest(self, tmp_path, say, refuse, image):
        """Labels of the region alone begin where it does."""
        part = (slice(1, 5), slice(2, 7), slice(3, 8))
        origin = AFFINE @ [1, 2, 3, 1]
        affine = np.column_stack([AFFINE[:, :3], origin])
        labels = write_nifti(tmp_path / "labels.nii", LABELS[part], affine)
        command = ["curve", image, "--labels", labels, "--roi", "3:,2:,1:5", "--thresholds", "0,"]
        assert say(*command)
        write_nifti(tmp_path / "labels.nii", LABELS[part])
        assert "shifted by -3 along Z" in refuse(*command)

    @pytest.mark.parametrize("position", [[10, 20, 30], [11, 20, 30]])
    def test_dicom(self, tmp_path, capsys, position):
        """Coordinates of DICOM point to the left and to the back."""
        (tmp_path / "series").mkdir()
        for z, plane in enumerate(IMAGE.transpose(2, 1, 0)):
            place = {"ImagePositionPatient": [10, 20, 30 + 1.5 * z], "SOPInstanceUID": f"1.2.{z}"}
            write_dicom(tmp_path / "series" / f"{z}.dcm", plane, **place)
        columns = np.diag([0.25, 0.5, 1.5])  # Columns are 0.25 apart.
        affine = np.vstack([np.column_stack([columns, position]), [0, 0, 0, 1]])
        affine[:2] *= -1
        labels = write_nifti(tmp_path / "labels.nii", LABELS, affine)
        command = ["curve", str(tmp_path / "series"), "--labels", labels, "--thresholds", "0,"]
        assert main(command) == (0 if position[0] == 10 else 2)
        if position[0] != 10:
            assert "shifted by 4 along X" in capsys.readouterr().err


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.ome.tif"
    sizes = {f"PhysicalSize{axis}": size for axis, size in (("X", 0.5), ("Y", 0.25))}
    tifffile.imwrite(path, noise(9, 8) // 128, metadata={"axes": "YX", **sizes})
    return path


class TestSpacing:
    """It comes from the file unless an option says otherwise."""

    def test_info(self, path, tmp_path, run):
        assert "  spacing Y 0.25, X 0.5 micrometer\n" in run("info", path)[1]
        unknown = write_in_unit(tmp_path / "a.nii", "unknown")
        assert "  spacing Z 2.0, Y 0.5, X 0.25 (unknown unit)\n" in run("info", unknown)[1]

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


def write_in_unit(path: Path, unit: str, factor: float = 1.0) -> str:
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
        path = write_in_unit(tmp_path / "a.nii", unit)
        shown = name or "(unknown unit)"
        said = f"ecc: spacing 2.0,0.5,0.25 {shown}, from {path}\n"
        assert volumes(command, path) == ([(pytest.approx(EMPTY, rel=1e-12), name)], said)

    def test_an_unknown_unit_is_not_converted(self, tmp_path, volumes, command):
        path = write_in_unit(tmp_path / "a.nii", "unknown")
        _, said = volumes(command, path, "--unit", "mm", code=1 if command == "batch" else 2)
        message = "it does not say its unit, so that --unit millimeter needs --spacing"
        assert said.endswith(f"{path}: {message}\n")
        found = volumes(command, path, "--unit", "mm", "--spacing", "2,.5,.25")
        assert found == ([(pytest.approx(EMPTY, rel=1e-12), "millimeter")], "")

    @pytest.mark.parametrize(
        ("name", "words"), [("a.npy", "none is"), ("b.tif", "only Y 0.5, X 0.25 centimeter is")]
    )
    def test_no_spacing(self, tmp_path, volumes, command, name, words):
        """Spacing is taken to be 1, and a message says so."""
        np.save(tmp_path / "a.npy", VOLUME)
        tags = {"resolution": (4, 2), "resolutionunit": "CENTIMETER", "metadata": None}
        tifffile.imwrite(tmp_path / "b.tif", VOLUME, photometric="minisblack", **tags)
        said = f"ecc: spacing 1 (unknown unit), as {words} given by {tmp_path / name}\n"
        found = volumes(command, tmp_path / name)
        assert found == ([(np.count_nonzero(VOLUME == 0), "")], said)


class TestMixedUnits:
    @pytest.fixture
    def paths(self, tmp_path: Path) -> list[str]:
        return [
            write_in_unit(tmp_path / "a.nii", "mm"),
            write_in_unit(tmp_path / "b.nii", "micron", 1000.0),
        ]

    @pytest.mark.parametrize("command", ["curve", "batch"])
    @pytest.mark.parametrize("other", ["micron", "unknown"])
    def test_refused(self, tmp_path, volumes, paths, command, other):
        write_in_unit(tmp_path / "b.nii", other)
        found, said = volumes(command, *paths, code=1)
        name = "micrometer" if other == "micron" else "an unknown unit"
        assert said.endswith(
            f"{paths[1]}: its lengths are in {name}, those of {paths[0]} in millimeter, but a "
            "table has one unit: give --unit, or --spacing\n"
        )
        assert len(found) == 1

    @pytest.mark.parametrize("command", ["curve", "batch"])
    def test_converted(self, volumes, paths, command):
        found, _ = volumes(command, *paths, "--unit", "mm")
        assert found == [(pytest.approx(EMPTY, rel=1e-12), "millimeter")] * 2

    def test_each_calibration_is_said_once(self, tmp_path, volumes):
        for name in "abc":
            write_in_unit(tmp_path / f"{name}.nii", "mm")
        assert volumes("batch", tmp_path / "*.nii")[1].count("spacing") == 1

    def test_directions(self, tmp_path, capsys, paths):
        arguments = ["batch", *paths, "--thresholds", "0,", "--direction", "1,0,0"]
        assert main([*arguments, "--out", str(tmp_path / "out.csv")]) == 1
        assert "a table has one unit" in capsys.readouterr().err
