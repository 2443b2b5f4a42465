"""Arguments of kernels, and launches whose arguments are prepared once."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import cupy
import numpy as np

__all__ = ["Call", "launch"]


def launch(
    function: Any,
    grid: Sequence[int],
    threads: int,
    arguments: Iterable[Any],
    shared: int = 0,
) -> None:
    """Launch a kernel once, on the current stream.

    Arguments are numbers and structures of NumPy, which are passed by value, or arrays of CuPy and
    integers, which are passed as addresses.
    """
    given = tuple(map(_by_value, arguments))
    function(tuple(grid), (threads,), given, shared_mem=shared)


def _by_value(argument: Any) -> Any:
    """Return a structure as one element, which CuPy passes by value."""
    if type(argument) is np.ndarray:
        return argument.view(f"V{argument.nbytes}")
    return argument


class Call:
    """A launch of a kernel whose arguments are the same every time, except for some words.

    CuPy unpacks arguments at every launch, which takes longer than the launch itself. Here they are
    laid out once; a launch copies them, sets the words that change, and passes the copy to the
    driver.

    Parameters
    ----------
    function : cupy.cuda.Function
    grid : tuple of int
    threads : (x, y) or int
    shared : int
        Dynamic shared memory of a block in bytes.
    arguments : sequence of NumPy's arrays and numbers
        Arguments of the kernel, which are passed by value.

    Attributes
    ----------
    places : list of int
        Index of the first word of each argument.
    """

    __slots__ = ("_count", "_function", "_shape", "_template", "_words", "places")

    def __init__(
        self,
        function: Any,
        grid: Sequence[int],
        threads: Sequence[int] | int,
        shared: int,
        arguments: Sequence[Any],
    ) -> None:
        self._function = function
        block = (threads,) if isinstance(threads, int) else threads
        self._shape = (*_three(grid), *_three(block), shared)
        self._count = len(arguments)
        self.places, content = [], b""
        for argument in arguments:
            self.places.append(self._count + len(content) // 8)
            content += argument.tobytes()
            content += bytes(-len(content) % 8)
        # The arguments come after their offsets, to which a launch adds the address.
        offsets = [8 * place for place in self.places]
        self._template = struct.pack(f"{self._count}q", *offsets) + content
        self._words = ctypes.c_int64 * (len(self._template) // 8)

    def launch(self, stream: int, words: Iterable[tuple[int, int]]) -> None:
        """Launch on the stream of this address, with some words (place, value) set."""
        block = self._words.from_buffer_copy(self._template)
        start = ctypes.addressof(block)
        for i in range(self._count):
            block[i] += start
        for place, value in words:
            block[place] = value
        arguments = self._function.ptr, *self._shape, stream, ctypes.addressof(block), 0
        try:
            cupy.cuda.driver.launchKernel(*arguments)
        except cupy.cuda.driver.CUDADriverError:
            cupy.cuda.runtime.free(0)  # a thread that has not used the device has no context
            cupy.cuda.driver.launchKernel(*arguments)


def _three(sizes: Sequence[int]) -> tuple[int, ...]:
    return (*map(int, sizes), *(1,) * (3 - len(sizes)))
