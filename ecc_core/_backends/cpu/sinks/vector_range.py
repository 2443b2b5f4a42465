"""Smallest and largest of many values at once."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ecc_core._backends.cpu import llvm

__all__ = ["RANGE_LANES", "widen_range"]

RANGE_LANES = 32


def _limits(dtype: Any, element: Any) -> tuple[Any, Any]:
    """Return a constant that no value is above, and one that no value is below."""
    if isinstance(element, ir.IntType):
        bits = element.width
        if dtype.signed:
            return element((1 << (bits - 1)) - 1), element(-(1 << (bits - 1)))
        return element((1 << bits) - 1), element(0)
    return element(float("inf")), element(float("-inf"))


@intrinsic
def widen_range(
    typingctx: Any, values: Any, shown: Any, at: Any, turns: Any, masked: Any, lows: Any, highs: Any
) -> Any:
    """Widen the lanes of `lows` and `highs` by 32 times `turns` finite values from `at` on.

    With `masked`, only by values whose byte of `shown` is not 0. Returns whether a value was NaN.
    """
    sig = types.uint64(values, shown, types.intp, types.intp, types.boolean, lows, highs)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _, _, at, turns, masked, _, _ = args
        dtype = sig.args[0].dtype
        element = context.get_value_type(dtype)
        flags = ir.VectorType(llvm.I1, RANGE_LANES)
        source, mask, low_data, high_data = (
            llvm.data(context, builder, sig.args[i], args[i]) for i in (0, 1, 5, 6)
        )
        integer = isinstance(element, ir.IntType)
        none = ir.Constant(flags, [0] * RANGE_LANES)
        ends = [llvm.each(builder, end, RANGE_LANES) for end in _limits(dtype, element)]
        low, high = (
            cgutils.alloca_once_value(
                builder, llvm.load(builder, data, llvm.I64(0), element, RANGE_LANES)
            )
            for data in (low_data, high_data)
        )
        bad = cgutils.alloca_once_value(builder, none)
        hidden = llvm.each(builder, builder.not_(builder.trunc(masked, llvm.I1)), RANGE_LANES)

        def compare(sign: str, a: Any, b: Any) -> Any:
            if not integer:
                return builder.fcmp_ordered(sign, a, b)
            return (builder.icmp_signed if dtype.signed else builder.icmp_unsigned)(sign, a, b)

        with cgutils.for_range(builder, turns) as loop:
            place = builder.add(at, builder.mul(loop.index, llvm.I64(RANGE_LANES)))
            value = llvm.load(builder, source, place, element, RANGE_LANES)
            with builder.if_else(builder.trunc(masked, llvm.I1)) as (then, otherwise):
                with then:
                    kept_bytes = llvm.load(builder, mask, place, llvm.I8, RANGE_LANES)
                    some = builder.icmp_unsigned(
                        "!=", kept_bytes, llvm.splat(llvm.I8, RANGE_LANES, 0)
                    )
                    with_mask = builder.basic_block
                with otherwise:
                    without_mask = builder.basic_block
            kept = builder.phi(flags)
            kept.add_incoming(some, with_mask)
            kept.add_incoming(hidden, without_mask)
            if not integer:
                nan = builder.and_(kept, builder.fcmp_unordered("uno", value, value))
                builder.store(builder.or_(builder.load(bad), nan), bad)
                finite = builder.and_(compare("<", value, ends[0]), compare(">", value, ends[1]))
                kept = builder.and_(kept, finite)
            for slot, end, sign in ((low, ends[0], "<"), (high, ends[1], ">")):
                seen = builder.select(kept, value, end)
                best = builder.load(slot)
                builder.store(builder.select(compare(sign, seen, best), seen, best), slot)
        llvm.store(builder, builder.load(low), low_data, llvm.I64(0))
        llvm.store(builder, builder.load(high), high_data, llvm.I64(0))
        word = builder.bitcast(builder.load(bad), ir.IntType(RANGE_LANES))
        return builder.zext(word, llvm.I64)

    return sig, codegen
