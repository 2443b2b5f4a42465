"""VTK PolyData in the older format (.vtk): lines of text with numbers in text or big-endian."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from ecc_core._io.limits import check_held
from ecc_core._io.readers.polydata import NO_CELLS, Array, Cells, PolyData, pick_values
from ecc_core._io.readers.vtk_values import values_in_text

MAGIC = b"# vtk DataFile Version"
TYPES = {
    "char": "i1",
    "signed_char": "i1",
    "unsigned_char": "u1",
    "short": "i2",
    "unsigned_short": "u2",
    "int": "i4",
    "unsigned_int": "u4",
    "long": "i8",
    "unsigned_long": "u8",
    "vtkidtype": "i4",
    "float": "f4",
    "double": "f8",
    **{f"vtktypeint{bits}": f"i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"vtktypeuint{bits}": f"u{bits // 8}" for bits in (8, 16, 32, 64)},
}
"""Dtypes by the names of types in files, as VTK writes them on systems of 64 bits."""
KINDS = {"POLYGONS": "polygons", "TRIANGLE_STRIPS": "strips", "LINES": "lines"}
COMPONENTS = {
    "VECTORS": 3,
    "NORMALS": 3,
    "TENSORS": 9,
    "TENSORS6": 6,
    "GLOBAL_IDS": 1,
    "PEDIGREE_IDS": 1,
    "EDGE_FLAGS": 1,
}
"""The number of values for each point or cell of attributes whose line ends with the type."""
FIRST_WITH_OFFSETS = 5
"""The first version in which cells are offsets and points, not each a size before its points."""
LEAST_TEXT = 2
"""The fewest characters of a number in text, with the space behind it."""


class Legacy(NamedTuple):
    """The content of a file."""

    shape: PolyData
    values: Mapping[str, Array]
    """Values of the points, (n, components), by name."""


def read_legacy(content: bytes) -> Legacy:
    """Return the shape in a file, and the values of its points."""
    reader = _Reader(content)
    if not reader.line().startswith(MAGIC):
        raise ValueError("not a VTK file, or damaged: its first line does not say so")
    version = reader.last.split()[-1].decode("ascii", "replace")
    reader.line()  # The title.
    coding = reader.words()
    if coding not in (["ASCII"], ["BINARY"]):
        raise ValueError(f"damaged: its third line must be ASCII or BINARY, got {reader.last!r}")
    reader.text = coding == ["ASCII"]
    major = version.partition(".")[0]
    reader.with_offsets = major.isdecimal() and int(major) >= FIRST_WITH_OFFSETS
    return _Sections(reader).read()


def read_legacy_values(content: bytes, name: str) -> Array:
    """Return an array of values of the points: the named one, or the only one."""
    values = read_legacy(content).values
    return values[pick_values({own: array.shape[1] for own, array in values.items()}, name)]


class _Reader:
    """Reads the lines and arrays of a file one after another."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0
        self.last = b""
        self.text = True
        self.with_offsets = False

    @property
    def at_end(self) -> bool:
        return self.at >= len(self.content)

    def line(self) -> bytes:
        """Return the next line."""
        end = self.content.find(b"\n", self.at)
        end = len(self.content) if end < 0 else end
        self.last = self.content[self.at : end].strip()
        self.at = end + 1
        return self.last

    def words(self) -> list[str]:
        """Return the words of the next line that is not empty, [] at the end of the file."""
        while not self.at_end:
            found = self.line().decode("latin-1").split()
            if found:
                return found
        return []

    def values(self, name: str, count: int, dtype: np.dtype[Any] | None = None) -> Array:
        """Return `count` numbers of the type `name` of VTK, or of a dtype."""
        if dtype is None:
            kind = TYPES.get(name.lower())
            if kind is None:
                raise ValueError(f"values of type {name} are not supported")
            dtype = np.dtype(f">{kind}")
        if self.text:
            return values_in_text(self._words_of(count), dtype.newbyteorder("="), count)
        size = count * dtype.itemsize
        if size > len(self.content) - self.at:
            raise ValueError(f"truncated or damaged: {count} values of type {name} are missing")
        found = np.frombuffer(self.content, dtype, count, self.at)
        self.at += size
        return found

    def _words_of(self, count: int) -> str:
        """Return the next lines that have at least `count` words."""
        check_held(count * LEAST_TEXT, len(self.content) - self.at + 1, 1)
        start = self.at
        found = 0
        while found < count and not self.at_end:
            found += len(self.line().split())
        return self.content[start : self.at].decode("latin-1")


class _Sections:
    """The parts of a file, each of which begins with a line whose first word names it."""

    def __init__(self, reader: _Reader) -> None:
        self.reader = reader
        self.points: Array = np.empty((0, 3))
        self.cells: dict[str, Cells] = {}
        self.values: dict[str, Array] = {}
        self.count = 0  # The number of points or cells of the present attributes.
        self.of_points = False

    def read(self) -> Legacy:
        words = self.reader.words()
        if len(words) != 2 or words[0].upper() != "DATASET":
            raise ValueError(f"damaged: its fourth line must name a DATASET, got {words}")
        if words[1].upper() != "POLYDATA":
            raise ValueError(f"must hold POLYDATA, got {words[1]}")
        while words := self.reader.words():
            self._section(words[0].upper(), words[1:])
        cells = {own: self.cells.get(kind, NO_CELLS) for kind, own in KINDS.items()}
        return Legacy(PolyData(self.points, **cells), self.values)

    def _section(self, name: str, rest: list[str]) -> None:
        if name == "METADATA":
            while self.reader.line():  # The section ends with an empty line.
                pass
        elif name == "POINTS":
            count = _count(rest, 0)
            self.points = self.reader.values(_word(rest, 1), 3 * count).reshape(count, 3)
        elif name in KINDS or name == "VERTICES":
            self.cells[name] = self._cells(rest)
        elif name in ("POINT_DATA", "CELL_DATA"):
            self.count = _count(rest, 0)
            self.of_points = name == "POINT_DATA"
            if self.of_points and self.count != len(self.points):
                raise ValueError(
                    f"damaged: it has values of {self.count} points, and {len(self.points)} points"
                )
        elif name == "FIELD":
            self._fields(_count(rest, 1))
        else:
            self._attribute(name, rest)

    def _cells(self, rest: list[str]) -> Cells:
        first = _count(rest, 0)
        second = _count(rest, 1)
        if self.reader.with_offsets:
            offsets = self._named("OFFSETS", first)
            corners = self._named("CONNECTIVITY", second)
            if first == 0:
                return NO_CELLS
            if offsets[0] != 0:
                raise ValueError(f"damaged: its first cell begins at {offsets[0]}")
            return Cells.of(corners, offsets[1:])
        return _cells_of_row(self.reader.values("int", second), first)

    def _named(self, name: str, count: int) -> Array:
        words = self.reader.words()
        if [word.upper() for word in words[:1]] != [name]:
            raise ValueError(f"truncated or damaged: {name} must follow, got {words}")
        return self.reader.values(_word(words, 1), count)

    def _fields(self, arrays: int) -> None:
        """Read the arrays of a field, and keep those of the points."""
        for _ in range(arrays):
            words = self.reader.words()
            while words[:1] == ["METADATA"]:
                self._section("METADATA", [])
                words = self.reader.words()
            shape = _count(words, 2), _count(words, 1)
            values = self.reader.values(_word(words, 3), shape[0] * shape[1])
            self._keep(_word(words, 0), values, shape)

    def _attribute(self, name: str, rest: list[str]) -> None:
        """Read an attribute of points or cells, such as scalars or vectors."""
        label = _word(rest, 0)
        if name == "LOOKUP_TABLE":  # A table of colours.
            self.reader.values("float", 4 * _count(rest, 1), self._dtype_of_colours())
            return
        dtype = None
        kind = rest[-1]
        if name == "SCALARS":
            kind = _word(rest, 1)
            components = _count(rest, 2) if len(rest) > 2 else 1
            self._skip_default_table()
        elif name == "COLOR_SCALARS":
            components = _count(rest, 1)
            dtype = self._dtype_of_colours()
        elif name == "TEXTURE_COORDINATES":
            components = _count(rest, 1)
        elif name in COMPONENTS:
            components = COMPONENTS[name]
        else:
            raise ValueError(f"damaged, or not supported: it has a part {name[:40]!r}")
        values = self.reader.values(kind, self.count * components, dtype)
        self._keep(label, values, (self.count, components))

    def _dtype_of_colours(self) -> np.dtype[Any]:
        """Return the dtype of components of colours, for which the file names no type."""
        return np.dtype(np.float32 if self.reader.text else np.uint8)

    def _skip_default_table(self) -> None:
        """Skip the line that names the table of colours, if there is one."""
        before = self.reader.at
        if self.reader.words()[:1] != ["LOOKUP_TABLE"]:
            self.reader.at = before

    def _keep(self, name: str, values: Array, shape: tuple[int, int]) -> None:
        if self.of_points and shape[0] == self.count:
            self.values[unquote(name)] = values.reshape(shape)


def _cells_of_row(row: Array, count: int) -> Cells:
    """Return the cells of a row in which the size of each comes before its points."""
    numbers = row.tolist()
    places = []  # The places of the sizes in the row.
    at = 0
    for _ in range(count):
        if at >= len(numbers) or numbers[at] < 0:
            raise ValueError("damaged: its cells do not follow each other")
        places.append(at)
        at += numbers[at] + 1
    return Cells.of(np.delete(row, places), np.cumsum(row[places], dtype=np.int64))


def _word(words: list[str], place: int) -> str:
    if place >= len(words):
        raise ValueError(f"truncated or damaged: a line lacks a word: {' '.join(words)[:60]!r}")
    return words[place]


def _count(words: list[str], place: int) -> int:
    word = _word(words, place)
    if not word.isdecimal():
        raise ValueError(f"damaged: {word[:40]!r} must be a number of points, cells or values")
    return int(word)
