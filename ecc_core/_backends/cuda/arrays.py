"""Device arrays of CuPy and torch, and how the kernels see their memory."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np

__all__ = [
    "Adopted",
    "Layout",
    "adopt",
    "arrange",
    "as_cupy",
    "axes_in_memory",
    "keeping",
    "numbers",
]


class Adopted(NamedTuple):
    """A CuPy view of an array, the name of its element type, and the way back."""

    array: Any
    element: str
    give_back: Callable[[Any], Any]


@contextlib.contextmanager
def adopt(array: Any) -> Iterator[Adopted]:
    """View a CuPy array or torch tensor, with its device and its library's stream current."""
    if isinstance(array, cupy.ndarray):
        adopted = Adopted(array, element_of(array.dtype), _same)
        if array.device.id == cupy.cuda.runtime.getDevice():
            yield adopted
        else:
            with array.device:
                yield adopted
        return
    import torch
    import torch.utils.dlpack

    tensor = array.detach()
    element = ""
    if tensor.dtype == torch.bfloat16:
        tensor, element = tensor.view(torch.int16), "bfloat16"
    stream = torch.cuda.current_stream(tensor.device)
    with cupy.cuda.Device(tensor.device.index), borrow(stream):
        view = cupy.from_dlpack(tensor)
        yield Adopted(view, element or element_of(view.dtype), torch.utils.dlpack.from_dlpack)


def borrow(stream: Any) -> Any:
    """A torch stream as CuPy's."""
    if not stream.cuda_stream:
        return cupy.cuda.Stream.null
    if hasattr(cupy.cuda.Stream, "from_external"):
        return cupy.cuda.Stream.from_external(stream)
    return cupy.cuda.ExternalStream(stream.cuda_stream, stream.device_index)


def _same(array: Any) -> Any:
    return array


@lru_cache(maxsize=64)
def element_of(dtype: np.dtype[Any]) -> str:
    """Name of the element type, whatever the order of bytes."""
    return dtype.name


def as_cupy(array: Any) -> Any:
    """View a CuPy array, a torch tensor or None."""
    if array is None or isinstance(array, cupy.ndarray):
        return array
    return cupy.from_dlpack(array.detach())


def numbers(adopted: Adopted) -> Any:
    """The array as CuPy knows numbers: bfloat16 widened."""
    if adopted.element != "bfloat16":
        return adopted.array
    return (adopted.array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


class Layout(NamedTuple):
    """An image (batch, depth, height, width) in memory, its rows contiguous.

    Attributes
    ----------
    images : int
    shape : (depth, height, width)
    strides : (batch, slice, row)
        In samples.
    offset : int
        Bytes from the first sample to the one the kernels begin with.
    vector, wide : bool
        Whether four samples, and whether 16 bytes at a time can be read.
    """

    images: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    vector: bool
    wide: bool


@lru_cache(maxsize=1024)
def arrange(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    itemsize: int,
    address: int,
    keep_order: bool,
) -> Layout | None:
    """Layout of an array (batch, *spatial), or None where no axis is contiguous.

    Unless `keep_order`, spatial axes are swapped and reversed to follow the memory: curves stay
    the same. `address` counts modulo 16 only.
    """
    axes = list(range(1, len(shape)))
    offset = 0
    signs = [1] * len(shape)
    if not keep_order:
        axes = axes_in_memory(shape, strides)
        for axis in axes:
            if strides[axis] < 0:
                signs[axis] = -1
                offset += strides[axis] * (shape[axis] - 1)
    order = (0, *axes)
    sizes = [shape[axis] for axis in order]
    steps = [strides[axis] * signs[axis] for axis in order]
    whole = sizes[-1] == 1 or steps[-1] == itemsize
    if not whole or any(step % itemsize for step in steps):
        return None
    lead = 4 - len(shape)
    bytes_apart = (steps[0], *[0] * lead, *steps[1:-1])
    together = math.gcd(16, address + offset, *bytes_apart, sizes[-1] * itemsize)
    vector = sizes[-1] % 4 == 0 and together >= min(4 * itemsize, 16)
    return Layout(
        sizes[0],
        (*[1] * lead, *sizes[1:]),
        tuple(step // itemsize for step in bytes_apart),
        offset,
        vector,
        vector and together == 16,
    )


def axes_in_memory(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """The spatial axes of an array (batch, *spatial), samples of the last closest to each other."""
    return sorted(range(1, len(shape)), key=lambda axis: (shape[axis] > 1, -abs(strides[axis])))


def keeping(array: Any, memory: Any) -> Any:
    """The array; as long as it lives, so does the memory."""
    kept = cupy.cuda.UnownedMemory(array.data.ptr, array.nbytes, (array, memory))
    return cupy.ndarray(array.shape, array.dtype, cupy.cuda.MemoryPointer(kept, 0))
