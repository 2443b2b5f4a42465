"""DICOM: a file of one or several frames, or a folder with the slices of a series."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.stored import Opened, Request
from ecc_core._io.units import in_micrometers
from ecc_core._optional import import_optional

__all__ = ["SUFFIXES", "open_dicom", "open_dicom_folder", "slices_in"]

SUFFIXES = (".dcm", ".dicom")
UNEVEN = 0.01  # of the distance of slices, which is written with a few digits
PURPOSE = {"extra": "dicom", "purpose": "reading DICOM files"}


def slices_in(folder: Path) -> list[Path]:
    """Return the DICOM files of a folder, which may have no suffix."""
    return sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() in (*SUFFIXES, "") and file.is_file() and _is_dicom(file)
    )


def _is_dicom(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(132)[128:] == b"DICM"


def open_dicom(path: Path, _: Request) -> Opened:
    """Open one file."""
    dataset = import_optional("pydicom", **PURPOSE).dcmread(path)
    values = _values(dataset)
    frames = int(getattr(dataset, "NumberOfFrames", 1))
    samples = "S" if dataset.SamplesPerPixel > 1 else ""
    axes = ("Z" if frames > 1 else "") + "YX" + samples
    return _with_spacing(values, axes, dataset, getattr(dataset, "SpacingBetweenSlices", 0))


def open_dicom_folder(files: list[Path], request: Request) -> Opened:
    """Open the slices of one series in the order of their positions in the patient."""
    pydicom = import_optional("pydicom", **PURPOSE)
    held: dict[str, list[Any]] = {}
    for file in files:
        dataset = pydicom.dcmread(file)
        held.setdefault(str(dataset.SeriesInstanceUID), []).append(dataset)
    described = [
        f"{len(series)} slices, {getattr(series[0], 'SeriesDescription', '')}".rstrip(", ")
        for series in held.values()
    ]
    number = request.pick_series(described, "series")
    slices = list(held.values())[number]
    places = [_place(dataset) for dataset in slices]
    order = np.argsort(places, kind="stable")
    gaps = np.diff(np.array(places)[order])
    if gaps.size and (gaps.min() <= 0 or np.ptp(gaps) > UNEVEN * gaps.min()):
        raise ValueError("slices are missing, doubled or unevenly spaced")
    arrays = [_values(slices[i]) for i in order]
    for array, i in zip(arrays, order, strict=True):
        if (array.shape, array.dtype) != (arrays[0].shape, arrays[0].dtype):
            raise ValueError(
                f"{Path(slices[i].filename).name} has shape {array.shape} and dtype {array.dtype}, "
                f"{Path(slices[order[0]].filename).name} {arrays[0].shape} and {arrays[0].dtype}"
            )
    measured = "ImagePositionPatient" in slices[0]
    opened = _with_spacing(
        np.stack(arrays),
        "ZYX" + ("S" if arrays[0].ndim > 2 else ""),
        slices[0],
        gaps.mean() if measured and gaps.size else 0,
    )
    return Opened(**{**vars(opened), "described": list(map(str, files)), "series": len(held)})


def _place(dataset: Any) -> float:
    """Return the position of a slice along the normal, or its number if the position is unknown."""
    if "ImagePositionPatient" not in dataset:
        return float(dataset.InstanceNumber)
    across, down = np.array(dataset.ImageOrientationPatient, float).reshape(2, 3)
    return float(np.cross(across, down) @ np.array(dataset.ImagePositionPatient, float))


def _values(dataset: Any) -> NDArray[Any]:
    """Return rescaled values; integers if slope and intercept are integers."""
    stored: NDArray[Any] = dataset.pixel_array
    slope = float(getattr(dataset, "RescaleSlope", 1))
    intercept = float(getattr(dataset, "RescaleIntercept", 0))
    if (slope, intercept) == (1, 0):
        return stored
    if slope.is_integer() and intercept.is_integer():
        return stored.astype(np.int32) * np.int32(slope) + np.int32(intercept)
    return stored * slope + intercept


def _with_spacing(values: NDArray[Any], axes: str, dataset: Any, distance: float) -> Opened:
    row, column = getattr(dataset, "PixelSpacing", (0, 0))
    steps = {"Z": distance, "Y": row, "X": column}
    spacing = in_micrometers(steps, dict.fromkeys("ZYX", "mm"))
    return Opened(values, axes, spacing=spacing, unit="micrometer")
