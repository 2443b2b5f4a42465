"""The values and the indices of points on a device that are listed in any order."""

from typing import Any

import cupy
import numpy as np

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct

POINTS = Struct("gathering.cu", "Points")
THREADS = 256


def values_at(array: Any, births: Any, deaths: Any, last: Any) -> tuple[Any, Any]:
    """Return the values of an image at births and deaths, (k,); `last` for deaths of -1."""
    values = cupy.ascontiguousarray(array)
    bits = np.dtype(f"u{values.dtype.itemsize}")
    size = births.size
    born = cupy.empty(size, values.dtype)
    died = cupy.empty(size, values.dtype)
    if size:
        points = POINTS(births=births.data.ptr, deaths=deaths.data.ptr, size=size)
        final = np.array(last, values.dtype).view(bits).astype(np.uint64)
        _run("list_values", bits.name, size, values, points, final, born, died)
    return born, died


def indices_of(points: Any, shape: tuple[int, ...]) -> Any:
    """Return the indices of points in C order, (k, d); those of the point -1 are all -1."""
    size = points.size
    found = cupy.empty((size, len(shape)), np.int64)
    if size:
        given = cupy.ascontiguousarray(points.astype(np.int64, copy=False))
        *_, height, width = (1, *shape)
        lengths = np.int32(height), np.int32(width), np.int32(len(shape))
        _run("list_indices", "uint8", size, given, np.uint32(size), *lengths, found)
    return found


def _run(name: str, item: str, threads: int, *arguments: Any) -> None:
    blocks = ceil_div(threads, THREADS)
    macros = {"ITEM": ELEMENTS[item]}
    plan_call(
        "gathering", name, macros=macros, grid=(blocks,), threads=THREADS, arguments=arguments
    ).launch()
