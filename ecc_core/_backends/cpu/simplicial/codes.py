"""Codes of points by their heights in many directions, from which bins among levels follow.

There are LANES directions at a time, or twice as many.

A code counts cells. A bin of evenly spaced levels has ``2**shift`` of them, so that neighbouring
points seldom share one. Bin j is that of the codes from ``((j - 1) << shift) + 1`` to
``j << shift``: a code divided by ``2**shift``, rounded up.

Heights are those of :mod:`ecc_core._backends.cpu.transforms.heights`, over any number of axes: the
products of coordinates and components, added in the order of the axes, each rounded to float64.
Codes are guessed in fast arithmetic like bins there, and settled like them.
"""

from __future__ import annotations

import math
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
"""The largest code of 16 bits. The next number is greater than all codes."""
LEAST_BITS = 8
"""In single precision at most one place of 2 ** LEAST_BITS is uncertain."""
SPARE_BITS = 20
"""The most bits for the units within a cell: code and unit have to fit in the bits of a place."""


LARGEST_BITS = 2**63 - 1
"""All bits of a float of 64 bits but that of its sign."""
MODERATE = 64
"""Coordinates between 2 ** -MODERATE and 2 ** MODERATE are not multiplied by a factor."""
LEAST_EXPONENT = -1000
"""The least exponent of a factor, a power of two. The reciprocals of lesser ones overflow."""
FLOATS = (np.dtype(np.float32), 23), (np.dtype(np.float64), 52)
"""The dtypes of places, and the numbers of bits of their fractions."""


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
    """How codes among evenly spaced levels are guessed.

    Places are numbers between a power of two and twice that, which is so large that the sum of
    products is rounded to whole units. The bits of such a float are the number of units.
    """

    dtype: np.dtype[Any]
    """The dtype of places."""
    factor: float
    """Points are multiplied by it before they are rounded to that dtype."""
    scale: float
    """Vectors are multiplied by it, so that products with these points are in units."""

    def round(self, points: Floats, in_single: NDArray[np.float32]) -> NDArray[Any]:
        """Return rounded points; `in_single` are those in single precision, not multiplied."""
        if self.factor == 1.0 and self.dtype == in_single.dtype:
            return in_single
        return (points * self.factor).astype(self.dtype)


class Places(NamedTuple):
    """The places of :class:`Guess`.

    Their units are counted from one bin and the largest error of a guess before level 0, so that
    the number of units is never negative.
    """

    origin: float
    """The place of height 0."""
    least: float
    """Smaller places, which are before the first level, become this one."""
    most: float
    """Larger places, which are behind the last level, become this one."""
    bin_units: int
    """The number of units of a bin less 1, whose bits select the units within a bin."""
    close: int
    """Places at most so many units after a level are too close to it to be certain."""
    cell_bits: int
    """A cell has 2 ** cell_bits units."""
    code: int
    """The code of cell 0, which is the one before level 0."""


@kernel()
def _round_points(points, bits, rounded):
    """Write coordinates in single precision. Returns the largest of their bits, but for signs.

    Bits are compared, since numba does not make vectors of comparisons of floats.
    """
    largest = np.int64(0)
    for i in range(points.size):
        rounded[i] = points[i]
        largest = max(largest, bits[i] & LARGEST_BITS)
    return largest


def round_points(points: Floats) -> tuple[NDArray[np.float32], float]:
    """Return coordinates in single precision, and their largest magnitude."""
    rounded = np.empty(points.shape, np.float32)
    flat = points.reshape(-1)
    largest = _round_points(flat, flat.view(np.int64), rounded.reshape(-1))
    return rounded, float(np.int64(largest).view(np.float64))


def guess_for(grid: Grid, cells: Cells, reach: float, axes: int) -> tuple[Guess, Places]:
    """Return how codes are guessed, in single precision if few of them are then uncertain.

    `reach` bounds the magnitudes of coordinates. Among levels that are not evenly spaced nothing is
    guessed, so that the scale does not matter: heights in units of it may be too large for a float.
    """
    exponent = max(math.frexp(reach)[1], LEAST_EXPONENT)
    if abs(exponent) < MODERATE:
        exponent = 0
    scale = 0.0 if grid.first.size else grid.scale
    # Heights are at most so many bins away from the origin, since directions have unit length.
    farthest = math.sqrt(axes) * reach * scale + abs(grid.origin * scale)
    for dtype, room in FLOATS:
        bits = room - (grid.levels.size + 1).bit_length()
        bits = min(bits, cells.shift + SPARE_BITS)
        # Coordinates and components are rounded once, and sums to half a unit, or by as much as
        # their magnitude beyond the places allows, in each step.
        rounding = (axes + 3) / 2 * farthest * 2.0 ** (bits - room)
        error = math.ceil(1.1 * rounding + TOLERANCE * 2.0**bits) + (axes + 2) // 2 + 1
        cell_bits = bits - cells.shift
        chosen = dtype
        if 2 * error < 2 ** (bits - LEAST_BITS) and error < 2**cell_bits - 1:
            break
    unit = 2.0**-bits
    zero = 2.0**room + 2**bits + error
    guess = Guess(chosen, 2.0**-exponent, scale * 2.0**exponent / unit)
    places = Places(
        zero - grid.origin * scale / unit,
        zero - error - 1,
        zero + (grid.levels.size - 0.5) / unit,
        (1 << bits) - 1,
        2 * error,
        cell_bits,
        1 - (1 << cells.shift),
    )
    return guess, places


def _guesser(lanes: int) -> Any:
    """Return the operation that guesses the codes of a point in so many directions."""

    @llvm.operation(types.uint64)
    def guess_codes(builder, points, p, vectors, places, codes):
        """Guess the codes of a point; return which guesses are too close to a level, as bits.

        The points (n, axes) and vectors (axes, lanes) are those whose products are places.
        """
        element = vectors.element
        is_single = isinstance(element, ir.FloatType)
        width = 32 if is_single else 64
        floats = ir.VectorType(element, LANES)
        units = ir.VectorType(ir.IntType(width), LANES)
        axes = points.shape[1]

        def repeated(number: Any) -> Any:
            if isinstance(number.type, ir.DoubleType):
                number = builder.fptrunc(number, element) if is_single else number
            elif is_single:
                number = builder.trunc(number, units.element)
            return llvm.each(builder, number, LANES)

        def limited(place: Any, relation: str, end: Any) -> Any:
            return builder.select(builder.fcmp_ordered(relation, place, end), end, place)

        origin, least, most, in_bin, close, cell_bits, code = places
        first_code = llvm.each(builder, builder.trunc(code, codes.element), LANES)
        firsts = range(0, lanes, LANES)
        slots = [cgutils.alloca_once_value(builder, repeated(origin)) for _ in firsts]
        with cgutils.for_range(builder, axes) as loop:
            at = builder.add(builder.mul(p, axes), loop.index)
            coordinate = llvm.each(builder, builder.load(points.one(at)), LANES)
            row = builder.mul(loop.index, llvm.I64(lanes))
            for first, slot in zip(firsts, slots, strict=True):
                along = vectors.load(builder.add(row, llvm.I64(first)), LANES)
                summands = [coordinate, along, builder.load(slot)]
                name = f"llvm.fma.v{LANES}f{width}"
                builder.store(llvm.call(builder, name, floats, summands), slot)
        words = llvm.I64(0)
        for first, slot in zip(firsts, slots, strict=True):
            place = limited(builder.load(slot), ">", repeated(most))
            place = limited(place, "<", repeated(least))
            count = builder.bitcast(place, units)
            within = builder.and_(count, repeated(in_bin))
            is_close = builder.icmp_unsigned("<=", within, repeated(close))
            cell = builder.lshr(count, repeated(cell_bits))
            cell = builder.trunc(cell, ir.VectorType(codes.element, LANES))
            at = builder.add(builder.mul(p, llvm.I64(lanes)), llvm.I64(first))
            codes.store(builder.add(cell, first_code), at)
            word = builder.zext(builder.bitcast(is_close, ir.IntType(LANES)), llvm.I64)
            words = builder.or_(words, builder.shl(word, llvm.I64(first)))
        return words

    return guess_codes


_guess, _guess_twice = (_guesser(lanes) for lanes in (LANES, 2 * LANES))


@subroutine(error_model="numpy")
def _bin_of(points, p, vectors, lane, grid):
    """Return the bin of a point by comparing its height with the levels."""
    height = points[p, 0] * vectors[0, lane]
    for axis in range(1, points.shape[1]):
        height += points[p, axis] * vectors[axis, lane]
    return find_bin(height, grid)


@kernel(error_model="numpy")
def encode_heights(points, vectors, grid, shift, places, rounded, codes):
    """Write the codes (n, lanes) of points (n, d) in the directions of `vectors` (d, lanes).

    `rounded` are points and vectors from which codes are guessed. Lanes are LANES or twice as many.
    """
    lanes = codes.shape[1]
    if grid.first.size:  # The levels are not evenly spaced.
        for p in range(len(points)):
            for lane in range(lanes):
                codes[p, lane] = _bin_of(points, p, vectors, lane, grid) << shift
        return
    rounded_points, rounded_vectors = rounded
    for p in range(len(points)):
        if lanes == LANES:
            close = _guess(rounded_points, p, rounded_vectors, places, codes)
        else:
            close = _guess_twice(rounded_points, p, rounded_vectors, places, codes)
        while close != llvm.NONE:
            lane = llvm.count_trailing_zeros(close)
            close &= close - llvm.ONE
            last = _bin_of(points, p, vectors, lane, grid) << shift
            first = max(last - (1 << shift) + 1, 0)
            codes[p, lane] = min(max(np.int64(codes[p, lane]), first), last)


def in_lanes(directions: Floats, lanes: int) -> NDArray[np.float64]:
    """Return up to so many directions (k, d) as vectors (d, lanes); the last one is repeated."""
    if len(directions) == lanes:
        return np.ascontiguousarray(directions.T)
    chosen = np.minimum(np.arange(lanes), len(directions) - 1)
    return np.ascontiguousarray(directions[chosen].T)
