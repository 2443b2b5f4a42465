"""Curves of many images of one axis.

The scan of images of two axes takes eight rows at once, of which a single one leaves seven idle.
With it, 4,096 rows of 256 points take 1.3 times as long. Long rows have a histogram each. Short
ones are compared with 64 thresholds at once, which takes a fraction of the time, since a histogram
has more bins than the row has points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.llvm import LANES, part_of
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.scans.layouts import tiles
from ecc_core._backends.cpu.sources import Block, Source, scratch
from ecc_core.errors import NAN_MESSAGE

Values = NDArray[np.int64]

MOST_COLUMNS = 1024  # For longer rows the scan of images of two axes is as fast.
MOST_COMPARED = 254  # The runs of a compared row, half as many as its points, fit in 8 bits.
COMPARISONS_A_BIN = 0.5  # Comparisons with 64 thresholds that take as long as a bin.
INT64 = np.dtype(np.int64)
INT8 = np.dtype(np.int8)
BLOCK_BYTES = 1 << 17  # A block has so many bytes of values and keys.


@llvm.operation()
def _count_runs(builder, keys, columns, last, at, runs):
    """Write the number of runs of keys that are at most ``last[at + i]`` to ``runs[at + i]``.

    It is the Euler characteristic of a row: that of each run of points is 1. There are 64 limits at
    once, and a run ends where a point within the limit is followed by one beyond it.
    """
    limits = last.load(at, LANES)
    count = cgutils.alloca_once_value(builder, llvm.splat(llvm.I8, LANES, 0))
    nowhere = ir.Constant(ir.VectorType(llvm.I1, LANES), None)
    inside = cgutils.alloca_once_value(builder, nowhere)

    def add(ends: Any) -> None:
        ones = builder.zext(ends, ir.VectorType(llvm.I8, LANES))
        builder.store(builder.add(builder.load(count), ones), count)

    with cgutils.for_range(builder, columns) as loop:
        key = llvm.each(builder, builder.load(keys.one(loop.index)), LANES)
        now = builder.icmp_unsigned("<=", key, limits)
        add(builder.and_(builder.load(inside), builder.not_(now)))
        builder.store(now, inside)
    add(builder.load(inside))
    runs.store(builder.load(count), at)


@kernel()
def _compare_rows(keys, columns, last, entered, runs, curves):
    """Write the curves of short rows of keys, which follow each other.

    Value k of a curve counts the runs of the first ``entered[k]`` keys; ``last[k]`` is the largest
    of these. `last` and `runs` have room for a multiple of 64 thresholds.
    """
    for i in range(len(curves)):
        row = part_of(keys, i * columns, columns)
        for first in range(0, last.size, LANES):
            _count_runs(row, columns, last, first, runs)
        curve = curves[i]
        for k in range(entered.size):
            curve[k] = runs[k] if entered[k] else 0


@kernel()
def _scan_rows(keys, columns, entered, histogram, curves):
    """Write the curves of rows of keys, which follow each other.

    A point counts 1 if it enters before the next one, less 1 if it enters after the one before; the
    last point counts as if one followed that never enters. Value k of a curve is what the first
    ``entered[k]`` keys count. The histogram has room for one key more than there are.
    """
    for i in range(len(curves)):
        row = part_of(keys, i * columns, columns)
        curve = curves[i]
        histogram[:] = 0
        key = row[0]
        after_last = np.int64(0)
        for x in range(1, columns):
            following = row[x]
            enters_before = np.int64(key < following)
            histogram[key] += enters_before - after_last
            key = following
            after_last = enters_before
        histogram[key] += 1 - after_last
        total = 0
        for bin in range(histogram.size):  # The histogram becomes the sums before each key.
            count = histogram[bin]
            histogram[bin] = total
            total += count
        for k in range(entered.size):
            curve[k] = histogram[np.uint64(entered[k])]


def _compares(columns: int, plan: Plan) -> bool:
    """Whether to compare each point with all thresholds is faster than a histogram."""
    if columns > MOST_COMPARED:
        return False
    vectors = ceil_div(plan.entered.size, LANES)
    return vectors == 1 or columns * vectors <= COMPARISONS_A_BIN * plan.top


def _last_keys(plan: Plan) -> NDArray[Any]:
    """Return the largest key below each threshold, if there is one, for whole vectors of them."""
    count = plan.entered.size
    last = np.zeros(ceil_div(count, LANES) * LANES, plan.key_dtype)
    last[:count] = np.maximum(plan.entered, 1) - 1
    return last


def _joined(source: Source) -> Source:
    """Return a source whose rows follow each other as one row."""
    return Source(source.array.reshape(1, 1, -1), source.name)


def write_rows(
    source: Source,
    mask: Source | None,
    plans: Sequence[Plan],
    nan: str,
    workers: int | None,
    out: Values,
) -> None:
    """Write the curves of the rows of a source (rows, 1, columns) to `out`, (rows, n)."""
    rows, _, columns = source.shape
    point_bytes = plans[-1].key_dtype.itemsize + source.token.itemsize
    height = max(1, BLOCK_BYTES // (point_bytes * columns))
    blocks = tiles(source.shape, (height, 1, columns))
    shown = [] if mask is None else [mask]
    in_one_row = all(given.array.flags.c_contiguous for given in [source, *shown])
    if in_one_row:  # Loaders work on the vectors of a row, which short ones do not fill.
        source = _joined(source)
        mask = None if mask is None else _joined(mask)

    def work(queue: Iterator[Block]) -> None:
        for block in queue:
            first, end = block.start[0], block.stop[0]
            box = block
            if in_one_row:
                box = Block((0, 0, first * columns), (1, 1, end * columns))
            for plan in plans:
                keys = scratch.take("rows", (end - first) * columns, plan.key_dtype)
                found_nan, unfit = load_box(plan, source, mask, box, keys, 0, (columns, columns))
                if found_nan and nan == "raise":
                    raise ValueError(NAN_MESSAGE)
                if not unfit:
                    break
            own = out[first:end]
            if _compares(columns, plan):
                last = _last_keys(plan)
                runs = scratch.take("runs", last.size, INT8)
                _compare_rows(keys, columns, last, plan.entered, runs, own)
                continue
            # One bin more than keys holds the sum of all.
            histogram = scratch.take("row histogram", plan.top + 2, INT64)
            _scan_rows(keys, columns, plan.entered, histogram, own)

    share(blocks, work, worker_count(workers, rows * columns, 1))
