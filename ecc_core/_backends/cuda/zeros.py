"""Counters of captured calls, which are zero before and after each replay without being cleared."""

from __future__ import annotations

import threading
from typing import Any

import cupy
import numpy as np

__all__ = ["lasting_zeros"]

STOCK = 1 << 17  # words on a device, for about a hundred calls with 256 thresholds
MOST = 1 << 15  # words of a call; clearing more costs little compared with reading its image
LINE = 16  # words of a cache line

_lock = threading.Lock()
_stocks: dict[int, tuple[Any, int]] = {}  # of each device: memory and the words taken


def lasting_zeros(words: int, device: int, capturing: bool) -> int:
    """Return the address of zeros that belong to a captured call, or 0 if there are none.

    Calls that are not captured get none, but the first of them allocates the stock, because a
    capture may forbid this. Graphs may be replayed at any time, so words never return to the stock.
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
