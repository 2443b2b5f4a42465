"""Amira and Avizo meshes (.am) that are uniform lattices: text, raw or run-length encoded."""

import math
import mmap
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ecc_core._io.affines import Affine
from ecc_core._io.description import Description
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.lazy import Array
from ecc_core._io.limits import DEFLATE, check_held, check_memory

SUFFIXES = (".am",)
TYPES = {
    "byte": "u1",
    "short": "i2",
    "ushort": "u2",
    "int": "i4",
    "int32": "i4",
    "float": "f4",
    "double": "f8",
}
ORDERS = {"BINARY-LITTLE-ENDIAN": "<", "BINARY": ">", "ASCII": "", "3D ASCII": ""}
MOST_HEADER_BYTES = 1 << 24
MOST_RUN = 127
"""The most bytes that a byte of the run-length encoding stands for."""
RATIOS = {"HxByteRLE": MOST_RUN, "HxZip": DEFLATE}
"""The most bytes that an encoded byte yields, by encoding."""
LEAST_TEXT = 2
"""The fewest characters of a value in text, with the space behind it."""
MAGIC = re.compile(rb"#\s*(?:AmiraMesh|Avizo)\s+([A-Z3-]+(?:\s+ASCII)?)\s")
LATTICE = re.compile(
    r"Lattice\s*\{\s*(\w+)(?:\[(\d+)\])?\s+(\w+)\s*\}\s*=?\s*(?:\w+\([^)]*\)\s*)?"
    r"@(\d+)(?:\((\w+),\s*(\d+)\))?"
)
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


@dataclass(frozen=True)
class Values:
    """An array of the lattice."""

    name: str
    dtype: np.dtype[np.generic]
    components: int
    label: int  # 1 for the values that follow @1.
    codec: str
    size: int  # Bytes of the encoded values.


def open_amira(path: Path, _: Request, inside: str = "") -> Opened:
    """Open an array of the lattice: the named one, or the only one."""
    with path.open("rb") as stream:
        head = stream.read(MOST_HEADER_BYTES)
    magic = MAGIC.match(head)
    if not magic:
        raise ValueError("not a file of Amira or Avizo, or truncated")
    kind = " ".join(magic[1].decode().split())
    if kind not in ORDERS:
        raise ValueError(f"values written as {kind} are not supported")
    end = re.search(rb"^@\d+[ \t]*\r?\n", head, re.MULTILINE)
    text = head[: end.start() if end else len(head)].decode("utf-8", "replace")
    lengths, found = _described(text, ORDERS[kind])
    values = _pick(found, path.name, inside)
    shape = (*lengths[::-1], *([values.components] if values.components != 1 else []))
    as_text = not ORDERS[kind]
    start = _start(path, found, values, math.prod(lengths), text=as_text)
    array = _read(path, start, values, shape, text=as_text)
    channels = ""
    if values.components != 1:
        colours = values.components in (3, 4) and values.dtype.kind == "u"
        channels = "S" if colours else "C"
    steps, first = _bounds(text, lengths)
    unit = re.search(r'Units\s*\{[^}]*Coordinates\s+"([^"]*)"', text)
    affine = None
    if len(steps) == len(lengths):
        along = {axis: step * np.eye(3)["XYZ".index(axis)] for axis, step in steps.items()}
        affine = Affine(along, np.array(first), "amira")
    axes = "ZYX" + channels
    if lengths[2] == 1:
        array = array[0]
        axes = axes[1:]
    description = Description.of(axes, steps=steps, units=unit[1] if unit else "", place=affine)
    return Opened(array, description)


def _described(text: str, order: str) -> tuple[tuple[int, ...], list[Values]]:
    """Return the lengths along X, Y and Z, and the arrays of the lattice."""
    size = re.search(r"define\s+Lattice\s+(\d+)\s+(\d+)(?:\s+(\d+))?", text)
    if not size:
        raise ValueError("must hold a lattice: its header has no define Lattice")
    lengths = tuple(int(n) for n in (size[1], size[2], size[3] or "1"))
    if min(lengths) < 1:
        raise ValueError(f"damaged: its lattice has {lengths} points")
    coordinates = re.search(r'CoordType\s+"(\w+)"', text)
    if coordinates and coordinates[1] != "uniform":
        raise ValueError(f"its coordinates are {coordinates[1]}, only uniform ones are supported")
    found = []
    for kind, components, name, label, codec, packed in LATTICE.findall(text):
        if kind not in TYPES:
            raise ValueError(f"values of type {kind} are not supported, in {name}")
        found.append(
            Values(
                name=name,
                dtype=np.dtype(order + TYPES[kind]),
                components=int(components or 1),
                label=int(label),
                codec=codec,
                size=int(packed or 0),
            )
        )
    return lengths, found


def _pick(found: list[Values], file: str, inside: str) -> Values:
    names = ", ".join(values.name for values in found) or "none"
    matching = [values for values in found if inside in ("", values.name)]
    if not inside and len(matching) != 1:
        raise ValueError(f"must hold one array or one be named, as in {file}/NAME; arrays: {names}")
    if not matching:
        raise ValueError(f"has no array {inside}; arrays: {names}")
    if matching[0].components < 1:
        raise ValueError(f"damaged: {matching[0].name} has no components")
    return matching[0]


def _read(path: Path, start: int, values: Values, shape: tuple[int, ...], *, text: bool) -> Array:
    """Return the values that begin at a place of the file."""
    there = path.stat().st_size - start
    size = math.prod(shape) * values.dtype.itemsize
    if text:
        return _from_text(path, start, values, shape)
    if not values.codec:
        check_held(size, there, 1)
        return np.memmap(path, values.dtype, "r", start, shape)
    if values.size > there:
        raise ValueError(f"truncated: {values.size - there} bytes of {values.name} are missing")
    if values.codec not in RATIOS:
        raise ValueError(f"values encoded by {values.codec} are not supported")
    check_held(size, values.size, RATIOS[values.codec])
    check_memory(size, path)
    with path.open("rb") as stream:
        stream.seek(start)
        packed = stream.read(values.size)
    if values.codec == "HxByteRLE":
        whole = _unpacked(packed, size)
    else:
        try:
            whole = zlib.decompressobj().decompress(packed, size + 1)
        except zlib.error as error:
            raise ValueError(f"damaged: {error}") from None
    if len(whole) != size:
        raise ValueError(f"damaged: its values have {len(whole)} bytes instead of {size}")
    return np.frombuffer(whole, values.dtype).reshape(shape)


def _start(path: Path, found: list[Values], values: Values, points: int, *, text: bool) -> int:
    """Return where values begin: behind the line with their label.

    Earlier values are skipped, because their bytes could look like a label.
    """
    with path.open("rb") as stream:
        content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    at = 0
    with content:
        for one in sorted(found, key=lambda one: one.label):
            label = re.compile(rb"(?:^|\n)\s*@%d[ \t]*\r?\n" % one.label)
            place = label.search(content, at) if text or at == 0 else label.match(content, at)
            if not place:
                raise ValueError(f"truncated or damaged: @{one.label} is not where it should be")
            at = place.end()
            if one is values:
                break
            size = one.size if one.codec else points * one.components * one.dtype.itemsize
            at += 0 if text else size
    return at


def _from_text(path: Path, start: int, values: Values, shape: tuple[int, ...]) -> Array:
    count = math.prod(shape)
    there = path.stat().st_size - start
    check_held(count * LEAST_TEXT, there + 1, 1)
    check_memory(8 * there // LEAST_TEXT, path)
    with path.open("rb") as stream:
        stream.seek(start)
        words = re.split(rb"^@", stream.read(), maxsplit=1, flags=re.MULTILINE)[0].split()
    if len(words) != count:
        raise ValueError(f"truncated or damaged: {len(words)} values instead of {count}")
    try:
        numbers = [float(word) for word in words]
        if values.dtype.kind == "f":
            return np.array(numbers, values.dtype).reshape(shape)
        whole = [int(word) for word in words]
        return np.array(whole, values.dtype).reshape(shape)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"damaged: {error}") from None


def _unpacked(packed: bytes, size: int) -> bytes:
    """Return the bytes of a run-length encoding.

    A byte of 128 + n is followed by n bytes that are copied. A smaller byte n says that the next
    byte is repeated n times.
    """
    parts = []
    at = 0
    total = 0
    while at + 1 < len(packed) and total <= size:
        length = packed[at] & MOST_RUN
        if packed[at] > MOST_RUN:
            part = packed[at + 1 : at + 1 + length]
            at += 1 + length
        else:
            part = packed[at + 1 : at + 2] * length
            at += 2
        parts.append(part)
        total += len(part)
    return b"".join(parts)


def _bounds(text: str, lengths: tuple[int, ...]) -> tuple[dict[str, float], list[float]]:
    """Return the distances between points, and the place of the first point."""
    box = re.search(r"BoundingBox\s+" + r"\s+".join([f"({NUMBER})"] * 6), text)
    if not box:
        return {}, []
    ends = [float(word) for word in box.groups()]
    steps = {}
    for axis, low, high, n in zip("XYZ", ends[::2], ends[1::2], lengths, strict=True):
        # The box extends from the first to the last point.
        if n > 1 and math.isfinite(high - low) and high > low:
            steps[axis] = (high - low) / (n - 1)
    return steps, ends[::2]


READ = frozenset({"axes", "spacing", "place"})
FORMATS = (
    Format(
        name="Amira",
        suffixes=SUFFIXES,
        open=open_amira,
        fields=READ,
        reference="",
        is_container=True,
    ),
)
