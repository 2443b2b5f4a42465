"""Transforms on CUDA: from checked CuPy arrays to the curves of all directions.

Everything runs on the current device and stream. Bins are integers even if weights are floats, so
results do not differ between runs.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda.arrays import adopt
from ecc_core._backends.cuda.arrays import numbers as as_numbers
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.kernels import Struct, processors, shared_limit
from ecc_core._backends.cuda.transform_masks import mask_transform as mask_transform
from ecc_core._backends.cuda.transform_regions import find_regions as find_regions
from ecc_core._backends.cuda.transform_regions import region_transforms as region_transforms
from ecc_core._backends.cuda.transform_sampling import (
    DIRECTIONS,
    THREADS,
    Sampling,
    accumulate,
    place_grid,
    sample,
    split,
)
from ecc_core._backends.cuda.wide_sums import join_parts, scales_of
from ecc_core._orthants import Frame
from ecc_core._request.transform import MOST_WEIGHT

Floats = NDArray[np.float64]

WEIGHTS = {
    weight: Struct("transform_weights.cu", "Weights", Weight=dtype)
    for weight, dtype in (("double", "f8"), ("long long", "i8"))
}
# A block handles so many rows and columns of weights together.
ROWS = THREADS // 32
COLUMNS = 256
ROW_BYTES = 8 * (COLUMNS + 32)
RUN_BYTES = 96
BIN_BYTES = 64 << 10  # Shared memory for bins; more if one direction needs more.
RESIDENT = 3  # Blocks on a multiprocessor.
MOST_BLOCKS = 1 << 16
CELLS_OF_A_POINT = 8  # A coefficient adds up the weights of no more cells.


@contextlib.contextmanager
def numbers(array: Any) -> Iterator[Any]:
    """Yield the array as one of CuPy, while its device and stream are current."""
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
    workers: int | None = None,
) -> Any:
    """Return the transform (directions, heights) of int64 or float64 weights, in their dtype.

    Points of weight 0 do not belong to the complex.
    """
    shape = (len(directions), heights.size)
    if 0 in shape:
        return cupy.zeros(shape, weights.dtype)
    frame, grid = place_grid(weights.shape, tuple(spacing.tolist()), connectivity)
    points = _lines(frame) * len(frame.positions[2])
    if weights.dtype.kind != "f":
        return _weighted(
            weights, directions, heights=heights, frame=frame, grid=grid, scales=(1.0, 1.0)
        )[0]
    # A coefficient sums up to 8 cells.
    weights, scales = scales_of(weights, CELLS_OF_A_POINT * points)
    scaled = scales.first, scales.second
    first, second = _weighted(
        weights, directions, heights=heights, frame=frame, grid=grid, scales=scaled
    )
    return join_parts(first, second, scales)


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
    sampling = sample(directions.tobytes(), directions.shape[1], heights.tobytes(), frame.reach)
    jobs, blocks, shared = _share(sampling, frame, parts)
    absent = weights.dtype.type(np.inf if floats else MOST_WEIGHT)
    weight = "double" if floats else "long long"
    macros = {"SHARED": int(shared > 0), "PARTS": parts, "WEIGHT": weight}
    # The kernel reads weights with a border around them.
    slices, rows, columns = frame.shape
    deep = frame.axes[0]
    padded = cupy.empty((slices + 2 * deep, rows + 2, columns + 2), weights.dtype)
    sizes = (np.int32(n) for n in (*frame.shape, deep, frame.cubes))
    arguments = cupy.ascontiguousarray(weights), padded, *sizes, absent
    at = (min(ceil_div(padded.size, THREADS), MOST_BLOCKS),)
    plan_call(
        "transform_weights", "pad", macros=macros, grid=at, threads=THREADS, arguments=arguments
    ).launch()
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
    _memory, samples = sampling.upload(jobs)
    given = (image, grid, samples, values, np.int32(blocks))
    at = (blocks * len(jobs),)
    plan_call(
        "transform_weights",
        "count_weights",
        macros=macros,
        grid=at,
        threads=THREADS,
        arguments=given,
        shared=shared,
    ).launch()
    accumulate(values, values.size // heights.size, heights.size).launch()
    return values


def _share(sampling: Sampling, frame: Frame, parts: int) -> tuple[NDArray[np.int32], int, int]:
    """Return jobs, the number of blocks that share each, and their bytes of shared memory.

    A job is a run of directions that a block counts together. There are no bytes where bins and
    levels stay in global memory.
    """
    device = cupy.cuda.runtime.getDevice()
    levels = sampling.levels.size
    each = 8 * parts * levels + 24
    fixed = 8 * levels
    size = min(DIRECTIONS, max(1, (BIN_BYTES - fixed) // each))
    own = parts * ROWS * ROW_BYTES + RUN_BYTES * DIRECTIONS  # The kernel itself declares so much.
    fits = fixed + size * each <= shared_limit(device) - own
    units = ceil_div(_lines(frame), ROWS) * ceil_div(len(frame.positions[2]), COLUMNS)
    # A small image is shared by its directions.
    wanted = ceil_div(2 * processors(device), units)
    size = max(1, min(size if fits else DIRECTIONS, sampling.most, sampling.rows.size // wanted))
    jobs = split(sampling.starts, size)
    blocks = max(1, min(units, RESIDENT * processors(device) // len(jobs)))
    return jobs, blocks, fixed + size * each if fits else 0
