"""Kernel: the reduction of the columns of tunnels, whose paths are followed only when needed.

The column that is being reduced is a sorted list of words, one for each row: its position in the
opposite order of entry, and in the lower half its number. So the first word is that of the pivot.
Of columns that are reduced only the numbers are kept, behind how many there are.

Columns are short, since a path leads past all rows that are paired at once: on average they have
2.5 to 4.3 rows for 64^3 voxels of noise and smooth ones, and 16 for two values at random. To add a
sorted list of a few words takes a few comparisons, and the first word needs no search.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ecc_core._backends.cpu.betti.paths import (
    LEAST_LIMIT,
    MOST_BOUNDARY,
    MOST_STEPS,
    TOO_FEW,
    list_boundary,
    longer,
    path_ends,
    row_number,
    short_path_ends,
)
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import ALL, ONE, bare

NONE = -1
MOST_INSERTED = 32  # Columns of up to so many words are sorted by insertion.
ROOM = 1 << 10
"""Elements of a list at first."""
ROOM_OF_COLUMN = 6
"""Numbers that are listed for a column of noise."""
POSITION_BITS = np.uint64(32)
NUMBER = np.uint64((1 << 32) - 1)


class Rows(NamedTuple):
    """Rows by their numbers."""

    starts: Any
    """The number of the first row of each group of edges, uint32."""
    positions: Any
    """The positions of rows in the opposite order of entry, uint32."""
    owners: Any
    """The column whose pivot each row is, or `NONE`, int32."""
    firsts: Any
    """The place at which this column is listed, int64."""


class Columns(NamedTuple):
    """Columns in the order in which they enter, or some of them."""

    places: Any
    """Places of their points in the volume."""
    cycles: Any
    """The squares of their cycles, as sets of bits; or any squares of their stars."""


@subroutine()
def word_of(number, positions):
    """Return the word of a row."""
    return np.uint64(positions[np.uint64(number)]) << POSITION_BITS | np.uint64(number)


@subroutine()
def add_column(column, size, listed, first, positions, other, spare):
    """Write the sum of two columns with the same pivot to the spare one; return its size.

    The other column is listed from `first` on; its words behind the pivot are written to `other`.
    All lists have room for one word more than both columns together, which comes behind all others.
    """
    begin = np.uint64(first + 2)
    others = np.uint64(listed[first]) - ONE
    size = np.uint64(size)
    for m in range(others):  # All are read first, so that reads do not wait for comparisons.
        other[m] = word_of(listed[begin + m], positions)
    column[size] = ALL
    other[others] = ALL
    left = size - ONE + others
    i = ONE
    k = np.uint64(0)
    count = np.uint64(0)
    while left:
        # Which of both words comes first is not predictable, so there are no branches.
        own = column[i]
        word = other[k]
        first_own = np.uint64(own <= word)
        first_other = np.uint64(word <= own)
        spare[count] = min(own, word)
        count += np.uint64(own != word)
        i += first_own
        k += first_other
        left -= first_own + first_other
    return np.int64(count)


@subroutine()
def wider(column, count, size):
    """Return lists with room for so many elements, the first of which begins with a column."""
    lists = np.empty((3, 2 * size), column.dtype)
    for i in range(count):
        lists[0, i] = column[i]
    return lists


@subroutine()
def write_words(edges, count, gradient, rows, column):
    """Write the words of the rows with these edges, sorted; return how many there are.

    Two equal rows cancel each other.
    """
    twice = False
    for k in range(count):
        number = row_number(edges[k], gradient, rows.starts)
        word = word_of(number, rows.positions)
        if count <= MOST_INSERTED:
            for i in range(k):  # Words are in no order, so there is no branch to be predicted.
                other = column[i]
                column[i] = min(word, other)
                word = max(word, other)
                twice |= column[i] == word
        column[k] = word
    if count > MOST_INSERTED:
        column[:count].sort()
        twice = True
    return without_pairs(column, count) if twice else count


@subroutine()
def without_pairs(column, count):
    """Remove equal words of a sorted list by pairs, and return how many are left."""
    left = 0
    for k in range(count):
        if left and column[left - 1] == column[k]:
            left -= 1
        else:
            column[left] = column[k]
            left += 1
    return left


@subroutine()
def each_of(lists):
    """Return each of three lists."""
    return lists[0], lists[1], lists[2]


@subroutine()
def next_limit(limit, count):
    """Return the limit of steps of short paths after those of a column: lower if it had more."""
    if count == TOO_FEW:
        return max(limit - (limit >> np.uint64(2)), np.uint64(LEAST_LIMIT))
    return min(limit + np.uint64(2), np.uint64(MOST_STEPS))


@kernel(inline="always")
def row_edges(begins, gradient, paths, states, lists, limit):
    """List the edges of the rows of a column, by short paths if their steps are within a limit.

    Returns how many there are, the limit for the next column, and the lists, which are replaced if
    they are too short.
    """
    edges = bare(lists)
    count = short_path_ends(begins, gradient, paths, edges, limit)
    limit = next_limit(limit, count)
    if count == TOO_FEW:
        count = path_ends(begins, gradient, paths, states, edges)
    while count == TOO_FEW:
        lists = np.empty((3, 2 * edges.shape[1]), np.int64)
        edges = bare(lists)
        count = path_ends(begins, gradient, paths, states, edges)
    return count, limit, lists


@subroutine()
def write_listed(listed, first, positions, column):
    """Write the words of a column that is listed from `first` on."""
    for k in range(np.int64(listed[first])):
        column[k] = word_of(listed[first + 1 + k], positions)


@subroutine()
def list_column(column, count, listed, size):
    """List the numbers of a column behind `size` elements; return how many there are then."""
    listed[size] = count
    for k in range(count):
        listed[size + 1 + k] = column[k] & NUMBER
    return size + count + 1


@subroutine()
def take_row(rows, pivot, own, column, place, late, left):
    """Let a column that is listed at a place own its pivot, or add it to those of other rows."""
    if own:
        rows.owners[pivot] = column
        rows.firsts[pivot] = place
        return left
    late[left, 0] = column
    late[left, 1] = place
    return left + 1


@kernel()
def reduce_columns(volume, tables, rows, chosen, columns, within, given, listed, size, states):
    """Reduce columns over Z/2 by adding earlier ones, until no other column has the same pivot.

    The `columns` are in any order, and `chosen` are their numbers in the order in which they enter.
    They own rows whose numbers lie within a range; those that come to another row are returned. A
    column that enters before the owner of its pivot takes its place, and the other one is reduced
    further.

    Reduced columns are `listed`, in `size` elements so far. If the columns are `given`, this is
    where they are listed; otherwise their paths are followed, for which `tables` are
    :func:`far_offsets`, :func:`path_offsets` and :func:`edge_offsets`. Returns the list, its size,
    and the columns that are left with where they are listed.
    """
    # Numba counts references to arrays at every call, but not to views without an owner. The
    # owners `sums`, `lists` and `listed` are replaced if they are too small. The first two are used
    # in each iteration, as numba frees what is not used any more.
    gradient = bare(volume.gradient)
    states = bare(states)
    offsets = bare(tables[0]), bare(tables[2])
    paths = (bare(tables[1]), volume.home, gradient.size // 3)
    rows = Rows(bare(rows.starts), bare(rows.positions), bare(rows.owners), bare(rows.firsts))
    owners = rows.owners
    firsts = rows.firsts
    far_edges = np.empty(MOST_BOUNDARY, np.int64)
    sums = np.empty((3, ROOM), np.uint64)
    lists = np.empty((3, ROOM), np.int64)
    known = bare(listed)
    late = np.empty((chosen.size, 2), np.int64)
    limit = np.uint64(MOST_STEPS)
    left = 0
    for chosen_index in range(chosen.size):
        j = np.int64(chosen[chosen_index])
        column, spare, other_words = each_of(bare(sums))
        if given.size:
            count = np.int64(known[given[chosen_index]])
        else:
            cycle = np.int64(columns.cycles[chosen_index])
            first_edge = 4 * columns.places[chosen_index]
            count = list_boundary(first_edge, cycle, gradient, offsets, paths, far_edges)
            begins = bare(far_edges[:count])
            count, limit, lists = row_edges(begins, gradient, paths, states, lists, limit)
        if count >= column.size:
            sums = wider(column, 0, count)
            column, spare, other_words = each_of(bare(sums))
        if given.size:
            write_listed(known, given[chosen_index], rows.positions, column)
        else:
            count = write_words(bare(lists)[2], count, gradient, rows, column)
        while count:
            pivot = np.int64(column[0] & NUMBER)
            own = within[0] <= pivot < within[1]
            other = np.int64(owners[pivot]) if own else np.int64(NONE)
            first = firsts[pivot]
            if other == NONE or other > j:
                left = take_row(rows, pivot, own, j, size, late, left)
                if size + count + 1 > known.size:
                    listed = longer(listed, size + count + 1)
                    known = bare(listed)
                size = list_column(column, count, known, size)
                if other == NONE:
                    break
                j = other
            most = count + np.int64(known[first])
            if most >= column.size:
                sums = wider(column, count, most)
                column, spare, other_words = each_of(bare(sums))
            count = add_column(column, count, known, first, rows.positions, other_words, spare)
            column, spare = spare, column
    return listed, size, late[:left]
