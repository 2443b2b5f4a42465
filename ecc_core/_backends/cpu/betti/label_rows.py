"""The labels of a point and its neighbours, which are read as rows of three points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from ecc_core._backends.cpu.betti.links import Link
from ecc_core._backends.cpu.llvm import I64, call, operation, splat

LANES = 4
"""Lanes of a vector; the points of a row take three of them."""


class Rows(NamedTuple):
    """A point and its neighbours, as rows of three points."""

    firsts: Any
    """The distances to the first points of rows."""
    hidden: Any
    """0 for a neighbour and for the point itself, all bits of a label for others, (rows, 4)."""


def rows_of(link: Link, steps: tuple[int, int, int], dtype: np.dtype[Any]) -> Rows:
    """Return the rows around a point, for labels of a dtype and steps from a point to the next."""
    slice_step, row_step, _ = steps
    lanes: dict[tuple[int, int], list[int]] = {(0, 0): [1]}
    for end in link.ends:
        z, y, x = link.members[end]
        lanes.setdefault((z, y), []).append(x + 1)
    hidden = np.full((len(lanes), LANES), np.iinfo(dtype).max, dtype)
    for row, shown in zip(hidden, lanes.values(), strict=True):
        row[shown] = 0
    starts = [z * slice_step + y * row_step - 1 for z, y in lanes]
    return Rows(np.array(starts), hidden)


@operation(types.int64)
def least_label(builder, labels, place, firsts, hidden):
    """Return the least of the labels of a point and of its neighbours, which are those of rows."""
    least = cgutils.alloca_once_value(builder, splat(labels.element, LANES, -1))
    with cgutils.for_range(builder, firsts.shape[0]) as loop:
        first = builder.load(firsts.one(loop.index))
        row = labels.load(builder.add(place, first), LANES)
        row = builder.or_(row, hidden.load(builder.mul(loop.index, I64(LANES)), LANES))
        builder.store(_lesser(builder, row, builder.load(least)), least)
    found = builder.load(least)
    label = builder.extract_element(found, I64(0))
    for lane in range(1, LANES):
        label = _lesser(builder, builder.extract_element(found, I64(lane)), label)
    return builder.sext(label, I64) if labels.element != I64 else label


def _lesser(builder: Any, first: Any, second: Any) -> Any:
    """Emit the lesser of two unsigned integers, or of each two lanes of vectors."""
    return builder.select(builder.icmp_unsigned("<", first, second), first, second)


@operation()
def prefetch_rows(builder, labels, place, firsts):
    """Ask for the labels of the neighbours of a point."""
    read, keep, data = (ir.Constant(ir.IntType(32), i) for i in (0, 3, 1))
    with cgutils.for_range(builder, firsts.shape[0]) as loop:
        middle = builder.add(builder.load(firsts.one(loop.index)), I64(1))
        address = labels.one(builder.add(place, middle))
        pointer = builder.bitcast(address, cgutils.voidptr_t)
        call(builder, "llvm.prefetch.p0", ir.VoidType(), [pointer, read, keep, data])
