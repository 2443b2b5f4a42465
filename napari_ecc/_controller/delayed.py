"""Results of the blocks of a dask array in the order of completion."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from dask.base import compute
from dask.callbacks import Callback

__all__ = ["as_completed"]

WAIT = 0.1
"""Seconds to wait for a result before the caller can check whether it is cancelled."""


WORKERS = max(1, (os.cpu_count() or 1) - 1)
"""Number of threads: one core is left for the user interface."""


class _StoppedError(Exception):
    pass


def as_completed(parts: Iterable[Any]) -> Iterator[tuple[int, Any] | None]:
    """Compute delayed values with threads; shared blocks are read once.

    Parameters
    ----------
    parts : iterable of dask.delayed.Delayed

    Yields
    ------
    (int, object) or None
        The position of a part and its value, each once, in the order of completion; None while
        there is nothing new. Closing the generator stops the computation.

    Raises
    ------
    Exception
        What a part raised.
    """
    wanted = list(parts)
    results: queue.SimpleQueue[Any] = queue.SimpleQueue()
    positions = {part.key: position for position, part in enumerate(wanted)}
    stopped = threading.Event()

    def on_result(key: Any, value: Any, *_: Any) -> None:
        if stopped.is_set():
            raise _StoppedError
        if key in positions:
            results.put((positions[key], value))

    def work() -> None:
        try:
            with Callback(posttask=on_result):
                compute(wanted, scheduler="threads", num_workers=WORKERS)
        except _StoppedError:
            pass
        except Exception as error:
            results.put(error)

    thread = threading.Thread(target=work, name="ecc-blocks", daemon=True)
    thread.start()
    try:
        missing = len(positions)
        while missing:
            try:
                result = results.get(timeout=WAIT)
            except queue.Empty:
                yield None
                continue
            if isinstance(result, Exception):
                raise result
            missing -= 1
            yield result
    finally:
        stopped.set()
        thread.join()
