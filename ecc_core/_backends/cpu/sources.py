"""Boxes of images as rows in memory: where they lie already, or as copies that a thread keeps."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.kernels import image_row
from ecc_core._backends.cpu.llvm import I64, array_at, operation, part_of
from ecc_core._request.filtration import Direction

Array = NDArray[Any]
Box = tuple[int, tuple[int, int], tuple[int, ...]]
"""Address, strides of slices and rows in elements, and extents; see ``encoders/kernels.py``."""

CACHE_LINE = 64
LINES_AT_ONCE = 256  # So many cache lines stay in the first-level cache.
TILE = 16
"""Elements along each side of a square that is transposed; a power of two."""
KEPT_BYTES = 1 << 23  # The most memory of each kind that a thread keeps.


Triple = tuple[int, int, int]
"""A number for each of slices, rows and columns."""


class Block(NamedTuple):
    """Own points of a block: half-open ranges along (z, y, x)."""

    start: Triple
    stop: Triple

    @classmethod
    def of(cls, box: Sequence[slice]) -> Self:
        """Return a box of a volume as a block."""
        z, y, x = box
        return cls((z.start, y.start, x.start), (z.stop, y.stop, x.stop))

    def with_halo(self, before: Triple, after: Triple, shape: Triple) -> Block:
        """Return the block with so many points around it, as far as a volume has them."""
        start: Any = tuple(max(0, a - n) for a, n in zip(self.start, before, strict=True))
        ends = zip(self.stop, after, shape, strict=True)
        stop: Any = tuple(min(a + n, length) for a, n, length in ends)
        return Block(start, stop)

    @property
    def shape(self) -> Triple:
        (z, y, x), (z_end, y_end, x_end) = self
        return z_end - z, y_end - y, x_end - x


class _Scratch(threading.local):
    """Memory that a thread keeps: touching new pages costs as much as a small image."""

    def __init__(self) -> None:
        self._buffers: dict[str, NDArray[np.uint8]] = {}
        self._views: dict[str, Array] = {}  # The view that was taken last under each name.

    def take(self, name: str, count: int, dtype: Any) -> Array:
        """Return `count` elements at the start of a cache line; their contents are arbitrary."""
        view = self._views.get(name)
        if view is not None and view.size == count and view.dtype == dtype:
            return view
        size = count * np.dtype(dtype).itemsize
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size:
            del view, buffer  # The old memory is freed before new memory is taken.
            self._views.pop(name, None)
            self._buffers.pop(name, None)
            buffer = np.empty(size + CACHE_LINE, np.uint8)
            buffer = buffer[-buffer.ctypes.data % CACHE_LINE :]
            if size > KEPT_BYTES:
                return buffer[:size].view(dtype)
            self._buffers[name] = buffer
        view = self._views[name] = buffer[:size].view(dtype)
        return view


class _ArrayStruct(ctypes.Structure):
    """What the attribute ``__array_struct__`` of an array points to, by NumPy's array interface."""

    _fields_ = (
        ("two", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("kind", ctypes.c_char),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
    )


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)


def address_of(array: Array) -> int:
    """Return ``array.ctypes.data``, in half the time, which counts for small images."""
    capsule = array.__array_struct__  # It owns the struct, and must live while that is read.
    struct = _ArrayStruct.from_address(_pointer_of(capsule, None))
    return struct.data or 0


@lru_cache(maxsize=64)
def token_of(dtype: np.dtype[Any]) -> Array:
    """Return an empty array, which tells a kernel the dtype to read."""
    return np.empty(0, dtype)


scratch = _Scratch()


@operation(lambda *kinds: kinds[1].dtype)
def _element(builder, address, token):
    """Return the element at an address; it has the dtype of `token`."""
    return builder.load(builder.inttoptr(address, token.element.as_pointer()))


@operation()
def _transpose_tile(builder, address, step, out, at, pitch):
    """Copy 16 by 16 elements: ``out[at + i * pitch + j]`` becomes element i of row j.

    Row j lies in memory at ``address + j * step``, in bytes, and has the dtype of `out`.
    """
    vector = ir.VectorType(out.element, TILE).as_pointer()
    rows = []
    for j in range(TILE):
        here = builder.add(address, builder.mul(step, I64(j)))
        rows.append(builder.load(builder.inttoptr(here, vector), align=out.element.width // 8))
    size = TILE // 2
    # Swap the off-diagonal quarters of the tile, then those of its quarters, and so on.
    while size:
        upper = [k if not k & size else TILE + k - size for k in range(TILE)]
        lower = [k + size if not k & size else TILE + k for k in range(TILE)]
        for i in range(TILE):
            if not i & size:
                pair = rows[i], rows[i + size]
                for place, picked in ((i, upper), (i + size, lower)):
                    places = ir.Constant(ir.VectorType(ir.IntType(32), TILE), picked)
                    rows[place] = builder.shuffle_vector(*pair, places)
        size //= 2
    for i, row in enumerate(rows):
        out.store(row, builder.add(at, builder.mul(pitch, I64(i))))


@kernel()
def _copy_box(address, token, strides, extents, out):
    """Copy a box, whose `strides` are in bytes, to the rows of `out`, in the order of memory."""
    slices, rows, columns = extents
    dz, dy, dx = strides
    # "near" is the axis, of rows and slices, along which points lie closer together in memory.
    near = dy
    far = dz
    count = rows
    others = slices
    near_step = columns
    far_step = rows * columns
    if abs(dz) < abs(dy):
        near = dz
        far = dy
        count = slices
        others = rows
        near_step = rows * columns
        far_step = columns
    # Two short axes whose points follow each other are one that may fill a tile.
    if far == count * near and far_step == count * near_step:
        count *= others
        others = 1
    # Points are one channel of an image with three: with a constant step LLVM shuffles vectors.
    if dx == 3 * token.itemsize:
        for other in range(others):
            for i in range(count):
                target = part_of(out, other * far_step + i * near_step, columns)
                here = address + other * far + i * near
                row = array_at(here, 3 * columns - 2, token)
                for x in range(columns):
                    target[x] = row[3 * x]
        return
    if abs(dx) <= abs(near):
        for other in range(others):
            for i in range(count):
                here = address + other * far + i * near
                at = other * far_step + i * near_step
                for x in range(columns):
                    out[np.uint64(at + x)] = _element(here + x * dx, token)
        return
    for other in range(others):
        for first in range(0, count, TILE):
            together = min(TILE, count - first)
            here = address + other * far + first * near
            at = other * far_step + first * near_step
            done = 0
            if together == TILE and near == token.itemsize:
                done = columns - columns % TILE
                for x in range(0, done, TILE):
                    _transpose_tile(here + x * dx, dx, out, at + x, near_step)
            for start in range(done, columns, LINES_AT_ONCE):
                for i in range(together):
                    for x in range(start, min(start + LINES_AT_ONCE, columns)):
                        element = _element(here + x * dx + i * near, token)
                        out[np.uint64(at + i * near_step + x)] = element


@kernel()
def _copy_every_second(address, token, pairs, strides, extents, out):
    """Copy every second element by reading pairs, except for the last one of each row.

    The other element of the last pair may lie outside of the memory of the image.
    """
    slices, rows, columns = extents
    for z in range(slices):
        for y in range(rows):
            here = address + z * strides[0] + y * strides[1]
            target = part_of(out, (z * rows + y) * columns, columns)
            row = array_at(here, columns, pairs)
            for x in range(columns - 1):
                target[x] = row[x]
            target[columns - 1] = _element(here + (columns - 1) * pairs.itemsize, token)


@kernel(error_model="numpy")
def _add_direction(box, token, terms, scale, out):
    """Write the values plus `scale` times the sum of the three axes' terms, each step rounded."""
    slices, rows, columns = box[2]
    along_z, along_y, along_x = terms
    for z in range(slices):
        for y in range(rows):
            row = image_row(box, token, z, y)
            target = part_of(out, (z * rows + y) * columns, columns)
            height = along_z[z] + along_y[y]
            for x in range(columns):
                target[x] = np.float64(row[x]) + scale * (height + along_x[x])


def copy_box(part: Array, out: Array) -> None:
    """Copy a native and aligned box (slices, rows, columns) to the contiguous array `out`."""
    size = part.itemsize
    bits = token_of(np.dtype(f"u{size}"))
    address = part.ctypes.data
    if size < 8 and part.strides[2] == 2 * size and part.size:
        pairs = np.empty(0, f"u{2 * size}")
        _copy_every_second(address, bits, pairs, part.strides, part.shape, out.view(bits.dtype))
    else:
        _copy_box(address, bits, part.strides, part.shape, out.view(bits.dtype))


class Source:
    """Read-only access to boxes of a (slices, rows, columns) array by address."""

    def __init__(self, array: Array, name: str = "box") -> None:
        array = array.view(np.uint8) if array.dtype == np.bool_ else array
        self.array = array
        self.name = name
        self.shape: tuple[int, int, int] = (array.shape[0], array.shape[1], array.shape[2])
        dtype = array.dtype
        size = array.itemsize
        self._plain = dtype.isnative and array.flags.aligned
        self.token = token_of(dtype if dtype.isnative else dtype.newbyteorder("="))
        dz, dy, dx = array.strides
        self.direct = (
            self._plain and (dx == size or array.shape[2] <= 1) and dz % size == dy % size == 0
        )
        self._address = array.ctypes.data if self.direct else 0
        self.copied_size = 0 if self.direct else size  # Bytes of a point that a box copies.
        # True if points of neighbouring slices lie closer together than those of columns.
        self.interleaved = 0 < abs(dz) < abs(dx) and array.shape[0] > 1

    def box(self, block: Block) -> tuple[Box, Array]:
        """Return the points of a block as loaders read them, and the array that owns the memory."""
        (z, y, x), (z_end, y_end, x_end) = block
        part = self.array[z:z_end, y:y_end, x:x_end]
        if self.direct:
            dz, dy, dx = self.array.strides
            address = self._address + z * dz + y * dy + x * dx
        else:
            own = scratch.take(self.name, part.size, self.token.dtype)
            if self._plain:
                copy_box(part, own)
            else:
                own.reshape(part.shape)[...] = part
            part = own.reshape(part.shape)
            dz, dy, _ = part.strides
            address = part.ctypes.data
        size = part.itemsize
        return (address, (dz // size, dy // size), part.shape), part


class DirectionalSource(Source):
    """Boxes of a directional filtration, computed one at a time."""

    def __init__(self, array: Array, direction: Direction) -> None:
        super().__init__(array)
        self.direction = direction
        missing = [np.zeros(n) for n in array.shape[: 3 - len(direction.terms)]]
        self.terms = [*missing, *direction.terms]
        self.copied_size = np.dtype(np.float64).itemsize

    def box(self, block: Block) -> tuple[Box, Array]:
        given, part = super().box(block)
        if part.dtype == np.float16:
            part = part.astype(np.float32)
            given = part.ctypes.data, (part.strides[0] // 4, part.strides[1] // 4), part.shape
        terms = tuple(
            term[a:b] for term, a, b in zip(self.terms, block.start, block.stop, strict=True)
        )
        values = scratch.take("directional", part.size, np.float64)
        _add_direction(given, token_of(part.dtype), terms, float(self.direction.scale), values)
        _, rows, columns = part.shape
        box = values.ctypes.data, (rows * columns, columns), part.shape
        return box, values.reshape(part.shape)


def memory_order(array: Array) -> tuple[list[int], tuple[slice, ...]]:
    """Return axes from the longest to the shortest steps, and flips that make steps positive."""
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    signs = [-1 if array.strides[axis] < 0 else 1 for axis in order]
    return order, tuple(slice(None, None, sign) for sign in signs)
