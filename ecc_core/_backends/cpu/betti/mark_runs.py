"""Marks of a box as runs of equal ones, whose rows can be read alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.llvm import (
    ALL,
    LANES,
    ONE,
    bare,
    count_trailing_zeros,
    equal,
    fill_vector,
)

Array = NDArray[Any]


def runs_of(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the runs of an array: the first one of each row, their lengths, and their values.

    Runs end at the end of a row, so that rows can be read alone.
    """
    columns = values.shape[-1]
    # The kernel reads beyond the last value, by up to a vector and one.
    padded = np.empty(values.size + LANES + 1, np.int32)
    padded[: values.size].reshape(values.shape)[...] = values
    rows = np.empty(values.size // columns + 1, np.int32)
    lengths = np.empty(values.size, np.int32)  # Only as many pages as there are runs are touched.
    found = np.empty(values.size, np.int32)
    _find_runs(padded, columns, rows, lengths, found)
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
    """Return the array that runs stand for, or a box of it, whose slices have a start and a stop.

    `change` is applied to the values of runs before they are written.
    """
    rows, lengths, values = _parts(runs, shape)
    parts = box or [slice(0, n) for n in shape]
    first = parts[0]
    rest = (slice(None), *parts[1:])
    own = slice(None)
    length = shape[0]
    if len(shape) > 1:  # Only the runs of slices in the box are read.
        rows_of_slice = (rows.size - 1) // shape[0]
        own = slice(rows[first.start * rows_of_slice], rows[first.stop * rows_of_slice])
        length = first.stop - first.start
    used = values[own] if change is None else change(values[own])
    used_shape = (length, *shape[1:])
    points = math.prod(used_shape)
    padded = np.empty(points + LANES, np.int32)
    _write_runs(lengths[own], used, padded)
    found = padded[:points].reshape(used_shape)
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
    """Write the number of the first run of each row, and the length and the value of each run.

    Behind the values there are `LANES` + 1 elements more, which may be read.
    """
    values = bare(values)
    lengths = bare(lengths)
    found = bare(found)
    count = 0
    for row in range(rows.size - 1):
        rows[row] = count
        start = row * columns
        last = start + columns
        at = start
        while at < last:
            ends = ~equal(values, at, at + 1)
            left = last - at
            if left <= LANES:
                in_row = ALL >> np.uint64(LANES - left)
                ends = ends & in_row | ONE << np.uint64(left - 1)
            while ends:
                end = at + count_trailing_zeros(ends) + 1
                ends &= ends - ONE
                lengths[count] = end - start
                found[count] = values[start]
                start = end
                count += 1
            at += LANES
    rows[rows.size - 1] = count


@kernel()
def _write_runs(lengths, values, found):
    """Write the values of runs by vectors of `LANES` elements.

    What the last vector writes beyond its run is overwritten by the next run, and `found` has room
    for a vector behind the last run.
    """
    lengths = bare(lengths)
    values = bare(values)
    found = bare(found)
    at = 0
    for k in range(lengths.size):
        last = at + lengths[k]
        value = np.uint64(values[k])
        while at < last:
            fill_vector(found, at, value)
            at += LANES
        at = last


@kernel()
def _add_lengths(labels, lengths, points):
    """Add the length of each run to the points of its label."""
    labels = bare(labels)
    lengths = bare(lengths)
    points = bare(points)
    for k in range(labels.size):
        points[labels[k]] += lengths[k]
