"""Vector operations on keys and labels: comparisons within regions, and lists of coefficients."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.scans.vector_coefficients import append_compressed, compress, expanded
from ecc_core._backends.cpu.scans.vector_planes import LANES

__all__ = ["append_region_events", "fill_vector", "label_changes", "order_planes"]


@intrinsic
def order_planes(
    typingctx: Any,
    keys: Any,
    labels: Any,
    here: Any,
    there: Any,
    pitch: Any,
    rows: Any,
    flip: Any,
    planes: Any,
    out: Any,
    back: Any,
) -> Any:
    """Find the points that own the cell to their neighbour in one direction, and the reverse.

    `here` and `there` are the offsets of the first 64 points and of their neighbours in `keys` and
    `labels`. A point owns the cell to one of the same label if its key is at least as large (the
    neighbour, if its key is larger). The cell to one of another label is owned by both if `flip` is
    all ones, by neither if it is 0. Writes the points' planes at `out` + row and the neighbours'
    at `back` + row, for `rows` rows.
    """
    sig = types.void(
        keys,
        labels,
        types.intp,
        types.intp,
        types.intp,
        types.intp,
        types.uint64,
        planes,
        types.intp,
        types.intp,
    )

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        keys, labels, here, there, pitch, rows, flip, planes, out, back = args
        data = llvm.data(context, builder, sig.args[7], planes)

        def compare(array: Any, array_type: Any, relation: str, step: Any) -> Any:
            element = context.get_value_type(array_type.dtype)
            source = llvm.data(context, builder, array_type, array)
            points, neighbours = (
                llvm.load(builder, source, builder.add(start, step), element, LANES)
                for start in (here, there)
            )
            return builder.bitcast(builder.icmp_unsigned(relation, points, neighbours), llvm.I64)

        with cgutils.for_range(builder, rows) as loop:
            step = builder.mul(loop.index, pitch)
            owns = compare(keys, sig.args[0], ">=", step)
            same = compare(labels, sig.args[1], "==", step)
            for offset, plane in ((out, owns), (back, builder.not_(owns))):
                owned = builder.and_(builder.xor(plane, flip), same)
                address = builder.gep(data, [builder.add(offset, loop.index)])
                builder.store(builder.xor(owned, flip), address)
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def label_changes(typingctx: Any, row: Any, first: Any) -> Any:
    """Which of 64 elements, from ``row[first]`` on, differ from the one before: one bit each."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        row, first = args
        data = llvm.data(context, builder, sig.args[0], row)
        element = context.get_value_type(sig.args[0].dtype)
        before = builder.sub(first, llvm.I64(1))
        own, other = (llvm.load(builder, data, at, element, LANES) for at in (first, before))
        return builder.bitcast(builder.icmp_unsigned("!=", own, other), llvm.I64)

    return types.uint64(row, types.intp), codegen


@intrinsic
def fill_vector(typingctx: Any, row: Any, first: Any, value: Any) -> Any:
    """Set 64 elements, from ``row[first]`` on, to an unsigned value."""
    sig = types.void(row, types.intp, row.dtype)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        row, first, value = args
        data = llvm.data(context, builder, sig.args[0], row)
        llvm.store(builder, llvm.each(builder, value, LANES), data, first)
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def append_region_events(
    typingctx: Any,
    coefficients: Any,
    wanted: Any,
    at: Any,
    keys: Any,
    labels: Any,
    event_keys: Any,
    event_labels: Any,
    event_coefficients: Any,
    count: Any,
) -> Any:
    """Append the wanted ones of 64 points, from the offset `at` on, to three lists; the new count.

    `coefficients` is a tuple of 4 planes. Points with the label 0 are left out. Each list needs
    room for 64 entries more than it will hold.
    """
    sig = types.intp(
        coefficients,
        types.uint64,
        types.intp,
        keys,
        labels,
        event_keys,
        event_labels,
        event_coefficients,
        types.intp,
    )

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        planes, wanted, at, *arrays, count = args
        data = [
            llvm.data(context, builder, array_type, array)
            for array_type, array in zip(sig.args[3:8], arrays, strict=True)
        ]
        key_data, label_data, key_list, label_list, coefficient_list = data
        element = label_data.type.pointee
        own = llvm.load(builder, label_data, at, element, LANES)
        inside = builder.icmp_unsigned("!=", own, llvm.splat(element, LANES, 0))
        wanted = builder.and_(wanted, builder.bitcast(inside, llvm.I64))
        values = expanded(builder, cgutils.unpack_tuple(builder, planes))
        bits = builder.bitcast(wanted, ir.VectorType(llvm.I1, LANES))
        llvm.store(builder, compress(builder, values, bits), coefficient_list, count)
        append_compressed(builder, label_data, at, wanted, label_list, count)
        return append_compressed(builder, key_data, at, wanted, key_list, count)

    return sig, codegen
