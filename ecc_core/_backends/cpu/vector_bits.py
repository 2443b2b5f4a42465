"""Words of 64 bits that tell which of 64 keys are small enough."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from ecc_core._backends.cpu import llvm

__all__ = ["WORD_LANES", "count_ones", "small_keys"]

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


@intrinsic
def count_ones(typingctx: Any, word: Any) -> Any:
    """Return the number of ones among the bits of a uint64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen
