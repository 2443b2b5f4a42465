"""Euler coefficients along every set of axes, from planes of comparisons.

The coefficients of :mod:`ecc_core._backends.cpu.scans.vector_coefficients` are those of the whole
image. Here there is a field for every non-empty set of axes, with the coefficients of the sections
of the image by lines or planes along these axes. Fields are mostly zero on smooth images. Numbers
of cells are not, and follow from the sums of the fields.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.scans.vector_coefficients import ROWS, Logic
from ecc_core._backends.cpu.scans.vector_planes import LANES

__all__ = ["CARRIES", "FIELDS", "PLANES", "add_fields", "expand_fields", "fields_2d", "fields_3d"]

FIELDS = 8  # indexed by the sum of 1 for x, 2 for y and 4 for z; the first may count points
WIDTHS = {1: 2, 2: 2, 3: 3, 4: 2, 5: 3, 6: 3, 7: 4}
"""Planes of each field, in two's complement."""
PLANES = sum(WIDTHS.values())  # another one follows, which is 1 where a field is not zero
CARRIES = 9  # planes that pass from one word to the next


class _Fields:
    """Fields of 8 rows of one 64-point column."""

    def __init__(self, context: Any, builder: Any, sig: Any, args: Any) -> None:
        self.builder = builder
        self.logic = Logic(builder)
        self.data = llvm.data(context, builder, sig.args[0], args[0])
        carry, self.at, edge, out = args[-4:]
        self.carry = llvm.data(context, builder, sig.args[-4], carry)
        self.out = llvm.data(context, builder, sig.args[-1], out)
        self.edge = llvm.each(builder, edge, ROWS)
        self.carried = 0

    def plane(self, start: Any, stride: Any, kind: int, shift: int = 0) -> Any:
        builder = self.builder
        offset = builder.add(start, builder.mul(stride, llvm.I64(kind)))
        return llvm.load(builder, self.data, builder.add(offset, llvm.I64(shift)), llvm.I64, ROWS)

    def along_x(self, along: list[Any], across: list[Any], owns: Any, planes: int) -> list[Any]:
        """Return along - owns * across - (1 - owns before) * (across before)."""
        logic = self.logic
        of_next = logic.masked(across, logic.inv(owns))
        offset = self.builder.add(self.at, llvm.I64(ROWS * self.carried))
        self.carried += len(of_next)
        incoming = logic.shifted(of_next, self.carry, offset, along, self.edge)
        total = logic.subtract(along, logic.masked(across, owns), planes)
        return logic.subtract(total, incoming, planes)

    def write(self, fields: list[list[Any]]) -> None:
        """Write the planes of all fields, zero if missing, and the plane that follows them."""
        planes = [plane for field in fields for plane in field]
        nonzero = planes[0]
        for plane in planes[1:]:
            nonzero = self.logic.either(nonzero, plane)
        none = llvm.splat(llvm.I64, ROWS, 0)
        missing = [none] * (PLANES - len(planes))
        for i, plane in enumerate([*planes, *missing, nonzero]):
            llvm.store(self.builder, plane, self.out, llvm.I64(ROWS * i))


def _in_plane(fields: _Fields, row: Any, stride: Any) -> tuple[Any, list[list[Any]]]:
    """Return a plane of the points that own the cells to the right, and the fields x, y and xy."""
    logic = fields.logic
    owns = fields.plane(row, stride, 2)
    ones = [logic.ones, logic.inv(logic.ones)]  # 1
    along_y, across_y = (
        logic.difference([fields.plane(row, stride, kind, -1)], [fields.plane(row, stride, kind)])
        for kind in (0, 1)
    )
    x = fields.along_x(ones, ones, owns, 2)
    return owns, [x, along_y, fields.along_x(along_y, across_y, owns, 3)]


@intrinsic
def fields_2d(
    typingctx: Any,
    planes: Any,
    row: Any,
    stride: Any,
    carry: Any,
    at: Any,
    edge: Any,
    out: Any,
) -> Any:
    """Write the fields of 8 rows of one column. Arguments are as for `coefficients_2d`."""
    sig = types.void(planes, types.intp, types.intp, carry, types.intp, types.uint64, out)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        fields = _Fields(context, builder, sig, args)
        fields.write(_in_plane(fields, args[1], args[2])[1])
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def fields_3d(
    typingctx: Any,
    planes: Any,
    row: Any,
    between: Any,
    before: Any,
    stride: Any,
    carry: Any,
    at: Any,
    edge: Any,
    out: Any,
) -> Any:
    """As :func:`fields_2d`, in 3-D. Arguments are as for `coefficients_3d`."""
    offsets = (types.intp,) * 4
    sig = types.void(planes, *offsets, carry, types.intp, types.uint64, out)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        row, between, before, stride = args[1:5]
        fields = _Fields(context, builder, sig, args)
        logic = fields.logic

        def plane(start: Any, kind: int, shift: int = 0) -> Any:
            return fields.plane(start, stride, kind, shift)

        owns, in_plane = _in_plane(fields, row, stride)
        along_z, across_z = (
            logic.difference([plane(before, kind)], [plane(between, kind)]) for kind in (0, 1)
        )
        along_yz, across_yz = (logic.along_two_axes(plane, row, between, before, k) for k in (0, 1))
        xz = fields.along_x(along_z, across_z, owns, 3)
        xyz = fields.along_x(along_yz, across_yz, owns, 4)
        fields.write([*in_plane, along_z, xz, along_yz, xyz])
        return context.get_dummy_value()

    return sig, codegen


def _zipped(builder: Any, a: Any, b: Any) -> Any:
    """Interleave the elements of two vectors, as a vector of pairs."""
    lanes, width = a.type.count, a.type.element.width
    order = [i // 2 + lanes * (i % 2) for i in range(2 * lanes)]
    mask = ir.Constant(ir.VectorType(ir.IntType(32), 2 * lanes), order)
    pairs = builder.shuffle_vector(a, b, mask)
    return builder.bitcast(pairs, ir.VectorType(ir.IntType(2 * width), lanes))


@intrinsic
def expand_fields(typingctx: Any, planes: Any, row: Any, first: Any, out: Any) -> Any:
    """Write the fields of 64 points of one row. The first field is `first` for all points.

    `out` takes the 8 int8 fields of each point.
    """
    sig = types.void(planes, types.intp, types.uint64, out)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        planes, row, first, out = args
        data = llvm.data(context, builder, sig.args[0], planes)
        zero = llvm.splat(llvm.I8, LANES, 0)
        parts, place = [zero] * FIELDS, 0
        parts[0] = llvm.each(builder, builder.trunc(first, llvm.I8), LANES)
        for field, width in WIDTHS.items():
            for bit in range(width):
                offset = builder.add(row, llvm.I64(ROWS * place))
                word = builder.load(builder.gep(data, [offset]))
                bits = builder.bitcast(word, ir.VectorType(llvm.I1, LANES))
                weight = llvm.splat(llvm.I8, LANES, -(1 << bit) if bit == width - 1 else 1 << bit)
                chosen = builder.select(bits, weight, zero)
                parts[field] = builder.or_(parts[field], chosen) if bit else chosen
                place += 1
        while len(parts) > 1:
            parts = [_zipped(builder, *parts[i : i + 2]) for i in range(0, len(parts), 2)]
        target = llvm.data(context, builder, sig.args[3], out)
        address = builder.bitcast(target, parts[0].type.as_pointer())
        builder.store(parts[0], address, align=1)
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def add_fields(typingctx: Any, fields: Any, point: Any, histogram: Any, row: Any) -> Any:
    """Add the 8 fields of a point to a row of 8 counts."""
    sig = types.void(fields, types.intp, histogram, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        fields, point, histogram, row = args
        source = llvm.data(context, builder, sig.args[0], fields)
        target = llvm.data(context, builder, sig.args[2], histogram)
        count = context.get_value_type(sig.args[2].dtype)
        eight = llvm.I64(FIELDS)
        small = llvm.load(builder, source, builder.mul(point, eight), llvm.I8, FIELDS)
        at = builder.mul(row, eight)
        counts = llvm.load(builder, target, at, count, FIELDS)
        wide = builder.sext(small, ir.VectorType(count, FIELDS))
        llvm.store(builder, builder.add(counts, wide), target, at)
        return context.get_dummy_value()

    return sig, codegen
