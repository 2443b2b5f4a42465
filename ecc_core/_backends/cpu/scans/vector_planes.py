"""Bit planes of comparisons: one bit for each of 64 points, one word for a row of them.

A point's key is compared with that of its neighbour along one axis; the larger one owns the cell
between them, and ties go to the lower index. ``docs/design/cpu.md`` derives
the formulas.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from ecc_core._backends.cpu import llvm

LANES = 64


class _Compared:
    """Comparisons of the keys of rows of 64 points."""

    def __init__(self, builder: Any, keys: Any) -> None:
        self.builder, self.keys = builder, keys

    def maximum(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.icmp_unsigned(">", a, b), a, b)

    def owns(self, a: Any, b: Any) -> Any:
        return self.builder.bitcast(self.builder.icmp_unsigned(">=", a, b), llvm.I64)

    def row(self, offset: Any) -> tuple[Any, Any, Any]:
        """Return the keys of a row, those of their neighbours along x, and their maxima."""
        here = self.keys.load(offset, LANES)
        right = self.keys.load(self.builder.add(offset, llvm.I64(1)), LANES)
        return here, right, self.maximum(here, right)

    def planes(self, current: list[Any], coming: list[Any]) -> list[Any]:
        """Return the planes of a row, of one slice or two, and the row below it."""
        (here, right, across), *beyond = current
        (below, _, below_across), *beyond_below = coming
        found = [self.owns(here, below), self.owns(across, below_across), self.owns(here, right)]
        for (next_here, _, next_across), (next_below, _, next_below_across) in zip(
            beyond, beyond_below, strict=True
        ):
            pairs = self.maximum(here, below), self.maximum(next_here, next_below)
            squares = (
                self.maximum(across, below_across),
                self.maximum(next_across, next_below_across),
            )
            for own, other in ((here, next_here), (across, next_across), pairs, squares):
                found.append(self.owns(own, other))
        return found


@llvm.operation()
def write_planes(
    builder: Any, keys: Any, starts: Any, pitch: Any, rows: Any, planes: Any, out: Any, stride: Any
) -> None:
    """Write the planes of comparisons of `rows` rows of one 64-point column.

    `starts` are the places of the first row in a slice and, in 3-D, in the next one. Writes the
    planes of row r at ``planes[out + r + kind * stride]``; the kinds are 0: x >= below, 1: max(x,
    right) >= the same below, 2: x >= right, and in 3-D 3: x, 4: max over x, 5: max over y, 6: max
    over xy, each >= the same a slice on.
    """
    compared, vector = _Compared(builder, keys), ir.VectorType(keys.element, LANES)
    kept = [[cgutils.alloca_once(builder, vector) for _ in range(3)] for _ in starts]

    def load(row: Any) -> list[Any]:
        return [compared.row(builder.add(start, builder.mul(row, pitch))) for start in starts]

    def keep(loaded: list[Any]) -> None:  # for the next turn
        for slots, values in zip(kept, loaded, strict=True):
            for slot, value in zip(slots, values, strict=True):
                builder.store(value, slot)

    keep(load(llvm.I64(0)))
    with cgutils.for_range(builder, rows) as loop:
        current = [[builder.load(slot) for slot in slots] for slots in kept]
        coming = load(builder.add(loop.index, llvm.I64(1)))
        base = builder.add(out, loop.index)
        for kind, plane in enumerate(compared.planes(current, coming)):
            offset = builder.add(base, builder.mul(stride, llvm.I64(kind)))
            builder.store(plane, planes.one(offset))
        keep(coming)
