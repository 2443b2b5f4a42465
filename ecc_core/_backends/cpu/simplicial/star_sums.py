"""Signs of the simplices that belong to each point, by the stars of points, in many orders at once.

Whether a point is the last one of an edge or of a triangle depends on which of its neighbours come
before it. So the signs that belong to a point follow from one comparison with each neighbour, in
LANES orders or twice as many: a triangle belongs to it if two neighbours come before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.simplicial.counts import LANES
from ecc_core._backends.cpu.simplicial.stars import MOST_NEIGHBOURS, entry, length_of

SUMS = MOST_NEIGHBOURS + 1
"""Row of memory, behind those of the neighbours, for the signs that belong to a point."""
ROWS_OF_MEMORY = SUMS + 1


def _star_summer(lanes: int) -> Any:
    """Return the operation that sums the signs of a star in so many orders."""

    @llvm.operation(types.uint64)
    def sum_star(builder, stars, p, codes, limits, masks):
        """Write the signs that belong to a point to row SUMS of `masks`.

        Returns in which orders they are not 0, as bits.
        """
        starts, neighbours, triangles = stars

        def row(number: Any) -> Any:
            return builder.mul(number, llvm.I64(lanes))

        own = codes.load(row(p), lanes)
        # Of points with equal codes, the one with the lower number comes first.
        limits.store(own, row(llvm.I64(0)))
        limits.store(builder.add(own, llvm.splat(codes.element, lanes, 1)), row(llvm.I64(1)))
        slot = cgutils.alloca_once_value(builder, llvm.splat(masks.element, lanes, 1))
        start = builder.load(starts.one(p))
        with cgutils.for_range(builder, length_of(builder, neighbours, start)) as loop:
            place = builder.add(loop.index, llvm.I64(1))
            number = entry(builder, neighbours, builder.add(start, place))
            other = builder.sub(number, llvm.I64(1))
            is_lower = builder.zext(builder.icmp_signed("<", other, p), llvm.I64)
            limit = limits.load(row(is_lower), lanes)
            is_before = builder.icmp_unsigned("<", codes.load(row(other), lanes), limit)
            mask = builder.sext(is_before, masks_type)  # It is -1 where it comes before.
            masks.store(mask, row(place))
            builder.store(builder.add(builder.load(slot), mask), slot)
        with cgutils.for_range(builder, length_of(builder, triangles, start)) as loop:
            place = builder.add(loop.index, llvm.I64(1))
            pair = entry(builder, triangles, builder.add(start, place))
            places = builder.lshr(pair, llvm.I64(8)), builder.and_(pair, llvm.I64(255))
            sides = [masks.load(row(place), lanes) for place in places]
            builder.store(builder.sub(builder.load(slot), builder.and_(*sides)), slot)
        total = builder.load(slot)
        masks.store(total, row(llvm.I64(SUMS)))
        bits = builder.icmp_signed("!=", total, ir.Constant(total.type, None))
        return builder.zext(builder.bitcast(bits, ir.IntType(lanes)), llvm.I64)

    masks_type = ir.VectorType(llvm.I8, lanes)
    return sum_star


_sum_star, _sum_twice = (_star_summer(lanes) for lanes in (LANES, 2 * LANES))


@kernel()
def add_stars(stars, codes, shift, orders, limits, masks, histograms):
    """Add the signs of all simplices to the bins of their points, of the first `orders`.

    `codes` are (points, LANES or twice as many), and less than the largest number of their dtype.
    The bin is the code divided by ``2**shift``, rounded up. `limits` (2 * lanes), of the dtype of
    codes, and `masks` (ROWS_OF_MEMORY, lanes) of int8 are memory.
    """
    most = (1 << shift) - 1
    wanted = llvm.ALL >> np.uint64(64 - orders)
    lanes = codes.shape[1]
    for p in range(len(codes)):
        if lanes == LANES:
            word = _sum_star(stars, p, codes, limits, masks) & wanted
        else:
            word = _sum_twice(stars, p, codes, limits, masks) & wanted
        while word != llvm.NONE:
            lane = llvm.count_trailing_zeros(word)
            word &= word - llvm.ONE
            bin_ = (np.int64(codes[p, lane]) + most) >> shift
            histograms[lane, bin_] += masks[SUMS, lane]
