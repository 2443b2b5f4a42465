"""Stage a block of an image as unsigned keys, one point of halo around the block's own points.

The keys are in the order in which the kernels let points enter. A loader reads the image by
address, so that read-only and writable arrays share one compiled version, and never writes to it.
A `box` is what is read: (address, strides of slices and rows in elements, extents (slices, rows,
columns)), and `token` has its dtype. The `place` of its first point in `keys` is (offset, strides).
A loader returns whether there was a NaN, and whether a key did not fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.encoders.order import ordered_key
from ecc_core._backends.cpu.encoders.vector_even import (
    BIN_LANES,
    bin_checked_value,
    bin_checked_vector,
    bin_value,
    bin_vector,
)
from ecc_core._backends.cpu.llvm import (
    LANES,
    array_at,
    copy_vector,
    fused_multiply_add,
    part_of,
    prefetch,
)

PREFETCHED_BYTES = 4096
VALUES_AT_ONCE = 1024  # Cells and keys of so many values stay in the first-level cache.
SEARCHED_TOGETHER = 64  # If one of so many values needs a search, all are searched.
MAGNITUDE_BITS = np.uint16(0x7FFF)  # The bits of a float16 without its sign.
CROWDED = np.uint64(1 << 63)
"""The bit that marks entries of cells with several bounds."""


@kernel(inline="always")
def plain_row(box, token, z, y):
    """Return one row of the image."""
    address, strides, extents = box
    here = address + (z * strides[0] + y * strides[1]) * token.itemsize
    return array_at(here, extents[2], token)


@kernel(inline="always")
def image_row(box, token, z, y):
    """Return one row of the image, and prefetch a later one: hardware looks ahead less."""
    address, strides, extents = box
    rows = extents[1]
    width = extents[2] * token.itemsize
    later = y + max(1, PREFETCHED_BYTES // max(width, 1))
    slice_later, row_later = (z + 1, later - rows) if later >= rows else (z, later)
    soon = address + (slice_later * strides[0] + row_later * strides[1]) * token.itemsize
    for line in range(0, width, 64):
        prefetch(soon + line)
    return plain_row(box, token, z, y)


@kernel(inline="always")
def key_row(keys, place, z, y, columns):
    """Return one row of staged keys."""
    at, steps = place
    return part_of(keys, at + z * steps[0] + y * steps[1], columns)


@kernel()
def copy_keys(box, keys, place, token, flip, shift):
    """Stage unsigned values as ``(value ^ flip) + shift``, in the dtype of `keys`."""
    slices, rows, columns = box[2]
    whole = columns - columns % LANES
    for z in range(slices):
        for y in range(rows):
            row = plain_row(box, token, z, y)
            target = key_row(keys, place, z, y, columns)
            for x in range(0, whole, LANES):
                prefetch(row.ctypes.data + PREFETCHED_BYTES + x * token.itemsize)
                copy_vector(row, x, flip, shift, target)
            for x in range(whole, columns):
                target[x] = (row[x] ^ flip) + shift
    return False, False


@kernel()
def order_floats(box, keys, place, token, flip, sign, infinity, never):
    """Stage floats, read as unsigned integers, as integers in the order of the floats.

    `sign` and `infinity` are the bits of -0.0 and of infinity. -0.0 equals 0.0, and NaN
    gets the key `never`.
    """
    bad = False
    slices, rows, columns = box[2]
    for z in range(slices):
        for y in range(rows):
            row = image_row(box, token, z, y)
            target = key_row(keys, place, z, y, columns)
            for x in range(columns):
                bits = row[x]
                size = bits & ~sign
                key = ~bits if bits > sign else bits | sign
                bad |= size > infinity
                target[x] = never if size > infinity else key ^ flip
    return bad, False


@kernel()
def look_up_keys(box, keys, place, token, table, infinity):
    """Stage 8- and 16-bit values by a table that holds the key of every value.

    Values whose bits but the sign exceed `infinity` are reported as NaN.
    """
    bad = False
    slices, rows, columns = box[2]
    for z in range(slices):
        for y in range(rows):
            row = image_row(box, token, z, y)
            target = key_row(keys, place, z, y, columns)
            for x in range(columns):  # LLVM vectorizes this loop, but not the next one.
                bad |= (row[x] & MAGNITUDE_BITS) > infinity
            for x in range(columns):
                target[x] = table[row[x]]
    return bad, False


def _bin_evenly(checked: bool) -> Any:
    """Return the kernel that stages values by their ranks on an even scale of levels.

    They are ``trunc(value * slope + offset)``, which is rounded once.

    The caller has verified that this is exact: the place is monotonic in the value, below j + 1 at
    level j, and not below it at the next value of the dtype that enters later. One level, `exempt`,
    need not be told from its neighbour by its place (zero has neighbours too close for that), as
    every value is compared with it: those above it (if `downwards`, not above it) have at least the
    rank `exempt_rank`. Where places are only known to be at most `reach` beyond j + 1 at level j,
    and at most `reach` before it at the next value, those that are so close to a whole number are
    `checked`: compared with the level itself.

    `levels` are in the order of entry, `scale` is (slope, offset, exempt, start, step), and `bins`
    is (first, direction, rank of NaN, exempt_rank, downwards, number of levels, unfit, digits,
    reach, regular). If places are checked, slope and offset are multiplied by ``2**digits``, and
    the reach is in units of ``2**-digits``: whole places are then found by integers. If `regular`,
    level j is ``j * step + start``, rounded to the levels' dtype, which takes less time than to
    load it. The key of rank r is ``first + (r ^ direction)`` with direction 0 or -1. Returns
    whether there was a NaN, and whether a key did not fit: `ends` tells whether that of a NaN does
    not, and whether that of the rank `unfit` does not. The row where the first one is found is the
    last one.
    """

    @kernel()
    def bin_evenly(box, keys, place, levels, scale, bins, ends):
        slices, rows, columns = box[2]
        seen = np.uint64(0)
        nan = np.uint64(0)
        for z in range(slices):
            for y in range(rows):
                row = plain_row(box, levels, z, y)
                target = key_row(keys, place, z, y, columns)
                whole = columns - columns % BIN_LANES
                for x in range(0, whole, BIN_LANES):
                    prefetch(row.ctypes.data + PREFETCHED_BYTES + x * levels.itemsize)
                    if checked:
                        more, bad = bin_checked_vector(row, target, x, levels, scale, bins)
                    else:
                        more, bad = bin_vector(row, target, x, levels, scale, bins)
                    seen |= more
                    nan |= bad
                for x in range(whole, columns):
                    if checked:
                        more, bad = bin_checked_value(row, target, x, levels, scale, bins)
                    else:
                        more, bad = bin_value(row, target, x, levels, scale, bins)
                    seen |= more
                    nan |= bad
                if (nan != 0 and ends[0]) or (seen != 0 and ends[1]):
                    return nan != 0, True
        return nan != 0, False

    return bin_evenly


bin_evenly = _bin_evenly(checked=False)
bin_evenly_checked = _bin_evenly(checked=True)


@kernel()
def fit_scale(at, after, final, slope):
    """Return the offset, index of the exempt level and reach of a slope, and whether it is exact.

    `at` are the levels in the order of entry and `after` the next values of their dtype, both as
    float64; where `final` there is none. The index is -1 without a level that float64 tells from
    its next value.
    """
    exempt = -1
    low = -np.inf
    lowest = -np.inf
    high = np.inf
    for j in range(at.size):
        high = min(high, j + 1 - at[j] * slope)
        if not final[j]:
            least = j + 1 - after[j] * slope
            if least > lowest and at[j] != after[j]:
                low = max(low, lowest)
                lowest = least
                exempt = j
            else:
                low = max(low, least)
    offset = low + (high - low) / 2 if low > -np.inf else high - 0.5
    reach = 0.0
    exact = True
    for j in range(at.size):
        over = fused_multiply_add(at[j], slope, offset) - (j + 1)
        under = (j + 1) - fused_multiply_add(after[j], slope, offset)
        exact &= over < 0.0 and (final[j] or j == exempt or under <= 0.0)
        reach = max(reach, over)
        if not (final[j] or j == exempt):
            reach = max(reach, under)
    return offset, exempt, reach, exact


@subroutine()
def _search(bounds, low, count, key):
    """Return `low` plus the number of the next `count` bounds that are not above the key."""
    while count > 0:
        half = count >> 1
        if bounds[np.uint64(low + half)] <= key:
            low += half + 1
            count -= half + 1
        else:
            count = half
    return low


@kernel(error_model="numpy", inline="always")
def _find_cells(values, bits, grid, order, cells, keys):
    """Write the cells of some values, and their keys in the order of entry.

    `bits` are the values read as unsigned integers, and `order` is that of :func:`bin_by_cells`.
    Returns whether a key was beyond the limit, and whether there was a NaN.
    """
    number = grid.dtype.type
    of = keys.dtype.type
    origin, slope, last = grid
    sign, negative, flip, stored, limit_flip, limit = order
    beyond = False
    bad = False
    for i in range(values.size):
        value = number(values[i])
        place = (value - origin) * slope
        place = place if place > number(0) else number(0)
        place = place if place < last else last
        key = of(ordered_key(bits[i], sign, negative) ^ flip)
        nan = value != value
        bad |= nan
        beyond |= (of(key ^ limit_flip) > limit) & ~nan
        if nan:
            place = last + number(1)
        cells[i] = np.uint32(np.int32(place))
        keys[i] = key ^ stored
    return beyond, bad


@kernel(inline="always")
def _rank_cells(cells, keys, entries, only, held, bounds, base, target):
    """Write the ranks of values from their cells and keys.

    A key of 32 bits is added to the entry, whose upper half is the rank: the lower half carries
    into it if the key has reached the bound of the cell. Keys of 64 bits are compared with the
    bound, `only`. Cells with several bounds are searched afterwards, for a group of values at once.
    """
    narrow = keys.itemsize == 4
    shift = np.uint64(32 if narrow else 0)
    for first in range(np.uint64(0), np.uint64(target.size), np.uint64(SEARCHED_TOGETHER)):
        union = np.uint64(0)
        last = min(first + np.uint64(SEARCHED_TOGETHER), np.uint64(target.size))
        for i in range(first, last):
            cell = np.uint64(cells[i])
            if narrow:
                rank = entries[cell] + keys[i]
                union |= rank
            else:
                rank = entries[cell] + np.uint64(keys[i] >= only[cell])
                union |= entries[cell]
            target[i] = rank >> shift
        if union >= CROWDED:
            for i in range(first, last):
                cell = np.uint64(cells[i])
                if entries[cell] >= CROWDED:
                    low = np.int64((entries[cell] ^ CROWDED) >> shift)
                    target[i] = base + _search(bounds, low, held[cell], keys[i])


@kernel()
def bin_by_cells(box, keys, place, token, grid, order, table, ends):
    """Stage values as `base` plus the number of bounds that their ordered keys have reached.

    A cell of an even grid tells how many bounds lie before it. Cells are found by the same
    increasing expression for values and for levels, so a comparison with the only bound of the
    value's own cell settles the rest; a cell with several is searched. `grid` is (origin, slope,
    last): the cell is ``(value - origin) * slope``, confined to 0..last; NaN lies in cell ``last +
    1``. `order` is (sign, negative, flip, stored, limit_flip, limit): the key in the order of entry
    is ``ordered_key(bits, sign, negative) ^ flip``, and ``key ^ stored`` is compared with bounds.
    The `table` is (entries, only, held, bounds, base). For each cell, `held` is its number of
    bounds, `entries` has the staged key of values before its bounds, or, marked by `CROWDED`, the
    number of bounds before it if it holds several, and `only` is its bound if it holds one (for
    keys of 64 bits). Returns whether there was a NaN, and whether a key did not fit: `ends` tells
    whether that of a NaN does not, and whether one with ``key ^ limit_flip > limit`` does not. The
    row of the first such key is the last one that is staged.
    """
    slices, rows, columns = box[2]
    entries, only, held, bounds, base = table
    cells = np.empty(VALUES_AT_ONCE, np.uint32)
    ordered = np.empty(VALUES_AT_ONCE, bounds.dtype)
    seen = False
    nan = False
    for z in range(slices):
        for y in range(rows):
            row = plain_row(box, token, z, y)
            target = key_row(keys, place, z, y, columns)
            for first in range(0, columns, VALUES_AT_ONCE):
                size = min(VALUES_AT_ONCE, columns - first)
                here = row.ctypes.data + first * token.itemsize
                for line in range(0, size * token.itemsize, 64):
                    prefetch(here + PREFETCHED_BYTES + line)
                values = array_at(here, size, token)
                bits = array_at(here, size, bounds)
                more, bad = _find_cells(values, bits, grid, order, cells, ordered)
                seen |= more
                nan |= bad
                out = array_at(target.ctypes.data + first * keys.itemsize, size, keys)
                _rank_cells(cells, ordered, entries, only, held, bounds, base, out)
            if (nan and ends[0]) or (seen and ends[1]):
                return nan, True
    return nan, False


@kernel()
def hide_points(box, token, keys, place, never):
    """Give the points whose mask, of bytes, is 0 the key `never`."""
    slices, rows, columns = box[2]
    for z in range(slices):
        for y in range(rows):
            row = plain_row(box, token, z, y)
            target = key_row(keys, place, z, y, columns)
            for x in range(columns):
                if row[x] == 0:
                    target[x] = never
