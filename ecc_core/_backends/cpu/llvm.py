"""LLVM IR for vectors, the intrinsics that numba lacks, and views that count no references.

Among them are words of 64 bits that tell how 64 keys compare, since numba does not turn loops over
comparisons into words, and stores of 64 equal numbers. These fill runs of labels in half the time
of loops, whose ends the processor predicts wrongly.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

LANES = 64
ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
ONE = np.uint64(1)
NONE = np.uint64(0)

I1 = ir.IntType(1)
I8 = ir.IntType(8)
I64 = ir.IntType(64)


def splat(element: Any, lanes: int, value: float) -> Any:
    return ir.Constant(ir.VectorType(element, lanes), [ir.Constant(element, value)] * lanes)


def _size(element: Any) -> int:
    """Return the number of bytes of an element."""
    widths = {ir.HalfType: 2, ir.FloatType: 4, ir.DoubleType: 8}
    return widths.get(type(element)) or element.width // 8


def call(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    function = builder.module.globals.get(name) or ir.Function(
        builder.module, ir.FunctionType(result, [a.type for a in arguments]), name
    )
    return builder.call(function, arguments)


def each(builder: Any, scalar: Any, lanes: int) -> Any:
    """Return a vector that repeats one number."""
    vector = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    vector = builder.insert_element(vector, scalar, I64(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(vector, vector, zeros)


def lanes_of(builder: Any, word: Any) -> Any:
    """Return the bits of a word of 64 bits as a vector.

    A bitcast does the same, but LLVM makes code of it that moves each bit on its own.
    """
    word_bytes = builder.bitcast(each(builder, word, 8), ir.VectorType(I8, LANES))
    # Fast shuffles stay within 16 bytes, which hold the 8 bytes of the word twice.
    source = [16 * (lane // 16) + lane // 8 for lane in range(LANES)]
    indices = ir.Constant(ir.VectorType(ir.IntType(32), LANES), source)
    bits = ir.Constant(ir.VectorType(I8, LANES), [1 << lane % 8 for lane in range(LANES)])
    spread = builder.and_(builder.shuffle_vector(word_bytes, word_bytes, indices), bits)
    return builder.icmp_unsigned("!=", spread, splat(I8, LANES, 0))


class Elements:
    """The elements of an array, as operations see them."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        array = context.make_array(kind)(context, builder, value)
        self.context = context
        self.builder = builder
        self.pointer = array.data
        self.dtype = kind.dtype
        self.element = array.data.type.pointee
        self.shape = cgutils.unpack_tuple(builder, array.shape)

    def load(self, at: Any, lanes: int) -> Any:
        """Return a vector of elements."""
        vector = ir.VectorType(self.element, lanes).as_pointer()
        address = self.builder.bitcast(self.one(at), vector)
        return self.builder.load(address, align=_size(self.element))

    def store(self, value: Any, at: Any) -> None:
        """Write a vector of elements."""
        address = self.builder.bitcast(self.one(at), value.type.as_pointer())
        self.builder.store(value, address, align=_size(self.element))

    def one(self, at: Any) -> Any:
        """Return the pointer to an element."""
        return self.builder.gep(self.pointer, [at])


def operation(result: Any = types.void) -> Callable[[Callable[..., Any]], Any]:
    """Make a function that emits LLVM IR an operation that kernels call.

    The function takes the builder and the arguments: arrays as `Elements`, tuples as lists, named
    tuples as such, and integers as values of 64 bits. What it returns, or a list of what a tuple
    holds, is of type `result`, which may be a function of the types of the arguments.
    """

    def decorate(emit: Callable[..., Any]) -> Any:
        @wraps(emit)
        def define(typingctx: Any, *kinds: Any) -> Any:
            taken = [_as_64_bits(types.unliteral(kind)) for kind in kinds]
            returned = result if isinstance(result, types.Type) else result(*taken)

            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                given = [
                    _given(context, builder, kind, value)
                    for kind, value in zip(sig.args, args, strict=True)
                ]
                value = emit(builder, *given)
                if value is None:
                    return context.get_dummy_value()
                if isinstance(value, list):
                    return context.make_tuple(builder, sig.return_type, value)
                return value

            return returned(*taken), codegen

        return intrinsic(define)

    return decorate


def _as_64_bits(kind: Any) -> Any:
    """Return the type of an argument, that of 64 bits for an integer."""
    is_short = isinstance(kind, types.Integer) and kind != types.uint64
    return types.intp if is_short else kind


def _given(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return an argument as the function that emits the code takes it."""
    if isinstance(kind, types.Array):
        return Elements(context, builder, kind, value)
    if isinstance(kind, types.BaseTuple):
        members = zip(kind, cgutils.unpack_tuple(builder, value), strict=True)
        given = [_given(context, builder, *member) for member in members]
        is_named = isinstance(kind, types.BaseNamedTuple)
        return kind.instance_class(*given) if is_named else given
    return value


def _view(builder: Any, like: Elements, address: Any, shape: list[Any]) -> Any:
    """Return a contiguous array at an address of 64 bits. It has no owner.

    `numba.carray` makes the same, but is compiled for each kernel and type of array.
    """
    kind = types.Array(like.dtype, len(shape), "C")
    view = like.context.make_array(kind)(like.context, builder)
    size = I64(_size(like.element))
    strides: list[Any] = []
    step = size
    for length in reversed(shape):
        strides.insert(0, step)
        step = builder.mul(step, length)
    data = builder.inttoptr(address, like.pointer.type)
    populate_array(view, data, shape, strides, size, meminfo=None)
    return view._getvalue()


def _address(builder: Any, array: Elements) -> Any:
    return builder.ptrtoint(array.pointer, I64)


def _row(*kinds: Any) -> Any:
    """Return the type of a row of the elements of the array among the arguments."""
    (array,) = (kind for kind in kinds if isinstance(kind, types.Array))
    return types.Array(array.dtype, 1, "C")


@operation(_row)
def array_at(builder, address, count, like):
    """Return the elements at an address, which have the dtype of the array `like`."""
    return _view(builder, like, address, [count])


def _row_in_c_order(array: Any, *_: Any) -> Any:
    return _row(_in_c_order(array))


@operation(_row_in_c_order)
def part_of(builder, array, at, count):
    """Return some elements of an array as a view without an owner, since slices count references.

    The array is in C order, as for :func:`bare`. The view may begin before the array, if the memory
    there is valid.
    """
    offset = builder.mul(at, I64(_size(array.element)))
    return _view(builder, array, builder.add(_address(builder, array), offset), [count])


def _in_c_order(array: Any) -> Any:
    """Return the type of an array in C order, which `bare` and `part_of` require."""
    if array.layout != "C":
        raise TypingError(f"views without an owner must be of arrays in C order, got {array}")
    return types.Array(array.dtype, array.ndim, "C")


@operation(_in_c_order)
def bare(builder, array):
    """Return an array without an owner: numba counts references to other arrays at every call.

    The array is in C order. Others are refused, since elements of other memory would be read.
    """
    return _view(builder, array, _address(builder, array), array.shape)


@operation(types.int64)
def count_trailing_zeros(builder, word):
    """Return the position of the lowest set bit of a non-zero uint64."""
    return builder.cttz(word, ir.Constant(I1, 1))


@operation(types.int64)
def count_bits(builder, word):
    """Return the number of set bits of a uint64."""
    return builder.ctpop(word)


@operation()
def copy_within(builder, array, source, target, count):
    """Copy `count` elements of an array from `source` to `target` within it, without overlap."""
    size = _size(array.element)
    cgutils.raw_memcpy(builder, array.one(target), array.one(source), count, size)


@operation(types.float64)
def fused_multiply_add(builder, a, b, c):
    """Return a * b + c of float64, rounded once."""
    return builder.fma(a, b, c)


@operation()
def prefetch(builder, address):
    """Ask for the cache line at an address, which need not be one that may be read."""
    pointer = builder.inttoptr(address, cgutils.voidptr_t)
    read, keep, data = (ir.Constant(ir.IntType(32), i) for i in (0, 3, 1))
    call(builder, "llvm.prefetch.p0", ir.VoidType(), [pointer, read, keep, data])


def _repeated(builder: Any, value: Any, element: Any) -> Any:
    """Return a vector of 64 lanes that repeats a value, truncated to the type of `element`."""
    narrow = value if element.width == value.type.width else builder.trunc(value, element)
    return each(builder, narrow, LANES)


@operation(types.uint64)
def small_keys(builder, keys, at, bound):
    """Return a word whose bit i tells whether ``keys[at + i] <= bound``."""
    limit = _repeated(builder, bound, keys.element)
    small = builder.icmp_unsigned("<=", keys.load(at, LANES), limit)
    return builder.bitcast(small, I64)


@operation()
def copy_vector(builder, row, at, flip, shift, out):
    """Copy 64 elements from ``row[at]`` on to the same place of `out`, which may be wider.

    They become ``(value ^ flip) + shift``. For rows of 128 bytes the loop that LLVM vectorizes
    takes 1.5 times as long, since it compares the addresses and the ends of each row.
    """
    values = builder.xor(row.load(at, LANES), _repeated(builder, flip, row.element))
    if out.element.width > row.element.width:
        values = builder.zext(values, ir.VectorType(out.element, LANES))
    out.store(builder.add(values, _repeated(builder, shift, out.element)), at)


def _comparison(relation: str) -> Any:
    @operation(types.uint64)
    def compare(builder, keys, at, there):
        """Return a word whose bit i tells how ``keys[at + i]`` and ``keys[there + i]`` compare."""
        pair = keys.load(at, LANES), keys.load(there, LANES)
        return builder.bitcast(builder.icmp_unsigned(relation, *pair), I64)

    return compare


at_least = _comparison(">=")
equal = _comparison("==")


@operation()
def fill_vector(builder, row, first, value):
    """Set 64 elements, from ``row[first]`` on, to an unsigned value."""
    row.store(_repeated(builder, value, row.element), first)
