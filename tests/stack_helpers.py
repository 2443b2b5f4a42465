"""Images of nine levels and tables of `ecc stack`, and runs that tests kill in other processes."""

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.synchronize import Semaphore
from typing import Any

import numpy as np
import pytest

import ecc_core as ecc
from ecc_core._io.parts import Parts
from ecc_core.cli import main

LEVELS = "0,1,2,3,4,5,6,7,8"
LONG = 600
"""Seconds for which a process waits to be killed, much more than that takes."""


def run_until_killed(arguments: Sequence[str], most: int, kept: Semaphore) -> None:
    """Run the command until `most` parts are kept, and then wait to be killed.

    `kept` is released for each part on the disk. Each further thread may keep one more part.
    """
    keep = Parts.keep
    numbers: list[int] = []

    def keep_or_wait(self: Parts, number: int, stamp: str, values: np.ndarray) -> None:
        if len(numbers) >= most:
            time.sleep(LONG)
        keep(self, number, stamp, values)
        numbers.append(number)
        kept.release()

    Parts.keep = keep_or_wait
    main(arguments)


def kill_after(
    arguments: Sequence[str], wanted: int, most: int, preload: Sequence[str] = (), delay: float = 0
) -> None:
    """Kill a run `delay` seconds after it has kept `wanted` parts.

    Until then it goes on, but keeps no more than `most` parts.
    """
    context = multiprocessing.get_context("forkserver")  # Its children import nothing.
    context.set_forkserver_preload(
        ["stack_helpers", "ecc_core._backends.cpu.launch", "zarr", *preload]
    )
    kept = context.Semaphore(0)
    process = context.Process(target=run_until_killed, args=(arguments, most, kept))
    process.start()
    for _ in range(wanted):
        while not kept.acquire(timeout=1):
            assert process.is_alive(), "the run has ended"
    time.sleep(delay)
    assert process.is_alive()
    process.kill()
    process.join()


@contextmanager
def failing_after(most: int, error: BaseException) -> Iterator[None]:
    """Let `most` parts be kept, and raise the error for the next one."""
    keep = Parts.keep
    kept = []

    def fail(self: Parts, *part: Any) -> None:
        if len(kept) == most:
            raise error
        kept.append(part[0])
        keep(self, *part)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Parts, "keep", fail)
        yield


def noise(*shape: int, dtype: str = "uint8", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 9, shape).astype(dtype)


def assert_curve(table: dict[str, list[float]], image: np.ndarray, **options: Any) -> None:
    """Compare a table with the curve of an image in memory."""
    at, values = ecc.euler_curve(image, np.arange(9), **options)
    assert table["threshold"] == at.tolist()
    assert table["euler_number"] == values.tolist()
