"""Images of nine levels and tables of `ecc stack`, and runs that tests kill in other processes."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import ecc_core as ecc
from ecc_core._io.parts import Parts
from ecc_core.cli import main

LEVELS = "0,1,2,3,4,5,6,7,8"
LONG = 600
"""Seconds, much longer than it takes to be killed."""


def run_until_killed(arguments: Sequence[str], most: int) -> None:
    """Run the command, but wait to be killed instead of keeping more parts than this."""
    keep, kept = Parts.keep, []

    def keep_or_wait(self: Parts, number: int, stamp: str, values: np.ndarray) -> None:
        if len(kept) == most:
            time.sleep(LONG)
        keep(self, number, stamp, values)
        kept.append(number)

    Parts.keep = keep_or_wait
    main(arguments)


@contextmanager
def failing_after(most: int, error: BaseException) -> Iterator[None]:
    """Let so many parts be kept, and the next one raise."""
    keep, kept = Parts.keep, []

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
