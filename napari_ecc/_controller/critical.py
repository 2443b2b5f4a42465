"""Critical points in a window of thresholds, where the topology changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from dask import array as da
from dask.delayed import delayed
from numpy.typing import NDArray

import ecc_core as ecc
from napari_ecc._controller.curves import Field
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
    data = field.data
    if not isinstance(data, da.Array):
        data = da.from_array(data, chunks="auto", name=False)
    image = _blocks_with_halo(data)
    masks = None
    if field.mask is not None:
        mask = da.from_array(field.mask, chunks=data.chunks, name=False)
        masks = _blocks_with_halo(mask)
    find = delayed(_in_block, pure=False)
    options = {
        "connectivity": connectivity,
        "superlevel": superlevel,
        "nan": "omit",
    }
    parts = [
        find(block, None if masks is None else masks[at][0], cut, origin, window, options)
        for at, (block, cut, origin) in image.items()
    ]
    none = np.zeros((0, field.data.ndim), np.int64)
    found = CriticalPoints(none, none[:, 0], np.zeros(0), 0)
    done = 0
    for part in as_completed(parts):
        if part is not None:
            done += 1
            found = _joined(found, part[1], (window[0] + window[1]) / 2, most)
        yield Step(found, done, len(parts))


Blocks = dict[tuple[int, ...], tuple[Any, tuple[slice, ...], tuple[int, ...]]]


def _blocks_with_halo(array: Any) -> Blocks:
    """Return delayed blocks with a padding of one point, slices that remove it, and origins."""
    grown = da.overlap.overlap(array, depth=1, boundary="none").to_delayed()
    starts = [np.concatenate([[0], np.cumsum(sizes)]).tolist() for sizes in array.chunks]
    result: Blocks = {}
    for at in np.ndindex(grown.shape):
        origin = tuple(starts[axis][i] for axis, i in enumerate(at))
        cut = tuple(
            slice(int(i > 0), int(i > 0) + size[i])
            for i, size in zip(at, array.chunks, strict=True)
        )
        result[at] = (grown[at], cut, origin)
    return result


def _in_block(
    block: NDArray[Any],
    mask: NDArray[np.bool_] | None,
    cut: tuple[slice, ...],
    origin: tuple[int, ...],
    window: tuple[float, float],
    options: dict[str, Any],
) -> CriticalPoints:
    """Return the critical points of a block without its padding."""
    effects = ecc.euler_coefficients(block, mask=mask, **options)[cut]
    values = block[cut]
    chosen = (effects != 0) & (values >= window[0]) & (values <= window[1])
    points = np.argwhere(chosen)
    return CriticalPoints(
        points + np.array(origin), effects[chosen].astype(np.int64), values[chosen], len(points)
    )


def _joined(a: CriticalPoints, b: CriticalPoints, middle: float, most: int) -> CriticalPoints:
    points = np.concatenate([a.points, b.points])
    effects = np.concatenate([a.effects, b.effects])
    values = np.concatenate([a.values, b.values])
    if len(points) > most:
        best = np.lexsort((np.abs(values - middle), -np.abs(effects)))[:most]
        points, effects, values = points[best], effects[best], values[best]
    return CriticalPoints(points, effects, values, a.total + b.total)
