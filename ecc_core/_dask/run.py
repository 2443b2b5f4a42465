"""Compute groups of blocks one after another, and hand each over as soon as it is there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._dask.blocks import add
from ecc_core._dask.graph import PURPOSE, dask, graphs
from ecc_core._optional import import_optional

__all__ = ["compute_groups"]

Values = NDArray[np.int64]
Key = tuple[Any, ...]


def compute_groups(
    shares: Any,
    size: int,
    groups: Sequence[int],
    finished: Callable[[int, Values], None],
    *,
    workers: int | None,
    scheduler: str | None,
) -> None:
    """Sum shares over groups of `size` consecutive blocks, (*batch, n) each.

    `finished` is called with the number and the sum of each group, in their order. `scheduler` is
    the address of a dask cluster; by default it is `workers` threads.
    """
    name = "ecc-group-" + dask.base.tokenize(shares.name, size)
    images = list(itertools.product(*map(range, shares.numblocks[:-2])))
    tasks: dict[Key, Any] = {}
    for number in groups:
        rows = range(number * size, min((number + 1) * size, shares.shape[-2]))
        for at in images:
            tasks[name, *at, number] = (add, [(shares.name, *at, row, 0) for row in rows])
    numbers: dict[Key, Any] = {}
    before: list[Key] = []
    for number in groups:
        pieces = [(name, *at, number) for at in images]
        numbers[f"{name}-all", number] = (_in_turn, pieces, before)
        before = [(f"{name}-all", number)]
    graph = graphs.HighLevelGraph.from_collections(name, tasks | numbers, dependencies=[shares])
    keys = list(numbers)
    lead = shares.numblocks[:-2]

    def done(key: Key, pieces: Any) -> None:
        finished(key[1], _joined(pieces, lead)[..., 0, :])

    if scheduler is not None:
        _run_on_cluster(shares, graph, keys, scheduler, done)
    else:
        _run_in_threads(shares, graph, keys, workers, done)


def _in_turn(pieces: list[Values], _: list[Any]) -> list[Values]:
    """The pieces of a group, once the group before it is done: see `sum_of_blocks`."""
    return pieces


def _joined(pieces: list[Values], lead: tuple[int, ...]) -> Values:
    """One array of the pieces of all batch blocks."""
    blocks = np.empty(lead, object)
    for at, piece in zip(np.ndindex(lead), pieces, strict=True):
        blocks[at] = piece
    for axis in reversed(range(len(lead))):
        merged = np.empty(lead[:axis], object)
        for at in np.ndindex(lead[:axis]):
            merged[at] = np.concatenate(list(blocks[at]), axis=axis)
        blocks = merged
    joined: Values = blocks[()]
    return joined


def _run_in_threads(
    shares: Any, graph: Any, keys: list[Key], workers: int | None, done: Callable[[Key, Any], None]
) -> None:
    callbacks = import_optional("dask.callbacks", **PURPOSE)
    threaded = import_optional("dask.threaded", **PURPOSE)
    wanted = set(keys)

    def posttask(key: Key, value: Any, *_: Any) -> None:
        if key in wanted:
            done(key, value)

    optimized = shares.__dask_optimize__(graph, keys)
    with callbacks.Callback(posttask=posttask):
        threaded.get(optimized, keys, num_workers=workers)


def _run_on_cluster(
    shares: Any, graph: Any, keys: list[Key], scheduler: str, done: Callable[[Key, Any], None]
) -> None:
    distributed = import_optional("distributed", **PURPOSE)
    with distributed.Client(scheduler) as client:
        optimized = shares.__dask_optimize__(graph, keys)
        futures = client.get(optimized, keys, sync=False)
        for future, value in distributed.as_completed(futures, with_results=True):
            done(future.key, value)
