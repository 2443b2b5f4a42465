"""Plans of the kernels that keep one sample in a register, for any number of thresholds."""

from __future__ import annotations

from ecc_core._backends.cuda.arrays import Layout
from ecc_core._backends.cuda.bins import Rules
from ecc_core._backends.cuda.compile import processors, shared_limit
from ecc_core._backends.cuda.plans import SPARE_BYTES, Plan, copies_within
from ecc_core._backends.cuda.tiling import (
    RESIDENT_WARPS,
    WARP_WIDTH,
    Tiling,
    plan2d,
    plan3d,
    plan_pairs,
)
from ecc_core._backends.cuda.variants import GLOBAL, ITEM_BYTES, PACKED, SHARED, Variant

__all__ = ["LONG", "plan_line", "plan_single", "table_bytes"]

LONG = 1 << 14  # samples of 1-D images that have a kernel of their own, and of its blocks at least
LINE_WARPS = 8  # of a block
TABLE_BYTES = 16 << 10  # of thresholds in shared memory
COPIES_BYTES = 2400  # of bins in shared memory, for each warp of a block
SHARED_BYTES = 64 << 10  # of bins in shared memory, in 32 bits each
PACKED_WARPS = 12  # of a block


def plan_line(
    layout: Layout, _deep: bool, _steps: int, _variant: Variant, rules: Rules, device: int
) -> Plan:
    """Long 1-D images (curve1d.cu)."""
    bins = rules.levels + 1
    store = _store(bins, device)
    resident = RESIDENT_WARPS["curve1d"] // LINE_WARPS
    blocks = max(1, min(resident * processors(device) // layout.images, layout.shape[2] // LONG))
    samples = layout.shape[2] // (blocks * LINE_WARPS)
    copies = copies_within(4 * bins, COPIES_BYTES * LINE_WARPS, samples) if store == SHARED else 1
    words = {SHARED: bins * copies, PACKED: (bins + 1) // 2, GLOBAL: 0}[store]
    table = table_bytes(rules)
    options = {"BINS": rules.single, "STORE": store, "SHARED_TABLE": int(table > 0)}
    options["VECTOR"] = layout.vector + layout.wide
    tiling = Tiling(1, 1, 1, LINE_WARPS, blocks)
    return Plan("curve1d", options, tiling, copies, 4 * words + table + 1024)


def plan_single(
    layout: Layout, deep: bool, steps: int, variant: Variant, rules: Rules, device: int
) -> Plan:
    """One sample in a register: any number of thresholds."""
    bins = rules.levels + 1
    store = _store(bins, device)
    tiling = _tiling(layout, deep, steps, store, bins, device)
    table = table_bytes(rules)
    samples = tiling.chunk * (8 if deep else 1) * WARP_WIDTH
    copies = copies_within(4 * bins, COPIES_BYTES * tiling.warps, samples) if store == SHARED else 1
    words = {SHARED: bins * copies, PACKED: (bins + 1) // 2, GLOBAL: 0}[store]
    shared = 4 * words + table + 1024
    shared += tiling.warps * _warp_bytes(deep, ITEM_BYTES[variant.element])
    options = {"BINS": rules.single, "STORE": store, "SHARED_TABLE": int(table > 0)}
    return Plan("curve3d" if deep else "curve2d", options, tiling, copies, shared)


def table_bytes(rules: Rules) -> int:
    """Return bytes of thresholds and table in shared memory, or 0 if they stay in global memory."""
    size = rules.levels * rules.key_size + 4 * rules.cells
    return size if size <= TABLE_BYTES + 4 * rules.cells else 0


def _warp_bytes(deep: bool, item_size: int) -> int:
    """Return bytes of a warp: its keys, and in 3-D its queue and its part of the exchange."""
    return 8 * 128 * 4 + (3 * 128 * item_size + 2 * 32 * 4 if deep else 0)


def _store(bins: int, device: int) -> int:
    """Return where bins are counted: as 32-bit integers, 16-bit integers, or in global memory."""
    if 4 * bins <= SHARED_BYTES:
        return SHARED
    fits = 2 * bins + TABLE_BYTES + SPARE_BYTES + PACKED_WARPS * 6400 <= shared_limit(device)
    return PACKED if fits else GLOBAL


def _tiling(layout: Layout, deep: bool, steps: int, store: int, bins: int, device: int) -> Tiling:
    """Return a tiling. Large histograms need large blocks: few fit on a multiprocessor."""
    _, height, width = layout.shape
    count = processors(device)
    block: tuple[int, ...] = (PACKED_WARPS,)
    if deep:
        if store != PACKED:
            block = (8,) if store == SHARED and 4 * bins > 4 * COPIES_BYTES else (4, 8)
            block += (12,)
        return plan3d(layout.images, steps, height, width, count, block)
    if store == PACKED:
        return plan_pairs(layout.images, False, steps, height, width, count, block)
    return plan2d(layout.images, steps, width, count, (8, 24))
