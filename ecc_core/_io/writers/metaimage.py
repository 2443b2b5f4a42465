"""MetaImage, the format of ITK, with header and values in one file."""

import zlib
from typing import IO

import numpy as np

from ecc_core._io.units import UNITS
from ecc_core._io.writers.grid import LPS, Grid, Source, signs_of, slabs

WORDS = {"millimeter": "mm", "centimeter": "cm", "micrometer": "um"}
"""The units that MetaIO knows. ITK ignores them and takes all lengths as millimeters."""
TYPES = {
    "int8": "MET_CHAR",
    "uint8": "MET_UCHAR",
    "int16": "MET_SHORT",
    "uint16": "MET_USHORT",
    "int32": "MET_INT",
    "uint32": "MET_UINT",
    "int64": "MET_LONG_LONG",
    "uint64": "MET_ULONG_LONG",
    "float32": "MET_FLOAT",
    "float64": "MET_DOUBLE",
}
SIZE_DIGITS = 20


def write_metaimage(file: IO[bytes], values: Source, grid: Grid) -> None:
    """Write an image of one to three axes, compressed."""
    if grid.unit in UNITS and grid.unit not in WORDS:
        grid = grid.in_unit("millimeter")
    axes = grid.axes
    shape = tuple(values.shape)
    if len(axes) == 1:  # ITK has no images with one axis.
        axes = "YX"
        shape = (1, *shape)
    steps = {"Y": 1.0, **grid.steps()}
    letters = axes[::-1]
    origin, directions = _place(grid, letters)
    fields = {
        "ObjectType": "Image",
        "NDims": len(axes),
        "BinaryData": "True",
        "BinaryDataByteOrderMSB": "False",
        "CompressedData": "True",
        "TransformMatrix": _words(directions.ravel()),
        "Offset": _words(origin),
        "ElementSpacing": _words([steps[axis] for axis in letters]),
        "DistanceUnits": WORDS.get(grid.unit, "?"),
        "DimSize": " ".join(map(str, shape[::-1])),
        "ElementType": TYPES[values.dtype.name],
    }
    header = "".join(f"{name} = {value}\n" for name, value in fields.items())
    file.write(header.encode())
    file.write(b"CompressedDataSize = ")
    place_of_size = file.tell()
    file.write(b" " * SIZE_DIGITS + b"\nElementDataFile = LOCAL\n")
    start = file.tell()
    encoder = zlib.compressobj()
    little_endian = values.dtype.newbyteorder("<")
    for slab in slabs(values):
        file.write(encoder.compress(np.ascontiguousarray(slab, little_endian).data))
    file.write(encoder.flush())
    size = file.tell() - start
    file.seek(place_of_size)
    file.write(f"{size:<{SIZE_DIGITS}}".encode())
    file.seek(0, 2)


def _place(grid: Grid, letters: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the first point, and a unit vector along each axis, as rows, in ITK's coordinates.

    An image with two axes is written in the plane of x and y, without the rest of its place.
    """
    world = grid.world()
    signs = signs_of(world, LPS)
    if len(letters) < 3:
        return (signs * world.origin)[: len(letters)], np.eye(len(letters))
    steps = np.stack([world.steps[axis] for axis in letters])
    return signs * world.origin, signs * steps / np.linalg.norm(steps, axis=1, keepdims=True)


def _words(numbers: np.ndarray | list[float]) -> str:
    plain = [float(number) + 0.0 for number in numbers]  # This turns -0.0 into 0.0.
    return " ".join(map(repr, plain))
