"""Scan a staged block of keys: planes of comparisons, coefficients, events.

A staged block is a flat array of unsigned keys with one point of halo around the block's own
points (see ``encoders/kernels.py``). Kernels always compute the sublevel curve of the
V-construction of the keys. The T-construction differs in the order of keys, which the loader
reverses, and at the borders of the image: if points are `cubes` (T), points inside own the cells to
the points outside; if they are vertices (V), there are no such cells.

A scan finds the coefficient of every point. For the set at a single level it is enough to count
cells: an edge has two of its points in the set, a square four, and 64 points are compared with
their neighbours by a shift and an *and* of words. In the T-construction the cells of the complement
are counted, in an image framed by points that do not belong to the set. This takes a quarter of the
time of a scan.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.encoders.kernels import copy_keys
from ecc_core._backends.cpu.llvm import (
    ALL,
    LANES,
    NONE,
    ONE,
    copy_within,
    count_bits,
    count_trailing_zeros,
    part_of,
    small_keys,
)
from ecc_core._backends.cpu.scans.planes import (
    HAS_COMPRESS,
    Queued,
    append_coefficients,
    append_compressed,
    coefficients,
    expand_coefficients,
    write_planes,
)

LAST = np.uint64(63)
ROWS = 8
NONZERO = 4 * ROWS
QUEUE_FLUSH = 512
QUEUE_ROOM = QUEUE_FLUSH + 2 * ROWS
"""Rows that a queue needs room for."""
EVENT_FLUSH = 2048
EVENT_ROOM = EVENT_FLUSH + 2 * 64
"""Events that a list needs room for."""


Flags = tuple[bool, bool, bool]


class Borders(NamedTuple):
    """Which sides of a block are closed borders of the image, along (z, y, x)."""

    low: Flags
    high: Flags
    cubes: Flags
    """Across which axes borders are those of the T-construction."""


@kernel(inline="always")
def _place(z, keys, geometry, volume):
    """Return where a slice lies. If a volume has room for only some of them, they take turns."""
    slice_stride = geometry[5]
    turn = (z + 1) % (keys.size // slice_stride) if volume else z + 1
    return turn * slice_stride


@kernel(inline="always")
def _repeat_borders(keys, start, geometry, borders):
    """Repeat the outermost points of a slice behind the closed borders of the T-construction."""
    low, high, cubes = borders
    _, rows, columns, lead, pitch, _ = geometry
    end = start + (rows + 1) * pitch
    if cubes[2] and high[2]:
        for at in range(start, end + pitch, pitch):
            last = np.uint64(at + 64 * lead + columns)
            keys[last] = keys[last - ONE]
    if cubes[1] and low[1]:
        copy_within(keys, start + pitch, start, pitch)
    if cubes[1] and high[1]:
        copy_within(keys, end - pitch, end, pitch)


@kernel(inline="always")
def _end_of_rows(word, words, geometry, borders):
    """Return the bits of the comparisons along x to be cleared, and to be set, at a border."""
    if not borders.high[2] or word != words - 1:
        return NONE, NONE
    bit = ONE << np.uint64((geometry[2] - 1) & 63)
    return (NONE, bit) if borders.cubes[2] else (bit, NONE)


@kernel(inline="always")
def _drain(keys, queue, event_keys, event_coefficients, queued, histogram):
    """Add the coefficients of all queued rows to the histogram of their keys."""
    row = 0
    while row < queued:
        count = 0
        while row < queued and count < EVENT_FLUSH:
            place = np.uint64(row)
            at = np.int64(queue[5, place])
            wanted = queue[4, place]
            planes = queue[0, place], queue[1, place], queue[2, place], queue[3, place]
            append_coefficients(planes, wanted, event_coefficients, count)
            count = append_compressed(keys, at, wanted, event_keys, count)
            row += 1
        for i in range(count):
            histogram[event_keys[i]] += event_coefficients[i]


@subroutine()
def _scatter(block, valid, rows, at, pitch, keys, scratch, histogram):
    """Add the coefficients of one word where the target cannot compress vectors."""
    for row in range(rows):
        wanted = block[NONZERO + row] & valid
        if wanted:
            expand_coefficients(block, row, scratch, 0)
            while wanted:
                i = count_trailing_zeros(wanted)
                histogram[keys[at + row * pitch + i]] += scratch[i]
                wanted &= wanted - ONE


@subroutine()
def _write(block, rows, columns, scratch, out, place, z, y, x):
    """Write the coefficients of one word to `out`, unless it is the halo before its rows."""
    if x < 0:
        return
    width = columns - x
    at = place[0] + z * place[1] + y * place[2] + x
    for row in range(rows):
        if width >= 64:
            expand_coefficients(block, row, out, at)
        else:
            expand_coefficients(block, row, scratch, 0)
            for i in range(width):
                out[at + i] = scratch[i]
        at += place[2]


@kernel(inline="always")
def valid_bits(word, words, lead, columns):
    """Return the bits of a word that stand for points of the block itself."""
    if word < lead:
        return NONE
    rest = columns & 63
    return (ONE << np.uint64(rest)) - ONE if word == words - 1 and rest else ALL


@kernel(inline="always")
def _compare_slice(keys, geometry, borders, words, strides, planes, z, volume):
    """Write the planes of a slice, z = -1 being the one before a block of a volume.

    Returns the offsets of the planes within the slice, and of those between the slice and the next
    and the previous one. The latter are kept: two sets of 7 kinds take turns.
    """
    low, high, cubes = borders
    slices, rows, _, _, pitch, _ = geometry
    column_stride, kind_stride = strides
    here = ((z + 1) & 1) * 7 * kind_stride if volume else 0
    between = here + 3 * kind_stride
    between_rows = ALL if cubes[1] else NONE
    between_slices = ALL if cubes[0] else NONE
    if volume and z == -1 and low[0]:
        planes[between : between + 4 * kind_stride] = ~between_slices
    else:
        start = _place(z, keys, geometry, volume)
        behind = _place(z + 1, keys, geometry, volume)
        for word in range(words):
            at = start + 64 * word
            row = here + word * column_stride
            starts = (at, behind + 64 * word) if volume else (at,)
            write_planes(keys, starts, pitch, rows + 1, planes, row, kind_stride)
            # At borders, the planes between rows (kinds 0 and 1) are known.
            if low[1]:
                planes[row] = ~between_rows
                planes[row + kind_stride] = ~between_rows
            if high[1]:
                planes[row + rows] = between_rows
                planes[row + rows + kind_stride] = between_rows
        if volume and z == slices - 1 and high[0]:
            planes[between : between + 4 * kind_stride] = between_slices
    return here, between, 10 * kind_stride - here


@kernel(inline="always")
def _load_slice(keys, values, z, geometry, borders):
    """Stage a slice of a volume, unless the image has none there."""
    box, at, token, flip, shift = values
    address, strides, extents = box
    i = z if borders.low[0] else z + 1
    if 0 <= i < extents[0]:
        own = address + i * strides[0] * token.itemsize, strides, (1, extents[1], extents[2])
        place = _place(z, keys, geometry, True) + at, (geometry[5], geometry[4])
        copy_keys(own, keys, place, token, flip, shift)


@kernel(inline="always")
def _to_highest_bit(carry, columns):
    """Move the bits of the last points of rows, which may end within a word, to its highest bit.

    From there they pass on to the first word of a periodic row.
    """
    for i in range(carry.size):
        carry[i] <<= np.uint64(63 - (columns - 1) % 64)


def _scan(volume: bool) -> Any:
    """Return the kernel that scans a stack of images, or a volume.

    It adds the coefficients of keys to signed histograms, or writes them to `out`. If `values` is
    None, the keys are staged. If it is (box, place in a slice of the first key of the box, and the
    other arguments of ``copy_keys``), each slice of a volume is staged when it is needed, and
    overwrites an earlier one: `keys` has room for a few slices, at least three.

    A slice lies before and behind the `slices` ones, unused in 2-D. `geometry` is (slices, rows,
    columns, lead, pitch, slice stride): own points, whether a word of halo precedes every row, and
    the strides of `keys`. If the first column is no closed border and no halo precedes it, rows are
    periodic.

    `planes` to `event_coefficients` are scratch: kinds of planes, one coefficient word, what passes
    along x, queued rows, and the keys and coefficients of their points. All are arguments of their
    own: numba would count references to the members of a tuple at every use, atomically.
    `histograms` (slices or 1, bins) are one an image, or one for all. If `out`, of int8, is not
    None, `place` is (first, slice step, row step) of the block's own points there.
    """

    @kernel()
    def scan(
        keys,
        values,
        geometry,
        borders,
        planes,
        block,
        carry,
        queue,
        event_keys,
        event_coefficients,
        histograms,
        out,
        place,
    ):
        slices, rows, columns, lead, pitch, slice_stride = geometry
        low, _, cubes = borders
        repeats = cubes[0] or cubes[1] or cubes[2]
        words = lead + (columns + 63) // 64
        column_stride = rows + 2 * ROWS
        kind_stride = words * column_stride
        strides = column_stride, kind_stride
        # Queued keys must be taken before another slice overwrites them.
        most_queued = keys.size // slice_stride - 2
        queued = 0
        # A periodic row begins with its last word, which the first one follows.
        first = 0 if lead or low[2] else -1
        ahead = 1 if volume else 0
        mirrored = ONE if cubes[2] and low[2] else NONE
        for z in range(-2 * ahead, slices):
            if values is not None:
                _load_slice(keys, values, z + 1, geometry, borders)
            if repeats:
                _repeat_borders(keys, _place(z + ahead, keys, geometry, volume), geometry, borders)
            if volume and z == -2:
                continue
            here, between, before = _compare_slice(
                keys, geometry, borders, words, strides, planes, z, volume
            )
            if volume and z < 0:
                continue
            is_last = not volume or z == slices - 1 or (z + 1) % most_queued == 0
            histogram = histograms[z % histograms.shape[0]]
            start = _place(z, keys, geometry, volume)
            carry[:] = NONE
            for turn in range(first, words):
                word = turn if turn >= 0 else words - 1
                valid = valid_bits(word, words, lead, columns) if turn >= 0 else NONE
                edge = mirrored if word == 0 else NONE
                ends_row = _end_of_rows(word, words, geometry, borders)
                for row in range(0, rows, ROWS):
                    at = word * column_stride + row + 1
                    own = ROWS if row + ROWS <= rows else rows - row
                    ends = is_last and turn == words - 1 and row + own == rows
                    point = start + (row + 1) * pitch + 64 * word
                    into = Queued(queue, queued, valid, own, point, pitch)
                    starts = (here + at, between + at, before + at) if volume else (at,)
                    some, queued = coefficients(
                        planes, starts, kind_stride, ends_row, carry, 3 * row, edge, block, into
                    )
                    scratch = event_coefficients
                    if out is not None:
                        queued = 0
                        _write(block, own, columns, scratch, out, place, z, row, 64 * (word - lead))
                    elif HAS_COMPRESS:
                        if queued > QUEUE_FLUSH or ends:
                            _drain(keys, queue, event_keys, event_coefficients, queued, histogram)
                            queued = 0
                    elif some & valid:
                        _scatter(block, valid, own, point, pitch, keys, scratch, histogram)
                if turn < 0:
                    _to_highest_bit(carry, columns)

    return scan


scan_2d = _scan(volume=False)
scan_3d = _scan(volume=True)


@kernel()
def mark(keys, bound, bits):
    """Set a bit for each key that is at most `bound`; clear the others."""
    for word in range(keys.size // LANES):
        bits[word] = small_keys(keys, LANES * word, bound)


@kernel()
def _count(here, below, valid, words):
    """Return vertices less edges along x of rows, less those of what neighbouring rows share."""
    total = 0
    for i in range(words):
        row = here[i]
        after = here[i + 1]
        both = row & below[i]
        both_after = after & below[i + 1]
        total += count_bits(row & ~(row >> ONE | after << LAST) & valid[i])
        total -= count_bits(both & ~(both >> ONE | both_after << LAST) & valid[i])
    return total


@subroutine()
def _count_before(here, below, words, row_step):
    """Return the result of `_count` for the point before each row alone, which is in the set."""
    total: Any = 0
    for i in range(0, words, row_step):
        total += np.int64(~here[i] & ONE) - np.int64(~(here[i] & below[i]) & ONE)
    return total


@kernel()
def count_sets(bits, geometry, sides, cubes, volume, scratch, histograms):
    """Add the coefficients of the points whose bit is set to bin 0, and of the others to bin 1.

    With `cubes` bin 0 is not used. `bits` are a word for 64 staged keys; those around the image are
    set for `cubes` and otherwise not. `geometry`, the low and high `sides` and `cubes` are those of
    the scan, and `volume` tells whether the slices are those of one volume. `scratch` are two
    arrays for the words of a slice, and `histograms` has shape (slices or 1, 2).
    """
    low, high = sides
    valid, shared = scratch
    slices, rows, columns, lead, pitch, slice_stride = geometry
    row_step = pitch // 64
    slice_step = slice_stride // 64
    words = lead + (columns + 63) // 64
    for y in range(rows + 1):
        for word in range(row_step):
            own = valid_bits(word, words, lead, columns) if word < words else NONE
            valid[y * row_step + word] = own
    framed = cubes and low[2]
    corner = np.int64(not cubes and high[1] and high[2] and (high[0] or not volume))
    before = 0 if cubes and low[1] else 1  # The row before may have cells, too.
    size = (rows + 1 - before) * row_step
    count = (rows + 2 - before) * row_step + 1
    for z in range(0 if volume and cubes and low[0] else 1, slices + 1):
        start = z * slice_step + before * row_step
        here = part_of(bits, start, count)
        below = part_of(bits, start + row_step, size + 1)
        total = _count(here, below, valid, size)
        if framed:
            total += _count_before(here, below, size, row_step)
        if volume:
            behind = part_of(bits, start + slice_step, count)
            for i in range(count):
                shared[i] = here[i] & behind[i]
            below = part_of(shared, row_step, size + 1)
            total -= _count(shared, below, valid, size)
            if framed:
                total -= _count_before(shared, below, size, row_step)
        histogram = histograms[(z - 1) % histograms.shape[0]]
        histogram[0] += total
        histogram[1] += (corner if not volume or z == slices else 0) - total
