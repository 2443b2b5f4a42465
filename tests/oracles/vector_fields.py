"""The operations of ``minkowski/vector_fields.py`` again, as plain loops over single points.

As in :mod:`oracles.vector_operations`, each function takes the arguments of its namesake there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from oracles.vector_operations import _along_3d, _bit, _set, _signed

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.minkowski.vector_fields import CARRIES, FIELDS, PLANES, WIDTHS
from ecc_core._backends.cpu.scans.vector_coefficients import ROWS
from ecc_core._backends.cpu.scans.vector_planes import LANES

__all__ = ["add_fields", "expand_fields", "fields_2d", "fields_3d"]

FIELD_WIDTHS = tuple(WIDTHS.get(field, 0) for field in range(FIELDS))
FIRST_PLANES = tuple(sum(FIELD_WIDTHS[:field]) for field in range(FIELDS))


@kernel()
def _write(field: Any, numbers: Any, out: Any, row: Any) -> None:
    """The planes of one field of 64 points, in two's complement."""
    for x in range(LANES):
        for i in range(FIELD_WIDTHS[field]):
            bit = (numbers[x] >> i) & 1
            _set(out, row + ROWS * (FIRST_PLANES[field] + i), x, bit)
            if bit:
                _set(out, row + ROWS * PLANES, x, 1)


@kernel()
def _add_x(
    along: Any, across: Any, wins: Any, carry: Any, at: Any, size: Any, edge: Any, numbers: Any
) -> None:
    """The coefficients along x and the axes of `along`, which has `size` planes."""
    incoming = along[0] if edge else _signed(carry, at, size, LANES - 1)
    for x in range(LANES):
        lost = 0 if wins[x] else across[x]
        numbers[x] = along[x] - (across[x] if wins[x] else 0) - incoming
        for i in range(size):
            _set(carry, at + ROWS * i, x, (lost >> i) & 1)
        incoming = lost


@kernel()
def _in_plane(
    planes: Any, row: Any, stride: Any, carry: Any, at: Any, edge: Any, out: Any, i: Any
) -> None:
    """The fields x, y and xy of one row."""
    ones, numbers = np.ones(LANES, np.int64), np.empty(LANES, np.int64)
    wins, along, across = np.zeros((3, LANES), np.int64)
    for x in range(LANES):
        wins[x] = _bit(planes, row + 2 * stride, x)
        along[x] = _bit(planes, row - 1, x) - _bit(planes, row, x)
        pairs = row + stride
        across[x] = _bit(planes, pairs - 1, x) - _bit(planes, pairs, x)
    _write(2, along, out, i)
    _add_x(ones, ones, wins, carry, at, 2, edge, numbers)
    _write(1, numbers, out, i)
    _add_x(along, across, wins, carry, at + 2 * ROWS, 2, edge, numbers)
    _write(3, numbers, out, i)


@kernel()
def fields_2d(planes: Any, row: Any, stride: Any, carry: Any, at: Any, edge: Any, out: Any) -> None:
    out[:] = 0
    for i in range(ROWS):
        _in_plane(planes, row + i, stride, carry, at + i, edge, out, i)


@kernel()
def fields_3d(
    planes: Any,
    row: Any,
    between: Any,
    before: Any,
    stride: Any,
    carry: Any,
    at: Any,
    edge: Any,
    out: Any,
) -> None:
    out[:] = 0
    numbers = np.empty(LANES, np.int64)
    wins, along, across = np.zeros((3, LANES), np.int64)
    for i in range(ROWS):
        _in_plane(planes, row + i, stride, carry, at + i, edge, out, i)
        here, there = between + i, before + i
        for x in range(LANES):
            wins[x] = _bit(planes, row + i + 2 * stride, x)
            along[x] = _bit(planes, there, x) - _bit(planes, here, x)
            across[x] = _bit(planes, there + stride, x) - _bit(planes, here + stride, x)
        _write(4, along, out, i)
        _add_x(along, across, wins, carry, at + i + 4 * ROWS, 2, edge, numbers)
        _write(5, numbers, out, i)
        for x in range(LANES):
            along[x] = _along_3d(planes, row + i, here, there, 2 * stride, x)
            pairs = row + i + stride, here + stride, there + stride
            across[x] = _along_3d(planes, pairs[0], pairs[1], pairs[2], 2 * stride, x)
        _write(6, along, out, i)
        _add_x(along, across, wins, carry, at + i + 6 * ROWS, CARRIES - 6, edge, numbers)
        _write(7, numbers, out, i)


@kernel()
def expand_fields(planes: Any, row: Any, first: Any, out: Any) -> None:
    for x in range(LANES):
        out[FIELDS * x] = first
        for field in range(1, FIELDS):
            place = row + ROWS * FIRST_PLANES[field]
            out[FIELDS * x + field] = _signed(planes, place, FIELD_WIDTHS[field], x)


@kernel()
def add_fields(fields: Any, point: Any, histogram: Any, row: Any) -> None:
    for field in range(FIELDS):
        histogram[row, field] += fields[FIELDS * point + field]
