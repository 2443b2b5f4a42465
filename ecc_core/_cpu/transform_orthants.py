"""Orthants of directions: which neighbours a point's cells span to, and lookup tables.

In a direction u the highest vertex of a cell lies furthest along every axis by the sign of u, so
in one orthant of directions every cell has one owner. The *coefficient* of a point is the sum of
(-1)**dimension over its cells; points where it is not zero are critical.

V-construction: a cell of p spans from p to p - s along some of the axes, s the signs of u. Its
2**k vertices must all be set. T-construction: by inclusion and exclusion over the cubes that are
*not* set, the coefficient of the cube corner q is (-1)**(d + 1) times that of the complement in
the V-construction, at the cube q - s/2, with cells that span along +s.

Orthants are numbered by the bits (slices, rows, columns) of negative signs. Images of fewer axes
have one slice, or one slice and one row, and `axes` is 0 there.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["ORTHANTS", "coefficient_table", "orthant_frame", "orthant_signs"]

ORTHANTS = 8


@njit(nogil=True, cache=True, error_model="numpy")
def orthant_signs(orthant: Any) -> Any:
    """Signs of the directions along (slices, rows, columns)."""
    return 1 - ((orthant >> 1) & 2), 1 - (orthant & 2), 1 - ((orthant << 1) & 2)


@njit(nogil=True, cache=True, error_model="numpy")
def orthant_frame(orthant: Any, axes: Any, closed: Any) -> Any:
    """Steps to the neighbours that cells span to, and the padded index of the first position.

    `closed` is 1 for the T-construction, whose steps are those on the complement.
    """
    signs = orthant_signs(orthant)
    toward = 2 * closed - 1
    steps = (
        toward * signs[0] * axes[0],
        toward * signs[1] * axes[1],
        toward * signs[2] * axes[2],
    )
    # The cube that stands for a corner lies before it along s, the first one in the padding.
    shifts = (
        axes[0] * (1 - closed * (signs[0] > 0)),
        axes[1] * (1 - closed * (signs[1] > 0)),
        axes[2] * (1 - closed * (signs[2] > 0)),
    )
    return steps, shifts


@lru_cache(maxsize=6)
def coefficient_table(ndim: int, closed: bool) -> NDArray[np.int64]:
    """Coefficients by (orthant, pattern) of the owner in a window of 2 points along each axis.

    Bit ``4 * slice + 2 * row + column`` of the pattern tells whether that point of the window is
    set; orthants with a negative sign along an axis that the image does not have stay empty. The
    owner is the point of the window furthest along s (V) or its centre (T). The cells are
    counted one by one; this is the definition that the planes of the mask kernel speed up.
    """
    present = (0,) * (3 - ndim) + (1,) * ndim
    patterns = np.arange(2 ** (2**ndim))
    table = np.zeros((ORTHANTS, patterns.size), dtype=np.int64)
    for orthant in range(2**ndim):
        far = [p * (1 - (orthant >> i & 1)) for p, i in zip(present, (2, 1, 0), strict=True)]
        for spans in itertools.product(*((0, 1) if p else (0,) for p in present)):
            sides = []
            for side, span, p in zip(far, spans, present, strict=True):
                both = bool(p) and bool(span) != closed
                one = p - side if closed else side
                sides.append((0, 1) if both else (one,))
            bits = [4 * z + 2 * y + x for z, y, x in itertools.product(*sides)]
            window = sum(1 << bit for bit in bits)
            inside = (patterns & window) != 0 if closed else (patterns & window) == window
            table[orthant] += (-1) ** sum(spans) * inside
    table.flags.writeable = False
    return table
