"""The spread of labels over an image, in words that have a bit for each of 64 points.

What has been reached in a word goes on to each row of neighbours at once. A word waits in a queue
until it is its turn, so that more of its points have been reached by then.

Word ``lead + i`` has the bits of the places from ``64 * i`` on in a padded image: neighbours of
points near its ends are looked for in words beyond these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import (
    I64,
    LANES,
    NONE,
    ONE,
    bare,
    count_trailing_zeros,
    operation,
)

Array = NDArray[Any]
Words = NDArray[np.uint64]

WORD = np.uint64(6)  # bits of a place that tell its bit in a word
BIT = np.uint64(LANES - 1)


class Spreading(NamedTuple):
    """Words of bits, and the words from which labels have yet to spread."""

    free: Any
    """Points that have no label and may get one."""
    halo: Any
    """Points in the halo of a periodic image, which stand for others; of size 0 in others."""
    ending: Any
    """Points where components that do not last die."""
    pending: Any
    """Points from which labels have yet to spread."""
    queue: Any
    """Numbers of words with such points, in a circle; a power of two of them."""


def words_of(flags: Array, lead: int) -> Words:
    """Return the bits of flags, with `lead` words before and behind them."""
    bits = np.packbits(flags.reshape(-1), bitorder="little")
    words = np.zeros(2 * lead + ceil_div(flags.size, LANES), np.uint64)
    words.view(np.uint8)[8 * lead :][: bits.size] = bits
    return words


def spreading_of(free: Array, halo: Array | None, lead: int) -> Spreading:
    """Return the words of an image that labels have not reached yet."""
    words = words_of(free, lead)
    return Spreading(
        words,
        np.empty(0, np.uint64) if halo is None else words_of(halo, lead),
        np.zeros_like(words),
        np.zeros_like(words),
        np.empty(1 << int(words.size).bit_length(), np.int64),
    )


def later_words(keys: Array, steps: Array, bits: Array, neighbours: int) -> Words:
    """Return the points whose neighbours enter after them, (words, neighbours).

    `steps` are the distances to the neighbours that count, and `bits` the columns that they have.
    """
    room = int(steps.max()) + LANES
    padded = np.pad(keys.reshape(-1), room)
    later = np.zeros((ceil_div(keys.size, LANES), neighbours), np.uint64)
    compare_words(padded, room, steps, bits, later)
    return later


def _comparison(sign: str) -> Any:
    """Return the operation that compares 64 points with neighbours at one distance."""

    @operation(types.uint64)
    def compare(builder, keys, at, step):
        """Tell for which points the key of the neighbour is greater, or greater or equal."""
        own = keys.load(at, LANES)
        beside = keys.load(builder.add(at, step), LANES)
        return builder.bitcast(builder.icmp_unsigned(sign, beside, own), I64)

    return compare


is_greater = _comparison(">")
is_not_less = _comparison(">=")


@kernel()
def compare_words(keys, first, steps, bits, later):
    """Write which points have neighbours that enter after them; those with equal keys by place."""
    keys = bare(keys)
    later = bare(later)
    for word in range(later.shape[0]):
        at = first + LANES * word
        for k in range(steps.size):
            step = steps[k]
            behind = is_not_less(keys, at, step) if step > 0 else is_greater(keys, at, step)
            later[word, np.uint64(bits[k])] = behind


@subroutine(forceinline=True)
def reach(word, bits, home, base, spreading, tail):
    """Take points of a word that are free, and let the word wait; return the end of the queue."""
    new = bits & spreading.free[word]
    if not new:
        return tail
    spreading.free[word] &= ~new
    if home is not None:
        away = new & spreading.halo[word]
        new &= ~away
        while away:
            place = (word << WORD) + np.uint64(count_trailing_zeros(away)) - base
            away &= away - ONE
            tail = reach_inside(np.uint64(home[place]) + base, spreading, tail)
    return reach_new(word, new, spreading, tail)


@subroutine(forceinline=True)
def reach_inside(place, spreading, tail):
    """Take a point that is in no halo if it is free; return the end of the queue."""
    word = place >> WORD
    new = ONE << (place & BIT) & spreading.free[word]
    spreading.free[word] &= ~new
    return reach_new(word, new, spreading, tail)


@subroutine(forceinline=True)
def reach_new(word, new, spreading, tail):
    """Let a word wait for the sake of some points that were free."""
    if new and not spreading.pending[word]:
        spreading.queue[tail & np.uint64(spreading.queue.size - 1)] = word
        tail += ONE
    spreading.pending[word] |= new
    return tail


@subroutine()
def bits_from(words, start):
    """Return the 64 bits from a bit of some words on."""
    first = start >> WORD
    shift = start & BIT
    return words[first] >> shift | words[first + ONE] << ONE << (BIT - shift)


@subroutine()
def fill_row(own, left, right, allowed):
    """Return points of a word, and those to which steps along their row lead."""
    while True:
        more = ((own & right) << ONE | (own & left) >> ONE) & allowed & ~own
        if not more:
            return own
        own |= more


@subroutine(forceinline=True)
def note_deaths(deaths, base, labels, following, ending):
    """Write at each point of death which components die there: the last one, and the next ones."""
    for k in range(deaths.size):
        place = np.uint64(deaths[k])
        following[k] = labels[place]
        labels[place] = -1 - k
        ending[(place + base) >> WORD] |= ONE << (place & BIT)


@subroutine(forceinline=True)
def reach_births(ended, at, base, births, labels, following, spreading, tail):
    """Take the minima of the components that die at points of a word; return the end of the queue.

    `at` is the number of the word without those before the image.
    """
    while ended:
        place = (at << WORD) + np.uint64(count_trailing_zeros(ended))
        ended &= ended - ONE
        held = np.int64(labels[place])
        while held < 0:
            minimum = np.uint64(births[-1 - held])
            tail = reach_inside(minimum + base, spreading, tail)
            held = np.int64(following[-1 - held])
    return tail


@subroutine(forceinline=True)
def reach_row(word, own, later, r, rows, home, base, spreading, tail):
    """Take what points of a word lead to in a row of neighbours; return the end of the queue.

    `later` are the points of the word whose neighbours enter after them.
    """
    column = np.uint64(3 * r)
    before = own & later[column]
    beside = own & later[column + ONE]
    behind = own & later[column + np.uint64(2)]
    # The steps of a row lead to 66 bits, which begin at any bit of a word.
    low = before | beside << ONE | behind << np.uint64(2)
    high = beside >> BIT | behind >> (BIT - ONE)
    start = (word << WORD) + np.uint64(rows[r])
    low &= bits_from(spreading.free, start)
    if not (low | high):  # as in most rows of noise
        return tail
    first = start >> WORD
    shift = start & BIT
    tail = reach(first, low << shift, home, base, spreading, tail)
    over = low >> ONE >> (BIT - shift) | high << shift
    if over:
        tail = reach(first + ONE, over, home, base, spreading, tail)
    if high:
        last = high >> ONE >> (BIT - shift)
        tail = reach(first + np.uint64(2), last, home, base, spreading, tail)
    return tail


@kernel()
def spread(later, rows, home, lead, seeds, births, deaths, labels, following, spreading):
    """Label the points from which steps lead to seeds, by the number of the first of these.

    `births` and `deaths` are those of the components that do not last. Before a point of death gets
    a label it holds ``-1 - k`` for the last of them, and `following` the same for the next ones.
    """
    later = bare(later)
    rows = bare(rows)
    births = bare(births)
    deaths = bare(deaths)
    labels = bare(labels)
    following = bare(following)
    spreading = Spreading(
        bare(spreading.free),
        bare(spreading.halo),
        bare(spreading.ending),
        bare(spreading.pending),
        bare(spreading.queue),
    )
    base = np.uint64(lead) << WORD
    note_deaths(deaths, base, labels, following, spreading.ending)
    middle = np.uint64(3 * (rows.size // 2))
    around = np.uint64(spreading.queue.size - 1)
    head = NONE
    tail = NONE
    for number in range(seeds.size):
        tail = reach_inside(np.uint64(seeds[number]) + base, spreading, tail)
        while head != tail:
            word = np.uint64(spreading.queue[head & around])
            head += ONE
            at = word - np.uint64(lead)
            own = spreading.pending[word]
            spreading.pending[word] = NONE
            allowed = spreading.free[word]
            if home is not None:
                allowed &= ~spreading.halo[word]
            own = fill_row(own, later[at, middle], later[at, middle + np.uint64(2)], allowed)
            spreading.free[word] &= ~own
            ended = own & spreading.ending[word]
            tail = reach_births(ended, at, base, births, labels, following, spreading, tail)
            left = own
            while left:
                labels[(at << WORD) + np.uint64(count_trailing_zeros(left))] = number + 1
                left &= left - ONE
            for r in range(rows.size):
                tail = reach_row(word, own, later[at], r, rows, home, base, spreading, tail)
