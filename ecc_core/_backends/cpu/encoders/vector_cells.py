"""Cells of a grid and ordered keys of many values at once, for the search among levels."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ecc_core._backends.cpu import llvm

__all__ = ["CELL_LANES", "find_cells", "rank_cells"]

CELL_LANES = 16
AHEAD = 4096  # bytes
UNROLL = 4

_I32 = ir.IntType(32)


def _ordered(builder: Any, value: Any, dtype: Any, bits: Any) -> Any:
    """Return unsigned integers in the order of the values; -0.0 comes before 0.0."""
    top = llvm.splat(bits, CELL_LANES, 1 << (bits.width - 1))
    if isinstance(value.type.element, ir.IntType):
        return builder.xor(value, top) if dtype.signed else value
    pattern = builder.bitcast(value, ir.VectorType(bits, CELL_LANES))
    negative = builder.ashr(pattern, llvm.splat(bits, CELL_LANES, bits.width - 1))
    return builder.xor(pattern, builder.or_(negative, top))


@intrinsic
def find_cells(
    typingctx: Any,
    values: Any,
    at: Any,
    turns: Any,
    cells: Any,
    keys: Any,
    to: Any,
    grid: Any,
    order: Any,
) -> Any:
    """Write the cells of 16 times `turns` values, and their keys in the order of entry.

    `grid` is (origin, slope, last): the cell is ``(value - origin) * slope``, confined to 0..last;
    NaN lies in cell ``last + 1``. `order` is (flip, stored, turn, limit): the key in the order of
    entry is that of the value, exclusive or `flip`; it is written exclusive or `stored`. Returns
    whether a key, exclusive or `turn`, was beyond `limit`, and whether there was a NaN.
    """
    sig = types.UniTuple(types.uint64, 2)(
        values, types.intp, types.intp, cells, keys, types.intp, grid, order
    )

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        values, at, turns, cells, keys, to, grid, order = args
        dtype = sig.args[0].dtype
        element = context.get_value_type(dtype)
        bits = context.get_value_type(sig.args[4].dtype)
        number = ir.FloatType() if bits.width == 32 else ir.DoubleType()
        numbers = ir.VectorType(number, CELL_LANES)
        source = llvm.data(context, builder, sig.args[0], values)
        cell_data = llvm.data(context, builder, sig.args[3], cells)
        key_data = llvm.data(context, builder, sig.args[4], keys)
        origin, slope, last = (
            llvm.each(builder, builder.extract_value(grid, i), CELL_LANES) for i in range(3)
        )
        flip, stored, turn, limit = (
            llvm.each(builder, builder.extract_value(order, i), CELL_LANES) for i in range(4)
        )
        zero = ir.Constant(numbers, [0.0] * CELL_LANES)
        flags = ir.VectorType(llvm.I1, CELL_LANES)
        none = ir.Constant(flags, [0] * CELL_LANES)
        above, bad = (cgutils.alloca_once_value(builder, none) for _ in range(2))
        cell_type = ir.VectorType(_I32, CELL_LANES)
        with cgutils.for_range(builder, turns) as loop:
            step = builder.mul(loop.index, llvm.I64(CELL_LANES))
            value = llvm.load(builder, source, builder.add(at, step), element, CELL_LANES)
            llvm.prefetch_line(builder, source, builder.add(at, step), AHEAD)
            key = builder.xor(_ordered(builder, value, dtype, bits), flip)
            beyond = builder.icmp_unsigned(">", builder.xor(key, turn), limit)
            place = value
            if isinstance(element, ir.IntType):
                convert = builder.sitofp if dtype.signed else builder.uitofp
                place = convert(value, numbers)
            place = builder.fmul(builder.fsub(place, origin), slope)
            place = builder.select(builder.fcmp_ordered(">", place, zero), place, zero)
            place = builder.select(builder.fcmp_ordered("<", place, last), place, last)
            cell = builder.fptosi(place, cell_type)
            if not isinstance(element, ir.IntType):
                nan = builder.fcmp_unordered("uno", value, value)
                past = builder.fptosi(last, cell_type)
                past = builder.add(past, llvm.splat(_I32, CELL_LANES, 1))
                cell = builder.select(nan, past, cell)
                beyond = builder.and_(beyond, builder.not_(nan))
                builder.store(builder.or_(builder.load(bad), nan), bad)
            builder.store(builder.or_(builder.load(above), beyond), above)
            place = builder.add(to, step)
            llvm.store(builder, cell, cell_data, place)
            llvm.store(builder, builder.xor(key, stored), key_data, place)
        words = [
            builder.zext(builder.bitcast(builder.load(flag), ir.IntType(CELL_LANES)), llvm.I64)
            for flag in (above, bad)
        ]
        return context.make_tuple(builder, sig.return_type, words)

    return sig, codegen


@intrinsic
def rank_cells(
    typingctx: Any,
    cells: Any,
    keys: Any,
    at: Any,
    count: Any,
    entries: Any,
    only: Any,
    target: Any,
    first: Any,
) -> Any:
    """Write the ranks of `count` values, a multiple of 4, whose cells :func:`find_cells` wrote.

    Keys of 32 bits are added to the entry, whose lower half carries into the upper one, the rank,
    from the cell's bound on. Those of 64 bits are compared with the bound, `only`. The highest bit
    of what it returns tells whether an entry was marked.
    """
    sig = types.uint64(cells, keys, types.intp, types.intp, entries, only, target, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        at, count, first = args[2], args[3], args[7]
        cell_data, key_data, entry_data, only_data, target_data = (
            llvm.data(context, builder, sig.args[i], args[i]) for i in (0, 1, 4, 5, 6)
        )
        bits = context.get_value_type(sig.args[1].dtype)
        out = context.get_value_type(sig.args[6].dtype)
        seen = cgutils.alloca_once_value(builder, llvm.I64(0))
        with cgutils.for_range(builder, builder.udiv(count, llvm.I64(UNROLL))) as loop:
            union = builder.load(seen)
            for step in range(UNROLL):
                turn = builder.add(builder.mul(loop.index, llvm.I64(UNROLL)), llvm.I64(step))
                here = builder.add(at, turn)
                # Atomic, so that LLVM does not make one gather of many loads: it takes longer.
                cell = builder.load_atomic(builder.gep(cell_data, [here]), "monotonic", 4)
                cell = builder.zext(cell, llvm.I64)
                key = builder.load(builder.gep(key_data, [here]))
                entry = builder.load(builder.gep(entry_data, [cell]))
                if bits.width == 32:
                    rank = builder.add(entry, builder.zext(key, llvm.I64))
                    union = builder.or_(union, rank)
                    rank = builder.lshr(rank, llvm.I64(32))
                else:
                    bound = builder.load(builder.gep(only_data, [cell]))
                    reached = builder.icmp_unsigned(">=", key, bound)
                    union = builder.or_(union, entry)
                    rank = builder.add(entry, builder.zext(reached, llvm.I64))
                place = builder.gep(target_data, [builder.add(first, turn)])
                builder.store(builder.trunc(rank, out), place)
            builder.store(union, seen)
        return builder.load(seen)

    return sig, codegen
