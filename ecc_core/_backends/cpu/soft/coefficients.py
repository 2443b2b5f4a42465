"""Coefficients of batches of images that fit into a cache.

They are compared in place with their neighbours in a frame, without the codes and blocks of the
scans, which serve images of any type and size. With these, a layer takes 1.45 times as long for one
image of 28 x 28, forward, and 1.12 to 1.19 times for 16 of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.pool import ranges, share, thread_count
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]

LARGEST = 1 << 18  # points of an image
ALONE = 1 << 18  # points that do not pay for waking a thread


def coefficients(values: Array, cubes: bool, workers: int | None = None) -> Array:
    """Coefficients (images, rows, columns) of sublevel filtrations without NaN.

    Those of points at +inf, which never enter, are undefined. Images with one axis are rows.
    """
    out = np.empty(values.shape, np.int8)

    def write(parts: Iterator[tuple[int, int]]) -> bool:
        return any(write_coefficients(values, *part, cubes, out) for part in parts)

    threads = thread_count(workers, values.size // ALONE)
    if any(share(ranges(len(values), threads), write, threads)):
        raise ValueError(NAN_MESSAGE)
    return out


@kernel(error_model="numpy")
def write_coefficients(values: Any, first: Any, last: Any, cubes: Any, out: Any) -> Any:
    """Write the coefficients of some images. Return whether a value is NaN."""
    has_nan = False
    rows, columns = values.shape[1:]
    frame = np.empty((rows + 2, columns + 2), values.dtype)
    # A cell belongs to the highest of its vertices, or to the lowest of the cubes around it.
    frame[:] = -np.inf if cubes else np.inf
    for image in range(first, last):
        for y in range(rows):
            for x in range(columns):
                value = values[image, y, x]
                has_nan |= value != value
                frame[y + 1, x + 1] = -value if cubes else value
        for y in range(rows):
            _write_row(frame[y], frame[y + 1], frame[y + 2], out[image, y])
    return has_nan


@subroutine(error_model="numpy")
def _write_row(above: Any, row: Any, below: Any, out: Any) -> None:
    """Write 1 - edges + squares of which a point is the highest, the first of equals."""
    for x in range(out.size):
        value = row[x + 1]
        north, south = np.int8(above[x + 1] < value), np.int8(below[x + 1] <= value)
        west, east = np.int8(row[x] < value), np.int8(row[x + 2] <= value)
        north_west, north_east = np.int8(above[x] < value), np.int8(above[x + 2] < value)
        south_west, south_east = np.int8(below[x] <= value), np.int8(below[x + 2] <= value)
        upper = (west & north_west) + (east & north_east) - 1
        lower = (west & south_west) + (east & south_east) - 1
        out[x] = 1 - west - east + north * upper + south * lower
