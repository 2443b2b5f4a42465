"""Critical points in a window of thresholds, where the topology changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from dask.array.core import slices_from_chunks
from dask.delayed import delayed
from numpy.typing import NDArray

import ecc_core as ecc
from napari_ecc._controller.curves import BLOCK, Field
from napari_ecc._controller.delayed import as_completed
from napari_ecc._workers import Step

__all__ = ["CriticalPoints", "find_critical_points"]


class CriticalPoints(NamedTuple):
    """Points that change the Euler characteristic when they enter.

    Attributes
    ----------
    points : (k, d) int array
    effects : (k,) int array
        By how much: `ecc_core.euler_coefficients` there.
    values : (k,) array
        Thresholds at which they enter.
    total : int
        How many there are, also of those that were left out.
    """

    points: NDArray[np.int64]
    effects: NDArray[np.int64]
    values: NDArray[Any]
    total: int


def find_critical_points(
    field: Field,
    window: tuple[float, float],
    *,
    superlevel: bool,
    connectivity: int | None,
    most: int,
) -> Iterator[Step]:
    """Find the critical points with values in a window, block by block.

    Parameters
    ----------
    field : Field
    window : (low, high)
    superlevel : bool
    connectivity : {1, d} or None
        None: d.
    most : int
        Of more points, those with the greatest effect are kept, and of these the nearest to the
        middle of the window.

    Yields
    ------
    Step
        The `CriticalPoints` of the blocks so far.
    """
    data, mask = field.blocks(BLOCK)
    effects = ecc.euler_coefficients(
        data, connectivity=connectivity, superlevel=superlevel, mask=mask, nan="omit"
    )
    find = delayed(_in_block, pure=False)
    # Unoptimized graphs share the tasks that read a block, so each block is read once
    arrays = (array.to_delayed(optimize_graph=False).ravel() for array in (data, effects))
    blocks = zip(*arrays, slices_from_chunks(data.chunks), strict=True)
    parts = [find(values, changes, place, window) for values, changes, place in blocks]
    none = np.zeros((0, field.data.ndim), np.int64)
    found = CriticalPoints(none, none[:, 0], np.zeros(0), 0)
    done = 0
    for part in as_completed(parts):
        if part is not None:
            done += 1
            found = _joined(found, part[1], (window[0] + window[1]) / 2, most)
        yield Step(found, done, len(parts))


def _in_block(
    values: NDArray[Any],
    effects: NDArray[np.int8],
    place: tuple[slice, ...],
    window: tuple[float, float],
) -> CriticalPoints:
    """Return the critical points of a block at a place of the image."""
    chosen = (effects != 0) & (values >= window[0]) & (values <= window[1])
    points = np.argwhere(chosen) + [at.start for at in place]
    return CriticalPoints(points, effects[chosen].astype(np.int64), values[chosen], len(points))


def _joined(a: CriticalPoints, b: CriticalPoints, middle: float, most: int) -> CriticalPoints:
    points = np.concatenate([a.points, b.points])
    effects = np.concatenate([a.effects, b.effects])
    values = np.concatenate([a.values, b.values])
    if len(points) > most:
        best = np.lexsort((np.abs(values - middle), -np.abs(effects)))[:most]
        points, effects, values = points[best], effects[best], values[best]
    return CriticalPoints(points, effects, values, a.total + b.total)
