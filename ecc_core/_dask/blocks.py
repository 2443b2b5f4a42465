"""What the tasks compute: the curve of a block, and what its borders to later blocks add.

Let F be the curve of a box of the image on its own. Sublevel sets of boxes intersect in those of
their common points (V) or closed cubes (T), and the Euler characteristic is additive, so along an
axis that is cut at b

    F[a, c) = F[a, b) + F[b, c) + G,    G = F[b-1, b+1) - F[b-1, b) - F[b, b+1).

For several axes the terms multiply. A block of own points B adds G at its high ends, which takes
the first plane of its neighbours and its own last one, but not their other points:

    product over the axes of (F_B + G) = F_B F_B F_B + G (F_B + G) (F_B + G) + F_B G (F_B + G)
                                         + F_B F_B G,    F_B + G = F[a, b+1) - F[b, b+1).

The sum over all blocks is the curve of the image. One block's share is the Euler characteristic of
the sets in ``[a, b]``, less that of the sets in its high faces ``b``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core import _dispatch

__all__ = ["Emitted", "Settings", "add", "differences", "emit", "share_of_block", "total"]

Array = NDArray[Any]
Values = NDArray[np.int64]
Box = tuple[Array, ...]
"""Points of a box, (batch, *spatial), and the mask of the same shape if there is one."""


class Settings(NamedTuple):
    """How curves are computed; arguments of a backend's ``curve``."""

    thresholds: Array
    construction: Literal["V", "T"]
    superlevel: bool
    nan: str


class Emitted(NamedTuple):
    """What a block leaves behind, so that it need not stay in memory.

    Attributes
    ----------
    batch : tuple of int
        Lengths of the batch axes.
    curve : (images, n) int64 array
        The curve of the block on its own.
    first, last : tuple of Box
        For each spatial axis the block's first and last plane, of thickness 1.
    """

    batch: tuple[int, ...]
    curve: Values
    first: tuple[Box, ...]
    last: tuple[Box, ...]


def curve_of(box: Box, settings: Settings) -> Values:
    """Curve of each image of a box on its own, (images, n)."""
    image, mask = box if len(box) == 2 else (box[0], None)
    if image.ndim == 1:
        image, mask = image[:, None], None if mask is None else mask[:, None]
    home = _dispatch.Home(image)
    # A scheduler runs several tasks at once: each of them is one thread.
    threads = {} if home.on_device else {"workers": 1}
    values: Values = home.backend().curve(
        image,
        settings.thresholds,
        construction=settings.construction,
        superlevel=settings.superlevel,
        mask=mask,
        nan=settings.nan,
        tilt=None,
        **threads,
    )
    return values


def emit(image: Array, *mask: Array, settings: Settings, ndim: int) -> Emitted:
    """The curve of a block and copies of its outermost planes."""
    batch = image.shape[: image.ndim - ndim]
    spatial = image.shape[image.ndim - ndim :]
    images = int(np.prod(batch))
    box = tuple(array.reshape((images, *spatial)) for array in (image, *mask))
    return Emitted(
        batch,
        curve_of(box, settings),
        *(
            tuple(tuple(_plane(array, axis, at).copy() for array in box) for axis in range(ndim))
            for at in (slice(0, 1), slice(-1, None))
        ),
    )


def _plane(array: Array, axis: int, at: slice | int) -> Array:
    """Part of a box along a spatial axis."""
    plane: Array = array[(slice(None),) * (1 + axis) + (at,)]
    return plane


def share_of_block(blocks: Sequence[Emitted], ends: tuple[int, ...], settings: Settings) -> Values:
    """What a block adds to the curve of the image, of shape (*batch, 1, n).

    `ends` has 1 for each axis along which the block has a later neighbour, else 0. `blocks` are the
    block and all its later neighbours, the last axis running fastest.
    """
    offsets = itertools.product(*(range(1 + end) for end in ends))
    neighbours = dict(zip(offsets, blocks, strict=True))
    own = blocks[0]
    values = own.curve.copy()
    for axis in range(len(ends)):
        if ends[axis]:
            slab = _slab(neighbours, axis, ends)
            for sign, box in _less_high_faces(slab, axis, ends):
                values += sign * _crossing(box, axis, settings)
    return values.reshape((*own.batch, 1, values.shape[-1]))


def _slab(neighbours: dict[tuple[int, ...], Emitted], axis: int, ends: tuple[int, ...]) -> Box:
    """The two planes beside a cut: a block's own extent before the axis, one more after it."""
    ndim = len(ends)
    parts = len(neighbours[(0,) * ndim].first[axis])

    def join(place: tuple[int, ...], along: int, part: int) -> Array:
        if along == ndim:
            emitted = neighbours[place]
            plane = (emitted.first if place[axis] else emitted.last)[axis][part]
            for other in range(axis + 1, ndim):
                if place[other]:
                    plane = _plane(plane, other, slice(0, 1))
            return plane
        pieces = [
            join((*place, step), along + 1, part)
            for step in range(1 + (ends[along] if along >= axis else 0))
        ]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1 + along)

    return tuple(join((), 0, part) for part in range(parts))


def _less_high_faces(slab: Box, axis: int, ends: tuple[int, ...]) -> list[tuple[int, Box]]:
    """The terms of F[a, b+1) - F[b, b+1) for all axes after `axis`, those of faces without them."""
    later = [other for other in range(axis + 1, len(ends)) if ends[other]]
    terms = []
    for count in range(len(later) + 1):
        for faces in itertools.combinations(later, count):
            box = slab
            for face in reversed(faces):
                box = tuple(_plane(array, face, -1) for array in box)
            terms.append(((-1) ** count, box))
    return terms


def _crossing(box: Box, axis: int, settings: Settings) -> Values:
    """The term G of a slab of two planes."""
    planes = tuple(np.concatenate([_plane(a, axis, 0), _plane(a, axis, 1)]) for a in box)
    apart = curve_of(planes, settings)
    images = len(box[0])
    return curve_of(box, settings) - apart[:images] - apart[images:]


def add(shares: Sequence[Values]) -> Values:
    """Sum of shares of shape (*batch, 1, n)."""
    summed: Values = np.sum(np.stack(shares), axis=0)
    return summed


def total(shares: Sequence[Values]) -> Values:
    """Sum of shares, of shape (*batch, n)."""
    return add(shares)[..., 0, :]


def differences(curves: Values, *, superlevel: bool) -> Values:
    """Signed histograms: what enters at each threshold, in the order of entry."""
    if superlevel:
        return curves - np.pad(curves[..., 1:], [(0, 0)] * (curves.ndim - 1) + [(0, 1)])
    return np.diff(curves, axis=-1, prepend=0)
