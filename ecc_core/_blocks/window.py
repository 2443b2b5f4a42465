"""Sums over the blocks of an image that is read from the disk, in a window that moves over it.

A graph of all blocks would grow with the image. Here a block is read shortly before it is used, and
only its outermost planes are kept until all its earlier neighbours have been computed. Memory is
therefore proportional to a layer of blocks. To bound it, an image with a large cross-section is
divided into columns along its first axis, and blocks beside a column are read once more.
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

AHEAD_A_THREAD = 2
"""Blocks that are read ahead of the computation, so that no thread waits for the block of another.
"""
MOST_SHARES_A_THREAD = 4
"""Shares that are computed or wait at the same time."""
MOST_EARLIER_SUMS = 1
"""Sums of earlier groups that may be unfinished when the sum of a group is submitted."""
AHEAD_A_THREAD_OF_CLUSTER = 8
MOST_SHARES_A_THREAD_OF_CLUSTER = 16
MOST_SPOILT = 64
"""The most groups that are given up before the computation ends with an error."""
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

    `numbers` are the increasing numbers of the groups to compute; each is taken from the iterable
    before its group is read. `workers` is the number of threads, `scheduler` the address of a dask
    cluster to use instead. If a block raises an error of the type `spoiling`, only its group is
    given up. The first such error is raised in the end, or after `MOST_SPOILT` of them.
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
    """The blocks that have been read, and the shares and sums that have been submitted."""

    def __init__(self, work: Work, groups: Sequence[Group], run: "_Threads | _Cluster") -> None:
        self.work = work
        self.groups = groups
        self.run = run
        self.kind = type(work)
        self.processed: dict[Index, Any] = {}
        self.order: list[Index] = []  # A heap of the indices of these blocks.
        self.unfinished_shares: deque[Any] = deque()
        self.unfinished_sums: deque[Any] = deque()
        self.following: deque[tuple[Index, int | None]] = deque()
        """Blocks that have been read and whose shares have not been submitted, in order. The last
        block of a group comes with the number of the group."""
        self.shares: list[Any] = []
        """The shares of the present group that have been submitted."""

    def sums(self, numbers: Iterable[int]) -> Iterator[list[tuple[int, Any]]]:
        """Yield, after each block, the numbers and the futures of the sums submitted since then."""
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
        """Submit the reading of a block and its later neighbours, unless they have been read."""
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
        """Return the axes along which only the first points of a block are needed.

        A block of the groups is needed as a whole. Of a block beside the column, only the first
        points are needed along each axis along which all its neighbours in the column are earlier.
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
        """Whether a block belongs to a group of the column."""
        column = self.column
        number = 0
        for i, part in zip(spatial, column.column, strict=True):
            if not part.start <= i < part.stop:
                return False
            number = number * (part.stop - part.start) + i - part.start
        return column.first <= number < column.stop

    def _catch_up(self, ahead: int) -> list[tuple[int, Any]]:
        """Submit shares until `ahead` blocks are left, and sums of groups that are complete.

        Returns the numbers and the futures of these sums.
        """
        sums = []
        while len(self.following) > ahead:
            block, number = self.following.popleft()
            processed = [self.processed[near] for near in self.work.near(block)]
            self.shares.append(self.run.submit(self.kind.share, block, processed))
            while self.order and self.order[0] <= block:  # No later block needs its planes.
                del self.processed[heapq.heappop(self.order)]
            self.unfinished_shares.append(self.shares[-1])
            if len(self.unfinished_shares) > self.run.most_shares:
                self.run.wait([self.unfinished_shares.popleft()])
            if number is not None:
                shares = self.shares
                self.shares = []
                coming = self.run.submit(self.kind.sum, shares)
                sums.append((number, coming))
                self.unfinished_sums.append(coming)
                # Each unfinished sum holds the shares of its group in memory.
                if len(self.unfinished_sums) > MOST_EARLIER_SUMS:
                    self.run.wait([self.unfinished_sums.popleft()])
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
    """Runs tasks in threads of this process, or in the calling thread if there is one block."""

    def __init__(self, work: Work, workers: int | None) -> None:
        workers = workers or available_cores()
        self.work = work
        self.wait = wait
        self.ahead = AHEAD_A_THREAD * workers
        self.most_shares = MOST_SHARES_A_THREAD * workers
        # To start threads would take longer than a single block.
        alone = work.partition.size == 1
        self.pool = _Immediate() if alone else ThreadPoolExecutor(workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a method of the work. Arguments may be futures of tasks that were submitted earlier.

        A task waits in its thread for those: they were started before, so it does not wait long.
        """

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
        self.ahead = AHEAD_A_THREAD_OF_CLUSTER * threads
        self.most_shares = MOST_SHARES_A_THREAD_OF_CLUSTER * threads
        # The result of a task, unlike scattered data, is computed again if its worker is lost.
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
    """Return the types of errors that are raised when a dask cluster is lost."""
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
