"""Threads of the CPU backend: one small pool, shared by all calls."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import Any, TypeVar

from numpy.typing import NDArray

from ecc_core._request.resources import AtMost, available_cores

POINTS_A_WORKER = 1 << 20  # For fewer points, waking a thread takes longer than it saves.
BINS_AT_ONCE = 1 << 22  # The most bins of the histograms of all workers together.

Item = TypeVar("Item")
Result = TypeVar("Result")

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_size = 0


def add_up(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the sum of the arrays that threads have counted, in the memory of the first one."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


def thread_count(workers: int | None, enough: int) -> int:
    """Return the given number of threads; if none is given, as many as have enough work."""
    if workers is None or isinstance(workers, AtMost):
        if enough <= 1:
            return 1
        return min(workers or enough, available_cores(), enough)
    return workers


def worker_count(workers: int | None, points: int, bins: int) -> int:
    """Return the number of threads for so many points, each with a histogram of so many bins."""
    workers = thread_count(workers, points // POINTS_A_WORKER)
    return max(1, min(workers, BINS_AT_ONCE // bins))


def ranges(count: int, parts: int) -> list[tuple[int, int]]:
    """Divide 0 to `count` into parts of nearly equal length, none of which is empty."""
    edges = [count * i // parts for i in range(parts + 1)]
    return [(first, last) for first, last in pairwise(edges) if first < last]


def _forget() -> None:
    """Start without a pool in a forked child, which has none of its parent's threads."""
    global _pool, _lock
    _pool = None
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def share(
    items: Sequence[Item], work: Callable[[Iterator[Item]], Result], workers: int
) -> list[Result]:
    """Call `work` in up to `workers` threads, this one among them, on items they take in turns.

    The caller never waits for a free thread, so calls from several threads cannot block each
    other. The first error, or an interrupt, stops the others at their next item.
    """
    global _pool, _size
    helpers = min(workers, len(items)) - 1
    if helpers < 1:
        return [work(iter(items))]
    left = deque(items)

    def queue() -> Iterator[Item]:
        with suppress(IndexError):
            while True:
                yield left.popleft()

    with _lock:
        if _pool is None or _size < helpers:  # The pool grows when more threads are asked for.
            if _pool is not None:
                _pool.shutdown(wait=False)  # Tasks that were submitted are still run.
            _size = helpers
            _pool = ThreadPoolExecutor(_size, thread_name_prefix="ecc")
        futures = [_pool.submit(work, queue()) for _ in range(helpers)]
    try:
        results = [work(queue())]
        started = [future for future in futures if not future.cancel()]
        return results + [future.result() for future in started]
    except BaseException:
        left.clear()
        for future in futures:
            if not future.cancel():
                future.exception()
        raise
