"""Growths of boxes that touch, joined to that of the whole image.

An image is cut into boxes by halves, so that few boxes are kept at once, their arrays stay in the
cache, and the sides of what is joined are short.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import kind_of
from ecc_core._backends.cpu.betti.box_growth import (
    NOWHERE,
    SLICES,
    Ends,
    count_pairs,
    grown,
)
from ecc_core._backends.cpu.betti.growth import (
    LEAVE,
    REACH,
    Growth,
    Side,
    Values,
    first_changes,
    in_order,
    join_nodes,
)
from ecc_core._backends.cpu.betti.launch import laid_out, rank_plans
from ecc_core._backends.cpu.betti.meetings import meetings_of
from ecc_core._backends.cpu.betti.pieces import edges_across, joined_faces, pack, unpack
from ecc_core._backends.cpu.betti.winding import joined_around, wrapping_sides
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._partition import Index, Partition, Ranges
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]

# Lengths of boxes in points, for each number of axes. Of 256^3 voxels of noise 128 x 128 x 128 were
# 5 % faster, 64 x 64 x 64 1.1 to 1.25 times slower; of 2048^2 points 128 x 512 1.3 times.
BOXES = {1: (1 << 18,), 2: (256, 1024), 3: (96, 96, 128)}
# Points of a box for each key: each box has curves of all keys.
POINTS_A_KEY = 16
# A small image is cut into so many boxes for each worker, if these have at least so many points.
BOXES_A_WORKER = 2
LEAST_BOX_POINTS = 1 << 17
PARTS_A_WORKER = 8  # Each part is cut into boxes by the worker that takes it.


class _Image(NamedTuple):
    """An image of the filtration's axes, what is asked of it, and how it is cut into boxes."""

    values: Array
    mask: Array | None
    ends: Ends
    plan: Plan
    filtration: Filtration
    partition: Partition
    open_sides: tuple[Side, ...]
    """Sides beyond which the image continues."""

    @classmethod
    def cut(
        cls,
        values: Array,
        mask: Array | None,
        ends: Ends,
        plan: Plan,
        filtration: Filtration,
        workers: int,
        open_sides: tuple[Side, ...] = (),
    ) -> Self:
        """Cut an image into boxes for some workers; sides that touch each other are open."""
        lengths = _box_lengths(values.shape, int(plan.entered.max(initial=0)), workers)
        partition = Partition.evenly(values.shape, lengths)
        beyond = (*open_sides, *wrapping_sides(filtration))
        return cls(values, mask, ends, plan, filtration, partition, beyond)

    def growth(self, blocks: Ranges) -> Growth:
        """Return the growth of a box of blocks, which is halved until it is one block."""
        cut = self.partition.halves(blocks)
        if cut is None:
            return self._growth_of_block(tuple(first for first, _ in blocks))
        axis, low, high = cut
        return join_growths(self.growth(low), self.growth(high), axis, self.filtration)

    def _growth_of_block(self, index: Index) -> Growth:
        box = self.partition.box(index)
        mask = None if self.mask is None else self.mask[box]
        inlet, outlet = (None if end is None else end[box] for end in self.ends)
        lead = 3 - self.values.ndim
        open_sides = {(axis + lead, side) for axis, side in self.partition.open_sides(index)}
        open_sides.update(self.open_sides)
        field = laid_out(self.values[box], mask)
        return grown(field, self.plan, self.filtration, sorted(open_sides), (inlet, outlet))

    def joined(self, pair: tuple[Growth, Growth, int]) -> Growth:
        """Join two growths that touch across an axis."""
        return join_growths(*pair, self.filtration)


def _box_lengths(shape: Sequence[int], keys: int, workers: int) -> list[int]:
    """Return about how long the boxes of an image are along each axis."""
    usual = BOXES[len(shape)]
    points = math.prod(usual)
    if workers > 1:
        own = math.prod(shape) // (BOXES_A_WORKER * workers)
        points = min(points, max(own, LEAST_BOX_POINTS))
    points = max(points, POINTS_A_KEY * keys)
    scale = (points / math.prod(usual)) ** (1 / len(shape))
    left = float(points)
    lengths = []
    for length, usual_length in zip(shape[:-1], usual, strict=False):
        wanted = max(1, round(usual_length * scale))
        lengths.append(min(length, wanted))
        left /= lengths[-1]
    return [*lengths, max(1, round(left))]


def _whole_growth(image: _Image, workers: int) -> Growth:
    """Return the growth of an image, of which the workers take parts."""
    parts = [image.partition.whole]
    joins = []
    while workers > 1 and len(parts) < PARTS_A_WORKER * workers:
        cuts = [image.partition.halves(part) for part in parts]
        halves = [cut for cut in cuts if cut is not None]
        if len(halves) < len(parts):
            break
        joins.append([axis for axis, _, _ in halves])
        parts = []
        for _, low, high in halves:
            parts += [low, high]
    growths = _shared(parts, image.growth, workers)
    for axes in reversed(joins):
        pairs = zip(growths[::2], growths[1::2], axes, strict=True)
        growths = _shared(list(pairs), image.joined, workers)
    return growths[0]


def _shared(items: list[Any], work: Callable[[Any], Growth], workers: int) -> list[Growth]:
    """Return what is made of each item, in their order, by several workers."""
    found: dict[int, Growth] = {}

    def each(queue: Iterator[int]) -> None:
        for i in queue:
            found[i] = work(items[i])

    share(range(len(items)), each, workers)
    return [found[i] for i in range(len(items))]


def component_curves(
    image: Array,
    thresholds: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
    ends: Ends = SLICES,
) -> Values:
    """Return points, those of the largest component, and components that touch both ends of a pair.

    They are those of each image at sorted thresholds, (batch, 2 + pairs, n) int64.
    """
    count = image.shape[0]
    result = np.zeros((count, count_pairs(filtration.ndim, ends) + 2, thresholds.size), np.int64)
    if result.size == 0 or image.size == 0:
        return result
    plan = rank_plans(image.dtype, thresholds, filtration, masked=mask is not None)[-1]
    threads = worker_count(workers, image.size, plan.top + 1)
    alone = threads if count == 1 else 1

    def each(queue: Iterator[int]) -> None:
        for i in queue:
            own_mask = None if mask is None else mask[i]
            inlet, outlet = (None if end is None else end[i] for end in ends)
            own = _Image.cut(image[i], own_mask, (inlet, outlet), plan, filtration, alone)
            growth = _whole_growth(own, alone)
            found = growth.found
            if any(filtration.boundary.wraps):
                by_axis = all(end is None for end in ends)
                found = joined_around(growth, filtration, by_axis=by_axis)
            result[i] = found[:, plan.entered]

    share(range(count), each, 1 if count == 1 else threads)
    return result


def piece_of(
    image: Array,
    thresholds: Array,
    filtration: Filtration,
    open_sides: tuple[Side, ...],
    *,
    mask: Array | None = None,
    workers: int | None = None,
    ends: Ends = SLICES,
) -> Growth:
    """Return the growth of a box, beyond whose `open_sides`, (axis, side), the image continues."""
    plan = rank_plans(image.dtype, thresholds, filtration, masked=mask is not None)[-1]
    sides = tuple((axis + 3 - image.ndim, side) for axis, side in open_sides)
    threads = worker_count(workers, image.size, plan.top + 1)
    whole = _Image.cut(
        values=image,
        mask=mask,
        ends=ends,
        plan=plan,
        filtration=filtration,
        workers=threads,
        open_sides=sides,
    )
    return _whole_growth(whole, threads)


def join_pieces(
    low: Growth,
    high: Growth,
    axis: int,
    dtype: np.dtype[Any],
    thresholds: Array,
    filtration: Filtration,
    *,
    masked: bool,
) -> Growth:
    """Join the growths of two boxes that touch across an axis."""
    return join_growths(low, high, axis, filtration)


def join_growths(low: Growth, high: Growth, axis: int, filtration: Filtration) -> Growth:
    """Join the growths of two boxes that touch across an axis."""
    extent, (low, high) = _joined_extent(low, high, axis)
    axis += 3 - filtration.ndim
    count = low.nodes
    total = count + high.nodes
    moved = {side: np.where(ends < 0, ends, ends + count) for side, ends in high.ends.items()}
    touch = low.ends[axis, 1], low.faces[axis, 1], moved[axis, 0], high.faces[axis, 0]
    wide = kind_of(filtration, complement=False).connectivity > 1
    edges, entered = edges_across(*touch, wide)
    faces = joined_faces(low.faces, high.faces, axis)
    ends = joined_faces(low.ends, moved, axis)
    leaves = [first_changes(LEAVE, 0, ends[side], faces[side], total) for side in faces]
    found = np.zeros_like(low.found)
    last = found.shape[1] - 1
    meetings = meetings_of(entered, edges, last)
    lists = low.changes, high.changes, in_order(leaves, last)
    members = np.empty(0, np.int32)
    nodes, changes, numbers = join_nodes(total, members, meetings, lists, found, count)
    found[0] = low.found[0] + high.found[0]
    found[1] = np.maximum(found[1], np.maximum(low.found[1], high.found[1]))
    found[2:] += low.found[2:] + high.found[2:]
    numbered = {side: numbers[end] for side, end in ends.items()}
    return Growth(found, nodes, changes, extent, faces, numbered)


def _joined_extent(low: Growth, high: Growth, axis: int) -> tuple[Values, list[Growth]]:
    """Return the extent of two boxes, and their growths with ends that are those of both."""
    moved = high.extent.copy()
    moved[axis, :2] += np.where(moved[axis, :2] == NOWHERE, 0, low.extent[axis, 2])
    whole = low.extent.copy()
    whole[:, 0] = np.minimum(low.extent[:, 0], moved[:, 0])
    whole[:, 1] = np.maximum(low.extent[:, 1], moved[:, 1])
    whole[axis, 2] += high.extent[axis, 2]
    own = (low, low.extent), (high, moved)
    return whole, [_without_inner_ends(piece, extent, whole) for piece, extent in own]


def _without_inner_ends(piece: Growth, extent: Values, whole: Values) -> Growth:
    """Take back what was counted for slices that are the first or last of a box, not of both."""
    inner = extent[:, :2] != whole[:, :2]
    ends = np.argwhere(inner).tolist()
    bits = sum(1 << (2 * axis + end) for axis, end in ends)
    if not bits:
        return piece
    changes = piece.changes.copy()
    found = piece.found.copy()
    reaches = changes[:, 0] % 4 == REACH
    changes[reaches, 2] &= ~bits
    found[2:][inner.any(axis=1)] = 0
    return piece._replace(found=found, changes=changes[~reaches | (changes[:, 2] != 0)])


def numbers_of(
    piece: Growth,
    dtype: np.dtype[Any],
    thresholds: Array,
    filtration: Filtration,
    *,
    masked: bool,
) -> Values:
    """Return the curves of a growth without open sides, (d + 2, n)."""
    plan = rank_plans(dtype, thresholds, filtration, masked=masked)[-1]
    values: Values = piece.found[:, plan.entered]
    return values


def pack_piece(piece: Growth) -> Values:
    """Return a growth as one array."""
    sides = sorted(piece.faces)
    head = [piece.found, np.array([piece.nodes]), piece.changes, piece.extent]
    at_sides = [part[side] for part in (piece.faces, piece.ends) for side in sides]
    return pack(sides, [*head, *at_sides])


def unpack_piece(values: Values) -> Growth:
    """Return the growth that was packed into an array."""
    sides, (found, nodes, changes, extent, *arrays) = unpack(values)
    faces, ends = (
        dict(zip(sides, part, strict=True)) for part in (arrays[: len(sides)], arrays[len(sides) :])
    )
    return Growth(found, int(nodes[0]), changes, extent, faces, ends)
