"""March over a staged block of keys: tournament planes, coefficients, events.

A staged block is a flat array of unsigned keys with one point of halo around the block's own
points (see :mod:`ecc_core._cpu.loaders`). Kernels always compute the sublevel curve of the
V-construction of the keys; what differs in the T-construction is the order of the keys, which the
loader reverses, and what happens at the borders of the image: ``closed`` borders (T) behave as if
the points outside never won against a point inside, open ones (V) as if there were no cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ecc_core._cpu.vector import (
    HAS_COMPRESS,
    append_events,
    coefficients_2d,
    coefficients_3d,
    count_trailing_zeros,
    expand_coefficients,
    planes_2d,
    planes_3d,
)

__all__ = ["EVENT_ROOM", "march_2d", "march_3d"]

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
ONE = np.uint64(1)
NONE = np.uint64(0)
ROWS = 8
NONZERO = 4 * ROWS
EVENT_FLUSH = 2048
EVENT_ROOM = EVENT_FLUSH + 64 * ROWS + 64  # entries an event list needs


@njit(nogil=True, cache=True)
def _mirror(keys: Any, geometry: Any, low: Any, high: Any) -> None:
    """Repeat the outermost points behind the borders of the image."""
    slices, rows, columns, lead, pitch, slice_stride = geometry
    first = 64 * lead
    if high[2]:
        for z in range(slices + 2):
            for y in range(rows + 2):
                end = z * slice_stride + y * pitch + first + columns
                keys[end] = keys[end - 1]
    for z in range(slices + 2):
        start = z * slice_stride
        if low[1]:
            keys[start : start + pitch] = keys[start + pitch : start + 2 * pitch]
        if high[1]:
            end = start + (rows + 1) * pitch
            keys[end : end + pitch] = keys[end - pitch : end]


@njit(nogil=True, cache=True)
def _close_in_plane(planes: Any, geometry: Any, low: Any, high: Any, closed: Any) -> None:
    """Set the planes within a slice (kinds 0..2) at the borders of the image."""
    _, rows, columns, lead, _, _ = geometry
    column_stride = rows + 2 * ROWS
    words = lead + (columns + 63) // 64
    kind_stride = words * column_stride
    inside = ALL if closed else NONE
    for word in range(words):
        for kind in range(2):
            row = kind * kind_stride + word * column_stride
            if low[1]:
                planes[row] = ~inside
            if high[1]:
                planes[row + rows] = inside
    if high[2]:
        bit = ONE << np.uint64((columns - 1) & 63)
        last = 2 * kind_stride + (words - 1) * column_stride
        for row in range(last, last + rows + 1):
            planes[row] = planes[row] | bit if closed else planes[row] & ~bit


@njit(nogil=True, cache=True)
def _flush(histogram: Any, event_keys: Any, event_coefficients: Any, count: Any) -> None:
    for i in range(count):
        histogram[event_keys[i]] += event_coefficients[i]


@njit(nogil=True, cache=True)
def _scatter(histogram: Any, keys: Any, at: Any, coefficients: Any, wanted: Any) -> None:
    while wanted:
        i = count_trailing_zeros(wanted)
        histogram[keys[at + i]] += coefficients[i]
        wanted &= wanted - ONE


@njit(nogil=True, cache=True)
def _valid(word: Any, words: Any, lead: Any, columns: Any) -> Any:
    """Bits of a word that stand for the block's own points."""
    if word < lead:
        return NONE
    rest = columns & 63
    return (ONE << np.uint64(rest)) - ONE if word == words - 1 and rest else ALL


@njit(nogil=True, cache=True)
def _emit(
    block: Any,
    some: Any,
    place: Any,
    geometry: Any,
    keys: Any,
    events: Any,
    count: Any,
    histogram: Any,
    out: Any,
) -> Any:
    """Pass on one coefficient word: to `out`, or its non-zero coefficients to the histogram."""
    _, rows, columns, lead, pitch, slice_stride = geometry
    z, row, word = place
    own = min(ROWS, rows - row)
    event_keys, event_coefficients = events
    valid = _valid(word, lead + (columns + 63) // 64, lead, columns)
    if not some & valid and not out.size:
        return count
    for i in range(own):
        if out.size:
            if word >= lead:
                first = 64 * (word - lead)
                width = min(64, columns - first)
                at = (z * rows + row + i) * columns + first
                expand_coefficients(block, i, event_coefficients, 0)
                out[at : at + width] = event_coefficients[:width]
            continue
        wanted = block[NONZERO + i] & valid
        if wanted:
            at = (z + 1) * slice_stride + (row + i + 1) * pitch + 64 * word
            if HAS_COMPRESS:
                count = append_events(
                    block, i, wanted, keys, at, event_keys, event_coefficients, count
                )
            else:
                expand_coefficients(block, i, event_coefficients, 0)
                _scatter(histogram, keys, at, event_coefficients, wanted)
    if count > EVENT_FLUSH:
        _flush(histogram, event_keys, event_coefficients, count)
        count = 0
    return count


@njit(nogil=True, cache=True)
def march_2d(
    keys: Any,
    geometry: Any,
    low: Any,
    high: Any,
    closed: Any,
    planes: Any,
    block: Any,
    carry: Any,
    events: Any,
    histograms: Any,
    out: Any,
) -> None:
    """Curves or coefficients of a stack of images.

    Parameters
    ----------
    keys : uint array
        Staged keys, with an unused slice before and behind the `slices` images.
    geometry : tuple of int
        (slices, rows, columns, lead, pitch, slice stride): own points, whether a word of halo
        precedes every row, and the strides of `keys` in elements.
    low, high : tuple of bool
        Which sides of the block are borders of the image (z, y, x).
    closed : bool
        Whether borders are those of the T-construction.
    planes, block, carry, events : arrays
        Scratch: kinds of planes, one coefficient word, what passes along x, event lists.
    histograms : (slices or 1, bins) int64 array
        Signed histograms to add to, one an image, or one for all.
    out : int8 array
        (slices, rows, columns) coefficients instead of histograms, unless empty.
    """
    slices, rows, columns, lead, pitch, slice_stride = geometry
    words = lead + (columns + 63) // 64
    column_stride = rows + 2 * ROWS
    kind_stride = words * column_stride
    event_keys, event_coefficients = events
    if closed:
        _mirror(keys, geometry, low, high)
    for z in range(slices):
        for word in range(words):
            start = (z + 1) * slice_stride + 64 * word
            planes_2d(keys, start, pitch, rows + 1, planes, word * column_stride, kind_stride)
        _close_in_plane(planes, geometry, low, high, closed)
        histogram = histograms[z % histograms.shape[0]]
        carry[:] = NONE
        count = 0
        for word in range(words):
            edge = ONE if closed and low[2] and word == 0 else NONE
            for row in range(0, rows, ROWS):
                at = word * column_stride + row + 1
                some = coefficients_2d(planes, at, kind_stride, carry, 3 * row, edge, block)
                place = (z, row, word)
                count = _emit(block, some, place, geometry, keys, events, count, histogram, out)
        _flush(histogram, event_keys, event_coefficients, count)


@njit(nogil=True, cache=True)
def march_3d(
    keys: Any,
    geometry: Any,
    low: Any,
    high: Any,
    closed: Any,
    planes: Any,
    block: Any,
    carry: Any,
    events: Any,
    histogram: Any,
    out: Any,
) -> None:
    """As :func:`march_2d` for one volume and one (bins,) histogram."""
    slices, rows, columns, lead, pitch, slice_stride = geometry
    words = lead + (columns + 63) // 64
    column_stride = rows + 2 * ROWS
    kind_stride = words * column_stride
    event_keys, event_coefficients = events
    inside = ALL if closed else NONE
    if closed:
        _mirror(keys, geometry, low, high)
        if low[0]:
            keys[:slice_stride] = keys[slice_stride : 2 * slice_stride]
    count = 0
    # The planes between slices of the slice before are kept: two sets of 7 kinds take turns.
    for z in range(-1, slices):
        current = ((z + 1) & 1) * 7 * kind_stride
        previous = 7 * kind_stride - current
        between = current + 3 * kind_stride
        if z == -1 and low[0]:
            planes[between : between + 4 * kind_stride] = ~inside
            continue
        for word in range(words):
            start = (z + 1) * slice_stride + 64 * word
            planes_3d(
                keys,
                start,
                start + slice_stride,
                pitch,
                rows + 1,
                planes,
                current + word * column_stride,
                kind_stride,
            )
        if z == -1:
            continue
        if z == slices - 1 and high[0]:
            planes[between : between + 4 * kind_stride] = inside
        _close_in_plane(planes[current:], geometry, low, high, closed)
        carry[:] = NONE
        for word in range(words):
            edge = ONE if closed and low[2] and word == 0 else NONE
            for row in range(0, rows, ROWS):
                at = word * column_stride + row + 1
                some = coefficients_3d(
                    planes,
                    current + at,
                    between + at,
                    previous + 3 * kind_stride + at,
                    kind_stride,
                    carry,
                    3 * row,
                    edge,
                    block,
                )
                place = (z, row, word)
                count = _emit(block, some, place, geometry, keys, events, count, histogram, out)
    _flush(histogram, event_keys, event_coefficients, count)
