"""Stage a block of an image as unsigned keys, one point of halo around the block's own points.

The keys are in the order in which the kernels let points enter. A loader reads the image by
address, so that read-only and writable arrays share one compiled version, and never writes to it.
Extents are (slices, rows, columns) of what is read; ``at`` is the offset in `keys` of its first
point, and `strides` are those of the rows and slices, in elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.llvm import fused_multiply_add, prefetch
from ecc_core._backends.cpu.vector_bins import BIN_LANES, bin_value, bin_vector, search_vector

__all__ = [
    "bin_by_search",
    "bin_evenly",
    "copy_keys",
    "hide_points",
    "image_row",
    "look_up_keys",
    "order_floats",
    "pointer",
]


ONE = np.uint64(1)
AHEAD = 4096  # bytes


@intrinsic
def pointer(typingctx: Any, address: Any) -> Any:
    """The address of an array's data as a pointer."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.intp), codegen


@kernel()
def image_row(address: Any, token: Any, strides: Any, z: Any, y: Any, extents: Any) -> Any:
    """One row of the image. Rows that come soon are asked for now: hardware looks ahead less."""
    _, rows, columns = extents
    width = columns * token.itemsize
    later = y + max(1, AHEAD // max(width, 1))
    slice_later, row_later = (z + 1, later - rows) if later >= rows else (z, later)
    soon = address + (slice_later * strides[0] + row_later * strides[1]) * token.itemsize
    for line in range(0, width, 64):
        prefetch(soon + line)
    here = address + (z * strides[0] + y * strides[1]) * token.itemsize
    return carray(pointer(here), columns, token.dtype)


@kernel()
def copy_keys(
    address: Any,
    token: Any,
    strides: Any,
    extents: Any,
    keys: Any,
    at: Any,
    steps: Any,
    flip: Any,
    shift: Any,
) -> None:
    """Unsigned values: ``key = (value ^ flip) + shift``, in a wider dtype if `keys` is wider."""
    slices, rows, columns = extents
    base = keys.ctypes.data  # a slice of `keys` would count references at every row
    for z in range(slices):
        for y in range(rows):
            row = image_row(address, token, strides, z, y, extents)
            start = at + z * steps[0] + y * steps[1]
            target = carray(pointer(base + start * keys.itemsize), columns, keys.dtype)
            for x in range(columns):
                target[x] = (row[x] ^ flip) + shift


@kernel()
def order_floats(
    address: Any,
    token: Any,
    strides: Any,
    extents: Any,
    keys: Any,
    at: Any,
    steps: Any,
    flip: Any,
    sign: Any,
    infinity: Any,
    never: Any,
) -> Any:
    """Floats, given as the unsigned integers of their bits, as integers in the same order.

    `sign` and `infinity` are the bits of -0.0 and of infinity. -0.0 equals 0.0, and NaN
    gets the key `never`. Returns whether there was one.
    """
    bad = False
    slices, rows, columns = extents
    base = keys.ctypes.data  # a slice of `keys` would count references at every row
    for z in range(slices):
        for y in range(rows):
            row = image_row(address, token, strides, z, y, extents)
            start = at + z * steps[0] + y * steps[1]
            target = carray(pointer(base + start * keys.itemsize), columns, keys.dtype)
            for x in range(columns):
                bits = np.uint64(row[x])
                size = bits & (sign - np.uint64(1))
                key = ~bits if bits & sign and size else size | sign
                bad |= size > infinity
                target[x] = never if size > infinity else key ^ flip
    return bad


@kernel()
def look_up_keys(
    address: Any,
    token: Any,
    strides: Any,
    extents: Any,
    keys: Any,
    at: Any,
    steps: Any,
    table: Any,
    infinity: Any,
) -> Any:
    """8- and 16-bit values: the key stands in a table over all values.

    Values whose bits but the sign exceed `infinity` are reported as NaN.
    """
    bad = False
    slices, rows, columns = extents
    base = keys.ctypes.data  # a slice of `keys` would count references at every row
    for z in range(slices):
        for y in range(rows):
            row = image_row(address, token, strides, z, y, extents)
            start = at + z * steps[0] + y * steps[1]
            target = carray(pointer(base + start * keys.itemsize), columns, keys.dtype)
            for x in range(columns):
                bad |= (row[x] & 0x7FFF) > infinity
                target[x] = table[row[x]]
    return bad


@kernel()
def bin_evenly(
    address: Any,
    token: Any,
    strides: Any,
    extents: Any,
    keys: Any,
    at: Any,
    steps: Any,
    scale: Any,
    count: Any,
    bins: Any,
) -> Any:
    """Rank of each value: ``trunc(value * slope + offset)``, product and sum rounded once.

    The caller has verified that this is exact: the expression is monotonic in the value, below
    j + 1 at level j, and not below it at the next value of the dtype that enters later. One level,
    `turn`, need not be told from its neighbour (zero has neighbours too close for that): values
    above it (if `downwards`, not above it) have at least the rank `turned`. `scale` is (slope,
    offset, turn), and `bins` is (first, direction, rank of NaN, turned, downwards); the key of rank
    r is ``first + (r ^ direction)`` with direction 0 or -1. Returns whether there was a NaN, and
    whether a value was beyond all `count` levels.
    """
    slices, rows, columns = extents
    base = keys.ctypes.data  # a slice of `keys` would count references at every row
    above, nan = np.uint64(0), np.uint64(0)
    for z in range(slices):
        for y in range(rows):
            row = carray(
                pointer(address + (z * strides[0] + y * strides[1]) * token.itemsize),
                columns,
                token.dtype,
            )
            start = at + z * steps[0] + y * steps[1]
            target = carray(pointer(base + start * keys.itemsize), columns, keys.dtype)
            whole = columns - columns % BIN_LANES
            for x in range(0, whole, BIN_LANES):
                prefetch(row.ctypes.data + AHEAD + x * token.itemsize)
                more, bad = bin_vector(row, target, x, scale, count, bins)
                above |= more
                nan |= bad
            for x in range(whole, columns):
                more, bad = bin_value(row, target, x, scale, count, bins)
                above |= more
                nan |= bad
    return nan != 0, above != 0


@kernel()
def bin_by_search(
    address: Any,
    token: Any,
    strides: Any,
    extents: Any,
    keys: Any,
    at: Any,
    steps: Any,
    levels: Any,
    count: Any,
    scale: Any,
    starts: Any,
    depth: Any,
    bins: Any,
) -> Any:
    """Number of levels below each value: a guess of the cell, then a search within it.

    ``starts[k]`` is the number of levels in the cells before k, its complement if k is *crowded*:
    if it holds more than one, but fewer than ``2 << depth``. Cells are found by the same increasing
    expression for levels and values, so the answer lies in the value's own cell. `levels`, `count`
    of them, is padded with ``2 << depth`` times the largest value of the dtype. `scale` is (origin,
    slope, last cell), and `bins` is (first, direction, rank of NaN); these and the result are those
    of :func:`bin_evenly`.
    """
    origin, slope, last = scale
    first, direction, of_nan = bins
    nan, above = False, False
    slices, rows, columns = extents
    base = keys.ctypes.data  # a slice of `keys` would count references at every row
    whole = columns - columns % BIN_LANES
    for z in range(slices):
        for y in range(rows):
            row = image_row(address, token, strides, z, y, extents)
            start = at + z * steps[0] + y * steps[1]
            target = carray(pointer(base + start * keys.itemsize), columns, keys.dtype)
            for x in range(0, whole, BIN_LANES):
                more, bad = search_vector(row, target, x, levels, starts, depth, scale, count, bins)
                above |= more != 0
                nan |= bad != 0
            for x in range(whole, columns):
                value = row[x]
                place = (np.float64(value) - origin) * slope
                place = place if place > 0.0 else 0.0
                # Unsigned indices spare numba's check for negative ones.
                start = np.int64(starts[np.uint64(place if place < last else last)])
                below, step = np.uint64(start), ONE
                if start < 0:
                    below, step = np.uint64(~start), ONE << np.uint64(depth)
                while step:
                    below += step * np.uint64(levels[below + step - ONE] < value)
                    step >>= ONE
                bad = value != value  # NaN
                rank = of_nan if bad else np.int64(below)
                above |= rank == count and not bad
                nan |= bad
                target[x] = first + (rank ^ direction)
    return nan, above


@kernel()
def hide_points(
    address: Any, strides: Any, extents: Any, keys: Any, at: Any, steps: Any, never: Any
) -> None:
    """Give the points whose mask (bytes at `address`) is 0 the key `never`."""
    slices, rows, columns = extents
    base = keys.ctypes.data  # a slice of `keys` would count references at every row
    for z in range(slices):
        for y in range(rows):
            row = carray(pointer(address + z * strides[0] + y * strides[1]), columns, np.uint8)
            start = at + z * steps[0] + y * steps[1]
            target = carray(pointer(base + start * keys.itemsize), columns, keys.dtype)
            for x in range(columns):
                if row[x] == 0:
                    target[x] = never


@kernel()
def multiply_add(values: Any, slope: Any, offset: Any, out: Any) -> None:
    """``values * slope + offset`` with one rounding, as :func:`bin_evenly` computes it."""
    for i in range(values.size):
        out[i] = fused_multiply_add(values[i], slope, offset)
