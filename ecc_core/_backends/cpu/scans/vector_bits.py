"""Words of bits that tell which of 64 keys are small enough."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.scans.vector_planes import LANES

__all__ = ["count_ones", "mark_keys"]


@intrinsic
def mark_keys(typingctx: Any, keys: Any, words: Any, bound: Any, bits: Any) -> Any:
    """Set bit i of ``bits[w]`` where ``keys[64 * w + i] <= bound``, for the first `words` words."""
    sig = types.void(keys, types.intp, types.uint64, bits)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        keys, words, bound, bits = args
        element = context.get_value_type(sig.args[0].dtype)
        source = llvm.data(context, builder, sig.args[0], keys)
        target = llvm.data(context, builder, sig.args[3], bits)
        narrow = bound if element.width == 64 else builder.trunc(bound, element)
        limit = llvm.each(builder, narrow, LANES)
        with cgutils.for_range(builder, words) as loop:
            at = builder.mul(loop.index, llvm.I64(LANES))
            row = llvm.load(builder, source, at, element, LANES)
            word = builder.bitcast(builder.icmp_unsigned("<=", row, limit), llvm.I64)
            builder.store(word, builder.gep(target, [loop.index]))
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def count_ones(typingctx: Any, word: Any) -> Any:
    """Number of ones among the bits of a uint64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen
