"""Small results that kernels write to host memory, where the host looks for them."""

from __future__ import annotations

import ctypes
from typing import Any

import cupy
import numpy as np

__all__ = ["Reply", "take_reply"]

WORDS = 8
ABSENT = -(1 << 63)  # what no kernel writes
LOOKS = 4000  # about a fifth of a millisecond, before the thread sleeps until the stream is done


class Reply:
    """Words of pinned host memory that a kernel writes, and words of its device for the kernel.

    A call takes one for itself, so calls on other streams and threads do not interfere.

    Attributes
    ----------
    address : int
        Address of the words in host memory, which is the same on the device.
    memory : cupy.ndarray
        (WORDS,) int64 on the device, zero at first and when a reply is there, but for the last one.
    state : int
        The last word of `memory`, modulo 2**64.
    """

    def __init__(self, device: int) -> None:
        self._device = device
        self._host = cupy.cuda.alloc_pinned_memory(8 * WORDS)
        self.address = int(self._host.ptr)
        self._words = (ctypes.c_int64 * WORDS).from_address(self.address)
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            self.memory = cupy.zeros(WORDS, np.int64)
        stream.synchronize()
        self.state = 0
        self.clear(WORDS)

    def clear(self, count: int) -> None:
        """Prepare the first words for the next kernel."""
        for i in range(count):
            self._words[i] = ABSENT

    def wait(self, count: int, stream: Any) -> list[int]:
        """Return the first words once a kernel on the stream has written all of them."""
        words = self._words
        for _ in range(LOOKS):
            if words[count - 1] != ABSENT and ABSENT not in words[:count]:
                break
        else:
            stream.synchronize()
        found = words[:count]
        if ABSENT in found:
            raise RuntimeError("a CUDA kernel ended without its result")
        self.clear(count)
        return found

    def release(self) -> None:
        """Make the reply available to the next call."""
        _free[self._device].append(self)


_free: dict[int, list[Reply]] = {}
_all: list[Reply] = []  # those of interrupted calls, too: a kernel may still write there


def take_reply(device: int) -> Reply:
    """Return a reply for a kernel on the current device, number `device`."""
    try:
        return _free.setdefault(device, []).pop()
    except IndexError:
        reply = Reply(device)
        _all.append(reply)
        return reply
