"""Sum over the blocks of an image that is read from the disk, section by section.

The graph of all blocks would grow with the image. Here the blocks are taken in sections, each with
a graph of its own, and what later sections need of earlier ones, planes of the blocks on the front
between them, is handed on. The front is bounded too: an image of a large cross-section is divided
into columns along its first axis, and the blocks beside a column are read once more.
"""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._dask.blocks import Settings, emit, share_of_block, total
from ecc_core._dask.planes import Array, Emitted, neighbours, place_of
from ecc_core._dask.regions import add_tables, emit_regions, share_of_regions
from ecc_core._dispatch import on_host
from ecc_core._optional import import_optional

__all__ = ["Group", "Work", "run_groups"]

SECTION = 512  # blocks of a graph at least
SECTION_A_THREAD = 64  # and for each thread of a cluster
MOST_SPOILT = 64
PURPOSE = {"extra": "dask", "purpose": "computing by blocks"}

Index = tuple[int, ...]
Values = NDArray[np.int64]
Done = Callable[[int, Values], None]


class Group(NamedTuple):
    """Consecutive blocks of a column, whose shares are added.

    Attributes
    ----------
    images : tuple of int
        Index of the blocks along the batch axes.
    column : tuple of slice
        Which blocks the column has along the spatial axes.
    first, stop : int
        The group's blocks in the C order of the column.
    """

    images: Index
    column: tuple[slice, ...]
    first: int
    stop: int

    def blocks(self) -> Iterator[Index]:
        """Indices of the blocks, batch axes first."""
        shape = [part.stop - part.start for part in self.column]
        for number in range(self.first, self.stop):
            inside = np.unravel_index(number, shape)
            yield (
                *self.images,
                *(s.start + int(i) for s, i in zip(self.column, inside, strict=True)),
            )


class Work:
    """What is to be added up: curves, or tables of region curves.

    Parameters
    ----------
    read : callable
        Takes a box, a slice for each axis, and returns its points and their labels, if there are.
    chunks : tuple of tuple of int
        Lengths of the blocks along each axis, batch axes first; those of labelled images have
        length 1 along batch axes.
    ndim : int
        Number of spatial axes.
    settings : Settings
    regions : bool
        Whether there are labels.
    """

    def __init__(
        self,
        read: Callable[[tuple[slice, ...]], tuple[Array, ...]],
        chunks: tuple[tuple[int, ...], ...],
        ndim: int,
        settings: Settings,
        *,
        regions: bool,
    ) -> None:
        self.read, self.settings, self.regions = read, settings, regions
        self.counts = tuple(map(len, chunks))
        self.lead = len(chunks) - ndim
        self.edges = [np.cumsum([0, *lengths]).tolist() for lengths in chunks]

    def box(self, block: Index) -> tuple[slice, ...]:
        """Where a block lies, along as many axes as its index has."""
        return tuple(
            slice(edges[i], edges[i + 1]) for edges, i in zip(self.edges, block, strict=False)
        )

    def near(self, block: Index) -> list[Index]:
        """A block and its later neighbours."""
        images, at = block[: self.lead], block[self.lead :]
        return [(*images, *other) for other in neighbours(at, self.counts[self.lead :])]

    def emit(self, block: Index) -> Emitted:
        """Read a block, and keep what its neighbours need."""
        arrays = self.read(self.box(block))
        if self.regions:
            image, labels = (array.reshape(array.shape[self.lead :]) for array in arrays)
            return emit_regions(image, labels, settings=self.settings)
        return emit(*arrays, settings=self.settings, ndim=len(block) - self.lead)

    def share(self, block: Index, emitted: Sequence[Emitted]) -> Values:
        """What a block adds."""
        place = place_of(block[self.lead :], self.counts[self.lead :])
        function = share_of_regions if self.regions else share_of_block
        return function(emitted, place, self.settings)

    def sum(self, shares: Sequence[Values], _: Sequence[Any]) -> Values:
        """The sum of a group; that of the group before it is there, so that they come in order."""
        return add_tables(shares) if self.regions else total(shares)

    def groups(self, size: int, side: int) -> list[Group]:
        """All blocks, in groups of at most `size` in columns of `side` blocks across."""
        images = itertools.product(*map(range, self.counts[: self.lead]))
        first, *across = self.counts[self.lead :]
        parts = [[slice(i, min(i + side, n)) for i in range(0, n, side)] for n in across]
        columns = list(itertools.product([slice(0, first)], *parts))
        groups = []
        for at, column in itertools.product(images, columns):
            count = math.prod(part.stop - part.start for part in column)
            starts = range(0, count, size)
            groups += [Group(at, column, i, min(i + size, count)) for i in starts]
        return groups


def run_groups(
    work: Work,
    groups: Sequence[Group],
    missing: Sequence[int],
    finished: Done,
    *,
    workers: int | None,
    scheduler: str | None,
    starting: Callable[[Sequence[int]], None],
    spoiling: type[Exception],
) -> list[Exception]:
    """Sum the shares of the groups whose numbers are `missing`.

    Parameters
    ----------
    work : Work
    groups : sequence of Group
    missing : sequence of int
        Increasing.
    finished : callable
        Takes the number and the sum of a group as soon as it is there.
    workers, scheduler
        Threads of this process, or the address of a dask cluster to use instead.
    starting : callable
        Takes the numbers of the groups that are going to be read.
    spoiling : type
        Errors that spoil the groups whose blocks raise them, and no others.

    Returns
    -------
    list of Exception
        Why groups were spoilt; at most `MOST_SPOILT` of them, after which no more are tried.
    """
    name = f"ecc-{secrets.token_hex(8)}"
    errors: list[Exception] = []
    with _Threads(workers) if scheduler is None else _Cluster(scheduler) as run:
        front: dict[Index, Any] = {}
        sections = [*_sections(groups, missing, run.section), []]
        for section, following in itertools.pairwise(sections):
            starting(section)
            done: set[int] = set()

            def each(number: int, values: Any, done: set[int] = done) -> None:
                finished(number, on_host(values))
                done.add(number)

            task = _Section(name, work, {number: groups[number] for number in section})
            kept = task.kept_for(groups[following[0]], front) if following else []
            try:
                front = run(task, front, kept, each)
            except spoiling:
                front = {}
                for number in sorted(set(section) - done):
                    try:
                        run(_Section(name, work, {number: groups[number]}), {}, [], each)
                    except spoiling as error:
                        errors.append(error)
                        if len(errors) == MOST_SPOILT:
                            return errors
    return errors


def _sections(groups: Sequence[Group], missing: Sequence[int], least: int) -> Iterator[list[int]]:
    """Numbers of groups of one column with at least so many blocks, if it has so many."""
    for _, numbers in itertools.groupby(missing, lambda i: (groups[i].images, groups[i].column)):
        section: list[int] = []
        blocks = 0
        for number in numbers:
            section.append(number)
            blocks += groups[number].stop - groups[number].first
            if blocks >= least:
                yield section
                section, blocks = [], 0
        if section:
            yield section


class _Section:
    """The tasks of some groups of one column."""

    def __init__(self, name: str, work: Work, groups: dict[int, Group]) -> None:
        self.name, self.work, self.groups = name, work, groups
        self.own = {number: list(group.blocks()) for number, group in groups.items()}
        near = (work.near(block) for blocks in self.own.values() for block in blocks)
        self.needed = dict.fromkeys(itertools.chain.from_iterable(near))
        self.sums = [(f"{name}-sum", number) for number in groups]

    def kept_for(self, following: Group, front: dict[Index, Any]) -> list[Index]:
        """The blocks of the front that a later group of the same column may need."""
        group = next(iter(self.groups.values()))
        if (group.images, group.column) != (following.images, following.column):
            return []
        first = next(following.blocks())
        return [block for block in {**front, **self.needed} if block >= first]

    def emit_key(self, block: Index) -> tuple[Any, ...]:
        return (f"{self.name}-emit", *block)

    def graph(self, kept: Sequence[Index], known: dict[Index, Emitted]) -> dict[Any, Any]:
        """The tasks, and those of blocks to keep. What is known is not read again."""
        work = f"{self.name}-work"
        tasks: dict[Any, Any] = {work: self.work}
        for block in {**self.needed, **dict.fromkeys(kept)}:
            reading = (known.__getitem__, block) if block in known else (Work.emit, work, block)
            tasks[self.emit_key(block)] = reading
        before: list[Any] = []
        for total_key, blocks in zip(self.sums, self.own.values(), strict=True):
            shares = [(f"{self.name}-share", *block) for block in blocks]
            for share, block in zip(shares, blocks, strict=True):
                emitted = [self.emit_key(near) for near in self.work.near(block)]
                tasks[share] = (Work.share, work, block, emitted)
            tasks[total_key] = (Work.sum, work, shares, before)
            before = [total_key]
        return tasks


class _Threads:
    """Runs sections in threads of this process."""

    section = SECTION

    def __init__(self, workers: int | None) -> None:
        self.workers = workers
        self.callback = import_optional("dask.callbacks", **PURPOSE).Callback
        self.get = import_optional("dask.threaded", **PURPOSE).get

    def __enter__(self) -> _Threads:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(
        self, section: _Section, front: dict[Index, Any], kept: Sequence[Index], done: Done
    ) -> dict[Index, Any]:
        """Compute a section, and what is kept of it."""
        sums = set(section.sums)

        def posttask(key: Any, value: Any, *_: Any) -> None:
            if key in sums:
                done(key[1], value)

        keys = [*section.sums, *map(section.emit_key, kept)]
        with self.callback(posttask=posttask):
            values = self.get(section.graph(kept, front), keys, num_workers=self.workers)
        return dict(zip(kept, values[len(sums) :], strict=True))


class _Cluster:
    """Runs sections on a dask cluster, where the front stays."""

    def __init__(self, address: str) -> None:
        self.distributed = import_optional("distributed", **PURPOSE)
        self.client = self.distributed.Client(address)
        threads = sum(self.client.nthreads().values())
        self.section = max(SECTION, SECTION_A_THREAD * threads)

    def __enter__(self) -> _Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def __call__(
        self, section: _Section, front: dict[Index, Any], kept: Sequence[Index], done: Done
    ) -> dict[Index, Any]:
        """Compute a section; its front are futures, whose keys are not computed again."""
        keys = [*section.sums, *map(section.emit_key, kept)]
        futures = self.client.get(section.graph(kept, {}), keys, sync=False)
        sums = futures[: len(section.sums)]
        for future, values in self.distributed.as_completed(sums, with_results=True):
            done(future.key[1], values)
        return dict(zip(kept, futures[len(sums) :], strict=True))
