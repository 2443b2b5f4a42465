"""Threads of the CPU backend: one small pool, shared by all calls."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

from ecc_core._request.resources import AtMost, available_cores

POINTS_A_WORKER = 1 << 20  # fewer do not pay for waking a thread
BINS_AT_ONCE = 1 << 22  # histograms of all workers together

Item = TypeVar("Item")
Result = TypeVar("Result")

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_size = 0


def thread_count(workers: int | None, enough: int) -> int:
    """The given number of threads; if none is given, as many as have enough work."""
    if workers is None or isinstance(workers, AtMost):
        if enough <= 1:
            return 1
        return min(workers or enough, available_cores(), enough)
    return workers


def worker_count(workers: int | None, points: int, bins: int) -> int:
    """Threads for an image of so many points, each with a histogram of so many bins."""
    workers = thread_count(workers, points // POINTS_A_WORKER)
    return max(1, min(workers, BINS_AT_ONCE // bins))


def ranges(count: int, parts: int) -> list[tuple[int, int]]:
    """Divide 0 to `count` into parts of nearly equal length, none of which is empty."""
    edges = [count * i // parts for i in range(parts + 1)]
    return [(first, last) for first, last in pairwise(edges) if first < last]


def _submit(
    work: Callable[[Iterator[Item]], Result], queue: Iterator[Item], helpers: int
) -> list[Future[Result]]:
    """Call `work` in so many threads of the pool, which grows when more are asked for."""
    global _pool, _size
    with _lock:
        if _pool is None or _size < helpers:
            if _pool is not None:
                _pool.shutdown(wait=False)  # what is submitted is done all the same
            _size = helpers
            _pool = ThreadPoolExecutor(_size, thread_name_prefix="ecc")
        return [_pool.submit(work, queue) for _ in range(helpers)]


def _forget() -> None:
    """A forked child has none of its parent's threads."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class _Queue(Iterator[Item]):
    """Hand out each item once, to whichever thread asks first."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = iter(items)
        self._lock = threading.Lock()

    def __next__(self) -> Item:
        with self._lock:
            return next(self._items)

    def stop(self) -> None:
        with self._lock:
            self._items = iter(())


def share(
    items: Sequence[Item], work: Callable[[Iterator[Item]], Result], workers: int
) -> list[Result]:
    """Call `work` in up to `workers` threads, this one among them, on items they take in turns.

    The caller never waits for a free thread, so calls from several threads cannot block each
    other. The first error, or an interrupt, stops the others at their next item.
    """
    helpers = min(workers, len(items)) - 1
    if helpers < 1:
        return [work(iter(items))]
    queue = _Queue(items)
    futures = _submit(work, queue, helpers)
    try:
        results = [work(queue)]
        started = [future for future in futures if not future.cancel()]
        return results + [future.result() for future in started]
    except BaseException:
        queue.stop()
        for future in futures:
            if not future.cancel():
                future.exception()
        raise
