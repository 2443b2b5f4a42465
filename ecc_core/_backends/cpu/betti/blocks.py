"""Grow the forests of blocks, one block after another in each thread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti import basins
from ecc_core._backends.cpu.betti.basins import Nodes
from ecc_core._backends.cpu.betti.forest import Exits, Forest, Grid, Part
from ecc_core._backends.cpu.betti.links import LINKS, MOST
from ecc_core._backends.cpu.betti.order import sort_keys
from ecc_core._backends.cpu.betti.scan import OUTSIDE, scan_links
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.sources import Block, Source, scratch
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]
Sides = tuple[bool, ...]

SPARE = 64  # keys behind a block that vectors read but do not use
NOWHERE = (False, False, False), (False, False, False)


class Field(NamedTuple):
    """An image as (slices, rows, columns), its mask, and its number of axes."""

    source: Source
    mask: Source | None
    ndim: int


class Worker:
    """Adds blocks to forests, in one thread, and counts what is final in histograms.

    If `bins` is 0, there are no histograms, and the places of births and deaths are kept instead.
    """

    def __init__(self, field: Field, forests: list[Forest], bins: int) -> None:
        self.field, self.forests, self.paired = field, forests, bins == 0
        self.histograms = [np.zeros(bins, np.int64) for _ in forests]

    def add(self, block: Block, plans: list[Plan], nan: str) -> None:
        """Add a block to all forests."""
        staged = Staged(block, self.field)
        for plan in plans:
            keys = scratch.take("keys", staged.size + SPARE, plan.key_dtype)
            source, mask, _ = self.field
            has_nan, unfit = load_box(
                plan, source, mask, staged.halo, keys, staged.at, staged.steps[:2]
            )
            if has_nan and nan == "raise":
                raise ValueError(NAN_MESSAGE)
            if not unfit:
                break
        reverse = False
        for forest, histogram in zip(self.forests, self.histograms, strict=True):
            if forest.kind.complement != reverse:
                np.subtract(plan.key_dtype.type(plan.top), keys, out=keys)
                reverse = not reverse
            # The keys of all blocks are to be counted from the same top.
            shift = plans[-1].top - plan.top if reverse else 0
            forest.parts.append(self._grow(forest, histogram[shift:], shift, keys, staged))

    def _grow(
        self, forest: Forest, histogram: Array, shift: int, keys: Array, staged: Staged
    ) -> Part:
        """Return what a block leaves to be joined; `shift` is added to its keys."""
        take, frame, layout = scratch.take, forest.kind.complement, staged.layout
        link = LINKS[3 if self.field.ndim == 3 else 2, forest.kind.connectivity]
        offsets = np.array(link.members) @ staged.steps
        ends = tuple(offsets[link.ends].tolist())
        end_set = np.uint64(sum(1 << i for i in link.ends))
        points = math.prod(layout[:3])
        labels = take("labels", keys.size, np.int32)
        forks, links = take("forks", points, np.int32), take("links", points, np.uint32)
        places = take("places", keys.size, np.int32)
        grid = forest.grid
        frame_ends = grid.ends(staged.block, framed=True) if frame else NOWHERE
        minima, count, room = scan_links(
            keys,
            labels,
            layout,
            *grid.ends(staged.block),
            frame,
            *frame_ends,
            ends,
            end_set,
            link.near,
            take("rows around", 18, np.uint64).reshape(2, 9),
            take("planes", 2 * MOST, np.uint64),
            places,
            forks,
            links,
        )
        staged.mark_halo(labels, *frame_ends)
        paths = labels, np.array([0, *ends], np.int64)
        edges = take("edges", 2 * room, np.int32).reshape(-1, 2)
        listed = take("edge places", room, np.int32), take("edge keys", room, keys.dtype), edges
        total, count = basins.list_edges(
            keys, *paths, offsets, forks[:count], links, places, minima, *listed
        )
        at, edge_keys, edges = (part[:count] for part in listed)
        faces = grid.faces(staged.block)
        on_faces = [np.empty(face.shape, np.int32) for face in faces.values()]
        for face, own in zip(faces.values(), on_faces, strict=True):
            first = staged.place(face.start)
            total = basins.label_box(*paths, first, staged.steps, places, total, own)
        nodes = Nodes(
            places[:total],
            take("births", total, keys.dtype),
            take("opens", total, keys.dtype),
            take("closed", total, np.bool_),
            take("tree", total, np.int32),
            take("merged", total, np.int32),
        )
        basins.make_trees(keys, minima, frame, nodes, histogram)
        for face, own in zip(faces.values(), on_faces, strict=True):
            basins.open_points(own, staged.part(keys, face), nodes)
        order = sort_keys(edge_keys, histogram.size.bit_length())
        left = take("left", count, np.int32)
        pairs = take("pairs", 2 * total * self.paired, np.int32).reshape(-1, 2)
        joined, lives = basins.join_basins(
            edges, edge_keys, at, order, nodes, histogram, left, pairs
        )
        numbers, roots = take("numbers", total, np.int32), take("roots", total, np.int32)
        kept = roots[: basins.number_nodes(nodes.merged, numbers, roots)]
        first = forest.reserve(kept.size)
        numbers += first
        for (plane, face), own in zip(faces.items(), on_faces, strict=True):
            surface = forest.on_face(plane, face)
            surface[:] = numbers[own].reshape(surface.shape)
        left = left[:joined]
        return Part(
            first,
            nodes.births[kept].astype(np.uint64) + np.uint64(shift),
            self._globally(places[kept], staged),
            self._exits(grid, places[minima:total], numbers[minima:], staged),
            numbers[edges[left]],
            edge_keys[left].astype(np.uint64) + np.uint64(shift),
            self._globally(at[left], staged),
            self._globally(pairs[:lives], staged),
        )

    def _exits(self, grid: Grid, places: Array, numbers: Array, staged: Staged) -> list[Exits]:
        """Return the nodes that lie in other blocks."""
        points, exits = staged.points(places), []
        for axis, at in grid.planes:
            if at in (staged.block.start[axis] - 1, staged.block.stop[axis]):
                there = np.flatnonzero(points[axis] == at)
                index = tuple(points[other][there] for other in range(3) if other != axis)
                exits.append(((axis, at), index, numbers[there]))
        return exits

    def _globally(self, places: Array, staged: Staged) -> Array:
        """Convert places in the block to places in the image in C order; the frame is at -1.

        They are 0 where there are histograms: only pairs need them.
        """
        if not self.paired:
            return np.zeros(places.shape, np.int64)
        _, rows, columns = self.field.source.shape
        z, y, x = staged.points(np.maximum(places, 0))
        return np.where(places < 0, -1, (z * rows + y) * columns + x)


class Staged:
    """The layout of a staged block: contiguous, with one point of halo on each side.

    Attributes
    ----------
    layout : (slices, rows, columns, step of slices, step of rows)
        In 2-D there is no halo of slices, and their step is 0.
    steps : (step of slices, of rows, 1)
    shape : (slices, rows, columns)
        With the halo.
    first : (z, y, x)
        The first staged point in the image.
    size : int
        Staged points.
    halo : Block
        The part of the image that is read: the block and the halo within the image.
    at : int
        Where its first point is staged.
    """

    def __init__(self, block: Block, field: Field) -> None:
        self.block = block
        lead = int(field.ndim == 3)
        slices, rows, columns = block.shape
        self.shape = slices + 2 * lead, rows + 2, columns + 2
        self.size = math.prod(self.shape)
        self.steps = lead * (rows + 2) * (columns + 2), columns + 2, 1
        self.layout = (*block.shape, *self.steps[:2])
        self.first = tuple(a - n for a, n in zip(block.start, (lead, 1, 1), strict=True))
        start = tuple(max(a, 0) for a in self.first)
        ends = zip(self.first, self.shape, field.source.shape, strict=True)
        stop = tuple(min(a + n, end) for a, n, end in ends)
        self.halo = Block(start, stop)  # type: ignore[arg-type]
        self.at = self.place(start)

    def place(self, point: Sequence[int]) -> int:
        """Return where a point is staged."""
        gaps = zip(point, self.first, self.steps, strict=True)
        return sum((a - first) * step for a, first, step in gaps)

    def part(self, staged: Array, box: Block) -> Array:
        """Return what is staged for the points of a box."""
        spans = zip(*box, self.first, strict=True)
        index = tuple(slice(a - first, b - first) for a, b, first in spans)
        return staged[: self.size].reshape(self.shape)[index]

    def points(self, places: Array) -> list[Array]:
        """Return the indices (z, y, x) in the image of staged points."""
        found = np.unravel_index(places, self.shape)
        return [index + first for index, first in zip(found, self.first, strict=True)]

    def mark_halo(self, labels: Array, low: Sides, high: Sides) -> None:
        """Label the points around the block, after its own points have been scanned.

        `low` and `high` tell along which axes the block begins and ends at the frame, which is node
        0. The points beyond belong to it, and so do the points at the border: the frame is their
        lowest neighbour.
        """
        around = labels[: self.size].reshape(self.shape)
        axes: list[tuple[Any, ...]] = [
            (slice(None),) * axis for axis in range(3) if self.steps[axis]
        ]
        for before in axes:
            around[(*before, 0)] = around[(*before, -1)] = OUTSIDE
        for before, begins, ends in zip(axes, low[-len(axes) :], high[-len(axes) :], strict=True):
            if begins:
                around[(*before, slice(2))] = 0
            if ends:
                around[(*before, slice(-2, None))] = 0
