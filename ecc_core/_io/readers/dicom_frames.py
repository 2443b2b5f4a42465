"""The arrangement of the frames of a DICOM file in space, in time and along other dimensions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_UNEVEN = 0.01
"""The largest relative difference between distances of slices, which are written with few digits.
It is also that between direction cosines."""
TIME_TAGS = ("TemporalPositionIndex", "TemporalPositionTimeOffset", "FrameReferenceDateTime")
CINE_TAGS = ("FrameTime", "FrameTimeVector")


@dataclass(frozen=True)
class Arrangement:
    """The order of frames along the first axes of an image."""

    letters: str
    """The axes before Y and X: ``Z``, ``TZ``, ``DZ`` (with another dimension) or ``T``."""
    names: tuple[str, ...]
    order: NDArray[np.intp]
    """The number of the frame at each index along these axes."""
    positions: NDArray[np.float64] | None
    """The positions of the slices along Z in the patient, (slices, 3), or None if unknown."""
    gap: float = 0.0
    """Distance between slices along their normal; 0 if unknown."""
    interval: float = 0.0
    """Milliseconds between points in time; 0 if unknown."""


def group_of(header: Any, frame: int, name: str) -> Any:
    """Return the item of a functional group of a frame, or of all frames; None if there is none."""
    groups = [
        *header.get("PerFrameFunctionalGroupsSequence", ())[frame : frame + 1],
        *header.get("SharedFunctionalGroupsSequence", ()),
    ]
    found = (group.get(name) for group in groups)
    return next((items[0] for items in found if items), None)


def normal_of(orientation: Any) -> NDArray[np.float64]:
    """Return the direction in which slices follow each other."""
    across, down = np.array(orientation, np.float64).reshape(2, 3)
    return np.cross(across, down)


def even_gap(places: NDArray[np.float64]) -> float:
    """Return the distance between consecutive slices, 0 for a single slice.

    Raises ValueError if the distances differ.
    """
    gaps = np.diff(places)
    if gaps.size and (gaps.min() <= 0 or np.ptp(gaps) > MOST_UNEVEN * gaps.min()):
        raise ValueError("slices are missing, doubled or unevenly spaced")
    return float(gaps.mean()) if gaps.size else 0.0


def arranged(header: Any, count: int) -> Arrangement:
    """Return how the frames of a file are arranged."""
    in_file = np.arange(count)
    planes = [group_of(header, i, "PlanePositionSequence") for i in range(count)]
    orientations = [group_of(header, i, "PlaneOrientationSequence") for i in range(count)]
    have_positions = [item is not None and "ImagePositionPatient" in item for item in planes]
    have_directions = [
        item is not None and "ImageOrientationPatient" in item for item in orientations
    ]
    if all(have_positions) and all(have_directions):
        positions = np.array([item.ImagePositionPatient for item in planes], np.float64)
        directions = np.array([item.ImageOrientationPatient for item in orientations], np.float64)
        if np.ptp(directions, axis=0).max() > MOST_UNEVEN:
            raise ValueError("its frames lie in different directions, and are no volume")
        return _by_positions(header, positions, directions[0])
    pointer = header.get("FrameIncrementPointer")
    offsets = header.get("GridFrameOffsetVector")
    if offsets is not None and len(offsets) == count:
        places = np.array(offsets, np.float64)
        order = np.argsort(places, kind="stable")
        return Arrangement(
            letters="Z", names=("slice",), order=order, positions=None, gap=even_gap(places[order])
        )
    if pointer is not None and _keyword(pointer) in CINE_TAGS:
        interval = float(header.get("FrameTime", 0) or 0)
        return Arrangement("T", ("time",), in_file, None, interval=interval)
    return Arrangement("Z", ("",), in_file, None)


def _by_positions(
    header: Any, positions: NDArray[np.float64], orientation: NDArray[np.float64]
) -> Arrangement:
    """Return the order of frames by their place along the normal, and by another dimension.

    The other dimension is looked for if several frames are at each place.
    """
    places = np.round(positions @ normal_of(orientation), 4)
    slices, along, which = np.unique(places, return_index=True, return_inverse=True)
    gap = even_gap(slices)
    repeats = np.bincount(which)
    if repeats.max() == 1:
        return Arrangement(
            letters="Z", names=("slice",), order=along, positions=positions[along], gap=gap
        )
    letter, name, values = _other_dimension(header, which, int(repeats.max()))
    distinct, index = np.unique(values, return_inverse=True)
    order = np.full((len(distinct), len(slices)), -1, np.intp)
    order[index, which] = np.arange(len(places))
    if (order < 0).any() or order.size != len(places):
        raise ValueError(f"frames are missing or doubled along {name}, at some of the positions")
    return Arrangement(
        letters=f"{letter}Z",
        names=(name, "slice"),
        order=order,
        positions=positions[along],
        gap=gap,
    )


def _other_dimension(
    header: Any, which: NDArray[np.intp], repeats: int
) -> tuple[str, str, NDArray[Any]]:
    """Return letter, name and values of the dimension that distinguishes frames at one position.

    `which` has the number of each frame's position, and `repeats` is the number of frames at each.
    """
    count = len(which)
    content = [group_of(header, i, "FrameContentSequence") for i in range(count)]
    temporal = [item.get("TemporalPositionIndex") if item else None for item in content]
    if None not in temporal and len(set(temporal)) == repeats:
        return "T", "TemporalPositionIndex", np.array(temporal)
    found = [item.get("DimensionIndexValues") if item else None for item in content]
    indices = [None if values is None else np.ravel(values) for values in found]
    described = header.get("DimensionIndexSequence", ())
    fits = [values is not None and len(values) == len(described) for values in indices]
    if all(fits):
        table = np.array(indices, np.int64).reshape(count, -1)
        for column, dimension in zip(table.T, described, strict=True):
            is_full = len({*zip(which.tolist(), column.tolist(), strict=True)}) == count
            if is_full and len(np.unique(column)) == repeats:
                name = _keyword(dimension.DimensionIndexPointer)
                return "T" if name in TIME_TAGS else "D", name, column
    raise ValueError(
        f"has {repeats} frames at each position, and no one dimension tells them apart"
    )


def _keyword(tag: Any) -> str:
    from pydicom.datadict import keyword_for_tag

    return keyword_for_tag(tag) or str(tag)


def spacing_of(header: Any) -> tuple[Sequence[Any], Any]:
    """Return the spacing of rows and columns, and of slices, of the file or of its groups."""
    measures = group_of(header, 0, "PixelMeasuresSequence")
    source = header if measures is None else measures
    rows_and_columns = source.get("PixelSpacing") or header.get("PixelSpacing") or (0, 0)
    between = source.get("SpacingBetweenSlices", header.get("SpacingBetweenSlices", 0))
    return rows_and_columns, between
