"""Transforms on CUDA: from checked CuPy arrays to the curves of all directions.

Everything runs on the current device and stream. Bins are integers even if weights are floats, so
results do not differ between runs.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import adopt
from ecc_core._backends.cuda.arrays import numbers as as_numbers
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.kernels import Struct, processors, shared_limit
from ecc_core._backends.cuda.transform_masks import mask_transform as mask_transform
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
from ecc_core._orthants import Frame, coefficient_table
from ecc_core._request.filtration import uses_cubes
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
    own = parts * ROWS * ROW_BYTES + RUN_BYTES * DIRECTIONS  # what the kernel itself declares
    fits = fixed + size * each <= shared_limit(device) - own
    units = ceil_div(_lines(frame), ROWS) * ceil_div(len(frame.positions[2]), COLUMNS)
    # A small image is shared by its directions.
    wanted = ceil_div(2 * processors(device), units)
    size = max(1, min(size if fits else DIRECTIONS, sampling.most, sampling.rows.size // wanted))
    jobs = split(sampling.starts, size)
    blocks = max(1, min(units, RESIDENT * processors(device) // len(jobs)))
    return jobs, blocks, fixed + size * each if fits else 0


LABELS, CORNERS, MEASURES = (
    Struct("transform_regions.cu", name) for name in ("Labels", "RegionCorners", "Measures")
)


class Regions(NamedTuple):
    """The corners and the bounding boxes of labelled regions."""

    labels: Any  # (k,) labels of the regions, increasing, on the device
    radii: Floats  # half the diagonal of each bounding box of closed pixels
    image: Any  # the kernels' Labels
    label: str  # the type of a label
    corners: tuple[Any, ...]  # windows, labels and patterns
    numbers: Any  # the number of the region of each corner
    boxes: Any  # the lowest and the highest padded index of each region along three axes
    spacing: Floats
    connectivity: int


@programs.fact
def _tables(ndim: int, connectivity: int, _device: int) -> tuple[Any, Any]:
    """Return coefficients by (orthant, pattern), and the orthants where they are not zero."""
    table = np.zeros((8, 256), np.int8)
    known = coefficient_table(ndim, connectivity)
    table[:, : known.shape[1]] = known
    critical = np.packbits(table != 0, axis=0, bitorder="little")[0]
    return programs.upload(table), programs.upload(critical)


def find_regions(labels: Any, spacing: Floats, connectivity: int) -> Regions:
    """Find the corners of all regions of an int32 or int64 label image."""
    missing = 3 - labels.ndim
    shape = (1,) * missing + labels.shape
    deep = int(missing < 1)
    wide = int(missing < 2)
    kept = cupy.ascontiguousarray(labels)
    sizes = dict(zip(("slices", "rows", "columns"), shape, strict=True))
    image = LABELS(data=kept.data.ptr, **sizes, deep=deep, wide=wide)
    label = "int" if labels.dtype == np.int32 else "long long"
    windows = (shape[0] + deep) * (shape[1] + wide) * (shape[2] + 1) if labels.size else 0
    corners = _list_corners(
        image, windows, ndim=labels.ndim, connectivity=connectivity, label=label
    )
    count = corners[0].size
    present = cupy.empty(0, np.int64)
    numbers = cupy.empty(0, np.int64)
    if count:
        present, numbers = cupy.unique(corners[1], return_inverse=True)
    boxes = cupy.empty((present.size, 3, 2), np.int32)
    boxes[..., 0] = np.iinfo(np.int32).max
    boxes[..., 1] = np.iinfo(np.int32).min
    if count:
        _launch("measure_regions", label, count, 1, image, _corners(corners), numbers, count, boxes)
    box = boxes.get()[:, missing:].astype(np.int64)
    radii = np.linalg.norm((box[..., 1] - box[..., 0] + 1) * spacing / 2, axis=1)
    return Regions(
        labels=present,
        radii=radii,
        image=image,
        label=label,
        corners=corners,
        numbers=numbers,
        boxes=boxes,
        spacing=spacing,
        connectivity=connectivity,
    )


def _list_corners(
    image: Any, windows: int, ndim: int, connectivity: int, label: str
) -> tuple[Any, ...]:
    """Return windows, labels and patterns of all corners, which are first counted, then listed."""
    critical = _tables(ndim, connectivity, cupy.cuda.runtime.getDevice())[1]
    corners: tuple[Any, ...] = ()
    size = 0
    for _ in range(2):
        corners = tuple(cupy.empty(size, dtype) for dtype in (np.int64, np.int64, np.uint8))
        count = cupy.zeros(1, np.uint64)
        if windows:
            arguments = image, critical, windows, _corners(corners), size, count
            _launch("list_corners", label, windows, 1, *arguments)
        found = int(count[0])
        if size:  # Labels may have changed since they were counted; the list has room for `size`.
            return tuple(listed[: min(size, found)] for listed in corners)
        size = found
        if not size:
            break
    return corners


def _corners(corners: tuple[Any, ...]) -> Any:
    """Return the kernels' Corners, with null pointers if there is no room for any."""
    addresses = (c.data.ptr if c.size else 0 for c in corners)
    return CORNERS(**dict(zip(("windows", "labels", "patterns"), addresses, strict=True)))


def _launch(name: str, label: str, count: int, jobs: int, *arguments: Any) -> None:
    """Launch a kernel with a thread for each of `count` items and each job."""
    grid = ceil_div(count, THREADS), jobs
    plan_call(
        "transform_regions",
        name,
        macros={"LABEL": label},
        grid=grid,
        threads=THREADS,
        arguments=arguments,
    ).launch()


def region_transforms(
    regions: Regions,
    directions: Floats,
    heights: Floats,
    scales: Floats | None,
    workers: int | None = None,
) -> Any:
    """Return the transforms (regions, directions, heights), int64.

    The levels of a region are the heights times its scale.
    """
    values = cupy.zeros((regions.labels.size, len(directions), heights.size), np.int64)
    if values.size == 0:
        return values
    factors = np.ones(regions.radii.size) if scales is None else scales
    reach = float((3 * regions.radii / factors).max())
    sampling = sample(directions.tobytes(), directions.shape[1], heights.tobytes(), reach)
    count = regions.numbers.size
    jobs = split(sampling.starts, DIRECTIONS)
    _memory, samples = sampling.upload(jobs)
    spacing = regions.spacing
    table = _tables(spacing.size, regions.connectivity, cupy.cuda.runtime.getDevice())[0]
    units = None if scales is None else cupy.asarray(scales)
    measures = MEASURES(
        boxes=regions.boxes.data.ptr,
        scales=0 if units is None else units.data.ptr,
        coefficients=table.data.ptr,
        spacing=[*[0.0] * (3 - spacing.size), *spacing.tolist()],
        cubes=uses_cubes(regions.connectivity),
    )
    given = regions.image, _corners(regions.corners), regions.numbers, count
    _launch("count_regions", regions.label, count, len(jobs), *given, measures, samples, values)
    accumulate(values, values.size // heights.size, heights.size).launch()
    return values
