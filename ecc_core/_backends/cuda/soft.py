"""Soft curves on CUDA devices: launches of the soft_*.cu kernels on torch's stream.

Nothing here waits for the device or looks at a value, so calls can be captured in CUDA graphs.
Memory comes from torch. Images are (batch, *spatial) with any strides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np
import torch
from torch import Tensor

from ecc_core._backends.cuda.arrays import borrowed_stream
from ecc_core._backends.cuda.calls import Call
from ecc_core._backends.cuda.compile import function, processors

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

    def scanned(self, part: range) -> tuple[Any, ...]:
        """What a scan of some images depends on."""
        image, mask = self.image, self.mask
        return (
            (len(part), *image.shape[1:]),
            image.stride(),
            None if mask is None else mask.stride(),
            image.dtype,
            self.direction_terms is not None,
            self.connectivity,
            self.superlevel,
        )

    def gathered(self, part: range) -> tuple[Any, ...]:
        """What gradients of some images depend on."""
        image, directional = self.image, self.direction_terms is not None
        shape = (len(part), *image.shape[1:])
        return shape, image.stride(), image.dtype, directional, self.superlevel

    def offsets(self, place: int) -> list[tuple[int, int]]:
        """The words from `place` on for the addresses of the terms along z, y, x."""
        terms = self.direction_terms
        if terms is None:
            return []
        start, shape = terms.data_ptr(), self.image.shape[1:]
        axes = {1: (2,), 2: (0, 2), 3: (0, 1, 2)}[len(shape)]
        return [
            (place + axis, start + terms.itemsize * sum(shape[:i])) for i, axis in enumerate(axes)
        ]


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
    numbers = given.thresholds.data_ptr(), given.sharpness.data_ptr()
    with _launching(image) as (device, stream):
        windows = _prepare(given, device, stream)
        for part in _parts(images, max(1, MEMORY // (8 * (MOMENTS * slots + 1)))):
            scan = _plan_scan(*given.scanned(part), levels, device)
            moments = image.new_empty(scan.moments, dtype=torch.int64)
            cupy.cuda.runtime.memsetAsync(moments.data_ptr(), 0, moments.nbytes, stream)
            addresses = windows.data_ptr(), moments.data_ptr(), _row(packed, part) if keep else 0
            scan.launch(stream, given, part, addresses)
            sizes = (levels, slots, scan.scale)
            grid = (-(-levels // 8), len(part))
            evaluate = _plan_levels("soft_evaluate", grid, 256, 7, sizes, given.superlevel, device)
            rows = (_row(result, part) for result in results)
            words = (*numbers, *addresses[:2], *rows)
            evaluate.launch(stream, zip(evaluate.places, words, strict=False))
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
    with _launching(image) as (device, stream):
        windows = _prepare(given, device, stream)
        for part in _parts(images, max(1, MEMORY // (8 * slots))):
            table = image.new_empty((len(part), slots, 2), dtype=torch.float32)
            grid, sizes = (min(-(-slots // 128), 16), len(part)), (levels, slots)
            tabulate = _plan_levels("soft_tabulate", grid, 128, 8, sizes, given.superlevel, device)
            rows = [_row(t, part) for t in (upstream, slopes, spreads, by_level, by_sharpness)]
            others = (t.data_ptr() for t in (given.sharpness, windows, table))
            tabulate.launch(stream, zip(tabulate.places, (*rows, *others), strict=False))
            unit = packed is None
            gather = _plan_gather(*given.gathered(part), levels, dtype, unit, device)
            words = 0 if packed is None else _row(packed, part)
            addresses = windows.data_ptr(), table.data_ptr(), words, _row(out, part)
            gather.launch(stream, given, part, addresses)
    return out, by_level, by_sharpness


def coefficients(given: Arguments, words: tuple[int, ...]) -> Tensor:
    """Coefficients in words of images of any float type; of points outside of the mask zero."""
    packed = given.image.new_empty(words, dtype=torch.int32)
    if packed.numel():
        with _launching(given.image) as (device, stream):
            part = range(given.image.shape[0])
            scan = _plan_scan(*given.scanned(part), 0, device)
            scan.launch(stream, given, part, (0, 0, packed.data_ptr()))
    return packed


def _parts(images: int, most: int) -> list[range]:
    """The images in parts of at most some."""
    return [range(first, min(first + most, images)) for first in range(0, images, most)]


def _row(tensor: Tensor, part: range) -> int:
    """The address of the first image of a part."""
    return tensor.data_ptr() + part.start * tensor.stride(0) * tensor.itemsize


def _launching(image: Tensor) -> AbstractContextManager[tuple[int, int]]:
    """Make an image's device current; its number, and the address of torch's stream there."""
    device = image.device.index
    stream = torch._C._cuda_getCurrentRawStream(device)
    runtime = cupy.cuda.runtime
    if torch._C._cuda_getDevice() == device == runtime.getDevice():
        runtime.setDevice(device)  # in a thread that has only used torch's memory so far
        return nullcontext((device, stream))
    return _launching_on(device, stream)


@contextmanager
def _launching_on(device: int, stream: int) -> Iterator[tuple[int, int]]:
    with torch.cuda.device(device), cupy.cuda.Device(device):
        yield device, stream


@contextmanager
def on_stream(image: Tensor) -> Iterator[int]:
    """Make the image's device and torch's stream current for CuPy; the number of the device."""
    device = image.device.index
    with torch.cuda.device(device), cupy.cuda.Device(device), borrowed_stream(device):
        yield device


def _prepare(given: Arguments, device: int, stream: int) -> Tensor:
    levels = given.thresholds.numel()
    windows = given.thresholds.new_empty(6 * levels + 8)
    threads = min(1024, LANES * -(-levels // LANES))
    call = _plan_levels("soft_prepare", (1,), threads, 3, (levels,), given.superlevel, device)
    addresses = (t.data_ptr() for t in (given.thresholds, given.sharpness, windows))
    call.launch(stream, zip(call.places, addresses, strict=False))
    return windows


@lru_cache(maxsize=256)
def _plan_levels(
    name: str,
    grid: tuple[int, ...],
    threads: int,
    addresses: int,
    numbers: tuple[float, ...],
    superlevel: bool,
    device: int,
) -> Call:
    """A kernel of soft_levels.cu, which takes addresses, then numbers."""
    found = function("soft_levels", name, device, (("SUPER", int(superlevel)),)).kernel
    kinds = [np.int32 if isinstance(number, int) else np.float32 for number in numbers]
    given = [np.array([number], kind) for number, kind in zip(numbers, kinds, strict=True)]
    return Call(found, grid, threads, 0, [*[np.zeros(1, np.int64)] * addresses, *given])


class _Scan(NamedTuple):
    """A launch of soft_scan.cu, the moments that it needs, and their scale."""

    call: Call
    moments: int
    scale: float

    def launch(
        self, stream: int, given: Arguments, part: range, addresses: tuple[int, int, int]
    ) -> None:
        """Launch for some images, with the addresses of windows, moments and coefficients."""
        image, _, work = self.call.places
        words = [(image, _row(given.image, part)), *given.offsets(image + 2)]
        if given.mask is not None:
            words.append((image + 1, _row(given.mask, part)))
        self.call.launch(stream, (*words, *enumerate(addresses, work)))


@lru_cache(maxsize=256)
def _plan_scan(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    mask_strides: tuple[int, ...] | None,
    dtype: torch.dtype,
    directional: bool,
    connectivity: int,
    superlevel: bool,
    levels: int,
    device: int,
) -> _Scan:
    """The scan of a part of a batch; without levels it finds coefficients only."""
    flat = len(shape) < 4
    images, depth, height, width = _four(shape, flat, 1)
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
        "DEPOSIT": int(levels > 0),
        "THREADS": LANES * rows,
        "BLOCKS": 1 if double else RESIDENT[flat],
    }
    found = function("soft_scan", "soft_scan", device, tuple(macros.items()))
    found.preferred_shared_memory_carveout = 100
    hidden = (0,) * 4 if mask_strides is None else _four(mask_strides, flat, 0)
    image = np.array(
        [(0, 0, 0, 0, 0, _four(strides, flat, 0), hidden, depth, height, width, 0)], SCANNED
    )
    units = across * down * (-(-chunks // rows) if flat else chunks)
    points = (LANES - 2) * (rows if flat else rows - 2) * OWN  # of a unit
    # Few blocks, each of as many units: they end by adding their moments.
    blocks = -(-units // -(-units * images // (RESIDENT[flat] * processors(device))))
    flush = max(1, min(FLUSH_POINTS // points, -(-units // blocks)))
    scale = 2.0 ** min(28 - math.ceil(math.log2(points * flush)), 20)
    slots = levels * SLOTS_A_LEVEL
    room = min(MOMENTS * slots, SCAN_WORDS)
    tiling = np.array([(across, down, chunks, blocks, room, flush, scale)], TILING)
    work = np.array([(0, 0, 0, levels, slots)], SCAN_WORK)
    threads = LANES * rows
    samples = (OWN + 2) * threads + PADDING
    shared = samples * (8 if double else 4) + (0 if flat else 4 * EXCHANGED * threads) + 4 * room
    call = Call(found.kernel, (images * blocks,), (LANES, rows), shared, (image, tiling, work))
    return _Scan(call, images * (MOMENTS * slots + 1), scale)


class _Gather(NamedTuple):
    """A launch of soft_gather.cu."""

    call: Call

    def launch(
        self, stream: int, given: Arguments, part: range, addresses: tuple[int, ...]
    ) -> None:
        """Launch for some images, with the addresses of windows, table, coefficients and result."""
        image, work = self.call.places
        words = ((image, _row(given.image, part)), *given.offsets(image + 1))
        self.call.launch(stream, (*words, *enumerate(addresses, work)))


@lru_cache(maxsize=256)
def _plan_gather(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: torch.dtype,
    directional: bool,
    superlevel: bool,
    levels: int,
    out: torch.dtype,
    unit: bool,
    device: int,
) -> _Gather:
    """The gradients of a part of a batch; `unit`: as if every coefficient were one."""
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
    flat = len(shape) < 4
    images, *sizes = _four(shape, flat, 1)
    struct = np.array([(0, 0, 0, 0, _four(strides, flat, 0), *sizes, 0)], GATHERED)
    columns = -(-sizes[0] // PACKED) * sizes[1] * sizes[2]
    most = max(1, GATHER_RESIDENT * processors(device) // images)
    turns = -(-columns // (GATHER_THREADS * most))
    blocks = -(-columns // (GATHER_THREADS * turns))
    slots = levels * SLOTS_A_LEVEL
    room = min(2 * slots, GATHER_WORDS)
    work = np.array([(0, 0, 0, 0, levels, slots, blocks, room)], GATHER_WORK)
    return _Gather(Call(found.kernel, (images * blocks,), GATHER_THREADS, 4 * room, (struct, work)))


def _four(sizes: tuple[int, ...], flat: bool, filler: int) -> tuple[int, ...]:
    """Of (batch, z, y, x) from those of an image; flat images have no y, lines no z either."""
    if not flat:
        return tuple(sizes)
    batch, *rest = sizes
    along = rest[0] if len(rest) == 2 else filler
    return batch, along, filler, rest[-1]
