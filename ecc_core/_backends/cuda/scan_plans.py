"""Which scanning kernel suits images of a layout, and the shared memory of its blocks."""

from typing import NamedTuple

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda.arrays import Layout
from ecc_core._backends.cuda.bins import Rules
from ecc_core._backends.cuda.kernels import Variant, processors, shared_limit
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

# The shared memory for copies of the histogram, in bytes for each warp of a block. It is less in
# 2-D, where cache for the sides of a warp gains more.
PAIR_COPIES_BYTES = {"pairs2d": 1400, "pairs3d": 2800}
# The shared memory for copies of tables, in bytes for each warp of a block.
TABLE_COPIES_BYTES = {"pairs2d": 3200, "pairs3d": 5120}
# The fewest copies of a table that gain anything, and the most that are made, for each rule.
TABLE_COPIES = {UNIFORM: (16, 32), CELLS: (16, 32), PIECES: (4, 32)}
BYTE_TABLE = 4 * 256  # The shared memory of a table of the codes of all values of 8 bits.
MOST_LINE_COPIES = 16  # The most copies of the lines of pieces.
SPARE_BYTES = 2048  # Shared memory that is left to what a kernel declares itself.
SAMPLES_A_COPY = 256  # The fewest samples of a warp that pay for a copy of the histogram.
SAMPLES_A_TABLE = 1024  # The fewest samples of a warp that pay for a copy of a table.
BLOCK_BYTES = 1024  # Shared memory that the driver takes from each block.
CACHE_STEP = 32 << 10  # Steps by which shared memory is taken from a multiprocessor's cache.
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


class Plan(NamedTuple):
    """A kernel, its macros beside those of every kernel, and how its blocks work."""

    source: str
    options: dict[str, int]
    tiling: Tiling
    copies: int
    shared: int
    grid: tuple[int, ...] = ()
    """The grid of blocks that take images by turns; empty if they do not."""


class Workload(NamedTuple):
    """The images that a kernel is to scan."""

    layout: Layout
    deep: bool
    """Whether images have three axes."""
    steps: int
    """The rows of images, or the slices of volumes, in which curves are counted."""
    variant: Variant
    rules: Rules
    device: int

    @property
    def height(self) -> int:
        """Rows of an image, or of all tiles of a long line."""
        return self.steps if self.layout.lines else self.layout.shape[1]

    @property
    def width(self) -> int:
        """Columns of an image, or of a tile of a long line."""
        return WARP_WIDTH if self.layout.lines else self.layout.shape[2]

    @property
    def is_plain(self) -> bool:
        """Whether the samples of a row lie side by side, and images are not read in tiles."""
        return self.layout.apart == 1 and not self.layout.lines

    @property
    def is_batch(self) -> bool:
        """Whether blocks take images by turns."""
        return not self.deep and self.is_plain and is_batch(self.layout, self.device)

    @property
    def is_folded(self) -> bool:
        """Whether a warp takes two parts of a narrow slice side by side."""
        if not self.deep or self.layout.channels > 1:
            return False
        return 2 * self.width <= WARP_WIDTH and self.height > PAIR_ROWS

    @property
    def is_sliced(self) -> bool:
        """Whether samples are compared bit by bit."""
        if not (self.rules.pair == TABLE and self.layout.vector and self.is_plain):
            return False
        if self.deep:
            return not self.is_folded
        samples = self.layout.images * self.height * self.width
        return not self.is_batch and self.height > PAIR_ROWS and samples >= SLICED_LEAST


def is_batch(layout: Layout, device: int) -> bool:
    """Return whether there are so many small 2-D images that blocks take them by turns."""
    _, height, width = layout.shape
    small = width <= WARP_WIDTH and height * width <= BATCH_SAMPLES
    return small and layout.images > processors(device)


def plan_scan(work: Workload) -> Plan:
    """Return the plan of the kernel that suits images best."""
    if work.is_batch:
        return _plan_batch(work)
    if work.is_sliced:
        return _plan_bytes(work)
    return _plan_pairs(work)


def _plan_bytes(work: Workload) -> Plan:
    """Plan the kernel that compares 8-bit types bit by bit (sliced.cuh)."""
    layout = work.layout
    rules = work.rules
    source = "bytes3d" if work.deep else "bytes2d"
    tiling = _tiling(work, source)
    options = {"BINS": TABLE, "VECTOR": layout.vector + layout.wide}
    of_warp = SLICED_BYTES
    if layout.channels > 1:
        of_warp = (SLICED_ROWS + 1) * WARP_WIDTH * layout.channels
        options["CHANNELS"] = layout.channels
    fixed = tiling.warps * of_warp + 4 * (rules.levels + 1) + BYTE_TABLE
    room = min(SLICED_COPIES_BYTES * tiling.warps, shared_limit(work.device) - SPARE_BYTES - fixed)
    copies = _copies_within(4 * rules.codes, room, _samples_of_warp(work, tiling, SLICED_ROWS))
    return Plan(
        source=source,
        options=options,
        tiling=tiling,
        copies=copies,
        shared=fixed + 4 * rules.codes * copies,
    )


def _plan_batch(work: Workload) -> Plan:
    """Plan the kernel that compares two samples in a register, and whose blocks take many images.

    The first rows of the next image are on their way while an image is scanned.
    """
    tiling = plan_batch(work.steps)
    copies, shared, options = _pair_memory("pairs2d", work, tiling)
    options["BATCH"] = 1
    blocks_at_once = processors(work.device) * (RESIDENT_WARPS["pairs2d"] // tiling.warps)
    return Plan(
        source="pairs2d",
        options=options,
        tiling=tiling,
        copies=copies,
        shared=shared + tiling.warps * 3 * WARP_WIDTH * work.layout.item,
        grid=(1, min(work.layout.images, blocks_at_once)),
    )


def _plan_pairs(work: Workload) -> Plan:
    """Plan the kernel that compares two samples in a register (pairs.cuh; feed.cuh)."""
    layout = work.layout
    source = "pairs3d" if work.deep else "pairs2d"
    tiling = _tiling(work, source)
    copies, shared, options = _pair_memory(source, work, tiling)
    if layout.apart > 1:
        options["STEP"] = layout.apart
    if layout.lines:
        options["LINES"] = layout.shape[1]
    if work.is_folded:
        options["FOLD"] = 2
    if layout.channels > 1:
        options["CHANNELS"] = layout.channels
    elif work.rules.pair in (CELLS, PIECES):
        bytes_of_copy = 4 * work.rules.codes
        room = bytes_of_copy * copies + _unused_bytes(source, tiling, shared, work.device)
        samples = _samples_of_warp(work, tiling, PAIR_ROWS)
        more = _copies_within(bytes_of_copy, room, samples)
        shared += bytes_of_copy * (more - copies)
        copies = more
    return Plan(source=source, options=options, tiling=tiling, copies=copies, shared=shared)


def _tiling(work: Workload, source: str) -> Tiling:
    """Return how warps divide the images of a call that is not a batch."""
    channels = work.layout.channels
    most_warps = RESIDENT_WARPS[source]
    if channels > 1:  # Many levels take as much memory as four channels.
        has_few_levels = work.rules.levels <= FEW_LEVELS
        most_warps = CHANNEL_WARPS[source][channels if has_few_levels else 4]
    height = work.height
    if work.is_folded:  # A warp has sixteen rows of half its width twice, side by side.
        height = ceil_div(height, 2)
    return plan_pairs(
        images=work.layout.images,
        deep=work.deep,
        steps=work.steps,
        height=height,
        width=work.width,
        processors=processors(work.device),
        block=(4, 8, most_warps),
        sliced=work.is_sliced,
        channels=channels > 1,
    )


def _samples_of_warp(work: Workload, tiling: Tiling, rows: int) -> int:
    """Return the samples that a warp scans; it takes so many `rows` of a slice at a time."""
    if work.deep:
        return tiling.chunk * rows * WARP_WIDTH
    return tiling.chunk * WARP_WIDTH


def _unused_bytes(source: str, tiling: Tiling, shared: int, device: int) -> int:
    """Return the shared memory that a block may have more without leaving less to the cache."""
    resident = RESIDENT_WARPS[source] // tiling.warps
    whole = shared_limit(device) + BLOCK_BYTES
    left = whole - resident * (shared + SPARE_BYTES)
    return max(left, 0) % CACHE_STEP // resident


def _pair_memory(source: str, work: Workload, tiling: Tiling) -> tuple[int, int, dict[str, int]]:
    """Return copies of bins, bytes of shared memory, and the macros of a kernel of pairs.

    Shared memory has the codes of some rows of each warp, and rows on their way to it.
    """
    rules = work.rules
    assert rules.pair is not None
    warps = tiling.warps
    samples = _samples_of_warp(work, tiling, PAIR_ROWS)
    copies = _copies_within(4 * rules.codes, PAIR_COPIES_BYTES[source] * warps, samples)
    shared = 4 * (rules.codes * copies + rules.levels + 1) + warps * _row_bytes(source, work)
    if rules.pair == TABLE:
        shared += BYTE_TABLE
    tables = 1
    if rules.table:
        left = shared_limit(work.device) * warps // RESIDENT_WARPS[source] - SPARE_BYTES - shared
        room = min(TABLE_COPIES_BYTES[source] * warps, left)
        least, most = TABLE_COPIES[rules.pair]
        one = rules.table + rules.pieces
        wanted = min(_copies_within(one, room, samples, SAMPLES_A_TABLE), most)
        if wanted >= least:
            tables = wanted
    shared += tables * rules.table + min(tables, MOST_LINE_COPIES) * rules.pieces
    options = {
        "BINS": rules.pair,
        "TABLE_COPIES": tables,
        "MANY_CODES": int(rules.codes > FEW_LEVELS + 1),
        "FOUND": int(rules.found),
    }
    return copies, shared, options


def _row_bytes(source: str, work: Workload) -> int:
    """Return the shared memory of a warp of pairs for rows of codes, and for rows of samples."""
    layout = work.layout
    if layout.channels > 1:
        return CHANNEL_ROWS * layout.channels * WARP_WIDTH * 4
    rows = PAIR_QUEUE_ROWS[source]
    if source == "pairs3d" and layout.item < 4:
        rows *= 2
    if work.rules.key_size > 4:
        rows //= 2
    queue = rows * (layout.item * layout.apart + work.variant.masked)
    return WARP_WIDTH * (4 * PAIR_CACHE_ROWS + queue)


def _copies_within(one: int, room: int, samples: int, each: int = SAMPLES_A_COPY) -> int:
    """Return how often something of `one` bytes is kept in shared memory, within `room` bytes.

    There is at most one copy for `each` samples of a warp, so that it pays to make them.
    """
    most = min(32, max(1, samples // each), room // one)
    return 1 << (max(1, most).bit_length() - 1)
