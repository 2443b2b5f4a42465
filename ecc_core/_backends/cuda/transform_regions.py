"""Transforms of all regions of a label image on the device."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.kernels import Struct
from ecc_core._backends.cuda.transform_sampling import (
    DIRECTIONS,
    THREADS,
    accumulate,
    sample,
    split,
)
from ecc_core._orthants import coefficient_table
from ecc_core._request.filtration import uses_cubes

Floats = NDArray[np.float64]

LABELS, CORNERS, MEASURES = (
    Struct("transform_regions.cu", name) for name in ("Labels", "RegionCorners", "Measures")
)


class Regions(NamedTuple):
    """The corners and the bounding boxes of labelled regions."""

    labels: Any  # of the regions, increasing, on the device
    radii: Floats  # half the diagonal of each bounding box of closed pixels
    image: Any  # the kernels' Labels
    label: str  # the type of a label
    corners: tuple[Any, ...]  # windows, labels and patterns
    numbers: Any  # of each corner's region
    boxes: Any  # the lowest and the highest padded index of each region along three axes
    spacing: Floats
    connectivity: int


@cache
def _tables(ndim: int, connectivity: int, _device: int) -> tuple[Any, Any]:
    """Return coefficients by (orthant, pattern), and the orthants where they are not zero."""
    table = np.zeros((8, 256), np.int8)
    known = coefficient_table(ndim, connectivity)
    table[:, : known.shape[1]] = known
    critical = np.packbits(table != 0, axis=0, bitorder="little")[0]
    arrays = cupy.asarray(table), cupy.asarray(critical)
    cupy.cuda.get_current_stream().synchronize()  # other streams may use them next
    return arrays


def find_regions(labels: Any, spacing: Floats, connectivity: int) -> Regions:
    """Find the corners of all regions of an int32 or int64 label image."""
    missing = 3 - labels.ndim
    shape = (1,) * missing + labels.shape
    deep, wide = int(missing < 1), int(missing < 2)
    kept = cupy.ascontiguousarray(labels)
    sizes = dict(zip(("slices", "rows", "columns"), shape, strict=True))
    image = LABELS(data=kept.data.ptr, **sizes, deep=deep, wide=wide)
    label = "int" if labels.dtype == np.int32 else "long long"
    windows = (shape[0] + deep) * (shape[1] + wide) * (shape[2] + 1) if labels.size else 0
    corners = _list_corners(image, windows, labels.ndim, connectivity, label)
    count = corners[0].size
    present, numbers = cupy.empty(0, np.int64), cupy.empty(0, np.int64)
    if count:
        present, numbers = cupy.unique(corners[1], return_inverse=True)
    boxes = cupy.empty((present.size, 3, 2), np.int32)
    boxes[..., 0], boxes[..., 1] = np.iinfo(np.int32).max, np.iinfo(np.int32).min
    if count:
        _launch("measure_regions", label, count, 1, image, _corners(corners), numbers, count, boxes)
    box = boxes.get()[:, missing:].astype(np.int64)
    radii = np.linalg.norm((box[..., 1] - box[..., 0] + 1) * spacing / 2, axis=1)
    return Regions(present, radii, image, label, corners, numbers, boxes, spacing, connectivity)


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
        if size:  # the labels may have changed: no more than were listed
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
    grid = -(-count // THREADS), jobs
    plan_call("transform_regions", name, {"LABEL": label}, grid, THREADS, arguments).launch()


def region_transforms(
    regions: Regions,
    directions: Floats,
    heights: Floats,
    scales: Floats | None,
    workers: int | None = None,  # noqa: ARG001
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
