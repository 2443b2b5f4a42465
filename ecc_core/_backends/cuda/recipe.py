"""Everything about a call of a scanning kernel that depends on shapes and types only."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import Layout
from ecc_core._backends.cuda.bins import Rules
from ecc_core._backends.cuda.calls import Call
from ecc_core._backends.cuda.kernels import (
    WIDE,
    Struct,
    Variant,
    function,
    processors,
    shared_limit,
)
from ecc_core._backends.cuda.resources import RESOURCES
from ecc_core._backends.cuda.rules import CELLS, FEW_LEVELS, PIECES, TABLE, UNIFORM
from ecc_core._backends.cuda.tiling import (
    PAIR_ROWS,
    RESIDENT_WARPS,
    SLICED_ROWS,
    WARP_WIDTH,
    Tiling,
    plan_batch,
    plan_pairs,
)

IMAGE = Struct("image.cuh", "Image")
TILING = Struct("tiling.cuh", "Tiling")
RESULT = Struct("histogram.cuh", "Result")

# The shared memory for copies of the histogram, in bytes for each warp of a block. It is less in
# 2-D, where cache for the sides of a warp gains more.
PAIR_COPIES_BYTES = {"pairs2d": 1400, "pairs3d": 2800}
# The shared memory for copies of tables, in bytes for each warp of a block.
TABLE_COPIES_BYTES = {"pairs2d": 3200, "pairs3d": 5120}
# The fewest copies of a table that gain anything, and the most that are made, for each rule.
TABLE_COPIES = {UNIFORM: (16, 32), CELLS: (16, 32), PIECES: (4, 32)}
MOST_LINE_COPIES = 16  # The most copies of the lines of pieces.
SPARE_BYTES = 2048  # Shared memory that is left to what a kernel declares itself.
SAMPLES_A_COPY = 256  # The fewest samples of a warp that pay for a copy of the histogram.
SAMPLES_A_TABLE = 1024  # The fewest samples of a warp that pay for a copy of a table.
BLOCK_BYTES = 1024  # Shared memory that the driver takes from each block.
CACHE_STEP = 32 << 10  # Steps by which shared memory is taken from a multiprocessor's cache.
# The most samples from row to row, so that offsets of sixteen rows, in bytes, are 32-bit integers.
ROW_STRIDE = 1 << 24
FEW_ROWS = 8  # Images with fewer rows are read in tiles.
LONG = 1 << 14  # Longer 1-D images, in samples, would leave most rows of a warp idle.
GRID_ROWS = 65535  # The most rows that a grid of blocks may have.
BATCH_SAMPLES = 1 << 16  # The most samples of each image of a batch of 2-D images.
# Depth of the queue of asynchronous copies, in rows of a warp. It is halved for 64-bit types, and
# doubled in pairs3d for types of up to 16 bits.
PAIR_QUEUE_ROWS = {"pairs2d": 8, "pairs3d": 10}
# Rows of codes that a warp caches, two of which share one row of words.
PAIR_CACHE_ROWS = 8
# The shared memory of a warp of the kernels that compare bit by bit: copies of the histogram, and
# the rows of two steps with the one before them.
SLICED_COPIES_BYTES = 4096
SLICED_BYTES = (2 * SLICED_ROWS + 1) * WARP_WIDTH
# Warps of a block that holds all channels of its rows in shared memory, by the number of channels.
CHANNEL_WARPS = {
    "bytes3d": {2: 16, 3: 16, 4: 12},
    "pairs3d": {2: 12, 3: 12, 4: 8},
}
CHANNEL_ROWS = 10  # Rows of codes of a channel that a warp caches, two in one row of words.
SLICED_LEAST = 1 << 22  # The fewest samples of a 2-D image that gain by comparing bit by bit.
# Above these numbers of bins and of arriving blocks, a second kernel adds up the histogram
# (histogram.cuh).
SCAN_BINS = 1 << 14
ARRIVALS = 1 << 23
BINS_A_LINE = 4  # Bins of 64 bits in a line of 16 words.


class Plan(NamedTuple):
    """A kernel, its macros beside those of every kernel, and how its blocks work."""

    source: str
    options: dict[str, int]
    tiling: Tiling
    copies: int
    shared: int
    grid: tuple[int, ...] = ()  # if blocks take images by turns


class Recipe(NamedTuple):
    """How the curves of images of a layout are computed."""

    layout: Layout
    call: Callable[[NDArray[Any]], Call]  # of a kernel's Bins, without addresses
    counts: int  # bins in global memory of all images; 0 where each block does a whole image
    accumulate: bool  # whether the curves are to be summed from the bins by another kernel
    sign: int
    superlevel: bool


def image_struct(layout: Layout) -> NDArray[np.int64]:
    """Return the kernels' Image, without addresses."""
    batch, step, row = layout.strides
    depth, height, width = layout.shape
    return IMAGE(batch=batch, slice=step, row=row, depth=depth, height=height, width=width)


@programs.plan
def recipe(
    layout: Layout,
    ndim: int,
    own: tuple[int, int] | None,
    variant: Variant,
    rules: Rules,
    device: int,
) -> Recipe | None:
    """Return how to compute the curves of images of a layout, or None if they must be recoded."""
    deep = ndim == 3
    if layout.lines:
        every = _rows_in_tiles(layout)
    else:
        every = layout.shape[0] if deep else layout.shape[1]
    first, last = own or (0, every)
    bins = rules.levels + 1
    if not _is_read(layout, ndim, variant, device):
        return None
    plan = _plan(layout, deep, steps=last - first, variant=variant, rules=rules, device=device)
    if not _fits(plan, layout, variant=variant, rules=rules, device=device):
        return None
    tiling = plan.tiling
    options = {**variant.options(), "VECTOR": int(layout.vector), **plan.options}
    options["THREADS"], options["BLOCKS"] = RESOURCES[plan.source]
    found = function(plan.source, "curve", device, options)
    # What shared memory leaves is cache, where neighbours and events find their samples again.
    resident = RESIDENT_WARPS[plan.source] // tiling.warps
    wanted = resident * (plan.shared + SPARE_BYTES)
    percent = ceil_div(100 * wanted, shared_limit(device))
    found.preferred_shared_memory_carveout = min(100, percent)
    direct = tiling.blocks == 1
    images = layout.images
    grid = plan.grid or ((images * tiling.blocks,) if deep else (tiling.blocks, images))
    sign = -1 if variant.cubes and deep else 1
    scanned = bins <= SCAN_BINS and tiling.blocks * max(bins, rules.codes) < ARRIVALS
    image = image_struct(layout)
    tiles = TILING(
        across=tiling.across,
        down=tiling.down,
        chunk=tiling.chunk,
        first=first,
        last=last,
        images=images,
    )
    result = RESULT(blocks=tiling.blocks, copies=plan.copies, sign=sign, accumulate=scanned)

    def call(bins: NDArray[Any]) -> Call:
        return Call(
            function=found,
            grid=grid,
            threads=32 * tiling.warps,
            shared=plan.shared,
            arguments=(image, tiles, bins, result),
        )

    counts = 0
    if scanned and not direct:
        counts = images * 16 * ceil_div(bins, BINS_A_LINE)
    elif not direct:
        counts = images * bins
    return Recipe(
        layout=layout,
        call=call,
        counts=counts,
        accumulate=not (direct or scanned),
        sign=sign,
        superlevel=variant.superlevel,
    )


def is_long_line(shape: tuple[int, ...]) -> bool:
    """Return whether images (batch, *spatial) are 1-D and would leave most rows of warps idle."""
    return len(shape) == 2 and shape[1] >= LONG


def has_few_long_rows(layout: Layout) -> bool:
    """Return whether 1-D or 2-D images would leave most rows of a warp idle, but not tiles."""
    _, height, width = layout.shape
    return height <= FEW_ROWS and width >= LONG // height


def _rows_in_tiles(layout: Layout) -> int:
    """Return the rows of all steps, of which each takes the rows of several tiles."""
    _, height, width = layout.shape
    tiles_of_step = PAIR_ROWS // height
    return PAIR_ROWS * ceil_div(width // WARP_WIDTH, tiles_of_step)


def _is_read(layout: Layout, ndim: int, variant: Variant, device: int) -> bool:
    """Return whether kernels of pairs read images of a layout, and fast."""
    images, (_, height, width), strides, *_ = layout
    if layout.lines:
        return images <= GRID_ROWS
    if is_long_line((images, *layout.shape[3 - ndim :])):
        return False
    # Of up to sixteen rows, one is 2 GiB at most.
    farthest = ROW_STRIDE if height > PAIR_ROWS or ndim == 3 else (1 << 31) // layout.item
    if abs(strides[2]) >= farthest and height > 1:
        return False
    if ndim == 3:
        return variant.element not in WIDE and height >= PAIR_ROWS and width > 1
    return images <= GRID_ROWS or _is_batch(layout, device)


def _fits(plan: Plan, layout: Layout, variant: Variant, rules: Rules, device: int) -> bool:
    """Return whether a kernel reads the mask, a wide type, and samples that are apart, if any."""
    channels = layout.channels > 1
    if not (channels or layout.apart > 1 or variant.masked or variant.element in WIDE[1:]):
        return True
    if plan.shared + SPARE_BYTES > shared_limit(device):
        return False
    if not variant.masked:
        return True
    return layout.vector and rules.pair != TABLE and not (channels or "BATCH" in plan.options)


def _is_batch(layout: Layout, device: int) -> bool:
    """Return whether there are so many small 2-D images that blocks take them by turns."""
    _, height, width = layout.shape
    small = width <= WARP_WIDTH and height * width <= BATCH_SAMPLES
    return small and layout.images > processors(device)


def _plan(
    layout: Layout, deep: bool, steps: int, variant: Variant, rules: Rules, device: int
) -> Plan:
    """Two samples in a register (pairs.cuh; feed.cuh), or bit by bit (sliced.cuh)."""
    images = layout.images
    _, height, width = layout.shape
    channels = layout.channels
    if layout.lines:
        height = steps
        width = WARP_WIDTH
    narrow = deep and 2 * width <= WARP_WIDTH and height > PAIR_ROWS
    fold = 2 if narrow and channels == 1 else 1
    plain = layout.apart == 1 and not layout.lines
    batch = plan_batch(steps) if not deep and plain and _is_batch(layout, device) else None
    large = plain and (deep or (height > PAIR_ROWS and images * height * width >= SLICED_LEAST))
    sliced = rules.pair == TABLE and layout.vector and large and fold == 1 and not batch
    source, rows = ("bytes", SLICED_ROWS) if sliced else ("pairs", PAIR_ROWS)
    source += "3d" if deep else "2d"
    count = processors(device)
    most = RESIDENT_WARPS[source]
    block = 4, 8, most
    if channels > 1:
        block = 4, 8, CHANNEL_WARPS[source][channels if rules.levels <= FEW_LEVELS else 4]
    high = ceil_div(height, fold)  # with two, sixteen rows of half a warp each
    tiling = batch or plan_pairs(
        images=images,
        deep=deep,
        steps=steps,
        height=high,
        width=width,
        processors=count,
        block=block,
        sliced=sliced,
        channels=channels > 1,
    )
    samples = tiling.chunk * (rows if deep else 1) * WARP_WIDTH
    if sliced:
        return _bytes(source, layout, tiling=tiling, samples=samples, rules=rules, device=device)
    copies, shared, options = _pair_memory(
        source,
        layout,
        masked=variant.masked,
        tiling=tiling,
        samples=samples,
        rules=rules,
        device=device,
    )
    if layout.apart > 1:
        options["STEP"] = layout.apart
    if layout.lines:
        options["LINES"] = layout.shape[1]
    if fold > 1:
        options["FOLD"] = fold
    if channels > 1:
        options["CHANNELS"] = channels
    elif batch:
        shared += tiling.warps * 3 * WARP_WIDTH * layout.item
        options["BATCH"] = 1
        turns = min(images, count * (most // tiling.warps))
        return Plan(
            source=source,
            options=options,
            tiling=tiling,
            copies=copies,
            shared=shared,
            grid=(1, turns),
        )
    elif rules.pair in (CELLS, PIECES):
        # Without taking more from the cache of a multiprocessor.
        resident = most // tiling.warps
        whole = shared_limit(device) + BLOCK_BYTES
        left = max(whole - resident * (shared + SPARE_BYTES), 0) % CACHE_STEP // resident
        room = 4 * rules.codes * copies + left
        more = _copies_within(4 * rules.codes, room, samples)
        copies, shared = more, shared + 4 * rules.codes * (more - copies)
    return Plan(source=source, options=options, tiling=tiling, copies=copies, shared=shared)


def _pair_memory(
    source: str,
    layout: Layout,
    masked: bool,
    tiling: Tiling,
    samples: int,
    rules: Rules,
    device: int,
) -> tuple[int, int, dict[str, int]]:
    """Return copies of bins, bytes of shared memory, and the macros of a kernel of pairs.

    A warp has `samples`, the codes of some rows, and rows on their way to it.
    """
    assert rules.pair is not None
    warps = tiling.warps
    if layout.channels > 1:
        of_warp = CHANNEL_ROWS * layout.channels * WARP_WIDTH * 4
    else:
        many = source == "pairs3d" and layout.item < 4
        rows = PAIR_QUEUE_ROWS[source] * (2 if many else 1) // (2 if rules.key_size > 4 else 1)
        of_warp = WARP_WIDTH * (4 * PAIR_CACHE_ROWS + rows * (layout.item * layout.apart + masked))
    copies = _copies_within(4 * rules.codes, PAIR_COPIES_BYTES[source] * warps, samples)
    shared = 4 * (rules.codes * copies + rules.levels + 1) + warps * of_warp
    shared += 1024 if rules.pair == TABLE else 0
    repeated = 1
    if rules.table:
        left = shared_limit(device) * warps // RESIDENT_WARPS[source] - SPARE_BYTES - shared
        room = min(TABLE_COPIES_BYTES[source] * warps, left)
        least, most = TABLE_COPIES[rules.pair]
        one = rules.table + rules.pieces
        repeated = min(_copies_within(one, room, samples, SAMPLES_A_TABLE), most)
        repeated = repeated if repeated >= least else 1
    shared += repeated * rules.table + min(repeated, MOST_LINE_COPIES) * rules.pieces
    options = {"BINS": rules.pair, "TABLE_COPIES": repeated}
    options |= {"MANY_CODES": int(rules.codes > FEW_LEVELS + 1), "FOUND": int(rules.found)}
    return copies, shared, options


def _bytes(
    source: str, layout: Layout, tiling: Tiling, samples: int, rules: Rules, device: int
) -> Plan:
    """8-bit types, compared bit by bit (sliced.cuh)."""
    options = {"BINS": TABLE, "VECTOR": layout.vector + layout.wide}
    of_warp = SLICED_BYTES
    if layout.channels > 1:
        of_warp = (SLICED_ROWS + 1) * WARP_WIDTH * layout.channels
        options["CHANNELS"] = layout.channels
    fixed = tiling.warps * of_warp + 4 * (rules.levels + 1) + 1024
    room = min(SLICED_COPIES_BYTES * tiling.warps, shared_limit(device) - SPARE_BYTES - fixed)
    copies = _copies_within(4 * rules.codes, room, samples)
    return Plan(
        source=source,
        options=options,
        tiling=tiling,
        copies=copies,
        shared=fixed + 4 * rules.codes * copies,
    )


def _copies_within(one: int, room: int, samples: int, each: int = SAMPLES_A_COPY) -> int:
    """Return how often something of `one` bytes is kept in shared memory, within `room` bytes.

    There is at most one copy for `each` samples of a warp, so that it pays to make them.
    """
    most = min(32, max(1, samples // each), room // one)
    return 1 << (max(1, most).bit_length() - 1)
