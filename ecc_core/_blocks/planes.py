"""The planes of a block that its neighbours need, and the boxes of the cells between them.

Let F be the curve of a box of the image on its own. Along an axis that is cut at b, two boxes that
meet have together (:mod:`ecc_core._backends.signed_boxes`)

    F[a, c) = F[a, b) + F[b, c) + F[b-1, b+1) - F[b-1, b) - F[b, b+1).

A block [a, b) owns the cells whose lowest corner is its own (V), or the doubled coordinates 2a+1 to
2b, and 0 too when it is the first (T). Along one axis its share is E, for several the product:

    V:  E = F[a, b+1) - F[b, b+1) = F[a, b) + H,    H = F[b-1, b+1) - F[b-1, b) - F[b, b+1)
    T:  E = F[a, b+1) - F[a, a+1) = F[a, b) + H,    H = F[b-1, b+1) - F[b-1, b) - F[a, a+1)

The terms with b are left out for the last block, and T's F[a, a+1) for the first. The planes that E
and H take off, F[b, b+1) or F[a, a+1), are called the faces of the block. In the product

    E E E = F F F + H E E + F H E + F F H

all but the first, the curve of the block itself, need planes only: its own outermost ones, and
the first ones of its later neighbours.
"""

import itertools
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.signed_boxes import Box, Term, meeting
from ecc_core._partition import Place

Array = NDArray[Any]


class Face(NamedTuple):
    """A plane at an end of a box, whose curve is added to that of the box."""

    times: int  # How often the curve is added; -1 to subtract it.
    end: int  # 0 for the first plane, -1 for the last one.
    thickness: int = 1  # 2 if the plane is repeated.


def faces_of(place: Place, connectivity: int) -> tuple[list[Face], ...]:
    """Return the faces of a block along each axis, which E subtracts."""
    last = Face(-1, -1)
    first = Face(-1, 0)
    if connectivity == 1:
        return tuple([last] if after else [] for after in place.after)
    return tuple([first] if before else [] for before in place.before)


class BlockSums(NamedTuple):
    """The values and the outer planes of a block, which are kept after it has been processed."""

    batch: tuple[int, ...]  # Lengths of the batch axes.
    own: NDArray[np.int64]  # Curve or table of the block on its own.
    first: tuple[Box, ...]
    """The block's first plane across each spatial axis, empty if the image is not cut along it."""
    last: tuple[Box, ...]
    """The block's last plane across each spatial axis, empty if the image is not cut along it."""

    @property
    def home(self) -> Array:
        """An array on the device of the block: a plane, or the values if there is none."""
        for box in self.first:
            if box:
                first: Array = box[0]
                return first
        return self.own


def towards(offset: Sequence[int], sums: BlockSums) -> BlockSums:
    """Return a neighbour with only those planes that the block `offset` before it needs.

    A layer across an axis has the block's own extent along earlier axes, so it has no points of
    neighbours that lie further along one of these.
    """
    axis = list(offset).index(1)
    return sums._replace(first=sums.first[: axis + 1], last=sums.last[:axis])


def outermost(box: Box, at: slice, crossed: Sequence[bool]) -> tuple[Box, ...]:
    """Return copies of the first or the last plane across each axis along which blocks meet."""
    planes: list[Box] = []
    for axis, meets in enumerate(crossed):
        if meets:
            across = [plane_of(array, axis, at).copy() for array in box]
            planes.append(tuple(across))
        else:
            planes.append(())
    return tuple(planes)


def offsets_of(after: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the steps from a block to itself and its later neighbours, the last axis fastest."""
    steps = [range(1 + step) for step in after]
    return list(itertools.product(*steps))


def plane_of(array: Array, axis: int, at: slice) -> Array:
    """Return a part of a box along a spatial axis."""
    return array[(slice(None),) * (1 + axis) + (at,)]


def flattened(box: Box) -> Box:
    """Return a box without axes of length 1 and with the shortest axis first.

    Its Euler characteristic is the same. At least two axes are left.
    """
    images, *lengths = box[0].shape
    long = [length for length in lengths if length != 1]
    shape = [1] * (2 - len(long)) + long
    shortest = 1 + shape.index(min(shape))
    reshaped = [array.reshape((images, *shape)) for array in box]
    return tuple(np.moveaxis(array, shortest, 1) for array in reshaped)


def crossing_terms(
    blocks: Sequence[BlockSums], after: Sequence[int], faces: Sequence[Sequence[Face]]
) -> list[Term]:
    """Return the terms that contain H: all but the block's own curve.

    `blocks` are the block and all its later neighbours, the last axis running fastest. `after` says
    along which axes there are neighbours, and `faces` are those of the block along each axis. A
    face at the end is the first plane of a neighbour. Boxes keep all axes of the image.
    """
    near = dict(zip(offsets_of(after), blocks, strict=True))
    terms: list[Term] = []
    for axis in range(len(after)):
        crossing: list[Term] = []
        if after[axis]:
            own = _layer(near, axis, after=after, step=0, side="last")
            following = _layer(near, axis, after=after, step=1, side="first")
            both, taken_off, _ = meeting(own, following, 1 + axis)
            crossing += [both, taken_off]  # The third term is a face of one of the blocks.
        for face in faces[axis]:
            plane = following if face.end else _layer(near, axis, after=after, step=0, side="first")
            crossing.append((face.times, _thickened(plane, axis, face.thickness)))
        for later in range(axis + 1, len(after)):
            crossing += [_face(term, later, face) for term in crossing for face in faces[later]]
        terms += crossing
    return terms


def _face(term: Term, axis: int, face: Face) -> Term:
    """Return the term of a face of a term's box."""
    sign, box = term
    at = slice(-1, None) if face.end else slice(0, 1)
    plane = tuple(plane_of(array, axis, at) for array in box)
    return sign * face.times, _thickened(plane, axis, face.thickness)


def _thickened(plane: Box, axis: int, thickness: int) -> Box:
    if thickness == 1:
        return plane
    return tuple(np.repeat(array, thickness, axis=1 + axis) for array in plane)


def _layer(
    near: dict[tuple[int, ...], BlockSums],
    axis: int,
    after: Sequence[int],
    step: int,
    side: Literal["first", "last"],
) -> Box:
    """Return the first or last plane across `axis` of the block that is `step` further along it.

    Along earlier axes it has the block's own extent, along later ones also the first point of the
    next block.
    """
    ndim = len(after)
    steps = [range(1)] * ndim
    steps[axis] = range(step, step + 1)
    for later in range(axis + 1, ndim):
        steps[later] = range(1 + after[later])
    pieces = {}
    for place in itertools.product(*steps):
        box = getattr(near[place], side)[axis]
        for other in range(axis + 1, ndim):
            if place[other]:
                first = slice(0, 1)
                box = tuple(plane_of(array, other, first) for array in box)
        pieces[place] = box
    return _joined(pieces)


def _joined(pieces: dict[tuple[int, ...], Box]) -> Box:
    """Return the pieces of a grid, concatenated along each of its axes."""
    ndim = len(next(iter(pieces)))
    for axis in reversed(range(ndim)):
        rows: dict[tuple[int, ...], list[Box]] = {}
        for place, box in pieces.items():
            rows.setdefault(place[:axis], []).append(box)
        pieces = {place: _concatenated(boxes, axis) for place, boxes in rows.items()}
    return pieces[()]


def _concatenated(boxes: Sequence[Box], axis: int) -> Box:
    """Concatenate boxes along a spatial axis."""
    if len(boxes) == 1:
        return boxes[0]
    return tuple(np.concatenate(parts, axis=1 + axis) for parts in zip(*boxes, strict=True))
