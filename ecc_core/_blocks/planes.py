"""What a block leaves behind for its neighbours, and the boxes that its cells to them lie in.

Let F be the curve of a box of the image on its own. Sublevel sets of boxes intersect in those of
their common points (V) or closed cubes (T), and the Euler characteristic is additive, so along an
axis that is cut at b

    F[a, c) = F[a, b) + F[b, c) + F[b-1, b+1) - F[b-1, b) - F[b, b+1).

A block [a, b) owns the cells whose lowest corner is its own (V), or the doubled coordinates 2a+1 to
2b, and 0 too when it is the first (T). Along one axis its share is E, for several the product:

    V:  E = F[a, b+1) - F[b, b+1) = F[a, b) + H,    H = F[b-1, b+1) - F[b-1, b) - F[b, b+1)
    T:  E = F[a, b+1) - F[a, a+1) = F[a, b) + H,    H = F[b-1, b+1) - F[b-1, b) - F[a, a+1)

The terms with b are left out of the last block, and T's F[a, a+1) of the first. In the product

    E E E = F F F + H E E + F H E + F F H

all but the first, the curve of the block itself, need planes only: its own outermost ones, and
the first ones of its later neighbours.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Array",
    "Box",
    "Emitted",
    "Met",
    "Place",
    "Term",
    "crossing_terms",
    "meeting_terms",
    "neighbours",
    "outermost",
    "place_of",
    "plane_of",
]

Array = NDArray[Any]
Box = tuple[Array, ...]
"""The image in a box, (batch, *spatial), followed by arrays of the same shape such as a mask."""

Term = tuple[int, Box]
"""A box and the sign of its curve in a sum."""


class Place(NamedTuple):
    """For each axis, whether the block has an earlier and a later neighbour."""

    before: tuple[int, ...]
    after: tuple[int, ...]


def place_of(index: Sequence[int], counts: Sequence[int]) -> Place:
    """Return the place of a block, given its index and the number of blocks along each axis."""
    pairs = list(zip(index, counts, strict=True))
    return Place(tuple(int(i > 0) for i, _ in pairs), tuple(int(i + 1 < n) for i, n in pairs))


def neighbours(index: Sequence[int], counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Return the indices of a block and all its later neighbours in C order."""
    steps = (range(i, min(i + 2, n)) for i, n in zip(index, counts, strict=True))
    return itertools.product(*steps)


class Emitted(NamedTuple):
    """What is kept of a block after it has been processed.

    Attributes
    ----------
    batch : tuple of int
        Lengths of the batch axes.
    own : int64 array
        Curve or table of the block on its own.
    first, last : tuple of Box
        For each spatial axis the block's first and last plane, of thickness 1.
    """

    batch: tuple[int, ...]
    own: NDArray[np.int64]
    first: tuple[Box, ...]
    last: tuple[Box, ...]


def outermost(box: Box, at: slice) -> tuple[Box, ...]:
    """Return copies of the first or the last plane along each axis."""
    axes = range(box[0].ndim - 1)
    return tuple(tuple(plane_of(array, axis, at).copy() for array in box) for axis in axes)


def plane_of(array: Array, axis: int, at: slice | int) -> Array:
    """Return a part of a box along a spatial axis."""
    plane: Array = array[(slice(None),) * (1 + axis) + (at,)]
    return plane


class Met(NamedTuple):
    """A block that has been combined with its neighbours in its own layer and in the previous one.

    Attributes
    ----------
    batch : tuple of int
    own : int64 array
        Sum of its own curve or table and the terms between it and these neighbours.
    last : tuple of Box
        Its last plane along the first axis, which the next layer needs.
    """

    batch: tuple[int, ...]
    own: NDArray[np.int64]
    last: tuple[Box, ...]


def meeting_terms(
    blocks: Sequence[Emitted], before: Sequence[Met], after: tuple[int, ...]
) -> list[Term]:
    """Return the terms between a block and its own layer, and between this and the previous one.

    `blocks` are the block and its later neighbours of the same layer, `before` those of the layer
    before, if there is one. Added up over all blocks they are the terms of all shares, and nothing
    but one plane of each block waits for the next layer.
    """
    within = Place((0,) * len(after), (0, *after[1:]))
    terms = crossing_terms(blocks, within, 1)
    if before:
        across = Place(within.before, (1, *after[1:]))
        terms += crossing_terms([*before, *blocks], across, 1, axes=(0,))
    return terms


def crossing_terms(
    blocks: Sequence[Emitted | Met],
    place: Place,
    connectivity: int,
    axes: Sequence[int] | None = None,
) -> list[Term]:
    """Return the terms that contain H, which are all but the block's own curve.

    `blocks` are the block and all its later neighbours, the last axis running fastest. The shares
    that V would have add up to the curve of T too.
    """
    offsets = itertools.product(*(range(1 + after) for after in place.after))
    near = dict(zip(offsets, blocks, strict=True))
    # A block's points up to b include the plane that E takes off again: its last (V) or first (T).
    taken, end = (place.after, -1) if connectivity == 1 else (place.before, 0)
    terms: list[Term] = []
    for axis in range(len(place.after)) if axes is None else axes:
        crossing: list[Term] = []
        if place.after[axis]:
            own = _layer(near, axis, place.after, 0, "last")
            following = _layer(near, axis, place.after, 1, "first")
            joined = tuple(map(_stacked, own, following))
            crossing += [(1, joined), (-1, own)]
            if connectivity == 1:
                crossing.append((-1, following))
        if connectivity > 1 and place.before[axis]:
            crossing.append((-1, _layer(near, axis, place.after, 0, "first")))
        cut = [other for other in range(axis + 1, len(taken)) if taken[other]]
        terms += itertools.chain.from_iterable(_without_planes(t, cut, end) for t in crossing)
    return terms


def _stacked(lower: Array, upper: Array) -> Array:
    return np.concatenate([lower, upper], axis=1)


def _layer(
    near: dict[tuple[int, ...], Emitted | Met],
    axis: int,
    after: tuple[int, ...],
    step: int,
    side: Literal["first", "last"],
) -> Box:
    """A plane across `axis`, of thickness 1 along the first spatial axis.

    It is the first or last of the block that is `step` further along `axis`. Along earlier axes it
    has a block's own extent, along later ones one point more.
    """
    ndim = len(after)
    steps = [range(1 + (after[along] if along > axis else 0)) for along in range(ndim)]
    steps[axis] = range(step, step + 1)
    pieces = {}
    for place in itertools.product(*steps):
        box = getattr(near[place], side)[axis]
        for other in range(axis + 1, ndim):
            if place[other]:
                box = tuple(plane_of(array, other, slice(0, 1)) for array in box)
        pieces[place] = box
    # the other axes keep their order, so that later ones are where they were
    return tuple(_thickness_first(array, axis) for array in _joined(pieces))


def _joined(pieces: dict[tuple[int, ...], Box]) -> Box:
    """Return the pieces of a grid, concatenated along each of its axes."""
    for along in reversed(range(len(next(iter(pieces))))):
        rows: dict[tuple[int, ...], list[Box]] = {}
        for place, box in pieces.items():
            rows.setdefault(place[:along], []).append(box)
        pieces = {
            place: boxes[0]
            if len(boxes) == 1
            else tuple(np.concatenate(parts, axis=1 + along) for parts in zip(*boxes, strict=True))
            for place, boxes in rows.items()
        }
    return pieces[()]


def _thickness_first(plane: Array, axis: int) -> Array:
    return np.moveaxis(plane, 1 + axis, 1)


def _without_planes(term: Term, cut: list[int], end: int) -> Iterator[Term]:
    """Return a term multiplied by (1 - the plane at one end) along each of the given axes."""
    for count in range(len(cut) + 1):
        for faces in itertools.combinations(cut, count):
            sign, box = term
            for face in reversed(faces):
                box = tuple(plane_of(array, face, end) for array in box)
            yield (-1) ** count * sign, box
