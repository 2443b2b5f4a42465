"""Load a selection in a worker, piece by piece and from a coarser level if it is too large."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_ecc._controller.layers import Selection, is_lazy
from napari_ecc._workers import Step

__all__ = ["MOST_POINTS", "Level", "can_be_held", "describe", "fitting_level", "load"]

MOST_POINTS = 2**28
"""Largest number of points that are loaded into memory."""

PIECE_POINTS = 2**22


class Level(NamedTuple):
    """One resolution of a selection.

    Attributes
    ----------
    array : array
        Maybe lazy.
    number : int
        0 is the finest.
    spacing : (d,) float array
        Distance of its points in world units.
    note : str
        What the user should know of it, or "".
    """

    array: Any
    number: int
    spacing: NDArray[np.float64]
    note: str


def can_be_held(array: Any) -> bool:
    """Whether an array is in memory, or is small enough to be loaded."""
    return not is_lazy(array) or math.prod(array.shape) <= MOST_POINTS


def fitting_level(selection: Selection, name: str) -> Level:
    """Return the finest resolution of a selection that fits in memory.

    Parameters
    ----------
    selection : Selection
    name : str
        The layer's, for messages.

    Returns
    -------
    Level

    Raises
    ------
    ValueError
        If even the coarsest is too large.
    """
    full = tuple(selection.full.shape)
    for number, array in enumerate(reversed(selection.levels)):
        shape = tuple(array.shape)
        if can_be_held(array):
            spacing = selection.spacing * np.array(full) / np.array(shape)
            coarse = f"level {number}, {describe(shape)} of {describe(full)}"
            note = coarse if number else ""
            return Level(array, number, spacing, note)
    raise ValueError(
        f"“{name}” must have at most {MOST_POINTS:,} points here, as it is not in memory, "
        f"got {describe(full)}. Choose a slice, or crop it."
    )


def describe(shape: tuple[int, ...]) -> str:
    """Format a shape."""
    return " \N{MULTIPLICATION SIGN} ".join(str(n) for n in shape)


def load(array: Any) -> Generator[Step, None, NDArray[Any]]:
    """Load an array; progress is reported between the pieces of a lazy one."""
    if not is_lazy(array):
        return np.asarray(array)
    result = np.empty(array.shape, dtype=array.dtype)
    rows = max(1, PIECE_POINTS // max(1, math.prod(array.shape[1:])))
    starts = range(0, len(result), rows)
    for done, start in enumerate(starts, 1):
        result[start : start + rows] = np.asarray(array[start : start + rows])
        if done < len(starts):
            yield Step(None, done, len(starts))
    return result
