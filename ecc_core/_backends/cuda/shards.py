"""Curves of images that are divided along their first axis, possibly among several devices.

The curve of each shard is computed on its device, on the stream that is current there. The curve of
two neighbours is the sum of both curves and that of the pair of slices that meet, minus the curves
of these two slices. One of the slices is copied to the other's device, and their curves are
computed on another stream at the same time as those of the shards. Each device sends its curves to
a table on the device of the first shard, whose current stream adds them. All streams wait for this
sum, so no memory is overwritten or used again too early.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda.arrays import ArrayView, adopt, keeping, numbers
from ecc_core._backends.cuda.launch import enqueue
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

# Rows of the table: for each pair of neighbours the one slice, both and the other; then the shards.
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

    Waits for the devices only if NaN in floats is an error. If the stream of the first device is
    being captured, the work on all devices becomes part of the graph, which stays valid as long as
    the curve lives.
    """
    seams = 3 * (len(shards) - 1)
    with adopt(shards[0]) as first:
        given = _Arguments(thresholds, filtration)
        lead = _Lead.of(first.array, seams + len(shards), thresholds.size)
    parts = [_count(shard, lead, given) for shard in shards]  # so that all devices begin early
    shares = [_count_between(*pair, given) for pair in pairwise(parts)]
    shares += [_Share(part.queue, part.values, 1) for part in parts]
    total = _sum(lead, seams, shares)
    for part in parts:
        if part.flag is not None:
            part.raise_for_nan()
    return first.wrap(total)


class _Arguments(NamedTuple):
    """What is to be computed."""

    thresholds: NDArray[Any]
    filtration: Filtration

    def begin(self, images: ArrayView, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """Launch the curves of images in the memory of an array, on the current stream.

        Returns memory that begins with the curves, and the flag or None.
        """
        array = images.array
        whole = images._replace(array=cupy.ndarray(shape, array.dtype, array.data, strides))
        values, flag = enqueue(whole, self.thresholds, self.filtration)
        return cupy.ascontiguousarray(values).data, flag


class _Queue(NamedTuple):
    """A stream and its device, which is current where the methods are called."""

    device: Any
    stream: Any

    @classmethod
    def current(cls, array: Any) -> _Queue:
        return cls(array.device, cupy.cuda.get_current_stream())

    def mark(self) -> Any:
        """Record an event after all that has been queued."""
        event = cupy.cuda.Event(disable_timing=True)
        event.record(self.stream)
        return event

    def beside(self, turn: int) -> _Queue:
        """Return another queue of the device, which does not wait for this one."""
        return _Queue(self.device, _stream_beside(self.device.id, turn))


@lru_cache(maxsize=64)
def _stream_beside(_device: int, _turn: int) -> Any:
    return cupy.cuda.Stream(non_blocking=True)


class _Lead(NamedTuple):
    """The queue that adds the curves, their table, and the event after which it may be written."""

    queue: _Queue
    table: Any
    ready: Any
    captured: bool

    @classmethod
    def of(cls, array: Any, rows: int, count: int) -> _Lead:
        """Take the current queue of an array's device."""
        queue = _Queue.current(array)
        table = cupy.empty((rows, count), np.int64)
        return cls(queue, table, queue.mark(), bool(queue.stream.is_capturing()))


class _Share(NamedTuple):
    """Some rows of the table, the queue that computes them, and memory that it uses."""

    queue: _Queue
    values: Any
    rows: int
    memory: tuple[Any, ...] = ()


class _Part(NamedTuple):
    """A shard whose curve is being computed.

    Attributes
    ----------
    ready : event
        The event after which the shard may be read.
    values, flag
        Memory of its curve, and the flag that is set if there may be a NaN, or None.
    """

    view: ArrayView
    queue: _Queue
    ready: Any
    values: Any
    flag: Any

    def slice(self, index: int) -> tuple[Any, Any]:
        """Return a contiguous slice, and the event after which it may be read."""
        found = self.view.array[index : index + 1 or None]
        if found.flags.c_contiguous:
            return found, self.ready
        with self.queue.device, self.queue.stream:
            return cupy.ascontiguousarray(found), self.queue.mark()

    def raise_for_nan(self) -> None:
        """Wait for the flag, which infinities set as well, and raise ValueError for NaN."""
        with self.queue.device, self.queue.stream:
            if bool(self.flag[0]) and bool(cupy.isnan(numbers(self.view)).any()):
                raise ValueError(NAN_MESSAGE)


def _count(shard: Any, lead: _Lead, given: _Arguments) -> _Part:
    """Launch the curve of a shard, which becomes part of the graph that captures the first one."""
    with adopt(shard) as view:
        queue = _Queue.current(view.array)
        if lead.captured and not queue.stream.is_capturing():
            queue = queue.beside(1)
            queue.stream.wait_event(lead.ready)
        ready = queue.mark()
        array = view.array
        with queue.stream:
            found = given.begin(view, (1, *array.shape), (0, *array.strides))
        return _Part(view, queue, ready, *found)


def _count_between(before: _Part, after: _Part, given: _Arguments) -> _Share:
    """Launch the curves of the slices where two neighbours meet, on the device of the first."""
    first, first_ready = before.slice(-1)
    second, second_ready = after.slice(0)
    step = first.nbytes
    with before.queue.device:
        queue = before.queue.beside(0)
        with queue.stream:
            queue.stream.wait_event(first_ready)
            queue.stream.wait_event(second_ready)
            # Two equal slices have the curve of one: the windows are the one, both and the other.
            slices = cupy.empty((4, *first.shape[1:]), first.dtype)
            data = slices.data
            for place, source in enumerate((first.data, first.data, second.data, data + 2 * step)):
                (data + place * step).copy_from_device_async(source, step, queue.stream)
            windows = before.view._replace(array=slices)
            shape, strides = (3, 2, *first.shape[1:]), (step, *slices.strides)
            values, _ = given.begin(windows, shape, strides)
        return _Share(queue, values, 3, (first, second, slices))


def _sum(lead: _Lead, seams: int, shares: Sequence[_Share]) -> Any:
    """Return the sum of the shares, whose first rows are seams. All queues wait for it."""
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
