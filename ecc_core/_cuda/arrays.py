"""Device arrays of CuPy and torch, seen as CuPy arrays on the stream of their library."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import cupy
import numpy as np

__all__ = ["Image", "adopt", "lay_out"]


class Adopted(NamedTuple):
    """A CuPy view of an array, the name of its element type, and the way back."""

    array: Any
    element: str
    give_back: Callable[[Any], Any]


@contextlib.contextmanager
def adopt(array: Any) -> Iterator[Adopted]:
    """View a CuPy array or torch tensor, with its device and its library's stream current."""
    if isinstance(array, cupy.ndarray):
        with array.device:
            yield Adopted(array, _element(array.dtype), _same)
        return
    import torch

    tensor = array.detach()
    element = ""
    if tensor.dtype == torch.bfloat16:
        tensor, element = tensor.view(torch.int16), "bfloat16"
    stream = torch.cuda.current_stream(tensor.device)
    with cupy.cuda.Device(tensor.device.index), _borrow(stream):
        view = cupy.from_dlpack(tensor)
        yield Adopted(view, element or _element(view.dtype), torch.from_dlpack)


def _borrow(stream: Any) -> Any:
    """A torch stream as CuPy's."""
    if not stream.cuda_stream:
        return cupy.cuda.Stream.null
    if hasattr(cupy.cuda.Stream, "from_external"):
        return cupy.cuda.Stream.from_external(stream)
    return cupy.cuda.ExternalStream(stream.cuda_stream, stream.device_index)


def _same(array: Any) -> Any:
    return array


def _element(dtype: np.dtype[Any]) -> str:
    return "uint8" if dtype == np.bool_ else dtype.name


class Image(NamedTuple):
    """An image (batch, depth, height, width) and its mask, both with contiguous rows."""

    array: Any
    mask: Any
    element: str
    ndim: int

    @property
    def strides(self) -> tuple[int, ...]:
        """In samples."""
        size = self.array.itemsize
        return tuple(stride // size for stride in self.array.strides)

    @property
    def aligned(self) -> bool:
        """Whether four samples at a time can be read."""
        four = min(4 * self.array.itemsize, 16)
        places = (self.array.data.ptr, *self.array.strides[:3])
        return self.array.shape[3] % 4 == 0 and all(place % four == 0 for place in places)


def lay_out(adopted: Adopted, mask: Any, *, keep_order: bool) -> Image:
    """Four axes, the last one contiguous; a copy only where no axis is contiguous.

    Unless `keep_order`, axes are swapped and reversed to follow the memory: curves stay the same.
    """
    array = adopted.array
    ndim = array.ndim - 1
    if mask is not None:
        mask = cupy.broadcast_to(mask, array.shape).view(np.uint8)
    if not keep_order and not array.flags.c_contiguous:
        order = sorted(
            range(1, array.ndim), key=lambda a: (array.shape[a] > 1, -abs(array.strides[a]))
        )
        flips = tuple(slice(None, None, -1 if array.strides[a] < 0 else 1) for a in order)
        array = array.transpose(0, *order)[(slice(None), *flips)]
        if mask is not None:
            mask = mask.transpose(0, *order)[(slice(None), *flips)]
    if array.strides[-1] != array.itemsize and array.shape[-1] > 1:
        array = cupy.ascontiguousarray(array)
    if mask is not None and mask.strides[-1] != 1:
        mask = cupy.ascontiguousarray(mask)
    lead = (slice(None), *(None,) * (3 - ndim))
    return Image(array[lead], None if mask is None else mask[lead], adopted.element, ndim)
