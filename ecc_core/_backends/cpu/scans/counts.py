"""The Euler characteristic of the set at a single level, from one bit for each point.

A scan finds the coefficient of every point. For one level it is enough to count cells: an edge has
two of its points in the set, a square four, and 64 points are compared with their neighbours by a
shift and an *and* of words. In the T-construction the cells of the complement are counted, in an
image framed by points that do not belong to the set. This takes a quarter of the time of a scan.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.encoders.kernels import part_of
from ecc_core._backends.cpu.llvm import WORD_LANES, count_bits, small_keys
from ecc_core._backends.cpu.scans.kernels import ALL, NONE, ONE, valid_bits

LAST = np.uint64(63)


@kernel()
def mark(keys: Any, bound: Any, bits: Any) -> None:
    """Set a bit for each key that is at most `bound`; clear the others."""
    for word in range(keys.size // WORD_LANES):
        bits[word] = small_keys(keys, WORD_LANES * word, bound)


@subroutine()
def _close(bits: Any, geometry: Any, low: Any, high: Any, outside: Any, volume: Any) -> None:
    """Set the bits of the points around the image to those of the word `outside`."""
    slices, rows, columns, lead, pitch, slice_stride = geometry
    row_step, slice_step = pitch // 64, slice_stride // 64
    if high[2]:
        last, rest = lead + columns // 64, np.uint64(columns & 63)
        for z in range(slices + 2):
            for y in range(rows + 2):
                word = z * slice_step + y * row_step + last
                own = (ONE << rest) - ONE
                bits[word] = (bits[word] & own) | (outside & ~own)
    for z in range(slices + 2):
        for y, border in ((0, low[1]), (rows + 1, high[1])):
            if border:
                start = z * slice_step + y * row_step
                bits[start : start + row_step] = outside
    if volume:
        for z, border in ((0, low[0]), (slices + 1, high[0])):
            if border:
                bits[z * slice_step : (z + 1) * slice_step] = outside


@kernel()
def _count(here: Any, below: Any, valid: Any, words: Any) -> Any:
    """Return vertices less edges along x of rows, less those of what neighbouring rows share."""
    total = 0
    for i in range(words):
        row, after = here[i], here[i + 1]
        both, both_after = row & below[i], after & below[i + 1]
        total += count_bits(row & ~(row >> ONE | after << LAST) & valid[i])
        total -= count_bits(both & ~(both >> ONE | both_after << LAST) & valid[i])
    return total


@subroutine()
def _count_before(here: Any, below: Any, words: Any, row_step: Any) -> Any:
    """Return the result of `_count` for the point before each row alone, which is in the set."""
    total: Any = 0
    for i in range(0, words, row_step):
        total += np.int64(~here[i] & ONE) - np.int64(~(here[i] & below[i]) & ONE)
    return total


@kernel()
def count_sets(
    bits: Any, geometry: Any, sides: Any, cubes: Any, volume: Any, scratch: Any, histograms: Any
) -> None:
    """Add the coefficients of the points whose bit is set to bin 0, and of the others to bin 1.

    With `cubes` bin 0 is not used. `bits` are a word for 64 staged keys; those around the image are
    overwritten. `geometry`, the low and high `sides` and `cubes` are those of the scan, and
    `volume` tells whether the slices are those of one volume. `scratch` are two arrays for the
    words of a slice, and `histograms` has shape (slices or 1, 2).
    """
    (low, high), (valid, shared) = sides, scratch
    slices, rows, columns, lead, pitch, slice_stride = geometry
    row_step, slice_step = pitch // 64, slice_stride // 64
    words = lead + (columns + 63) // 64
    _close(bits, geometry, low, high, ALL if cubes else NONE, volume)
    for y in range(rows + 1):
        for word in range(row_step):
            own = valid_bits(word, words, lead, columns) if word < words else NONE
            valid[y * row_step + word] = own
    framed = cubes and low[2]
    corner = np.int64(not cubes and high[1] and high[2] and (high[0] or not volume))
    before = 0 if cubes and low[1] else 1  # the rows from which squares hang
    size, count = (rows + 1 - before) * row_step, (rows + 2 - before) * row_step + 1
    for z in range(0 if volume and cubes and low[0] else 1, slices + 1):
        start = z * slice_step + before * row_step
        here, below = part_of(bits, start, count), part_of(bits, start + row_step, size + 1)
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
