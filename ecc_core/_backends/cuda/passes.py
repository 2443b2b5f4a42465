"""Launches that follow each other, whose words are set together, and found by names only once."""

import struct
from array import array
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

import cupy

from ecc_core._backends.cuda.calls import WORD, WORD_BYTES, Call

NONE = "0"
"""The word in place of an address that a launch is not given."""


class Named(NamedTuple):
    """A launch, and the names of words that change, by their places."""

    call: Call
    words: dict[int, str]


def named(call: Call, words: str) -> Named:
    """Name the first words of the first arguments of a launch; numbers stand for themselves.

    The words of an argument are separated by spaces, and arguments by commas.
    """
    found: dict[int, str] = {}
    for start, names in zip(call.places, words.split(","), strict=False):
        found.update(enumerate(names.split(), start))
    return Named(call, found)


class Pass:
    """Launches that follow each other, given the values of the names of their words.

    A training step takes longer in Python than on a device. Therefore one call of `struct` sets the
    words of all launches, constants included. Launches read the same words where their arguments
    are the same, such as a structure that all of them take.
    """

    __slots__ = ("_calls", "_format", "_pick", "_rest", "_spare", "_starts")

    def __init__(self, names: Sequence[str], launches: Sequence[Named]) -> None:
        known = {name: index for index, name in enumerate(names)}
        rest: list[int] = []  # Words that are constants.
        sources: list[int] = []  # The index of each word among all values.
        self._starts: list[list[int]] = []  # The words at which the arguments of each call begin.
        laid_out: dict[tuple[str, ...], int] = {}  # Where the words of an argument begin.
        for call, names_of_words in launches:
            starts = []
            ends = *call.places[1:], len(call.content)
            for first, end in zip(call.places, ends, strict=True):
                places = range(first, end)
                words = tuple(names_of_words.get(i, str(call.content[i])) for i in places)
                if words not in laid_out:
                    laid_out[words] = len(sources)
                    for word in words:
                        if word not in known:
                            known[word] = len(names) + len(rest)
                            rest.append(int(word))
                        sources.append(known[word])
                starts.append(laid_out[words])
            self._starts.append(starts)
        self._calls = [call for call, _ in launches]
        self._rest = tuple(rest)
        self._pick = itemgetter(*sources)
        self._format = struct.Struct(f"{len(sources)}{WORD}")
        self._spare: list[_Words] = []

    def launch(self, values: tuple[int, ...], stream: int) -> None:
        """Launch all on the stream of an address, with the values of the names in their order."""
        try:
            words = self._spare.pop()
        except IndexError:
            words = self._make_words()
        self._format.pack_into(words.memory, 0, *self._pick(values + self._rest))
        launch = cupy.cuda.driver.launchKernel
        for head, address in words.launches:
            try:
                launch(*head, stream, address, 0)
            except cupy.cuda.driver.CUDADriverError:
                # Freeing nothing makes the context of a thread that has not used the device.
                cupy.cuda.runtime.free(0)
                launch(*head, stream, address, 0)
        self._spare.append(words)

    def _make_words(self) -> "_Words":
        memory = array(WORD, bytes(self._format.size))
        first, _ = memory.buffer_info()
        pointers = []
        launches = []
        for call, starts in zip(self._calls, self._starts, strict=True):
            places = array(WORD, [first + WORD_BYTES * start for start in starts])
            pointers.append(places)
            launches.append((call.head, places.buffer_info()[0]))
        return _Words(memory, pointers, launches)


class _Words(NamedTuple):
    """Memory for the words of all launches, which no other thread is using."""

    memory: "array[int]"
    pointers: "list[array[int]]"
    """The addresses of the arguments of each launch."""
    launches: list[tuple[tuple[int, ...], int]]
    """For each launch, the driver's arguments before the stream, and the address of pointers."""
