"""Arrays of few values that follow each other, as runs whose rows can be read alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def runs_of(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return an array as the number of its first run in each row, lengths of runs, and values.

    Runs end at the end of a row, so that rows can be read alone.
    """
    columns = values.shape[-1]
    flat = values.reshape(-1)
    new = np.empty(flat.size, np.bool_)
    np.not_equal(flat[1:], flat[:-1], out=new[1:])
    new[::columns] = True
    starts = np.flatnonzero(new)
    rows = np.searchsorted(starts, np.arange(0, flat.size + 1, columns))
    lengths = np.diff(starts, append=flat.size)
    return np.concatenate([rows, lengths, flat[starts]]).astype(np.int32)


def lengths_of(
    runs: NDArray[np.int32], shape: Sequence[int]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the value of each run of an array, and how many points it has."""
    _, lengths, values = _parts(runs, shape)
    return values, lengths


def read_runs(
    runs: NDArray[np.int32], shape: Sequence[int], box: Sequence[slice] | None = None
) -> NDArray[np.int32]:
    """Return the array of some runs, or a box of it, of slices with a start and a stop."""
    rows, lengths, values = _parts(runs, shape)
    parts = box or [slice(0, n) for n in shape]
    first = parts[0]
    rest = (slice(None), *parts[1:])
    own = slice(None)
    if len(shape) > 1:  # the rows of some slices
        rows_of_slice = (rows.size - 1) // shape[0]
        own = slice(rows[first.start * rows_of_slice], rows[first.stop * rows_of_slice])
    found: NDArray[np.int32] = np.repeat(values[own], lengths[own])
    if len(shape) == 1:
        return found[first]
    read: NDArray[np.int32] = found.reshape((first.stop - first.start, *shape[1:]))[rest]
    return read


def _parts(
    runs: NDArray[np.int32], shape: Sequence[int]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return the number of the first run in each row, the lengths of runs, and their values."""
    count = math.prod(shape[:-1])
    rows = runs[: count + 1]
    number = int(rows[-1])
    lengths = runs[count + 1 : count + 1 + number]
    return rows, lengths, runs[count + 1 + number :]
