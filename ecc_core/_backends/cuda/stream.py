"""Curves of host volumes on one or several devices, slab by slab.

Each device has a run of slabs, a copy stream and a compute stream, so the next slab is copied while
one is computed. Memory that is not pinned is copied to pinned buffers by threads, in pieces that
fit into the processor's cache. The slices that two slabs share stay on the device, so every slice
is copied once. The curves of the slabs add up.
"""

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import cupy
import cupyx
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda.arrays import ArrayView, as_cupy, element_of
from ecc_core._backends.cuda.curves import enqueue
from ecc_core._backends.cuda.kernels import variant_of
from ecc_core._backends.cuda.samples import (
    Images,
)
from ecc_core._backends.cuda.value_range import (
    find_range,
)
from ecc_core._partition import Partition
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

SLAB_BYTES = 512 << 20  # Slabs are smaller where the device has less than eight times as much.
CHUNK_BYTES = 2 << 30  # Larger chunks of slices of the volume are read more than once.
COPY_THREADS = 8  # Threads that copy from pageable memory; with more, Python becomes the limit.
THREAD_BYTES = 1 << 20  # A thread is started for so many bytes.
PIECE_BYTES = 8 << 20  # The most bytes that a thread copies at a time.
HOST = 1
"""CUDA's cudaMemoryTypeHost."""
TO_DEVICE = 1
"""CUDA's cudaMemcpyHostToDevice."""
ON_DEVICE = 3
"""CUDA's cudaMemcpyDeviceToDevice."""
copy_memory = cupy.cuda.runtime.memcpyAsync


def curve(
    volume: Any,
    thresholds: NDArray[Any] | None,
    filtration: Filtration,
    *,
    devices: Sequence[int],
    ranged: bool = False,
    slab_bytes: int = SLAB_BYTES,
) -> tuple[NDArray[np.int64], tuple[Any, Any]]:
    """Return the Euler characteristic of a host volume at thresholds, (n,) int64, and its range.

    Each of the devices, given by their numbers, computes a run of slabs of about `slab_bytes`. The
    volume, (p, m, n) or (m, n), is a NumPy array, a memory map, or any object with ``shape`` and
    ``dtype`` whose slices along the first axis can be converted to NumPy arrays, such as a Zarr
    array. It may be larger than the memory of the devices. The range, the smallest and largest
    finite value, is (None, None) unless `ranged`, or if there is none.

    Raises ValueError if the volume contains NaN and the filtration does not omit it.
    """
    at = np.zeros(0) if thresholds is None else thresholds
    if 0 in volume.shape:
        return np.zeros(at.size, np.int64), (None, None)
    if isinstance(volume, np.ndarray) and volume.flags.f_contiguous:
        volume = volume.T  # The curve does not change when axes are swapped.
    chunks = getattr(volume, "chunks", None)
    count = volume.shape[0]
    depth = int(chunks[0]) if chunks else 1  # Slices of a chunk are read together.
    depth = depth if depth * _slice_bytes(volume) <= CHUNK_BYTES else 1
    cuts = np.linspace(0, ceil_div(count, depth), len(devices) + 1).astype(int)
    by_device = Partition.of_edges(np.minimum(cuts * depth, count).tolist())
    threads = max(1, COPY_THREADS // len(devices))

    def run(index: int) -> tuple[NDArray[np.int64], list[Any], bool]:
        with cupy.cuda.Device(devices[index]), cupy.cuda.Stream(non_blocking=True) as compute:
            slabs = _Slabs(
                volume=volume,
                run=by_device.box((index,))[0],
                depth=depth,
                slab_bytes=slab_bytes,
                threads=threads,
            )
            variant = variant_of(filtration, element_of(slabs.dtype))
            total = cupy.zeros((1, at.size), np.int64)
            ends: list[Any] = []
            nan = False
            for slab, own, ready, done in _ahead(slabs):
                compute.wait_event(ready)
                view = ArrayView(slab[None], variant.element, as_cupy)
                if thresholds is not None:
                    total += enqueue(view, at, filtration, own=own)[0]
                if ranged or slab.dtype.kind == "f":
                    inside = view._replace(array=view.array[:, slice(*own)])
                    low, high, seen = find_range(Images(inside, None, None, variant))
                    ends += [end for end in (low, high) if end is not None]
                    nan |= seen
                done.record(compute)
            return total.get()[0], ends, nan

    with ThreadPoolExecutor(len(devices)) as pool:
        runs = pool.map(run, range(len(devices)))
        curves, found, nan = zip(*runs, strict=True)
    if filtration.nan == "raise" and any(nan):
        raise ValueError(NAN_MESSAGE)
    ends = [end for part in found for end in part]
    return np.sum(curves, axis=0), (min(ends), max(ends)) if ends else (None, None)


def _slice_bytes(volume: Any) -> int:
    return int(np.dtype(volume.dtype).itemsize * math.prod(volume.shape[1:]))


def _ahead(slabs: "_Slabs") -> Iterator[tuple[Any, tuple[int, int], Any, Any]]:
    """Yield the slabs. A thread fetches the next one meanwhile."""
    set_device = cupy.cuda.runtime.setDevice
    device = cupy.cuda.runtime.getDevice()
    with ThreadPoolExecutor(1, initializer=set_device, initargs=(device,)) as fetcher:
        iterator = iter(slabs)
        coming = fetcher.submit(next, iterator, None)
        while (slab := coming.result()) is not None:
            coming = fetcher.submit(next, iterator, None)
            yield slab


class _Slabs:
    """Slabs of a run of slices on the current device, with the slices beside them that they need.

    The run is `read` in whole chunks of so many slices (`depth`), and `counted` up to one slice
    before the last one that has been read, since this slice needs the next.
    """

    def __init__(self, volume: Any, run: slice, depth: int, slab_bytes: int, threads: int) -> None:
        self.volume = volume
        self.dtype = np.dtype(volume.dtype).newbyteorder("=")
        self.slice_bytes = _slice_bytes(volume)
        low = max(run.start - 1, 0)
        high = min(run.stop + 1, volume.shape[0])
        slab_bytes = min(slab_bytes, cupy.cuda.runtime.memGetInfo()[0] // 8)
        step = ceil_div(max(4, slab_bytes // self.slice_bytes), depth) * depth
        inner = range((low + 3) // step * step + step, high - 2, step)
        self.read = Partition.of_edges([low, *inner, high])
        self.counted = Partition.of_edges([run.start, *(at - 1 for at in inner), run.stop])
        self.copy = cupy.cuda.Stream(non_blocking=True)
        longest = 2 + max(self.read.lengths[0])
        shape = (longest, *volume.shape[1:])
        self.buffers = [cupy.empty(shape, self.dtype) for _ in range(2)]
        self.staging = None
        if not _is_pinned(volume):
            self.staging = _Staging(self.copy, longest * self.slice_bytes, threads)

    def __iter__(self) -> Iterator[tuple[Any, tuple[int, int], Any, Any]]:
        """Yield slabs and their own indices, an event to wait for, and an event to record."""
        if not any(self.counted.lengths[0]):
            return
        done = [cupy.cuda.Event(disable_timing=True) for _ in range(2)]
        place = 0  # The number of slices in the last buffer.
        slabs = zip(self.read.boxes(), self.counted.boxes(), strict=True)
        try:
            for turn, ((read,), (counted,)) in enumerate(slabs):
                buffer = self.buffers[turn % 2]
                before = self.buffers[1 - turn % 2]
                if turn > 1:
                    self.copy.wait_event(done[turn % 2])
                kept = min(2, place)
                if kept:
                    source = before[place - kept :].data.ptr
                    kept_bytes = kept * self.slice_bytes
                    copy_memory(buffer.data.ptr, source, kept_bytes, ON_DEVICE, self.copy.ptr)
                part = np.ascontiguousarray(self.volume[read], self.dtype)
                target = buffer.data.ptr + kept * self.slice_bytes
                if self.staging is None:
                    copy_memory(target, part.ctypes.data, part.nbytes, TO_DEVICE, self.copy.ptr)
                else:
                    self.staging.send(target, part.reshape(-1).view(np.uint8))
                ready = cupy.cuda.Event(disable_timing=True)
                ready.record(self.copy)
                before_first = read.start - kept
                own = (counted.start - before_first, counted.stop - before_first)
                place = read.stop - before_first
                yield buffer[:place], own, ready, done[turn % 2]
        finally:
            self.copy.synchronize()
            if self.staging is not None:
                self.staging.pool.shutdown()


class _Staging:
    """Threads that copy up to `most` bytes to the device, each through two pinned buffers."""

    def __init__(self, stream: Any, most: int, threads: int) -> None:
        self.stream = stream
        self.threads = min(threads, ceil_div(most, THREAD_BYTES))
        self.size = min(PIECE_BYTES, ceil_div(most, self.threads))
        self.buffers = [cupyx.empty_pinned(self.size, np.uint8) for _ in range(2 * self.threads)]
        self.sent = [cupy.cuda.Event(block=True, disable_timing=True) for _ in self.buffers]
        self.pool = ThreadPoolExecutor(self.threads)

    def send(self, target: int, source: NDArray[np.uint8]) -> None:
        """Copy `source` to the address `target`, in equal parts by all threads."""
        turns = ceil_div(source.size, self.threads * self.size)
        size = ceil_div(source.size, self.threads * turns)

        def work(thread: int) -> None:
            for turn in range(turns):
                start = (turn * self.threads + thread) * size
                part = source[start : start + size]
                buffer = 2 * thread + turn % 2
                memory = self.buffers[buffer]
                sent = self.sent[buffer]
                sent.synchronize()
                np.copyto(memory[: part.size], part)
                data = memory.ctypes.data
                stream = self.stream.ptr
                copy_memory(target + start, data, part.size, TO_DEVICE, stream)
                sent.record(self.stream)

        futures = [self.pool.submit(work, thread) for thread in range(self.threads)]
        wait(futures)
        for future in futures:
            future.result()


def _is_pinned(volume: Any) -> bool:
    """Return whether the device can copy directly from the volume's memory."""
    if not isinstance(volume, np.ndarray) or not volume.flags.c_contiguous:
        return False
    if not volume.dtype.isnative:
        return False
    return int(cupy.cuda.runtime.pointerGetAttributes(volume.ctypes.data).type) == HOST
