"""Soft curves of overlapping windows, each of which is an image of its own.

Windows consist of tiles. Within a window, a point has the coefficient that it has in the whole
image, unless a side of the window cuts it off from its neighbours. By inclusion and exclusion, the
curve of a window is therefore the sum of

- the curves of its tiles, with the coefficients of the whole image,
- for each side of the window, the curves of the points along it, with the difference between their
  coefficients in an image that is cut there and in the whole image,
- for each pair of adjacent sides, the curves of the points at both, with the second difference, and
  so on.

All of them are sums over points of tiles, and are computed once for all windows that contain them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.soft import few, sums

__all__ = ["Tiles", "curves", "differences", "gradients"]

Array = NDArray[Any]
Floats = NDArray[np.float64]
Cuts = tuple[bool, ...]

ENDS = 6  # two points at each end of a tile, followed by one that never enters


class Tiles(NamedTuple):
    """How images are divided: the side of a tile, and the number of tiles along a window."""

    stride: int
    per_window: int

    def cuts(self, values: Array) -> Iterator[Cuts]:
        """For each set of axes, whether windows end along each axis; first the empty set."""
        return itertools.product((False, True), repeat=values.ndim - 1)

    def view(self, images: Array) -> Array:
        """Images (batch, *spatial) as tiles (batch, number, stride, number, stride, ...)."""
        batch, *spatial = images.shape
        grid = [part for n in spatial for part in (n // self.stride, self.stride)]
        return images.reshape(batch, *grid)

    def rows(self, tiles: Array, cuts: Cuts) -> Array:
        """The points of tiles, or those at their ends along the axes that are cut.

        `tiles` has one axis for the numbers and one for the points along each axis. The result has
        shape (*ends, batch, *numbers, *points), with two ends for each axis that is cut.
        """
        for axis, cut in enumerate(cuts):
            if cut:
                ends_of_axis = slice(None, None, max(tiles.shape[2 + 2 * axis] - 1, 1))
                tiles = tiles[(slice(None),) * (2 + 2 * axis) + (ends_of_axis,)]
        axes = range(len(cuts))
        ends = [2 + 2 * axis for axis in axes if cuts[axis]]
        points = [2 + 2 * axis for axis in axes if not cuts[axis]]
        return tiles.transpose(*ends, 0, *(1 + 2 * axis for axis in axes), *points)


def differences(values: Array, tiles: Tiles, coefficients: Callable[[Array], Array]) -> list[Array]:
    """Coefficients, and their differences at sides of tiles, for each set of axes that are cut.

    Parameters
    ----------
    values : (batch, *spatial) array
        Values of sublevel filtrations. The stride divides the spatial shape.
    tiles : Tiles
    coefficients : callable
        Computes the coefficients of images, int8 and of their shape.

    Returns
    -------
    list of (rows, points) arrays
        The points as in :meth:`Tiles.rows`.
    """
    found: dict[Cuts, Array] = {}
    for cuts in tiles.cuts(values):
        cut_images = values
        for axis, cut in enumerate(cuts):
            if cut:
                cut_images = _cut(cut_images, 1 + axis, tiles.stride)
        own = coefficients(cut_images)
        grid = [
            part
            for length, cut in zip(values.shape[1:], cuts, strict=True)
            for part in (length // tiles.stride, ENDS if cut else tiles.stride)
        ]
        own = own.reshape(values.shape[0], *grid)
        for axis, cut in enumerate(cuts):
            if cut:  # the first point at the low end and the last at the high end
                own = own[(slice(None),) * (2 + 2 * axis) + (slice(None, None, ENDS - 2),)]
        found[cuts] = own
    return [_alternating(found, tiles, cuts) for cuts in found]


def _cut(images: Array, axis: int, stride: int) -> Array:
    """Keep two points at each end of the tiles along an axis, cut off from other tiles."""
    shape = images.shape
    tiles = images.reshape(*shape[:axis], shape[axis] // stride, stride, *shape[axis + 1 :])
    sides = (*shape[:axis], shape[axis] // stride, ENDS, *shape[axis + 1 :])
    cut = np.empty(sides, images.dtype)
    lead: tuple[Any, ...] = (slice(None),) * (axis + 1)
    for place, point in ((0, 0), (1, 1), (3, -2), (4, -1)):
        cut[(*lead, place)] = tiles[(*lead, point)]
    cut[(*lead, slice(2, None, 3))] = np.inf
    return cut.reshape(*shape[:axis], -1, *shape[axis + 1 :])


def _alternating(found: dict[Cuts, Array], tiles: Tiles, cuts: Cuts) -> Array:
    """Alternating sum of the coefficients of images that are cut along subsets of these axes."""
    total: Any = 0
    for fewer, own in found.items():
        if any(cut and not also for cut, also in zip(fewer, cuts, strict=True)):
            continue
        term = tiles.rows(own, cuts)
        total = total + term if (sum(cuts) - sum(fewer)) % 2 == 0 else total - term
    return _flat(total, cuts)


def _flat(rows: Array, cuts: Cuts) -> Array:
    """Rows (*ends, batch, *numbers, *points) as a contiguous array (rows, points)."""
    lead = 1 + len(cuts) + sum(cuts)
    points = int(np.prod(rows.shape[lead:], dtype=int))
    return np.ascontiguousarray(rows).reshape(-1, points)


def curves(
    values: Array,
    weights: list[Array],
    tiles: Tiles,
    levels: Floats,
    sharpness: float,
    workers: int | None = None,
) -> Floats:
    """Curves of windows, and their derivatives with respect to levels and sharpness.

    The result has shape (3, batch, *positions, n).
    """
    positions = [length // tiles.stride - tiles.per_window + 1 for length in values.shape[1:]]
    total = np.zeros((3, values.shape[0], *positions, levels.size))
    view = tiles.view(values)
    for cuts, own in zip(tiles.cuts(values), weights, strict=True):
        rows = tiles.rows(view, cuts)
        options: dict[str, Any] = {"workers": workers, "tiny": own.shape[1] <= few.LARGEST}
        found = sums.curves(_flat(rows, cuts), own, levels, sharpness, **options)
        shape = (*rows.shape[: 1 + len(cuts) + sum(cuts)], levels.size)
        for result, part in zip(total, found, strict=True):
            result += _in_windows(part.reshape(shape), cuts, tiles.per_window)
    return total


def gradients(
    values: Array,
    weights: list[Array],
    tiles: Tiles,
    levels: Floats,
    sharpness: float,
    upstream: Floats,
    workers: int | None = None,
) -> Array:
    """Gradients of images for those of curves of windows, (batch, *positions, n)."""
    out = np.empty(values.shape, values.dtype)
    view, into, negated = tiles.view(values), tiles.view(out), -upstream
    for cuts, own in zip(tiles.cuts(values), weights, strict=True):
        rows = _from_windows(negated, cuts, tiles.per_window).reshape(-1, levels.size)
        points = tiles.rows(view, cuts)
        found = np.empty(own.shape, values.dtype)
        options: dict[str, Any] = {"double": False, "tiny": own.shape[1] <= few.LARGEST}
        given = _flat(points, cuts), own, levels, sharpness, rows, found, workers
        sums.gradients(*given, **options)
        target = tiles.rows(into, cuts)
        if any(cuts):
            target += found.reshape(points.shape)
        else:
            target[...] = found.reshape(points.shape)
    return out


def _in_windows(rows: Array, cuts: Cuts, count: int) -> Array:
    """Sum the curves (*ends, batch, *numbers, n) of the rows of points in each window."""
    ends = sum(cuts)
    for axis, cut in enumerate(cuts, start=1):
        windows = rows.shape[ends + axis] - count + 1
        if cut:  # windows begin at the low end of their first tile and end at the high end
            ends -= 1
            places = [(rows[0], 0), (rows[1], count - 1)]
        else:
            places = [(rows, first) for first in range(count)]
        lead = (slice(None),) * (ends + axis)
        (part, first), *others = places
        rows = part[(*lead, slice(first, first + windows))].copy()
        for part, first in others:
            rows += part[(*lead, slice(first, first + windows))]
    return rows


def _from_windows(upstream: Array, cuts: Cuts, count: int) -> Array:
    """Add up, for each row of points, what :func:`_in_windows` adds it to."""
    ends = 0
    for axis in range(len(cuts), 0, -1):
        windows = upstream.shape[ends + axis]
        shape = list(upstream.shape)
        shape[ends + axis] = windows + count - 1
        lead = (slice(None),) * (ends + axis)
        if cuts[axis - 1]:
            rows = np.zeros((2, *shape), upstream.dtype)
            ends += 1
            places = [(rows[0], 0), (rows[1], count - 1)]
        else:
            rows = np.zeros(shape, upstream.dtype)
            places = [(rows, first) for first in range(count)]
        for part, first in places:
            part[(*lead, slice(first, first + windows))] += upstream
        upstream = rows
    return upstream
