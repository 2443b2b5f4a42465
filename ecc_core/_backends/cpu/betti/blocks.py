"""Grow the forests of blocks, one block after another in each thread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.basins import (
    OUTSIDE,
    Edges,
    Nodes,
    label_box,
    list_edges,
    make_trees,
    number_nodes,
    open_points,
)
from ecc_core._backends.cpu.betti.forest import Forest, Part, Words, join
from ecc_core._backends.cpu.betti.links import LINKS, MOST, scan_links
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.order import sort_keys
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.sources import Block, Source, scratch
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]

SPARE = 64  # keys behind a block that vectors read but do not use


class Field(NamedTuple):
    """An image as (slices, rows, columns), its mask, and its number of axes."""

    source: Source
    mask: Source | None
    ndim: int


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
        self.block, self.field = block, field
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

    def load(self, plan: Plan, nan: str) -> tuple[Array, bool, bool]:
        """Load the keys; return them, whether there was a NaN, and whether a key did not fit."""
        keys = scratch.take("keys", self.size + SPARE, plan.key_dtype)
        place = self.halo, keys, self.at, self.steps[:2]
        has_nan, unfit = load_box(plan, self.field.source, self.field.mask, *place)
        if has_nan and nan == "raise":
            raise ValueError(NAN_MESSAGE)
        return keys, has_nan, unfit

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

    def in_image(self, places: Array) -> Array:
        """Convert staged places to places in the image in C order; the frame is at -1."""
        _, rows, columns = self.field.source.shape
        z, y, x = self.points(np.maximum(places, 0))
        return np.where(places < 0, -1, (z * rows + y) * columns + x)

    def mark_halo(self, labels: Array, framed: Words) -> None:
        """Label the points around the block, after its own points have been scanned.

        The frame, which begins on these sides, is node 0. The points beyond belong to it, and so do
        the points at the border: the frame is their lowest neighbour.
        """
        around = labels[: self.size].reshape(self.shape)
        axes = [axis for axis in range(3) if self.steps[axis]]
        ends: list[tuple[Any, ...]] = [(slice(None),) * axis for axis in axes]
        for before in ends:
            around[(*before, 0)] = around[(*before, -1)] = OUTSIDE
        for axis, before in zip(axes, ends, strict=True):
            for side, within in enumerate((slice(2), slice(-2, None))):
                if framed[2 * axis + side]:
                    around[(*before, within)] = 0


def add_block(
    staged: Staged, plans: list[Plan], nan: str, forests: list[Forest], histograms: list[Array]
) -> None:
    """Add a block to forests, and count what is final in histograms.

    If these are empty, the places of births and deaths are kept instead.
    """
    for plan in plans:
        keys, _, unfit = staged.load(plan, nan)
        if not unfit:
            break
    reverse = False
    for forest, histogram in zip(forests, histograms, strict=True):
        if forest.kind.complement != reverse:
            np.subtract(plan.key_dtype.type(plan.top), keys, out=keys)
            reverse = not reverse
        # The keys of all blocks are to be counted from the same top.
        shift = plans[-1].top - plan.top if reverse else 0
        forest.parts.append(_grow(forest, histogram[shift:], shift, keys, staged))


def _grow(forest: Forest, histogram: Array, shift: int, keys: Array, staged: Staged) -> Part:
    """Return what a block leaves to be joined; `shift` is added to its keys."""
    take, frame, block, grid = scratch.take, forest.kind.complement, staged.block, forest.grid
    link = LINKS[3 if staged.field.ndim == 3 else 2, forest.kind.connectivity]
    offsets = np.array(link.members) @ staged.steps
    ends, end_set = tuple(offsets[link.ends].tolist()), np.uint64(sum(1 << i for i in link.ends))
    points = math.prod(block.shape)
    labels, starts = take("labels", keys.size, np.int32), take("starts", keys.size, np.int32)
    forks, links = take("forks", points, np.int32), take("links", points, np.uint32)
    sides = grid.borders(block, frame)
    minima, count, room = scan_links(
        keys,
        labels,
        staged.layout,
        sides,
        frame,
        (ends, end_set, link.near),
        take("planes", 2 * MOST, np.uint64),
        (starts, forks, links),
    )
    staged.mark_halo(labels, sides[1])
    paths = labels, np.array([0, *ends], np.int64)
    joined, edge_keys = take("edges", 2 * room, np.int32), take("edge keys", room, keys.dtype)
    edges = Edges(joined.reshape(-1, 2), edge_keys, take("edge places", room, np.int32))
    total, count = list_edges(keys, paths, offsets, forks[:count], links, starts, minima, edges)
    edges = Edges(*(part[:count] for part in edges))
    faces = grid.faces(block)
    on_faces = [np.empty(face.shape, np.int32) for face in faces.values()]
    for face, own in zip(faces.values(), on_faces, strict=True):
        first = staged.place(face.start)
        total = label_box(paths, first, staged.steps, starts, total, own)
    kinds = np.int64, np.uint64, np.uint64, np.bool_, np.int32, np.int32
    fields = zip(Nodes._fields, kinds, strict=True)
    nodes = Nodes(*(take(name, total, kind) for name, kind in fields))
    make_trees(keys, starts, minima, frame, nodes, histogram)
    for face, own in zip(faces.values(), on_faces, strict=True):
        open_points(own, staged.part(keys, face), nodes)
    order = sort_keys(edges.keys, histogram.size.bit_length())
    left, pairs = join(nodes, edges, order, histogram)
    numbers, roots = take("numbers", total, np.int32), take("roots", total, np.int32)
    kept = roots[: number_nodes(nodes.merged, numbers, roots)]
    first = forest.reserve(kept.size)
    numbers += first
    for (plane, face), own in zip(faces.items(), on_faces, strict=True):
        forest.surface[plane][tuple(map(slice, *face))] = numbers[own]
    exits, outside = [], staged.points(starts[minima:total])
    for axis, at in grid.planes:
        if at in (block.start[axis] - 1, block.stop[axis]):
            there = np.flatnonzero(outside[axis] == at)
            index = [along[there] for along in outside]
            exits.append(((axis, at), index, numbers[minima:][there]))

    def in_image(places: Array) -> Array:
        """Convert places to those in the image; only pairs need them."""
        return np.zeros(places.shape, np.int64) if histogram.size else staged.in_image(places)

    edge_keys = edges.keys[left].astype(np.uint64) + np.uint64(shift)
    return Part(
        first,
        nodes.births[kept] + np.uint64(shift),
        in_image(nodes.places[kept]),
        exits,
        Edges(numbers[edges.nodes[left]], edge_keys, in_image(edges.places[left])),
        in_image(pairs),
    )
