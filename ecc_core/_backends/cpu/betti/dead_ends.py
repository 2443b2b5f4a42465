"""Kernel: edges from which no path leads to a row are removed from the gradient of a volume.

An edge that is matched with a square leads to the three other edges of the square. If all three
have been removed, it can be removed, too. Vectors test this for 512 edges at once, and several
times, in one *tile* of the volume after another. A tile has as many slices, and rows of each, as
fit in the second-level cache with their planes.

*Planes* have one bit for each edge. A word of 64 bits belongs to 64 places of a row, and a word
that is always 0 lies between rows, beyond which there is only the frame. The planes of an axis are:
the edges that are left, those that stay in any case (rows, and all edges around the tile), and for
each direction those that are matched with the square on that side.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu.betti.stars import AXES, EDGES, ENDS, ROW
from ecc_core._backends.cpu.betti.volume import Volume
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import (
    ALL,
    I8,
    I64,
    LANES,
    NONE,
    bare,
    lanes_of,
    operation,
    splat,
)
from ecc_core._backends.cpu.pool import share
from ecc_core._backends.cpu.sources import scratch

Array = NDArray[Any]

# A sweep takes 0.09 ns a voxel. The last ones of these remove a tenth of the edges that are left of
# smooth volumes.
SWEEPS = 8
TILE_SLICES = 32
TILE_WORDS = 200  # Words of a slice in a plane: all planes of a tile take about a megabyte.
WORDS = 8  # A vector has so many words.
FIRST = WORDS
"""The place of the first word of a plane."""
SPARE = 3 * WORDS
"""Words of a plane beside those of the tile, which vectors read but do not use."""

AXIS_COUNT = 3
SIDES = [[end for end in range(EDGES) if AXES[end] != axis] for axis in range(AXIS_COUNT)]
"""The ends of the squares at an edge along each axis."""
STAY = AXIS_COUNT  # The first planes are those of the edges that are left.
MATCHED = STAY + AXIS_COUNT
PLANES = MATCHED + sum(map(len, SIDES))


def _matched_plane(axis: int, side: int) -> int:
    """Return the plane of the edges along an axis that are matched with squares on a side."""
    return MATCHED + axis * len(SIDES[axis]) + side


def _bits_where(builder: Any, relation: str, found: Any, byte: int) -> Any:
    """Emit the word that tells which of 64 bytes are equal to a byte, or differ."""
    return builder.bitcast(builder.icmp_unsigned(relation, found, splat(I8, LANES, byte)), I64)


def _write(builder: Any, word: Any, planes: Any, plane: int, at: Any, size: Any) -> None:
    first = builder.mul(size, I64(plane))
    builder.store(word, planes.one(builder.add(at, first)))


def _edges_at(builder: Any, axis: int, place: Any, width: Any) -> Any:
    """Emit the address of the edge along an axis at a place."""
    return builder.add(place, builder.mul(width, I64(axis)))


@operation()
def read_edges(builder, gradient, place, width, inside, planes, at, size):
    """Write the words of the edges at 64 places, of which some are `inside` the row."""
    for axis, sides in enumerate(SIDES):
        found = gradient.load(_edges_at(builder, axis, place, width), LANES)
        left = builder.and_(_bits_where(builder, "!=", found, 0), inside)
        _write(builder, left, planes, axis, at, size)
        _write(builder, _bits_where(builder, "==", found, int(ROW)), planes, STAY + axis, at, size)
        for side, end in enumerate(sides):
            matched = _bits_where(builder, "==", found, end + 1)
            _write(builder, matched, planes, _matched_plane(axis, side), at, size)


@operation()
def read_edges_around(builder, gradient, place, width, inside, planes, at, size):
    """Write the words of the edges at 64 places around a tile, which stay."""
    for axis in range(AXIS_COUNT):
        found = gradient.load(_edges_at(builder, axis, place, width), LANES)
        left = builder.and_(_bits_where(builder, "!=", found, 0), inside)
        _write(builder, left, planes, axis, at, size)
        _write(builder, ir.Constant(I64, -1), planes, STAY + axis, at, size)


@operation()
def write_edges(builder, gradient, place, width, inside, planes, at, size):
    """Remove edges at 64 places from the gradient, if they are removed from the planes."""
    outside = builder.not_(inside)
    for axis in range(AXIS_COUNT):
        edges = _edges_at(builder, axis, place, width)
        plane = builder.add(at, builder.mul(size, I64(axis)))
        stay = lanes_of(builder, builder.or_(builder.load(planes.one(plane)), outside))
        found = gradient.load(edges, LANES)
        gradient.store(builder.select(stay, found, splat(I8, LANES, 0)), edges)


@operation()
def sweep_words(builder, planes, at, row_step, slice_step, size):
    """Remove those of 512 edges along each axis whose three next edges are removed."""

    def plane_at(plane: int, place: Any) -> Any:
        return planes.load(builder.add(place, builder.mul(size, I64(plane))), WORDS)

    def left_at(axis: int, move: tuple[int, ...]) -> Any:
        """Return which edges along an axis are left, at places that are a move away."""
        z, y, x = move
        place = builder.add(at, builder.mul(slice_step, I64(z)))
        place = builder.add(place, builder.mul(row_step, I64(y)))
        words = plane_at(axis, place)
        if x == 0:
            return words
        beyond = plane_at(axis, builder.add(place, I64(x)))
        one, rest = (splat(I64, WORDS, count) for count in (1, LANES - 1))
        if x > 0:
            return builder.or_(builder.lshr(words, one), builder.shl(beyond, rest))
        return builder.or_(builder.shl(words, one), builder.lshr(beyond, rest))

    swept = []
    for axis, sides in enumerate(SIDES):
        leads_on = plane_at(STAY + axis, at)
        for side, end in enumerate(sides):
            move = ENDS[end]
            corner = [min(step, 0) for step in move]
            far_corner = list(corner)
            far_corner[axis] += 1
            ahead = left_at(axis, tuple(move))
            ahead = builder.or_(ahead, left_at(AXES[end], tuple(corner)))
            ahead = builder.or_(ahead, left_at(AXES[end], tuple(far_corner)))
            matched = plane_at(_matched_plane(axis, side), at)
            leads_on = builder.or_(leads_on, builder.and_(matched, ahead))
        swept.append(builder.and_(left_at(axis, (0, 0, 0)), leads_on))
    for axis, words in enumerate(swept):
        planes.store(words, builder.add(at, builder.mul(size, I64(axis))))


@subroutine()
def clear_words(planes, at, count, size):
    """Clear words of the planes of edges that are left."""
    for axis in range(AXIS_COUNT):
        for word in range(count):
            planes[np.uint64(axis * size + at + word)] = NONE


@subroutine()
def row_at(z, y, tile, steps):
    """Return where a plane has the words of a row of a tile, or of one around it."""
    return FIRST + (z - tile[0] + 1) * steps[0] + (y - tile[2] + 1) * steps[1]


@kernel()
def sweep_slices(gradient, shape, slices, rows, words, planes):
    """Remove dead ends of some slices, (first, end); `rows` are those of a tile, `words` of a row.

    The last slice of the volume, whose edges lie in the frame, is none of them.
    """
    gradient = bare(gradient)
    planes = bare(planes)
    width = gradient.size // 3
    depth, height, length = shape
    # Distances between words of slices and of rows.
    steps = (rows + 2) * (words + 1), words + 1
    size = planes.size // PLANES
    end_of_row = ALL >> np.uint64(LANES * words - length)
    planes[:] = NONE
    for first_row in range(0, height, rows):
        tile = slices[0], slices[1], first_row, min(first_row + rows, height)
        for z in range(tile[0] - 1, tile[1] + 1):
            for y in range(tile[2] - 1, tile[3] + 1):
                at = row_at(z, y, tile, steps)
                if not (0 <= z < depth - 1 and 0 <= y < height):
                    clear_words(planes, at, words, size)
                    continue
                own = tile[0] <= z < tile[1] and tile[2] <= y < tile[3]
                for word in range(words):
                    place = (z * height + y) * length + LANES * word
                    inside = end_of_row if word == words - 1 else ALL
                    if own:
                        read_edges(gradient, place, width, inside, planes, at + word, size)
                    else:
                        read_edges_around(gradient, place, width, inside, planes, at + word, size)
        for _ in range(SWEEPS):
            for z in range(tile[0], tile[1]):
                at = row_at(z, tile[2], tile, steps)
                end = row_at(z, tile[3], tile, steps)
                for some in range(at, end, WORDS):
                    sweep_words(planes, some, steps[1], steps[0], size)
        for z in range(tile[0], tile[1]):
            for y in range(tile[2], tile[3]):
                at = row_at(z, y, tile, steps)
                for word in range(words):
                    place = (z * height + y) * length + LANES * word
                    inside = end_of_row if word == words - 1 else ALL
                    write_edges(gradient, place, width, inside, planes, at + word, size)


def remove_dead_ends(volume: Volume, workers: int) -> None:
    """Remove most edges from which no path leads to a row; rows are marked.

    Nothing is removed from volumes with slices of fewer than 64 places. Which edges are removed
    depends on the order in which threads look at them, but what is left of paths to rows does not.
    """
    depth, height, length = volume.shape
    if volume.steps[0] < LANES:
        return
    words = ceil_div(length, LANES)
    pitch = words + 1
    rows = min(max(TILE_WORDS // pitch, 4), height)
    size = (TILE_SLICES + 2) * (rows + 2) * pitch + SPARE
    firsts = range(0, depth - 1, TILE_SLICES)
    slabs = [(first, min(first + TILE_SLICES, depth - 1)) for first in firsts]

    def sweep(queue: Iterator[tuple[int, int]]) -> None:
        planes = scratch.take("edge planes", PLANES * size, np.dtype(np.uint64))
        for slices in queue:
            sweep_slices(volume.gradient, volume.shape, slices, rows, words, planes)

    share(slabs, sweep, workers)
