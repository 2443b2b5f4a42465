"""Kernel: the reduction of the columns of tunnels, whose paths are followed when they are needed.

Columns are sorted lists of words, one for each row: its position in the opposite order of entry,
and in the lower half its number. So the first word is that of the pivot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ecc_core._backends.cpu.betti.paths import MOST_FAR, list_far, longer, path_ends, row_number
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import ONE, bare

NONE = -1
FEW = 32  # words that are sorted as they are listed
ROOM = 1 << 10  # elements of a list at first
POSITION_BITS = np.uint64(32)
NUMBER = np.uint64((1 << 32) - 1)


class Rows(NamedTuple):
    """Rows by their numbers."""

    starts: Any
    """The number of the first row of each group of edges, uint32."""
    positions: Any
    """Their positions in the opposite order of entry, uint32."""
    owners: Any
    """The column that each row is the pivot of, or `NONE`, int32."""
    spans: Any
    """Where the words of these columns are listed: (first, end)."""


class Columns(NamedTuple):
    """Columns in the order in which they enter."""

    places: Any
    """Places of their points in the volume."""
    cycles: Any
    """The squares of their cycles, as sets of bits."""


@subroutine()
def add_column(column, size, listed, first, end, spare):
    """Write the sum of two columns with the same pivot to the spare one; return its size."""
    column = bare(column)
    listed = bare(listed)
    spare = bare(spare)
    i = np.uint64(1)
    k = np.uint64(first + 1)
    last = np.uint64(end)
    count = np.uint64(0)
    size = np.uint64(size)
    while i < size and k < last:
        word = column[i]
        other = listed[k]
        if word == other:
            i = i + ONE
            k = k + ONE
            continue
        if word < other:
            spare[count] = word
            i += ONE
        else:
            spare[count] = other
            k += ONE
        count += ONE
    while i < size:
        spare[count] = column[i]
        count = count + ONE
        i = i + ONE
    while k < last:
        spare[count] = listed[k]
        count = count + ONE
        k = k + ONE
    return np.int64(count)


@subroutine()
def write_words(edges, count, gradient, rows, column):
    """Write the words of the rows with these edges, sorted."""
    for k in range(count):
        number = row_number(edges[k], gradient, rows.starts)
        word = np.uint64(rows.positions[number]) << POSITION_BITS | np.uint64(number)
        i = k
        while count <= FEW and i > 0 and column[i - 1] > word:
            column[i] = column[i - 1]
            i -= 1
        column[i] = word
    if count > FEW:
        column[:count].sort()


@kernel()
def reduce_columns(volume, tables, rows, columns, chosen, within, given, listed, size, states):
    """Reduce columns over Z/2 by adding earlier ones, until no other column has the same pivot.

    Columns may be chosen in any order. They own rows whose numbers lie within a range; those that
    come to another row are returned. A column that enters before the owner of its pivot takes its
    place, and the other one is reduced further.

    The words of reduced columns are `listed`, `size` of them so far. If the columns are `given`,
    these are the spans of their words there; otherwise their paths are followed, for which `tables`
    are :func:`far_offsets` and :func:`path_offsets`. Returns the list, its size, and the columns
    that are left as (column, first, end).
    """
    gradient = bare(volume.gradient)
    states = bare(states)
    home = volume.home
    far = bare(tables[0])
    paths = (bare(tables[1]), home, gradient.size // 3)
    rows = Rows(bare(rows.starts), bare(rows.positions), bare(rows.owners), bare(rows.spans))
    owners = rows.owners
    spans = rows.spans
    far_edges = np.empty(MOST_FAR, np.int64)
    stack = np.empty(ROOM, np.int64)
    edges = np.empty(ROOM, np.int64)
    column = np.empty(ROOM, np.uint64)
    spare = np.empty(ROOM, np.uint64)
    late = np.empty((chosen.size, 3), np.int64)
    left = 0
    for chosen_index in range(chosen.size):
        j = np.int64(chosen[chosen_index])
        if given.size:
            first, end = given[chosen_index]
            count = end - first
            column = longer(column, count)
            for k in range(count):
                column[k] = listed[first + k]
        else:
            cycle = np.int64(columns.cycles[j])
            count = list_far(4 * columns.places[j], cycle, gradient, far, paths, far_edges)
            stack, edges, count = path_ends(
                bare(far_edges[:count]), gradient, paths, states, stack, edges
            )
            column = longer(column, count)
            write_words(edges, count, gradient, rows, column)
        while count:
            pivot = np.int64(column[0] & NUMBER)
            own = within[0] <= pivot < within[1]
            other = np.int64(owners[pivot]) if own else np.int64(NONE)
            first = spans[pivot, 0]
            end = spans[pivot, 1]
            if other == NONE or other > j:
                listed = longer(listed, size + count)
                for k in range(count):
                    listed[size + k] = column[k]
                if own:
                    owners[pivot] = j
                    spans[pivot, 0] = size
                    spans[pivot, 1] = size + count
                else:
                    late[left, 0] = j
                    late[left, 1] = size
                    late[left, 2] = size + count
                    left += 1
                size += count
                if other == NONE:
                    break
                j = other
            spare = longer(spare, count + end - first)
            count = add_column(column, count, listed, first, end, spare)
            column, spare = spare, column
    return listed, size, late[:left]
