"""Columns of the cells between a box of a volume and those that touch it, and the share of the box.

A seam across one axis has a critical square for each critical edge of its 2-D image (`seams.py`),
and a critical edge, which is a row, for each minimum. A seam across two axes is an image in 1-D
times a square between four boxes: each of its minima is a critical square, whose sides are one
point of each of the four seams across one axis that meet there. A cube across three axes fills no
tunnel.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.blocks import SPARE
from ecc_core._backends.cpu.betti.critical_matrix import CriticalCells
from ecc_core._backends.cpu.betti.pair_boxes import Box, Pairing, Side
from ecc_core._backends.cpu.betti.seams import (
    COLUMN_STEPS,
    DIRECTIONS,
    MINIMUM,
    NOWHERE,
    ROW_STEPS,
    links_of_face,
    list_chains,
    match_face,
    with_frame,
)
from ecc_core._backends.cpu.betti.stars import ENDS, edge_offsets
from ecc_core._backends.cpu.betti.volume import Volume
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.sources import Block, Source

Array = NDArray[Any]
Span = tuple[int, int]

ACROSS = len(ENDS)
"""The id of the first edge between boxes; those below belong to edges within a box."""
FACE_SHARES = 2
"""Of the four parts of a column of a seam across one axis, each of both boxes has two."""
EDGE_SHARES = 1
"""Of the four parts of a column of a seam across two axes, each of four boxes has one."""


class Points(NamedTuple):
    """Points in the order in which they enter: that of keys, equal ones in that of places."""

    keys: Array
    """Keys, uint64."""
    places: Array
    """Places in the image, int64."""

    def before(self, other: Points) -> NDArray[np.bool_]:
        same = self.keys == other.keys
        found: NDArray[np.bool_] = self.keys < other.keys
        found |= same & (self.places < other.places)
        return found

    def along(self, axis: int) -> tuple[Points, Points]:
        """Return the first and the second points along an axis of length 2."""
        first = Points(*[part.take(0, axis) for part in self])
        second = Points(*[part.take(1, axis) for part in self])
        return first, second

    def later(self, axis: int) -> tuple[Points, NDArray[np.bool_]]:
        """Return the later ones of two points along an axis, and whether that is the second."""
        first, second = self.along(axis)
        high = first.before(second)
        pairs = zip(first, second, strict=True)
        return Points(*(np.where(high, b, a) for a, b in pairs)), high


class FaceSeam(NamedTuple):
    """The seam across one axis."""

    points: Points
    """The points of its 2-D image, in the order of entry."""
    high: NDArray[np.bool_]
    """Whether each of these points belongs to the box on the high side."""
    directions: Array
    saddles: Array
    """Points with critical edges, and their directions, (k, 2)."""
    minima: Array
    """Points without a lower neighbour, in C order."""


class SeamColumns(NamedTuple):
    """Columns of seams, and their parts in a box."""

    cells: CriticalCells
    share: int
    edges: Array
    """Edges of the volume of the box that lead to its rows."""
    ends: Array
    """The index at which the edges of each column end."""
    rows: Array
    """Numbers of rows of seams, (k, 2), or `NOWHERE`."""


@dataclass(frozen=True)
class Surroundings:
    """A box with the points around it, in the orientation in which its points are vertices."""

    values: Array
    shown: Array | None
    box: Box
    pairing: Pairing

    def flipped(self) -> Surroundings:
        shown = None if self.shown is None else np.flip(self.shown)
        return Surroundings(np.flip(self.values), shown, self.box.flipped(), self.pairing)

    @property
    def stop(self) -> tuple[int, ...]:
        return tuple(a + n for a, n in zip(self.box.start, self.box.shape, strict=True))

    @cached_property
    def open_sides(self) -> list[Side]:
        return self.pairing.open_sides(self.box)

    @property
    def inner(self) -> tuple[slice, ...]:
        """Return where the box lies among these points."""
        lows = [int((axis, 0) in self.open_sides) for axis in range(3)]
        return tuple(slice(low, low + n) for low, n in zip(lows, self.box.shape, strict=True))

    @property
    def within(self) -> tuple[Array, Array | None]:
        """Return the values of the box alone, and its mask."""
        return self.values[self.inner], None if self.shown is None else self.shown[self.inner]

    def framed(self, side: Side) -> bool:
        """Whether there is a frame beyond a side."""
        return self.pairing.filtration.cubes and side not in self.open_sides

    def points(self, spans: dict[int, Span]) -> Points:
        """Return the points of spans of the image along some axes, and of the box along others."""
        all_spans = [spans.get(axis, (self.box.start[axis], self.stop[axis])) for axis in range(3)]
        index = []
        for (first, last), start, inner in zip(all_spans, self.box.start, self.inner, strict=True):
            moved = inner.start - start
            index.append(slice(first + moved, last + moved))
        values = self.values[tuple(index)]
        shown = None if self.shown is None else Source(self.shown[tuple(index)], "mask")
        plan = self.pairing.plan
        keys = np.empty(values.size + SPARE, plan.key_dtype)
        _, height, width = values.shape
        block = Block((0, 0, 0), values.shape)
        load_box(plan, Source(values), shown, block, keys, 0, (height * width, width))
        ordered = self.pairing.ordered(keys[:-SPARE]).astype(np.uint64).reshape(values.shape)
        indices = [np.arange(*span) % n for span, n in zip(all_spans, self.box.whole, strict=True)]
        along = zip(indices, self.box.steps, strict=True)
        terms = [index * step for index, step in along]
        places = sum(np.ix_(*terms))
        return Points(ordered, np.asarray(places, np.int64))

    def gap(self, side: Side) -> Span:
        """Return the last point before a side, and the first one behind it, as a span."""
        axis, high = side
        low = (self.stop if high else self.box.start)[axis] - 1
        return low, low + 2

    def middle(self, side: Side) -> Array:
        """Return twice the coordinate of the middle of an edge across a side."""
        middle = 2 * self.gap(side)[0] + 1
        # The edge between opposite sides that touch has the same middle from both of them.
        return np.array(middle % (2 * self.box.whole[side[0]]))

    def ids_of(self, doubled: list[Array]) -> Array:
        """Return numbers of cells, of which twice the coordinates of the middles are given."""
        sizes = [2 * n + 1 for n in self.box.whole]  # Coordinates begin at -1, in the frame.
        moved = np.broadcast_arrays(*(along + 1 for along in doubled))
        found: Array = np.ravel_multi_index(tuple(moved), tuple(sizes)).reshape(-1)
        return found


def _others(axis: int) -> list[int]:
    return [other for other in range(3) if other != axis]


def face_seam(around: Surroundings, side: Side) -> FaceSeam:
    """Return the seam between a box and the one beyond a side."""
    axis, _ = side
    points, high = around.points({axis: around.gap(side)}).later(axis)
    ends = itertools.product(_others(axis), range(2))
    framed = tuple(around.framed(end) for end in ends)
    directions = np.empty(high.shape, np.int8)
    # By Euler's formula, critical edges are at most one more than minima and maxima.
    saddles = np.empty((high.size + 1, 2), np.int64)
    minima = np.empty(high.size, np.int64)
    keys = with_frame(points.keys, framed, 0, np.iinfo(np.uint64).max)
    places = with_frame(points.places, framed, -1, np.iinfo(np.int64).max)
    count, least = match_face(keys, places, links_of_face(), directions, saddles, minima)
    return FaceSeam(points, high, directions, saddles[:count], minima[:least])


def seam_rows(seam: FaceSeam, axis: int) -> CriticalCells:
    """Return the critical edges of a seam: the minima of its 2-D image."""
    keys, places = (part.reshape(-1)[seam.minima] for part in seam.points)
    owners = seam.high.reshape(-1)[seam.minima]
    ids = np.where(owners, ACROSS + 2 * axis, ACROSS + 2 * axis + 1)
    return CriticalCells(keys, places, ids)


@dataclass(frozen=True)
class SeamsOfBox:
    """The seams around a box, and the numbers of their rows.

    Rows of the seams on high sides belong to the box; others know them by what is listed there.
    """

    around: Surroundings
    volume: Volume
    first_row: int
    """The number of the first row that belongs to a seam."""

    @cached_property
    def seams(self) -> dict[Side, FaceSeam]:
        return {side: face_seam(self.around, side) for side in self.around.open_sides}

    @cached_property
    def rows(self) -> dict[Side, CriticalCells]:
        """The rows of the seams on high sides."""
        return {side: seam_rows(seam, side[0]) for side, seam in self.seams.items() if side[1]}

    def columns(self) -> list[SeamColumns]:
        found = [self._of_face(side) for side in self.seams]
        for first, second in itertools.combinations(self.seams, 2):
            if first[0] != second[0]:
                found.append(self._of_edge(first, second))
        return found

    def _chains(self, side: Side, starts: Array) -> tuple[Array, Array, Array]:
        """Return the edges of chains of a seam, where each one ends, and the rows they lead to."""
        axis, high = side
        seam = self.seams[side]
        steps = self.volume.steps
        corner = [1, 1, 1]  # Points lie behind the layers around them.
        if high:
            corner[axis] = self.around.box.shape[axis]
        base = sum(at * step for at, step in zip(corner, steps, strict=True))
        others = _others(axis)
        offsets = edge_offsets(steps, self.volume.width)[_ends_of(axis)]
        edges, ends, last = list_chains(
            seam.directions, starts, base, (steps[others[0]], steps[others[1]]), offsets
        )
        rows = np.full(last.shape, NOWHERE)
        if high:
            known = last != NOWHERE
            first = self.first_row
            for other, cells in self.rows.items():
                if other == side:
                    break
                first += cells.keys.size
            rows[known] = first + np.searchsorted(seam.minima, last[known])
        return edges, ends, rows

    def _of_face(self, side: Side) -> SeamColumns:
        axis, _ = side
        seam = self.seams[side]
        at, directions = seam.saddles.T
        edges, ends, rows = self._chains(side, seam.saddles)
        middles: list[Any] = [None] * 3
        middles[axis] = self.around.middle(side)
        indices = np.unravel_index(at, seam.high.shape)
        moves = (ROW_STEPS[directions], COLUMN_STEPS[directions])
        for other, index, move in zip(_others(axis), indices, moves, strict=True):
            middles[other] = 2 * (self.around.box.start[other] + index) + move
        keys, places = (part.reshape(-1)[at] for part in seam.points)
        cells = CriticalCells(keys, places, self.around.ids_of(middles))
        return SeamColumns(cells, FACE_SHARES, edges, ends, rows)

    def _of_edge(self, first: Side, second: Side) -> SeamColumns:
        """Return the columns of the seam between the four boxes around an edge of the box."""
        around = self.around
        axis, other = first[0], second[0]
        along = 3 - axis - other
        points = around.points({axis: around.gap(first), other: around.gap(second)})
        pairs, _ = points.later(max(axis, other))
        line, _ = pairs.later(min(axis, other))
        line = Points(*(part.reshape(-1) for part in line))
        at = _minima(line, around.framed((along, 0)), around.framed((along, 1)))
        parts = []
        for side, end in ((first, second), (second, first)):
            shape = self.seams[side].high.shape
            index: list[Any] = [at, at]
            beside = _others(side[0]).index(end[0])
            index[beside] = np.full(at.size, end[1] * (shape[beside] - 1))
            starts = np.stack(
                [np.ravel_multi_index(tuple(index), shape), np.full(at.size, MINIMUM)], 1
            )
            parts.append(self._chains(side, starts))
        edges, ends = _together(parts)
        rows = np.stack([part[2][:, 0] for part in parts], 1)
        middles: list[Any] = [None] * 3
        for side in (first, second):
            middles[side[0]] = around.middle(side)
        middles[along] = 2 * (around.box.start[along] + at)
        keys, places = (part[at] for part in line)
        cells = CriticalCells(keys, places, around.ids_of(middles))
        return SeamColumns(cells, EDGE_SHARES, edges, ends, rows)


def _ends_of(axis: int) -> list[int]:
    """Return the numbers of the ends of stars that lie in a face across an axis, by direction."""
    found = []
    for direction in range(DIRECTIONS):
        move = [0, 0, 0]
        first, second = _others(axis)
        move[first] = int(ROW_STEPS[direction])
        move[second] = int(COLUMN_STEPS[direction])
        found.append(ENDS.index((move[0], move[1], move[2])))
    return found


def _minima(line: Points, framed_low: bool, framed_high: bool) -> Array:
    """Return the points of an image in 1-D that have no neighbour before them."""
    all_but_last = Points(*[part[:-1] for part in line])
    all_but_first = Points(*[part[1:] for part in line])
    rises = all_but_last.before(all_but_first)
    low = np.concatenate([[framed_low], rises])  # The neighbour on the low side comes before.
    high = np.concatenate([~rises, [framed_high]])
    return np.flatnonzero(~low & ~high)


def _together(parts: list[tuple[Array, Array, Array]]) -> tuple[Array, Array]:
    """Return the edges of both chains of each column, and where they end."""
    counts = [np.diff(ends, prepend=0) for _, ends, _ in parts]
    columns = [np.repeat(np.arange(count.size), count) for count in counts]
    column_of = np.concatenate(columns)
    order = np.argsort(column_of, kind="stable")
    edges = np.concatenate([part[0] for part in parts])[order]
    return edges, np.cumsum(sum(counts))
