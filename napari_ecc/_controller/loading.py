"""What jobs wait for: data, read piece by piece or block by block of dask, and compiled kernels.

Curves are computed on a CUDA device if it and CuPy are available, otherwise on the CPU.
"""

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ecc_core as ecc
from napari_ecc._controller.layers import is_lazy
from napari_ecc._workers import POLL, PREPARING, Step, Work

PIECE_POINTS = 2**22
WORKERS = max(1, (os.cpu_count() or 1) - 1)
"""Number of threads: one core is left for the user interface."""
Kernel = tuple[str, str, int]
"""What is computed, one of `TASKS`, the dtype, and the number of axes."""
SIDE = 64
"""Side of images for which kernels are made; smaller images have some kernels of their own."""
SETS: Any = {"superlevel": True, "nan": "omit"}
TASKS: dict[str, Callable[[Any], Any]] = {
    "curve": lambda image: ecc.euler_curve(image, np.arange(2.0), **SETS),
    "counts": lambda image: ecc.betti_curves(image, np.arange(2.0), **SETS),
    "pairs": lambda image: ecc.persistence_pairs(image, **SETS),
    "components": lambda image: ecc.persistent_regions(image, 1, **SETS),
    "objects": lambda image: ecc.region_curves(image, image.astype(np.int32), 2, superlevel=True),
    "shapes": lambda labels: ecc.region_transforms(labels, 1, 2, normalize="radius"),
    "sweep": lambda image: ecc.euler_transform(image > 0, 1, 2),
}


OF_ALL_IMAGES = ("curve", "counts")
"""Tasks of the dock Threshold."""
OF_IMAGES = ("pairs", "components", *OF_ALL_IMAGES)
"""The same of images whose births are found, first what cannot be found without kernels."""


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

    Callbacks of the whole program are not called. napari's cache is one, which puts values into
    the graph where dask takes tuples for tasks, and keeps what nobody asks for again.
    """
    from dask.base import compute

    wanted = list(parts)
    positions = {part.key: position for position, part in enumerate(wanted)}
    results: SimpleQueue[tuple[int, Any]] = SimpleQueue()

    def on_result(key: Any, value: Any, *_: Any) -> None:
        if work.cancelled.is_set():
            raise RuntimeError("nobody waits for results any longer")
        if key in positions:
            results.put((positions[key], value))

    after_each_task = (None, None, None, on_result, None)

    def job() -> Iterator[Step]:
        (values,) = compute(
            wanted, scheduler="threads", num_workers=WORKERS, callbacks=(after_each_task,)
        )
        for found in enumerate(values):  # Some values may have had no task of their own.
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
        found: str = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        return found
    except Exception:  # There may be no driver, or no device.
        return ""


def to_device(array: NDArray[Any]) -> Any:
    """Return the array on the CUDA device, or unchanged if there is none."""
    if not device_name():
        return array
    import cupy

    return cupy.asarray(array)


class _Compiler:
    """A daemon thread, so that it does not keep the process alive: a kernel takes up to 3 s."""

    def __init__(self) -> None:
        self._ready: dict[Kernel, threading.Event] = {}
        self._wanted: deque[Kernel] = deque()
        self._more = threading.Semaphore(0)
        threading.Thread(target=self._work, name="napari-ecc-warm", daemon=True).start()

    def ask(self, kernel: Kernel, *, now: bool) -> threading.Event:
        """Have a kernel made, before all others if it is needed `now`."""
        ready = self._ready.setdefault(kernel, threading.Event())
        if not ready.is_set():
            (self._wanted.appendleft if now else self._wanted.append)(kernel)
            self._more.release()
        return ready

    def knows(self, kernel: Kernel) -> bool:
        """Return whether a kernel has been made."""
        ready = self._ready.get(kernel)
        return ready is not None and ready.is_set()

    def _work(self) -> None:
        while self._more.acquire():
            task, dtype, ndim = kernel = self._wanted.popleft()
            with suppress(Exception):  # If a dtype has no kernels, the job will say so.
                TASKS[task](np.ones((SIDE,) * ndim, dtype))
            self._ready[kernel].set()


_compiler = _Compiler()


def warm(*kernels: Kernel) -> threading.Event:
    """Have kernels made in the background; the event is set when the last of them is."""
    return [_compiler.ask(kernel, now=False) for kernel in kernels][-1]


def kernel_of(task: str, image: Any) -> Kernel:
    """Return what is computed of images like this one."""
    return task, str(image.dtype), image.ndim


def is_prepared(task: str, image: Any) -> bool:
    """Return whether the kernels of a task for images like this one have been made."""
    return _compiler.knows(kernel_of(task, image))


def prepared(task: str, image: Any) -> Iterator[Step]:
    """Wait for the kernels of a task for images like this one."""
    ready = _compiler.ask(kernel_of(task, image), now=True)
    while not ready.wait(POLL):
        yield PREPARING
