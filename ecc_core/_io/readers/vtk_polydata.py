"""VTK PolyData in XML (.vtp)."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

import numpy as np

from ecc_core._io.readers.polydata import Array, Cells, PolyData, pick_values
from ecc_core._io.readers.vtk_values import Storage, values_of
from ecc_core._io.readers.vtk_xml import components_of, dtype_of, parse_vtk

KINDS = ("Polys", "Strips", "Lines")


def read_vtp(content: bytes) -> PolyData:
    """Return the shape in a file, joined from all of its pieces."""
    pieces, storage = _pieces(content)
    points = []
    corners: dict[str, list[Array]] = {kind: [] for kind in KINDS}
    sizes: dict[str, list[Array]] = {kind: [] for kind in KINDS}
    before = 0
    for piece in pieces:
        count = _count(piece, "Points")
        if count:
            points.append(_array(piece, "Points/DataArray", storage, (count, 3)))
        for kind in KINDS:
            cells = _cells(piece, kind, storage)
            if cells.corners.size and not 0 <= cells.corners.min() <= cells.corners.max() < count:
                ends = f"{cells.corners.min()} to {cells.corners.max()}"
                raise ValueError(f"damaged: its {kind} have points {ends} of {count}")
            corners[kind].append(cells.corners + before)
            sizes[kind].append(cells.sizes)
        before += count
    whole = {}
    for kind in KINDS:
        last_corners = np.cumsum(np.concatenate(sizes[kind]))
        whole[kind] = Cells(np.concatenate(corners[kind]), last_corners)
    places = np.concatenate(points) if points else np.empty((0, 3))
    return PolyData(places, whole["Polys"], whole["Strips"], whole["Lines"])


def read_vtp_values(content: bytes, name: str) -> Array:
    """Return an array of values of the points: the named one, or the only one."""
    pieces, storage = _pieces(content)
    there = {
        array.get("Name", ""): components_of(array)
        for array in pieces[0].iterfind("PointData/DataArray")
    }
    wanted = pick_values(there, name)
    parts = []
    for piece in pieces:
        shape = _count(piece, "Points"), there[wanted]
        path = f"PointData/DataArray[@Name={_quoted(wanted)}]"
        parts.append(_array(piece, path, storage, shape))
    if len({part.dtype for part in parts}) > 1:
        raise ValueError(f"damaged: its pieces have different types of {wanted}")
    return np.concatenate(parts)


def _quoted(name: str) -> str:
    """Return a name in quotation marks, as in paths of ElementTree."""
    if '"' in name and "'" in name:
        raise ValueError(f"values whose name has both quotation marks are not supported: {name}")
    return f"'{name}'" if '"' in name else f'"{name}"'


def _pieces(content: bytes) -> tuple[Sequence[Element], Storage]:
    root, storage = parse_vtk(content)
    data = root.find("PolyData")
    if data is None:
        raise ValueError(f"must hold PolyData, got {root.get('type')}")
    pieces = data.findall("Piece")
    if not pieces:
        raise ValueError("has no pieces")
    return pieces, storage


def _count(piece: Element, what: str) -> int:
    text = piece.get(f"NumberOf{what}", "0")
    if not text.isdecimal():
        raise ValueError(f"damaged: NumberOf{what} is {text!r}")
    return int(text)


def _array(piece: Element, path: str, storage: Storage, shape: tuple[int, int]) -> Array:
    """Return the values of the array at a path, of a shape (values, components)."""
    element = piece.find(path)
    if element is None:
        raise ValueError(f"damaged: a piece has no {path}")
    if components_of(element) != shape[1]:
        raise ValueError(
            f"damaged: {path} must have {shape[1]} components, got {components_of(element)}"
        )
    values = values_of(element, storage, dtype_of(element, storage), shape[0] * shape[1])
    return values.reshape(shape)


def _cells(piece: Element, kind: str, storage: Storage) -> Cells:
    count = _count(piece, kind)
    if count == 0:
        return Cells(np.empty(0, np.int64), np.empty(0, np.int64))
    ends = _array(piece, f"{kind}/DataArray[@Name='offsets']", storage, (count, 1))[:, 0]
    if ends[-1] < 0:
        raise ValueError(f"damaged: its {kind} end at {ends[-1]}")
    shape = int(ends[-1]), 1
    corners = _array(piece, f"{kind}/DataArray[@Name='connectivity']", storage, shape)
    return Cells.of(corners[:, 0], ends)
