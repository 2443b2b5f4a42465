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


class _Rows:
    """Emit the loop over the rows of one 64-point column, keeping each row for the next turn."""

    def __init__(self, builder: Any, keys: Any) -> None:
        self.builder, self.keys = builder, keys
        self.vector = ir.VectorType(keys.element, LANES)

    def maximum(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.icmp_unsigned(">", a, b), a, b)

    def owns(self, a: Any, b: Any) -> Any:
        return self.builder.bitcast(self.builder.icmp_unsigned(">=", a, b), llvm.I64)

    def load(self, start: Any, pitch: Any, row: Any) -> tuple[Any, Any, Any]:
        """Return the keys of a row, those of their neighbours along x, and their maxima."""
        builder = self.builder
        offset = builder.add(start, builder.mul(row, pitch))
        here = self.keys.load(offset, LANES)
        right = self.keys.load(builder.add(offset, llvm.I64(1)), LANES)
        return here, right, self.maximum(here, right)

    def emit(
        self, starts: list[Any], pitch: Any, rows: Any, planes: Any, out: Any, kind_stride: Any
    ) -> None:
        builder = self.builder
        kept = [[cgutils.alloca_once(builder, self.vector) for _ in range(3)] for _ in starts]

        def keep(loaded: list[tuple[Any, Any, Any]]) -> None:
            for slots, values in zip(kept, loaded, strict=True):
                for slot, value in zip(slots, values, strict=True):
                    builder.store(value, slot)

        keep([self.load(start, pitch, llvm.I64(0)) for start in starts])
        with cgutils.for_range(builder, rows) as loop:
            current = [tuple(builder.load(slot) for slot in slots) for slots in kept]
            following = builder.add(loop.index, llvm.I64(1))
            coming = [self.load(start, pitch, following) for start in starts]
            base = builder.add(out, loop.index)
            for kind, plane in enumerate(self.compare(current, coming)):
                offset = builder.add(base, builder.mul(kind_stride, llvm.I64(kind)))
                builder.store(plane, planes.one(offset))
            keep(coming)

    def compare(self, current: list[Any], coming: list[Any]) -> list[Any]:
        here, right, across = current[0]
        below, _, below_across = coming[0]
        in_plane = [
            self.owns(here, below),
            self.owns(across, below_across),
            self.owns(here, right),
        ]
        if len(current) == 1:
            return in_plane
        (next_here, _, next_across), (next_below, _, next_below_across) = current[1], coming[1]
        between_slices = [
            self.owns(here, next_here),
            self.owns(across, next_across),
            self.owns(self.maximum(here, below), self.maximum(next_here, next_below)),
            self.owns(
                self.maximum(across, below_across), self.maximum(next_across, next_below_across)
            ),
        ]
        return in_plane + between_slices


@llvm.operation()
def planes_2d(
    builder: Any, keys: Any, start: Any, pitch: Any, rows: Any, planes: Any, out: Any, stride: Any
) -> None:
    """Write the planes of comparisons of `rows` rows of one 64-point column.

    Writes the planes of row r at ``planes[out + r + kind * stride]``; the kinds are
    0: x >= below, 1: max(x, right) >= the same below, 2: x >= right.
    """
    _Rows(builder, keys).emit([start], pitch, rows, planes, out, stride)


@llvm.operation()
def planes_3d(
    builder: Any,
    keys: Any,
    start: Any,
    next_start: Any,
    pitch: Any,
    rows: Any,
    planes: Any,
    out: Any,
    stride: Any,
) -> None:
    """As :func:`planes_2d`, with the kinds 3..6 for the comparisons with the next slice.

    They are 3: x, 4: max over x, 5: max over y, 6: max over xy, each >= the same a slice on.
    """
    _Rows(builder, keys).emit([start, next_start], pitch, rows, planes, out, stride)
