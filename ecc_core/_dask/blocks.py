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
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core import _dispatch

__all__ = ["Emitted", "Settings", "add", "differences", "emit", "share_of_block", "total"]

Array = NDArray[Any]
Values = NDArray[np.int64]
Box = tuple[Array, ...]
"""Points of a box, (batch, *spatial), and the mask of the same shape if there is one."""

Term = tuple[int, Box]
"""A box and the sign of its curve in a sum."""


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
    terms = [
        term
        for axis in range(len(ends))
        if ends[axis]
        for box in [_slab(neighbours, axis, ends)]
        for term in _crossing(box, ends[axis + 1 :])
    ]
    for batch in _batches(terms):
        values += _signed_sum(batch, settings)
    return values.reshape((*own.batch, 1, values.shape[-1]))


def _slab(neighbours: dict[tuple[int, ...], Emitted], axis: int, ends: tuple[int, ...]) -> Box:
    """The two planes beside a cut: a block's own extent before the axis, one more after it.

    Of shape (images, 2, *others).
    """
    ndim = len(ends)

    def join(place: tuple[int, ...], part: int) -> Array:
        along = len(place)
        if along == ndim:
            emitted = neighbours[place]
            plane = (emitted.first if place[axis] else emitted.last)[axis][part]
            for other in range(axis + 1, ndim):
                if place[other]:
                    plane = _plane(plane, other, slice(0, 1))
            return plane
        steps = range(1 + (ends[along] if along >= axis else 0))
        pieces = [join((*place, step), part) for step in steps]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1 + along)

    parts = len(neighbours[(0,) * ndim].first[axis])
    return tuple(np.moveaxis(join((), part), 1 + axis, 1) for part in range(parts))


def _crossing(slab: Box, ends: tuple[int, ...]) -> Iterator[Term]:
    """The terms of G (F[a, b+1) - F[b, b+1)) ..., for a slab and the ends of its last axes."""
    skipped = slab[0].ndim - 1 - len(ends)
    cut = [skipped + axis for axis, end in enumerate(ends) if end]
    for count in range(len(cut) + 1):
        for faces in itertools.combinations(cut, count):
            box = slab
            for face in reversed(faces):
                box = tuple(_plane(array, face, -1) for array in box)
            sign = (-1) ** count
            yield sign, box
            for plane in (slice(0, 1), slice(1, 2)):
                yield -sign, tuple(array[:, plane] for array in box)


def _batches(terms: list[Term]) -> list[list[Term]]:
    """Terms to be computed at once: slabs, planes, and all that is smaller."""
    batches: dict[int, list[Term]] = {}
    for sign, box in terms:
        thickness, *others = box[0].shape[1:]
        if len(others) < 2:
            box = tuple(array.reshape((*array.shape[:2], -1)) for array in box)
            batches.setdefault(0, []).append((sign, box))
        else:
            if thickness == 1:
                box = tuple(array[:, 0] for array in box)
            batches.setdefault(thickness, []).append((sign, box))
    return list(batches.values())


def _signed_sum(terms: list[Term], settings: Settings) -> Values:
    """Sum of the curves of boxes, computed as one batch of the largest shape, (images, n).

    A box keeps its curve when its last plane is repeated: the sets are stretched.
    """
    shapes = [box[0].shape for _, box in terms]
    images, *spatial = map(max, zip(*shapes, strict=True))
    parts = range(len(terms[0][1]))
    batch = [np.concatenate([_stretch(box[part], spatial) for _, box in terms]) for part in parts]
    curves = curve_of(tuple(batch), settings).reshape((len(terms), images, -1))
    signs = np.array([sign for sign, _ in terms])
    summed: Values = np.tensordot(signs, curves, axes=1)
    return summed


def _stretch(array: Array, shape: list[int]) -> Array:
    """An array whose last planes are repeated until it has the shape, (images, *shape)."""
    for axis, length in enumerate(shape):
        missing = length - array.shape[1 + axis]
        if missing:
            last = _plane(array, axis, slice(-1, None))
            array = np.concatenate([array, np.repeat(last, missing, axis=1 + axis)], axis=1 + axis)
    return array


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
