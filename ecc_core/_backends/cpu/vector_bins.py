"""Ranks of values among levels, many values at once."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ecc_core._backends.cpu import llvm

__all__ = ["BIN_LANES", "bin_value", "bin_vector", "search_vector"]

BIN_LANES = 16

_F64, _I32 = ir.DoubleType(), ir.IntType(32)


class _Lanes:
    """The steps that both ways of finding a rank share."""

    def __init__(self, context: Any, builder: Any, sig: Any, lanes: int) -> None:
        self.context, self.builder, self.lanes = context, builder, lanes
        self.values, self.keys = sig.args[0], sig.args[1]
        self.numbers = ir.VectorType(_F64, lanes)
        self.nobody = ir.Constant(ir.VectorType(llvm.I1, lanes), [0] * lanes)

    def each(self, scalar: Any) -> Any:
        return llvm.each(self.builder, scalar, self.lanes)

    def values_at(self, values: Any, at: Any) -> tuple[Any, Any, Any]:
        """The values, the same as float64, and which of them are NaN."""
        builder, dtype = self.builder, self.values.dtype
        source = llvm.data(self.context, builder, self.values, values)
        element = self.context.get_value_type(dtype)
        pointer = ir.VectorType(element, self.lanes).as_pointer()
        address = builder.bitcast(builder.gep(source, [at]), pointer)
        value = builder.load(address, align=self.context.get_abi_sizeof(element))
        if isinstance(element, ir.IntType):
            convert = builder.sitofp if dtype.signed else builder.uitofp
            return value, convert(value, self.numbers), self.nobody
        nan = builder.fcmp_unordered("uno", value, value)
        return value, value if element == _F64 else builder.fpext(value, self.numbers), nan

    def confined(self, place: Any, top: Any) -> Any:
        """Confined to 0..top; 0 for NaN."""
        builder, zero = self.builder, ir.Constant(self.numbers, [0.0] * self.lanes)
        place = builder.select(builder.fcmp_ordered(">", place, zero), place, zero)
        return builder.select(builder.fcmp_ordered("<", place, top), place, top)

    def set_keys(self, keys: Any, at: Any, result: Any) -> None:
        builder = self.builder
        key, wide = self.context.get_value_type(self.keys.dtype), result.type.element
        vector = ir.VectorType(key, self.lanes)
        if key.width < wide.width:
            result = builder.trunc(result, vector)
        elif key.width > wide.width:
            result = builder.sext(result, vector)
        llvm.store(builder, result, llvm.data(self.context, builder, self.keys, keys), at)

    def flags(self, sig: Any, *bits: Any) -> Any:
        """A word for each vector of bits."""
        words = [self.builder.bitcast(b, ir.IntType(self.lanes)) for b in bits]
        words = [self.builder.zext(word, llvm.I64) for word in words]
        return self.context.make_tuple(self.builder, sig.return_type, words)


def _bin(lanes: int) -> Any:
    """The intrinsic of :func:`ecc_core._backends.cpu.loaders.bin_evenly` for `lanes` values."""

    @intrinsic
    def bin_lanes(
        typingctx: Any, values: Any, keys: Any, at: Any, scale: Any, count: Any, bins: Any
    ) -> Any:
        sig = types.UniTuple(types.uint64, 2)(values, keys, types.intp, scale, types.int32, bins)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            values, keys, at, scale, count, bins = args
            lane = _Lanes(context, builder, sig, lanes)
            slope, offset, turn = (lane.each(builder.extract_value(scale, i)) for i in range(3))
            first, direction, of_nan, turned, downwards = (
                lane.each(builder.trunc(builder.extract_value(bins, i), _I32)) for i in range(5)
            )
            _, value, nan = lane.values_at(values, at)
            top = lane.each(count)
            place = llvm.call(
                builder, f"llvm.fma.v{lanes}f64", lane.numbers, [value, slope, offset]
            )
            place = lane.confined(place, builder.sitofp(top, lane.numbers))
            below = builder.fptosi(place, top.type)
            past = builder.fcmp_ordered(">", value, turn)
            past = builder.xor(past, builder.trunc(downwards, past.type))
            more = builder.icmp_signed(">", below, turned)
            least = builder.select(past, turned, below)
            below = builder.select(more, below, least)
            above = builder.icmp_signed("==", below, top)
            below = builder.xor(builder.select(nan, of_nan, below), direction)
            lane.set_keys(keys, at, builder.add(first, below))
            return lane.flags(sig, above, nan)

        return sig, codegen

    return bin_lanes


bin_vector = _bin(BIN_LANES)
bin_value = _bin(1)


def _gather(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """The elements of an array at a vector of non-negative indices."""
    element, lanes = context.get_value_type(array_type.dtype), index.type.count
    size = context.get_abi_sizeof(element)
    start = llvm.data(context, builder, array_type, array)
    wide = ir.VectorType(llvm.I64, lanes)
    offsets = builder.mul(builder.zext(index, wide), llvm.splat(llvm.I64, lanes, size))
    base = llvm.each(builder, builder.ptrtoint(start, llvm.I64), lanes)
    places = builder.inttoptr(builder.add(base, offsets), ir.VectorType(start.type, lanes))
    result = ir.VectorType(element, lanes)
    every = ir.Constant(ir.VectorType(llvm.I1, lanes), [1] * lanes)
    nothing = ir.Constant(result, ir.Undefined)
    kind = f"i{8 * size}" if isinstance(element, ir.IntType) else f"f{8 * size}"
    name = f"llvm.masked.gather.v{lanes}{kind}.v{lanes}p0"
    return llvm.call(builder, name, result, [places, _I32(size), every, nothing])


def _less(builder: Any, dtype: Any, a: Any, b: Any) -> Any:
    """Whether elements of arrays of a dtype are less than others, and neither is NaN."""
    if isinstance(a.type.element, ir.IntType):
        compare = builder.icmp_signed if dtype.signed else builder.icmp_unsigned
        return compare("<", a, b)
    return builder.fcmp_ordered("<", a, b)


@intrinsic
def search_vector(
    typingctx: Any,
    values: Any,
    keys: Any,
    at: Any,
    levels: Any,
    starts: Any,
    depth: Any,
    scale: Any,
    count: Any,
    bins: Any,
) -> Any:
    """:func:`ecc_core._backends.cpu.loaders.bin_by_search` of as many values as there are lanes.

    The search is one comparison, unless one of the values is in a crowded cell.
    """
    sig = types.UniTuple(types.uint64, 2)(
        values, keys, types.intp, levels, starts, types.int32, scale, types.int32, bins
    )

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        values, keys, at, levels, starts, depth, scale, count, bins = args
        lane = _Lanes(context, builder, sig, BIN_LANES)
        origin, slope, last = (lane.each(builder.extract_value(scale, i)) for i in range(3))
        first, direction, of_nan = (
            lane.each(builder.trunc(builder.extract_value(bins, i), _I32)) for i in range(3)
        )
        value, number, nan = lane.values_at(values, at)
        place = lane.confined(builder.fmul(builder.fsub(number, origin), slope), last)
        cell = builder.fptosi(place, first.type)
        start = _gather(context, builder, sig.args[4], starts, cell)

        def advance(below: Any, step: Any) -> Any:
            """Skip `step` levels where all of them are below the value."""
            reach = builder.add(below, lane.each(builder.sub(step, _I32(1))))
            level = _gather(context, builder, sig.args[3], levels, reach)
            past = builder.sext(_less(builder, sig.args[3].dtype, level, value), below.type)
            return builder.add(below, builder.and_(past, lane.each(step)))

        crowded = builder.icmp_signed("<", start, llvm.splat(_I32, BIN_LANES, 0))
        steps = cgutils.alloca_once(builder, start.type)
        builder.store(builder.select(crowded, builder.not_(start), start), steps)
        someone = builder.bitcast(crowded, ir.IntType(BIN_LANES))
        with (
            builder.if_then(builder.icmp_unsigned("!=", someone, someone.type(0)), likely=False),
            cgutils.for_range(builder, depth) as loop,
        ):
            step = builder.shl(_I32(1), builder.sub(depth, loop.index))
            builder.store(advance(builder.load(steps), step), steps)
        below = advance(builder.load(steps), _I32(1))
        above = builder.icmp_signed("==", below, lane.each(count))
        above = builder.and_(above, builder.not_(nan))
        below = builder.xor(builder.select(nan, of_nan, below), direction)
        lane.set_keys(keys, at, builder.add(first, below))
        return lane.flags(sig, above, nan)

    return sig, codegen
