"""Counters that are zero before and after each replay of a captured call, without clearing."""

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
_stocks: dict[int, tuple[Any, int]] = {}  # of each device: memory and the words taken


def lasting_zeros(words: int, device: int, capturing: bool) -> int:
    """Return the address of zeros that belong to a captured call; 0 for other calls.

    A capture may forbid to allocate and to wait, so a call that is not captured lays in the stock.
    0, too, where it does not suffice: graphs may be replayed at any time, so nothing comes back.
    """
    if not 0 < words <= MOST or (device in _stocks and not capturing):
        return 0
    with _lock:
        if not capturing:
            if device not in _stocks:
                _stocks[device] = _cleared(STOCK), 0
            return 0
        memory, taken = _stocks.get(device, (None, STOCK))
        if taken + words > STOCK:
            return 0
        _stocks[device] = memory, taken + -(-words // LINE) * LINE
    return int(memory.data.ptr) + 8 * taken


def _cleared(words: int) -> Any:
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        memory = cupy.zeros(words, np.int64)
    stream.synchronize()
    return memory
