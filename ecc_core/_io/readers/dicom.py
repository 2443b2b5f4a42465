"""DICOM: a file of one or several frames, or a folder with the slices of a series."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.affines import Affine
from ecc_core._io.colours import ZERO_IS_WHITE
from ecc_core._io.description import Description
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.lazy import Array, Box, Lazy
from ecc_core._io.readers.dicom_frames import arranged, even_gap, group_of, normal_of, spacing_of
from ecc_core._io.readers.dicom_values import PURPOSE, Decoder, value_unit
from ecc_core._io.readers.folders import Planes
from ecc_core._optional import import_optional

SUFFIXES = (".dcm", ".dicom")


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
    """Open one file, with its frames in the order of their positions and of time."""
    header = _header(path)
    count = int(header.get("NumberOfFrames", 1) or 1)
    arrangement = arranged(header, count)
    frames = _Frames([header], arrangement.order.reshape(-1))
    (row, column), between = spacing_of(header)
    steps = {"Z": arrangement.gap or between, "Y": row, "X": column, "T": arrangement.interval}
    orientation = group_of(header, 0, "PlaneOrientationSequence") or header
    place = None
    if arrangement.positions is not None:
        place = _place_of(arrangement.positions, orientation, steps)
    elif count == 1 and "ImagePositionPatient" in header:
        place = _place_of(np.array([header.ImagePositionPatient], float), orientation, steps)
    samples = "S" if frames.first.ndim > 2 else ""
    array: Any = frames
    letters = arrangement.letters
    names = arrangement.names
    if count == 1:
        array = frames.first
        letters = ""
        names = ()
    elif len(letters) > 1:
        array = _folded(frames, arrangement.order.shape)
    names = (*names, "row", "column", *(["sample"] * len(samples)))
    description = _description(
        header, frames, letters=letters + "YX" + samples, steps=steps, names=names, place=place
    )
    chunks = None if array is frames.first else (1,) * len(letters) + frames.shape[1:]
    return Opened(array, description, chunks)


def _folded(frames: "_Frames", shape: tuple[int, ...]) -> Lazy:
    """Return frames along two axes, such as time and slices, as one array."""
    groups, slices = shape

    def read(box: Box) -> Array:
        first, second, *rest = box
        parts = [
            frames[(slice(i * slices + second.start, i * slices + second.stop), *rest)]
            for i in range(first.start, first.stop)
        ]
        empty = (0, second.stop - second.start, *(part.stop - part.start for part in rest))
        return np.stack(parts) if parts else np.empty(empty, frames.dtype)

    return Lazy((groups, slices, *frames.shape[1:]), frames.dtype, read)


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
    gap = even_gap(np.array(places)[order])
    ordered = [slices[i] for i in order]
    frames = _Frames(ordered, np.arange(len(ordered)))
    row, column = ordered[0].get("PixelSpacing") or (0, 0)
    measured = "ImagePositionPatient" in ordered[0]
    steps = {"Z": gap if measured else 0, "Y": row, "X": column}
    place = None
    if measured:
        positions = np.array([header.ImagePositionPatient for header in ordered], float)
        place = _place_of(positions, ordered[0], steps)
    samples = "S" if frames.first.ndim > 2 else ""
    names = ("slice", "row", "column", *(["sample"] * len(samples)))
    description = _description(
        ordered[0], frames, letters="ZYX" + samples, steps=steps, names=names, place=place
    )
    return Opened(
        frames,
        description,
        (1, *frames.shape[1:]),
        described=list(map(str, files)),
        series=len(held),
    )


def _header(path: Path) -> Any:
    """Return the header of a file, after a check of the number of bytes of its pixels."""
    pydicom = import_optional("pydicom", **PURPOSE)
    pixels = import_optional("pydicom.pixels.utils", **PURPOSE)
    with path.open("rb") as stream:
        dataset = pydicom.dcmread(stream, stop_before_pixels=True)
        head = stream.read(12)
    if not dataset.file_meta.TransferSyntaxUID.is_compressed and len(head) == 12:
        implicit, little = dataset.original_encoding
        (count,) = struct.unpack("<L" if little else ">L", head[4:8] if implicit else head[8:])
        wanted = pixels.get_expected_length(dataset)
        if count != wanted + wanted % 2:  # DICOM pads values to an even number of bytes.
            raise ValueError(f"damaged: should have {wanted} bytes of pixels, got {count}")
    return dataset


class _Frames(Planes):
    """The decoded frames of a file, or of several files of one frame each, in a given order."""

    def __init__(self, headers: Sequence[Any], order: NDArray[np.intp]) -> None:
        self.headers = headers
        self.order = order
        numbers = order.tolist()
        header_of_each = [headers[i % len(headers)] for i in numbers]
        scales = [_scale(header, i) for header, i in zip(header_of_each, numbers, strict=True)]
        self.decode = Decoder.of(headers, scales)
        self.stored: np.dtype[Any] | None = None
        names = [Path(header.filename).name for header in header_of_each]
        super().__init__(names, self._read)
        for number, header in enumerate(headers):
            self.compare(number, "shape", (header.Rows, header.Columns), self.first.shape[:2])

    def _read(self, numbers: Sequence[int]) -> Iterator[Array]:
        pixels = import_optional("pydicom.pixels", **PURPOSE)
        wanted = [int(self.order[number]) for number in numbers]
        if len(self.headers) == 1:
            found = pixels.iter_pixels(self.headers[0].filename, indices=wanted, view_only=True)
        else:
            files = (self.headers[number].filename for number in wanted)
            found = (pixels.pixel_array(file, view_only=True) for file in files)
        for number, stored in zip(numbers, found, strict=True):
            self.stored = stored.dtype
            yield self.decode(stored, number)


def _place(header: Any) -> float:
    """Return the position of a slice along the normal, or its number if the position is unknown."""
    if "ImagePositionPatient" not in header:
        return float(header.InstanceNumber)
    normal = normal_of(header.ImageOrientationPatient)
    return float(normal @ np.array(header.ImagePositionPatient, float))


def _scale(header: Any, frame: int) -> tuple[float, float]:
    """Return slope and intercept of a frame, which files of several frames keep in groups."""
    source = group_of(header, frame, "PixelValueTransformationSequence") or header
    return float(source.get("RescaleSlope", 1)), float(source.get("RescaleIntercept", 0))


def _place_of(
    positions: NDArray[np.float64], orientation: Any, steps: Mapping[str, Any]
) -> Affine | None:
    """Return the places of slices, None if unknown.

    The step along Z is the mean vector from slice to slice, which may not be their normal.
    """
    if not (steps["Y"] and steps["X"] and "ImageOrientationPatient" in orientation):
        return None
    across, down = np.array(orientation.ImageOrientationPatient, float).reshape(2, 3)
    between = np.cross(across, down)
    if len(positions) > 1:
        between = (positions[-1] - positions[0]) / (len(positions) - 1)
    vectors = {"Z": between, "Y": float(steps["Y"]) * down, "X": float(steps["X"]) * across}
    return Affine.of_space(vectors, positions[0], "left-posterior-superior")


def _description(
    header: Any,
    frames: _Frames,
    letters: str,
    steps: Mapping[str, Any],
    names: Sequence[str],
    place: Affine | None,
) -> Description:
    """Return the description of the frames by the header."""
    white = header.get("PhotometricInterpretation", "") == "MONOCHROME1"
    return Description.of(
        letters,
        steps=steps,
        units=dict.fromkeys("ZYX", "mm") | {"T": "ms"},
        names=names,
        place=place,
        encoding=frames.decode.encoding(frames.stored or frames.dtype, value_unit(header)),
        missing=frames.decode.missing(frames.dtype),
        notes=[ZERO_IS_WHITE] if white else [],
    )


READ = frozenset({"axes", "spacing", "time", "place", "encoding", "missing"})
FORMATS = (
    Format(
        name="DICOM",
        suffixes=SUFFIXES,
        open=open_dicom,
        fields=READ,
        reference="pydicom",
        extra="dicom",
    ),
)
