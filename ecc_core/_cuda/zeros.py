"""Counters that captured calls find at zero and leave so: no replay of a graph clears them."""

from __future__ import annotations

import threading
from typing import Any

import cupy
import numpy as np

__all__ = ["lasting_zeros"]

STOCK = 1 << 17  # words of a device, for about a hundred calls with 256 thresholds
MOST = 1 << 15  # words of a call: clearing more costs little beside its image
LINE = 16  # words of a cache line

_lock = threading.Lock()
_stocks: dict[int, list[tuple[Any, int]]] = {}  # of each device: memory and the words taken


def lasting_zeros(words: int, device: int) -> int:
    """Address of zeros on the current device for the captured call alone; 0 for other calls.

    A capture may forbid to allocate and to wait, so calls that are not captured lay in a stock. 0,
    too, if there is not enough.
    """
    if not 0 < words <= MOST:
        return 0
    capturing = cupy.cuda.get_current_stream().is_capturing()
    with _lock:
        stock = _stocks.setdefault(device, [])
        if not capturing:
            if not stock or stock[-1][1] + MOST > STOCK:
                stock.append((_cleared(STOCK), 0))
            return 0
        if not stock or stock[-1][1] + words > STOCK:
            return 0
        memory, taken = stock[-1]  # graphs may be replayed at any time: it is kept
        stock[-1] = memory, taken + -(-words // LINE) * LINE
    return int(memory.data.ptr) + 8 * taken


def _cleared(words: int) -> Any:
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        memory = cupy.zeros(words, np.int64)
    stream.synchronize()
    return memory
