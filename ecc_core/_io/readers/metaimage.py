"""MetaImage, the format of ITK."""

import math
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.description import Description, Format, unnamed_axes
from ecc_core._io.geometry import Affine
from ecc_core._io.limits import check_held
from ecc_core._io.packed import PIECE, filled
from ecc_core._io.stored import Opened, Request

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
LONGEST_LINE = 4096

Header = dict[str, str]


def open_metaimage(path: Path, _: Request) -> Opened:
    """Open a MetaImage file as a memory map. A compressed one is read completely."""
    with path.open("rb") as stream:
        header = _metaimage_header(stream)
        start = stream.tell()
    place = header["ElementDataFile"]
    file = path
    if place.upper() != "LOCAL":
        file, start = _neighbour(path, place), int(header.get("HeaderSize", 0))
    if header.get("BinaryData", "True") != "True":
        raise ValueError("values written as text are not supported")
    shape = tuple(map(int, header["DimSize"].split()))[::-1]
    if len(shape) != int(header["NDims"]) or min(shape) < 1:
        raise ValueError(f"damaged: its size is {header['DimSize']}, NDims {header['NDims']}")
    if header["ElementType"] not in TYPES:
        raise ValueError(f"values of type {header['ElementType']} are not supported")
    order = header.get("BinaryDataByteOrderMSB", header.get("ElementByteOrderMSB"))
    dtype = np.dtype((">" if order == "True" else "<") + TYPES[header["ElementType"]])
    axes, channels = unnamed_axes(len(shape)), int(header.get("ElementNumberOfChannels", 1))
    if channels != 1:
        shape = (*shape, channels)
        axes += "S" if channels in (3, 4) and dtype.kind == "u" else "C"
    if header.get("CompressedData") == "True":
        values = filled(_inflated(file, start), file, shape, dtype)
    else:
        size, there = math.prod(shape) * dtype.itemsize, file.stat().st_size
        if start == -1:  # the values end with the file
            start = max(0, there - size)
        check_held(size, there - start, 1)
        if size < there - start:
            raise ValueError(f"damaged: {there - start - size} bytes follow the values")
        values = np.memmap(file, dtype, "r", start, shape)
    files = dict.fromkeys((str(path), str(file)))
    return Opened(values, _metaimage_description(header, axes), described=[*files])


def _metaimage_header(stream: IO[bytes]) -> Header:
    """Read the header, of which the name of the file with the values is the last line."""
    header: Header = {}
    while "ElementDataFile" not in header:
        line = stream.readline(LONGEST_LINE)
        name, equals, value = line.decode("utf-8", "replace").partition("=")
        if not equals or not line.endswith(b"\n"):
            raise ValueError("not a MetaImage file, or truncated")
        header[name.strip()] = value.strip()
    for name in ("NDims", "DimSize", "ElementType"):
        if name not in header:
            raise ValueError(f"not a MetaImage file, or damaged: it has no {name}")
    return header


def _neighbour(path: Path, name: str) -> Path:
    """Return the file with the values, which must be in the same folder."""
    if name.partition(" ")[0].upper() == "LIST" or "%" in name:
        raise ValueError("values in a file for each slice are not supported")
    if name in ("", ".", "..") or any(mark in name for mark in "/\\:"):
        raise ValueError(f"its values lie outside of its folder, in {name}")
    if not (file := path.with_name(name)).is_file():
        raise ValueError(f"its values are in {name}, which is missing")
    return file


def _inflated(path: Path, start: int) -> Iterator[bytes]:
    """Yield pieces of the compressed values in a file."""
    decoder = zlib.decompressobj()
    with path.open("rb") as stream:
        stream.seek(max(0, start))
        while not decoder.eof:  # which it reaches after comparing the checksum
            stored = decoder.unconsumed_tail or stream.read(PIECE)
            part = decoder.decompress(stored, PIECE)
            if not stored and not part:
                raise ValueError("truncated")
            yield part


def _metaimage_description(header: Header, axes: str) -> Description:
    """Return the axes with their steps and unit, and the places of points."""
    steps = dict(zip("XYZ", _numbers(header, "ElementSpacing"), strict=False))
    unit = header.get("DistanceUnits", "mm")  # as ITK takes them
    description = Description.of(axes, steps=steps, units=unit)
    origin = _numbers(header, "Offset", "Position", "Origin")
    rows = _numbers(header, "TransformMatrix", "Rotation", "Orientation")
    if (len(steps), len(origin), len(rows)) != (3, 3, 9):
        return description
    turned = {axis: steps[axis] * rows[3 * i : 3 * i + 3] for i, axis in enumerate("XYZ")}
    place = Affine.of_space(turned, origin, "left-posterior-superior")
    return replace(description, place=place)


def _numbers(header: Header, *names: str) -> NDArray[np.float64]:
    """Return the numbers under one of several names of the same thing, or none."""
    found = next((header[name] for name in names if name in header), "")
    return np.array(found.split(), np.float64)


READ = frozenset({"spacing", "place"})
FORMATS = (Format("MetaImage", (".mha", ".mhd"), open_metaimage, READ, "SimpleITK"),)
