"""Cut an image into blocks, and stage and march over them one by one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._cpu import kernels, loaders
from ecc_core._cpu.plans import Construction, Plan
from ecc_core._directions import Tilt

__all__ = ["Block", "Marcher", "Source", "TiltedSource", "cut"]

Array = NDArray[Any]

STAGED_BYTES = 1 << 20  # keys of one block: they stay in the second-level cache
MAX_ROWS = 64
MAX_COLUMNS = 8192


class Block(NamedTuple):
    """Own points of a block: half-open ranges along (z, y, x)."""

    start: tuple[int, int, int]
    stop: tuple[int, int, int]


class Source:
    """Read-only access to boxes of a (slices, rows, columns) array by address."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.shape: tuple[int, int, int] = (array.shape[0], array.shape[1], array.shape[2])
        size = array.itemsize
        self.direct = (
            array.dtype.isnative
            and array.flags.aligned
            and (array.shape[2] <= 1 or array.strides[2] == size)
            and all(step % size == 0 for step in array.strides[:2])
        )

    def box(self, block: Block) -> tuple[int, tuple[int, int], Array]:
        """Address, strides of slices and rows in elements, and the array they belong to."""
        part = self.array[tuple(map(slice, block.start, block.stop))]
        if not self.direct:
            part = self.read(part, block.start)
        size = part.itemsize
        return part.ctypes.data, (part.strides[0] // size, part.strides[1] // size), part

    def read(self, part: Array, start: tuple[int, ...]) -> Array:
        return np.array(part, dtype=part.dtype.newbyteorder("="), order="C")


class TiltedSource(Source):
    """Boxes of a directional filtration, computed one at a time."""

    def __init__(self, array: Array, tilt: Tilt) -> None:
        super().__init__(array)
        self.direct = False
        self.tilt = tilt

    def read(self, part: Array, start: tuple[int, ...]) -> Array:
        lead = 3 - len(self.tilt.terms)
        return np.ascontiguousarray(self.tilt.add(part, start[lead:]))


def cut(shape: tuple[int, int, int], key_size: int, ndim: int) -> list[Block]:
    """Blocks that cover a volume, or a stack of images, and whose keys fit in the cache."""
    slices, rows, columns = shape
    width = min(columns, MAX_COLUMNS)
    row_bytes = (width + 128) * key_size
    if ndim == 3:
        height = min(rows, MAX_ROWS)
        depth = max(8, STAGED_BYTES // (row_bytes * (height + 2)) - 2)
    else:
        height = min(rows, max(MAX_ROWS, STAGED_BYTES // (4 * row_bytes)))
        depth = max(1, STAGED_BYTES // (4 * row_bytes * (height + 2)))
    return [
        Block((z, y, x), (min(z + depth, slices), min(y + height, rows), min(x + width, columns)))
        for z in range(0, slices, depth)
        for y in range(0, rows, height)
        for x in range(0, columns, width)
    ]


class Marcher:
    """Scratch memory of one thread, and the march over one block after another."""

    def __init__(self, source: Source, mask: Source | None, construction: Construction, ndim: int):
        self.source = source
        self.mask = mask
        self.closed = construction == "T"
        self.ndim = ndim
        self._scratch: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def _memory(self, plan: Plan, own: tuple[int, int, int], lead: int) -> tuple[Any, ...]:
        slices, rows, columns = own
        key = (plan.key_dtype, slices, rows, columns, lead)
        if key not in self._scratch:
            self._scratch.clear()
            words = lead + (columns + 63) // 64
            pitch, height = 64 * (words + 1), -(-rows // kernels.ROWS) * kernels.ROWS + 2
            keys = np.empty((slices + 2) * height * pitch, plan.key_dtype)
            kinds = 14 if self.ndim == 3 else 3
            planes = np.empty(kinds * words * (rows + 2 * kernels.ROWS), np.uint64)
            word = np.empty(5 * kernels.ROWS, np.uint64)
            carry = np.empty(3 * height, np.uint64)
            queue = np.empty((6, kernels.QUEUE_ROOM), np.uint64)
            event_keys = np.empty(kernels.EVENT_ROOM, plan.key_dtype)
            event_coefficients = np.empty(kernels.EVENT_ROOM, np.int8)
            geometry = (slices, rows, columns, lead, pitch, height * pitch)
            self._scratch[key] = (
                keys,
                geometry,
                (planes, word, carry, queue, event_keys, event_coefficients),
            )
        return self._scratch[key]

    def stage(self, plan: Plan, block: Block) -> tuple[bool, bool, tuple[Any, ...]]:
        """Load a block's keys; whether there was a NaN, whether a key did not fit, the memory."""
        shape = self.source.shape
        own = tuple(b - a for a, b in zip(block.start, block.stop, strict=True))
        lead = int(block.start[2] > 0)
        memory = self._memory(plan, own, lead)  # type: ignore[arg-type]
        keys, geometry, _ = memory
        halo = (int(self.ndim == 3), 1, 1)
        before = (halo[0], halo[1], 64 * lead)
        start = tuple(max(a - h, 0) for a, h in zip(block.start, before, strict=True))
        stop = tuple(min(b + h, n) for b, h, n in zip(block.stop, halo, shape, strict=True))
        box = Block(start, stop)  # type: ignore[arg-type]
        extents = tuple(b - a for a, b in zip(start, stop, strict=True))
        steps = (geometry[5], geometry[4])
        at = (
            (1 - (block.start[0] - start[0])) * steps[0]
            + (1 - (block.start[1] - start[1])) * steps[1]
            + 64 * lead
            - (block.start[2] - start[2])
        )
        # The loaders read by address: the arrays must live until they are done.
        address, strides, values = self.source.box(box)
        nan, unfit = plan.load(address, strides, extents, keys, at, steps)
        if self.mask is not None:
            address, strides, shown = self.mask.box(box)
            loaders.hide_points(address, strides, extents, keys, at, steps, np.uint64(plan.never))
            nan = nan and bool(np.isnan(values[shown.view(np.bool_)]).any())
        return nan, unfit, memory

    def march(self, block: Block, memory: tuple[Any, ...], histograms: Array, out: Array) -> None:
        """Add a staged block to histograms, or write its coefficients to `out`."""
        keys, geometry, scratch = memory
        low = tuple(a == 0 for a in block.start)
        high = tuple(b == n for b, n in zip(block.stop, self.source.shape, strict=True))
        if self.ndim == 3:
            kernels.march_3d(keys, geometry, low, high, self.closed, *scratch, histograms[0], out)
        else:
            kernels.march_2d(keys, geometry, low, high, self.closed, *scratch, histograms, out)
