"""Signed numbers of the simplices that enter with each point, for several orders of the points.

A simplex belongs to its last point. So a curve is a histogram of the points, each weighted by
+1 for itself, -1 for the edges that belong to it, +1 for its triangles and so on. On smooth shapes
this sum is zero for almost all points.

The order of the points is given by codes, for LANES orders at a time: their codes of a point are
next to each other, so that one simplex is compared in all of them by a few vector instructions.
Points with equal codes enter in the order of their numbers; which of them a simplex belongs to does
not change the histogram, since they share a bin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types

from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.compiling import kernel

LANES = 32  # So many 16-bit codes of a point fill a cache line.
UNROLLED = 4  # Simplices of 2 to so many points have operations of their own.


def _adder(size: int) -> Any:
    """Return the operation that adds a weight to the sum of the last point of a simplex."""

    @llvm.operation()
    def add_to_last(builder, rows, row, weight, codes, sums):
        lanes = ir.IntType(64)(LANES)
        of_floats = isinstance(codes.dtype, types.Float)
        compare = builder.fcmp_ordered if of_floats else builder.icmp_unsigned
        first = builder.mul(row, ir.IntType(64)(size))
        places = []
        for j in range(size):
            place = builder.add(first, ir.IntType(64)(j))
            number = builder.load(rows.one(place))
            number = builder.sext(number, lanes.type) if number.type != lanes.type else number
            places.append(builder.mul(number, lanes))
        best = codes.load(places[0], LANES)
        is_last = [llvm.splat(llvm.I1, LANES, 1)]
        for place in places[1:]:
            own = codes.load(place, LANES)
            later = compare(">=", own, best)
            best = builder.select(later, own, best)
            is_last = [builder.and_(mask, builder.not_(later)) for mask in is_last]
            is_last.append(later)
        if sums.element != weight.type:
            weight = builder.trunc(weight, sums.element)  # Operations get integers of 64 bits.
        each = llvm.each(builder, weight, LANES)
        nothing = ir.Constant(each.type, None)
        add = builder.fadd if isinstance(sums.dtype, types.Float) else builder.add
        for mask, place in zip(is_last, places, strict=True):
            total = add(sums.load(place, LANES), builder.select(mask, each, nothing))
            sums.store(total, place)

    return add_to_last


_add_edge, _add_triangle, _add_tetrahedron = (_adder(size) for size in (2, 3, UNROLLED))


@kernel()
def add_simplices(rows, weights, step, codes, sums):
    """Add the weight of each simplex to the sum of its last point, in every order.

    The points of each row increase. The weight of row i is ``weights[i * step]``, in the dtype of
    the sums; `codes`, which are unsigned or finite floats, and `sums` are (points, LANES).
    """
    size = rows.shape[1]
    if size == 2:
        for i in range(len(rows)):
            _add_edge(rows, i, weights[i * step], codes, sums)
    elif size == 3:
        for i in range(len(rows)):
            _add_triangle(rows, i, weights[i * step], codes, sums)
    elif size == UNROLLED:
        for i in range(len(rows)):
            _add_tetrahedron(rows, i, weights[i * step], codes, sums)
    else:
        for i in range(len(rows)):
            for lane in range(LANES):
                last = rows[i, 0]
                for j in range(1, size):
                    if codes[rows[i, j], lane] >= codes[last, lane]:
                        last = rows[i, j]
                sums[last, lane] += weights[i * step]


@llvm.operation(types.uint64)
def _nonzero(builder, sums, point):
    """Return a word whose bit i tells whether the sum of a point in order i is not 0."""
    own = sums.load(builder.mul(point, llvm.I64(LANES)), LANES)
    differs = builder.fcmp_unordered if isinstance(sums.dtype, types.Float) else builder.icmp_signed
    bits = differs("!=", own, ir.Constant(own.type, None))
    return builder.zext(builder.bitcast(bits, ir.IntType(LANES)), llvm.I64)


@kernel()
def add_sums(codes, sums, shift, lanes, histograms):
    """Add the sums of the points to the bins of their codes, of the first `lanes` orders.

    The bin is the code divided by ``2**shift``, rounded up.
    """
    most = (1 << shift) - 1
    wanted = np.uint64((1 << lanes) - 1)
    for p in range(len(sums)):
        word = _nonzero(sums, p) & wanted
        while word != llvm.NONE:
            lane = llvm.count_trailing_zeros(word)
            word &= word - llvm.ONE
            bin_ = (np.int64(codes[p, lane]) + most) >> shift
            histograms[lane, bin_] += sums[p, lane]


@kernel()
def count_simplices(rows, counts):
    """Add to each point the number of its simplices."""
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            counts[rows[i, j]] += 1
