"""How an image is divided into units of work that fill the device evenly."""

import itertools
from typing import NamedTuple

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.resources import RESOURCES

WARP_WIDTH = 128  # A warp has so many columns.
# Rows that a warp processes at a time: two samples in a register, bit by bit.
PAIR_ROWS = 16
SLICED_ROWS = 32
# Warps on a multiprocessor.
RESIDENT_WARPS = {name: threads * blocks // 32 for name, (threads, blocks) in RESOURCES.items()}
# Counts of a block are 32-bit integers. A point adds at most 16 * 7.
PAIR_POINTS_A_BLOCK = 1 << 24

# Costs, as numbers of steps: warps that keep a multiprocessor busy, what a warp and a block cost.
PAIR_BUSY = 12
PAIR_START = 2
PAIR_BLOCK = 8
PAIR_APART = 0.04  # In 3-D, the part of the time that each further block on a multiprocessor costs.
BATCH_BLOCK = 1  # The cost of an image in a block that processes many.


class Tiling(NamedTuple):
    """How an image is divided."""

    across: int
    """Units of work along x."""
    down: int
    """Units of work along y."""
    chunk: int
    """Rows or slices of a unit of work."""
    warps: int
    """Warps of a block."""
    blocks: int
    """Blocks of an image."""


@programs.plan
def plan_pairs(
    images: int,
    deep: bool,
    steps: int,
    height: int,
    width: int,
    processors: int,
    block: tuple[int, ...],
    sliced: bool,
    channels: bool,
) -> Tiling:
    """Cut images into columns of rows (2-D) or slices (3-D), each for one warp.

    `steps` are the rows or slices that a curve is counted in. `block` are the numbers of warps that
    a block may have, of which the last fills a multiprocessor. If samples are compared bit by bit
    (`sliced`), the first and the last row that a warp reads may belong to the warps beside it. If
    slices are `channels`, a warp has all slices of a column; where there are more columns than
    warps on the device, each warp takes several of them in turn.
    """
    rows, others = (SLICED_ROWS, 2) if sliced else (PAIR_ROWS, 0)
    own = rows - others
    most = block[-1]
    across = ceil_div(width, WARP_WIDTH)
    down = max(1, ceil_div(height - others, own)) if deep else 1
    if channels:
        counts = [steps]
        units = across * down
        each = steps * rows * WARP_WIDTH
        blocks = max(1, processors // images, ceil_div(units * each, PAIR_POINTS_A_BLOCK))
        if units >= blocks * most:
            return Tiling(across=across, down=down, chunk=steps, warps=most, blocks=blocks)
    else:  # The candidates divide all steps evenly.
        whole = steps if deep else ceil_div(steps, own)
        parts = [*range(1, min(whole, 512) + 1), *(1 << power for power in range(10, 24))]
        counts = sorted({ceil_div(whole, count) for count in parts})
    best = None
    for warps, part in itertools.product(block, counts):
        if part * rows * WARP_WIDTH * warps > PAIR_POINTS_A_BLOCK:
            continue
        chunk = part if deep else part * rows - others
        blocks = ceil_div(across * down * ceil_div(steps, chunk), warps)
        resident = most // warps
        each = ceil_div(images * blocks, processors)
        busy = max(PAIR_BUSY, min(each, resident) * warps)
        extra = PAIR_START + PAIR_BLOCK / warps * min(each, resident)
        # In the last round, blocks that share a multiprocessor end at different times.
        rounds = max(1.0, each / resident)
        rounds += 0.5 if each > resident and not (deep and resident == 1) else 0
        apart = 1 + PAIR_APART * (resident - 1) if deep else 1
        cost = rounds * (part + extra) * busy * apart
        if best is None or cost < best[0]:
            best = cost, Tiling(across=across, down=down, chunk=chunk, warps=warps, blocks=blocks)
    assert best is not None
    return best[1]


def plan_batch(steps: int) -> Tiling:
    """Cut images of which there are many, and of one warp's width, for a block each, in pairs."""
    rows = ceil_div(steps, PAIR_ROWS)

    def cost(warps: int) -> float:
        return (ceil_div(rows, warps) + BATCH_BLOCK) * warps

    warps = min(4, 8, RESIDENT_WARPS["pairs2d"], key=cost)
    return Tiling(across=1, down=1, chunk=ceil_div(rows, warps) * PAIR_ROWS, warps=warps, blocks=1)
