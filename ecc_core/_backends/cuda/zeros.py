"""Counters that are zero before and after each call, without being cleared."""

from __future__ import annotations

import threading
from typing import Any

import cupy
import numpy as np

__all__ = ["lasting_zeros", "stream_zeros"]

STOCK = 1 << 17  # words on a device, for about a hundred captured calls with 256 thresholds
MOST = 1 << 15  # words of a captured call; clearing more costs little beside reading its image
LINE = 16  # words of a cache line
STREAM_WORDS = 1 << 13  # of a stream
MOST_STREAMS = 64  # that have words
PER_THREAD = 2  # the handle of the default stream of each thread

_lock = threading.Lock()
_stocks: dict[int, tuple[Any, int]] = {}  # of each device: memory and the words taken
_of_streams: dict[tuple[int, int], Any] = {}  # by device and handle


def stream_zeros(words: int, device: int, stream: int) -> int:
    """Return the address of zeros for a call on the current stream, or 0 if there are none.

    Kernels on a stream run one after another and leave the words zero, so its calls share them. The
    stream must not be capturing.
    """
    memory = _of_streams.get((device, stream))
    if memory is None:
        memory = _add_stream(device, stream)
    return int(memory.data.ptr) if memory is not None and 0 < words <= STREAM_WORDS else 0


def _add_stream(device: int, stream: int) -> Any:
    with _lock:
        if device not in _stocks:  # here, since a capture may forbid it
            _stocks[device] = _cleared(STOCK), 0
        if stream == PER_THREAD or len(_of_streams) >= MOST_STREAMS:
            return None
        if (device, stream) not in _of_streams:
            _of_streams[device, stream] = _cleared(STREAM_WORDS)
        return _of_streams[device, stream]


def lasting_zeros(words: int, device: int) -> int:
    """Return the address of zeros that belong to a captured call, or 0 if there are none.

    Graphs may be replayed at any time, so words never return to the stock.
    """
    if not 0 < words <= MOST:
        return 0
    with _lock:
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
