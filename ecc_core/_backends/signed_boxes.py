"""Boxes whose curves are added and taken off, so that no cell is missing or counted twice.

Let F be the curve of a box on its own. Sublevel sets of boxes intersect in those of their common
points or closed cubes, and the Euler characteristic is additive, so two boxes A and B that meet in
the planes p and q have together

    F(A + B) = F(A) + F(B) + F(p and q) - F(p) - F(q).

Shards, blocks and borders that are not closed are sums of this kind.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Box = tuple[Any, ...]
"""An image of shape (images, *spatial) and its mask, if there is one, as NumPy-like arrays."""

Term = tuple[int, Box]
"""A box and the sign of its curve in a sum."""


def meeting(before: Box, after: Box, axis: int) -> tuple[Term, Term, Term]:
    """Return what the curves of two boxes lack, given the planes in which they meet.

    `axis` is that of the arrays along which the boxes follow each other.
    """
    pairs = zip(before, after, strict=True)
    both = tuple(np.concatenate(pair, axis=axis) for pair in pairs)
    return (1, both), (-1, before), (-1, after)


def signed_sum(terms: Sequence[Term], compute: Callable[..., Any]) -> Any:
    """Return the sum of signs times values of boxes, (images, n), computed as one batch.

    Boxes have equally many axes. They are extended to the largest shape, which keeps their curves.
    """
    shapes = [box[0].shape for _, box in terms]
    images, *largest = map(max, zip(*shapes, strict=True))
    batch = []
    for same in zip(*[box for _, box in terms], strict=True):
        stretched = [stretch(part, largest) for part in same]
        batch.append(np.concatenate(stretched))
    values = compute(*batch).reshape((len(terms), images, -1))
    return sum(sign * part for (sign, _), part in zip(terms, values, strict=True))


def stretch(array: Any, shape: list[int]) -> Any:
    """Return an array (images, *spatial), extended to a shape by repeating its last planes.

    Its curve does not change, because sets are only stretched.
    """
    for axis, length in enumerate(shape, 1):
        missing = length - array.shape[axis]
        if missing:
            last = array[(slice(None),) * axis + (slice(-1, None),)]
            array = np.concatenate([array, np.repeat(last, missing, axis=axis)], axis=axis)
    return array
