"""Curves of host volumes on one or several devices, slab by slab.

Each device has a run of slabs, a copy stream and a compute stream. While one slab is computed the
next one is copied; where the host memory is not pinned, threads copy it to pinned buffers first. A
slab is computed with one more slice on each side, which the slab before leaves on the device. The
curves of slabs add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal

import cupy
import cupyx
import numpy as np
from numpy.typing import NDArray

from ecc_core._cuda.arrays import Adopted, element_of
from ecc_core._cuda.launch import enqueue
from ecc_core.errors import NAN_MESSAGE

__all__ = ["curve"]

SLAB_BYTES = 128 << 20
COPY_THREADS = 8  # a device, from pageable memory
HOST = 1  # cudaMemoryTypeHost
TO_DEVICE, ON_DEVICE = 1, 3  # cudaMemcpyKind


def curve(
    volume: Any,
    thresholds: NDArray[Any],
    *,
    construction: Literal["V", "T"],
    superlevel: bool,
    nan: str,
    devices: Sequence[int],
    slab_bytes: int = SLAB_BYTES,
) -> NDArray[np.int64]:
    """Euler characteristic of a host volume at sorted thresholds: (n,) int64.

    Parameters
    ----------
    volume : (p, m, n) or (m, n) array
        NumPy array, memmap, or anything with ``shape`` and ``dtype`` whose slices along the first
        axis become NumPy arrays, such as a zarr array. It need not fit into device memory.
    devices : sequence of int
        Each gets a run of slabs.
    slab_bytes : int
        About so many are copied at once.

    Raises
    ------
    ValueError
        For NaN in the volume, with ``nan="raise"``.
    """
    bounds = np.linspace(0, volume.shape[0], len(devices) + 1).astype(int).tolist()
    options = {"construction": construction, "superlevel": superlevel, "nan": nan}

    def run(index: int) -> tuple[NDArray[np.int64], bool]:
        with cupy.cuda.Device(devices[index]):
            slabs = _Slabs(volume, bounds[index], bounds[index + 1], slab_bytes)
            return _add_slabs(slabs, thresholds, options)

    with ThreadPoolExecutor(len(devices)) as pool:
        parts = list(pool.map(run, range(len(devices))))
    if nan == "raise" and any(seen for _, seen in parts):
        raise ValueError(NAN_MESSAGE)
    total: NDArray[np.int64] = np.sum([values for values, _ in parts], axis=0)
    return total


def _add_slabs(
    slabs: _Slabs, thresholds: NDArray[Any], options: dict[str, Any]
) -> tuple[NDArray[np.int64], bool]:
    """Sum of the curves of the slabs of one device, and whether NaN was seen."""
    compute = cupy.cuda.Stream(non_blocking=True)
    floats = slabs.dtype.kind == "f"
    with compute:
        total = cupy.zeros((1, thresholds.size), np.int64)
        seen = cupy.zeros((), np.bool_)
        for slab, own, ready, done in slabs:
            compute.wait_event(ready)
            adopted = Adopted(slab[None], element_of(slab.dtype), _same)
            values, _ = enqueue(adopted, thresholds, mask=None, own=own, **options)
            total += values
            if floats:
                seen |= cupy.isnan(slab).any()
            done.record(compute)
        compute.synchronize()
        return total.get()[0], bool(seen)


def _same(array: Any) -> Any:
    return array


class _Slabs:
    """Slabs of a volume on the current device, each with its neighbours and what of it counts."""

    def __init__(self, volume: Any, first: int, last: int, slab_bytes: int) -> None:
        self.volume, self.first, self.last = volume, first, last
        self.dtype = np.dtype(volume.dtype)
        self.slice_bytes = self.dtype.itemsize * math.prod(volume.shape[1:])
        self.step = min(max(2, slab_bytes // max(self.slice_bytes, 1)), max(last - first, 2))
        self.copy = cupy.cuda.Stream(non_blocking=True)
        shape = (self.step + 2, *volume.shape[1:])
        self.buffers = [cupy.empty(shape, self.dtype) for _ in range(2)]
        self.pinned = _is_pinned(volume)
        self.staged = [] if self.pinned else [_Staging(shape, self.dtype) for _ in range(2)]

    def __iter__(self) -> Iterator[tuple[Any, tuple[int, int], Any, Any]]:
        """Yield slab, own indices, the event to wait for and the event to record."""
        done = [cupy.cuda.Event(disable_timing=True) for _ in range(2)]
        above = last_low = 0  # the slab before: first slice, and the slice after its last
        for count, start in enumerate(range(self.first, self.last, self.step)):
            stop = min(start + self.step, self.last)
            low, high = max(start - 1, 0), min(stop + 1, self.volume.shape[0])
            buffer, before = self.buffers[count % 2], self.buffers[1 - count % 2]
            if count > 1:
                self.copy.wait_event(done[count % 2])
            kept = above - low if count else 0
            if kept:
                offset = (low - last_low) * self.slice_bytes
                self._move(buffer.data.ptr, before.data.ptr + offset, kept, ON_DEVICE)
            self._upload(buffer, kept, low + kept, high, count % 2)
            above, last_low = high, low
            ready = cupy.cuda.Event(disable_timing=True)
            ready.record(self.copy)
            yield buffer[: high - low], (start - low, stop - low), ready, done[count % 2]
        self.copy.synchronize()

    def _upload(self, buffer: Any, place: int, low: int, high: int, turn: int) -> None:
        """Slices [low, high) of the volume to `buffer` from index `place`."""
        target = buffer.data.ptr + place * self.slice_bytes
        if self.pinned:
            self._move(target, self.volume[low:].ctypes.data, high - low, TO_DEVICE)
            return
        staging = self.staged[turn]
        staging.fill(self.volume, low, high)
        self._move(target, staging.memory.ctypes.data, high - low, TO_DEVICE)
        staging.sent.record(self.copy)

    def _move(self, target: int, source: int, slices: int, kind: int) -> None:
        size = slices * self.slice_bytes
        cupy.cuda.runtime.memcpyAsync(target, source, size, kind, self.copy.ptr)


class _Staging:
    """A pinned buffer that threads fill."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.memory = cupyx.empty_pinned(shape, dtype)
        self.sent = cupy.cuda.Event(disable_timing=True)
        self.pool = ThreadPoolExecutor(COPY_THREADS)

    def fill(self, volume: Any, low: int, high: int) -> None:
        self.sent.synchronize()
        edges = np.linspace(0, high - low, COPY_THREADS + 1).astype(int).tolist()

        def part(index: int) -> None:
            begin, end = edges[index], edges[index + 1]
            if begin < end:
                np.copyto(self.memory[begin:end], np.asarray(volume[low + begin : low + end]))

        futures: list[Future[None]] = [self.pool.submit(part, i) for i in range(COPY_THREADS)]
        for future in futures:
            future.result()


def _is_pinned(volume: Any) -> bool:
    """Whether the device can copy from the volume's memory by itself."""
    if not isinstance(volume, np.ndarray) or not volume.flags.c_contiguous:
        return False
    return int(cupy.cuda.runtime.pointerGetAttributes(volume.ctypes.data).type) == HOST
