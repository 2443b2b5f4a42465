"""MetaImage, the format of ITK."""

import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.affines import Affine
from ecc_core._io.description import Description, unnamed_axes
from ecc_core._io.formats import Format, Opened, Request
from ecc_core._io.lazy import Array
from ecc_core._io.limits import check_held
from ecc_core._io.packed import BYTES_AT_ONCE, filled
from ecc_core._io.readers.folders import Planes
from ecc_core._io.same_folder import file_in_same_folder

TYPES = {
    "MET_CHAR": "i1",
    "MET_UCHAR": "u1",
    "MET_SHORT": "i2",
    "MET_USHORT": "u2",
    "MET_INT": "i4",
    "MET_UINT": "u4",
    "MET_LONG": "i4",
    "MET_ULONG": "u4",
    "MET_LONG_LONG": "i8",
    "MET_ULONG_LONG": "u8",
    "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}
MOST_LINE_BYTES = 4096
MOST_LIST_BYTES = 1 << 24

Header = dict[str, str]


def open_metaimage(path: Path, _: Request) -> Opened:
    """Open a MetaImage file as a memory map. A compressed one is read completely."""
    with path.open("rb") as stream:
        header = _metaimage_header(stream)
        start = stream.tell()
        listed = _listed(header, stream)
    place = header["ElementDataFile"]
    file = path
    if place.upper() != "LOCAL" and not listed:
        file = file_in_same_folder(path, place)
        start = int(header.get("HeaderSize", 0))
    if not _is_true(header.get("BinaryData", "True")):
        raise ValueError("values written as text are not supported")
    shape = tuple(map(int, header["DimSize"].split()))[::-1]
    if len(shape) != int(header["NDims"]) or min(shape) < 1:
        raise ValueError(f"damaged: its size is {header['DimSize']}, NDims {header['NDims']}")
    if header["ElementType"] not in TYPES:
        raise ValueError(f"values of type {header['ElementType']} are not supported")
    order = header.get("BinaryDataByteOrderMSB", header.get("ElementByteOrderMSB", "False"))
    dtype = np.dtype((">" if _is_true(order) else "<") + TYPES[header["ElementType"]])
    axes = unnamed_axes(len(shape))
    channels = int(header.get("ElementNumberOfChannels", 1))
    if channels != 1:
        shape = (*shape, channels)
        axes += "S" if channels in (3, 4) and dtype.kind == "u" else "C"
    is_compressed = _is_true(header.get("CompressedData", "False"))
    described = _metaimage_description(header, axes)
    if listed:
        if is_compressed:
            raise ValueError("compressed values in several files are not supported")
        parts = [file_in_same_folder(path, name) for name in listed]
        slices = _slices(header, parts, shape, dtype)
        files = [str(path), *map(str, parts)]
        return Opened(slices, described, (1, *shape[1:]), described=files)
    if is_compressed:
        values = filled(_inflated(file, start), file, shape, dtype)
    else:
        size = math.prod(shape) * dtype.itemsize
        there = file.stat().st_size
        if start == -1:  # The header's size is not known; the values end with the file.
            start = max(0, there - size)
        check_held(size, there - start, 1)
        if size < there - start:
            raise ValueError(f"damaged: {there - start - size} bytes follow the values")
        values = np.memmap(file, dtype, "r", start, shape)
    held = dict.fromkeys((str(path), str(file)))
    return Opened(values, described, described=[*held])


def _is_true(value: str) -> bool:
    """Whether a boolean of a header is true, by its first character, as MetaIO reads it."""
    return value[:1] in ("T", "t", "1")


def _listed(header: Header, stream: IO[bytes]) -> list[str]:
    """Return the names of the files of slices, from a list or a pattern; [] if there are none."""
    words = header["ElementDataFile"].split()
    if words and words[0].upper() == "LIST":
        header["FileDimension"] = words[1].rstrip("Dd") if len(words) > 1 else ""
        lines = stream.read(MOST_LIST_BYTES).decode("utf-8", "replace").splitlines()
        return [line.strip() for line in lines if line.strip()]
    if not words or "%" not in words[0]:
        return []
    pattern, *numbers = words
    if not re.fullmatch(r"[^%]*%0?\d*d[^%]*", pattern):
        raise ValueError(f"its values are in files of an unknown pattern, {pattern}")
    count = int(header["DimSize"].split()[-1])
    given = [int(number) for number in numbers]
    usual = [1, count, 1]
    start, stop, step = [*given, *usual[len(given) :]][:3]
    if step < 1:
        raise ValueError(f"damaged: the numbers of its files have the step {step}")
    return [pattern % number for number in range(start, stop + 1, step)][: count + 1]


def _slices(
    header: Header, files: list[Path], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Planes:
    """Return an array of slices, each in a file of its own."""
    dimension = header.get("FileDimension") or str(int(header["NDims"]) - 1)
    if int(dimension) != int(header["NDims"]) - 1:
        raise ValueError(f"values in files of {dimension} dimensions each are not supported")
    if len(files) != shape[0]:
        raise ValueError(f"damaged: it names {len(files)} files for {shape[0]} slices")
    start = int(header.get("HeaderSize", 0))
    size = math.prod(shape[1:]) * dtype.itemsize

    def read(numbers: Sequence[int]) -> Iterator[Array]:
        for number in numbers:
            there = files[number].stat().st_size
            first = max(0, there - size) if start == -1 else start
            check_held(size, there - first, 1)
            if size < there - first:
                raise ValueError(f"damaged: bytes follow the values in {files[number].name}")
            yield np.memmap(files[number], dtype, "r", first, shape[1:])

    for file in files:
        check_held(size, file.stat().st_size, 1)
    return Planes([file.name for file in files], read)


def _metaimage_header(stream: IO[bytes]) -> Header:
    """Read the header. Its last line names the file with the values."""
    header: Header = {}
    while "ElementDataFile" not in header:
        line = stream.readline(MOST_LINE_BYTES)
        name, equals, value = line.decode("utf-8", "replace").partition("=")
        if not equals or not line.endswith(b"\n"):
            raise ValueError("not a MetaImage file, or truncated")
        header[name.strip()] = value.strip()
    for name in ("NDims", "DimSize", "ElementType"):
        if name not in header:
            raise ValueError(f"not a MetaImage file, or damaged: it has no {name}")
    return header


def _inflated(path: Path, start: int) -> Iterator[bytes]:
    """Yield pieces of the compressed values in a file."""
    decoder = zlib.decompressobj()
    with path.open("rb") as stream:
        stream.seek(max(0, start))
        while not decoder.eof:  # It is set when the checksum has been verified.
            stored = decoder.unconsumed_tail or stream.read(BYTES_AT_ONCE)
            part = decoder.decompress(stored, BYTES_AT_ONCE)
            if not stored and not part:
                raise ValueError("truncated")
            yield part


def _metaimage_description(header: Header, axes: str) -> Description:
    """Return the axes with their steps and unit, and the places of points."""
    steps = dict(zip("XYZ", _numbers(header, "ElementSpacing", "ElementSize"), strict=False))
    unit = header.get("DistanceUnits", "mm")  # The default of ITK.
    description = Description.of(axes, steps=steps, units=unit)
    origin = _numbers(header, "Offset", "Position", "Origin")
    rows = _numbers(header, "TransformMatrix", "Rotation", "Orientation")
    if (len(steps), len(origin), len(rows)) != (3, 3, 9):
        return description
    turned = {axis: steps[axis] * rows[3 * i : 3 * i + 3] for i, axis in enumerate("XYZ")}
    place = Affine.of_space(turned, origin, "left-posterior-superior")
    return replace(description, place=place)


def _numbers(header: Header, *names: str) -> NDArray[np.float64]:
    """Return the numbers of a field that has several names, empty if it is absent."""
    found = next((header[name] for name in names if name in header), "")
    return np.array(found.split(), np.float64)


READ = frozenset({"spacing", "place"})
FORMATS = (
    Format(
        name="MetaImage",
        suffixes=(".mha", ".mhd"),
        open=open_metaimage,
        fields=READ,
        reference="SimpleITK",
    ),
)
