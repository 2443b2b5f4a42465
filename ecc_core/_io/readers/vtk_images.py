"""VTK ImageData in XML (.vti), with values for points or for cells."""

import math
import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from ecc_core._io.affines import Affine
from ecc_core._io.description import Description, unnamed_axes
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.lazy import Array
from ecc_core._io.limits import check_memory
from ecc_core._io.readers.vtk_values import Storage, mapped_at, values_of
from ecc_core._io.readers.vtk_xml import KIND, components_of, dtype_of, parse_vtk
from ecc_core._io.xml import numbers_of

SUFFIXES = (".vti",)
SECTIONS = ("PointData", "CellData")

Extent = tuple[tuple[int, int], ...]
"""First and last point along X, Y and Z."""


@dataclass(frozen=True)
class Part:
    """The values of a piece of the image."""

    element: Element
    extent: Extent


@dataclass(frozen=True)
class Field:
    """An array of the image, with a value for each point or for each cell."""

    section: str
    name: str
    dtype: np.dtype[Any]
    components: int
    parts: tuple[Part, ...]

    @property
    def of_cells(self) -> bool:
        return self.section == "CellData"


def open_vti(path: Path, _: Request, inside: str) -> Opened:
    """Open an array: the named one, or the only one.

    Raw values of one piece that are not compressed are mapped into memory; others are read
    completely.
    """
    if path.stat().st_size == 0:
        raise ValueError(f"not {KIND}: it is empty")
    with path.open("rb") as stream:
        content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    with content:
        root, storage = parse_vtk(content)
        image = root.find("ImageData")
        if image is None:
            raise ValueError(f"must hold ImageData, got {root.get('type')}")
        extent = _extent(image, "WholeExtent")
        field = _pick(_fields(image, storage), path.name, inside)
        shape = _lengths(extent, field)[::-1]
        if field.components != 1:
            shape = (*shape, field.components)
        size = math.prod(shape) * field.dtype.itemsize
        whole = field.parts[0]
        at = None
        if len(field.parts) == 1 and whole.extent == extent:
            at = mapped_at(whole.element, storage, size)
        if at is None:
            check_memory(size, path)
            values = _assembled(field, storage, extent, shape)
        else:
            values = np.memmap(path, field.dtype, "r", at, shape)
    return _placed(image, extent, field, values)


def _extent(element: Element, name: str) -> Extent:
    numbers = numbers_of(element.get(name, ""), name, 6)
    if not all(number.is_integer() for number in numbers):
        raise ValueError(f"damaged: {name} must be whole numbers, got {element.get(name)!r}")
    ends = [int(number) for number in numbers]
    extent = tuple(zip(ends[::2], ends[1::2], strict=True))
    if any(first > last for first, last in extent):
        raise ValueError(f"damaged: {name} has no points: {element.get(name)!r}")
    return extent


def _fields(image: Element, storage: Storage) -> list[Field]:
    """Return the arrays of an image, whose pieces must have the same ones."""
    found: dict[tuple[str, str], Field] = {}
    pieces = image.findall("Piece")
    for piece in pieces:
        extent = _extent(piece, "Extent")
        arrays = [(s, array) for s in SECTIONS for array in piece.iterfind(f"{s}/DataArray")]
        for section, array in arrays:
            name = array.get("Name", "")
            components = components_of(array)
            field = Field(
                section=section,
                name=name,
                dtype=dtype_of(array, storage),
                components=components,
                parts=(),
            )
            before = found.get((section, name), field)
            if (field.dtype, field.components) != (before.dtype, before.components):
                raise ValueError(f"damaged: its pieces have different types of {name}")
            parts = (*before.parts, Part(array, extent))
            found[section, name] = Field(
                section=section,
                name=name,
                dtype=field.dtype,
                components=field.components,
                parts=parts,
            )
    for field in found.values():
        if len(field.parts) != len(pieces):
            raise ValueError(f"damaged: not all of its pieces have {field.section}/{field.name}")
    return list(found.values())


def _pick(fields: list[Field], file: str, inside: str) -> Field:
    named = {f"{field.section}/{field.name}": field for field in fields}
    there = ", ".join(named) or "none"
    if not inside:
        if len(fields) != 1:
            raise ValueError(
                f"must hold one array or one be named, as in {file}/NAME; arrays: {there}"
            )
        return fields[0]
    matching = [field for name, field in named.items() if inside in (name, field.name)]
    if len(matching) != 1:
        raise ValueError(f"has {'no' if not matching else 'two'} {inside}; arrays: {there}")
    return matching[0]


def _lengths(extent: Extent, field: Field) -> tuple[int, ...]:
    """Return how many values there are along X, Y and Z."""
    if field.of_cells:  # Along an axis with one point, cells have no extent, but there is one.
        return tuple(max(1, last - first) for first, last in extent)
    return tuple(last - first + 1 for first, last in extent)


def _assembled(field: Field, storage: Storage, extent: Extent, shape: tuple[int, ...]) -> Array:
    """Return the values of all pieces, which must cover the image."""
    parts: list[tuple[tuple[slice, ...], Array]] = []
    for part in field.parts:
        lengths = _lengths(part.extent, field)
        starts = [first - origin[0] for (first, _), origin in zip(part.extent, extent, strict=True)]
        ends = [start + n for start, n in zip(starts, lengths, strict=True)]
        beyond = [end > n for end, n in zip(ends, _lengths(extent, field), strict=True)]
        if min(starts) < 0 or any(beyond):
            raise ValueError(f"damaged: a piece {part.extent} lies outside of {extent}")
        count = math.prod(lengths) * field.components
        values = values_of(part.element, storage, field.dtype, count)
        box = tuple(slice(a, b) for a, b in zip(starts[::-1], ends[::-1], strict=True))
        parts.append((box, values.reshape((*lengths[::-1], *shape[3:]))))
    if len(parts) == 1 and parts[0][1].shape == shape:
        return parts[0][1]
    whole = np.zeros(shape, field.dtype)
    covered = np.zeros(shape[:3], bool)
    for box, values in parts:
        whole[box] = values
        covered[box] = True
    if not covered.all():
        raise ValueError("its pieces do not cover WholeExtent; the others are in other files")
    return whole


def _placed(image: Element, extent: Extent, field: Field, values: Array) -> Opened:
    """Return the image without axes of a single point, and its place."""
    steps = numbers_of(image.get("Spacing", "1 1 1"), "Spacing", 3)
    origin = np.array(numbers_of(image.get("Origin", "0 0 0"), "Origin", 3))
    rows = numbers_of(image.get("Direction", "1 0 0 0 1 0 0 0 1"), "Direction", 9)
    vectors = np.reshape(rows, (3, 3)) * steps  # The columns are steps along X, Y and Z.
    # The value of a cell lies in its middle, half a step from its first point.
    first = [start + 0.5 if field.of_cells and end > start else start for start, end in extent]
    flat = [axis for axis, (start, end) in zip("XYZ", extent, strict=True) if start == end]
    kept = [axis for axis in "ZYX" if axis not in flat] or ["X"]
    shape = [n for axis, n in zip("ZYX", values.shape[:3], strict=True) if axis in kept]
    axes = "".join(kept)
    if axes not in ("ZYX", "YX", "X"):  # The image is a plane across X or Y, or a line along Z.
        axes = unnamed_axes(len(kept))
    names = dict(zip(kept, axes, strict=True))
    channels = ""
    if field.components != 1:
        channels = "S" if field.components in (3, 4) and field.dtype.kind == "u" else "C"
        shape.append(field.components)
    along = {names[axis]: vectors[:, i] for i, axis in enumerate("XYZ") if axis in names}
    lengths = {axis: float(np.linalg.norm(vector)) for axis, vector in along.items()}
    affine = None
    if all(0 < length < math.inf for length in lengths.values()):
        affine = Affine(along, vectors @ first + origin, "vtk")
    description = Description.of(axes + channels, steps=lengths, place=affine)
    return Opened(values.reshape(shape), description)


READ = frozenset({"axes", "spacing", "place"})
FORMATS = (
    Format(
        name="VTK ImageData",
        suffixes=SUFFIXES,
        open=open_vti,
        fields=READ,
        reference="VTK",
        is_container=True,
    ),
)
