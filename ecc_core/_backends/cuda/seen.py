"""Small device arrays whose values are known on the host unless the device finds them changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda.arrays import on_host
from ecc_core._backends.cuda.calls import Call
from ecc_core._backends.cuda.compile import function
from ecc_core._backends.cuda.replies import take_reply

__all__ = ["read_early"]

THREADS = 256
WORD = 4  # bytes
SMALL = 1 << 15  # bytes
MOST = 64  # arrays

_seen: dict[Any, tuple[NDArray[Any], Any]] = {}  # their numbers on the host and on the device


def read_early(array: Any) -> tuple[NDArray[Any], Callable[[], bool] | None]:
    """Return what an array holds as far as is known, and a function that tells whether it does.

    Without a function it certainly does. The function waits for the device, and must be called
    once. Reading the array again after it has returned False is certain.
    """
    device, address = array.device.id, array.data.ptr
    if device != cupy.cuda.runtime.getDevice():
        return on_host(array), None
    key = address, array.shape, array.strides, array.dtype, device
    known = _seen.get(key)
    if known is None:
        size = array.nbytes
        if not (0 < size <= SMALL and size % WORD == 0 and array.flags.c_contiguous):
            return on_host(array), None
        copy = array.copy()
        host = on_host(copy)
        host.flags.writeable = False
        if len(_seen) >= MOST:
            _seen.clear()
        _seen[key] = host, copy
        return host, None
    host, copy = known
    stream, reply, call = cupy.cuda.get_current_stream(), take_reply(device), _call(device)
    first, second, answer, words = call.places
    addresses = (first, address), (second, copy.data.ptr), (answer, reply.address)
    call.launch(stream.ptr, (*addresses, (words, host.nbytes // WORD)))

    def is_same() -> bool:
        (same,) = reply.wait(1, stream)
        reply.release()
        if not same:
            _seen.pop(key, None)
        return bool(same)

    return host, is_same


@cache
def _call(device: int) -> Call:
    found = function("same", "same", device, (("THREADS", THREADS),))
    return Call(found.kernel, (1,), THREADS, 0, [np.zeros(1, np.int64)] * 4)
