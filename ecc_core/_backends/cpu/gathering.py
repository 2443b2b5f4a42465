"""The values and the indices of points that are listed in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.llvm import bare

Array = NDArray[Any]


def values_at(flat: Array, points: Array) -> Array:
    """Return the values of points in the native byte order; -1 stands for the last point."""
    native = flat.dtype.newbyteorder("=")
    if native != flat.dtype or not flat.flags.c_contiguous:
        return flat[points].astype(native, copy=False)
    bits = np.dtype(f"u{native.itemsize}")
    found = np.empty(points.size, native)
    _take(flat.view(bits), points, found.view(bits))
    return found


@kernel()
def _take(bits, points, found):
    """Write the elements at points in half the time of NumPy, whose indices must have 64 bits."""
    bits = bare(bits)
    points = bare(points)
    found = bare(found)
    for i in range(points.size):
        point = np.int64(points[i])
        found[i] = bits[np.uint64(point if point >= 0 else bits.size - 1)]


@kernel()
def write_indices(points, shape, indices):
    """Write the indices (k, d) of points in C order; those of the point -1 are all -1."""
    points = bare(points)
    indices = bare(indices)
    for i in range(points.size):
        rest = np.int64(points[i])
        absent = rest < 0
        for axis in range(len(shape) - 1, 0, -1):
            length = np.int64(shape[axis])
            above = rest // length
            indices[i, axis] = -1 if absent else rest - above * length
            rest = above
        indices[i, 0] = rest  # A point of -1 is still -1 here, because -1 // length is -1.
