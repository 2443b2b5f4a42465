"""Critical points of a mask, once an orthant, and the histograms of their heights.

One kernel serves both constructions (see :mod:`ecc_core._orthants`): the V- on the
mask, the T- on its complement. Points are bits, padded by one on both sides of every axis that the
image has, in words of 64 points, row after row. Outside of the image all bits are `outside`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.llvm import count_trailing_zeros
from ecc_core._backends.cpu.transforms.heights import BLOCK, add_points
from ecc_core._backends.cpu.vector_bits import small_keys
from ecc_core._orthants import ORTHANTS

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
NONE, ONE, TOP = np.uint64(0), np.uint64(1), np.uint64(63)
TILE = 512  # words at a time: their planes stay in the first-level cache
FLUSH = 4096  # points to collect before they are projected on the directions
ROOM = FLUSH + 64


@kernel(error_model="numpy")
def pack(pixels: Any, padded: Any, outside: Any, bits: Any) -> None:
    """Write the planes of (slices, rows, columns) pixels, inverted if `outside` is all ones.

    The padding is there already.
    """
    slices, rows, columns = pixels.shape
    _, padded_rows, words = padded
    before_slices, before_rows = (padded[0] - slices) >> 1, (padded_rows - rows) >> 1
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
def link(bits: Any, words: Any, back: Any, forward: Any) -> None:
    """Write the planes of the pairs of set points along the last axis, by either of the two.

    What lies beyond the padding does not matter: there, points have coefficient 0 in any case.
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
def _active_words(
    bits: Any, edges: Any, tile: Any, end: Any, offsets: Any, present: Any, planes: Any, active: Any
) -> Any:
    """List the words of ``tile:end`` with critical points, and how many there are.

    `offsets` are the distances to the words of the neighbours in the next slice and row, and
    `present` is all ones for the axes that the image has. Writes to `planes`, for each word, which
    coefficients are not zero, negative, and -2. The coefficient of a point is 1 - (edges) +
    (squares) - (cube) of the cells that span to set neighbours alone, which is 1 - (Euler
    characteristic of a complex on 3 vertices), so it lies in -2..1.
    """
    count, (depth, row), (has_depth, has_row) = end - tile, offsets, present
    nonzero, negative, double = planes[:count], planes[TILE : TILE + count], planes[2 * TILE :]
    points, points_row = bits[tile:end], bits[tile + row : end + row]
    points_depth = bits[tile + depth : end + depth]
    points_both = bits[tile + row + depth : end + row + depth]
    links, links_row = edges[tile:end], edges[tile + row : end + row]
    links_depth = edges[tile + depth : end + depth]
    links_both = edges[tile + row + depth : end + row + depth]
    for i in range(count):
        here, x = points[i], links[i]
        y, xy = here & points_row[i] & has_row, x & links_row[i] & has_row
        z, xz = here & points_depth[i] & has_depth, x & links_depth[i] & has_depth
        yz = y & z & points_both[i]
        cube = xy & xz & links_both[i]
        positive = (here & ~(x | y | z)) | (xy & xz & yz & ~cube)
        odd = here ^ x ^ y ^ z ^ xy ^ xz ^ yz ^ cube
        two = x & y & z & ~(xy | xz | yz)
        negative[i] = (odd & ~positive) | two
        nonzero[i] = positive | negative[i]
        double[i] = two
    found = np.int64(0)
    for i in range(count):  # without branches, which nothing could predict
        active[found] = tile + i
        found += np.int64(nonzero[i] != 0)
    return found


@kernel(error_model="numpy")
def _collect(planes: Any, at: Any, here: Any, widths: Any, points: Any, count: Any) -> Any:
    """Append the critical points of a word; `here` is its (slice, row, column) position."""
    x, y, z, weights = points
    depth, height, column = here
    nonzero, negative, double = planes[at], planes[at + TILE], planes[at + 2 * TILE]
    while nonzero != NONE:
        bit = count_trailing_zeros(nonzero)
        nonzero &= nonzero - ONE
        x[count], y[count], z[count] = widths[column + bit], height, depth
        minus_one = np.int64((negative >> np.uint64(bit)) & ONE)
        minus_two = np.int64((double >> np.uint64(bit)) & ONE)
        weights[count] = 1 - 2 * minus_one - minus_two
        count += 1
    return count


@kernel(error_model="numpy")
def count_mask(bits: Any, given: Any, chosen: Any, grid: Any, histograms: Any) -> None:
    """Add the critical points of each orthant to the histograms of its directions.

    `bits` are the points, the two results of :func:`link`, and the shape in words. `given` are the
    axes that the image has, steps and shifts of orthants, and the coordinates of the points (V) or
    corners (T) along the three axes. `chosen` are directions and their orthants: those of orthant i
    are ``starts[i]:starts[i + 1]``.
    """
    (points_set, links, (_, rows, words)), (directions, starts) = bits, chosen
    axes, frames, (depths, heights, widths) = given
    present = (ALL if axes[0] else NONE, ALL if axes[1] else NONE)
    points = (np.empty(ROOM), np.empty(ROOM), np.empty(ROOM), np.empty(ROOM, dtype=np.int64))
    bins = np.empty(BLOCK, dtype=np.uint32)
    planes = np.empty(3 * TILE, dtype=np.uint64)
    active = np.empty(TILE + 1, dtype=np.int64)
    for orthant in range(ORTHANTS):
        part = (starts[orthant], starts[orthant + 1])
        if part[0] == part[1]:
            continue
        steps, shifts = frames[orthant, 0], frames[orthant, 1]
        offsets = (steps[0] * rows * words, steps[1] * words)
        edges = links[1] if steps[2] > 0 else links[0]
        count = 0
        for slice_ in range(depths.size):
            begin = ((slice_ + shifts[0]) * rows + shifts[1]) * words
            end = begin + heights.size * words
            for tile in range(begin, end, TILE):
                stop = min(tile + TILE, end)
                found = _active_words(
                    points_set, edges, tile, stop, offsets, present, planes, active
                )
                for i in range(found):
                    place = active[i] - begin
                    row = np.int64(np.uint32(place) // np.uint32(words))
                    here = (depths[slice_], heights[row], 64 * (place - row * words) - shifts[2])
                    count = _collect(planes, active[i] - tile, here, widths, points, count)
                    if count >= FLUSH:
                        add_points(points, count, directions, part, grid, bins, histograms)
                        count = 0
        add_points(points, count, directions, part, grid, bins, histograms)
