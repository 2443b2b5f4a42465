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

__all__ = ["Curve", "plot_betti_curves", "plot_curve"]

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
    one.

    Parameters
    ----------
    curve : EulerCurve
        A curve or a batch of curves, which are drawn as one line each. The last axis of the values
        is that of the thresholds. Infinite thresholds are not drawn.
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
    ImportError
        If matplotlib is not installed.
    ValueError
        If `superlevel` contradicts the curve.

    Examples
    --------
    >>> from ecc_core.plotting import plot_curve
    >>> ax = plot_curve(([0, 1, 2], [1, 3, 1]))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('threshold', 'Euler characteristic')
    """
    if ax is None:
        ax = new_axes(2.4)
    if not ax.get_xlabel():
        ax.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
        ax.set_xlabel(named("threshold", getattr(curve, "units", None)))
        ax.set_ylabel(EULER)
        ax.spines[["top", "right"]].set_visible(False)
        ax.locator_params(axis="y", integer=True)
        ax.margins(x=0.01)
    meaning = getattr(curve, "_meaning", None)  # a pair knows what is given
    known = meaning(superlevel=superlevel) if meaning else {"superlevel": bool(superlevel)}
    thresholds, values = (on_host(a) for a in tuple(curve)[-2:])
    finite = np.isfinite(thresholds)
    lines = values[..., finite].reshape(-1, np.count_nonzero(finite))
    steps = "steps-pre" if known["superlevel"] else "steps-post"
    style = {"linewidth": 1.0, "solid_joinstyle": "miter", "drawstyle": steps, **line}
    drawn: list[Any] = ax.plot(thresholds[finite], lines.T, label=label, **style)
    for artist in drawn:
        artist.ecc_meaning = known  # what is drawn over it must agree with
    return ax


def plot_betti_curves(curves: BettiResult[Any], ax: Axes | None = None, **line: Any) -> Axes:
    """Plot each Betti number as a step function, on a scale that shows small and large ones.

    Parameters
    ----------
    curves : BettiCurves or RegionBettiCurves
        Of one image, a batch or regions; a colour for each dimension.
    ax : matplotlib.axes.Axes, optional
        Axes to plot on. Default: those of a new figure, available as ``ax.figure``.
    **line
        Passed on to `matplotlib.axes.Axes.plot`, such as ``linewidth``.

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
    >>> from ecc_core.plotting import plot_betti_curves
    >>> ax = plot_betti_curves(ecc.betti_curves(np.eye(5)))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['$b_0$', '$b_1$']
    """
    own = ax is None
    for k, (label, curve) in enumerate(curves._quantities().items()):
        ax = plot_curve(curve, ax, **{"color": f"C{k}", **line})
        ax.lines[-1].set_label(label)
    assert ax is not None
    ax.set(xlabel=named("threshold", curves.units), ylabel="Betti number", yscale="symlog")
    beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if own else {}
    ax.legend(frameon=False, **beside)
    return ax
