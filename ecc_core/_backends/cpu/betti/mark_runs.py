"""Marks of a box as runs of equal ones, whose rows can be read alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.llvm import bare

Array = NDArray[Any]


def runs_of(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return an array as the number of its first run in each row, lengths of runs, and values.

    Runs end at the end of a row, so that rows can be read alone.
    """
    columns = values.shape[-1]
    rows = np.empty(values.size // columns + 1, np.int32)
    lengths = np.empty(values.size, np.int32)  # few of them are written to
    found = np.empty(values.size, np.int32)
    _find_runs(values.reshape(-1), columns, rows, lengths, found)
    count = rows[-1]
    return np.concatenate([rows, lengths[:count], found[:count]])


def lengths_of(
    runs: NDArray[np.int32], shape: Sequence[int]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the value of each run of an array, and how many points it has."""
    _, lengths, values = _parts(runs, shape)
    return values, lengths


def add_lengths(
    labels: NDArray[np.int32], lengths: NDArray[np.int32], points: NDArray[np.int64]
) -> None:
    """Add the lengths of runs to the number of points that their labels have."""
    _add_lengths(labels, lengths, points)


def read_runs(
    runs: NDArray[np.int32],
    shape: Sequence[int],
    box: Sequence[slice] | None = None,
    change: Callable[[NDArray[np.int32]], NDArray[np.int32]] | None = None,
) -> NDArray[np.int32]:
    """Return the array of some runs, or a box of it, of slices with a start and a stop.

    Values are those that `change` makes of the values of runs.
    """
    rows, lengths, values = _parts(runs, shape)
    parts = box or [slice(0, n) for n in shape]
    first = parts[0]
    rest = (slice(None), *parts[1:])
    own = slice(None)
    length = shape[0]
    if len(shape) > 1:  # the rows of some slices
        rows_of_slice = (rows.size - 1) // shape[0]
        own = slice(rows[first.start * rows_of_slice], rows[first.stop * rows_of_slice])
        length = first.stop - first.start
    used = values[own] if change is None else change(values[own])
    found = np.empty((length, *shape[1:]), np.int32)
    _write_runs(lengths[own], used, found.reshape(-1))
    return found[first] if len(shape) == 1 else found[rest]


def _parts(
    runs: NDArray[np.int32], shape: Sequence[int]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return the number of the first run in each row, the lengths of runs, and their values."""
    count = math.prod(shape[:-1])
    rows = runs[: count + 1]
    number = int(rows[-1])
    lengths = runs[count + 1 : count + 1 + number]
    return rows, lengths, runs[count + 1 + number :]


@kernel()
def _find_runs(values, columns, rows, lengths, found):
    """Write the number of the first run of each row, and the length and the value of each run."""
    values = bare(values)
    lengths = bare(lengths)
    found = bare(found)
    count = 0
    for row in range(rows.size - 1):
        rows[row] = count
        at = row * columns
        last = at + columns
        while at < last:
            start = at
            value = values[start]
            while at < last and values[at] == value:
                at += 1
            lengths[count] = at - start
            found[count] = value
            count += 1
    rows[rows.size - 1] = count


@kernel()
def _write_runs(lengths, values, found):
    """Write the values of runs, one after another."""
    lengths = bare(lengths)
    values = bare(values)
    found = bare(found)
    at = 0
    for k in range(lengths.size):
        value = values[k]
        last = at + lengths[k]
        while at < last:
            found[at] = value
            at += 1


@kernel()
def _add_lengths(labels, lengths, points):
    """Add the length of each run to the points of its label."""
    labels = bare(labels)
    lengths = bare(lengths)
    points = bare(points)
    for k in range(labels.size):
        points[labels[k]] += lengths[k]
