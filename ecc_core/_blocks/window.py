"""Sum over the blocks of an image that is read from the disk, in a window that moves over it.

A graph of all blocks would grow with the image. Here a block is read shortly before it is used, and
only its outermost planes are kept, until all earlier neighbours have been computed. So memory is
that of one layer of blocks. It is bounded, too: an image of a large cross-section is divided into
columns along its first axis, and the blocks beside a column are read once more.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor, wait
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import on_host
from ecc_core._blocks.work import Group, Work
from ecc_core._optional import import_optional
from ecc_core._partition import Index
from ecc_core._request.resources import available_cores
from ecc_core.errors import InputFileError

# Blocks that are read ahead of the computation, for each thread. No thread then waits for the block
# of another one.
AHEAD = 2
# Blocks whose values may be under way at the same time, for each thread.
ASKED = 4
# Sums of groups that may be under way, beside that of the last group.
SUMS = 1
AHEAD_ON_CLUSTER = 8
ASKED_ON_CLUSTER = 16
MOST_SPOILT = 64
PURPOSE = {"extra": "dask", "purpose": "computing by blocks"}

Values = NDArray[np.int64]


def sums_of_groups(
    work: Work,
    groups: Sequence[Group],
    numbers: Iterable[int],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    spoiling: type[Exception] = InputFileError,
) -> Generator[tuple[int, Values]]:
    """Yield the numbers of groups and their sums, as soon as they have been computed.

    `numbers` are those of the groups that are wanted, increasing; each is taken before its group is
    read. `workers` are threads of this process, `scheduler` the address of a dask cluster to use
    instead. After an error that is `spoiling`, only the group of the failing block is given up. The
    first one is raised in the end, or when there are `MOST_SPOILT`.
    """
    errors: list[Exception] = []
    waiting: deque[tuple[int, Any]] = deque()

    def ready(*, all_of_them: bool = False) -> Iterator[tuple[int, Values]]:
        while waiting and len(errors) < MOST_SPOILT:
            number, coming = waiting[0]
            if not (all_of_them or coming.done()):
                return
            waiting.popleft()
            try:
                values = coming.result()
            except spoiling as error:
                errors.append(error)
            else:
                yield number, on_host(values)

    with _Threads(work, workers) if scheduler is None else _Cluster(work, scheduler) as run:
        for asked in _Window(work, groups, run).sums(numbers):
            waiting += asked
            yield from ready()
            if len(errors) == MOST_SPOILT:
                break
        yield from ready(all_of_them=True)
    if errors:
        raise errors[0]


class _Window:
    """The blocks that are read, and those whose shares are asked for, both in their order."""

    def __init__(self, work: Work, groups: Sequence[Group], run: "_Threads | _Cluster") -> None:
        self.work = work
        self.groups = groups
        self.run = run
        self.kind = type(work)
        self.processed: dict[Index, Any] = {}
        self.order: list[Index] = []  # a heap of the numbers of these blocks
        self.asked: deque[Any] = deque()
        self.following: deque[tuple[Index, int | None]] = deque()
        self.shares: list[Any] = []
        self.summed: deque[Any] = deque()

    def sums(self, numbers: Iterable[int]) -> Iterator[list[tuple[int, Any]]]:
        """For each block, numbers of groups and their sums, which are on their way now."""
        place: Any = None
        for number in numbers:
            group = self.groups[number]
            if (group.images, group.column) != place:
                yield self._catch_up(0)
                self.processed.clear()
                self.order.clear()
                place = group.images, group.column
                self.column = _column_of(group, self.groups)
            blocks = list(group.blocks())
            for block in blocks:
                self._read(block)
                self.following.append((block, number if block == blocks[-1] else None))
                yield self._catch_up(self.run.ahead)
        yield self._catch_up(0)

    def _read(self, block: Index) -> None:
        """Read a block and its later neighbours, unless they have been."""
        for near in self.work.near(block):
            if near in self.processed:
                continue
            across = self._needed_across(near)
            if across:
                self.processed[near] = self.run.submit(self.kind.planes, near, across)
            else:
                self.processed[near] = self.run.submit(self.kind.process, near)
            heapq.heappush(self.order, near)

    def _needed_across(self, block: Index) -> tuple[int, ...]:
        """Return the axes across which the groups of a column need a block's first points only.

        These are none for their own blocks, and those along which all of their blocks that are
        next to another one are earlier.
        """
        lead = self.work.lead
        spatial = block[lead:]
        if self._is_own(spatial):
            return ()
        across = set(range(len(spatial)))
        for steps in itertools.product((0, 1), repeat=len(spatial)):
            earlier = tuple(i - step for i, step in zip(spatial, steps, strict=True))
            if self._is_own(earlier):
                across -= {axis for axis, step in enumerate(steps) if not step}
        return tuple(sorted(across))

    def _is_own(self, spatial: Index) -> bool:
        """Whether a block is one of the groups of the column."""
        column = self.column
        number = 0
        for i, part in zip(spatial, column.column, strict=True):
            if not part.start <= i < part.stop:
                return False
            number = number * (part.stop - part.start) + i - part.start
        return column.first <= number < column.stop

    def _catch_up(self, ahead: int) -> list[tuple[int, Any]]:
        """Ask for shares until only so many blocks are ahead, and for the sums of groups."""
        sums = []
        while len(self.following) > ahead:
            block, number = self.following.popleft()
            processed = [self.processed[near] for near in self.work.near(block)]
            self.shares.append(self.run.submit(self.kind.share, block, processed))
            while self.order and self.order[0] <= block:  # no later block needs them
                del self.processed[heapq.heappop(self.order)]
            self.asked.append(self.shares[-1])
            if len(self.asked) > self.run.asked:
                self.run.wait([self.asked.popleft()])
            if number is not None:
                shares = self.shares
                self.shares = []
                sums.append((number, self.run.submit(self.kind.sum, shares)))
                self.summed.append(sums[-1][1])
                # Each sum that is not done holds the shares of its group in memory.
                if len(self.summed) > SUMS:
                    self.run.wait([self.summed.popleft()])
        return sums


def _column_of(group: Group, groups: Sequence[Group]) -> Group:
    """Return all blocks of the groups in a column as one group."""
    alike = [
        other for other in groups if (other.images, other.column) == (group.images, group.column)
    ]
    first = min(other.first for other in alike)
    stop = max(other.stop for other in alike)
    return group._replace(first=first, stop=stop)


class _Threads:
    """Runs tasks in threads of this process; those of a single block in the calling thread."""

    def __init__(self, work: Work, workers: int | None) -> None:
        workers = workers or available_cores()
        self.work = work
        self.wait = wait
        self.ahead = AHEAD * workers
        self.asked = ASKED * workers
        alone = work.partition.size == 1  # starting threads would take longer than the block
        self.pool = _Immediate() if alone else ThreadPoolExecutor(workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Results on their way may be arguments: tasks before this one, so that none waits long."""

        def run() -> Any:
            return function(self.work, *[_result(argument) for argument in arguments])

        return self.pool.submit(run)


class _Immediate(Executor):
    """Runs each task in the calling thread before `submit` returns."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


def _result(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_result(part) for part in argument]
    return argument.result() if isinstance(argument, Future) else argument


class _Cluster:
    """Runs tasks on a dask cluster, where the blocks stay."""

    def __init__(self, work: Work, address: str) -> None:
        distributed = import_optional("distributed", **PURPOSE)
        self.client = distributed.Client(address)
        self.wait = distributed.wait
        threads = sum(self.client.nthreads().values())
        self.ahead = AHEAD_ON_CLUSTER * threads
        self.asked = ASKED_ON_CLUSTER * threads
        # It is sent again if its worker is lost.
        self.work = self.client.submit(_same, work, pure=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self.client.submit(function, self.work, *arguments, pure=False)


def _same(work: Work) -> Work:
    return work


def cluster_errors() -> tuple[type[Exception], ...]:
    """Return the errors that are raised when a dask cluster is lost."""
    import_optional("distributed", **PURPOSE)
    from distributed import client, scheduler
    from distributed.comm.core import CommClosedError

    return (
        CancelledError,
        client.ClosedClientError,
        CommClosedError,
        scheduler.KilledWorker,
        scheduler.NoValidWorkerError,
        TimeoutError,
    )
