"""Persistence diagrams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ecc_core._arrays import on_host
from ecc_core.plotting._figures import COLUMN, FAINT, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ecc_core.results._topology import DiagramResult

__all__ = ["plot_persistence"]


def plot_persistence(pairs: DiagramResult[Any], ax: Axes | None = None, **markers: Any) -> Axes:
    """Plot a persistence diagram: a point for each class, its death over its birth.

    The farther a point lies from the diagonal, the longer its class lasts. Classes that never die
    are triangles at the border.

    Parameters
    ----------
    pairs : PersistencePairs or PersistentRegions
    ax : matplotlib.axes.Axes, optional
        Where to plot. Default: the axes of a new figure, which is ``ax.figure`` of the result.
    **markers
        Passed on to `matplotlib.axes.Axes.plot`, such as ``color``.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> from ecc_core.plotting import plot_persistence
    >>> ax = plot_persistence(ecc.persistence_pairs(np.array([0, 3, 1, 2, 0]), 0))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('birth', 'death')
    """
    if ax is None:
        ax = new_axes(COLUMN)
    births, deaths, lasts = (on_host(a) for a in (pairs.births, pairs.deaths, pairs.essential))
    ends = np.concatenate([births, deaths[~lasts]]).astype(np.float64)
    ends = ends[np.isfinite(ends)] if np.isfinite(ends).any() else np.array([0.0, 1.0])
    low, high = ends.min(), ends.max()
    top = low if pairs.superlevel else high
    ax.plot([low, high], [low, high], color=FAINT, linewidth=0.6, zorder=0)
    style = {"markersize": 3, "color": "C0", **markers}
    ax.plot(births[~lasts], deaths[~lasts], ".", **style)
    ax.plot(births[lasts], np.full(np.count_nonzero(lasts), top), "^", **style)
    ax.set(xlabel="birth", ylabel="death", aspect="equal")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
