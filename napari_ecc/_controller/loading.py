"""Read data in a worker: piece by piece, from a coarser level, or block by block of dask.

Curves are computed on a CUDA device if it and CuPy are available, otherwise on the CPU.
"""

import math
import os
from collections.abc import Generator, Iterable, Iterator
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from dask.base import compute
from dask.callbacks import Callback
from numpy.typing import NDArray

from napari_ecc._controller.layers import is_lazy
from napari_ecc._workers import POLL, Step, Work

PIECE_POINTS = 2**22

WORKERS = max(1, (os.cpu_count() or 1) - 1)
"""Number of threads: one core is left for the user interface."""


def load(array: Any) -> Generator[Step, None, NDArray[Any]]:
    """Load an array; progress is reported between the pieces of a lazy one."""
    if not is_lazy(array):
        return np.asarray(array)
    result = np.empty(array.shape, dtype=array.dtype)
    rows = max(1, PIECE_POINTS // max(1, math.prod(array.shape[1:])))
    starts = range(0, len(result), rows)
    for done, start in enumerate(starts, 1):
        result[start : start + rows] = np.asarray(array[start : start + rows])
        if done < len(starts):
            yield Step(None, done, len(starts))
    return result


def as_completed(parts: Iterable[Any]) -> Generator[tuple[int, Any] | None, None, None]:
    """Compute delayed values with threads; shared blocks are read once.

    Yields the position of a part and its value, each once, in the order of completion, and None
    while there is nothing new, but not after the last part. Closing the generator stops the
    computation. What a part raised is raised again.
    """
    wanted = list(parts)
    positions = {part.key: position for position, part in enumerate(wanted)}
    results: SimpleQueue[tuple[int, Any]] = SimpleQueue()

    def on_result(key: Any, value: Any, *_: Any) -> None:
        if work.cancelled.is_set():
            raise RuntimeError("nobody waits for results any longer")
        if key in positions:
            results.put((positions[key], value))

    def job() -> Iterator[Step]:
        with Callback(posttask=on_result):
            (values,) = compute(wanted, scheduler="threads", num_workers=WORKERS)
        for found in enumerate(values):  # some may have had no task of their own
            results.put(found)
        yield Step(None)

    work = Work(job)
    work.start()
    missing = set(range(len(wanted)))
    try:
        while missing:
            try:
                place, value = results.get(timeout=POLL)
            except Empty:
                if work.error is not None:
                    raise work.error from None
                yield None
                continue
            if place in missing:
                missing.remove(place)
                yield place, value
    finally:
        work.cancelled.set()
        work.join()


@cache
def device_name() -> str:
    """Return the name of the CUDA device, or "" if there is none."""
    try:
        import cupy

        if cupy.cuda.runtime.getDeviceCount() == 0:
            return ""
        name: bytes = cupy.cuda.runtime.getDeviceProperties(0)["name"]
    except Exception:  # CuPy without a driver, or a driver without a device
        return ""
    return name.decode()


def to_device(array: NDArray[Any]) -> Any:
    """Return the array on the CUDA device, or unchanged if there is none."""
    if not device_name():
        return array
    import cupy

    return cupy.asarray(array)
