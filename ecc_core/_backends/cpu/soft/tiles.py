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
        shape (batch, *numbers, *ends, *points), with two ends for each axis that is cut.
        """
        for axis, cut in enumerate(cuts):
            ends = slice(None, None, max(tiles.shape[2 + 2 * axis] - 1, 1))
            tiles = tiles[(slice(None),) * (2 + 2 * axis) + (ends if cut else slice(None),)]
        axes = range(len(cuts))
        sides = sorted(axes, key=lambda axis: not cuts[axis])
        return tiles.transpose(0, *(1 + 2 * a for a in axes), *(2 + 2 * a for a in sides))


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
        The points as in :func:`_rows`.
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
    cut = np.full(sides, np.inf, images.dtype)
    lead = (slice(None),) * (axis + 1)
    cut[(*lead, slice(0, 2))] = tiles[(*lead, slice(0, 2))]
    cut[(*lead, slice(3, 5))] = tiles[(*lead, slice(-2, None))]
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
    """Rows (batch, *numbers, *ends, *points) as a contiguous array (rows, points)."""
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
) -> tuple[Floats, list[Floats]]:
    """Curves (batch, *positions, n) of windows.

    Also returns, for each set of axes that are cut, the derivatives of the sums over the rows of
    points with respect to levels and sharpness, of shape (2, rows, n).
    """
    total: Any = 0.0
    derivatives = []
    view = tiles.view(values)
    for cuts, own in zip(tiles.cuts(values), weights, strict=True):
        rows = tiles.rows(view, cuts)
        options: dict[str, Any] = {"workers": workers, "tiny": own.shape[1] <= few.LARGEST}
        found = sums.curves(_flat(rows, cuts), own, levels, sharpness, **options)
        lead = 1 + len(cuts) + sum(cuts)
        of_rows = found[0].reshape(*rows.shape[:lead], levels.size)
        total = total + _in_windows(of_rows, cuts, tiles.per_window)
        derivatives.append(found[1:])
    return total, derivatives


def gradients(
    values: Array,
    weights: list[Array],
    derivatives: list[Array],
    tiles: Tiles,
    levels: Floats,
    sharpness: float,
    upstream: Floats,
    workers: int | None = None,
) -> tuple[Array, Floats, float]:
    """Gradients of images, levels (n,) and sharpness for those of curves (batch, *positions, n)."""
    out = np.empty(values.shape, values.dtype)
    view, into = tiles.view(values), tiles.view(out)
    by_level, by_sharpness, negated = np.zeros(levels.size), 0.0, -upstream
    for cuts, own, (slopes, spreads) in zip(tiles.cuts(values), weights, derivatives, strict=True):
        rows = _from_windows(negated, cuts, tiles.per_window).reshape(-1, levels.size)
        by_level -= np.einsum("ij,ij->j", rows, slopes)
        by_sharpness -= float(np.einsum("ij,ij->", rows, spreads))
        points = tiles.rows(view, cuts)
        found = np.empty(own.shape, values.dtype)
        options: dict[str, Any] = {"double": False, "tiny": own.shape[1] <= few.LARGEST}
        sums.gradients(_flat(points, cuts), own, levels, sharpness, rows, found, workers, **options)
        target = tiles.rows(into, cuts)
        found = found.reshape(points.shape)
        if any(cuts):
            target += found
        else:
            target[...] = found
    return out, by_level, by_sharpness


def _in_windows(rows: Array, cuts: Cuts, count: int) -> Array:
    """Sum the curves (batch, *numbers, *ends, n) of the rows of points in each window."""
    ends = 1 + len(cuts)
    for axis, cut in enumerate(cuts, start=1):
        windows = rows.shape[axis] - count + 1

        def along(part: Array, first: int, axis: int = axis, windows: int = windows) -> Array:
            return part[(slice(None),) * axis + (slice(first, first + windows),)]

        if cut:  # windows begin at the low end of their first tile and end at the high end
            low, high = (rows[(slice(None),) * ends + (end,)] for end in (0, 1))
            rows = along(low, 0) + along(high, count - 1)
        else:
            first, *others = (along(rows, i) for i in range(count))
            rows = sum(others, first)
    return rows


def _from_windows(upstream: Array, cuts: Cuts, count: int) -> Array:
    """Add up, for each row of points, what :func:`_in_windows` adds it to."""
    ends = 1 + len(cuts)
    for axis in range(len(cuts), 0, -1):
        cut, windows = cuts[axis - 1], upstream.shape[axis]
        shape = list(upstream.shape)
        shape[axis] = windows + count - 1
        if cut:
            shape.insert(ends, 2)
        rows = np.zeros(shape, upstream.dtype)
        for end, first in enumerate((0, count - 1) if cut else range(count)):
            part = (slice(None),) * axis + (slice(first, first + windows),)
            if cut:
                part += (slice(None),) * (ends - axis - 1) + (end,)
            rows[part] += upstream
        upstream = rows
    return upstream
