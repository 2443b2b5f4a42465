"""The time of training steps on a CUDA device, by torch alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch


def milliseconds(step: Callable[[], Any], count: int) -> float:
    """Return the milliseconds of a step, among several that follow each other."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        step()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start) / count
