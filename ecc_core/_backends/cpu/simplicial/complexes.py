"""Simplicial complexes: sorted simplices, without repetitions, that hold all their faces.

The points of a simplex increase, and a counting sort brings simplices of a dimension into the order
of their first points. So neighbouring simplices share points, whose data is then in the cache.
Where a point is the first one of many simplices, or where some are repeated, all are in
lexicographic order, by one counting sort for each column, whose time does not depend on the
simplices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._request.simplicial import open_error, outside_error, repeated_error

Rows = NDArray[Any]

VALID = 0
OUTSIDE = 1
REPEATED = 2
COMPARED_ONE_BY_ONE = 16  # More simplices with the same first point are sorted.


@kernel()
def _order_points(given, points, rows):
    """Write the rows given with increasing numbers.

    Returns what is wrong with the first row that is no simplex of so many points, and its number.
    """
    size = given.shape[1]
    for i in range(len(given)):
        for j in range(size):
            number = given[i, j]
            if not 0 <= number < points:
                return OUTSIDE, i
            k = j
            while k > 0 and rows[i, k - 1] > number:
                rows[i, k] = rows[i, k - 1]
                k -= 1
            rows[i, k] = number
            if k > 0 and rows[i, k - 1] == number:
                return REPEATED, i
    return VALID, 0


@kernel()
def _sort_by_column(rows, column, starts, out):
    """Write the rows in the order of a column; rows with equal entries keep their order.

    `starts` has one entry more than there are points. Afterwards the rows of point p end at
    ``starts[p]``. Returns the largest number of rows of a point.
    """
    size = rows.shape[1]
    starts[:] = 0
    for i in range(len(rows)):
        starts[rows[i, column] + 1] += 1
    most = 0
    for p in range(1, starts.size):
        most = max(most, starts[p])
        starts[p] += starts[p - 1]
    for i in range(len(rows)):
        p = rows[i, column]
        place = starts[p]
        starts[p] = place + 1
        if size == 2:  # Short rows are copied without a loop.
            out[place, 0] = rows[i, 0]
            out[place, 1] = rows[i, 1]
        elif size == 3:
            out[place, 0] = rows[i, 0]
            out[place, 1] = rows[i, 1]
            out[place, 2] = rows[i, 2]
        else:
            for j in range(size):
                out[place, j] = rows[i, j]
    return most


@kernel()
def _any_repeated(rows):
    """Return whether any rows, which are in the order of their first column, are equal."""
    repeated = False
    for i in range(len(rows)):
        k = i - 1
        while k >= 0 and rows[k, 0] == rows[i, 0]:
            same = True
            for j in range(1, rows.shape[1]):
                same &= rows[k, j] == rows[i, j]
            repeated |= same
            k -= 1
    return repeated


@kernel()
def _drop_repeated(rows):
    """Move the distinct ones of sorted rows to the front. Returns their number."""
    count = min(len(rows), 1)
    for i in range(1, len(rows)):
        same = True
        for j in range(rows.shape[1]):
            same &= rows[i, j] == rows[count - 1, j]
        if not same:
            for j in range(rows.shape[1]):
                rows[count, j] = rows[i, j]
            count += 1
    return count


@kernel()
def _list_faces(rows, faces):
    """Write the faces of each row, which lack one of its points."""
    size = rows.shape[1]
    for i in range(len(rows)):
        for left_out in range(size):
            for j in range(size - 1):
                faces[i * size + left_out, j] = rows[i, j + (j >= left_out)]


@subroutine()
def _is_face(faces, k, rows, i, left_out):
    """Return whether a face is that of a row without a point, if both have the same first point."""
    same = True
    for j in range(1, rows.shape[1] - 1):
        same &= faces[k, j] == rows[i, j + 1 if j >= left_out else j]
    return same


@subroutine()
def _holds(faces, low, high, rows, i, left_out):
    """Return whether the faces from `low` to `high` hold that of a row without a point.

    They have the same first point, and are sorted unless there are few.
    """
    if high - low <= COMPARED_ONE_BY_ONE:  # All are compared: a branch could not be predicted.
        found = False
        for k in range(low, high):
            found |= _is_face(faces, k, rows, i, left_out)
        return found
    end = high
    while low < high:  # Search the first face that does not precede the one wanted.
        middle = (low + high) >> 1
        before = False
        for j in range(1, rows.shape[1] - 1):
            wanted = rows[i, j + 1 if j >= left_out else j]
            if faces[middle, j] != wanted:
                before = faces[middle, j] < wanted
                break
        if before:
            low = middle + 1
        else:
            high = middle
    return low < end and _is_face(faces, low, rows, i, left_out)


@kernel()
def _find_missing_face(rows, faces, points):
    """Return the first row that has a face which is not among `faces`, and which one.

    A face is given by the position of the point that it lacks. Returns (-1, 0) if there is none.
    """
    ends = np.zeros(points + 1, np.int64)
    for i in range(len(faces)):
        ends[faces[i, 0] + 1] += 1
    for p in range(points):
        ends[p + 1] += ends[p]
    size = rows.shape[1]
    for i in range(len(rows)):
        for left_out in range(size):
            first = rows[i, 1 if left_out == 0 else 0]
            low = ends[first]
            high = ends[first + 1]
            if size == 3 and high - low <= COMPARED_ONE_BY_ONE:
                # This is the usual case, which needs no loop over columns.
                second = rows[i, 1 if left_out == 2 else 2]
                found = False
                for k in range(low, high):
                    found |= faces[k, 1] == second
            else:
                found = _holds(faces, low, high, rows, i, left_out)
            if not found:
                return i, left_out
    return -1, 0


def _ordered(given: Rows, points: int) -> Rows:
    """Return simplices with increasing indices of points."""
    rows = np.empty(given.shape, np.int32 if points < 2**31 else np.int64)
    wrong, i = _order_points(given, points, rows)
    if wrong == OUTSIDE:
        raise outside_error(given[i], points)
    if wrong == REPEATED:
        raise repeated_error(given[i])
    return rows


def _sorted(rows: Rows, points: int) -> Rows:
    """Return the distinct rows in the order of their first points; writes to `rows`.

    They are in lexicographic order if a point is the first one of more than
    COMPARED_ONE_BY_ONE of them.
    """
    out = np.empty_like(rows)
    starts = np.empty(points + 1, np.int64)
    if _sort_by_column(rows, 0, starts, out) <= COMPARED_ONE_BY_ONE and not _any_repeated(out):
        return out
    for column in reversed(range(rows.shape[1])):
        _sort_by_column(rows, column, starts, out)
        rows, out = out, rows
    return rows[: _drop_repeated(rows)]


def _faces(rows: Rows) -> Rows:
    size = rows.shape[1]
    faces = np.empty((len(rows) * size, size - 1), rows.dtype)
    _list_faces(rows, faces)
    return faces


def make_rows(given: Sequence[Rows], points: int, complete: bool) -> list[Rows]:
    """Return the edges, triangles and so on of a complex, by dimension.

    `given` are int64 arrays of increasing width, not more than one of each. With `complete` faces
    that are missing are added, otherwise they are an error.
    """
    most = given[-1].shape[1] if given else 1
    by_size = {rows.shape[1]: _ordered(rows, points) for rows in given}
    larger: Rows | None = None
    found: list[Rows] = []
    for size in range(most, 1, -1):
        own = by_size.get(size)
        if own is None:
            own = np.empty((0, size), np.int32 if points < 2**31 else np.int64)
        if complete and larger is not None:
            own = np.concatenate([own, _faces(larger)])
        rows = _sorted(own, points)
        if not complete and larger is not None:
            _check_faces(larger, rows, points)
        found.append(rows)
        larger = rows
    return found[::-1]


def _check_faces(rows: Rows, faces: Rows, points: int) -> None:
    i, left_out = _find_missing_face(rows, faces, points)
    if i >= 0:
        raise open_error(rows[i], left_out)
