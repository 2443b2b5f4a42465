"""Grow the forests of blocks, one block after another in each thread."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti import basins
from ecc_core._backends.cpu.betti.forest import Forest, Part
from ecc_core._backends.cpu.betti.glue import list_exits, write_surface
from ecc_core._backends.cpu.betti.links import LINKS, MOST
from ecc_core._backends.cpu.betti.order import stable_order
from ecc_core._backends.cpu.betti.scan import mark_halo, scan_links
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.sources import Block, Source, scratch
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]

SPARE = 64  # keys behind a block that vectors read but do not use
NOWHERE = (False, False, False), (False, False, False)
SORTED_BINS = 1 << 16  # up to which edges are sorted by counting


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
        self._planes = np.zeros(2 * MOST, np.uint64)
        self._rows_around = np.zeros((2, 9), np.uint64)

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
            self._rows_around,
            self._planes,
            places,
            forks,
            links,
        )
        mark_halo(labels, layout, *frame_ends)
        paths = labels, np.array([0, *ends], np.int64)
        edges = take("edges", 3 * room, np.int32).reshape(-1, 3)
        nodes, count = basins.list_edges(
            *paths, offsets, forks, links, count, places, minima, edges
        )
        faces = grid.faces(staged.block, staged.steps)
        rim = take("rim", int(np.prod(faces[:, 3:5], axis=1).sum()), np.int32)
        nodes = basins.label_faces(*paths, faces, places, nodes, rim)
        trees = (
            places,
            take("births", nodes, keys.dtype),
            take("opens", nodes, keys.dtype),
            take("closed", nodes, np.bool_),
            take("tree", nodes, np.int32),
            take("merged", nodes, np.int32),
        )
        basins.make_trees(keys, minima, nodes, frame, faces, rim, *trees, histogram)
        order = self._order(keys, edges[:count], histogram.size)
        left = take("left", count, np.int32)
        pairs = take("pairs", 2 * nodes * self.paired, np.int32).reshape(-1, 2)
        joined, lives = basins.join_basins(
            keys, edges, order, count, *trees, histogram, left, pairs
        )
        numbers, roots = take("numbers", nodes, np.int32), take("roots", nodes, np.int32)
        kept = roots[: basins.number_nodes(trees[-1], nodes, numbers, roots)]
        first = forest.reserve(kept.size)
        numbers += first
        exits = np.empty((nodes - minima, 2), np.int64)
        shape = self.field.source.shape
        sides = grid.sides(staged.block)
        list_exits(places, minima, nodes, layout, sides, staged.block.start, shape, numbers, exits)
        write_surface(faces, rim, numbers, forest.surface)
        left = edges[left[:joined]]
        return Part(
            first,
            trees[1][kept].astype(np.uint64) + np.uint64(shift),
            self._globally(places[kept], staged),
            exits,
            numbers[left[:, 1:]],
            keys[left[:, 0]].astype(np.uint64) + np.uint64(shift),
            self._globally(left[:, 0], staged),
            self._globally(pairs[:lives], staged),
        )

    def _order(self, keys: Array, edges: Array, bins: int) -> Array:
        """Return the order of the edges by key."""
        if not 0 < bins <= SORTED_BINS:
            return stable_order(keys[edges[:, 0]]).astype(np.int32)
        order = scratch.take("order", len(edges), np.int32)
        basins.sort_edges(keys, edges, len(edges), scratch.take("starts", bins, np.int64), order)
        return order

    def _globally(self, places: Array, staged: Staged) -> Array:
        """Convert places in the block to places in the image in C order; the frame is at -1.

        They are 0 where there are histograms: only pairs need them.
        """
        if not self.paired:
            return np.zeros(places.shape, np.int64)
        slice_step, row_step = staged.steps[:2]
        wide = places.astype(np.int64)
        z, rest = np.divmod(wide, slice_step) if slice_step else (np.ones_like(wide), wide)
        y, x = np.divmod(rest, row_step)
        _, rows, columns = self.field.source.shape
        first = staged.block.start
        raster = ((z + first[0] - 1) * rows + y + first[1] - 1) * columns + x + first[2] - 1
        return np.where(wide < 0, -1, raster)


class Staged:
    """The layout of a staged block: contiguous, with one point of halo on each side.

    Attributes
    ----------
    layout : (slices, rows, columns, step of slices, step of rows)
        In 2-D there is no halo of slices, and their step is 0.
    steps : (step of slices, of rows, 1)
    size : int
        Staged points.
    halo : Block
        The part of the image that is read: the block and the halo within the image.
    at : int
        Where its first point is staged.
    """

    def __init__(self, block: Block, field: Field) -> None:
        shape = field.source.shape
        self.block = block
        slices, rows, columns = (b - a for a, b in zip(block.start, block.stop, strict=True))
        plane = (rows + 2) * (columns + 2)
        self.steps = (plane if field.ndim == 3 else 0, columns + 2, 1)
        self.size = (slices + 2) * plane if field.ndim == 3 else plane
        self.layout = (slices, rows, columns, *self.steps[:2])
        z, y, x = (max(a - 1, 0) for a in block.start)
        z_end, y_end, x_end = (min(b + 1, n) for b, n in zip(block.stop, shape, strict=True))
        if field.ndim < 3:
            z, z_end = block.start[0], block.stop[0]
        self.halo = Block((z, y, x), (z_end, y_end, x_end))
        moved = (1 - a + b for a, b in zip(block.start, self.halo.start, strict=True))
        self.at = sum(step * gap for step, gap in zip(self.steps, moved, strict=True))
