"""Words of 64 bits that tell how 64 keys compare, and stores of 64 equal numbers.

numba does not make words of loops over comparisons, and loops over runs of labels are mispredicted
at their ends: 64 numbers at once take half the time, and less than one store after the other.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from ecc_core._backends.cpu import llvm

__all__ = ["WORD_LANES", "at_least", "equal", "fill_vector", "small_keys"]

WORD_LANES = 64


@intrinsic
def small_keys(typingctx: Any, keys: Any, at: Any, bound: Any) -> Any:
    """Return a word whose bit i tells whether ``keys[at + i] <= bound``."""
    sig = types.uint64(keys, types.intp, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        keys, at, bound = args
        element = context.get_value_type(sig.args[0].dtype)
        source = llvm.data(context, builder, sig.args[0], keys)
        narrow = bound if element.width == 64 else builder.trunc(bound, element)
        row = llvm.load(builder, source, at, element, WORD_LANES)
        limit = llvm.each(builder, narrow, WORD_LANES)
        return builder.bitcast(builder.icmp_unsigned("<=", row, limit), llvm.I64)

    return sig, codegen


def _comparison(relation: str) -> Any:
    @intrinsic
    def compare(typingctx: Any, keys: Any, at: Any, there: Any) -> Any:
        """Return a word whose bit i compares ``keys[at + i]`` with ``keys[there + i]``."""

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            source = llvm.data(context, builder, sig.args[0], args[0])
            element = context.get_value_type(sig.args[0].dtype)
            row, other = (llvm.load(builder, source, i, element, WORD_LANES) for i in args[1:])
            return builder.bitcast(builder.icmp_unsigned(relation, row, other), llvm.I64)

        return types.uint64(keys, types.intp, types.intp), codegen

    return compare


at_least, equal = _comparison(">="), _comparison("==")


@intrinsic
def fill_vector(typingctx: Any, row: Any, first: Any, value: Any) -> Any:
    """Set 64 elements, from ``row[first]`` on, to an unsigned value."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        row, first, value = args
        data = llvm.data(context, builder, sig.args[0], row)
        llvm.store(builder, llvm.each(builder, value, WORD_LANES), data, first)
        return context.get_dummy_value()

    return types.void(row, types.intp, row.dtype), codegen
