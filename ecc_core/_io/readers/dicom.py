"""DICOM: a file of one or several frames, or a folder with the slices of a series."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.description import Description, Format
from ecc_core._io.geometry import Affine
from ecc_core._io.lazy import Array
from ecc_core._io.readers.folders import Planes
from ecc_core._io.stored import ZERO_IS_WHITE, Opened, Request
from ecc_core._optional import import_optional

SUFFIXES = (".dcm", ".dicom")
UNEVEN = 0.01  # of the distance of slices, which is written with a few digits
PURPOSE = {"extra": "dicom", "purpose": "reading DICOM files"}


def slices_in(folder: Path) -> list[Path]:
    """Return the DICOM files of a folder, which may have no suffix."""
    found = []
    for file in sorted(folder.iterdir()):
        if file.suffix.lower() in (*SUFFIXES, "") and file.is_file():
            with file.open("rb") as stream:
                if stream.read(132)[128:] == b"DICM":
                    found.append(file)
    return found


def open_dicom(path: Path, _: Request) -> Opened:
    """Open one file."""
    dataset = _header(path)
    count = int(getattr(dataset, "NumberOfFrames", 1))
    frames = _Frames([dataset], count)
    if count == 1:
        opened = _with_spacing(frames.first, frames.axes[1:], dataset, 0)
        return _placed(opened, _affine([dataset, dataset], 1))
    return _with_spacing(frames, frames.axes, dataset, getattr(dataset, "SpacingBetweenSlices", 0))


def open_dicom_folder(files: list[Path], request: Request) -> Opened:
    """Open the slices of one series in the order of their positions in the patient."""
    held: dict[str, list[Any]] = {}
    for file in files:
        dataset = _header(file)
        held.setdefault(str(dataset.SeriesInstanceUID), []).append(dataset)
    described = [
        f"{len(series)} slices, {getattr(series[0], 'SeriesDescription', '')}".rstrip(", ")
        for series in held.values()
    ]
    slices = list(held.values())[request.pick_series(described, "series")]
    places = [_place(dataset) for dataset in slices]
    order = np.argsort(places, kind="stable")
    gaps = np.diff(np.array(places)[order])
    if gaps.size and (gaps.min() <= 0 or np.ptp(gaps) > UNEVEN * gaps.min()):
        raise ValueError("slices are missing, doubled or unevenly spaced")
    frames = _Frames([slices[i] for i in order], len(slices))
    measured = "ImagePositionPatient" in slices[0]
    distance = gaps.mean() if measured and gaps.size else 0
    opened = _with_spacing(frames, frames.axes, slices[0], distance)
    affine = _affine([slices[i] for i in (order[0], order[-1])], len(slices))
    opened = _placed(opened, affine)
    return replace(opened, described=list(map(str, files)), series=len(held))


def _header(path: Path) -> Any:
    """Return what a file holds before its pixels, whose number of bytes must be right."""
    pydicom = import_optional("pydicom", **PURPOSE)
    pixels = import_optional("pydicom.pixels.utils", **PURPOSE)
    with path.open("rb") as stream:
        dataset = pydicom.dcmread(stream, stop_before_pixels=True)
        head = stream.read(12)
    if not dataset.file_meta.TransferSyntaxUID.is_compressed and len(head) == 12:
        implicit, little = dataset.original_encoding
        (count,) = struct.unpack("<L" if little else ">L", head[4:8] if implicit else head[8:])
        wanted = pixels.get_expected_length(dataset)
        if count != wanted + wanted % 2:  # an odd one is filled up
            raise ValueError(f"damaged: should have {wanted} bytes of pixels, got {count}")
    return dataset


class _Frames(Planes):
    """The frames of a file, or of several files with one each, rescaled."""

    def __init__(self, headers: Sequence[Any], count: int) -> None:
        self.headers = headers
        self.scales = [_scale(headers[i % len(headers)], i) for i in range(count)]
        self.scaled: np.dtype[Any] | None = None  # int32 if values are whole and sure to fit
        if set(self.scales) != {(1, 0)}:
            size = 1 << max(header.BitsAllocated for header in headers)
            largest = max(size * abs(slope) + abs(intercept) for slope, intercept in self.scales)
            whole = all(number.is_integer() for scale in self.scales for number in scale)
            fits = largest <= np.iinfo(np.int32).max
            self.scaled = np.dtype(np.int32 if whole and fits else np.float64)
        names = [Path(headers[i % len(headers)].filename).name for i in range(count)]
        super().__init__(names, self._read)
        self.axes = "ZYX" + ("S" if self.first.ndim > 2 else "")
        for number, dataset in enumerate(headers):
            shape = dataset.Rows, dataset.Columns
            self.compare(number, "shape", shape, self.first.shape[:2])

    def _read(self, numbers: Sequence[int]) -> Iterator[Array]:
        pixels = import_optional("pydicom.pixels", **PURPOSE)
        if len(self.headers) == 1:
            found = pixels.iter_pixels(self.headers[0].filename, indices=numbers, view_only=True)
        else:
            files = (self.headers[number].filename for number in numbers)
            found = (pixels.pixel_array(file, view_only=True) for file in files)
        for number, stored in zip(numbers, found, strict=True):
            if self.scaled is None:
                yield stored
            else:
                slope, intercept = map(self.scaled.type, self.scales[number])
                yield stored.astype(self.scaled) * slope + intercept


def _place(dataset: Any) -> float:
    """Return the position of a slice along the normal, or its number if the position is unknown."""
    if "ImagePositionPatient" not in dataset:
        return float(dataset.InstanceNumber)
    across, down = np.array(dataset.ImageOrientationPatient, float).reshape(2, 3)
    return float(np.cross(across, down) @ np.array(dataset.ImagePositionPatient, float))


def _scale(dataset: Any, frame: int) -> tuple[float, float]:
    """Return slope and intercept of a frame, which files of several frames keep in groups."""
    groups = [
        *getattr(dataset, "PerFrameFunctionalGroupsSequence", ())[frame : frame + 1],
        *getattr(dataset, "SharedFunctionalGroupsSequence", ()),
    ]
    found = (group.get("PixelValueTransformationSequence") for group in groups)
    source = next((steps[0] for steps in found if steps), dataset)
    return float(source.get("RescaleSlope", 1)), float(source.get("RescaleIntercept", 0))


def _affine(ends: Sequence[Any], count: int) -> Affine | None:
    """Return the affine of a series from its first and last slice, if it is known."""
    if "ImagePositionPatient" not in ends[0]:
        return None
    first, last = (np.array(dataset.ImagePositionPatient, float) for dataset in ends)
    across, down = np.array(ends[0].ImageOrientationPatient, float).reshape(2, 3)
    row, column = map(float, getattr(ends[0], "PixelSpacing", (0, 0)))
    if not row * column:
        return None
    between = (last - first) / (count - 1) if count > 1 else np.cross(across, down)
    steps = {"Z": between, "Y": row * down, "X": column * across}
    return Affine.of_space(steps, first, "left-posterior-superior")


def _with_spacing(values: Any, axes: str, dataset: Any, distance: float) -> Opened:
    row, column = getattr(dataset, "PixelSpacing", (0, 0))
    steps = {"Z": distance, "Y": row, "X": column}
    chunks = (1, *values.shape[1:]) if isinstance(values, _Frames) else None
    white = getattr(dataset, "PhotometricInterpretation", "") == "MONOCHROME1"
    notes = [ZERO_IS_WHITE] if white else []
    return Opened(values, Description.of(axes, steps=steps, units="mm", notes=notes), chunks)


def _placed(opened: Opened, place: Affine | None) -> Opened:
    return replace(opened, description=replace(opened.description, place=place))


READ = frozenset({"axes", "spacing", "place", "encoding"})
FORMATS = (Format("DICOM", SUFFIXES, open_dicom, READ, "pydicom", extra="dicom"),)
