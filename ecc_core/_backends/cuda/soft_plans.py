"""Launches of the kernels of soft curves, whose arguments are laid out once per shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch

from ecc_core._backends.cuda.calls import Call
from ecc_core._backends.cuda.compile import function, processors

__all__ = [
    "ELEMENTS",
    "MOMENTS",
    "Gather",
    "Scan",
    "evaluation",
    "gather",
    "packed_words",
    "preparation",
    "scan",
    "table_slots",
    "tabulation",
    "window_words",
]

# The structures of the kernels, with the names of their fields. TOTALS contains Upstream.
SCANNED = np.dtype(
    [(name, "i8") for name in ("data", "mask", "offset_z", "offset_y", "offset_x")]
    + [("strides", "i8", 4), ("mask_strides", "i8", 4)]
    + [(name, "i4") for name in ("depth", "height", "width", "padding")]
)
TILING = np.dtype(
    [(name, "i4") for name in ("across", "down", "chunks", "blocks", "room", "flush")]
    + [("scale", "f4")]
)
SCAN_WORK = np.dtype(
    [(name, "i8") for name in ("windows", "moments", "packed")]
    + [(name, "i4") for name in ("levels", "slots")]
)
SMALL_WORK = np.dtype(
    [(name, "i8") for name in ("thresholds", "sharpness", "curves", "slopes", "spreads")]
    + [(name, "i8") for name in ("windows", "packed")]
    + [(name, "i4") for name in ("across", "down", "chunks", "levels", "room")]
    + [("scale", "f4")]
)
GATHERED = np.dtype(
    [(name, "i8") for name in ("data", "offset_z", "offset_y", "offset_x")]
    + [("strides", "i8", 4)]
    + [(name, "i4") for name in ("depth", "height", "width", "padding")]
)
GATHER_WORK = np.dtype(
    [(name, "i8") for name in ("windows", "sharpness", "table", "packed", "out")]
    + [(name, "i4") for name in ("levels", "slots", "blocks", "room")]
)
TOTALS = np.dtype(
    [(name, "i8") for name in ("upstream", "by_image", "by_level", "slopes", "spreads")]
    + [(name, "i8") for name in ("gradient_by_level", "gradient_by_sharpness")]
    + [(name, "i4") for name in ("images", "levels", "blocks", "padding")]
)
ELEMENTS = {
    torch.float16: "Half",
    torch.bfloat16: "BFloat",
    torch.float32: "float",
    torch.float64: "double",
}

# As in the kernels.
LANES, OWN, PACKED, MOMENTS, EXCHANGED = 32, 16, 8, 4, 9
PADDING = 2 * (LANES + 4)
ROWS = {True: 8, False: 18}  # of a block, for flat images and others
RESIDENT = {True: 4, False: 2}  # blocks on a multiprocessor
GATHER_THREADS, GATHER_RESIDENT = 256, 4
EVALUATION_BYTES = 24

SCAN_WORDS, GATHER_WORDS = 8192, 6144  # of shared memory, for moments and tables
ALONE_WORDS = 38912  # for moments, if a block has a multiprocessor to itself
FLUSH_POINTS = 1 << 16
SMALL_UNITS, SMALL_COLUMNS, SMALL_LEVELS = 4, 2048, 128  # at most, for one block an image


def table_slots(levels: int) -> int:
    """Return an upper bound of the number of slots in the windows around the levels."""
    return 238 * levels  # 2 * kReach / (4/5 kStep), the gap, and rounding


def window_words(levels: int) -> int:
    """Return the words of memory for windows, as ECC_WINDOW_WORDS counts them."""
    return (levels * 6 + 11) & ~3


def packed_words(shape: tuple[int, ...]) -> int:
    """Return the words of packed coefficients of one image of a batch of this shape."""
    _, depth, height, width = _four(shape, len(shape) < 4, 1)
    return -(-depth // PACKED) * height * width


def total_blocks(levels: int) -> int:
    """Return the number of blocks that sum the gradients of thresholds and sharpness."""
    return -(-levels // 32) + 1


@lru_cache(maxsize=256)
def preparation(images: int, levels: int, superlevel: bool, device: int) -> Call:
    """Return the launch that computes the windows around levels and clears moments.

    It takes the addresses of thresholds, sharpness, windows, and moments or 0.
    """
    threads = min(1024, max(256, LANES * -(-levels // LANES)))
    sizes = (levels, table_slots(levels))
    return _of_levels("soft_prepare", (images,), threads, 4, sizes, superlevel, device)


@lru_cache(maxsize=256)
def evaluation(images: int, levels: int, scale: float, superlevel: bool, device: int) -> Call:
    """Return the launch that computes curves from moments.

    It takes the addresses of thresholds, sharpness, windows, moments, curves, slopes and spreads.
    """
    sizes = (levels, table_slots(levels), scale)
    grid = (-(-levels // 8), images)
    return _of_levels("soft_evaluate", grid, 256, 7, sizes, superlevel, device)


def _of_levels(
    name: str,
    grid: tuple[int, ...],
    threads: int,
    addresses: int,
    numbers: tuple[float, ...],
    superlevel: bool,
    device: int,
) -> Call:
    """Return the launch of a kernel of soft_levels.cu that takes addresses, then numbers."""
    found = function("soft_levels", name, device, (("SUPER", int(superlevel)),)).kernel
    kinds = [np.int32 if isinstance(number, int) else np.float32 for number in numbers]
    given = [np.array([number], kind) for number, kind in zip(numbers, kinds, strict=True)]
    return Call(found, grid, threads, 0, [*[np.zeros(1, np.int64)] * addresses, *given])


@lru_cache(maxsize=256)
def tabulation(
    images: int, first: int, batch: int, levels: int, totals: bool, superlevel: bool, device: int
) -> Call:
    """Return the launch that computes the tables of some images of a batch, from `first` on.

    With `totals` it also computes the gradients of thresholds and sharpness. It takes the words of
    TOTALS, then the addresses of sharpness, windows and table.
    """
    found = function("soft_levels", "soft_tabulate", device, (("SUPER", int(superlevel)),)).kernel
    slots, sums = table_slots(levels), total_blocks(levels) if totals else 0
    blocks = min(-(-slots // 256), 8)
    struct = _totals(batch, levels, sums)
    addresses = [np.zeros(1, np.int64)] * 3
    numbers = [np.array([number], np.int32) for number in (first, blocks, slots)]
    return Call(found, (sums + blocks * images,), 256, 0, [struct, *addresses, *numbers])


def _totals(batch: int, levels: int, blocks: int) -> np.ndarray:
    return np.array([(0, 0, 0, 0, 0, 0, 0, batch, levels, blocks, 0)], TOTALS)


class Scan(NamedTuple):
    """A launch of soft_scan.cu or soft_small.cu.

    Attributes
    ----------
    small : bool
        Whether it is soft_small.cu.
    moments : int
        The size of the array of moments that soft_scan.cu needs.
    scale : float
        The scale of these moments.
    """

    call: Call
    small: bool
    moments: int
    scale: float


@lru_cache(maxsize=256)
def scan(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    mask_strides: tuple[int, ...] | None,
    dtype: torch.dtype,
    directional: bool,
    connectivity: int,
    superlevel: bool,
    levels: int,
    device: int,
) -> Scan:
    """Return the scan of a part of a batch. Without levels it only computes coefficients."""
    flat = len(shape) < 4
    images, *sizes = _four(shape, flat, 1)
    rows, resident = ROWS[flat], RESIDENT[flat]
    tiles = _tiles(sizes, flat, rows)
    units = -(-math.prod(tiles) // rows) if flat else math.prod(tiles)
    # Few blocks, each with the same number of units, since they end by adding their moments.
    blocks = -(-units // -(-units * images // (resident * processors(device))))
    points = (LANES - 2) * (rows if flat else rows - 2) * OWN  # of a unit
    small = 0 < levels <= SMALL_LEVELS and units * points <= FLUSH_POINTS
    small = small and (units <= SMALL_UNITS or blocks == 1)
    if small and flat and math.prod(tiles) > rows:  # with more warps, each has fewer levels
        rows, resident = 2 * rows, resident // 2
    double = dtype == torch.float64
    macros = {
        "REAL": "double" if double else "float",
        "ELEMENT": ELEMENTS[dtype],
        "FLAT": int(flat),
        "CUBES": int(connectivity != 1),
        "SUPER": int(superlevel),
        "MASK": int(mask_strides is not None),
        "DIRECTIONAL": int(directional),
        "THREADS": LANES * rows,
        "BLOCKS": 1 if double else resident,
    }
    if not small:
        macros["DEPOSIT"] = int(levels > 0)
    name = "soft_small" if small else "soft_scan"
    found = function(name, name, device, tuple(macros.items()))
    found.preferred_shared_memory_carveout = 100
    hidden = (0,) * 4 if mask_strides is None else _four(mask_strides, flat, 0)
    image = np.array([(0, 0, 0, 0, 0, _four(strides, flat, 0), hidden, *sizes, 0)], SCANNED)
    slots, shared = table_slots(levels), _tile_bytes(flat, rows, 8 if double else 4)
    moments = MOMENTS * slots
    if small:
        limit = ALONE_WORDS if images <= processors(device) else SCAN_WORDS * rows // ROWS[flat]
        room = min(moments, limit)
        scale = _scale(min(units * points, math.prod(sizes)))
        work = np.array([(*(0,) * 7, *tiles, levels, room // MOMENTS, scale)], SMALL_WORK)
        shared += EVALUATION_BYTES * levels + 4 * (window_words(levels) + room)
        return Scan(Call(found.kernel, (images,), LANES * rows, shared, (image, work)), True, 0, 0)
    room = min(moments, SCAN_WORDS)
    flush = max(1, min(FLUSH_POINTS // points, -(-units // blocks)))
    scale = _scale(points * flush)
    tiling = np.array([(*tiles, blocks, room, flush, scale)], TILING)
    work = np.array([(0, 0, 0, levels, slots)], SCAN_WORK)
    grid, arguments = (images * blocks,), (image, tiling, work)
    call = Call(found.kernel, grid, LANES * rows, shared + 4 * room, arguments)
    return Scan(call, False, images * (moments + 1), scale)


def _tiles(sizes: Sequence[int], flat: bool, rows: int) -> tuple[int, int, int]:
    """Return the number of tiles of an image along x, y and z."""
    depth, height, width = sizes
    down = 1 if flat else -(-height // (rows - 2))
    return -(-width // (LANES - 2)), down, -(-depth // OWN)


def _tile_bytes(flat: bool, rows: int, itemsize: int) -> int:
    """Return the bytes of shared memory for the tiles of a block and what its rows exchange."""
    threads = LANES * rows
    samples = (OWN + 2) * threads + (rows if flat else 0) + PADDING
    return samples * itemsize + (0 if flat else 4 * EXCHANGED * threads)


def _scale(points: int) -> float:
    """Return a scale at which sums over so many points do not overflow."""
    return 2.0 ** min(28 - math.ceil(math.log2(points)), 20)


class Gather(NamedTuple):
    """A launch of soft_gather.cu; with `small` it needs no table."""

    call: Call
    small: bool


@lru_cache(maxsize=256)
def gather(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: torch.dtype,
    directional: bool,
    superlevel: bool,
    levels: int,
    out: torch.dtype,
    unit: bool,
    totals: bool,
    device: int,
) -> Gather:
    """Return the gradients of a part of a batch. `unit`: every coefficient counts as one."""
    flat = len(shape) < 4
    images, *sizes = _four(shape, flat, 1)
    columns = -(-sizes[0] // PACKED) * sizes[1] * sizes[2]
    most = max(1, GATHER_RESIDENT * processors(device) // images)
    turns = -(-columns // (GATHER_THREADS * most))
    blocks = -(-columns // (GATHER_THREADS * turns))
    small = levels <= SMALL_LEVELS and (columns <= SMALL_COLUMNS or blocks == 1)
    macros = {
        "ELEMENT": ELEMENTS[dtype],
        "OUT": ELEMENTS[out],
        "DIRECTIONAL": int(directional),
        "SUPER": int(superlevel),
        "UNIT": int(unit),
        "SMALL": int(small),
        "THREADS": GATHER_THREADS,
        "BLOCKS": GATHER_RESIDENT,
    }
    found = function("soft_gather", "soft_gather", device, tuple(macros.items()))
    found.preferred_shared_memory_carveout = 100
    image = np.array([(0, 0, 0, 0, _four(strides, flat, 0), *sizes, 0)], GATHERED)
    slots = table_slots(levels)
    room = min(2 * slots, GATHER_WORDS)
    work = np.array([(0, 0, 0, 0, 0, levels, slots, blocks, room)], GATHER_WORK)
    sums = total_blocks(levels) if small and totals else 0
    arguments = (image, work, _totals(shape[0], levels, sums))
    grid = (sums + images * blocks,)
    return Gather(Call(found.kernel, grid, GATHER_THREADS, 4 * room, arguments), small)


def _four(sizes: tuple[int, ...], flat: bool, filler: int) -> tuple[int, ...]:
    """Return sizes as (batch, z, y, x). Flat images have no y, and lines no z either."""
    if not flat:
        return tuple(sizes)
    batch, *rest = sizes
    along = rest[0] if len(rest) == 2 else filler
    return batch, along, filler, rest[-1]
