"""Ranks of values among levels, many values at once.

As plain loops, which numba vectorizes, rounded levels take 1.2 (float32) to 1.6 times as long to
load, and 5 times where the values themselves are levels; exact ones 1.1 times.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from ecc_core._backends.cpu import llvm

BIN_LANES = 16

_F64, _I32 = ir.DoubleType(), ir.IntType(32)


class _Lanes:
    """The steps that find the ranks of a vector of values."""

    def __init__(self, builder: Any, values: Any, lanes: int) -> None:
        self.builder, self.dtype, self.lanes = builder, values.dtype, lanes
        self.numbers = ir.VectorType(_F64, lanes)
        self.nobody = ir.Constant(ir.VectorType(llvm.I1, lanes), [0] * lanes)

    def each(self, scalar: Any) -> Any:
        return llvm.each(self.builder, scalar, self.lanes)

    def values_at(self, values: Any, at: Any) -> tuple[Any, Any, Any]:
        """Return the values, the same as float64, and which of them are NaN."""
        builder, value = self.builder, values.load(at, self.lanes)
        if isinstance(values.element, ir.IntType):
            convert = builder.sitofp if self.dtype.signed else builder.uitofp
            return value, convert(value, self.numbers), self.nobody
        nan = builder.fcmp_unordered("uno", value, value)
        return value, value if values.element == _F64 else builder.fpext(value, self.numbers), nan

    def confined(self, place: Any, least: Any, most: Any) -> Any:
        """Return places confined to `least` and `most`, and `least` for NaN."""
        builder = self.builder
        place = builder.select(builder.fcmp_ordered(">", place, least), place, least)
        return builder.select(builder.fcmp_ordered("<", place, most), place, most)

    def is_near(self, place: Any, one: Any, reach: Any) -> Any:
        """Return whether any place, a multiple of ``1 / one``, is within `reach` of a whole one."""
        builder = self.builder
        rest = builder.and_(
            builder.add(place, reach), builder.sub(one, llvm.splat(_I32, self.lanes, 1))
        )
        near = builder.icmp_unsigned("<=", rest, builder.add(reach, reach))
        word = builder.bitcast(near, ir.IntType(self.lanes))
        return builder.icmp_unsigned("!=", word, word.type(0))

    def compared(self, before: Any, value: Any, level: Any, downwards: Any) -> Any:
        """Return ranks: the number of levels `before`, plus 1 where the value is beyond `level`."""
        builder, dtype = self.builder, self.dtype
        if dtype.__class__ is types.Float:
            compare = builder.fcmp_ordered
        else:
            compare = builder.icmp_signed if dtype.signed else builder.icmp_unsigned
        down = builder.trunc(downwards, ir.VectorType(llvm.I1, self.lanes))
        past = builder.select(down, compare("<", value, level), compare(">", value, level))
        return builder.add(before, builder.zext(past, before.type))

    def levels(self, before: Any, kind: Any, stored: Any, regular: Any, line: Any) -> Any:
        """Return the levels with the indices `before`, as a vector of type `kind`.

        If they are `regular`, those on a `line`, rounded, and otherwise the `stored` ones.
        """
        builder = self.builder
        slot = cgutils.alloca_once(builder, kind)
        with builder.if_else(builder.icmp_signed("!=", regular, regular.type(0))) as (yes, no):
            with yes:
                start, step = line
                number = builder.sitofp(before, self.numbers)
                level = builder.fadd(builder.fmul(number, step), start)
                if isinstance(kind.element, ir.IntType):  # never regular
                    level = builder.fptosi(level, kind)
                elif kind != self.numbers:
                    level = builder.fptrunc(level, kind)
                builder.store(level, slot)
            with no:
                level = ir.Constant(kind, ir.Undefined)
                for i in range(self.lanes):
                    one = stored.one(builder.extract_element(before, _I32(i)))
                    level = builder.insert_element(level, builder.load(one), _I32(i))
                builder.store(level, slot)
        return builder.load(slot)

    def set_keys(self, keys: Any, at: Any, result: Any) -> None:
        key, wide = keys.element, result.type.element
        vector = ir.VectorType(key, self.lanes)
        if key.width < wide.width:
            result = self.builder.trunc(result, vector)
        elif key.width > wide.width:
            result = self.builder.sext(result, vector)
        keys.store(result, at)

    def flags(self, *bits: Any) -> list[Any]:
        """Return vectors of bits as words."""
        words = [self.builder.bitcast(b, ir.IntType(self.lanes)) for b in bits]
        return [self.builder.zext(word, llvm.I64) for word in words]


def _bin(lanes: int, checked: bool) -> Any:
    """Return the intrinsic of the kernel ``bin_evenly`` for `lanes` values.

    `scale` and `bins` are those of ``bin_evenly``.
    """

    @llvm.operation(types.UniTuple(types.uint64, 2))
    def bin_lanes(
        builder: Any, values: Any, keys: Any, at: Any, levels: Any, scale: Any, bins: Any
    ) -> Any:
        lane = _Lanes(builder, values, lanes)
        slope, offset, turn, *line = (lane.each(number) for number in scale)
        first, direction, of_nan, turned, downwards, count, unfit, digits, reach = (
            lane.each(builder.trunc(number, _I32)) for number in bins[:9]
        )
        given, value, nan = lane.values_at(values, at)
        place = llvm.call(builder, f"llvm.fma.v{lanes}f64", lane.numbers, [value, slope, offset])
        if checked:
            one = builder.shl(llvm.splat(_I32, lanes, 1), digits)
            half = builder.lshr(one, llvm.splat(_I32, lanes, 1))
            least, most = half, builder.add(builder.shl(count, digits), half)
        else:
            least, most = llvm.splat(_I32, lanes, 0), count
        ends = (builder.sitofp(end, lane.numbers) for end in (least, most))
        below = builder.fptosi(lane.confined(place, *ends), count.type)
        if checked:
            place = below
            slot = cgutils.alloca_once_value(builder, builder.lshr(place, digits))
            with builder.if_then(lane.is_near(place, one, reach), likely=False):
                nearest = builder.lshr(builder.add(place, half), digits)
                nearest = builder.select(builder.icmp_signed("<", nearest, count), nearest, count)
                before = builder.sub(nearest, llvm.splat(_I32, lanes, 1))
                regular = bins[9]
                level = lane.levels(before, given.type, levels, regular, line)
                builder.store(lane.compared(before, given, level, downwards), slot)
            below = builder.load(slot)
        past = builder.fcmp_ordered(">", value, turn)
        past = builder.xor(past, builder.trunc(downwards, past.type))
        more = builder.icmp_signed(">", below, turned)
        least = builder.select(past, turned, below)
        rank = builder.select(nan, of_nan, builder.select(more, below, least))
        seen = builder.icmp_signed("==", rank, unfit)
        lane.set_keys(keys, at, builder.add(first, builder.xor(rank, direction)))
        return lane.flags(seen, nan)

    return bin_lanes


bin_vector, bin_value = _bin(BIN_LANES, False), _bin(1, False)
bin_checked_vector, bin_checked_value = _bin(BIN_LANES, True), _bin(1, True)
