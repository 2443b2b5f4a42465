"""Memory and threads of the transform on the CPU.

Kernels see three axes (slices, rows, columns); images of fewer axes have the leading ones of
length 1. Directions are sorted by orthant, and threads share them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.pool import ranges, share, thread_count
from ecc_core._backends.cpu.sources import copy_box
from ecc_core._backends.cpu.transforms.heights import accumulate, make_grid
from ecc_core._backends.cpu.transforms.mask import ALL, NONE, count_mask, link, pack
from ecc_core._backends.cpu.transforms.regions import (
    count_regions,
    list_corners,
    measure_regions,
    sort_points,
)
from ecc_core._backends.cpu.transforms.weights import UNROLL, count_weights, place_weights
from ecc_core._orthants import (
    ORTHANTS,
    Axes,
    Directions,
    Frame,
    coefficient_table,
    place_points,
    sort_directions,
)
from ecc_core._request.filtration import uses_cubes
from ecc_core._request.resources import available_cores
from ecc_core._request.transform import MOST_WEIGHT

Floats = NDArray[np.float64]

CORNERS = 2**18  # room for the corners of a few rows of a label image
CHUNK = 64  # regions that a thread takes at a time
SIGNS = 1 - 2 * (np.arange(ORTHANTS)[:, None] >> np.array([2, 1, 0]) & 1)  # (slices, rows, columns)
SMALL = 2**20  # points times directions below which a second thread costs more than it saves
SPARSE = 32  # points of a mask that cost as much as one critical point, roughly


def numbers(array: NDArray[Any]) -> AbstractContextManager[NDArray[Any]]:
    """The array itself, as NumPy's."""
    return nullcontext(array)


def _share_directions(
    directions: Directions, workers: int, count: Callable[[slice, tuple[Any, ...]], None]
) -> None:
    """Call `count` on parts of the directions, and these with where each orthant starts."""

    def work(parts: Iterator[tuple[int, int]]) -> None:
        for part in (slice(*ends) for ends in parts):
            count(part, (directions.vectors[part], _starts(directions.orthant[part])))

    share(ranges(len(directions.orthant), workers), work, workers)


def _starts(orthants: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.searchsorted(orthants, np.arange(ORTHANTS + 1)).astype(np.int64)


def _given(frame: Frame) -> tuple[Any, ...]:
    """Return the axes of an image, two vectors for each orthant, and the coordinates of points.

    The vectors are the steps to the neighbours that cells span to (T: on the complement), and the
    padded index of the first position.
    """
    steps = SIGNS * frame.axes * (1 if frame.cubes else -1)
    # The cube that stands for a corner lies before it along s, the first one in the padding.
    shifts = np.where(SIGNS > 0, not frame.cubes, 1) * frame.axes
    return frame.axes, np.stack([steps, shifts], axis=1), frame.positions


def _workers(workers: int | None, work: int) -> int:
    return thread_count(workers, available_cores() if work > SMALL else 1)


def _collect(
    directions: Directions, histograms: NDArray[Any], heights: int, frame: Frame
) -> NDArray[Any]:
    """Return the curves in the caller's order, with the sign that the construction needs."""
    values = np.empty((len(histograms), heights), dtype=histograms.dtype)
    accumulate(histograms, directions.order, frame.sign, values)
    return values


def _bits(mask: NDArray[np.bool_], frame: Frame) -> tuple[Any, ...]:
    """Return a mask, or for the T-construction its complement, as planes of bits.

    These are the points, pairs of set points along the last axis, by the later and the earlier of
    the two, and the numbers of slices, rows and words a row.
    """
    outside = ALL if frame.cubes else NONE
    words = (frame.shape[2] + 2 + 63) // 64
    padded = (frame.shape[0] + 2 * frame.axes[0], frame.shape[1] + 2 * frame.axes[1], words)
    bits = np.full(math.prod(padded), outside)
    back, forward = np.empty_like(bits), np.empty_like(bits)
    pixels = mask.view(np.uint8).reshape(frame.shape)
    if not pixels.flags.c_contiguous:
        laid_out = np.empty(frame.shape, np.uint8)
        copy_box(pixels, laid_out.reshape(-1))
        pixels = laid_out
    pack(np.require(pixels, requirements=("W",)), padded, outside, bits)
    link(bits, words, back, forward)
    return bits, (back, forward), padded


def mask_transform(
    mask: NDArray[np.bool_],
    directions: Floats,
    heights: Floats,
    spacing: Floats,
    connectivity: int,
    workers: int | None = 1,
) -> NDArray[np.int64]:
    """Return the transform (directions, heights) of a mask, int64.

    `workers` None for as many threads as there are cores.
    """
    frame = place_points(mask.shape, spacing, connectivity)
    by_orthant = sort_directions(directions)
    grid = make_grid(heights, frame.reach)
    bits, given = _bits(mask, frame), _given(frame)
    histograms = np.zeros((len(directions), heights.size + 1), dtype=np.int64)

    def count(part: slice, chosen: tuple[Any, ...]) -> None:
        count_mask(bits, given, chosen, grid, histograms[part])

    _share_directions(by_orthant, _workers(workers, mask.size * len(directions) // SPARSE), count)
    return _collect(by_orthant, histograms, heights.size, frame)


def weighted_transform(
    weights: NDArray[Any],
    directions: Floats,
    heights: Floats,
    spacing: Floats,
    connectivity: int,
    workers: int | None = 1,
) -> NDArray[Any]:
    """Return the transform of int64 or float64 weights in their dtype.

    Points of weight 0 are no part of the complex.
    """
    frame = place_points(weights.shape, spacing, connectivity)
    by_orthant = sort_directions(directions)
    grid = make_grid(heights, frame.reach)
    absent = weights.dtype.type(np.inf if weights.dtype.kind == "f" else MOST_WEIGHT)
    sides = tuple(zip(frame.axes, frame.shape, strict=True))
    outside = -absent if frame.cubes else absent
    values = np.full([n + 2 * axis for axis, n in sides], outside)
    inner = values[tuple(slice(axis, axis + n) for axis, n in sides)]
    image = np.require(weights, requirements=("C", "W")).reshape(frame.shape)
    place_weights(image, frame.cubes, outside, inner)
    bins = heights.size + 1 + UNROLL
    histograms, curves = (np.zeros((len(directions), bins), dtype=weights.dtype) for _ in range(2))

    def count(part: slice, chosen: tuple[Any, ...]) -> None:
        given = values, absent, *_given(frame), float(spacing[-1])
        count_weights(given, chosen, grid, histograms[part], curves[part])

    _share_directions(by_orthant, _workers(workers, weights.size * len(directions)), count)
    values = _collect(by_orthant, histograms, heights.size, frame)
    values[by_orthant.order] += frame.sign * curves[:, : heights.size]
    return values


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
    rows, marks = np.zeros((4, columns + 2), labels.dtype), np.zeros((columns + 8) // 8, np.uint64)
    scratch = rows, marks.view(np.uint8), marks, np.empty(8, labels.dtype)
    room = np.empty((5, max(8 * (columns + 1), CORNERS)), dtype=labels.dtype)
    line, chunks = 0, []
    while line < lines:
        line, count = list_corners(image, axes, critical, line, scratch, room)
        chunks.append(room[:, :count].copy())
    return chunks[0] if len(chunks) == 1 else np.concatenate(chunks, axis=1)


def _number(found: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct labels, increasing, and the place of each label among them."""
    largest = int(found.max(initial=0))
    if largest > 8 * found.size:
        return np.unique(found, return_inverse=True)
    seen = np.zeros(largest + 1, dtype=np.bool_)
    seen[found] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[found]


def find_regions(labels: NDArray[Any], spacing: Floats, connectivity: int) -> Regions:
    """Find the critical points of all regions of an int32 or int64 label image."""
    missing = 3 - labels.ndim
    axes = (0,) * missing + (1,) * labels.ndim
    table = coefficient_table(labels.ndim, connectivity)
    critical = np.packbits(table != 0, axis=0, bitorder="little")[0].astype(np.uint64)
    corners = _corners(labels, axes, critical)
    present, region = _number(corners[3])
    boxes = np.empty((present.size, 3, 2), dtype=np.int64)
    boxes[..., 0], boxes[..., 1] = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    counts = np.zeros((ORTHANTS, present.size), dtype=np.int64)
    measure_regions(corners, region, critical, boxes, counts)
    ends = np.concatenate([[0], np.cumsum(counts)])
    offsets = ends[present.size * np.arange(ORTHANTS)[:, None] + np.arange(present.size + 1)]
    points = (*(np.empty(ends[-1]) for _ in range(3)), np.empty(ends[-1], dtype=np.int64))
    steps = np.zeros(3)
    steps[missing:] = spacing
    far = np.ones_like(SIGNS) if uses_cubes(connectivity) else 1 + SIGNS
    tables = table, critical, far
    sort_points(corners, region, boxes, steps, tables, offsets[:, :-1].copy(), points)
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
    chosen = by_orthant.vectors, by_orthant.order, _starts(by_orthant.orthant)
    count = len(regions.labels)
    factors = np.ones(count) if scales is None else scales
    reach = float((3 * regions.radii / factors).max(initial=0.0))
    grid = make_grid(heights, reach, scaled=scales is not None)
    values = np.empty((count, len(directions), heights.size), dtype=np.int64)

    def work(chunks: Iterator[int]) -> None:
        for first in chunks:
            part, given = (first, min(first + CHUNK, count)), (regions.points, regions.offsets)
            count_regions(*given, chosen, grid, factors, part, values)

    critical = len(regions.points[0]) // ORTHANTS
    share(range(0, count, CHUNK), work, _workers(workers, critical * len(directions)))
    return values
