"""Kernels of surfaces: the codes of a block, and the signed histogram of pairs of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.kernels import part_of
from ecc_core._backends.cpu.surface.vector_events import (
    MOST_EVENTS,
    VECTOR_BYTES,
    cube_events,
    vertex_events,
)

FLUSH = 1 << 13  # bytes; longer lists of events are counted
EVENT_BYTES = FLUSH + (MOST_EVENTS + 1) * VECTOR_BYTES


@kernel()
def pack_codes(
    first: Any, second: Any, pitch: Any, extents: Any, codes: Any, place: Any, never: Any
) -> None:
    """Write the codes of two boxes of keys; all other codes are `never`.

    `extents` are (slices, rows, columns), `pitch` is the distance between rows of keys, and `place`
    is that of the first point in `codes`, and the distances to the next (point, row, slice) there.
    Keys and codes are followed by room for a vector.
    """
    (slices, rows, columns), (at, steps) = extents, place
    written, half = 0, np.uint64(4 * codes.itemsize)
    for z in range(slices):
        for y in range(rows):
            target = at + y * steps[1] + z * steps[2]
            for i in range(written, target):
                codes[i] = never
            start = (z * rows + y) * pitch
            upper, lower = part_of(first, start, columns), part_of(second, start, columns)
            own = part_of(codes, target, columns)
            for x in range(columns):
                own[x] = (upper[x] << half) | lower[x]
            written = target + columns
    for i in range(written, codes.size):
        codes[i] = never


@kernel()
def _count(plus: Any, minus: Any, counts: Any, histograms: Any) -> None:
    """Count both lists at the same time, so that additions wait less for each other."""
    both = min(counts[0], counts[1])
    for i in range(both):
        histograms[0, plus[i]] += 1
        histograms[1, minus[i]] += 1
    for i in range(both, counts[0]):
        histograms[0, plus[i]] += 1
    for i in range(both, counts[1]):
        histograms[1, minus[i]] += 1


@kernel()
def add_cells(
    codes: Any, extents: Any, steps: Any, bins: Any, cubes: Any, lists: Any, histograms: Any
) -> None:
    """Add the cells of a block of codes to one histogram for each sign.

    `extents` are the numbers of points (columns, rows, slices) from the first code. There are as
    many `steps` as the image has axes. `bins` are as for ``vertex_events``. `cubes` is True for the
    T-construction, with all signs reversed in 3-D, and otherwise None, so that each version
    compiles one construction.
    """
    lanes, (plus, minus) = VECTOR_BYTES // codes.itemsize, lists
    counts = (0, 0)
    for z in range(extents[2]):
        for y in range(extents[1]):
            start = y * steps[1] + z * steps[-1]
            for x in range(0, extents[0], lanes):
                left = extents[0] - x
                if cubes is None:
                    counts = vertex_events(codes, start + x, steps, left, bins, plus, minus, counts)
                else:
                    counts = cube_events(codes, start + x, steps, left, bins, plus, minus, counts)
                if max(counts[0], counts[1]) * codes.itemsize >= FLUSH:
                    _count(plus, minus, counts, histograms)
                    counts = (0, 0)
    _count(plus, minus, counts, histograms)
