"""Vector intrinsics of the transform's bit planes, as portable LLVM vector IR.

A *plane* holds one bit for each of 64 points that follow each other along the last axis.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ecc_core._backends.cpu.llvm import data as data_of
from ecc_core._backends.cpu.llvm import load, splat, store

__all__ = ["LANES", "critical_planes", "pack_word"]

LANES = 8  # planes handled together: one 512-bit vector

_I8, _I64 = ir.IntType(8), ir.IntType(64)


@intrinsic
def pack_word(typingctx: Any, pixels: Any, start: Any) -> Any:
    """The plane of ``pixels[start:start + 64] != 0``, for uint8 pixels."""
    sig = types.uint64(pixels, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = data_of(context, builder, sig.args[0], args[0])
        pixels = load(builder, data, args[1], _I8, 64)
        return builder.bitcast(builder.icmp_unsigned("!=", pixels, splat(_I8, 64, 0)), _I64)

    return sig, codegen


def _each(builder: Any, scalar: Any) -> Any:
    """A vector with `scalar` in every lane."""
    vector = ir.Constant(ir.VectorType(_I64, LANES), ir.Undefined)
    vector = builder.insert_element(vector, scalar, _I64(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(vector, vector, zeros)


def _coefficient_planes(builder: Any, points: list[Any], edges: list[Any]) -> list[Any]:
    """Planes of the coefficients of 8 x 64 points: not zero, negative, equal to -2.

    `points` tells for a point, its neighbour in the next row, the one in the next slice and the one
    in both whether they are set, `edges` whether their neighbours along the last axis are, too. The
    coefficient is 1 - (edges) + (squares) - (cube) of the cells that span to set neighbours alone,
    which is 1 - (Euler characteristic of a complex on 3 vertices), so it lies in -2..1.
    """
    both, either, odd = builder.and_, builder.or_, builder.xor

    def no(plane: Any) -> Any:
        return odd(plane, splat(_I64, LANES, -1))

    (here, row, depth, row_depth), (x, x_row, x_depth, x_row_depth) = points, edges
    y, z = both(here, row), both(here, depth)
    xy, xz, yz = both(x, x_row), both(x, x_depth), both(both(y, depth), row_depth)
    cube = both(both(xy, x_depth), x_row_depth)
    alone = both(here, no(either(either(x, y), z)))
    hollow = both(both(both(xy, xz), yz), no(cube))
    positive = either(alone, hollow)
    parity = odd(odd(odd(here, x), odd(y, z)), odd(odd(xy, xz), odd(yz, cube)))
    double = both(both(both(x, y), z), no(either(either(xy, xz), yz)))
    negative = either(both(parity, no(positive)), double)
    return [either(positive, negative), negative, double]


@intrinsic
def critical_planes(
    typingctx: Any,
    points: Any,
    edges: Any,
    at: Any,
    row: Any,
    depth: Any,
    has_row: Any,
    has_depth: Any,
    out: Any,
    place: Any,
    stride: Any,
) -> Any:
    """Coefficients of the points in the planes ``points[at:at + 8]``, for one orthant.

    `row` and `depth` are the distances to the planes of the neighbours in the next row and slice;
    ``has_row`` and ``has_depth`` are all ones, or zero where the image has no such axis. The planes
    of :func:`_coefficient_planes` are written to ``out[place + i * stride:][:8]``. Returns 8 bits:
    which of the 8 planes have a coefficient that is not zero.
    """
    sig = types.uint64(
        points,
        edges,
        types.intp,
        types.intp,
        types.intp,
        types.uint64,
        types.uint64,
        out,
        types.intp,
        types.intp,
    )

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        points, edges, at, row, depth, has_row, has_depth, out, place, stride = args
        has_row, has_depth = _each(builder, has_row), _each(builder, has_depth)
        beyond = builder.add(at, row)
        offsets = [at, beyond, builder.add(at, depth), builder.add(beyond, depth)]
        present = [None, has_row, has_depth, builder.and_(has_row, has_depth)]

        def neighbours(array: Any, array_type: Any) -> list[Any]:
            data = data_of(context, builder, array_type, array)
            planes = [load(builder, data, offset, _I64, LANES) for offset in offsets]
            return [
                plane if mask is None else builder.and_(plane, mask)
                for plane, mask in zip(planes, present, strict=True)
            ]

        planes = _coefficient_planes(
            builder, neighbours(points, sig.args[0]), neighbours(edges, sig.args[1])
        )
        target = data_of(context, builder, sig.args[7], out)
        for i, plane in enumerate(planes):
            store(builder, plane, target, builder.add(place, builder.mul(stride, _I64(i))))
        nonzero = builder.icmp_unsigned("!=", planes[0], splat(_I64, LANES, 0))
        return builder.zext(builder.bitcast(nonzero, ir.IntType(LANES)), _I64)

    return sig, codegen
