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

_F64 = ir.DoubleType()
_I32 = ir.IntType(32)


def _levels(builder: Any, before: Any, kind: Any, stored: Any, regular: Any, line: Any) -> Any:
    """Return the levels with the indices `before`, as a vector of type `kind`.

    If they are `regular`, those on a `line`, rounded, and otherwise the `stored` ones.
    """
    numbers = ir.VectorType(_F64, kind.count)
    slot = cgutils.alloca_once(builder, kind)
    with builder.if_else(builder.icmp_signed("!=", regular, regular.type(0))) as (yes, no):
        with yes:
            start, step = line
            level = builder.fadd(builder.fmul(builder.sitofp(before, numbers), step), start)
            if isinstance(kind.element, ir.IntType):  # Integers are never regular at run time.
                level = builder.fptosi(level, kind)
            elif kind != numbers:
                level = builder.fptrunc(level, kind)
            builder.store(level, slot)
        with no:
            level = ir.Constant(kind, ir.Undefined)
            for i in range(kind.count):
                one = stored.one(builder.extract_element(before, _I32(i)))
                level = builder.insert_element(level, builder.load(one), _I32(i))
            builder.store(level, slot)
    return builder.load(slot)


def _as_float64(builder: Any, given: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """Return values as float64, which of them are NaN, and how values of their dtype compare."""
    lanes = given.type.count
    numbers = ir.VectorType(_F64, lanes)
    if isinstance(dtype, types.Float):
        nan = builder.fcmp_unordered("uno", given, given)
        value = given if given.type == numbers else builder.fpext(given, numbers)
        return value, nan, builder.fcmp_ordered
    never = ir.Constant(ir.VectorType(llvm.I1, lanes), [0] * lanes)
    if dtype.signed:
        return builder.sitofp(given, numbers), never, builder.icmp_signed
    return builder.uitofp(given, numbers), never, builder.icmp_unsigned


def _bin(lanes: int, checked: bool) -> Any:
    """Return the intrinsic of the kernel ``bin_evenly`` for `lanes` values.

    `scale` and `bins` are those of ``bin_evenly``.
    """

    @llvm.operation(types.UniTuple(types.uint64, 2))
    def bin_lanes(builder, values, keys, at, levels, scale, bins):
        slope, offset, exempt, *line = (llvm.each(builder, number, lanes) for number in scale)
        first, direction, of_nan, exempt_rank, downwards, count, unfit, digits, reach = (
            llvm.each(builder, builder.trunc(number, _I32), lanes) for number in bins[:9]
        )
        numbers = ir.VectorType(_F64, lanes)
        unit = llvm.splat(_I32, lanes, 1)
        given = values.load(at, lanes)
        value, nan, compare = _as_float64(builder, given, values.dtype)
        down = builder.trunc(downwards, nan.type)
        place = llvm.call(builder, f"llvm.fma.v{lanes}f64", numbers, [value, slope, offset])
        if checked:
            one = builder.shl(unit, digits)
            half = builder.lshr(one, unit)
            least = half
            most = builder.add(builder.shl(count, digits), half)
        else:
            least = llvm.splat(_I32, lanes, 0)
            most = count
        low, high = (builder.sitofp(end, numbers) for end in (least, most))
        # NaN becomes `low`, since comparisons with it are false.
        place = builder.select(builder.fcmp_ordered(">", place, low), place, low)
        place = builder.select(builder.fcmp_ordered("<", place, high), place, high)
        below = builder.fptosi(place, count.type)
        if checked:
            # Find places, which are multiples of 1 / one, within reach of a whole number.
            rest = builder.and_(builder.add(below, reach), builder.sub(one, unit))
            near = builder.icmp_unsigned("<=", rest, builder.add(reach, reach))
            near = builder.bitcast(near, ir.IntType(lanes))
            slot = cgutils.alloca_once_value(builder, builder.lshr(below, digits))
            some = builder.icmp_unsigned("!=", near, near.type(0))
            with builder.if_then(some, likely=False):
                nearest = builder.lshr(builder.add(below, half), digits)
                nearest = builder.select(builder.icmp_signed("<", nearest, count), nearest, count)
                before = builder.sub(nearest, unit)
                level = _levels(builder, before, given.type, levels, bins[9], line)
                past = builder.select(down, compare("<", given, level), compare(">", given, level))
                builder.store(builder.add(before, builder.zext(past, before.type)), slot)
            below = builder.load(slot)
        past = builder.xor(builder.fcmp_ordered(">", value, exempt), down)
        more = builder.icmp_signed(">", below, exempt_rank)
        least = builder.select(past, exempt_rank, below)
        rank = builder.select(nan, of_nan, builder.select(more, below, least))
        seen = builder.icmp_signed("==", rank, unfit)
        key = builder.add(first, builder.xor(rank, direction))
        if keys.element.width != 32:
            convert = builder.trunc if keys.element.width < 32 else builder.sext
            key = convert(key, ir.VectorType(keys.element, lanes))
        keys.store(key, at)
        words = (builder.bitcast(bits, ir.IntType(lanes)) for bits in (seen, nan))
        return [builder.zext(word, llvm.I64) for word in words]

    return bin_lanes


bin_vector = _bin(BIN_LANES, False)
bin_value = _bin(1, False)
bin_checked_vector = _bin(BIN_LANES, True)
bin_checked_value = _bin(1, True)
