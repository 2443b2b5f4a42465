"""Soft curves on CUDA devices: launches of the soft_*.cu kernels on torch's stream.

Nothing here waits for the device or looks at a value, so calls can be captured in CUDA graphs.
Memory comes from torch. Images are (batch, *spatial) with any strides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecc_core._backends.cuda.arrays import borrow
from ecc_core._backends.cuda.compile import function, processors
from ecc_core._backends.cuda.recipe import by_value

__all__ = ["Arguments", "coefficients", "curves", "gradients", "on_stream"]

# Structures of soft_scan.cu and soft_gather.cu, with the names of their fields.
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
GATHERED = np.dtype(
    [(name, "i8") for name in ("data", "offset_z", "offset_y", "offset_x")]
    + [("strides", "i8", 4)]
    + [(name, "i4") for name in ("depth", "height", "width", "padding")]
)
GATHER_WORK = np.dtype(
    [(name, "i8") for name in ("windows", "table", "packed", "out")]
    + [(name, "i4") for name in ("levels", "slots", "blocks", "room")]
)
WEIGHTED = np.dtype(
    [(name, "i8") for name in ("gradients", "slopes", "spreads", "by_level", "by_sharpness")]
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
SLOTS_A_LEVEL = 238  # 2 * kReach / (4/5 kStep), the gap, and rounding
ROWS = {True: 8, False: 18}  # of a block, in flat images or not
RESIDENT = {True: 4, False: 2}  # blocks on a multiprocessor
GATHER_THREADS, GATHER_RESIDENT = 256, 4

MEMORY = 1 << 25  # bytes of moments or tables at once
SCAN_WORDS, GATHER_WORDS = 8192, 6144  # of shared memory, for moments and tables
FLUSH_POINTS = 1 << 16


class Arguments(NamedTuple):
    """What a curve is computed from: an image that is not float64, and float32 numbers."""

    image: Tensor
    thresholds: Tensor
    sharpness: Tensor
    direction_terms: Tensor | None
    mask: Tensor | None
    connectivity: int
    superlevel: bool


def curves(
    given: Arguments, words: tuple[int, ...], keep: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Curves (batch, n), derivatives by thresholds and sharpness, and coefficients in words.

    NaN in an argument gives NaN: in an image that image's curve, elsewhere all of them.
    """
    image, levels = given.image, given.thresholds.numel()
    images = image.shape[0]
    packed = image.new_empty(words, dtype=torch.int32)
    results = [given.thresholds.new_empty((images, levels)) for _ in range(3)]
    if image.numel() == 0 or levels == 0:
        return results[0].zero_(), results[1].zero_(), results[2].zero_(), packed
    slots = levels * SLOTS_A_LEVEL
    with on_stream(image) as device:
        memory = _prepare(device, given)
        evaluate = _levels_kernel("soft_evaluate", device, given.superlevel)
        step = max(1, MEMORY // (8 * (MOMENTS * slots + 1)))
        for first in range(0, images, step):
            part = slice(first, first + step)
            count = min(step, images - first)
            moments = image.new_zeros((count, MOMENTS * slots + 1), dtype=torch.int64)
            scale = _scan(given, part, memory, slots, moments, packed[part] if keep else None)
            arguments = (
                *(t.data_ptr() for t in (given.thresholds, given.sharpness, memory)),
                *(np.int32(levels), np.int32(slots), moments.data_ptr(), np.float32(scale)),
                *(result[part].data_ptr() for result in results),
            )
            evaluate((-(-levels // 8), count), (256,), arguments)
    return results[0], results[1], results[2], packed


def gradients(
    given: Arguments,
    upstream: Tensor,
    slopes: Tensor,
    spreads: Tensor,
    packed: Tensor | None,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradient of the images in a dtype; without `packed` as if every coefficient were one.

    And the gradients of thresholds (batch, n) and sharpness (batch,), image by image.
    """
    image, levels = given.image, given.thresholds.numel()
    images = image.shape[0]
    out = torch.empty(image.shape, dtype=dtype, device=image.device)
    by_level, by_sharpness = torch.empty_like(slopes), slopes.new_empty(images)
    if image.numel() == 0 or levels == 0:
        return out.zero_(), by_level.zero_(), by_sharpness.zero_()
    slots = levels * SLOTS_A_LEVEL
    with on_stream(image) as device:
        memory = _prepare(device, given)
        tabulate = _levels_kernel("soft_tabulate", device, given.superlevel)
        step = max(1, MEMORY // (8 * slots))
        for first in range(0, images, step):
            part = slice(first, first + step)
            count = min(step, images - first)
            table = image.new_empty((count, slots, 2), dtype=torch.float32)
            rows = (upstream, slopes, spreads, by_level, by_sharpness)
            weighted = np.array([tuple(t[part].data_ptr() for t in rows)], WEIGHTED)
            arguments = (
                *(by_value(weighted), given.sharpness.data_ptr(), memory.data_ptr()),
                *(np.int32(levels), np.int32(slots), table.data_ptr()),
            )
            tabulate((min(-(-slots // 128), 16), count), (128,), arguments)
            _gather(given, part, memory, table, None if packed is None else packed[part], out[part])
    return out, by_level, by_sharpness


def coefficients(given: Arguments, words: tuple[int, ...]) -> Tensor:
    """Coefficients in words of images of any float type; of points outside of the mask zero."""
    packed = given.image.new_empty(words, dtype=torch.int32)
    if packed.numel():
        with on_stream(given.image):
            _scan(given, slice(None), None, 0, None, packed)
    return packed


@contextmanager
def on_stream(image: Tensor) -> Iterator[int]:
    """Make the image's device and torch's stream current for CuPy; the number of the device."""
    stream = torch.cuda.current_stream(image.device)
    with torch.cuda.device(image.device), cupy.cuda.Device(image.device.index), borrow(stream):
        yield image.device.index


@lru_cache(maxsize=64)
def _levels_kernel(name: str, device: int, superlevel: bool) -> Any:
    return function("soft_levels", name, device, (("SUPER", int(superlevel)),)).kernel


def _prepare(device: int, given: Arguments) -> Tensor:
    levels = given.thresholds.numel()
    memory = given.thresholds.new_empty(6 * levels + 8)
    addresses = (t.data_ptr() for t in (given.thresholds, given.sharpness, memory))
    threads = min(1024, LANES * -(-levels // LANES))
    prepare = _levels_kernel("soft_prepare", device, given.superlevel)
    prepare((1,), (threads,), (*addresses, np.int32(levels)))
    return memory


class _Scan(NamedTuple):
    """A kernel of soft_scan.cu, and the structures it takes, without addresses."""

    kernel: Any
    image: NDArray[Any]
    units: int
    points: int
    tiling: tuple[int, int, int]
    rows: int
    shared: int


@lru_cache(maxsize=256)
def _plan_scan(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    mask_strides: tuple[int, ...] | None,
    dtype: torch.dtype,
    directional: bool,
    connectivity: int,
    superlevel: bool,
    deposit: bool,
    device: int,
) -> _Scan:
    flat = len(shape) < 4
    _, depth, height, width = _four(shape, flat, 1)
    rows = ROWS[flat]
    chunks, across = -(-depth // OWN), -(-width // (LANES - 2))
    down = 1 if flat else -(-height // (rows - 2))
    double = dtype == torch.float64
    macros = {
        "REAL": "double" if double else "float",
        "ELEMENT": ELEMENTS[dtype],
        "FLAT": int(flat),
        "CUBES": int(connectivity != 1),
        "SUPER": int(superlevel),
        "MASK": int(mask_strides is not None),
        "DIRECTIONAL": int(directional),
        "DEPOSIT": int(deposit),
        "THREADS": LANES * rows,
        "BLOCKS": 1 if double else RESIDENT[flat],
    }
    found = function("soft_scan", "soft_scan", device, tuple(macros.items()))
    found.preferred_shared_memory_carveout = 100
    hidden = (0,) * 4 if mask_strides is None else _four(mask_strides, flat, 0)
    image = np.array(
        [(0, 0, 0, 0, 0, _four(strides, flat, 0), hidden, depth, height, width, 0)], SCANNED
    )
    threads = LANES * rows
    samples = (OWN + 2) * threads + PADDING
    return _Scan(
        found.kernel,
        image,
        across * down * (-(-chunks // rows) if flat else chunks),
        (LANES - 2) * (rows if flat else rows - 2) * OWN,
        (across, down, chunks),
        rows,
        samples * (8 if double else 4) + (0 if flat else 4 * EXCHANGED * threads),
    )


def _scan(
    given: Arguments,
    part: slice,
    windows: Tensor | None,
    slots: int,
    moments: Tensor | None,
    packed: Tensor | None,
) -> float:
    """Compute moments and coefficients of a part of the batch; the scale of the moments."""
    image, device = given.image[part], given.image.device.index
    mask = None if given.mask is None else given.mask.expand(given.image.shape)[part]
    plan = _plan_scan(
        (1, *image.shape[1:]),
        image.stride(),
        None if mask is None else mask.stride(),
        image.dtype,
        given.direction_terms is not None,
        given.connectivity,
        given.superlevel,
        moments is not None,
        device,
    )
    struct = plan.image.copy()
    struct["data"] = image.data_ptr()
    if mask is not None:
        struct["mask"] = mask.data_ptr()
    _add_direction(struct, given)
    images = image.shape[0]
    most = RESIDENT[image.dim() < 4] * processors(device)
    # Few blocks, each of as many units: they end by adding their moments.
    blocks = -(-plan.units // -(-plan.units * images // most))
    flush = max(1, min(FLUSH_POINTS // plan.points, -(-plan.units // blocks)))
    scale = 2.0 ** min(28 - math.ceil(math.log2(plan.points * flush)), 20)
    room = min(MOMENTS * slots, SCAN_WORDS)
    tiling = np.array([(*plan.tiling, blocks, room, flush, scale)], TILING)
    addresses = (0 if t is None else t.data_ptr() for t in (windows, moments, packed))
    work = np.array([(*addresses, given.thresholds.numel(), slots)], SCAN_WORK)
    plan.kernel(
        (images * blocks,),
        (LANES, plan.rows),
        (by_value(struct), by_value(tiling), by_value(work)),
        shared_mem=plan.shared + 4 * room,
    )
    return scale


def _gather(
    given: Arguments,
    part: slice,
    windows: Tensor,
    table: Tensor,
    packed: Tensor | None,
    out: Tensor,
) -> None:
    """Write the gradient of a part of the batch."""
    image, device = given.image[part], given.image.device.index
    kernel = _gather_kernel(
        image.dtype,
        out.dtype,
        given.direction_terms is not None,
        given.superlevel,
        packed is None,
        device,
    )
    flat = image.dim() < 4
    images, *shape = _four(image.shape, flat, 1)
    struct = np.array([(0, 0, 0, 0, _four(image.stride(), flat, 0), *shape, 0)], GATHERED)
    struct["data"] = image.data_ptr()
    _add_direction(struct, given)
    columns = -(-shape[0] // PACKED) * shape[1] * shape[2]
    most = max(1, GATHER_RESIDENT * processors(device) // images)
    turns = -(-columns // (GATHER_THREADS * most))
    blocks = -(-columns // (GATHER_THREADS * turns))
    slots = table.shape[1]
    room = min(2 * slots, GATHER_WORDS)
    addresses = (0 if t is None else t.data_ptr() for t in (windows, table, packed, out))
    work = np.array([(*addresses, given.thresholds.numel(), slots, blocks, room)], GATHER_WORK)
    arguments = (by_value(struct), by_value(work))
    kernel((images * blocks,), (GATHER_THREADS,), arguments, shared_mem=4 * room)


@lru_cache(maxsize=64)
def _gather_kernel(
    dtype: torch.dtype,
    out: torch.dtype,
    directional: bool,
    superlevel: bool,
    unit: bool,
    device: int,
) -> Any:
    macros = {
        "ELEMENT": ELEMENTS[dtype],
        "OUT": ELEMENTS[out],
        "DIRECTIONAL": int(directional),
        "SUPER": int(superlevel),
        "UNIT": int(unit),
        "THREADS": GATHER_THREADS,
        "BLOCKS": GATHER_RESIDENT,
    }
    found = function("soft_gather", "soft_gather", device, tuple(macros.items()))
    found.preferred_shared_memory_carveout = 100
    return found.kernel


def _four(sizes: tuple[int, ...], flat: bool, filler: int) -> tuple[int, ...]:
    """Of (batch, z, y, x) from those of an image; flat images have no y, lines no z either."""
    if not flat:
        return tuple(sizes)
    batch, *rest = sizes
    along = rest[0] if len(rest) == 2 else filler
    return batch, along, filler, rest[-1]


def _add_direction(struct: NDArray[Any], given: Arguments) -> None:
    """Addresses of the terms along z, y, x."""
    if given.direction_terms is None:
        return
    shape = given.image.shape[1:]
    start, step = given.direction_terms.data_ptr(), given.direction_terms.itemsize
    starts = [start + step * sum(shape[:i]) for i in range(3)]
    axes = {1: ("offset_x",), 2: ("offset_z", "offset_x"), 3: ("offset_z", "offset_y", "offset_x")}
    for name, address in zip(axes[len(shape)], starts, strict=False):
        struct[name] = address
