"""Transforms of masks and of weights: memory, threads, and the critical points of a mask.

Kernels see three axes (slices, rows, columns); images of fewer axes have the leading ones of
length 1. Directions are sorted by orthant, and threads share them.

One kernel serves both constructions of masks (see :mod:`ecc_core._orthants`): V on the mask, T on
its complement. For each orthant it lists the critical points, whose heights are then counted in
histograms. Points are bits in words of 64, row after row, padded by one point on both sides of
every axis that the image has. Outside of the image all bits are `outside`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.llvm import ALL, NONE, ONE, count_trailing_zeros, small_keys
from ecc_core._backends.cpu.pool import ranges, share
from ecc_core._backends.cpu.sources import copy_box
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
from ecc_core._backends.cpu.transforms.regions import find_regions, region_transforms
from ecc_core._backends.cpu.transforms.weights import UNROLL, count_weights, place_weights
from ecc_core._orthants import ORTHANTS, Frame, place_points, sort_directions
from ecc_core._request.transform import MOST_WEIGHT

__all__ = ["find_regions", "mask_transform", "numbers", "region_transforms", "weighted_transform"]

TOP = np.uint64(63)
TILE = 512  # The planes of so many words stay in the first-level cache.
COLLECTED_POINTS = 4096  # Points that are collected before they are projected on the directions.
BUFFER_POINTS = COLLECTED_POINTS + 64
# Points of a mask that take as long as a point of a weighted image: few of them are critical.
POINTS_A_WEIGHT = 32


@kernel(error_model="numpy")
def pack(pixels, padded, outside, bits):
    """Write the planes of (slices, rows, columns) pixels, inverted if `outside` is all ones.

    The padding is not written: `bits` must hold it already.
    """
    slices, rows, columns = pixels.shape
    _, padded_rows, words = padded
    before_slices = (padded[0] - slices) >> 1
    before_rows = (padded_rows - rows) >> 1
    flat = pixels.reshape(-1)
    whole = columns >> 6
    for z in range(slices):
        for y in range(rows):
            source = (z * rows + y) * columns
            target = ((z + before_slices) * padded_rows + y + before_rows) * words
            carry = NONE
            for i in range(whole):
                word = ~small_keys(flat, source + 64 * i, NONE)
                bits[target + i] = ((word << ONE) | carry) ^ outside
                carry = word >> TOP
            word = NONE
            for x in range(64 * whole, columns):
                if flat[source + x] != 0:
                    word |= ONE << np.uint64(x & 63)
            bits[target + whole] = ((word << ONE) | carry) ^ outside


@kernel(error_model="numpy")
def link(bits, words, back, forward):
    """Write planes of the edges between set points along the last axis.

    In `back`, the bit of an edge is that of its last point, in `forward` that of its first point.
    Bits beyond the padding do not matter, because points have coefficient 0 there.
    """
    for start in range(0, bits.size, words):
        carry = NONE
        for i in range(start, start + words):
            word = bits[i]
            following = bits[i + 1] if i + 1 < start + words else NONE
            back[i] = word & ((word << ONE) | carry)
            forward[i] = word & ((word >> ONE) | (following << TOP))
            carry = word >> TOP


@kernel(error_model="numpy")
def _active_words(bits, edges, tile, end, offsets, present, planes, active):
    """List the words of ``tile:end`` with critical points, and how many there are.

    `offsets` are the distances to the words of the neighbours in the next slice and row, and
    `present` is all ones for the axes that the image has. Writes to `planes`, for each word, which
    coefficients are not zero, negative, and -2. The coefficient of a point is 1 - (edges) +
    (squares) - (cube) of the cells that span to set neighbours alone, which is 1 - (Euler
    characteristic of a complex on 3 vertices), so it lies in -2..1.
    """
    count = end - tile
    depth, row = offsets
    has_depth, has_row = present
    nonzero = planes[:count]
    negative = planes[TILE : TILE + count]
    double = planes[2 * TILE :]
    points = bits[tile:end]
    points_row = bits[tile + row : end + row]
    points_depth = bits[tile + depth : end + depth]
    points_both = bits[tile + row + depth : end + row + depth]
    links = edges[tile:end]
    links_row = edges[tile + row : end + row]
    links_depth = edges[tile + depth : end + depth]
    links_both = edges[tile + row + depth : end + row + depth]
    for i in range(count):
        here = points[i]
        x = links[i]
        y = here & points_row[i] & has_row
        xy = x & links_row[i] & has_row
        z = here & points_depth[i] & has_depth
        xz = x & links_depth[i] & has_depth
        yz = y & z & points_both[i]
        cube = xy & xz & links_both[i]
        positive = (here & ~(x | y | z)) | (xy & xz & yz & ~cube)
        odd = here ^ x ^ y ^ z ^ xy ^ xz ^ yz ^ cube
        two = x & y & z & ~(xy | xz | yz)
        negative[i] = (odd & ~positive) | two
        nonzero[i] = positive | negative[i]
        double[i] = two
    found = np.int64(0)
    # Each word is listed and kept only if `found` grows: a branch would often be mispredicted.
    for i in range(count):
        active[found] = tile + i
        found += np.int64(nonzero[i] != 0)
    return found


@kernel(error_model="numpy")
def _collect(planes, at, here, widths, points, count):
    """Append the critical points of a word; `here` is its (slice, row, column) position."""
    x, y, z, weights = points
    depth, height, column = here
    nonzero = planes[at]
    negative = planes[at + TILE]
    double = planes[at + 2 * TILE]
    while nonzero != NONE:
        bit = count_trailing_zeros(nonzero)
        nonzero &= nonzero - ONE
        x[count] = widths[column + bit]
        y[count] = height
        z[count] = depth
        minus_one = np.int64((negative >> np.uint64(bit)) & ONE)
        minus_two = np.int64((double >> np.uint64(bit)) & ONE)
        weights[count] = 1 - 2 * minus_one - minus_two
        count += 1
    return count


@kernel(error_model="numpy")
def count_mask(bits, given, chosen, grid, histograms):
    """Add the critical points of each orthant to the histograms of its directions.

    `bits` are the points, the two results of :func:`link`, and the shape in words. `given` are the
    axes that the image has, steps and shifts of orthants, and the coordinates of the points (V) or
    corners (T) along the three axes. `chosen` are directions and their orthants: those of orthant i
    are ``starts[i]:starts[i + 1]``.
    """
    points_set, links, (_, rows, words) = bits
    directions, starts = chosen
    axes, frames, (depths, heights, widths) = given
    present = (ALL if axes[0] else NONE, ALL if axes[1] else NONE)
    points = (
        np.empty(BUFFER_POINTS),
        np.empty(BUFFER_POINTS),
        np.empty(BUFFER_POINTS),
        np.empty(BUFFER_POINTS, dtype=np.int64),
    )
    bins = np.empty(POINTS_AT_ONCE, dtype=np.uint32)
    planes = np.empty(3 * TILE, dtype=np.uint64)
    active = np.empty(TILE + 1, dtype=np.int64)
    for orthant in range(ORTHANTS):
        part = (starts[orthant], starts[orthant + 1])
        if part[0] == part[1]:
            continue
        steps = frames[orthant, 0]
        shifts = frames[orthant, 1]
        offsets = (steps[0] * rows * words, steps[1] * words)
        edges = links[1] if steps[2] > 0 else links[0]
        count = 0
        for slice_ in range(depths.size):
            begin = ((slice_ + shifts[0]) * rows + shifts[1]) * words
            end = begin + heights.size * words
            for tile in range(begin, end, TILE):
                stop = min(tile + TILE, end)
                found = _active_words(
                    bits=points_set,
                    edges=edges,
                    tile=tile,
                    end=stop,
                    offsets=offsets,
                    present=present,
                    planes=planes,
                    active=active,
                )
                for i in range(found):
                    place = active[i] - begin
                    row = np.int64(np.uint32(place) // np.uint32(words))
                    here = (depths[slice_], heights[row], 64 * (place - row * words) - shifts[2])
                    count = _collect(planes, active[i] - tile, here, widths, points, count)
                    if count >= COLLECTED_POINTS:
                        add_points(points, count, directions, part, grid, bins, histograms)
                        count = 0
        add_points(points, count, directions, part, grid, bins, histograms)


def numbers(array: NDArray[Any]) -> AbstractContextManager[NDArray[Any]]:
    """Return the array itself, which NumPy's functions accept."""
    return nullcontext(array)


def _share_directions(
    frame: Frame,
    directions: Floats,
    heights: Floats,
    workers: int,
    count: Callable[[slice, tuple[Any, ...], tuple[Any, ...], Grid], None],
) -> NDArray[np.intp]:
    """Call `count` on parts of the directions, sorted by orthant, and return their order.

    Its arguments are a part, a tuple that describes the image, the directions of the part with the
    first one of each orthant, and the grid of heights. The tuple holds the axes, two vectors for
    each orthant, and the coordinates of points. The vectors are the steps to the neighbours that
    cells extend to (T: in the complement), and the padded index of the first position.
    """
    by_orthant = sort_directions(directions)
    grid = make_grid(heights, frame.reach)
    steps = SIGNS * frame.axes * (1 if frame.cubes else -1)
    # In the T-construction, the cube before a corner, along the signs, stands for the corner. The
    # first such cube is in the padding.
    shifts = np.where(SIGNS > 0, not frame.cubes, 1) * frame.axes
    given = frame.axes, np.stack([steps, shifts], axis=1), frame.positions

    def work(parts: Iterator[tuple[int, int]]) -> None:
        for part in (slice(*ends) for ends in parts):
            starts = np.searchsorted(by_orthant.orthant[part], np.arange(ORTHANTS + 1))
            count(part, given, (by_orthant.vectors[part], starts), grid)

    share(ranges(len(directions), workers), work, workers)
    return by_orthant.order


def mask_transform(
    mask: NDArray[np.bool_],
    directions: Floats,
    heights: Floats,
    spacing: Floats,
    connectivity: int,
    workers: int | None = 1,
) -> NDArray[np.int64]:
    """Return the transform (directions, heights) of a mask, int64.

    With `workers` None there are up to as many threads as cores.
    """
    frame = place_points(mask.shape, spacing, connectivity)
    # The bits that are set are the points, or those of the complement in the T-construction.
    outside = ALL if frame.cubes else NONE
    words = (frame.shape[2] + 2 + 63) // 64
    padded = (frame.shape[0] + 2 * frame.axes[0], frame.shape[1] + 2 * frame.axes[1], words)
    bits = np.full(math.prod(padded), outside)
    back = np.empty_like(bits)
    forward = np.empty_like(bits)
    pixels = mask.view(np.uint8).reshape(frame.shape)
    if not pixels.flags.c_contiguous:
        laid_out = np.empty(frame.shape, np.uint8)
        copy_box(pixels, laid_out.reshape(-1))
        pixels = laid_out
    pack(np.require(pixels, requirements=("W",)), padded, outside, bits)
    link(bits, words, back, forward)
    planes = bits, (back, forward), padded
    histograms = np.zeros((len(directions), heights.size + 1), dtype=np.int64)

    def count(part: slice, *given: Any) -> None:
        count_mask(planes, *given, histograms[part])

    workers = workers_for(workers, mask.size * len(directions) // POINTS_A_WEIGHT)
    order = _share_directions(frame, directions, heights=heights, workers=workers, count=count)
    values = np.empty((len(directions), heights.size), dtype=np.int64)
    accumulate(histograms, order, frame.sign, values)
    return values


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
    absent = weights.dtype.type(np.inf if weights.dtype.kind == "f" else MOST_WEIGHT)
    sides = tuple(zip(frame.axes, frame.shape, strict=True))
    outside = -absent if frame.cubes else absent
    values = np.full([n + 2 * axis for axis, n in sides], outside)
    box = tuple(slice(axis, axis + n) for axis, n in sides)
    inner = values[box]
    image = np.require(weights, requirements=("C", "W")).reshape(frame.shape)
    place_weights(image, frame.cubes, outside, inner)
    bins = heights.size + 1 + UNROLL
    histograms = np.zeros((len(directions), bins), dtype=weights.dtype)
    curves = np.zeros_like(histograms)

    def count(part: slice, given: tuple[Any, ...], *chosen: Any) -> None:
        given = values, absent, *given, float(spacing[-1])
        count_weights(given, *chosen, histograms[part], curves[part])

    workers = workers_for(workers, weights.size * len(directions))
    order = _share_directions(frame, directions, heights=heights, workers=workers, count=count)
    result = np.empty((len(directions), heights.size), dtype=weights.dtype)
    accumulate(histograms, order, frame.sign, result)
    result[order] += frame.sign * curves[:, : heights.size]
    return result
