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
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.simplicial.counts import LANES
from ecc_core._backends.cpu.transforms.heights import TOLERANCE, Floats, Grid, find_bin

LARGEST_SHORT = 2**16 - 2
"""Code of 16 bits; the next one is greater than all."""
LARGEST_ERROR = 2.0**-10
"""Of places in single precision, in bins."""


class Cells(NamedTuple):
    """How codes divide bins."""

    shift: int
    dtype: np.dtype[Any]
    """The dtype of the codes."""


def divide_bins(grid: Grid) -> Cells:
    """Return how codes divide the bins of a grid: as finely as 16 bits allow."""
    levels = grid.levels.size
    if levels > LARGEST_SHORT:
        return Cells(0, np.dtype(np.uint32))
    evenly_spaced = grid.first.size == 0
    cells = LARGEST_SHORT // max(levels, 1) if evenly_spaced else 1
    return Cells(cells.bit_length() - 1, np.dtype(np.uint16))


class Guess(NamedTuple):
    """Numbers from which codes among evenly spaced levels are guessed."""

    offset: float
    """The place of height 0, if level j has the place j."""
    top: float
    """Places are limited to this one."""
    width: float
    """Codes of a bin."""
    tolerance: float
    """A place that is further from a level is certain."""


def guess_for(grid: Grid, cells: Cells, reach: float, axes: int) -> tuple[Guess, np.dtype[Any]]:
    """Return how codes of heights of at most `reach` are guessed, and in which dtype.

    In single precision if its error is small beside the distance of levels. `reach` bounds the sum
    of the magnitudes of the products of coordinates and components.
    """
    offset = -grid.origin * grid.scale
    dtype: np.dtype[Any] = np.dtype(np.float64)
    tolerance = TOLERANCE
    # One rounding of each coordinate, each component and each step of the sum.
    rounding = float(np.finfo(np.float32).eps)
    error = (3 * axes + 2) * rounding * (reach * grid.scale + abs(offset))
    if cells.dtype == np.uint16 and error < LARGEST_ERROR:
        dtype = np.dtype(np.float32)
        tolerance = 2 * error + TOLERANCE
    return Guess(offset, grid.levels.size - 0.5, float(1 << cells.shift), tolerance), dtype


@llvm.operation(types.uint64)
def _guess(builder, points, p, axes, vectors, guess, codes):
    """Guess the codes of a point; return which guesses are too close to a level, as bits.

    The vectors (axes, LANES) are in bins. Places are limited to half a bin before the first level.
    """
    element = vectors.element
    places = ir.VectorType(element, LANES)
    suffix = f"v{LANES}f{32 if isinstance(element, ir.FloatType) else 64}"

    def narrowed(number: Any) -> Any:
        return number if number.type == element else builder.fptrunc(number, element)

    offset, top, width, tolerance = (
        llvm.each(builder, narrowed(number), LANES) for number in guess
    )
    slot = cgutils.alloca_once_value(builder, offset)
    builder.store(offset, slot)
    with cgutils.for_range(builder, axes) as loop:
        at = builder.add(builder.mul(p, axes), loop.index)
        coordinate = llvm.each(builder, narrowed(builder.load(points.one(at))), LANES)
        along = vectors.load(builder.mul(loop.index, llvm.I64(LANES)), LANES)
        total = [coordinate, along, builder.load(slot)]
        builder.store(llvm.call(builder, f"llvm.fma.{suffix}", places, total), slot)

    def limited(place: Any, relation: str, end: Any) -> Any:
        return builder.select(builder.fcmp_ordered(relation, place, end), end, place)

    def ceil(vector: Any) -> Any:
        return llvm.call(builder, f"llvm.ceil.{suffix}", places, [vector])

    place = limited(builder.load(slot), ">", top)
    place = limited(place, "<", llvm.splat(element, LANES, -0.5))
    upper = ceil(builder.fsub(place, tolerance))
    close = builder.fcmp_ordered("<=", builder.fsub(upper, place), tolerance)
    inside = limited(place, "<", llvm.splat(element, LANES, 0.0))
    code = builder.fptosi(ceil(builder.fmul(inside, width)), ir.VectorType(ir.IntType(32), LANES))
    if codes.element.width < 32:
        code = builder.trunc(code, ir.VectorType(codes.element, LANES))
    codes.store(code, builder.mul(p, llvm.I64(LANES)))
    return builder.zext(builder.bitcast(close, ir.IntType(LANES)), llvm.I64)


@subroutine(error_model="numpy")
def _bin_of(points, p, vectors, lane, grid):
    """Return the bin of a point with certainty."""
    height = points[p, 0] * vectors[0, lane]
    for axis in range(1, points.shape[1]):
        height += points[p, axis] * vectors[axis, lane]
    return find_bin(height, grid)


@kernel(error_model="numpy")
def encode_heights(points, vectors, grid, shift, guess, scaled, codes):
    """Write the codes (n, LANES) of points (n, d) in the directions of `vectors` (d, LANES).

    `scaled` are the vectors in bins, in the dtype of guesses.
    """
    axes = points.shape[1]
    if grid.first.size:  # levels are not evenly spaced
        for p in range(len(points)):
            for lane in range(LANES):
                codes[p, lane] = _bin_of(points, p, vectors, lane, grid) << shift
        return
    for p in range(len(points)):
        close = _guess(points, p, axes, scaled, guess, codes)
        while close != llvm.NONE:
            lane = llvm.count_trailing_zeros(close)
            close &= close - llvm.ONE
            last = _bin_of(points, p, vectors, lane, grid) << shift
            first = max(last - (1 << shift) + 1, 0)
            codes[p, lane] = min(max(np.int64(codes[p, lane]), first), last)


def in_lanes(directions: Floats) -> NDArray[np.float64]:
    """Return up to LANES directions (k, d) as vectors (d, LANES); the last one is repeated."""
    chosen = np.minimum(np.arange(LANES), len(directions) - 1)
    return np.ascontiguousarray(directions[chosen].T)
