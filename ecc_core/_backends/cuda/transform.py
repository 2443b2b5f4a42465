"""Transforms on CUDA: from checked CuPy arrays to the curves of all directions.

Everything runs on the current device and stream. Bins are integers even if weights are floats, so
results do not differ between runs.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda.arrays import adopt
from ecc_core._backends.cuda.arrays import numbers as as_numbers
from ecc_core._backends.cuda.structures import Struct
from ecc_core._backends.cuda.transform_masks import mask_transform
from ecc_core._backends.cuda.transform_regions import find_regions, region_transforms
from ecc_core._backends.cuda.transform_sampling import (
    DIRECTIONS,
    THREADS,
    accumulate,
    launch,
    place_grid,
    plan,
    sample,
)
from ecc_core._orthants import Frame
from ecc_core._request.transform import MOST_WEIGHT

__all__ = ["find_regions", "mask_transform", "numbers", "region_transforms", "weighted_transform"]

Floats = NDArray[np.float64]

WEIGHTS = {
    weight: Struct("transform_weights.cu", "Weights", Weight=dtype)
    for weight, dtype in (("double", "f8"), ("long long", "i8"))
}
ROWS, COLUMNS = THREADS // 32, 256  # of the weights that a block handles together
ROW_BYTES, RUN_BYTES = 8 * (COLUMNS + 32), 96
MOST_BLOCKS = 1 << 16
SAFE_EXPONENT = 900  # weights of 2**900 and more are scaled before they are added


@contextlib.contextmanager
def numbers(array: Any) -> Iterator[Any]:
    """Give the array as one of CuPy, with its device and stream current."""
    with adopt(array) as view:
        yield as_numbers(view)


def _lines(frame: Frame) -> int:
    """Return the number of rows of points or corners."""
    return len(frame.positions[0]) * len(frame.positions[1])


def weighted_transform(
    weights: Any,
    directions: Floats,
    heights: Floats,
    spacing: Floats,
    connectivity: int,
    workers: int | None = None,  # noqa: ARG001
) -> Any:
    """Return the transform (directions, heights) of int64 or float64 weights, in their dtype.

    Points of weight 0 do not belong to the complex.
    """
    shape = (len(directions), heights.size)
    if 0 in shape:
        return cupy.zeros(shape, weights.dtype)
    frame, grid = place_grid(weights.shape, spacing, connectivity)
    points = _lines(frame) * len(frame.positions[2])
    if weights.dtype.kind != "f":
        return _weighted(weights, directions, heights, frame, grid, (1.0, 1.0))[0]
    # A coefficient sums up to 8 cells. With so many bits after those of the largest weight, the sum
    # over all points does not overflow.
    bits = 62 - (8 * points - 1).bit_length()
    largest = max(float(weights.max()), -float(weights.min()))
    exponent, moved = math.frexp(largest)[1], 0
    if abs(exponent) > SAFE_EXPONENT:
        weights, exponent, moved = cupy.ldexp(weights, -exponent), 0, exponent
    scales = 2.0 ** (bits - exponent), 2.0**bits
    first, second = _weighted(weights, directions, heights, frame, grid, scales)
    carry = second >> bits
    sums = (first + carry).astype(np.float64) + (second - (carry << bits)) * 2.0**-bits
    return cupy.ldexp(sums, exponent - bits + moved)


def _weighted(
    weights: Any,
    directions: Floats,
    heights: Floats,
    frame: Frame,
    grid: Any,
    scales: tuple[float, float],
) -> Any:
    """Return the transform (parts, directions, heights) in integers: two parts for floats."""
    floats = weights.dtype.kind == "f"
    parts = 2 if floats else 1
    values = cupy.zeros((parts, len(directions), heights.size), np.int64)
    sampling = sample(directions, heights, frame.reach)
    width = len(frame.positions[2])
    units = -(-_lines(frame) // ROWS) * -(-width // COLUMNS)
    spare = parts * ROWS * ROW_BYTES + RUN_BYTES * DIRECTIONS
    work = plan(sampling, units, bin_bytes=8 * parts, budget=64 << 10, spare=spare, resident=3)
    absent = weights.dtype.type(np.inf if floats else MOST_WEIGHT)
    weight = "double" if floats else "long long"
    macros: dict[str, int | str] = {"SHARED": int(work.shared > 0), "PARTS": parts}
    macros["WEIGHT"] = weight
    padded = _padded(weights, frame, absent, macros)
    image = WEIGHTS[weight](
        padded=padded.data.ptr,
        rows=padded.shape[1],
        columns=padded.shape[2],
        cubes=frame.cubes,
        sign=frame.sign,
        absent=absent,
        first_scale=scales[0],
        second_scale=scales[1],
    )
    _memory, samples = sampling.upload(work.jobs)
    arguments = image, grid, samples, values, np.int32(work.blocks)
    blocks = work.blocks * len(work.jobs)
    launch("transform_weights", "count_weights", blocks, arguments, macros, work.shared)
    return accumulate(values)


def _padded(weights: Any, frame: Frame, absent: Any, macros: dict[str, int | str]) -> Any:
    """Return the weights with a border, as the kernel reads them."""
    slices, rows, columns = frame.shape
    deep = frame.axes[0]
    padded = cupy.empty((slices + 2 * deep, rows + 2, columns + 2), weights.dtype)
    sizes = (np.int32(n) for n in (*frame.shape, deep, frame.cubes))
    arguments = cupy.ascontiguousarray(weights), padded, *sizes, absent
    blocks = min(-(-padded.size // THREADS), MOST_BLOCKS)
    launch("transform_weights", "pad", blocks, arguments, macros)
    return padded
