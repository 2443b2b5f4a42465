"""Persistence diagrams and barcodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import on_host
from ecc_core._request.persistence import check_persistence
from ecc_core.plotting._figures import COLUMN, FAINT, named, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ecc_core.results._pairs import DiagramResult

Floats = NDArray[np.float64]

MOST_BARS = 200
NAMES = {
    1: ("components", "circle"),
    2: ("components", "holes", "torus"),
    3: ("components", "tunnels", "cavities", "torus"),
}
"""The names of classes by number of axes, then by dimension. The last is that of a periodic image.
"""


def plot_persistence(
    pairs: DiagramResult[Any],
    ax: Axes | None = None,
    *,
    min_persistence: float | None = None,
    **markers: Any,
) -> Axes:
    """Plot a persistence diagram: a point for each class, its death over its birth.

    The farther a point lies from the diagonal, the longer its class lasts. Classes that never die
    are triangles at the border, and each dimension has a colour.

    Parameters
    ----------
    pairs : PersistencePairs or PersistentRegions
    ax : matplotlib.axes.Axes, optional
        Where to plot. Default: the axes of a new figure, which is ``ax.figure`` of the result.
    min_persistence : float, optional
        Width of the band along the diagonal in which classes last less than that. Default: that of
        persistent regions, otherwise no band.
    **markers
        Passed to `matplotlib.axes.Axes.plot`, such as ``color``.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError, ValueError
        If `min_persistence` is not a number, or negative or NaN.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> from ecc_core.plotting import plot_persistence
    >>> ax = plot_persistence(ecc.persistence_pairs(np.array([0, 3, 1, 2, 0]), 0))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('birth', 'death')
    """
    least = getattr(pairs, "min_persistence", 0) if min_persistence is None else min_persistence
    least = check_persistence(least)
    ax = ax or new_axes(COLUMN)
    low, high = _extent(pairs)
    ax.plot([low, high], [low, high], color=FAINT, linewidth=0.6, zorder=0)
    if least > 0:
        side = -least if pairs.superlevel else least
        far_end = low if side < 0 else high
        corner = np.clip(far_end - side, low, high)
        values = np.array([low, corner, high])
        band = np.clip(values + side, low, high)
        ax.fill_between(values, values, band, color=FAINT, alpha=0.3, linewidth=0, zorder=0)
    for births, ends, lasts, look in _by_dimension(pairs):
        style = {"markersize": 3, **look, **markers}
        ax.plot(births[~lasts], ends[~lasts], ".", **style)
        style["label"] = None
        ax.plot(births[lasts], ends[lasts], "^", **style)
    ax.set(xlabel=named("birth", pairs.units), ylabel=named("death", pairs.units), aspect="equal")
    _finish(ax)
    return ax


def plot_barcode(pairs: DiagramResult[Any], ax: Axes | None = None, **lines: Any) -> Axes:
    """Plot a barcode: a bar from birth to death for each class, the longest at the top.

    Parameters
    ----------
    pairs : PersistencePairs or PersistentRegions
        What to draw: the 200 longest classes of each dimension.
    ax : matplotlib.axes.Axes, optional
        Where to plot. Default: the axes of a new figure, which is ``ax.figure`` of the result.
    **lines
        Passed to `matplotlib.axes.Axes.hlines`, such as ``linewidth``.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> from ecc_core.plotting import plot_barcode
    >>> ax = plot_barcode(ecc.persistence_pairs(np.array([0, 3, 1, 2, 0]), 0))
    >>> ax.get_xlabel(), len(ax.collections[0].get_segments())
    ('threshold', 3)
    """
    ax = ax or new_axes(COLUMN)
    row = 0
    for births, ends, _, look in _by_dimension(pairs):
        order = np.argsort(np.abs(ends - births), kind="stable")[::-1][:MOST_BARS]
        rows = row + np.arange(order.size)
        ax.hlines(rows, births[order], ends[order], **{"linewidth": 1, **look, **lines})
        row += order.size
    ax.invert_yaxis()
    ax.set(xlabel=named("threshold", pairs.units), yticks=[])
    _finish(ax)
    ax.spines["left"].set_visible(False)
    return ax


def _extent(pairs: DiagramResult[Any]) -> tuple[float, float]:
    """Return the least and the largest finite value of births and deaths."""
    births, deaths, lasts = (on_host(a) for a in (pairs.births, pairs.deaths, pairs.essential))
    ends = np.concatenate([births, deaths[~lasts]]).astype(np.float64)
    ends = ends[np.isfinite(ends)] if np.isfinite(ends).any() else np.array([0.0, 1.0])
    return float(ends.min()), float(ends.max())


def _by_dimension(
    pairs: DiagramResult[Any],
) -> Iterator[tuple[Floats, Floats, NDArray[np.bool_], dict[str, Any]]]:
    """Yield births and ends of the classes of each dimension, which never die, and their style.

    Classes that never die end at the last finite value.
    """
    births = on_host(pairs.births).astype(np.float64)
    lasts = on_host(pairs.essential)
    last = _extent(pairs)[0 if pairs.superlevel else 1]
    ends = np.where(lasts, last, on_host(pairs.deaths).astype(np.float64))
    given = getattr(pairs, "dimensions", None)
    dimensions = np.zeros(births.shape, int) if given is None else on_host(given)
    several = np.unique(dimensions)
    for k in several.tolist():
        names = NAMES.get(pairs.ndim or 0, ())
        style = {"color": f"C{k}"}
        if several.size > 1 and k < len(names):
            style["label"] = names[k]
        own = dimensions == k
        yield births[own], ends[own], lasts[own], style


def _finish(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
