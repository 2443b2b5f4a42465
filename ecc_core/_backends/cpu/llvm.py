"""LLVM IR for vectors, and the scalar intrinsics that numba lacks."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = [
    "I1",
    "I8",
    "I64",
    "call",
    "copy_within",
    "count_bits",
    "count_trailing_zeros",
    "data",
    "each",
    "fused_multiply_add",
    "load",
    "prefetch",
    "splat",
    "store",
]

I1, I8, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(64)


def data(context: Any, builder: Any, array_type: Any, value: Any) -> Any:
    return context.make_array(array_type)(context, builder, value).data


def splat(element: Any, lanes: int, value: int) -> Any:
    return ir.Constant(ir.VectorType(element, lanes), [ir.Constant(element, value)] * lanes)


def _size(element: Any) -> int:
    """Bytes of an element."""
    widths = {ir.HalfType: 2, ir.FloatType: 4, ir.DoubleType: 8}
    return widths.get(type(element)) or element.width // 8


def load(builder: Any, pointer: Any, offset: Any, element: Any, lanes: int) -> Any:
    vector = ir.VectorType(element, lanes).as_pointer()
    address = builder.bitcast(builder.gep(pointer, [offset]), vector)
    return builder.load(address, align=_size(element))


def store(builder: Any, value: Any, pointer: Any, offset: Any) -> None:
    address = builder.bitcast(builder.gep(pointer, [offset]), value.type.as_pointer())
    builder.store(value, address, align=_size(value.type.element))


def call(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    function = builder.module.globals.get(name) or ir.Function(
        builder.module, ir.FunctionType(result, [a.type for a in arguments]), name
    )
    return builder.call(function, arguments)


def each(builder: Any, scalar: Any, lanes: int) -> Any:
    """A vector of one number."""
    vector = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    vector = builder.insert_element(vector, scalar, I64(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(vector, vector, zeros)


@intrinsic
def count_trailing_zeros(typingctx: Any, word: Any) -> Any:
    """Position of the lowest set bit of a non-zero uint64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(I1, 1))

    return types.int64(types.uint64), codegen


@intrinsic
def count_bits(typingctx: Any, word: Any) -> Any:
    """Number of bits that are set in a uint64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@intrinsic
def copy_within(typingctx: Any, array: Any, source: Any, target: Any, count: Any) -> Any:
    """Copy `count` elements of an array to others of its elements."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, source, target, count = args
        start = data(context, builder, sig.args[0], array)
        size = context.get_abi_sizeof(context.get_value_type(sig.args[0].dtype))
        there, here = (builder.gep(start, [at]) for at in (target, source))
        cgutils.raw_memcpy(builder, there, here, count, size)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, types.intp), codegen


@intrinsic
def fused_multiply_add(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c of float64, rounded once."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


@intrinsic
def prefetch(typingctx: Any, address: Any) -> Any:
    """Ask for the cache line at an address, which need not be one that may be read."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        ask_for_line(builder, builder.inttoptr(args[0], cgutils.voidptr_t))
        return context.get_dummy_value()

    return types.void(types.intp), codegen


def ask_for_line(builder: Any, pointer: Any) -> None:
    read, keep, data = (ir.Constant(ir.IntType(32), i) for i in (0, 3, 1))
    call(builder, "llvm.prefetch.p0", ir.VoidType(), [pointer, read, keep, data])


def prefetch_line(builder: Any, pointer: Any, offset: Any, ahead: int) -> None:
    """Ask for the cache line `ahead` bytes behind an element."""
    here = builder.bitcast(builder.gep(pointer, [offset]), cgutils.voidptr_t)
    ask_for_line(builder, builder.gep(here, [I64(ahead)]))
