"""The tasks of a sum over blocks: one that processes each block, one for its share, and the sums.

Every block is read once, and only its planes are kept for its neighbours. All functions are
module-level and names come from tokens, so that equal calls give equal graphs.
"""

import gc
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ecc_core._arrays import Adapter, adapter_of
from ecc_core._blocks.boxes import BoxValues
from ecc_core._blocks.planes import Array, BlockSums, offsets_of, towards
from ecc_core._blocks.window import PURPOSE
from ecc_core._blocks.work import Work
from ecc_core._optional import import_optional
from ecc_core._partition import Index, Partition, Ranges

dask = import_optional("dask", **PURPOSE)
da = import_optional("dask.array", **PURPOSE)
graphs = import_optional("dask.highlevelgraph", **PURPOSE)

MOST_SHARES_A_SUM = 16  # The most shares that one task adds.

Graph = dict[tuple[Any, ...], Any]
Task = tuple[Any, ...]


def add_halves(
    tasks: Graph,
    name: tuple[Any, ...],
    blocks: Partition,
    of_block: Callable[[Index], Task],
    of_halves: Callable[[Task, Task, int], Task],
) -> Task:
    """Add tasks that make and join the pieces of blocks, and return the key of the last task.

    `of_block` takes the index of a block and returns the task of its piece. `of_halves` takes the
    keys of two boxes and the axis across which they touch, and returns the task of their joined
    piece. Keys begin with `name`.
    """

    def add(box: Ranges) -> Task:
        key = (*name, *itertools.chain(*box))
        cut = blocks.halves(box)
        if cut is None:
            tasks[key] = of_block(tuple(first for first, _ in box))
        else:
            axis, low, high = cut
            first = add(low)
            second = add(high)
            tasks[key] = of_halves(first, second, axis)
        return key

    return add(blocks.whole)


def without_empty_chunks(image: Any) -> Any:
    """Return an array without chunks of length zero, some of which dask cannot rechunk."""
    if image.size == 0 or all(all(lengths) for lengths in image.chunks):
        return image
    for axis, lengths in enumerate(image.chunks):
        filled = [i for i, length in enumerate(lengths) if length]
        image = image.blocks[(slice(None),) * axis + (filled,)]
    return image


@contextmanager
def _without_collection() -> Iterator[None]:
    """Suspend Python's garbage collection while tasks are made.

    There can be millions of tasks, without cycles, and to search them takes two thirds of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _row(share: Array) -> Array:
    return share[..., None, :]


def counts_like(image: Any, ndim: int) -> Any:
    """Return an empty int64 array of the library of an image's chunks."""
    return np.empty_like(image._meta, shape=(0,) * ndim, dtype=np.int64)


def _shares(work: Work, arrays: tuple[Any, ...]) -> tuple[Graph, dict[Index, list[Any]], list[Any]]:
    """Return the tasks of the shares of blocks, their keys by image, and their dependencies."""
    if any(work.partition.open):
        arrays = tuple(_with_end(array, work) for array in arrays)
    token = dask.base.tokenize(*arrays, work.computed, work.regions)
    shared = dask.delayed(work, traverse=False, name=f"ecc-work-{token}")
    processed = da.map_blocks(
        _process,
        *arrays,
        work=shared,
        dtype=object,
        meta=np.empty((0,) * arrays[0].ndim, object),
        name=f"ecc-block-{token}",
    )
    tasks = _share_tasks(work, processed.name, f"ecc-share-{token}", shared.key)
    keys = list(tasks)
    owners = work.partition.owners
    count = math.prod(owners[work.lead :])
    images = itertools.product(*map(range, owners[: work.lead]))
    shares = {one: keys[n * count : (n + 1) * count] for n, one in enumerate(images)}
    return tasks, shares, [processed, shared]


def _share_tasks(work: Work, processed: str, share: str, shared: Any) -> Graph:
    """Return the tasks of the shares of blocks in C order.

    There can be millions of blocks, so keys of a row of blocks are made once for all neighbours.
    """
    partition = work.partition
    *before, length = partition.counts
    rows = {
        at: [(processed, *at, i) for i in range(length)]
        for at in itertools.product(*map(range, before))
    }
    tasks: Graph = {}
    *before, length = partition.owners
    for at in itertools.product(*map(range, before)):
        steps = (steps[i] for steps, i in zip(partition.steps, at, strict=False))
        near_rows = [rows[other] for other in itertools.product(*steps)]
        for i in range(length):
            near = [key for row in near_rows for key in row[i : i + 2]]
            tasks[share, *at, i] = (_share, shared, (*at, i), near)
    return tasks


def _process(*arrays: Array, work: Work) -> BlockSums:
    with adapter_of(arrays[0]).current(arrays[0]):
        return work.sums_of(arrays)


def _share(work: Work, block: Index, processed: Sequence[BlockSums]) -> Array:
    """Return the share of a block on its device, to which planes of neighbours are copied."""
    home = processed[0].home
    adapter = adapter_of(home)
    with adapter.current(home):
        own, *later = processed
        _, *offsets = offsets_of(work.partition.place(block).after)
        needed = map(towards, offsets, later)
        return work.share(block, [own, *[_beside(other, home, adapter) for other in needed]])


def _beside(sums: BlockSums, home: Array, adapter: Adapter) -> BlockSums:
    """Return the sums of a block with its planes on the device of the array `home`."""

    def moved(planes: Sequence[Array]) -> tuple[Array, ...]:
        return tuple(adapter.beside(array, home) for array in planes)

    first = tuple(moved(planes) for planes in sums.first)
    last = tuple(moved(planes) for planes in sums.last)
    return sums._replace(first=first, last=last)


def _sum(work: Work, shares: Sequence[Array]) -> Array:
    """Return the sum of shares, on the device of the first of them."""
    home = shares[0]
    adapter = adapter_of(home)
    with adapter.current(home):
        return work.sum([adapter.beside(share, home) for share in shares])


def sums_of_blocks(
    computed: BoxValues,
    image: Any,
    *others: Any | None,
    regions: bool = False,
    each_block: bool = False,
) -> Any:
    """Return the values of an image, a dask array of shape (*batch, size).

    `others` are the second image of a surface or the labels of regions, then a mask or None. All
    have the same chunks, none of them empty, and their spatial axes come last.

    With `regions`, the result is a table of shape (unknown, 1 + size). With `each_block`, it is the
    share of each block, in C order, of shape (*batch, blocks, size).

    The sums are a chain, so that dask works through the blocks in their order. With a tree of sums
    it would keep the planes of many layers.
    """
    arrays = (image, *(array for array in others if array is not None))
    work = Work(None, image.chunks, computed, regions=regions)
    batch = image.shape[: work.lead]
    size = computed.size + 1 if regions else computed.size
    has_rows = regions or each_block  # An axis of labels, or of blocks.
    like = counts_like(image, work.lead + (2 if has_rows else 1))
    meta = np.empty(like.shape, np.int64) if computed.lands_on_host else like
    if image.size == 0 or 0 in work.partition.owners:
        shape = (*batch, 0, size) if has_rows else (*batch, size)
        return da.zeros_like(meta, shape=shape, dtype=np.int64, chunks=-1)
    with _without_collection():
        tasks, shares, inputs = _shares(work, arrays)
        name = f"ecc-{'block' if each_block else 'sum'}-{inputs[0].name}"
        for images, keys in shares.items():
            if each_block:
                tasks |= {(name, *images, row, 0): (_row, key) for row, key in enumerate(keys)}
            else:
                last = (name, *images, 0, 0) if regions else (name, *images, 0)
                tasks |= _chain(
                    inputs[1].key, keys, name=f"{name}-so-far", images=images, last=last
                )
    graph = graphs.HighLevelGraph.from_collections(name, tasks, dependencies=inputs)
    chunks = (*image.chunks[: work.lead], (size,))
    if each_block:
        count = math.prod(work.partition.owners[work.lead :])
        chunks = (*image.chunks[: work.lead], (1,) * count, (size,))
    elif regions:  # The number of regions is not known yet.
        chunks = (*image.chunks[: work.lead], (math.nan,), (size,))
    return da.Array(graph, name, chunks, meta=meta)


def _chain(
    work: Any, keys: Sequence[Any], name: str, images: Index, last: tuple[Any, ...]
) -> Graph:
    """Return tasks that add up shares one group after another. The last task has the key `last`."""
    tasks: Graph = {}
    so_far: list[Any] = []
    starts = range(0, len(keys), MOST_SHARES_A_SUM)
    groups = [keys[i : i + MOST_SHARES_A_SUM] for i in starts]
    for i, group in enumerate(groups[:-1]):
        tasks[name, *images, i] = (_sum, work, [*so_far, *group])
        so_far = [(name, *images, i)]
    tasks[last] = (_sum, work, [*so_far, *groups[-1]])
    return tasks


def _with_end(array: Any, work: Work) -> Any:
    """Return an array in the blocks of `work`, which may have one behind the last of the image.

    Along a periodic axis this block repeats the first point.
    """
    for axis, wraps in enumerate(work.computed.filtration.boundary.wraps, work.lead):
        if wraps:
            first = array[(slice(None),) * axis + (slice(0, 1),)]
            array = da.concatenate([array, first], axis=axis)
    return array.rechunk(work.partition.lengths)
