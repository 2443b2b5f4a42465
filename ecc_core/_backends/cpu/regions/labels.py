"""Numbers for the labels of an image: from 1 on, in the order in which a thread meets them.

So one pass over an image is enough, whatever its labels. Only numbers that were assigned here
become indices. So a label that another thread writes meanwhile does no harm: it gets a number like
any other, or is background if it is out of range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.encoders.kernels import image_row, key_row
from ecc_core._backends.cpu.llvm import (
    ALL,
    LANES,
    ONE,
    count_bits,
    count_trailing_zeros,
    equal,
    fill_vector,
)
from ecc_core._backends.cpu.sources import Block, Source

Array = NDArray[Any]

LEAST_SLOTS = 1 << 10
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# If the label changes at most so often among 64 points, runs are filled by vectors, which is slower
# than to write single points if there are many runs.
FEW_CHANGES = 12


@subroutine()
def _slot(label, keys, numbers, shift):
    """Return the slot of a label, or the empty slot where it belongs."""
    last = np.uint64(keys.size - 1)
    slot = (label * GOLDEN) >> shift
    while numbers[slot] != 0 and keys[slot] != label:
        slot = (slot + ONE) & last
    return slot


@kernel()
def _insert(ids, keys, numbers, shift):
    """Fill the slots of a larger table."""
    for i in range(ids.size):
        slot = _slot(ids[i], keys, numbers, shift)
        keys[slot] = ids[i]
        numbers[slot] = i + 1


@kernel()
def _number(box, token, out, place, limit, table, count):
    """Stage the numbers of a box of labels, and add new labels to the hash table and to its list.

    Labels above `limit` are background. Returns how many labels are known, and whether there was
    room for all.
    """
    keys, numbers, shift, ids = table
    slices, rows, columns = box[2]
    before = np.uint64(0)
    number = np.uint32(0)
    for z in range(slices):
        for y in range(rows):
            row = image_row(box, token, z, y)
            target = key_row(out, place, z, y, columns)
            above = key_row(out, place, z, max(y - 1, 0), columns)
            x = 0
            stop = 0
            while stop < columns:
                x = stop
                stop = stop + 1
                changes = ONE
                fill = False
                if x > 0 and columns > LANES:  # The last 64 points overlap those before.
                    x, stop = min(x, columns - LANES), min(x + LANES, columns)
                    changes = ~equal(row, x, x - 1)
                    before = np.uint64(row[x - 1])
                    number = np.uint32(target[x - 1])
                    fill_vector(target, x, number)
                    fill = count_bits(changes) <= FEW_CHANGES
                    changes = changes if fill else ALL
                while changes:
                    here = np.uint64(x + count_trailing_zeros(changes))
                    changes &= changes - ONE
                    label = np.uint64(row[here])
                    if label != before:
                        before = label
                        number = np.uint32(above[here] if y > 0 else 0)
                        if label == 0 or label > limit:
                            number = np.uint32(0)
                        elif number == 0 or ids[np.uint64(number) - ONE] != label:
                            slot = _slot(label, keys, numbers, shift)
                            if numbers[slot] == 0:
                                if count == ids.size:
                                    return count, False
                                ids[count] = label
                                count += 1
                                keys[slot] = label
                                numbers[slot] = count
                            number = numbers[slot]
                    if fill and here + LANES <= columns:  # What lies behind the run is overwritten.
                        fill_vector(target, here, number)
                    elif fill:
                        for i in range(here, np.uint64(stop)):
                            target[i] = number
                    else:
                        target[here] = number
    return count, True


class Numbering:
    """The numbers that one thread gives to labels, `count` so far.

    They are staged in the narrowest possible `dtype`, because narrow numbers compare faster.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._limit = np.uint64(np.iinfo(dtype).max)
        self._ids = np.empty(0, np.uint64)
        self.count = 0
        self.dtype: np.dtype[Any] = np.dtype(np.uint16)
        self._make_room()

    @property
    def ids(self) -> NDArray[np.uint64]:
        """The labels with the numbers 1, 2, ..."""
        return self._ids[: self.count]

    def _make_room(self) -> None:
        """Enlarge the hash table, which is never more than half full."""
        slots = max(8 * self._ids.size, LEAST_SLOTS)
        known = self.ids
        self._ids = np.empty(slots // 2, np.uint64)
        self._ids[: self.count] = known
        self._keys = np.zeros(slots, np.uint64)
        self._numbers = np.zeros(slots, np.uint32)
        self._shift = np.uint64(65 - slots.bit_length())
        _insert(known, self._keys, self._numbers, self._shift)

    def stage(
        self,
        source: Source,
        box: Block,
        make: Callable[[np.dtype[Any]], Array],
        start: int,
        strides: tuple[int, int],
    ) -> tuple[Array, Array]:
        """Return the numbers of a box, in an array of a dtype that `make` returns, and its labels.

        The first number goes to the place `start`, and `strides` are those of slices and rows.
        """
        out = make(self.dtype)
        while True:
            most = np.iinfo(out.dtype).max
            read, labels = source.box(box)
            table = self._keys, self._numbers, self._shift, self._ids[:most]
            self.count, complete = _number(
                box=read,
                token=source.token,
                out=out,
                place=(start, strides),
                limit=self._limit,
                table=table,
                count=self.count,
            )
            if complete:
                return out, labels
            if self.count == most:
                self.dtype = np.dtype(np.uint32)
                out = make(self.dtype)
            else:
                self._make_room()


def merge_ids(
    numberings: Sequence[Numbering],
) -> tuple[NDArray[np.uint64], list[NDArray[np.int64]]]:
    """Return all labels, increasing, and for each numbering the numbers of these labels less 1.

    It is -1 for labels that the numbering lacks.
    """
    every = np.concatenate([numbering.ids for numbering in numberings])
    ids, places = np.unique(every, return_inverse=True)
    found = []
    start = 0
    for numbering in numberings:
        own = np.full(ids.size, -1)
        own[places[start : start + numbering.count]] = np.arange(numbering.count)
        found.append(own)
        start += numbering.count
    return ids, found
