"""The Euler characteristic of one set, from one bit a point.

This takes a tenth of the time of a scan, which finds every point's coefficient. A staged block has
one bit for each of its keys, in words of 64: whether the key is at most some bound, the *cut*. The
points above the cut have, together, the coefficient of the whole block less that of the others,
and the others are a set whose cells can be counted: an edge has two of its bits next to each other,
a square four.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.scans.kernels import ALL, NONE, ONE, fill, valid_bits
from ecc_core._backends.cpu.scans.vector_bits import count_ones, mark_keys

__all__ = ["count_sets", "mark"]


@kernel()
def mark(keys: Any, bound: Any, bits: Any) -> None:
    """Set a bit for each key that is at most `bound`; clear the others."""
    mark_keys(keys, keys.size // 64, bound, bits)


@kernel()
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
                fill(bits, z * slice_step + y * row_step, row_step, outside)
    if volume:
        for z, border in ((0, low[0]), (slices + 1, high[0])):
            if border:
                fill(bits, z * slice_step, slice_step, outside)


@kernel()
def _ends(bits: Any, last: Any, valid: Any) -> Any:
    """Number of points with the bits `valid` that are set, and their neighbour along x not."""
    return count_ones(bits & ~(bits >> ONE | last << np.uint64(63)) & valid)


@kernel()
def _count_row(
    bits: Any, here: Any, below: Any, words: Any, lead: Any, columns: Any, framed: Any
) -> Any:
    """Vertices less edges along x, of a row, less the same of what it shares with the next."""
    total: Any = 0
    for word in range(lead, words):
        valid = valid_bits(word, words, lead, columns)
        row, after = bits[here + word], bits[here + word + 1]
        both, both_after = row & bits[below + word], after & bits[below + word + 1]
        total += _ends(row, after, valid) - _ends(both, both_after, valid)
    if framed:  # the point before the first is in the set
        first = bits[here]
        total += np.int64(~first & ONE) - np.int64(~(first & bits[below]) & ONE)
    return total


@kernel()
def count_sets(
    bits: Any,
    geometry: Any,
    low: Any,
    high: Any,
    cubes: Any,
    volume: Any,
    shared: Any,
    alone: Any,
    top: Any,
    histograms: Any,
) -> None:
    """Add the coefficients of all points whose bit is not set to ``histograms[:, top]``.

    Parameters
    ----------
    bits : uint64 array
        A word for 64 staged keys. Bits around the image are overwritten.
    geometry, low, high, cubes
        As for :func:`ecc_core._backends.cpu.scans.kernels.scan_2d`.
    volume : bool
        Whether the slices are those of one volume.
    shared : uint64 array
        Scratch for the words of a slice.
    alone : bool
        Whether the others' coefficients are added to the bin before. If not, they are there
        already, together with those of all points.
    top : int
    histograms : (slices or 1, bins) int64 array
    """
    slices, rows, columns, lead, pitch, slice_stride = geometry
    row_step, slice_step = pitch // 64, slice_stride // 64
    words = lead + (columns + 63) // 64
    _close(bits, geometry, low, high, ALL if cubes else NONE, volume)
    framed = cubes and low[2]
    corner = np.int64(not cubes and high[1] and high[2] and (high[0] or not volume))
    for z in range(0 if volume and cubes and low[0] else 1, slices + 1):
        start = z * slice_step
        if volume:
            for i in range((rows + 2) * row_step):
                shared[i] = bits[start + i] & bits[start + slice_step + i]
        total: Any = 0
        for y in range(0 if cubes and low[1] else 1, rows + 1):
            here, below = start + y * row_step, start + (y + 1) * row_step
            total += _count_row(bits, here, below, words, lead, columns, framed)
            if volume:
                here, below = y * row_step, (y + 1) * row_step
                total -= _count_row(shared, here, below, words, lead, columns, framed)
        above = (corner if not volume or z == slices else 0) - total
        histogram = histograms[(z - 1) % histograms.shape[0]]
        histogram[top] += above
        histogram[top - 1] += total if alone else -above
