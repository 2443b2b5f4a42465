"""Counters that kernels leave at zero, so that no call has to clear them."""

from __future__ import annotations

import threading
from typing import Any

import cupy
import numpy as np

__all__ = ["pooled_zeros", "stream_zeros"]

POOL = 1 << 17  # words on a device, for about a hundred captured calls with 256 thresholds
MOST = 1 << 15  # words of a captured call; clearing more costs little beside reading its image
LINE = 16  # words of a cache line
SHARED = 1 << 13  # words of the default stream
DEFAULT_STREAM = 0  # its handle

_lock = threading.Lock()
_pools: dict[int, tuple[Any, int]] = {}  # of each device: memory and the words taken
_shared: dict[int, Any] = {}  # of the default stream of each device


def stream_zeros(words: int, device: int, stream: int) -> int:
    """Return the address of zeros for a call on a stream that is not capturing, or 0.

    Kernels on a stream run one after another and leave the words zero, so all calls on the default
    stream share them. Other streams come and go, and get none.
    """
    memory = _shared.get(device)
    if memory is None:
        memory = _add_device(device)
    shared = stream == DEFAULT_STREAM and 0 < words <= SHARED
    return int(memory.data.ptr) if shared else 0


def _add_device(device: int) -> Any:
    with _lock:
        if device not in _shared:
            _pools[device] = _cleared(POOL), 0  # now, since a capture may forbid it
            _shared[device] = _cleared(SHARED)
        return _shared[device]


def pooled_zeros(words: int, device: int) -> int:
    """Return the address of zeros that belong to a captured call, or 0 if there are none.

    Graphs may be replayed at any time, so words never return to the pool.
    """
    if not 0 < words <= MOST:
        return 0
    with _lock:
        memory, taken = _pools.get(device, (None, POOL))
        if taken + words > POOL:
            return 0
        _pools[device] = memory, taken + -(-words // LINE) * LINE
    return int(memory.data.ptr) + 8 * taken


def _cleared(words: int) -> Any:
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        memory = cupy.zeros(words, np.int64)
    stream.synchronize()
    return memory
