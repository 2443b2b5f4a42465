"""Kernels are compiled or loaded from the cache in a thread of their own, in order of need."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

import ecc_core as ecc
from napari_ecc._workers import PREPARING, Step

Kernel = tuple[str, str, int]
"""What is computed, one of `TASKS`, the dtype, and the number of axes."""

SIDE = 64
"""Of images for which kernels are made: smaller ones have some of their own."""

WAIT = 0.05
"""Seconds until a job that waits for its kernels can be cancelled."""

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

    def _work(self) -> None:
        while self._more.acquire():
            task, dtype, ndim = kernel = self._wanted.popleft()
            with suppress(Exception):  # for example a dtype without kernels: the job says why
                TASKS[task](np.ones((SIDE,) * ndim, dtype))
            self._ready[kernel].set()


_compiler = _Compiler()


def warm(*kernels: Kernel) -> threading.Event:
    """Have kernels made in the background; the event is set when the last of them is."""
    return [_compiler.ask(kernel, now=False) for kernel in kernels][-1]


def prepared(task: str, image: Any) -> Iterator[Step]:
    """Wait for the kernels of a task for images like this one."""
    ready = _compiler.ask((task, str(image.dtype), image.ndim), now=True)
    while not ready.wait(WAIT):
        yield PREPARING
