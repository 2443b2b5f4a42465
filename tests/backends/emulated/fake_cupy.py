"""What the CUDA backend takes of CuPy for curves, in NumPy's memory instead of a device's."""

from __future__ import annotations

import ctypes
import mmap
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

ALIGNMENT = 16
"""Bytes to which arrays are aligned."""
GUARD = 1 << 24
"""Bytes after an array that nobody may read."""
KERNELS: dict[int, Any] = {}
"""What runs, by the number that stands for the address of a kernel."""


class Pointer:
    """An address, and what owns the memory there."""

    def __init__(self, ptr: int, owner: Any) -> None:
        self.ptr, self.owner = ptr, owner

    def __add__(self, offset: int) -> Pointer:
        return Pointer(self.ptr + offset, self.owner)


class ndarray(np.ndarray):
    """An array with an address and a device, as CuPy's have it."""

    def __new__(cls, shape, dtype=float, memptr=None, strides=None):
        if memptr is None:
            return np.empty(shape, dtype).view(cls)
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        buffer = (ctypes.c_char * size).from_address(memptr.ptr)
        buffer.owner = memptr  # The memory must live as long as any view of it.
        return np.ndarray(shape, dtype, buffer, strides=strides).view(cls)

    @property
    def data(self):
        return Pointer(self.__array_interface__["data"][0], self)

    @property
    def device(self):
        return SimpleNamespace(id=0)

    def get(self):
        return np.array(self)


def guarded(array):
    """Return a contiguous array in memory before some that nobody may read; others as they are.

    A kernel that reads beyond it ends the process.
    """
    if not array.flags.c_contiguous or not array.size:
        return array.view(ndarray)
    pages = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, pages + GUARD)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + pages), ctypes.c_size_t(GUARD), 0):
        raise OSError("cannot protect memory")
    start = pages - -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    found = np.ndarray(array.shape, array.dtype, memory, start).view(ndarray)
    found[...] = array
    return found


def _on_device(function):
    def call(*args, **kwargs):
        return np.asanyarray(function(*args, **kwargs)).view(ndarray)

    return call


def _alloc(size):
    memory = np.full(size + 16, 0xA5, np.uint8)
    return Pointer(memory.ctypes.data + -memory.ctypes.data % 16, memory)


class Pinned(np.ndarray):
    """Host memory as an array of bytes with an address."""

    @property
    def ptr(self):
        return self.ctypes.data


def _alloc_pinned(size):
    return np.full(size, 0xA5, np.uint8).view(Pinned)


def _unique(array, return_inverse=False):
    found = np.unique(np.asarray(array), return_inverse=return_inverse)
    if return_inverse:
        return tuple(part.view(ndarray) for part in found)
    return found.view(ndarray)


def _launch_kernel(kernel, *rest):
    grid, block, (shared, _stream, arguments, _) = rest[:3], rest[3:6], rest[6:]
    KERNELS[kernel](grid, block[0], shared, arguments)


def fake_cupy() -> ModuleType:
    module = ModuleType("cupy")
    module.ndarray = ndarray
    names = (
        "asarray zeros empty full ones arange concatenate where cumsum flatnonzero isnan "
        "lexsort stack bincount sort empty_like ldexp searchsorted isfinite zeros_like"
    )
    for name in (*names.split(), "ascontiguousarray"):
        setattr(module, name, _on_device(getattr(np, name)))
    module.argsort = _on_device(partial(np.argsort, kind="stable"))
    module.broadcast_to = lambda array, shape: np.broadcast_to(array, shape, subok=True)
    module.multiply, module.not_equal = np.multiply, np.not_equal
    module.minimum, module.maximum = np.minimum, np.maximum
    module.unique = _unique
    module.ElementwiseKernel = mock.MagicMock()
    stream = SimpleNamespace(ptr=0, is_capturing=lambda: False, synchronize=lambda: None)
    runtime = SimpleNamespace(
        getDevice=lambda: 0,
        memcpyAsync=lambda to, start, size, *_: ctypes.memmove(to, start, size),
        memsetAsync=lambda address, value, size, _stream: ctypes.memset(address, value, size),
        streamSynchronize=lambda _stream: None,
    )
    module.cuda = SimpleNamespace(
        UnownedMemory=lambda address, _size, owner, _device: Pointer(address, owner),
        MemoryPointer=lambda memory, _offset: memory,
        alloc=_alloc,
        alloc_pinned_memory=_alloc_pinned,
        get_current_stream=lambda: stream,
        runtime=runtime,
        driver=SimpleNamespace(launchKernel=_launch_kernel),
        Device=lambda *_: SimpleNamespace(synchronize=lambda: None),
        Stream=mock.MagicMock(),
    )
    return module
