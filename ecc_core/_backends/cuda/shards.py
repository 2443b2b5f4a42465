"""Curves of images in parts along their first axis, which may lie on several devices.

Every shard is counted on its device, on the stream that is current there. Two neighbours together
have the curves of both, and of their slices that meet as a pair, less that of each of these slices.
One of them is copied to the other's device, and the pair is counted, on a stream beside, while the
shards are counted. Each device sends its curves to a table on the first shard's device as soon as
they are done; the current stream of that device adds them. All others wait for that before they go
on, so that nothing is written to or used again too early.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda.arrays import Adopted, adopt, keeping, numbers
from ecc_core._backends.cuda.launch import enqueue
from ecc_core._backends.cuda.recipe import NAN_REPORT, Variant, variant_of
from ecc_core._backends.cuda.scan import whole_scan
from ecc_core._request.filtration import Filtration
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


def curve(shards: Sequence[Any], thresholds: NDArray[Any], filtration: Filtration) -> Any:
    """Euler characteristic of the image at sorted thresholds: (n,) int64 on the first device.

    Does not wait for the devices, except for floats with ``nan="raise"``. Where the stream of the
    first device is being captured, the work on other devices is part of the graph, which stays
    valid as long as the curve lives.
    """
    seams = 3 * (len(shards) - 1)
    with adopt(shards[0]) as first:
        asked = _Asked.of(first.element, thresholds, filtration)
        lead = _Lead.of(first.array, seams + len(shards), thresholds.size)
    parts = [_count(shard, lead, asked) for shard in shards]  # first every device gets its work
    shares = [_count_between(*pair, asked) for pair in pairwise(parts)]
    shares += [_Share(part.queue, part.values, 1) for part in parts]
    total = _sum(lead, seams, shares)
    for part in parts:
        if part.flag is not None:
            part.raise_for_nan()
    return first.give_back(total)


class _Asked(NamedTuple):
    """What to count."""

    thresholds: NDArray[Any]
    filtration: Filtration
    variant: Variant

    @classmethod
    def of(cls, element: str, thresholds: NDArray[Any], filtration: Filtration) -> _Asked:
        return cls(thresholds, filtration, variant_of(filtration, element, masked=False))

    def begin(self, images: Adopted, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """Count images in the memory of an array, on the current stream and its device.

        Returns memory that begins with the curves, and the flag or None.
        """
        array = images.array
        data = array.data
        scan = whole_scan(
            shape, strides, data.ptr % 16, self.thresholds, self.variant, array.device.id
        )
        if scan is None:
            whole = images._replace(array=cupy.ndarray(shape, array.dtype, data, strides))
            values, flag = enqueue(whole, self.thresholds, self.filtration)
            return cupy.ascontiguousarray(values).data, flag
        values = scan.begin(data.ptr)
        return values, scan.flags(values) if self.variant.nan == NAN_REPORT else None


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


class _Lead(NamedTuple):
    """The queue that adds, its table, and the event after which others may write to it."""

    queue: _Queue
    table: Any
    ready: Any
    captured: bool

    @classmethod
    def of(cls, array: Any, rows: int, count: int) -> _Lead:
        """The current queue of an array's device."""
        queue = _Queue.current(array)
        table = cupy.empty((rows, count), np.int64)
        return cls(queue, table, queue.mark(), bool(queue.stream.is_capturing()))


class _Share(NamedTuple):
    """Some rows of the table, the queue that makes them, and memory that it uses."""

    queue: _Queue
    values: Any
    rows: int
    memory: tuple[Any, ...] = ()


class _Part(NamedTuple):
    """A shard that is being counted.

    Attributes
    ----------
    ready : event
        After it the shard may be read.
    values, flag
        Memory of its curve, and what is set where NaN must be looked for.
    """

    adopted: Adopted
    queue: _Queue
    ready: Any
    values: Any
    flag: Any

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


def _count(shard: Any, lead: _Lead, asked: _Asked) -> _Part:
    """Begin with a shard. The graph that captures the first one's stream captures this one too."""
    with adopt(shard) as adopted:
        queue = _Queue.current(adopted.array)
        if lead.captured and not queue.stream.is_capturing():
            queue = queue.beside(1)
            queue.stream.wait_event(lead.ready)
        ready = queue.mark()
        array = adopted.array
        with queue.stream:
            found = asked.begin(adopted, (1, *array.shape), (0, *array.strides))
        return _Part(adopted, queue, ready, *found)


def _count_between(before: _Part, after: _Part, asked: _Asked) -> _Share:
    """Begin with the slices where two neighbours meet, on the device of the first."""
    first, first_ready = before.slice(-1)
    second, second_ready = after.slice(0)
    step = first.nbytes
    with before.queue.device:
        queue = before.queue.beside(0)
        with queue.stream:
            queue.stream.wait_event(first_ready)
            queue.stream.wait_event(second_ready)
            # Slices repeated have the curve of one: these windows are one, both and the other.
            slices = cupy.empty((4, *first.shape[1:]), first.dtype)
            data = slices.data
            for place, source in enumerate((first.data, first.data, second.data, data + 2 * step)):
                (data + place * step).copy_from_device_async(source, step, queue.stream)
            windows = before.adopted._replace(array=slices)
            shape, strides = (3, 2, *first.shape[1:]), (step, *slices.strides)
            values, _ = asked.begin(windows, shape, strides)
        return _Share(queue, values, 3, (first, second, slices))


def _sum(lead: _Lead, seams: int, shares: Sequence[_Share]) -> Any:
    """The sum of shares, the first rows of which are seams; all queues wait for it."""
    rows, count = lead.table.shape
    target = lead.table.data
    arrivals = []
    for share in shares:
        size = 8 * count * share.rows
        with share.queue.device:
            share.queue.stream.wait_event(lead.ready)
            target.copy_from_device_async(share.values, size, share.queue.stream)
            arrivals.append(share.queue.mark())
        target = target + size
    queue = lead.queue
    with queue.device, queue.stream:
        for arrival in arrivals:
            queue.stream.wait_event(arrival)
        total = cupy.empty(count, np.int64)
        add_rows(lead.table, seams, rows, total)
        added = queue.mark()
        if lead.captured:
            total = keeping(total, (lead, shares))
    for share in shares:
        share.queue.stream.wait_event(added)
    return total
