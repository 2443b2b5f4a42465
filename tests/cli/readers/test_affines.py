"""Label images and masks must lie where the image does, if the headers of both say where."""

from pathlib import Path
from typing import Any

import io_helpers
import nibabel
import nrrd
import numpy as np
import pytest
from io_helpers import noise, rows_of, write_dicom, write_itk
from scipy.spatial.transform import Rotation

from ecc_core.cli import main

SHAPE = (6, 7, 8)  # x, y, z
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
        labels, out = write_nifti(tmp_path / "labels.nii", LABELS, affine), tmp_path / "out.csv"
        for command in commands(image, labels, out):
            assert main(command) == (1 if command[0] == "batch" else 2)
            message = capsys.readouterr().err
            assert f"{labels} must lie where the image does, but its header says it is" in message
            assert (image in message, words in message, message.count("\n")) == (True, True, 1)
        header = nibabel.load(labels).affine
        flat = write_nrrd(tmp_path / "labels.nrrd", LABELS, header, "left-posterior-superior")
        meta = write_metaimage(tmp_path / "labels.mha", LABELS, header)
        for other in (flat, meta):
            assert words in refuse(*commands(image, other, out)[0])

    def test_shifts_are_in_points(self, tmp_path, refuse, image):
        """They are measured along the axes of the image."""
        affine = AFFINE @ np.array([[1, 0, 0, 3], [0, 1, 0, 0], [0, 0, 1, -0.5], [0, 0, 0, 1]])
        labels = write_nifti(tmp_path / "labels.nii", LABELS, affine)
        assert "shifted by -0.5 along Z and shifted by 3 along X" in refuse(
            *commands(image, labels, tmp_path / "out.csv")[1]
        )

    @pytest.mark.parametrize(
        "affine",
        [
            AFFINE,
            AFFINE.astype(np.float32) * np.float32(1 + 1e-6),
            AFFINE + np.array([[0, 0, 0, 0.02]] * 3 + [[0] * 4]),
            turned([0, 1, 0], 0.01),
        ],
    )
    def test_rounded_headers(self, tmp_path, image, affine):
        affine[3] = 0, 0, 0, 1
        labels = write_nifti(tmp_path / "labels.nii", LABELS, affine)
        for command in commands(image, labels, tmp_path / "out.csv"):
            assert main(command) == 0

    def test_rotation_in_quaternions(self, tmp_path):
        """Their single precision is worst for half turns."""
        affine = AFFINE.copy()
        affine[:3, :3] = Rotation.from_rotvec([3.1414, 0.01, 0.02]).as_matrix() @ AFFINE[:3, :3]
        image = write_nifti(tmp_path / "image.nii", IMAGE, affine)
        stored = nibabel.Nifti1Image(LABELS, None)
        stored.set_qform(affine, 1)
        stored.header.set_xyzt_units("mm")
        nibabel.save(stored, tmp_path / "labels.nii")
        assert nibabel.load(tmp_path / "labels.nii").header["sform_code"] == 0
        for command in commands(image, str(tmp_path / "labels.nii"), tmp_path / "out.csv"):
            assert main(command) == 0

    def test_other_formats_and_units(self, tmp_path, image):
        """The same place in micrometers, and in the coordinates of NRRD."""
        places = [
            write_nifti(tmp_path / "a.nii", LABELS, np.diag([1e3, 1e3, 1e3, 1]) @ AFFINE, "micron"),
            write_nrrd(tmp_path / "b.nrrd", LABELS, AFFINE, "left-posterior-superior"),
            write_nrrd(tmp_path / "c.nrrd", LABELS, AFFINE, "right-anterior-superior"),
            write_nrrd(tmp_path / "d.nrrd", LABELS, AFFINE, "left-anterior-superior"),
            write_metaimage(tmp_path / "e.mha", LABELS, AFFINE),
        ]
        for labels in places:
            for command in commands(image, labels, tmp_path / "out.csv"):
                assert main(command) == 0, command

    def test_nothing_is_said(self, tmp_path, image):
        """A header without a place, or an array without a header."""
        np.save(tmp_path / "a.npy", LABELS.T)
        stored = nibabel.Nifti1Image(LABELS, None)
        assert not stored.header["sform_code"]
        nibabel.save(stored, tmp_path / "b.nii")
        nrrd.write(str(tmp_path / "c.nrrd"), LABELS)
        tables = []
        for name in ("a.npy", "b.nii", "c.nrrd"):
            out = tmp_path / "out.csv"
            assert main(commands(image, str(tmp_path / name), out)[1]) == 0
            tables.append([row["euler_number"] for row in rows_of(out)])
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
        columns = np.diag([0.25, 0.5, 1.5])  # columns are 0.25 apart
        affine = np.vstack([np.column_stack([columns, position]), [0, 0, 0, 1]])
        affine[:2] *= -1
        labels = write_nifti(tmp_path / "labels.nii", LABELS, affine)
        command = ["curve", str(tmp_path / "series"), "--labels", labels, "--thresholds", "0,"]
        assert main(command) == (0 if position[0] == 10 else 2)
        if position[0] != 10:
            assert "shifted by 4 along X" in capsys.readouterr().err
