"""Ranks of values among levels, many values at once."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ecc_core._backends.cpu import llvm

__all__ = [
    "BIN_LANES",
    "bin_rounded_value",
    "bin_rounded_vector",
    "bin_single_value",
    "bin_single_vector",
    "bin_value",
    "bin_vector",
]

BIN_LANES = 16

_F64, _I32 = ir.DoubleType(), ir.IntType(32)


class _Lanes:
    """Steps of finding ranks."""

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

    def corrected(
        self, guess: Any, value: Any, top: Any, line: Any, downwards: Any, single: bool
    ) -> Any:
        """The guess, less one where the value has entered at the level before it.

        Level k, from the lowest on, is ``k * step + start`` in float64, rounded to the values'
        dtype; if `single`, all of it is computed in float32.
        """
        builder, (start, step) = self.builder, line
        down = builder.trunc(downwards, ir.VectorType(llvm.I1, self.lanes))
        before = builder.sub(guess, llvm.splat(_I32, self.lanes, 1))
        before = builder.select(down, builder.sub(top, guess), before)
        floats = ir.VectorType(ir.FloatType(), self.lanes)
        numbers = floats if single else self.numbers
        if single:
            start, step = (builder.fptrunc(number, floats) for number in (start, step))
        level = builder.fmul(builder.sitofp(before, numbers), step)
        level = builder.fadd(level, start)
        if value.type == floats and not single:
            level = builder.fptrunc(level, floats)
        if level.type == floats and value.type != floats:
            level = builder.fpext(level, self.numbers)
        elif level.type != value.type:
            value = builder.fpext(value, self.numbers)
        below, above = (builder.fcmp_ordered(sign, value, level) for sign in ("<=", ">="))
        entered = builder.select(down, above, below)
        guess = builder.sub(guess, builder.zext(entered, guess.type))
        zeros = llvm.splat(_I32, self.lanes, 0)
        return builder.select(builder.icmp_signed(">", guess, zeros), guess, zeros)

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


def _bin(lanes: int, rounded: bool, single: bool = False) -> Any:
    """The intrinsic of the kernel ``bin_evenly`` for `lanes` values."""

    @intrinsic
    def bin_lanes(
        typingctx: Any, values: Any, keys: Any, at: Any, scale: Any, count: Any, bins: Any
    ) -> Any:
        sig = types.UniTuple(types.uint64, 2)(values, keys, types.intp, scale, types.int32, bins)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            values, keys, at, scale, count, bins = args
            lane = _Lanes(context, builder, sig, lanes)
            slope, offset, turn, start, step = (
                lane.each(builder.extract_value(scale, i)) for i in range(5)
            )
            first, direction, of_nan, turned, downwards = (
                lane.each(builder.trunc(builder.extract_value(bins, i), _I32)) for i in range(5)
            )
            given, value, nan = lane.values_at(values, at)
            given = value if isinstance(given.type.element, ir.IntType) else given
            top = lane.each(count)
            place = llvm.call(
                builder, f"llvm.fma.v{lanes}f64", lane.numbers, [value, slope, offset]
            )
            place = lane.confined(place, builder.sitofp(top, lane.numbers))
            below = builder.fptosi(place, top.type)
            past = builder.fcmp_ordered(">", value, turn)
            past = builder.xor(past, builder.trunc(downwards, past.type))
            if rounded:
                line = start, step
                below = lane.corrected(below, given, top, line, downwards, single)
                most = builder.sub(turned, llvm.splat(_I32, lanes, 1))
                most = builder.select(past, top, most)
                below = builder.select(builder.icmp_signed("<", below, most), below, most)
            more = builder.icmp_signed(">", below, turned)
            least = builder.select(past, turned, below)
            below = builder.select(more, below, least)
            above = builder.icmp_signed("==", below, top)
            below = builder.xor(builder.select(nan, of_nan, below), direction)
            lane.set_keys(keys, at, builder.add(first, below))
            return lane.flags(sig, above, nan)

        return sig, codegen

    return bin_lanes


bin_vector, bin_value = _bin(BIN_LANES, False), _bin(1, False)
bin_rounded_vector, bin_rounded_value = _bin(BIN_LANES, True), _bin(1, True)
bin_single_vector, bin_single_value = _bin(BIN_LANES, True, True), _bin(1, True, True)
