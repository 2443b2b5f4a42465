"""The spread of labels over an image, in words that have a bit for each of 64 points.

Labels spread from all points of a word that they have reached to each row of neighbours at once. A
word waits in a queue, so that more of its points have been reached when its turn comes.

Word ``lead + i`` has the bits of the places from ``64 * i`` on in a padded image: further words
before and behind hold the neighbours of points near the ends of the image.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import (
    ALL,
    I64,
    LANES,
    NONE,
    ONE,
    bare,
    count_trailing_zeros,
    each,
    operation,
)

Array = NDArray[Any]
Words = NDArray[np.uint64]

# The bit of a place is ``place & BIT_MASK`` of the word ``place >> WORD_SHIFT``.
WORD_SHIFT = np.uint64(6)
BIT_MASK = np.uint64(LANES - 1)


class Spreading(NamedTuple):
    """Words of bits, and the words from which labels have yet to spread."""

    free: Any
    """Points that have no label and may get one."""
    ending: Any
    """Points where components that do not last die."""
    pending: Any
    """Points from which labels have yet to spread."""
    queue: Any
    """Numbers of words with such points, in a circle; a power of two of them."""


class Cut(NamedTuple):
    """Where the regions of labels end. A mark is twice a label, and 1 more beyond the end."""

    keys: Any
    """The keys of all places, and at the end those of one more word."""
    levels: Any
    """The last keys of regions, by label, of the dtype of keys; none if regions do not end."""
    beyond: Any
    """Points of each word that the label at hand has reached beyond the end of its region."""
    words: Any
    """Numbers of the words with such points."""
    count: Any
    """The number of these words, (1,)."""


def cut_of(keys: Array, levels: Array, lead: int) -> Cut:
    """Return where regions end, before any label has reached the end of its region."""
    words = 2 * lead + ceil_div(keys.size, LANES)
    return Cut(
        np.pad(keys.reshape(-1), (0, LANES)),
        np.minimum(levels, np.iinfo(keys.dtype).max).astype(keys.dtype),
        np.zeros(words, np.uint64),
        np.empty(words, np.int64),
        np.zeros(1, np.int64),
    )


def words_of(flags: Array, lead: int) -> Words:
    """Return the bits of flags, with `lead` words before and behind them."""
    bits = np.packbits(flags.reshape(-1), bitorder="little")
    words = np.zeros(2 * lead + ceil_div(flags.size, LANES), np.uint64)
    words.view(np.uint8)[8 * lead :][: bits.size] = bits
    return words


def spreading_of(free: Array, lead: int) -> Spreading:
    """Return the words of an image that labels have not reached yet."""
    words = words_of(free, lead)
    room = 1 << int(words.size).bit_length()
    return Spreading(
        words,
        np.zeros_like(words),
        np.zeros_like(words),
        np.empty(room, np.int64),
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


@operation(types.uint64)
def are_beyond(builder, keys, at, level):
    """Tell which of 64 keys are greater than a level of the same dtype."""
    level = builder.trunc(level, keys.element) if keys.element != I64 else level
    return builder.bitcast(
        builder.icmp_unsigned(">", keys.load(at, LANES), each(builder, level, LANES)), I64
    )


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
def leave_beyond(word, bits, base, cut, level):
    """Put the points of a word that enter after a level aside; return the others."""
    beyond = bits & are_beyond(cut.keys, (word << WORD_SHIFT) - base, level)
    if beyond:
        if not cut.beyond[word]:
            cut.words[cut.count[0]] = word
            cut.count[0] += 1
        cut.beyond[word] |= beyond
    return bits & ~beyond


@subroutine()
def bare_cut(cut):
    """Return where regions end, in arrays without an owner."""
    if cut is None:
        return None
    return Cut(
        bare(cut.keys),
        bare(cut.levels),
        bare(cut.beyond),
        bare(cut.words),
        bare(cut.count),
    )


@subroutine(forceinline=True)
def leave_free(bits, at, cut, level):
    """Return the points of a word that do not enter after a level."""
    if cut is not None and level != ALL:
        return bits & ~are_beyond(cut.keys, at << WORD_SHIFT, level)
    return bits


@subroutine(forceinline=True)
def reach(word, bits, base, spreading, cut, level, tail):
    """Take points of a word that are free, and let the word wait; return the end of the queue.

    With a `cut`, points beyond the level are put aside, if there is a level.
    """
    new = bits & spreading.free[word]
    if not new:
        return tail
    spreading.free[word] &= ~new
    if cut is not None and level != ALL:
        new = leave_beyond(word, new, base, cut, level)
    return reach_new(word, new, spreading, tail)


@subroutine(forceinline=True)
def reach_inside(place, spreading, tail):
    """Take a point that is in no halo if it is free; return the end of the queue."""
    word = place >> WORD_SHIFT
    new = ONE << (place & BIT_MASK) & spreading.free[word]
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


@subroutine(forceinline=True)
def reach_beyond(cut, spreading, tail):
    """Let the words wait whose points were put aside; return the end of the queue."""
    if cut is None:
        return tail
    for k in range(cut.count[0]):
        word = np.uint64(cut.words[k])
        tail = reach_new(word, cut.beyond[word], spreading, tail)
        cut.beyond[word] = NONE
    cut.count[0] = 0
    return tail


@subroutine()
def bits_from(words, start):
    """Return the 64 bits from a bit of some words on."""
    first = start >> WORD_SHIFT
    shift = start & BIT_MASK
    return words[first] >> shift | words[first + ONE] << ONE << (BIT_MASK - shift)


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
        ending[(place + base) >> WORD_SHIFT] |= ONE << (place & BIT_MASK)


@subroutine(forceinline=True)
def reach_births(ended, at, base, births, labels, following, spreading, tail):
    """Take the minima of the components that die at points of a word; return the end of the queue.

    `at` is the number of the word without those before the image.
    """
    while ended:
        place = (at << WORD_SHIFT) + np.uint64(count_trailing_zeros(ended))
        ended &= ended - ONE
        held = np.int64(labels[place])
        while held < 0:
            minimum = np.uint64(births[-1 - held])
            tail = reach_inside(minimum + base, spreading, tail)
            held = np.int64(following[-1 - held])
    return tail


@subroutine(forceinline=True)
def reach_row(word, own, later, r, rows, base, spreading, cut, level, tail):
    """Take what points of a word lead to in a row of neighbours; return the end of the queue.

    `later` are the points of the word whose neighbours enter after them.
    """
    column = np.uint64(3 * r)
    before = own & later[column]
    beside = own & later[column + ONE]
    behind = own & later[column + np.uint64(2)]
    # The steps of a row lead to 66 bits, which begin at any bit of a word.
    low = before | beside << ONE | behind << np.uint64(2)
    high = beside >> BIT_MASK | behind >> (BIT_MASK - ONE)
    start = (word << WORD_SHIFT) + np.uint64(rows[r])
    low &= bits_from(spreading.free, start)
    if not (low | high):  # This is so in most rows of noise.
        return tail
    first = start >> WORD_SHIFT
    shift = start & BIT_MASK
    tail = reach(first, low << shift, base, spreading, cut, level, tail)
    over = low >> ONE >> (BIT_MASK - shift) | high << shift
    if over:
        tail = reach(first + ONE, over, base, spreading, cut, level, tail)
    if high:
        last = high >> ONE >> (BIT_MASK - shift)
        tail = reach(first + np.uint64(2), last, base, spreading, cut, level, tail)
    return tail


@subroutine()
def level_of(mark, cut):
    """Return the key after which points with a mark are put aside; the largest one if none are."""
    if cut is not None and cut.levels.size and mark & 1 == 0:
        return np.uint64(cut.levels[np.uint64(mark >> 1)])
    return ALL


@subroutine(forceinline=True)
def label_word(at, own, labels, mark):
    """Label some points of a word."""
    while own:
        labels[(at << WORD_SHIFT) + np.uint64(count_trailing_zeros(own))] = mark
        own &= own - ONE


@kernel()
def spread(later, rows, lead, seeds, births, deaths, labels, following, spreading, cut):
    """Label the points from which steps lead to seeds, by the least label of these.

    `seeds` are places and their labels, which do not become less; `births` and `deaths` those of
    the components that do not last. Before a point of death gets a label it holds ``-1 - k`` for
    the last of them, and `following` the same for the next ones. With a `cut` labels are marks.
    """
    later = bare(later)
    rows = bare(rows)
    places = bare(seeds[0])
    given = bare(seeds[1])
    births = bare(births)
    deaths = bare(deaths)
    labels = bare(labels)
    following = bare(following)
    spreading = Spreading(
        bare(spreading.free),
        bare(spreading.ending),
        bare(spreading.pending),
        bare(spreading.queue),
    )
    cut = bare_cut(cut)
    base = np.uint64(lead) << WORD_SHIFT
    note_deaths(deaths, base, labels, following, spreading.ending)
    middle = np.uint64(3 * (rows.size // 2))
    around = np.uint64(spreading.queue.size - 1)
    head = NONE
    tail = NONE
    number = 0
    while number < places.size:
        mark = given[number]
        while number < places.size and given[number] == mark:
            tail = reach_inside(np.uint64(places[number]) + base, spreading, tail)
            number += 1
        level = level_of(mark, cut)
        while True:
            if head == tail:
                tail = reach_beyond(cut, spreading, tail)
                if head == tail:
                    break
                mark += np.int32(1)
                level = ALL
            word = np.uint64(spreading.queue[head & around])
            head += ONE
            at = word - np.uint64(lead)
            own = spreading.pending[word]
            spreading.pending[word] = NONE
            allowed = spreading.free[word]
            allowed = leave_free(allowed, at, cut, level)
            own = fill_row(own, later[at, middle], later[at, middle + np.uint64(2)], allowed)
            spreading.free[word] &= ~own
            ended = own & spreading.ending[word]
            tail = reach_births(ended, at, base, births, labels, following, spreading, tail)
            label_word(at, own, labels, mark)
            for r in range(rows.size):
                tail = reach_row(word, own, later[at], r, rows, base, spreading, cut, level, tail)
