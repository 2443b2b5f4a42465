"""Figures of one Euler characteristic curve, and of Betti curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ecc_core._arrays import on_host
from ecc_core.plotting._figures import EULER, FAINT, named, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from ecc_core.results import BettiResult, CurveResult

MOST_LINES = 10
"""Curves that are drawn one by one."""
BAND = 0.05, 0.95  # quantiles
MOST_PEAK = 20
"""A peak of so many times the median hides the rest."""
BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1), "frameon": False}

Curve: TypeAlias = "CurveResult[Any] | tuple[ArrayLike, ArrayLike]"
"""An `EulerCurve`, or a pair of thresholds and values."""


def plot_curve(
    curve: Curve,
    ax: Axes | None = None,
    *,
    superlevel: bool | None = None,
    label: str | None = None,
    **line: Any,
) -> Axes:
    """Plot an Euler characteristic curve as a step function.

    A value holds from its threshold up to the next one; for superlevel sets, down to the previous
    one. On axes of its own, a curve that is flat but for a high peak, as of noise, is drawn on a
    scale that is linear near 0 and logarithmic beyond.

    Parameters
    ----------
    curve : EulerCurve
        A curve or a batch of curves. The last axis of the values is that of the thresholds. Up to
        10 curves are drawn as one line each; of more, the mean and the band that contains 90 % of
        them at each threshold. Infinite thresholds are not drawn.
    ax : matplotlib.axes.Axes, optional
        Axes to plot on. Default: those of a new figure, available as ``ax.figure``.
    superlevel : bool, optional
        Whether the curve is that of superlevel sets. Only needed for a pair of arrays, which is
        taken to be a sublevel curve by default.
    label : str, optional
        Name in the legend.
    **line
        Passed to `matplotlib.axes.Axes.plot`, such as ``color``.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If `superlevel` contradicts the curve.

    Examples
    --------
    >>> from ecc_core.plotting import plot_curve
    >>> ax = plot_curve(([0, 1, 2], [1, 3, 1]))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('threshold', 'Euler characteristic')
    """
    own = ax is None
    ax = ax or new_axes(2.4)
    label_axes(ax, curve)
    known = meaning_of(curve, superlevel)
    thresholds, values = (on_host(a) for a in tuple(curve)[-2:])
    finite = np.isfinite(thresholds)
    lines = values[..., finite].reshape(-1, np.count_nonzero(finite))
    drawn = draw_steps(ax, thresholds[finite], lines, known["superlevel"], label=label, **line)
    for artist in drawn:
        artist.ecc_meaning = known  # what is drawn over it must agree with
    if own:
        names = getattr(curve, "labels", None)
        if names is not None and label is None and 0 < len(drawn) == len(names):
            for artist, name in zip(drawn, on_host(names).tolist(), strict=True):
                artist.set_label(f"label {name}")
        scale_counts(ax)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(**BESIDE)
    return ax


def meaning_of(curve: Curve, superlevel: bool | None) -> dict[str, Any]:
    """Return the facts that curves must have in common; a pair knows what is given."""
    if isinstance(curve, tuple):
        return {"superlevel": bool(superlevel)}
    return curve._meaning(superlevel=superlevel)


def label_axes(ax: Axes, curve: Curve) -> None:
    """Say what the axes show, unless they do."""
    if not ax.get_xlabel():
        ax.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
        ax.set_xlabel(named("threshold", getattr(curve, "units", None)))
        ax.set_ylabel(EULER)
        ax.spines[["top", "right"]].set_visible(False)
        ax.locator_params(axis="y", integer=True)
        ax.margins(x=0.01)


def draw_steps(
    ax: Axes, thresholds: Any, lines: Any, superlevel: bool, label: str | None = None, **line: Any
) -> list[Any]:
    """Draw curves (k, n) as step functions; of many, the mean and a band. Return the lines."""
    side = "pre" if superlevel else "post"
    style = {"linewidth": 1.0, "solid_joinstyle": "miter", "drawstyle": f"steps-{side}", **line}
    count = len(lines)
    if count <= MOST_LINES:
        return ax.plot(thresholds, lines.T, label=label, **style)
    drawn = ax.plot(thresholds, lines.mean(axis=0), label=label or f"mean of {count}", **style)
    low, high = np.quantile(lines, BAND, axis=0)
    shade: Any = {"color": drawn[0].get_color(), "alpha": 0.2, "linewidth": 0, "step": side}
    ax.fill_between(thresholds, low, high, label=None if label else "90 % of them", **shade)
    return drawn


def scale_counts(ax: Axes) -> None:
    """Let a scale be logarithmic beyond small numbers if one peak hides all others."""
    drawn = [np.abs(line.get_ydata()) for line in ax.lines if line.get_drawstyle() != "default"]
    sizes: Any = np.concatenate([[0], *drawn])
    inside = sizes[sizes > 1]
    if inside.size and inside.max() > MOST_PEAK * np.median(inside):
        ax.set_yscale("symlog")


def plot_betti_curves(curves: BettiResult[Any], ax: Axes | None = None, **line: Any) -> Axes:
    """Plot each Betti number as a step function, on a scale that shows small and large ones.

    Parameters
    ----------
    curves : BettiCurves or RegionBettiCurves
        Of one image, a batch or regions; a colour for each dimension. Of more than 10 curves the
        mean and a band, as for :func:`plot_curve`.
    ax : matplotlib.axes.Axes, optional
        Axes to plot on. Default: those of a new figure, available as ``ax.figure``.
    **line
        Passed on to `matplotlib.axes.Axes.plot`, such as ``linewidth``.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> from ecc_core.plotting import plot_betti_curves
    >>> ax = plot_betti_curves(ecc.betti_curves(np.eye(5)))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['$b_0$', '$b_1$']
    """
    own = ax is None
    ax = ax or new_axes(2.4)
    for k, (label, curve) in enumerate(curves._quantities().items()):
        plot_curve(curve, ax, label="_", **{"color": f"C{k}", **line})
        ax.lines[-1].set_label(label)
    ax.set(xlabel=named("threshold", curves.units), ylabel="Betti number", yscale="symlog")
    ax.legend(**BESIDE if own else {"frameon": False})
    return ax
