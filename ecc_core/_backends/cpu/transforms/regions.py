"""The transforms of all labelled regions, from one pass over the label image.

For 23 regions of an image of 512 x 512 and 16 directions, it takes 4 times as long to transform the
box of each region as a mask.

A window is 2 points wide along each axis. Windows with one label everywhere hold no critical
point; in the others every label is looked up by itself in the table of
:func:`ecc_core._orthants.coefficient_table`. A *corner* is a label in a window where
it has a critical point in some orthant: the window's index along the three axes, the label, and
the pattern of the window's points that have it. The extreme points of a region are critical, so
the corners also tell its bounding box.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import NONE, ONE, count_trailing_zeros
from ecc_core._backends.cpu.pool import share
from ecc_core._backends.cpu.transforms.heights import (
    POINTS_AT_ONCE,
    SIGNS,
    Floats,
    Grid,
    accumulate,
    add_points,
    make_grid,
    workers_for,
)
from ecc_core._orthants import ORTHANTS, Axes, coefficient_table, sort_directions
from ecc_core._request.filtration import uses_cubes

CORNERS_AT_ONCE = 2**18  # Corners are listed in parts of so many, or of a row of windows.
REGIONS_AT_ONCE = 64  # Regions that a thread takes at a time.


@subroutine(error_model="numpy")
def _differ(first, second, mixed):
    """Mark the windows of two rows in which not all points are equal."""
    n = first.size - 1
    left = first[:n]
    right = first[1:]
    below_left = second[:n]
    below_right = second[1:]
    for i in range(n):
        w = left[i]
        differ = (w ^ right[i]) | (w ^ below_left[i]) | (w ^ below_right[i])
        mixed[i] |= differ != 0


@subroutine(error_model="numpy")
def _list_row(rows, order, at, marks, window, critical, corners, count):
    """Append the corners of the marked windows of a row."""
    for word in range(marks.size):
        marked = marks[word]
        while marked != NONE:
            x = 8 * word + (count_trailing_zeros(marked) >> 3)
            marked &= marked - ONE
            for k in range(4):
                window[2 * k] = rows[order[k], x]
                window[2 * k + 1] = rows[order[k], x + 1]
            seen = np.int64(0)  # It has a bit for each point whose label has been looked up.
            for bit in range(8):
                label = window[bit]
                if label <= 0 or (seen >> bit) & 1:
                    continue
                pattern = np.int64(0)
                for other in range(8):
                    pattern |= np.int64(window[other] == label) << other
                seen |= pattern
                if critical[pattern] != NONE:
                    corners[0, count] = at[0]
                    corners[1, count] = at[1]
                    corners[2, count] = x
                    corners[3, count] = label
                    corners[4, count] = pattern
                    count += 1
    return count


@subroutine(error_model="numpy")
def _load(labels, z, y, out):
    """Copy a row, which has a point of padding on either side; it is 0 outside of the image."""
    slices, rows, columns = labels.shape
    if 0 <= z < slices and 0 <= y < rows:
        for x in range(columns):
            out[x + 1] = labels[z, y, x]
    else:
        out[:] = 0


@kernel(error_model="numpy")
def list_corners(labels, axes, critical, first, scratch, corners):
    """List the corners of the rows of windows from `first` on, as long as there is room.

    The bits of ``critical[pattern]`` tell in which orthants the pattern's coefficient is not zero.
    `scratch` holds 4 rows of zeros, for padded rows of labels; a byte for each window of a row; the
    same bytes as words of 8, so that runs of uniform windows are passed over at once; and room for
    8 labels. Returns the row to go on with, and the number of corners.
    """
    rows, mixed, marks, window = scratch
    slices = labels.shape[0] + axes[0]
    lines = labels.shape[1] + axes[1]
    # The rows of a window, of up to 4, whose points are compared with those of the first row.
    start = 1 if axes[1] else 0
    stop = 4 if axes[0] else start + 1
    count = np.int64(0)
    for line in range(first, slices * lines):
        if corners.shape[1] - count < 8 * (labels.shape[2] + 1):
            return line, count
        z = line // lines
        y = line % lines
        # The window of line y has the rows y - 1 and y; along missing axes only the first is used.
        parity = line & 1
        order = parity, 1 - parity, 2 + parity, 3 - parity
        fresh = line == first or y == 0
        for k in range(4):
            there = k >> 1
            below = k & 1
            if there <= axes[0] and below <= axes[1] and (below or fresh):
                depth = z - axes[0] + there
                row = y - axes[1] + below
                _load(labels, depth, row, rows[order[k]])
        marks[:] = NONE
        for k in range(start, stop):
            _differ(rows[parity], rows[order[k]], mixed)
        count = _list_row(
            rows=rows,
            order=order,
            at=(z, y),
            marks=marks,
            window=window,
            critical=critical,
            corners=corners,
            count=count,
        )
    return slices * lines, count


@kernel(error_model="numpy")
def measure_regions(corners, region, critical, boxes, counts):
    """Widen the regions' bounding boxes, and count their critical points by orthant.

    ``boxes[i]`` is the lowest and the highest padded index of region i along the three axes,
    ``counts[orthant, i]`` its number of critical points.
    """
    for i in range(region.size):
        box = boxes[region[i]]
        pattern = corners[4, i]
        for axis in range(3):
            # The bits of a pattern on the far side of the window.
            far = 0xF0 if axis == 0 else 0xCC if axis == 1 else 0xAA
            place = corners[axis, i]
            lowest = place if pattern & ~far else place + 1
            highest = place + 1 if pattern & far else place
            box[axis, 0] = min(box[axis, 0], lowest)
            box[axis, 1] = max(box[axis, 1], highest)
        orthants = critical[pattern]
        while orthants != NONE:
            counts[count_trailing_zeros(orthants), region[i]] += 1
            orthants &= orthants - ONE


@kernel(error_model="numpy")
def sort_points(corners, region, boxes, spacing, tables, ends, points):
    """Sort critical points by orthant and region, centred in the region's bounding box.

    ``ends[orthant, i]`` is where the points of region i start, on return where they end; `points`
    are their coordinates and weights (x, y, z, weight). `spacing` is 0 along axes that the image
    does not have. `tables` are the coefficients by orthant and pattern, `critical`, and `far`: the
    owner of a window is the point furthest along the signs of the orthant (V) or its centre (T):
    ``far[orthant]`` halves of a step from the window's first point.
    """
    x, y, z, weights = points
    table, critical, far = tables
    for i in range(region.size):
        box = boxes[region[i]]
        pattern = corners[4, i]
        # Twice the index of the window's first point, from the centre of the box.
        depth = 2 * corners[0, i] - (box[0, 0] + box[0, 1])
        row = 2 * corners[1, i] - (box[1, 0] + box[1, 1])
        column = 2 * corners[2, i] - (box[2, 0] + box[2, 1])
        orthants = critical[pattern]
        while orthants != NONE:
            orthant = count_trailing_zeros(orthants)
            orthants &= orthants - ONE
            j = ends[orthant, region[i]]
            ends[orthant, region[i]] += 1
            z[j] = (depth + far[orthant, 0]) * 0.5 * spacing[0]
            y[j] = (row + far[orthant, 1]) * 0.5 * spacing[1]
            x[j] = (column + far[orthant, 2]) * 0.5 * spacing[2]
            weights[j] = table[orthant, pattern]


@kernel(error_model="numpy")
def count_regions(points, offsets, chosen, grid, radii, part, values):
    """Write the transforms of a part of the regions.

    `points` are those of :func:`sort_points`, those of region i start at ``offsets[orthant, i]``.
    The levels of a region are those of the grid times its radius. `chosen` are the directions, the
    row of each in ``values[region]``, and where the directions of each orthant start.
    """
    x, y, z, weights = points
    directions, order, starts = chosen
    levels = np.empty(grid.levels.size)
    bins = np.empty(POINTS_AT_ONCE, np.uint32)
    histograms = np.zeros((order.size, levels.size + 1), np.int64)
    for region in range(part[0], part[1]):
        radius = radii[region]
        for j in range(levels.size):
            levels[j] = grid.levels[j] * radius
        own = Grid(levels, grid.origin * radius, grid.scale / radius, grid.first)
        for orthant in range(ORTHANTS):
            if starts[orthant] == starts[orthant + 1]:
                continue
            begin = offsets[orthant, region]
            end = offsets[orthant, region + 1]
            found = (x[begin:end], y[begin:end], z[begin:end], weights[begin:end])
            first = starts[orthant]
            last = starts[orthant + 1]
            add_points(
                points=found,
                count=end - begin,
                directions=directions,
                part=(first, last),
                grid=own,
                bins=bins,
                histograms=histograms,
            )
            accumulate(histograms[first:last], order[first:last], 1, values[region])
            histograms[first:last] = 0


class Regions(NamedTuple):
    """The critical points of labelled regions, each centred in its bounding box."""

    labels: NDArray[np.int64]
    """Labels of the regions, increasing."""
    radii: Floats
    """Half the diagonal of each bounding box of closed pixels."""
    points: tuple[NDArray[Any], ...]
    """Coordinates (x, y, z) and weights, sorted by orthant and region."""
    offsets: NDArray[np.int64]
    """(orthants, regions + 1): where the points of each region start."""


def _corners(labels: NDArray[Any], axes: Axes, critical: NDArray[np.uint64]) -> NDArray[Any]:
    """Return the corners of all labels."""
    image = np.require(labels, requirements=("C", "W")).reshape((1,) * axes.count(0) + labels.shape)
    lines = (image.shape[0] + axes[0]) * (image.shape[1] + axes[1])
    columns = image.shape[2]
    rows = np.zeros((4, columns + 2), labels.dtype)
    marks = np.zeros((columns + 8) // 8, np.uint64)
    scratch = rows, marks.view(np.uint8), marks, np.empty(8, labels.dtype)
    room = np.empty((5, max(8 * (columns + 1), CORNERS_AT_ONCE)), dtype=labels.dtype)
    line = 0
    chunks = []
    while line < lines:
        line, count = list_corners(image, axes, critical, line, scratch, room)
        chunks.append(room[:, :count].copy())
    return chunks[0] if len(chunks) == 1 else np.concatenate(chunks, axis=1)


def find_regions(labels: NDArray[Any], spacing: Floats, connectivity: int) -> Regions:
    """Find the critical points of all regions of an int32 or int64 label image."""
    missing = 3 - labels.ndim
    axes = (0,) * missing + (1,) * labels.ndim
    table = coefficient_table(labels.ndim, connectivity)
    critical = np.packbits(table != 0, axis=0, bitorder="little")[0].astype(np.uint64)
    corners = _corners(labels, axes, critical)
    found = corners[3]
    largest = int(corners[3].max(initial=0))
    if largest > 8 * found.size:
        present, region = np.unique(found, return_inverse=True)
    else:
        seen = np.zeros(largest + 1, dtype=np.bool_)
        seen[found] = True
        present = np.flatnonzero(seen)
        region = (np.cumsum(seen) - 1)[found]
    boxes = np.empty((present.size, 3, 2), dtype=np.int64)
    boxes[..., 0] = np.iinfo(np.int64).max
    boxes[..., 1] = np.iinfo(np.int64).min
    counts = np.zeros((ORTHANTS, present.size), dtype=np.int64)
    measure_regions(corners, region, critical, boxes, counts)
    ends = np.concatenate([[0], np.cumsum(counts)])
    offsets = ends[present.size * np.arange(ORTHANTS)[:, None] + np.arange(present.size + 1)]
    points = (*(np.empty(ends[-1]) for _ in range(3)), np.empty(ends[-1], dtype=np.int64))
    steps = np.zeros(3)
    steps[missing:] = spacing
    far = np.ones_like(SIGNS) if uses_cubes(connectivity) else 1 + SIGNS
    tables = table, critical, far
    sort_points(
        corners=corners,
        region=region,
        boxes=boxes,
        spacing=steps,
        tables=tables,
        ends=offsets[:, :-1].copy(),
        points=points,
    )
    sides = boxes[:, missing:, 1] - boxes[:, missing:, 0] + 1
    return Regions(present, np.linalg.norm(sides * spacing / 2, axis=1), points, offsets)


def region_transforms(
    regions: Regions,
    directions: Floats,
    heights: Floats,
    scales: Floats | None,
    workers: int | None = 1,
) -> NDArray[np.int64]:
    """Return the transforms (regions, directions, heights), int64.

    The levels of a region are the heights times its scale.
    """
    by_orthant = sort_directions(directions)
    starts = np.searchsorted(by_orthant.orthant, np.arange(ORTHANTS + 1))
    chosen = by_orthant.vectors, by_orthant.order, starts
    count = len(regions.labels)
    factors = np.ones(count) if scales is None else scales
    reach = float((3 * regions.radii / factors).max(initial=0.0))
    grid = make_grid(heights, reach, scaled=scales is not None)
    values = np.empty((count, len(directions), heights.size), dtype=np.int64)

    def work(chunks: Iterator[int]) -> None:
        for first in chunks:
            part = (first, min(first + REGIONS_AT_ONCE, count))
            count_regions(
                points=regions.points,
                offsets=regions.offsets,
                chosen=chosen,
                grid=grid,
                radii=factors,
                part=part,
                values=values,
            )

    critical = len(regions.points[0]) // ORTHANTS
    share(range(0, count, REGIONS_AT_ONCE), work, workers_for(workers, critical * len(directions)))
    return values
