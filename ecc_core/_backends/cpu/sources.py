"""Boxes of images as rows in memory: where they lie already, or as copies that a thread keeps."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from numba import carray, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.kernels import image_row, pointer
from ecc_core._request.filtration import Direction

__all__ = ["Block", "DirectionalSource", "Source", "copy_box", "memory_order", "scratch"]

Array = NDArray[Any]

CACHE_LINE = 64
KEPT_BYTES = 1 << 23  # of each kind of memory, by each thread
TILE = 16  # neighbours in memory that are copied to as many rows at a time


class Block(NamedTuple):
    """Own points of a block: half-open ranges along (z, y, x)."""

    start: tuple[int, int, int]
    stop: tuple[int, int, int]


class _Scratch(threading.local):
    """Memory that a thread keeps: touching new pages costs as much as a small image."""

    def __init__(self) -> None:
        self._buffers: dict[str, NDArray[np.uint8]] = {}

    def take(self, name: str, count: int, dtype: Any) -> Array:
        """An array of `count` elements at the start of a cache line; its contents are arbitrary."""
        size = count * np.dtype(dtype).itemsize
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size:
            buffer = np.empty(size + CACHE_LINE, np.uint8)
            buffer = buffer[-buffer.ctypes.data % CACHE_LINE :]
            if size <= KEPT_BYTES:
                self._buffers[name] = buffer
        return buffer[:size].view(dtype)


scratch = _Scratch()


@intrinsic
def _element(typingctx: Any, address: Any, token: Any) -> Any:
    """The element of the dtype of `token` at an address."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = context.get_value_type(sig.args[1].dtype)
        return builder.load(builder.inttoptr(args[0], kind.as_pointer()))

    return token.dtype(types.intp, token), codegen


@kernel()
def _copy_box(address: Any, token: Any, strides: Any, extents: Any, out: Any) -> None:
    """Copy a box, whose `strides` are in bytes, to the rows of `out`, in the order of memory."""
    slices, rows, columns = extents
    dz, dy, dx = strides
    if dx == 3 * token.itemsize:  # a constant, so that LLVM shuffles vectors
        for z in range(slices):
            for y in range(rows):
                at = (z * rows + y) * columns
                target = carray(pointer(out.ctypes.data + at * token.itemsize), columns, out.dtype)
                row = carray(pointer(address + z * dz + y * dy), 3 * columns - 2, token.dtype)
                for x in range(columns):
                    target[x] = row[3 * x]
        return
    if abs(dx) <= min(abs(dz), abs(dy)):
        for z in range(slices):
            for y in range(rows):
                here, at = address + z * dz + y * dy, (z * rows + y) * columns
                for x in range(columns):
                    out[np.uint64(at + x)] = _element(here + x * dx, token)
        return
    # Along the axis of the shortest steps, some rows or slices of every column.
    near, far, count, others = dy, dz, rows, slices
    near_step, far_step = columns, rows * columns
    if abs(dz) < abs(dy):
        near, far, count, others = dz, dy, slices, rows
        near_step, far_step = rows * columns, columns
    for other in range(others):
        for first in range(0, count, TILE):
            together = min(TILE, count - first)
            here = address + other * far + first * near
            at = other * far_step + first * near_step
            if together == TILE:  # a constant, so that the loop is unrolled
                for x in range(columns):
                    for i in range(TILE):
                        element = _element(here + x * dx + i * near, token)
                        out[np.uint64(at + i * near_step + x)] = element
            else:
                for x in range(columns):
                    for i in range(together):
                        element = _element(here + x * dx + i * near, token)
                        out[np.uint64(at + i * near_step + x)] = element


@kernel()
def _copy_every_second(
    address: Any, token: Any, pairs: Any, strides: Any, extents: Any, out: Any
) -> None:
    """Copy the lower halves of pairs of elements; behind the last of a row there is none."""
    slices, rows, columns = extents
    base = out.ctypes.data
    for z in range(slices):
        for y in range(rows):
            here = address + z * strides[0] + y * strides[1]
            start = (z * rows + y) * columns
            target = carray(pointer(base + start * out.itemsize), columns, out.dtype)
            row = carray(pointer(here), columns, pairs.dtype)
            for x in range(columns - 1):
                target[x] = row[x]
            target[columns - 1] = _element(here + (columns - 1) * pairs.itemsize, token)


@kernel(error_model="numpy")
def _add_direction(
    address: Any, token: Any, strides: Any, extents: Any, terms: Any, scale: Any, out: Any
) -> None:
    """Write the values plus `scale` times the sum of the three axes' terms, each step rounded."""
    slices, rows, columns = extents
    along_z, along_y, along_x = terms
    base = out.ctypes.data
    for z in range(slices):
        for y in range(rows):
            row = image_row(address, token, strides, z, y, extents)
            start = (z * rows + y) * columns
            target = carray(pointer(base + start * out.itemsize), columns, out.dtype)
            height = along_z[z] + along_y[y]
            for x in range(columns):
                target[x] = np.float64(row[x]) + scale * (height + along_x[x])


def copy_box(part: Array, out: Array) -> None:
    """Copy a native and aligned box (slices, rows, columns) to the contiguous array `out`."""
    size = part.itemsize
    bits, address = np.empty(0, f"u{size}"), part.ctypes.data
    if size < 8 and part.strides[2] == 2 * size and part.size:
        pairs = np.empty(0, f"u{2 * size}")
        _copy_every_second(address, bits, pairs, part.strides, part.shape, out.view(bits.dtype))
    else:
        _copy_box(address, bits, part.strides, part.shape, out.view(bits.dtype))


class Source:
    """Read-only access to boxes of a (slices, rows, columns) array by address."""

    def __init__(self, array: Array, name: str = "box") -> None:
        array = array.view(np.uint8) if array.dtype == np.bool_ else array
        self.array, self.name = array, name
        self.shape: tuple[int, int, int] = (array.shape[0], array.shape[1], array.shape[2])
        self.token: Array = np.empty(0, array.dtype.newbyteorder("="))
        size = array.itemsize
        self._plain = array.dtype.isnative and array.flags.aligned
        self.direct = (
            self._plain
            and (array.shape[2] <= 1 or array.strides[2] == size)
            and all(step % size == 0 for step in array.strides[:2])
        )

    @property
    def copied_size(self) -> int:
        """Bytes of a point that a box copies."""
        return 0 if self.direct else self.array.itemsize

    @property
    def interleaved(self) -> bool:
        """Whether slices lie closer together than columns."""
        return 0 < abs(self.array.strides[0]) < abs(self.array.strides[2]) and self.shape[0] > 1

    def box(self, block: Block) -> tuple[int, tuple[int, int], Array]:
        """Address, strides of slices and rows in elements, and the array they belong to."""
        part = self.array[tuple(map(slice, block.start, block.stop))]
        if not self.direct:
            part = self._copy(part)
        size = part.itemsize
        return part.ctypes.data, (part.strides[0] // size, part.strides[1] // size), part

    def _copy(self, part: Array) -> Array:
        own = scratch.take(self.name, part.size, self.token.dtype)
        if self._plain:
            copy_box(part, own)
        else:
            own.reshape(part.shape)[...] = part
        return own.reshape(part.shape)


class DirectionalSource(Source):
    """Boxes of a directional filtration, computed one at a time."""

    def __init__(self, array: Array, direction: Direction) -> None:
        super().__init__(array)
        self.direction = direction
        missing = [np.zeros(n) for n in array.shape[: 3 - len(direction.terms)]]
        self.terms = [*missing, *direction.terms]
        self.values = np.empty(0)

    @property
    def copied_size(self) -> int:
        return self.values.itemsize

    def box(self, block: Block) -> tuple[int, tuple[int, int], Array]:
        address, strides, part = super().box(block)
        token = np.empty(0, part.dtype)
        if part.dtype == np.float16:
            part = part.astype(np.float32)
            address, token = part.ctypes.data, np.empty(0, part.dtype)
            strides = (part.strides[0] // 4, part.strides[1] // 4)
        terms = tuple(
            term[a:b] for term, a, b in zip(self.terms, block.start, block.stop, strict=True)
        )
        values = scratch.take("directional", part.size, np.float64)
        scale = float(self.direction.scale)
        _add_direction(address, token, strides, part.shape, terms, scale, values)
        _, rows, columns = part.shape
        return values.ctypes.data, (rows * columns, columns), values.reshape(part.shape)


def memory_order(array: Array) -> tuple[list[int], tuple[slice, ...]]:
    """Axes from the longest to the shortest steps, and the flips that make these positive."""
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    flips = tuple(slice(None, None, -1 if array.strides[axis] < 0 else 1) for axis in order)
    return order, flips
