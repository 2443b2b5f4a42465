"""Curves of images that are divided along their first axis, possibly among several devices.

The curve of each shard is computed on its device, on the stream that is current there. The curve of
two neighbours is the sum of both curves and that of the pair of slices that meet, minus the curves
of these two slices. One of the slices is copied to the other's device, and their curves are
computed on another stream at the same time as those of the shards. Each device sends its curves to
a table on the device of the first shard, whose current stream adds them. All streams wait for this
sum, so no memory is overwritten or used again too early.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Self

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import ArrayView, adopt, keeping
from ecc_core._backends.cuda.curves import enqueue, raise_for_nan
from ecc_core._request.filtration import Filtration

# The rows of the table are, for each pair of neighbours, the curves of the one slice, of both and
# of the other one; then those of the shards.
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


class _Queue(NamedTuple):
    """A stream and its device, which is current where the methods are called."""

    device: Any
    stream: Any

    def mark(self) -> Any:
        """Record an event after all that has been queued."""
        event = cupy.cuda.Event(disable_timing=True)
        event.record(self.stream)
        return event

    def beside(self, turn: int) -> Self:
        """Return another queue of the device, which does not wait for this one."""
        return self._replace(stream=_stream_beside(self.device.id, turn))


@programs.plan
def _stream_beside(_device: int, _turn: int) -> Any:
    return cupy.cuda.Stream(non_blocking=True)


class _Table(NamedTuple):
    """Curves to be added by a queue, and the event after which they may be written."""

    queue: _Queue
    rows: Any
    ready: Any
    captured: bool


class _Share(NamedTuple):
    """Some rows of the table, the queue that computes them, and memory that it uses."""

    queue: _Queue
    values: Any
    memory: tuple[Any, ...] = ()


class _Part(NamedTuple):
    """A shard whose curve is being computed."""

    view: ArrayView
    queue: _Queue
    ready: Any
    """The event after which the shard may be read."""
    values: Any
    flag: Any
    """A word that is set if there may be a NaN, or None."""

    def slice(self, index: int) -> tuple[Any, Any]:
        """Return a contiguous slice, and the event after which it may be read."""
        found = self.view.array[index : index + 1 or None]
        if found.flags.c_contiguous:
            return found, self.ready
        with self.queue.device, self.queue.stream:
            return cupy.ascontiguousarray(found), self.queue.mark()


def curve(shards: Sequence[Any], thresholds: NDArray[Any], filtration: Filtration) -> Any:
    """Return the Euler characteristic of the image at thresholds, (n,) int64 on the first device.

    Waits for the devices only if NaN in floats is an error. If the stream of the first device is
    being captured, the work on all devices becomes part of the graph, which stays valid as long as
    the curve lives.
    """
    seams = 3 * (len(shards) - 1)
    with adopt(shards[0]) as first:
        queue = _Queue(first.array.device, cupy.cuda.get_current_stream())
        rows = cupy.empty((seams + len(shards), thresholds.size), np.int64)
        table = _Table(queue, rows, queue.mark(), programs.is_capturing())
    begin = partial(enqueue, thresholds=thresholds, filtration=filtration)
    # All shards are launched before pairs of slices, so that all devices begin early.
    parts = [_count(shard, table, begin) for shard in shards]
    shares = [_count_between(*pair, begin) for pair in pairwise(parts)]
    shares += [_Share(part.queue, part.values) for part in parts]
    total = _sum(table, seams, shares)
    for part in parts:
        if part.flag is not None:
            with part.queue.device, part.queue.stream:
                raise_for_nan(part.flag, part.view, None)
    return first.wrap(total)


def _count(shard: Any, table: _Table, begin: Callable[..., Any]) -> _Part:
    """Launch the curve of a shard, which becomes part of the graph that captures the first one."""
    with adopt(shard) as view:
        queue = _Queue(view.array.device, cupy.cuda.get_current_stream())
        if table.captured and not queue.stream.is_capturing():
            queue = queue.beside(1)
            queue.stream.wait_event(table.ready)
        ready = queue.mark()
        with queue.stream:
            values, flag = begin(view._replace(array=view.array[None]))
            return _Part(
                view=view,
                queue=queue,
                ready=ready,
                values=cupy.ascontiguousarray(values),
                flag=flag,
            )


def _count_between(before: _Part, after: _Part, begin: Callable[..., Any]) -> _Share:
    """Launch the curves of the slices where two neighbours meet, on the device of the first."""
    first, first_ready = before.slice(-1)
    second, second_ready = after.slice(0)
    step = first.nbytes
    with before.queue.device:
        queue = before.queue.beside(0)
        with queue.stream:
            queue.stream.wait_event(first_ready)
            queue.stream.wait_event(second_ready)
            # The windows are the one slice twice, both slices, and the other one twice. Two equal
            # slices have the curve of one, and windows of one size are counted in one launch.
            slices = cupy.empty((4, *first.shape[1:]), first.dtype)
            data = slices.data
            for place, source in enumerate((first.data, first.data, second.data, data + 2 * step)):
                (data + place * step).copy_from_device_async(source, step, queue.stream)
            shape = (3, 2, *first.shape[1:])
            strides = (step, *slices.strides)
            windows = cupy.ndarray(shape, first.dtype, data, strides)
            values, _ = begin(before.view._replace(array=windows))
            return _Share(queue, cupy.ascontiguousarray(values), (first, second, slices))


def _sum(table: _Table, seams: int, shares: Sequence[_Share]) -> Any:
    """Return the sum of the shares, whose first rows are seams. All queues wait for it."""
    rows, count = table.rows.shape
    target = table.rows.data
    arrivals = []
    for share in shares:
        size = share.values.nbytes
        with share.queue.device:
            share.queue.stream.wait_event(table.ready)
            target.copy_from_device_async(share.values.data, size, share.queue.stream)
            arrivals.append(share.queue.mark())
        target = target + size
    queue = table.queue
    with queue.device, queue.stream:
        for arrival in arrivals:
            queue.stream.wait_event(arrival)
        total = cupy.empty(count, np.int64)
        add_rows(table.rows, seams, rows, total)
        added = queue.mark()
        if table.captured:
            total = keeping(total, (table, shares))
    for share in shares:
        share.queue.stream.wait_event(added)
    return total
