"""What the statistics of groups return, and how it is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ecc_core.features._steps import Floats, check_level
from ecc_core.plotting._figures import FAINT, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CurveBand", "PermutationTest", "axes_of", "draw_band"]

HEIGHT = 2.4  # inches


class CurveBand(NamedTuple):
    """Thresholds, the mean curve, and a band around it.

    Of transforms, thresholds are heights, and the others have the shape (directions, heights).
    """

    thresholds: Floats
    mean: Floats
    lower: Floats
    upper: Floats

    def plot(self, ax: Axes | None = None, **line: Any) -> Axes:
        """Plot the mean curve and the band.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. Default: those of a new figure, available as ``ax.figure``.
        **line
            What `matplotlib.axes.Axes.plot` takes.

        Returns
        -------
        matplotlib.axes.Axes
        """
        ax = axes_of("mean curve") if ax is None else ax
        return draw_band(ax, self.thresholds, self.mean, self.lower, self.upper, **line)


class PermutationTest(NamedTuple):
    """The distance between groups, its p-value, and where they differ.

    Of transforms, thresholds are heights, and what is (n,) has the shape (directions, heights).
    """

    statistic: float
    """Distance between the mean curves."""
    pvalue: float
    null: Floats
    """(k,), the distances of the permutations."""
    thresholds: Floats
    """(n,), of both groups."""
    difference: Floats
    """(n,), mean curve of the first group minus that of the second; of more than two groups the
    standard deviation of their means."""
    pvalues: Floats
    """(n,), p-values of the thresholds, corrected for their number."""
    effect_size: Floats
    """(n,), the difference in standard deviations (Cohen's d; f for more than two groups): those of
    the units within groups, or of the differences of pairs."""
    units: tuple[int, ...]
    """Numbers of units of the groups; the same for pairs."""
    exact: bool
    """Whether all permutations were taken, and not random ones."""

    def plot(self, ax: Axes | None = None, *, level: float = 0.05, **line: Any) -> Axes:
        """Plot the difference of the mean curves, with the thresholds at which groups differ.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. Default: those of a new figure, available as ``ax.figure``.
        level : float, default 0.05
            Thresholds with a corrected p-value of at most this are shaded.
        **line
            What `matplotlib.axes.Axes.plot` takes.

        Returns
        -------
        matplotlib.axes.Axes
        """
        ax = axes_of("difference of means") if ax is None else ax
        ax.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
        ax.plot(self.thresholds, self.difference.T, **line)
        where = np.atleast_2d(self.pvalues <= check_level(level)).any(axis=0)
        across: Any = {"transform": ax.get_xaxis_transform(), "step": "mid", "zorder": 0}
        ax.fill_between(self.thresholds, 0, 1, where=where, color=FAINT, alpha=0.4, lw=0, **across)
        return ax


def draw_band(
    ax: Axes, thresholds: Floats, middle: Floats, lower: Floats, upper: Floats, **line: Any
) -> Axes:
    """Draw a curve and the band around it in one colour."""
    drawn = ax.plot(thresholds, middle.T, **line)
    for line2d, low, high in zip(drawn, np.atleast_2d(lower), np.atleast_2d(upper), strict=True):
        ax.fill_between(thresholds, low, high, color=line2d.get_color(), alpha=0.2, lw=0)
    return ax


def axes_of(quantity: str) -> Axes:
    """Return the only axes of a new figure."""
    ax = new_axes(HEIGHT)
    ax.set(xlabel="threshold", ylabel=quantity)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
