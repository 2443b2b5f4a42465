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
from ecc_core._backends.cuda.kernels import WIDE, Struct, Variant, function, shared_limit
from ecc_core._backends.cuda.resources import RESOURCES
from ecc_core._backends.cuda.rules import TABLE
from ecc_core._backends.cuda.scan_plans import SPARE_BYTES, Plan, Workload, is_batch, plan_scan
from ecc_core._backends.cuda.tiling import PAIR_ROWS, RESIDENT_WARPS, WARP_WIDTH

IMAGE = Struct("image.cuh", "Image")
TILING = Struct("tiling.cuh", "Tiling")
RESULT = Struct("histogram.cuh", "Result")

# The most samples from row to row, so that offsets of sixteen rows, in bytes, are 32-bit integers.
ROW_STRIDE = 1 << 24
FEW_ROWS = 8  # Images with fewer rows are read in tiles.
LONG = 1 << 14  # Longer 1-D images, in samples, would leave most rows of a warp idle.
GRID_ROWS = 65535  # The most rows that a grid of blocks may have.
# Above these numbers of bins and of arriving blocks, a second kernel adds up the histogram
# (histogram.cuh).
SCAN_BINS = 1 << 14
ARRIVALS = 1 << 23
BINS_A_LINE = 4  # Bins of 64 bits in a line of 16 words.


class Recipe(NamedTuple):
    """How the curves of images of a layout are computed."""

    layout: Layout
    call: Callable[[NDArray[Any]], Call]
    """Plans the kernel for its Bins; the call has no addresses yet."""
    counts: int
    """Bins in global memory of all images; 0 where each block does a whole image."""
    accumulate: bool
    """Whether another kernel is to sum the curves from the bins."""
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
    if not _is_read(layout, ndim, variant, device):
        return None
    first, last = own or (0, _steps(layout, deep))
    work = Workload(layout, deep, last - first, variant, rules, device)
    plan = plan_scan(work)
    if not _fits(plan, work):
        return None
    tiling = plan.tiling
    images = layout.images
    grid = plan.grid or ((images * tiling.blocks,) if deep else (tiling.blocks, images))
    sign = -1 if variant.cubes and deep else 1
    bins = rules.levels + 1
    direct = tiling.blocks == 1
    scanned = bins <= SCAN_BINS and tiling.blocks * max(bins, rules.codes) < ARRIVALS
    compiled = _compiled(plan, work)
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
            function=compiled,
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


def _compiled(plan: Plan, work: Workload) -> Any:
    """Return the compiled kernel of a plan.

    Memory that is not taken as shared memory serves as cache, from which samples are read again as
    neighbours and for events.
    """
    options = {**work.variant.options(), "VECTOR": int(work.layout.vector), **plan.options}
    options["THREADS"], options["BLOCKS"] = RESOURCES[plan.source]
    compiled = function(plan.source, "curve", work.device, options)
    resident = RESIDENT_WARPS[plan.source] // plan.tiling.warps
    wanted = resident * (plan.shared + SPARE_BYTES)
    percent = ceil_div(100 * wanted, shared_limit(work.device))
    compiled.preferred_shared_memory_carveout = min(100, percent)
    return compiled


def is_long_line(shape: tuple[int, ...]) -> bool:
    """Return whether images (batch, *spatial) are 1-D and would leave most rows of warps idle."""
    return len(shape) == 2 and shape[1] >= LONG


def has_few_long_rows(layout: Layout) -> bool:
    """Return whether 1-D or 2-D images would leave most rows of a warp idle, but not tiles."""
    _, height, width = layout.shape
    return height <= FEW_ROWS and width >= LONG // height


def _steps(layout: Layout, deep: bool) -> int:
    """Return the slices of a volume, or the rows of an image: those of all its tiles, if any."""
    depth, height, width = layout.shape
    if not layout.lines:
        return depth if deep else height
    tiles_of_step = PAIR_ROWS // height
    return PAIR_ROWS * ceil_div(width // WARP_WIDTH, tiles_of_step)


def _is_read(layout: Layout, ndim: int, variant: Variant, device: int) -> bool:
    """Return whether kernels of pairs read images of a layout, and fast."""
    images, (_, height, width), strides, *_ = layout
    if layout.lines:
        return images <= GRID_ROWS
    if is_long_line((images, *layout.shape[3 - ndim :])):
        return False
    # The rows of images that have at most sixteen of them may be up to 2 GiB apart.
    farthest = ROW_STRIDE if height > PAIR_ROWS or ndim == 3 else (1 << 31) // layout.item
    if abs(strides[2]) >= farthest and height > 1:
        return False
    if ndim == 3:
        return variant.element not in WIDE and height >= PAIR_ROWS and width > 1
    return images <= GRID_ROWS or is_batch(layout, device)


def _fits(plan: Plan, work: Workload) -> bool:
    """Return whether a kernel reads the mask, a wide type, and samples that are apart, if any."""
    layout = work.layout
    variant = work.variant
    channels = layout.channels > 1
    if not (channels or layout.apart > 1 or variant.masked or variant.element in WIDE[1:]):
        return True
    if plan.shared + SPARE_BYTES > shared_limit(work.device):
        return False
    if not variant.masked:
        return True
    return layout.vector and work.rules.pair != TABLE and not (channels or "BATCH" in plan.options)
