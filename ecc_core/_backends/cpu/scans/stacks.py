"""Volumes, and stacks of images of one shape, block by block: curves and coefficients."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.scans.blocks import Array, Scanner
from ecc_core._backends.cpu.scans.layouts import cut
from ecc_core._backends.cpu.sources import Block, DirectionalSource, Source, memory_order
from ecc_core._request.filtration import Direction

Values = NDArray[np.int64]

INTERLEAVED = 16  # Images that are read together where their points lie side by side.
SHORT_ROW = 48  # Rows of fewer points do not fill vectors.
# Rows of 32 points of 4 bytes are scanned where they lie. Their keys fill only half of a vector,
# but to copy columns instead takes longer, since the steps along them are a power of two.
HALF_ROW = 32
HALF_ROW_BYTES = 4
BLOCKS_A_TRIAL = 16  # A plan is given up once it has failed for more than one of so many blocks.
NO_HISTOGRAM = np.zeros((1, 1), np.int64)


def parts_of(
    image: Array,
    mask: Array | None,
    order: list[int],
    flips: Sequence[slice],
    key_size: int,
    direction: Direction | None = None,
) -> Iterator[tuple[slice, Source, Source | None]]:
    """Yield images of (slices, rows, columns), after their place in the batch and before masks.

    Axes are taken in an `order` with `flips`, those of :func:`spatial_order`. Images of one or two
    axes come as one stack if blocks hold whole ones, or if the images are interleaved in memory.
    """
    count = image.shape[0]
    spatial = image.ndim - 1

    def lay(array: Array) -> Array:
        if order:
            array = array.transpose(0, *order)[(slice(None), *flips)]
        return array if spatial > 1 else array[:, None, :]

    view = lay(image)
    shown = None if mask is None else lay(np.broadcast_to(mask, image.shape))
    step = 1
    if spatial < 3:
        whole = cut((count, *view.shape[1:]), key_size, 2)[0].stop[1:] == view.shape[1:]
        step = count if whole or Source(view).interleaved else 1
    for i in range(0, count, step):
        part: Any = i if spatial == 3 else slice(i, i + step)
        own = view[part]
        source = DirectionalSource(own, direction) if direction else Source(own)
        yield slice(i, i + step), source, None if shown is None else Source(shown[part], "mask")


def spatial_order(image: Array) -> tuple[list[int], list[slice]]:
    """Return the axes to take for slices, rows and columns, behind the batch axis, and flips.

    Both are empty if the axes stay as they are. The curve does not change when axes are swapped or
    reversed, so that rows can go along the memory. If such rows were short, they go along the axis
    of the shortest steps that is long enough, or else along the longest axis. Of several longest
    axes it is the last one, whose rows need not be copied.
    """
    size = image.itemsize
    if image.flags.c_contiguous and _is_long(image.shape[-1], size):
        return [], []
    order, flips = memory_order(image)
    lengths = [image.shape[axis] for axis in order]
    long = [place for place, length in enumerate(lengths) if _is_long(length, size)]
    if long:
        rows = long[-1]
    else:
        longest = max(lengths)
        rows = max(place for place, length in enumerate(lengths) if length == longest)
    order.append(order.pop(rows))
    flips = (*flips[:rows], *flips[rows + 1 :], flips[rows])
    return [axis + 1 for axis in order], list(flips)


def _is_long(row: int, size: int) -> bool:
    """Return whether rows of so many points of this size need not be copied to be scanned fast."""
    return row >= SHORT_ROW or (row == HALF_ROW and size >= HALF_ROW_BYTES)


def cumulate(
    histograms: NDArray[Any],
    rows: NDArray[Any] | None,
    descending: bool,
    sign: int,
    entered: NDArray[np.int64],
    curves: Values,
) -> None:
    """Add to each curve the sums of the histogram in its row, times `sign`.

    Value i of a curve is the sum over the first ``entered[i]`` keys. `descending`: the keys enter
    from the largest to the smallest. Curves have the `rows` that are given, none where they are -1,
    or their own if `rows` is None.
    """
    # In a kernel, this alone would take half as long to compile as all that follows.
    reached = np.empty(histograms.shape[1] + 1, np.int64)
    _cumulate(histograms, rows, descending, sign, entered, curves, reached)


@kernel()
def _cumulate(histograms, rows, descending, sign, entered, curves, reached):
    """Do what :func:`cumulate` does, with memory for the sums over any number of keys."""
    bins = histograms.shape[1]
    reached[0] = 0
    for i in range(len(curves)):
        row = i if rows is None else rows[i]
        if row < 0:
            continue
        histogram = histograms[np.uint64(row)]
        curve = curves[i]
        total = 0
        for key in range(bins):
            total += histogram[key]
            reached[key + 1] = total
        if descending:
            for k in range(entered.size):
                curve[k] += sign * (total - reached[np.uint64(bins - entered[k])])
        else:
            for k in range(entered.size):
                curve[k] += sign * reached[np.uint64(entered[k])]


def add_histograms(
    scanner: Scanner, plans: Sequence[Plan], workers: int | None, out: Values
) -> None:
    """Add the curves of a volume, or of the images of a stack, to `out`.

    The first axis of `out` is that of the images, a volume being one, and the last one that of the
    thresholds; there may be several curves of each image between them.
    """
    source = scanner.source
    together = INTERLEAVED if scanner.ndim == 2 and source.interleaved else 1
    size = math.prod(out.shape[1:-1]) * (plans[-1].top + 1)
    threads = worker_count(workers, math.prod(source.shape), size)
    blocks = scanner.blocks(plans[-1], threads, together)
    alone = len(out) == 1
    lock = threading.Lock()

    def work(queue: Iterator[Block]) -> None:
        # The number of further blocks for which each plan may fail before it is given up.
        trials = [1 + len(blocks) // BLOCKS_A_TRIAL] * len(plans)
        histograms: dict[int, Values] = {}  # By the number of the plan.
        for block in queue:
            own = out if alone else out[block.start[0] : block.stop[0]]
            for number, plan in enumerate(plans):  # The first plan that all keys fit is used.
                if trials[number] == 0:
                    continue
                staged = scanner.stage(plan, block)
                if not staged.unfit:
                    break
                trials[number] -= 1
            if number not in histograms:
                histograms[number] = np.zeros((*own.shape[:-1], plan.top + 1), np.int64)
            scanner.add(plan, staged, histograms[number])
            if not alone:
                add(histograms, own)
                histograms = {}
        if alone:
            add(histograms, out)

    def add(histograms: dict[int, Values], curves: Values) -> None:
        rows = curves.reshape(-1, curves.shape[-1])
        with lock:  # Blocks of other threads may hold other parts of the same images.
            for number, histogram in histograms.items():
                bins = histogram.reshape(len(rows), -1)
                cumulate(bins, None, scanner.descending, scanner.sign, plans[number].entered, rows)

    if len(blocks) == 1:
        work(iter(blocks))
        return
    share(blocks, work, threads)


def write_coefficients(
    scanner: Scanner, plan: Plan, workers: int | None, out: NDArray[np.int8]
) -> None:
    """Write the coefficients of a volume, or of the images of a stack, to `out`."""
    shape = scanner.source.shape
    flat = out.reshape(-1)

    def write(queue: Iterator[Block]) -> None:
        for block in queue:
            staged = scanner.stage(plan, block)
            z, y, x = block.start
            scanner.scan(staged, NO_HISTOGRAM, flat, (z * shape[1] + y) * shape[2] + x)

    threads = worker_count(workers, out.size, 1)
    share(scanner.blocks(plan, threads), write, threads)
