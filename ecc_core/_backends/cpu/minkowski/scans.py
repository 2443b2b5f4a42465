"""Scan a staged block of keys for the Euler coefficients along every set of axes.

The planes of comparisons are those of :mod:`ecc_core._backends.cpu.scans.kernels`. A field for each
set of axes is computed from them, instead of one coefficient, and every point is counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.llvm import count_bits, count_trailing_zeros
from ecc_core._backends.cpu.minkowski.vector_fields import (
    CARRIES,
    PLANES,
    add_fields,
    expand_fields,
    fields_2d,
    fields_3d,
)
from ecc_core._backends.cpu.scans.kernels import (
    NONE,
    ONE,
    ROWS,
    compare_slice,
    fill,
    repeat_borders,
    valid_bits,
)

__all__ = ["SUBTABLES", "scan_fields_2d", "scan_fields_3d"]

SUBTABLES = 4  # of histograms: equal keys follow each other, and would wait for each other
MANY = 28  # of 64 points, from which on it takes less time to add the fields of all


@kernel()
def _count_points(keys: Any, start: Any, count: Any, points: Any) -> None:
    """Add keys to a histogram of four parts; the parts of a bin follow each other."""
    # Unsigned indices spare numba's check for negative ones.
    for i in range(count):
        key = np.uint64(keys[np.uint64(start + i)])
        points[np.uint64(SUBTABLES) * key + np.uint64(i % SUBTABLES)] += 1


@kernel()
def _add_points(
    keys: Any,
    block: Any,
    valid: Any,
    size: Any,
    at: Any,
    pitch: Any,
    expanded: Any,
    points: Any,
    fields: Any,
) -> None:
    """Add the points of some rows of one column, and their fields, to histograms.

    `size` is the number of rows and the number of points in each. If many of the points have fields
    that are not zero, all points are added with their fields, of which the first counts points.
    """
    rows, columns = size
    for row in range(rows):
        start, wanted = at + row * pitch, block[PLANES * ROWS + row] & valid
        if count_bits(wanted) >= MANY:
            expand_fields(block, row, ONE, expanded)
            for i in range(columns):
                key = np.int64(keys[np.uint64(start + i)])
                add_fields(expanded, i, fields, SUBTABLES * key + (i & (SUBTABLES - 1)))
            continue
        _count_points(keys, start, columns, points)
        if wanted:
            expand_fields(block, row, NONE, expanded)
            while wanted:
                i = count_trailing_zeros(wanted)
                key = np.int64(keys[np.uint64(start + i)])
                add_fields(expanded, i, fields, SUBTABLES * key + (i & (SUBTABLES - 1)))
                wanted &= wanted - ONE


def _scan_fields(volume: bool) -> Any:
    """Return the kernel that scans a stack of images, or a volume."""
    first_slice = -1 if volume else 0

    @kernel()
    def scan(
        keys: Any,
        geometry: Any,
        low: Any,
        high: Any,
        cubes: Any,
        planes: Any,
        block: Any,
        carry: Any,
        expanded: Any,
        points: Any,
        fields: Any,
    ) -> None:
        """Add images to histograms.

        The arguments are those of ``scan_2d``, and:

        expanded : (512,) int8 array
            Scratch memory for the fields of 64 points.
        points, fields : (slices or 1, 4 * bins), (slices or 1, 4 * bins, 8) integer arrays
            Histograms of points and of fields, in four parts. Every point is either in the first
            histogram, or counted by the first field.
        """
        slices, rows, columns, lead, pitch, slice_stride = geometry
        words = lead + (columns + 63) // 64
        column_stride = rows + 2 * ROWS
        kind_stride = words * column_stride
        if cubes:
            repeat_borders(keys, geometry, low, high, volume)
        for z in range(first_slice, slices):
            here, between, before = compare_slice(
                keys, geometry, low, high, cubes, planes, z, volume
            )
            if z < 0:
                continue
            image = z % points.shape[0]
            fill(carry, 0, carry.size, NONE)
            for word in range(words):
                valid = valid_bits(word, words, lead, columns)
                edge = ONE if cubes and low[2] and word == 0 else NONE
                for row in range(0, rows, ROWS):
                    at = word * column_stride + row + 1
                    own = min(ROWS, rows - row)
                    point = (z + 1) * slice_stride + (row + 1) * pitch + 64 * word
                    place = CARRIES * row
                    if volume:
                        fields_3d(
                            planes,
                            here + at,
                            between + at,
                            before + at,
                            kind_stride,
                            carry,
                            place,
                            edge,
                            block,
                        )
                    else:
                        fields_2d(planes, at, kind_stride, carry, place, edge, block)
                    if word >= lead:
                        size = own, min(64, columns - 64 * (word - lead))
                        _add_points(
                            keys,
                            block,
                            valid,
                            size,
                            point,
                            pitch,
                            expanded,
                            points[image],
                            fields[image],
                        )

    return scan


scan_fields_2d, scan_fields_3d = _scan_fields(volume=False), _scan_fields(volume=True)
