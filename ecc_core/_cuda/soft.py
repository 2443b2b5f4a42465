"""Soft curves on CUDA devices: launches of soft_levels.cu and soft_points.cu on torch's stream.

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
from torch import Tensor

from ecc_core._cuda.arrays import borrow
from ecc_core._cuda.compile import function, processors
from ecc_core._cuda.recipe import by_value

__all__ = ["coefficients", "curves", "gradient"]

# As in soft_points.cu.
IMAGE = np.dtype(
    [(name, "i8") for name in ("data", "mask", "tilt_z", "tilt_y", "tilt_x")]
    + [("strides", "i8", 4), ("mask_strides", "i8", 4)]
    + [(name, "i4") for name in ("depth", "height", "width", "padding")]
)
TILING = np.dtype(
    [(n, "i4") for n in ("across", "down", "chunks", "own", "blocks", "room", "flush")]
    + [("scale", "f4")]
)
WORK = np.dtype(
    [("windows", "i8"), ("levels", "i4"), ("slots", "i4")]
    + [(name, "i8") for name in ("moments", "table", "out")]
)
DEPOSIT, GATHER, COEFFICIENTS, UNIT = range(4)
ELEMENTS = {
    torch.float16: "Half",
    torch.bfloat16: "BFloat",
    torch.float32: "float",
    torch.float64: "double",
}

LANES = 32
SLOTS_A_LEVEL = 2 * 14 * 10 * 5 // 4 + 3  # 2 * kReach / (least bin width), and the gap
MOMENTS = 3
EXCHANGED = 9
WINDOW_WORDS = 6  # a level, and 8 more
MEMORY = 1 << 25  # bytes of moments or tables at once
ROWS = {True: 8, False: 16}  # of a block, in flat images or not
MOST_OWN = {True: 31, False: 15}  # points of a column
DEPOSIT_WORDS, GATHER_WORDS = 9216, 6144  # of shared memory
RESIDENT = {True: 3, False: 2}  # blocks on a multiprocessor
FLUSH_POINTS = 1 << 16


def curves(
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    tilt: Tensor | None,
    mask: Tensor | None,
    construction: str,
    superlevel: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Curves (batch, n) and their derivatives by the thresholds and by the sharpness.

    NaN in an argument gives NaN: in an image that image's curve, elsewhere all of them.
    """
    images, levels = image.shape[0], thresholds.numel()
    curve, slopes, spreads = (thresholds.new_zeros((images, levels)) for _ in range(3))
    if image.numel() == 0 or levels == 0:
        return curve, slopes, spreads
    slots = levels * SLOTS_A_LEVEL
    with _stream(image) as device:
        numbers = thresholds.contiguous(), sharpness
        memory = _prepare(device, *numbers, superlevel)
        call = _Points(image, tilt, mask, construction, superlevel, DEPOSIT, torch.float32)
        step = max(1, MEMORY // (8 * (MOMENTS * slots + 1)))
        for first in range(0, images, step):
            count = min(step, images - first)
            moments = image.new_zeros((count, MOMENTS * slots + 1), dtype=torch.int64)
            scale = call.launch(first, count, memory, levels, slots, moments=moments)
            evaluate = _levels_kernel("soft_evaluate", device, superlevel)
            arguments = (
                *(t.data_ptr() for t in (*numbers, memory)),
                *(np.int32(levels), np.int32(slots), moments.data_ptr(), np.float32(scale)),
                *(t.data_ptr() + first * levels * t.itemsize for t in (curve, slopes, spreads)),
            )
            evaluate((-(-levels // 8), count), (256,), arguments)
    return curve, slopes, spreads


def gradient(
    upstream: Tensor,
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    tilt: Tensor | None,
    mask: Tensor | None,
    construction: str,
    superlevel: bool,
    unit: bool,
    dtype: torch.dtype,
) -> Tensor:
    """The gradient of the images in a dtype; with `unit` as if every coefficient were one."""
    images, levels = image.shape[0], thresholds.numel()
    if image.numel() == 0 or levels == 0:
        return torch.zeros(image.shape, dtype=dtype, device=image.device)
    out = torch.empty(image.shape, dtype=dtype, device=image.device)
    slots = levels * SLOTS_A_LEVEL
    with _stream(image) as device:
        upstream = upstream.contiguous()
        memory = _prepare(device, thresholds.contiguous(), sharpness, superlevel)
        mode = UNIT if unit else GATHER
        call = _Points(image, tilt, mask, construction, superlevel, mode, dtype)
        step = max(1, MEMORY // (8 * slots))
        for first in range(0, images, step):
            count = min(step, images - first)
            table = upstream.new_empty((count, slots, 2))
            tabulate = _levels_kernel("soft_tabulate", device, superlevel)
            arguments = (
                upstream.data_ptr() + first * levels * upstream.itemsize,
                sharpness.data_ptr(),
                memory.data_ptr(),
                np.int32(levels),
                np.int32(slots),
                table.data_ptr(),
            )
            tabulate((min(-(-slots // 128), 64), count), (128,), arguments)
            call.launch(first, count, memory, levels, slots, table=table, out=out[first:])
    return out


def coefficients(
    image: Tensor, tilt: Tensor | None, mask: Tensor | None, construction: str, superlevel: bool
) -> Tensor:
    """Coefficients of the points, int8 of the image's shape; no meaning outside of the mask."""
    out = torch.zeros(image.shape, dtype=torch.int8, device=image.device)
    if out.numel():
        with _stream(image):
            call = _Points(image, tilt, mask, construction, superlevel, COEFFICIENTS, torch.int8)
            call.launch(0, image.shape[0], None, 0, 0, out=out)
    return out


@contextmanager
def _stream(image: Tensor) -> Iterator[int]:
    """Make the image's device and torch's stream current for CuPy; the number of the device."""
    stream = torch.cuda.current_stream(image.device)
    with torch.cuda.device(image.device), cupy.cuda.Device(image.device.index), borrow(stream):
        yield image.device.index


def _levels_kernel(name: str, device: int, superlevel: bool) -> Any:
    return function("soft_levels", name, device, (("SUPER", int(superlevel)),)).kernel


def _prepare(device: int, thresholds: Tensor, sharpness: Tensor, superlevel: bool) -> Tensor:
    levels = thresholds.numel()
    memory = thresholds.new_empty(WINDOW_WORDS * levels + 8)
    addresses = (t.data_ptr() for t in (thresholds, sharpness, memory))
    threads = min(1024, 32 * -(-levels // 32))
    prepare = _levels_kernel("soft_prepare", device, superlevel)
    prepare((1,), (threads,), (*addresses, np.int32(levels)))
    return memory


class Layout(NamedTuple):
    """Units of work along x, y, z, points of a column, and whether the image is flat."""

    across: int
    down: int
    chunks: int
    own: int
    flat: bool

    @property
    def rows(self) -> int:
        return ROWS[self.flat]

    @property
    def units(self) -> int:
        chunks = -(-self.chunks // self.rows) if self.flat else self.chunks
        return self.across * self.down * chunks

    @property
    def points(self) -> int:
        """Of a unit, at most."""
        rows = self.rows if self.flat else self.rows - 2
        return (LANES - 2) * rows * self.own


@lru_cache(maxsize=256)
def _lay_out(depth: int, height: int, width: int, flat: bool) -> Layout:
    chunks = -(-depth // MOST_OWN[flat])
    down = 1 if flat else -(-height // (ROWS[flat] - 2))
    return Layout(-(-width // (LANES - 2)), down, chunks, -(-depth // chunks), flat)


class _Points:
    """A kernel of soft_points.cu for images of one kind."""

    def __init__(
        self,
        image: Tensor,
        tilt: Tensor | None,
        mask: Tensor | None,
        construction: str,
        superlevel: bool,
        mode: int,
        out: torch.dtype,
    ) -> None:
        flat = image.dim() < 4
        shape = _four(image.shape, flat, 1)
        self.image, self.mode = image, mode
        self.layout = _lay_out(*shape[1:], flat)
        self.mask = None if mask is None else mask.expand(image.shape)
        self.tilt = None if tilt is None else _tilt_terms(tilt, image, flat)
        real = "double" if image.dtype == torch.float64 else "float"
        self.itemsize = 8 if real == "double" else 4
        self.struct = np.zeros(1, IMAGE)
        self.struct["strides"] = _four(image.stride(), flat, 0)
        if self.mask is not None:
            self.struct["mask_strides"] = _four(self.mask.stride(), flat, 0)
        if self.tilt is not None:
            for name, term in zip(("tilt_z", "tilt_y", "tilt_x"), self.tilt, strict=True):
                self.struct[name] = term.data_ptr()
        self.struct["depth"], self.struct["height"], self.struct["width"] = shape[1:]
        macros = {
            "REAL": real,
            "ELEMENT": ELEMENTS[image.dtype],
            "OUT": ELEMENTS.get(out, real),
            "MODE": mode,
            "FLAT": int(flat),
            "DUAL": int(construction == "T"),
            "SUPER": int(superlevel),
            "MASK": int(mask is not None),
            "TILT": int(tilt is not None),
            "THREADS": LANES * ROWS[flat],
            "BLOCKS": RESIDENT[flat],
        }
        self.device = image.device.index
        self.kernel = function("soft_points", "soft_points", self.device, tuple(macros.items()))

    def launch(
        self,
        first: int,
        images: int,
        windows: Tensor | None,
        levels: int,
        slots: int,
        *,
        moments: Tensor | None = None,
        table: Tensor | None = None,
        out: Tensor | None = None,
    ) -> float:
        """Work on some images of the batch; the scale of the moments."""
        layout = self.layout
        self.struct["data"] = self.image.data_ptr() + (
            first * self.image.stride(0) * self.image.itemsize
        )
        if self.mask is not None:
            self.struct["mask"] = self.mask.data_ptr() + first * self.mask.stride(0)
        most = RESIDENT[layout.flat] * processors(self.device)
        blocks = max(1, min(layout.units, -(-most // images)))
        flush = max(1, min(FLUSH_POINTS // layout.points, -(-layout.units // blocks)))
        bits = 27 - math.ceil(math.log2(layout.points * flush))
        scale = 2.0 ** min(bits + 1, 20)
        words = {DEPOSIT: min(MOMENTS * slots, DEPOSIT_WORDS), COEFFICIENTS: 0}
        room = words.get(self.mode, min(2 * slots, GATHER_WORDS))
        threads = LANES * layout.rows
        exchanged = 0 if layout.flat or self.mode == UNIT else EXCHANGED
        shared = threads * ((layout.own + 2) * self.itemsize + 4 * exchanged) + 4 * room
        tiling = np.array([(*layout[:4], blocks, room, flush, scale)], TILING)
        addresses = (0 if t is None else t.data_ptr() for t in (moments, table, out))
        work = np.array(
            [(0 if windows is None else windows.data_ptr(), levels, slots, *addresses)], WORK
        )
        self.kernel.kernel(
            (images * blocks,),
            (LANES, layout.rows),
            (by_value(self.struct), by_value(tiling), by_value(work)),
            shared_mem=shared,
        )
        return scale


def _four(sizes: tuple[int, ...], flat: bool, filler: int) -> tuple[int, ...]:
    """Of (batch, z, y, x) from those of an image; flat images have no y, lines no z either."""
    if not flat:
        return tuple(sizes)
    batch, *rest = sizes
    along = rest[0] if len(rest) == 2 else filler
    return batch, along, filler, rest[-1]


def _tilt_terms(tilt: Tensor, image: Tensor, flat: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Terms along z, y, x."""
    terms = torch.split(tilt.contiguous(), list(image.shape[1:]))
    if not flat:
        return terms[0], terms[1], terms[2]
    zero = tilt.new_zeros(1)
    return (terms[0] if len(terms) == 2 else zero), zero, terms[-1]
