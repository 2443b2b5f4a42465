"""Rows and columns of the critical cells of a box, reduced as far as columns are known.

The column of a cell between boxes is a sum, of which each of these boxes knows a part. It is
reduced when all parts are known. Additions only add earlier columns to later ones, in any order, so
that whole columns can be reduced before others are known. The missing parts of these lead to rows
of other boxes only: rows and columns that no unfinished column can reach by additions are final.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.reduction import NONE
from ecc_core._backends.cpu.betti.tunnels import reduce_sorted
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.llvm import bare

Array = NDArray[Any]

WHOLE = 4
"""Number of parts of a whole column: two from each of two boxes, or one from each of four."""
REDUCED = WHOLE + 1
"""Marks a column that has been reduced, in place of the number of its parts."""


class CriticalCells(NamedTuple):
    """Cells. They enter in the order of keys, then of places, and then of ids."""

    keys: Array
    """Keys of their points, uint64."""
    places: Array
    """Places of their points in the image, int64."""
    ids: Array
    """Numbers that tell cells of one point from each other, int64."""

    def taken(self, chosen: Array) -> CriticalCells:
        return CriticalCells(*(part[chosen] for part in self))

    def order(self) -> Array:
        order: Array = np.lexsort((self.ids, self.places, self.keys))
        return order


class Sums(NamedTuple):
    """Columns as lists of rows."""

    cells: CriticalCells
    """The cells of the columns. A column with an id of at least 0 is a sum, whose parts several
    boxes know."""
    shares: Array
    """The number of parts that are known of each column, int8, or `REDUCED`."""
    counts: Array
    """Numbers of rows of each column, int64."""
    entries: Array
    """The rows of the columns, one column after another, uint32."""


class Matrix(NamedTuple):
    """Rows, and columns that consist of them."""

    rows: CriticalCells
    sums: Sums


class Lists(NamedTuple):
    """Reduced columns."""

    listed: Array
    """The columns one after another, each as the number of its rows and these rows, uint32."""
    firsts: Array
    """The place in `listed` of the column that owns each row, int64."""
    owners: Array
    """The column that owns each row, or `NONE`, int32."""


class Final(NamedTuple):
    """Rows and the columns with which they are paired, for good."""

    rows: CriticalCells
    columns: CriticalCells


def cells_of(parts: Iterable[CriticalCells]) -> CriticalCells:
    """Return all cells of several parts."""
    return CriticalCells(*map(np.concatenate, zip(*parts, strict=True)))


def sums_of(parts: Sequence[Sums]) -> Sums:
    """Return all columns of several parts."""
    rest = zip(*(part[1:] for part in parts), strict=True)
    return Sums(cells_of(part.cells for part in parts), *map(np.concatenate, rest))


def joined(parts: Sequence[Matrix]) -> Matrix:
    """Return the matrix of several boxes, with the sums of columns that they have in common.

    Rows are numbered in the opposite order of entry, and those of each column are sorted.
    """
    moved = []
    first = 0
    for part in parts:
        moved.append(part.sums._replace(entries=part.sums.entries + np.uint32(first)))
        first += part.rows.keys.size
    rows = cells_of(part.rows for part in parts)
    by_row = rows.order()[::-1]
    ranks = np.empty(by_row.size, np.uint32)
    ranks[by_row] = np.arange(by_row.size, dtype=np.uint32)
    sums = sums_of(moved)
    return Matrix(rows.taken(by_row), _summed(sums._replace(entries=ranks[sums.entries])))


def _summed(sums: Sums) -> Sums:
    """Add columns of the same id, and sort them and their rows."""
    order = sums.cells.order()
    cells = sums.cells.taken(order)
    known = np.zeros(order.size, np.bool_)
    known[1:] = (cells.ids[1:] == cells.ids[:-1]) & (cells.ids[1:] >= 0)
    numbers = np.cumsum(~known) - 1
    of_column = np.empty(order.size, np.int64)
    of_column[order] = numbers
    count = order.size - int(known.sum())
    column_of = np.repeat(of_column, sums.counts)
    by_column = np.lexsort((sums.entries, column_of))
    column_of = column_of[by_column]
    entries = sums.entries[by_column]
    odd = _odd(column_of, entries)
    return Sums(
        cells.taken(~known),
        np.bincount(numbers, sums.shares[order], count).astype(np.int8),
        np.bincount(column_of[odd], minlength=count),
        entries[odd],
    )


def _odd(columns: Array, entries: Array) -> Array:
    """Return where sorted pairs of column and row begin that occur an odd number of times."""
    starts = np.ones(entries.size, np.bool_)
    starts[1:] = (columns[1:] != columns[:-1]) | (entries[1:] != entries[:-1])
    firsts = np.flatnonzero(starts)
    times = np.diff(np.append(firsts, entries.size))
    found: Array = firsts[times % 2 == 1]
    return found


def reduced(matrix: Matrix) -> tuple[Matrix, Final]:
    """Reduce what is whole of a sorted matrix; return what others can change, and what is final."""
    sums = matrix.sums
    owners = np.full(matrix.rows.keys.size, NONE, np.int32)
    known = np.flatnonzero(sums.shares == REDUCED)
    firsts = np.cumsum(sums.counts) - sums.counts
    owners[sums.entries[firsts[known]]] = known
    chosen = np.flatnonzero((sums.shares == WHOLE) & (sums.counts > 0))
    listed, firsts = reduce_sorted(chosen, sums.counts, sums.entries, owners)
    return left_over(matrix, Lists(listed, firsts, owners))


def left_over(matrix: Matrix, lists: Lists) -> tuple[Matrix, Final]:
    """Return what other boxes can change of a matrix, and what is final.

    Columns that are whole or reduced are those of the `lists`.
    """
    sums = matrix.sums
    unfinished = sums.shares < WHOLE
    pending = sums.entries[np.repeat(unfinished, sums.counts)]
    kept = np.zeros(lists.owners.size, np.bool_)
    reach_rows(pending, *lists, kept)
    owned = lists.owners != NONE
    done = np.flatnonzero(owned & ~kept)
    held = np.flatnonzero(owned & kept)
    columns = lists.owners[held]
    counts, entries = _rows_at(lists, held)
    left = np.append(columns, np.flatnonzero(unfinished))
    shares = sums.shares[left]
    shares[: columns.size] = REDUCED
    numbers = np.cumsum(kept, dtype=np.uint32) - np.uint32(1)
    remaining = Sums(
        sums.cells.taken(left),
        shares,
        np.append(counts, sums.counts[unfinished]),
        numbers[np.append(entries, pending)],
    )
    final = Final(matrix.rows.taken(done), sums.cells.taken(lists.owners[done]))
    return Matrix(matrix.rows.taken(kept), remaining), final


def _rows_at(lists: Lists, owned: Array) -> tuple[Array, Array]:
    """Return the numbers of rows in the columns that own some rows, and the rows of all of them."""
    firsts = lists.firsts[owned]
    counts = lists.listed[firsts].astype(np.int64)
    begins = np.cumsum(counts) - counts
    at = np.arange(counts.sum()) + np.repeat(firsts + 1 - begins, counts)
    return counts, lists.listed[at]


@kernel()
def reach_rows(pending, listed, firsts, owners, kept):
    """Mark the rows of unfinished columns, which are `pending`, and those that additions add."""
    listed = bare(listed)
    firsts = bare(firsts)
    owners = bare(owners)
    kept = bare(kept)
    stack = np.empty(kept.size, np.uint32)
    depth = 0
    for row in pending:
        if not kept[row]:
            kept[row] = True
            stack[depth] = row
            depth += 1
    while depth:
        depth -= 1
        row = stack[depth]
        if owners[row] == NONE:
            continue
        first = firsts[row]
        for k in range(first + 1, first + 1 + np.int64(listed[first])):
            other = listed[k]
            if not kept[other]:
                kept[other] = True
                stack[depth] = other
                depth += 1
