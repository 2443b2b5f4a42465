"""Device arrays of CuPy and torch, and their layout as the kernels take it."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, Self

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda import programs
from ecc_core._request.dtypes import name_of
from ecc_core.errors import BackendError

STAGED_BYTES = 1 << 16  # Up to this size, our own copies take less time than those of CuPy.
HERE = nullcontext()
# CUDA's cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost and cudaMemcpyDeviceToDevice.
TO_DEVICE = 1
TO_HOST = 2
WITHIN_DEVICE = 3


class ArrayView(NamedTuple):
    """A CuPy view of an array, the name of its element type, and what converts results back."""

    array: Any
    element: str
    wrap: Callable[[Any], Any]

    def wrap_levels(self, levels: Any) -> Any:
        """Return values of the array in its own library and dtype."""
        given = self.wrap(levels)
        if self.element != "bfloat16":
            return given
        import torch

        return given.to(torch.bfloat16)


def adopt(array: Any) -> AbstractContextManager[ArrayView]:
    """View a CuPy array or torch tensor, with its device and its library's stream current."""
    if isinstance(array, cupy.ndarray):
        view = ArrayView(array, element_of(array.dtype), as_cupy)
        if array.device.id == cupy.cuda.runtime.getDevice():
            return nullcontext(view)
        return _made_current(view, HERE)
    import torch

    tensor = array
    element = ""
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.detach().view(torch.int16)
        element = "bfloat16"
    array = as_cupy(tensor)
    device = tensor.device.index
    view = ArrayView(array, element or element_of(array.dtype), as_tensor)
    here = device == cupy.cuda.runtime.getDevice()
    if here and is_stream_of_torch(cupy.cuda.get_current_stream(), device):
        return nullcontext(view)
    return _made_current(view, borrowed_stream(device))


@contextmanager
def _made_current(view: ArrayView, stream: AbstractContextManager[Any]) -> Iterator[ArrayView]:
    with view.array.device, stream:
        yield view


def is_stream_of_torch(stream: Any, device: int) -> bool:
    """Return whether CuPy's stream is torch's current one of a device."""
    import torch

    return bool(torch._C._cuda_getCurrentRawStream(device) == stream.ptr)


def as_tensor(array: Any) -> Any:
    """Return a CuPy array as a tensor, whose stream is the current one."""
    import torch

    # torch.from_dlpack does the same, but creates objects for streams.
    return torch._C._from_dlpack(array.__dlpack__(stream=-1))


def device_of(array: Any) -> AbstractContextManager[Any]:
    """Make the device of a CuPy array current."""
    return HERE if array.device.id == cupy.cuda.runtime.getDevice() else array.device


def borrowed_stream(device: int) -> Any:
    """Return torch's current stream of a device as a stream of CuPy."""
    import torch

    # torch.cuda.current_stream creates an object, which takes microseconds.
    return _stream_at(torch._C._cuda_getCurrentRawStream(device), device)


@programs.plan
def _stream_at(address: int, device: int) -> Any:
    """Return the current stream of torch, which has this address, as CuPy's."""
    import torch

    if not address:
        return cupy.cuda.Stream.null
    stream = torch.cuda.current_stream(device)
    if hasattr(cupy.cuda.Stream, "from_external"):
        return cupy.cuda.Stream.from_external(stream)
    return cupy.cuda.ExternalStream(address, device)


@programs.fact
def element_of(dtype: Any) -> str:
    """Return the name of the element type of a dtype of NumPy or torch, whatever the byte order."""
    return name_of(dtype)


def as_cupy(array: Any) -> Any:
    """View a CuPy array, a torch tensor or None."""
    if array is None or isinstance(array, cupy.ndarray):
        return array
    # cupy.from_dlpack does the same in five times the time.
    tensor = array.detach()
    dtype = _numpy_dtype(array.dtype)
    memory = cupy.cuda.UnownedMemory(tensor.data_ptr(), tensor.nbytes, tensor, tensor.device.index)
    strides = tuple(step * dtype.itemsize for step in tensor.stride())
    return cupy.ndarray(tuple(tensor.shape), dtype, cupy.cuda.MemoryPointer(memory, 0), strides)


@programs.fact
def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    return np.dtype(name_of(dtype))


def on_host(array: Any) -> NDArray[Any]:
    """Copy a CuPy array to the host.

    For small arrays this takes half as long as CuPy's `get`, whose memory is not pinned.
    """
    check_not_capturing()
    runtime = cupy.cuda.runtime
    size = array.nbytes
    here = array.device.id == runtime.getDevice()
    if not (here and 0 < size <= STAGED_BYTES and array.flags.c_contiguous):
        found: NDArray[Any] = array.get()
        return found
    memory = cupy.cuda.alloc_pinned_memory(size)
    stream = cupy.cuda.get_current_stream()
    runtime.memcpyAsync(memory.ptr, array.data.ptr, size, TO_HOST, stream.ptr)
    stream.synchronize()
    return np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)


def thresholds_on_host(thresholds: Any) -> NDArray[Any]:
    if isinstance(thresholds, np.ndarray):
        return thresholds
    return on_host(as_cupy(thresholds))


def on_device(array: NDArray[Any]) -> Any:
    """Copy a NumPy array to the current device.

    For small arrays this takes less time than `cupy.asarray`, which copies by pinned memory. While
    the stream is being captured, CuPy copies: the graph would read `array` again at every replay.
    """
    if not 0 < array.nbytes <= STAGED_BYTES or programs.is_capturing():
        return cupy.asarray(array)
    host = np.asarray(array, order="C")
    stream = cupy.cuda.get_current_stream()
    found = cupy.empty(host.shape, host.dtype)
    address = host.ctypes.data
    cupy.cuda.runtime.memcpyAsync(found.data.ptr, address, host.nbytes, TO_DEVICE, stream.ptr)
    return found


def copy_of(array: Any) -> Any:
    """Return a copy of a contiguous CuPy array, in the order of the current stream."""
    stream = cupy.cuda.get_current_stream()
    memory = cupy.cuda.alloc(array.nbytes)
    given = memory.ptr, array.data.ptr, array.nbytes, WITHIN_DEVICE, stream.ptr
    cupy.cuda.runtime.memcpyAsync(*given)
    return cupy.ndarray(array.shape, array.dtype, memory)


def copied_to(array: Any, device: Any) -> Any:
    """Return a copy of a CuPy array on another device, in the order of both current streams."""
    with array.device:
        source = cupy.cuda.get_current_stream()
        ready = source.record()
    with device:
        target = cupy.cuda.get_current_stream()
        target.wait_event(ready)
        found = cupy.asarray(array)
        copied = target.record()
    source.wait_event(copied)  # The source must not be overwritten before it has been copied.
    return found


def address_of(array: Any) -> int:
    """Return the address of a CuPy array or tensor; 0 for None."""
    if array is None:
        return 0
    return int(array.data.ptr if isinstance(array, cupy.ndarray) else array.data_ptr())


def numbers(view: ArrayView) -> Any:
    """Return the array as numbers of CuPy: bfloat16 becomes float32."""
    if view.element != "bfloat16":
        return view.array
    return (view.array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def comparable(values: Any, levels: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
    """Return values and levels of a type that the device compares, with the same order.

    CuPy and the kernels compare neither booleans, of which True may be any byte but 0, nor float16.
    """
    if values.dtype == np.bool_:
        return (values.view(np.uint8) != 0).view(np.uint8), np.minimum(levels, 1)
    if values.dtype == np.float16:
        return values.astype(np.float32), levels.astype(np.float32)
    return values, levels


def has_nan(view: ArrayView, mask: Any) -> bool:
    """Return whether there is a NaN that the mask, if any, does not hide. Waits for the device."""
    half = view.element == "bfloat16"
    values = view.array
    bad = (values & 0x7FFF) > 0x7F80 if half else cupy.isnan(values)
    if mask is not None:
        bad &= mask.view(np.uint8) != 0  # Any byte but 0 is true.
    return bool(bad.any())


def check_not_capturing() -> None:
    """Refuse to wait for the device while the current stream is being captured in a graph."""
    if programs.is_capturing():
        raise BackendError(
            "a call captured in a CUDA graph must not wait for the device: give `thresholds` as an "
            'array in host memory and nan="omit", and call once with them before the capture'
        )


class Placement(NamedTuple):
    """Where the samples of an array are, as far as kernels depend on it."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """The steps along axes, in bytes."""
    address: int
    """The address modulo 16, on which vector loads depend."""
    device: int

    @classmethod
    def of(cls, array: Any) -> Self:
        return cls(array.shape, array.strides, array.data.ptr % 16, array.device.id)


class Layout(NamedTuple):
    """The memory of an image (batch, depth, height, width) whose rows are contiguous."""

    images: int
    shape: tuple[int, ...]  # (depth, height, width)
    strides: tuple[int, ...]  # (batch, slice, row) in samples
    offset: int
    """Bytes from the array's first sample to the first one for the kernels."""
    item: int
    """Bytes from a sample to the next one."""
    vector: bool
    """Whether four samples can be read at a time."""
    wide: bool
    """Whether 16 bytes can be read at a time, too."""
    # Slices of which the samples of a column are next to each other; columns are that far apart.
    channels: int = 1
    apart: int = 1
    """Samples from one column to the next."""
    lines: bool = False
    """Whether the images have a few long rows, and are read in tiles."""


@programs.plan
def arrange(placement: Placement, itemsize: int, keep_order: bool) -> Layout | None:
    """Return the layout of an array (batch, *spatial), or None if no axis is contiguous.

    Unless `keep_order`, spatial axes are swapped and reversed to follow the memory, which does not
    change curves.
    """
    shape, strides, address, _ = placement
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
        images=sizes[0],
        shape=(*[1] * lead, *sizes[1:]),
        strides=tuple(step // itemsize for step in bytes_apart),
        offset=offset,
        item=itemsize,
        vector=vector,
        wide=vector and together == 16,
    )


def arrange_apart(placement: Placement, itemsize: int) -> Layout | None:
    """Return the layout of an array of every second sample of rows that are contiguous, or None.

    Four samples, and those behind each of them, can be read at a time.
    """
    shape, strides, *_ = placement
    last = axes_in_memory(shape, strides)[-1]
    if strides[last] != 2 * itemsize or shape[last] % 4:
        return None
    sizes = *shape[:last], 2 * shape[last], *shape[last + 1 :]
    steps = *strides[:last], itemsize, *strides[last + 1 :]
    whole = arrange(placement._replace(shape=sizes, strides=steps), itemsize, False)
    if whole is None or not whole.wide:
        return None
    return whole._replace(shape=(*whole.shape[:2], shape[last]), apart=2)


def in_tiles(layout: Layout, address: int) -> Layout:
    """Return the layout of images of a few long rows, which begin at an address modulo 16.

    They are read in tiles, so the length of rows need not be a multiple of four.
    """
    _, height, _ = layout.shape
    batch, _, row = layout.strides
    between_images = batch * layout.item if layout.images > 1 else 0
    between_rows = row * layout.item if height > 1 else 0
    together = math.gcd(16, address + layout.offset, between_images, between_rows)
    vector = together >= min(4 * layout.item * layout.apart, 16)
    return layout._replace(vector=vector, lines=True)


def arrange_channels(placement: Placement, itemsize: int) -> Layout | None:
    """Return the layout of volumes with 2 to 4 channels, which become slices, or None.

    Channels are the last axis in memory, where samples along the last two axes are contiguous.
    """
    shape, strides, *_ = placement
    high, across, last = axes_in_memory(shape, strides)
    channels = shape[last]
    width = shape[across]
    joined = strides[last] == itemsize and strides[across] == channels * itemsize
    if not (joined and 2 <= channels <= 4 and width % 4 == 0):
        return None
    flat = (shape[0], shape[high], width * channels), (strides[0], strides[high], itemsize)
    rows = arrange(placement._replace(shape=flat[0], strides=flat[1]), itemsize, False)
    if rows is None or not rows.vector:
        return None
    sizes = (channels, shape[high], width)
    steps = (rows.strides[0], 1, rows.strides[2])
    return rows._replace(shape=sizes, strides=steps, channels=channels)


def is_alike(mask: Placement, image: Placement, itemsize: int) -> bool:
    """Return whether a mask has the layout of an image, and four of its bytes are aligned."""
    found = mask.address % 4 == 0 and mask.shape == image.shape
    for length, step, apart in zip(mask.shape, mask.strides, image.strides, strict=True):
        found &= length == 1 or (step * itemsize == apart and (step == 1 or step % 4 == 0))
    return found


def axes_in_memory(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """Return the spatial axes of an array (batch, *spatial), that of the smallest stride last."""
    return sorted(range(1, len(shape)), key=lambda axis: (shape[axis] > 1, -abs(strides[axis])))


def keeping(array: Any, memory: Any) -> Any:
    """Return the array, such that the memory lives as long as it does."""
    kept = cupy.cuda.UnownedMemory(array.data.ptr, array.nbytes, (array, memory))
    return cupy.ndarray(array.shape, array.dtype, cupy.cuda.MemoryPointer(kept, 0))
