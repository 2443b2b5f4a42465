"""Launches of kernels, the small results that they write to the host, and counters at zero."""

import ctypes
import sys
import threading
from array import array
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import cupy
import numpy as np

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda.arrays import on_host
from ecc_core._backends.cuda.kernels import function

WORD = "q"
"""The format of a signed word of 64 bits."""
WORD_BYTES = 8


class Call:
    """A launch of a kernel whose arguments are the same every time, except for some words.

    CuPy unpacks arguments at every launch, which takes longer than the launch itself. Here they are
    laid out once, in a block of words. A launch takes a block that no other launch is using, fills
    it as it was at first, sets the words that change, and passes it to the driver, which copies it.

    `shared` is dynamic shared memory of a block in bytes. Arguments are numbers and structures of
    NumPy, which are passed by value, or arrays of CuPy and integers, which are passed as addresses.
    `places` are the indices of the first word of each argument.
    """

    __slots__ = ("_arguments", "_content", "_function", "_shape", "_spare", "places")

    def __init__(
        self,
        function: Any,
        grid: Sequence[int],
        threads: int,
        shared: int,
        arguments: Sequence[Any],
    ) -> None:
        self._function = function.kernel
        self._arguments = arguments  # Their memory must live as long as the launch.
        self._shape = (*map(int, grid), *[1] * (3 - len(grid)), threads, 1, 1, shared)
        self.places = []
        parts = []
        place = 0
        for argument in arguments:
            part = _bytes_of(argument)
            part += bytes(-len(part) % WORD_BYTES)
            parts.append(part)
            self.places.append(place)
            place += len(part) // WORD_BYTES
        self._content = array(WORD, b"".join(parts))
        self._spare: list[_Block] = []

    @property
    def content(self) -> "array[int]":
        """The words of all arguments."""
        return self._content

    @property
    def head(self) -> tuple[int, ...]:
        """What the driver takes of a launch before its stream."""
        return self._function.ptr, *self._shape

    def filled(self, words: Iterable[tuple[int, int]]) -> "Call":
        """Return a launch in which some words (place, value) are set, of memory that lives on."""
        found = copy(self)
        found._content = array(WORD, self._content)
        for place, value in words:
            found._content[place] = value
        found._spare = []
        return found

    def launch(
        self,
        words: Iterable[tuple[int, int]] = (),
        stream: int | None = None,
        blocks: int | None = None,
    ) -> None:
        """Launch with some words (place, value) set, on the stream of an address or the current.

        `blocks` replaces the number of blocks, if it is not always the same.
        """
        if stream is None:
            stream = cupy.cuda.get_current_stream().ptr
        shape = self._shape if blocks is None else (blocks, *self._shape[1:])
        try:
            block = self._spare.pop()
        except IndexError:
            block = _block_of(self._content, self.places)
        own = block.words
        own[:] = self._content
        for place, value in words:
            own[place] = value
        self._launch(block, shape, stream)

    def launch_with(self, words: Iterable[Iterable[int]], stream: int) -> None:
        """Launch with the first words of the first arguments, on the stream of an address."""
        try:
            block = self._spare.pop()
        except IndexError:
            block = _block_of(self._content, self.places)
        own = block.words
        own[:] = self._content
        for place, given in zip(self.places, words, strict=False):
            for value in given:
                own[place] = value
                place += 1
        self._launch(block, self._shape, stream)

    def _launch(self, block: "_Block", shape: tuple[int, ...], stream: int) -> None:
        arguments = self._function.ptr, *shape, stream, block.address, 0
        try:
            cupy.cuda.driver.launchKernel(*arguments)
        except cupy.cuda.driver.CUDADriverError:
            # Freeing nothing makes the context of a thread that has not used the device.
            cupy.cuda.runtime.free(0)
            cupy.cuda.driver.launchKernel(*arguments)
        self._spare.append(block)


class _Block(NamedTuple):
    """The words of a launch."""

    words: "array[int]"
    """An `array`, since words of ctypes and NumPy take four times as long to set."""
    pointers: "array[int]"
    """The address of each argument."""
    address: int
    """The address of the pointers."""


def _block_of(content: "array[int]", places: Iterable[int]) -> _Block:
    """Return a block that holds the content, in which arguments begin at these places."""
    words = array(WORD, content)
    first, _ = words.buffer_info()
    pointers = array(WORD, [first + WORD_BYTES * place for place in places])
    return _Block(words, pointers, pointers.buffer_info()[0])


def _bytes_of(argument: Any) -> bytes:
    """Return what a kernel gets of an argument."""
    if isinstance(argument, cupy.ndarray):
        argument = int(argument.data.ptr)
    if isinstance(argument, int):
        return argument.to_bytes(WORD_BYTES, sys.byteorder, signed=True)
    content: bytes = argument.tobytes()
    return content


def plan_call(
    source: str,
    name: str,
    macros: Mapping[str, Any],
    grid: Sequence[int],
    threads: int,
    arguments: Sequence[Any],
    shared: int = 0,
) -> Call:
    """Return the launch of a kernel on the current device; THREADS is a macro as well."""
    device = cupy.cuda.runtime.getDevice()
    found = function(source, name, device, {**macros, "THREADS": threads})
    return Call(function=found, grid=grid, threads=threads, shared=shared, arguments=arguments)


WORDS = 32  # Words of a reply: the most images of a batch that have one each.
ABSENT = -(1 << 63)
"""A word that no kernel writes."""
# A thread looks for a reply so often, in about a fifth of a millisecond, before it sleeps until
# the stream is done.
LOOKS = 4000


class Reply:
    """Words of pinned host memory that a kernel writes, and words of its device for the kernel.

    A call takes one for itself, so calls on other streams and threads do not interfere.

    Attributes
    ----------
    address : int
        The address of the words, which is the same on the host and on the device.
    memory : array
        Words of the device. All are 0 between calls, except the last, which accumulates `state`.
    flags : int
        The number of words that a kernel writes as flags (:func:`is_set`).
    """

    def __init__(self, device: int) -> None:
        self._device = device
        self._host = cupy.cuda.alloc_pinned_memory(8 * WORDS)
        self.address = int(self._host.ptr)
        self._words = (ctypes.c_int64 * WORDS).from_address(self.address)
        self.memory = _cleared(WORDS)
        self.state = 0  # Modulo 2**64, as a signed integer.
        self.flags = 1
        self._words[:] = [ABSENT] * WORDS

    def wait(self, count: int, stream: int | None = None) -> list[int]:
        """Return the first words once a kernel has written all of them.

        The kernel is on the stream of an address, or on the current stream of CuPy, which is not
        that of torch.
        """
        words = self._words
        for _ in range(LOOKS):
            if words[count - 1] != ABSENT and ABSENT not in words[:count]:
                break
        else:
            if stream is None:
                stream = cupy.cuda.get_current_stream().ptr
            cupy.cuda.runtime.streamSynchronize(stream)
        found = words[:count]
        if ABSENT in found:
            raise RuntimeError("a CUDA kernel ended without its result")
        words[:count] = [ABSENT] * count  # The next kernel finds them so.
        return found

    def release(self) -> None:
        """Make the reply available to the next call."""
        _free[self._device].append(self)


def wrapped(number: int) -> int:
    """Return a number modulo 2**64 as a signed integer, which is what words are."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def is_set(flag: Any) -> bool:
    """Return whether a flag is set: of a Reply, an array on the device, or None. Waits for both."""
    if not isinstance(flag, Reply):
        return flag is not None and bool(on_host(flag).any())
    found = flag.wait(flag.flags)
    flag.release()
    return any(found)


_free: dict[int, list[Reply]] = {}
_all: list[Reply] = []  # Replies of interrupted calls stay: a kernel may still write there.


def take_reply(device: int, flags: int = 1) -> Reply:
    """Return a reply for a kernel on the current device, number `device`."""
    try:
        reply = _free.setdefault(device, []).pop()
    except IndexError:
        reply = Reply(device)
        _all.append(reply)
    reply.flags = flags
    return reply


POOL_WORDS = 1 << 17  # Enough for about a hundred captured calls with 256 thresholds.
# A captured call clears more words itself, which costs little beside reading its image.
MOST_CAPTURED_WORDS = 1 << 15
WORDS_A_LINE = 16  # Words of a cache line.
# Enough for the counts of 4,096 labels at 256 thresholds.
DEFAULT_STREAM_WORDS = 1 << 20
DEFAULT_STREAM = 0
"""The handle of the default stream."""

_lock = threading.Lock()
_pools: dict[int, tuple[Any, int]] = {}
"""The memory of captured calls on each device, and how many of its words are taken."""
_shared: dict[int, Any] = {}
"""The memory of calls on the default stream of each device."""


def stream_zeros(words: int, device: int, stream: int) -> int:
    """Return the address of zeros for a call on a stream that is not capturing, or 0.

    Kernels on a stream run one after another and leave the words zero, so all calls on the default
    stream share them. Other streams come and go, and get none.
    """
    if device not in _shared:
        with _lock:
            if device not in _shared:
                # A capture may forbid to allocate memory later.
                _pools[device] = _cleared(POOL_WORDS), 0
                _shared[device] = _cleared(DEFAULT_STREAM_WORDS)
    shared = stream == DEFAULT_STREAM and 0 < words <= DEFAULT_STREAM_WORDS
    return int(_shared[device].data.ptr) if shared else 0


def pooled_zeros(words: int, device: int) -> int:
    """Return the address of zeros that belong to a captured call, or 0 if there are none.

    Graphs may be replayed at any time, so words never return to the pool.
    """
    if not 0 < words <= MOST_CAPTURED_WORDS:
        return 0
    with _lock:
        memory, taken = _pools.get(device, (None, POOL_WORDS))
        if taken + words > POOL_WORDS:
            return 0
        _pools[device] = memory, taken + ceil_div(words, WORDS_A_LINE) * WORDS_A_LINE
    return int(memory.data.ptr) + 8 * taken


def lasting_zeros(words: int, device: int, stream: Any) -> int:
    """Return the address of zeros for a call on a stream, or 0 if the call must clear its own."""
    if stream.is_capturing():
        return pooled_zeros(words, device)
    return stream_zeros(words, device, stream.ptr)


def _cleared(words: int) -> Any:
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        memory = cupy.zeros(words, np.int64)
    stream.synchronize()
    return memory
