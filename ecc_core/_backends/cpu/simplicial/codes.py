"""Codes of points by their heights in LANES directions, from which bins among levels follow.

A code counts cells. A bin of evenly spaced levels has ``2**shift`` of them, so that neighbouring
points seldom share one. Bin j is that of the codes from ``((j - 1) << shift) + 1`` to
``j << shift``: a code divided by ``2**shift``, rounded up.

Heights are those of :mod:`ecc_core._backends.cpu.transforms.heights`, over any number of axes: the
products of coordinates and components, added in the order of the axes, each rounded to float64.
Codes are guessed in fast arithmetic like bins there, and settled like them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.simplicial.counts import LANES
from ecc_core._backends.cpu.transforms.heights import TOLERANCE, Floats, Grid, find_bin

LARGEST_SHORT = 2**16 - 1
F64 = ir.DoubleType()


class Cells(NamedTuple):
    """How codes divide bins."""

    shift: int
    dtype: np.dtype[Any]
    """Of the codes."""


def divide_bins(grid: Grid) -> Cells:
    """Return how codes divide the bins of a grid: as finely as 16 bits allow."""
    levels = grid.levels.size
    if levels > LARGEST_SHORT:
        return Cells(0, np.dtype(np.uint32))
    evenly_spaced = grid.first.size == 0
    cells = LARGEST_SHORT // max(levels, 1) if evenly_spaced else 1
    return Cells(cells.bit_length() - 1, np.dtype(np.uint16))


@llvm.operation(types.int64)
def _guess(builder, points, p, axes, vectors, offset, top, width, codes):
    """Guess the codes of a point; whether any guess is too close to a level.

    The vectors (axes, LANES) are in bins, and level j has the place j. Places are limited to half a
    bin before the first level, and to `top`.
    """
    places = ir.VectorType(F64, LANES)
    slot = cgutils.alloca_once_value(builder, llvm.each(builder, offset, LANES))
    with cgutils.for_range(builder, axes) as loop:
        at = builder.add(builder.mul(p, axes), loop.index)
        coordinate = llvm.each(builder, builder.load(points.one(at)), LANES)
        along = vectors.load(builder.mul(loop.index, llvm.I64(LANES)), LANES)
        total = [coordinate, along, builder.load(slot)]
        builder.store(llvm.call(builder, f"llvm.fma.v{LANES}f64", places, total), slot)

    def limited(place: Any, relation: str, end: Any) -> Any:
        return builder.select(builder.fcmp_ordered(relation, place, end), end, place)

    place = limited(builder.load(slot), ">", llvm.each(builder, top, LANES))
    place = limited(place, "<", llvm.splat(F64, LANES, -0.5))
    tolerance = llvm.splat(F64, LANES, TOLERANCE)
    upper = _ceil(builder, builder.fsub(place, tolerance))
    close = builder.fcmp_ordered("<=", builder.fsub(upper, place), tolerance)
    inside = limited(place, "<", llvm.splat(F64, LANES, 0.0))
    cells = _ceil(builder, builder.fmul(inside, llvm.each(builder, width, LANES)))
    code = builder.fptosi(cells, ir.VectorType(ir.IntType(32), LANES))
    if codes.element.width < 32:
        code = builder.trunc(code, ir.VectorType(codes.element, LANES))
    codes.store(code, builder.mul(p, llvm.I64(LANES)))
    return builder.zext(builder.bitcast(close, ir.IntType(LANES)), llvm.I64)


def _ceil(builder: Any, vector: Any) -> Any:
    return llvm.call(builder, f"llvm.ceil.v{LANES}f64", vector.type, [vector])


@kernel(error_model="numpy")
def encode_heights(points, vectors, grid, shift, codes):
    """Write the codes (n, LANES) of points (n, d) in the directions of `vectors` (d, LANES)."""
    evenly_spaced = grid.first.size == 0
    scaled = vectors * grid.scale
    axes = points.shape[1]
    offset = -grid.origin * grid.scale
    top = grid.levels.size - 0.5
    width = float(1 << shift)
    for p in range(len(points)):
        if evenly_spaced and not _guess(points, p, axes, scaled, offset, top, width, codes):
            continue
        for lane in range(LANES):  # with certainty
            height = points[p, 0] * vectors[0, lane]
            for axis in range(1, axes):
                height += points[p, axis] * vectors[axis, lane]
            last = find_bin(height, grid) << shift
            first = max(last - (1 << shift) + 1, 0)
            code = np.int64(codes[p, lane]) if evenly_spaced else first
            codes[p, lane] = min(max(code, first), last)


def in_lanes(directions: Floats) -> NDArray[np.float64]:
    """Return up to LANES directions (k, d) as vectors (d, LANES); the last one is repeated."""
    chosen = np.minimum(np.arange(LANES), len(directions) - 1)
    return np.ascontiguousarray(directions[chosen].T)
