"""Curves of images in parts along their first axis, which may lie on several devices.

Every shard is counted on its device, on the stream that is current there. Two neighbours together
have the curves of both, and of their slices that meet as a pair, less that of each of these slices.
One of them is copied to the other's device, and the pair is counted, on a stream beside, while the
shards are counted. The current stream of the first shard's device adds the curves. All others wait
for that before they go on, so that nothing is written to or used again too early.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._cuda.arrays import Adopted, adopt, numbers
from ecc_core._cuda.launch import enqueue
from ecc_core.errors import NAN_MESSAGE

__all__ = ["curve"]

# Rows of the table: for each pair of neighbours one slice, both, and the other; then the shards.
add_rows = cupy.ElementwiseKernel(
    "raw int64 table, int32 seams, int32 rows",
    "int64 total",
    """
    total = 0;
    for (int row = 0; row < rows; ++row) {
        const long long value = table[row * _ind.size() + i];
        total += row >= seams || row % 3 == 1 ? value : -value;
    }
    """,
    "ecc_add_rows",
)


def curve(shards: Sequence[Any], thresholds: NDArray[Any], **filtration: Any) -> Any:
    """Euler characteristic of the image at sorted thresholds: (n,) int64 on the first device.

    Does not wait for the devices, except for floats with ``nan="raise"``. Where the stream of the
    first device is being captured, the work on other devices is part of the graph, which stays
    valid as long as the curve lives.
    """
    parts: list[_Part] = []
    for shard in shards:  # first of all every device gets its work
        parts.append(_count(shard, parts[0] if parts else None, thresholds, filtration))
    seams = [_count_between(*pair, thresholds, filtration) for pair in pairwise(parts)]
    # Seams are there first.
    total = _sum(parts[0].queue, [*seams, *(part.share() for part in parts)], 3 * len(seams))
    for part in parts:
        if part.flag is not None:
            part.raise_for_nan()
    return parts[0].adopted.give_back(total)


class _Queue(NamedTuple):
    """A stream and its device, which is current where the methods are called."""

    device: Any
    stream: Any

    @classmethod
    def current(cls, array: Any) -> _Queue:
        return cls(array.device, cupy.cuda.get_current_stream())

    def mark(self) -> Any:
        """An event after all that has been queued."""
        event = cupy.cuda.Event(disable_timing=True)
        event.record(self.stream)
        return event

    def beside(self, turn: int) -> _Queue:
        """Another queue of the device, which waits for nothing by itself."""
        return _Queue(self.device, _stream_beside(self.device.id, turn))


@lru_cache(maxsize=64)
def _stream_beside(_device: int, _turn: int) -> Any:
    return cupy.cuda.Stream(non_blocking=True)


class _Share(NamedTuple):
    """Rows of the table, the queue that makes them, the event after it, and memory that it uses."""

    values: Any
    queue: _Queue
    done: Any
    memory: tuple[Any, ...] = ()


class _Part(NamedTuple):
    """A shard that is being counted.

    Attributes
    ----------
    ready : event
        After it the shard may be read.
    values, flag : array
        Its curve, and what is set where NaN must be looked for.
    """

    adopted: Adopted
    queue: _Queue
    ready: Any
    values: Any
    flag: Any

    def captured(self) -> bool:
        return bool(self.queue.stream.is_capturing())

    def share(self) -> _Share:
        with self.queue.device:
            return _Share(self.values, self.queue, self.queue.mark())

    def slice(self, index: int) -> tuple[Any, Any]:
        """A slice in one piece, and the event after which it may be read."""
        found = self.adopted.array[index : index + 1 or None]
        if found.flags.c_contiguous:
            return found, self.ready
        with self.queue.device, self.queue.stream:
            return cupy.ascontiguousarray(found), self.queue.mark()

    def raise_for_nan(self) -> None:
        """Wait for the flag, which infinity sets too."""
        with self.queue.device, self.queue.stream:
            if bool(self.flag[0]) and bool(cupy.isnan(numbers(self.adopted)).any()):
                raise ValueError(NAN_MESSAGE)


def _count(shard: Any, lead: _Part | None, thresholds: Any, filtration: dict[str, Any]) -> _Part:
    """Begin with a shard. The graph that captures the first one's stream captures this one too."""
    with adopt(shard) as adopted:
        queue = _Queue.current(adopted.array)
        if lead is not None and lead.captured() and not queue.stream.is_capturing():
            queue = queue.beside(1)
            queue.stream.wait_event(lead.ready)
        ready = queue.mark()
        with queue.stream:
            whole = adopted._replace(array=adopted.array[None])
            values, flag = enqueue(whole, thresholds, mask=None, **filtration)
        return _Part(adopted, queue, ready, values, flag)


def _count_between(
    before: _Part, after: _Part, thresholds: Any, filtration: dict[str, Any]
) -> _Share:
    """Begin with the slices where two neighbours meet, on the device of the first."""
    first, first_ready = before.slice(-1)
    second, second_ready = after.slice(0)
    with before.queue.device:
        queue = before.queue.beside(0)
        with queue.stream:
            queue.stream.wait_event(first_ready)
            queue.stream.wait_event(second_ready)
            # Slices repeated have the curve of one: these windows are one, both and the other.
            slices = cupy.empty((4, *first.shape[1:]), first.dtype)
            for place, source in enumerate((first, first, second, slices[2:3])):
                _copy(slices.data + place * first.nbytes, source, queue)
            windows = cupy.ndarray(
                (3, 2, *first.shape[1:]),
                first.dtype,
                slices.data,
                (first.nbytes, *slices.strides),
            )
            pairs = before.adopted._replace(array=windows)
            values, _ = enqueue(pairs, thresholds, mask=None, **filtration)
        return _Share(values, queue, queue.mark(), (first, second, slices))


def _copy(target: Any, source: Any, queue: _Queue) -> None:
    """Copy an array to an address of the queue's device."""
    target.copy_from_device_async(source.data, source.nbytes, queue.stream)


def _sum(queue: _Queue, shares: Sequence[_Share], seams: int) -> Any:
    """The sum of shares, the first rows of which are seams; all queues wait for it."""
    with queue.device, queue.stream:
        rows = sum(len(share.values) for share in shares)
        table = cupy.empty((rows, shares[0].values.shape[1]), np.int64)
        target = table.data
        for share in shares:
            queue.stream.wait_event(share.done)
            _copy(target, share.values, queue)
            target = target + share.values.nbytes
        total = cupy.empty(table.shape[1], np.int64)
        add_rows(table, seams, rows, total)
        added = queue.mark()
        if queue.stream.is_capturing():
            total = _keeping(total, (table, shares))
    for share in shares:
        share.queue.stream.wait_event(added)
    return total


def _keeping(array: Any, memory: Any) -> Any:
    """The array; as long as it lives, so does the memory."""
    kept = cupy.cuda.UnownedMemory(array.data.ptr, array.nbytes, (array, memory))
    return cupy.ndarray(array.shape, array.dtype, cupy.cuda.MemoryPointer(kept, 0))
