"""OME-TIFF."""

import math
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.units import UNITS, converted
from ecc_core._io.writers.grid import FLOATS, INTEGERS, Grid, Source, slabs
from ecc_core._optional import import_optional

SYMBOLS = {
    "kilometer": "km",
    "meter": "m",
    "centimeter": "cm",
    "millimeter": "mm",
    "micrometer": "\u00b5m",
    "nanometer": "nm",
    "angstrom": "\u00c5",
    "picometer": "pm",
    "inch": "in",
}
"""The names that OME gives to units of length."""
DTYPES = (*INTEGERS, *FLOATS)
MOST_CLASSIC_BYTES = 1 << 31
"""The most bytes of values in a classic TIFF file; larger files need offsets of 64 bits."""
LEAST_RESOLUTION = 1e-6
"""The least resolution that is written, since a tag is a ratio of two numbers of 32 bits."""


def write_ome_tiff(file: IO[bytes], values: Source, grid: Grid) -> None:
    """Write an image of one to three axes, page by page."""
    tifffile = import_optional("tifffile", extra="io", purpose="writing TIFF files")
    axes = grid.axes
    shape = tuple(values.shape)
    if len(axes) == 1:  # Pages have two axes.
        axes = "YX"
        shape = (1, *shape)
    metadata: dict[str, Any] = {"axes": axes}
    unit = SYMBOLS.get(grid.unit, grid.unit)
    for axis, step in grid.spacing.items():
        metadata |= {f"PhysicalSize{axis}": step, f"PhysicalSize{axis}Unit": unit or "pixel"}
    if grid.is_placed:
        metadata["Plane"] = _positions(grid, pages=shape[0] if len(axes) > 2 else 1)
    tifffile.imwrite(
        file,
        _pages(values, shape[-2:]),
        shape=shape,
        dtype=values.dtype,
        ome=True,
        bigtiff=math.prod(shape) * values.dtype.itemsize > MOST_CLASSIC_BYTES,
        compression="zlib",
        photometric="minisblack",
        metadata=metadata,
        **_resolution(grid),
    )


def _pages(values: Source, shape: tuple[int, ...]) -> Iterator[NDArray[Any]]:
    for slab in [values[:]] if len(values.shape) < 3 else slabs(values):  # type: ignore[index]
        yield from np.asarray(slab).reshape((-1, *shape))


def _positions(grid: Grid, pages: int) -> dict[str, Any]:
    """Return the place of the first point of each page."""
    positions: dict[str, Any] = {}
    steps = grid.steps()
    for axis, at in (grid.along_axes() or {}).items():
        unit = SYMBOLS.get(grid.unit, grid.unit) if axis in grid.spacing else ""
        step = steps[axis] if axis == "Z" else 0.0
        places = [at + i * step for i in range(pages)]
        positions[f"Position{axis}"] = places
        positions[f"Position{axis}Unit"] = [unit or "pixel"] * pages
    return positions


def _resolution(grid: Grid) -> dict[str, Any]:
    """Return the resolution tags, for programs that do not read OME metadata."""
    if grid.unit not in UNITS or not {"X", "Y"} <= grid.spacing.keys():
        return {}
    in_cm = [converted(grid.spacing[axis], grid.unit, "centimeter") for axis in "XY"]
    per_cm = tuple(1 / step for step in in_cm)
    if min(per_cm) < LEAST_RESOLUTION or max(per_cm) > 1 / LEAST_RESOLUTION:
        return {}
    return {"resolution": per_cm, "resolutionunit": "CENTIMETER"}
