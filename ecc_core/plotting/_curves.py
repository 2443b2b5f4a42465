"""Figures of curves, of Betti curves and of Minkowski functionals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ecc_core._arrays import on_host
from ecc_core._request.levels import distinct_values
from ecc_core.plotting._figures import FAINT, named, new_axes, new_figure
from ecc_core.results._words import EULER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike

    from ecc_core.results import (
        BettiResult,
        CurveResult,
    )

MOST_LINES = 10
"""The most curves that are drawn one by one."""
BAND = 0.05, 0.95
"""The quantiles at the ends of the band in place of many curves."""
MOST_PEAK = 20
"""The largest peak, in multiples of the median, on a linear scale. Higher peaks hide the rest."""
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
    if not isinstance(curve, tuple):
        curve = curve.to_numpy()
    own = ax is None
    ax = ax or new_axes(2.4)
    _label_axes(ax, curve)
    known = _meaning_of(curve, superlevel)
    thresholds, values = (on_host(a) for a in tuple(curve)[-2:])
    finite = np.isfinite(thresholds)
    count = math.prod(values.shape[:-1])  # `reshape` cannot infer it if no threshold is finite.
    lines = values[..., finite].reshape(count, np.count_nonzero(finite))
    drawn = _draw_steps(ax, thresholds[finite], lines, known["superlevel"], label=label, **line)
    for artist in drawn:
        artist.ecc_meaning = known  # Curves that are drawn over it must agree with these facts.
    if own:
        names = getattr(curve, "labels", None)
        if names is not None and label is None and 0 < len(drawn) == len(names):
            for artist, name in zip(drawn, on_host(names).tolist(), strict=True):
                artist.set_label(f"label {name}")
        _scale_counts(ax)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(**BESIDE)
    return ax


def _meaning_of(curve: Curve, superlevel: bool | None) -> dict[str, Any]:
    """Return the facts in which curves must agree. Those of a pair are as given."""
    if isinstance(curve, tuple):
        return {"superlevel": bool(superlevel)}
    return curve._meaning(superlevel=superlevel)


def _label_axes(ax: Axes, curve: Curve) -> None:
    """Label axes that have no labels yet."""
    if not ax.get_xlabel():
        ax.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
        ax.set_xlabel(named("threshold", getattr(curve, "units", None)))
        ax.set_ylabel(EULER)
        ax.spines[["top", "right"]].set_visible(False)
        ax.locator_params(axis="y", integer=True)
        ax.margins(x=0.01)


def _draw_steps(
    ax: Axes, thresholds: Any, lines: Any, superlevel: bool, label: str | None = None, **line: Any
) -> list[Any]:
    """Draw curves (k, n) as step functions, or the mean and a band of many. Return the lines."""
    side: Literal["pre", "post"] = "pre" if superlevel else "post"
    style = {"linewidth": 1.0, "solid_joinstyle": "miter", "drawstyle": f"steps-{side}", **line}
    count = len(lines)
    if count <= MOST_LINES:
        return ax.plot(thresholds, lines.T, label=label, **style)
    drawn = ax.plot(thresholds, lines.mean(axis=0), label=label or f"mean of {count}", **style)
    low, high = np.quantile(lines, BAND, axis=0)
    ax.fill_between(
        thresholds,
        low,
        high,
        label=None if label else "90 % of them",
        color=drawn[0].get_color(),
        alpha=0.2,
        linewidth=0,
        step=side,
    )
    return drawn


def _scale_counts(ax: Axes) -> None:
    """Make a scale logarithmic beyond small numbers if a high peak hides everything else."""
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
        Curves of one image, a batch or regions, with a colour for each dimension. More than 10
        curves are drawn as their mean and a band, as by :func:`plot_curve`.
    ax : matplotlib.axes.Axes, optional
        Axes to plot on. Default: those of a new figure, available as ``ax.figure``.
    **line
        Passed to `matplotlib.axes.Axes.plot`, such as ``linewidth``.

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


def plot_curves(curves: Mapping[str, Curve], *, superlevel: bool | None = None) -> Figure:
    """Plot several named curves on the same axes.

    Parameters
    ----------
    curves : mapping of str to EulerCurve, BettiCurves or MinkowskiCurves
        Curves by name. There is a panel for each Betti number or functional. Up to 10 curves are
        listed in a legend beside the panels. Of more, the mean is drawn and the band that contains
        90 % of them at each threshold.
    superlevel : bool, optional
        As for :func:`plot_curve`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from ecc_core.plotting import plot_curves
    >>> figure = plot_curves({"a": ([0, 1], [2, 1]), "b": ([0, 1], [5, 1])})
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['a', 'b']
    """
    quantities = [_quantities(curve) for curve in curves.values()]
    figure, panels = _panels([label for found in quantities for label in found] or [EULER], 6.0)
    lines: dict[int, Line2D] = {}
    for label, ax in panels.items():
        drawn = {k: found[label] for k, found in enumerate(quantities) if label in found}
        if len(curves) > MOST_LINES:
            _draw_together(ax, [*drawn.values()], superlevel)
            continue
        for k, curve in drawn.items():
            plot_curve(curve, ax, superlevel=superlevel, color=f"C{k}", linewidth=1.2)
            lines[k] = ax.lines[-1]
    _describe(figure, panels)
    handles: list[Any] = [lines[k] for k in sorted(lines)]
    names = [*curves]
    if len(curves) > MOST_LINES:
        handles, names = next(iter(panels.values())).get_legend_handles_labels()
    if handles:  # The legend is to the right of the panels, and the figure becomes wider.
        blank = [" "] * len(handles)
        legend = figure.legend(handles, blank, loc="outside right upper", frameon=False)
        for text, name in zip(legend.texts, names, strict=True):
            text.set(text=name, parse_math=False)  # Names may contain $ or begin with _.
        width = legend.get_window_extent().width / figure.dpi
        figure.set_figwidth(figure.get_figwidth() + width)
    return figure


def _draw_together(ax: Axes, curves: Sequence[Curve], superlevel: bool | None) -> None:
    """Draw the mean and the band of curves at the union of their thresholds."""
    _label_axes(ax, curves[0])
    above = _meaning_of(curves[0], superlevel)["superlevel"]
    pairs = []
    for curve in curves:
        thresholds, values = tuple(curve)[-2:]
        pairs.append((on_host(thresholds), on_host(values)))
    levels = distinct_values(np.concatenate([at for at, _ in pairs]))
    levels = levels[np.isfinite(levels)]
    rows = []
    for at, values in pairs:
        # Beyond the thresholds on one side, the set is empty and the curve is 0.
        flat = np.pad(values.reshape(-1, at.size), ((0, 0), (1, 1)))
        place = np.searchsorted(at, levels, "left" if above else "right")
        rows.append(flat[:, place + 1 if above else place])
    _draw_steps(ax, levels, np.concatenate(rows), above)


def plot_minkowski_curves(curves: CurveResult[Any], **line: Any) -> Figure:
    """Plot each Minkowski functional as a step function, one below the other.

    Parameters
    ----------
    curves : MinkowskiCurves, RegionMinkowski or ComponentCurves
    **line
        Passed to `matplotlib.axes.Axes.plot`, such as ``linewidth``.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> from ecc_core.plotting import plot_minkowski_curves
    >>> figure = plot_minkowski_curves(ecc.minkowski_curves(np.eye(5)))
    >>> [ax.get_ylabel() for ax in figure.axes]
    ['area', 'perimeter', 'Euler characteristic']
    """
    quantities = _quantities(curves)
    figure, panels = _panels(quantities, 4.5)
    for label, curve in quantities.items():
        plot_curve(curve, panels[label], **line)
    _describe(figure, panels)
    return figure


def _quantities(curve: Curve) -> dict[str, Curve]:
    """Return the curve of each Betti number or functional by its label."""
    quantities = getattr(curve, "_quantities", lambda: {EULER: curve})
    return {**quantities()}


def _panels(labels: Iterable[str], width: float) -> tuple[Figure, dict[str, Axes]]:
    """Return a figure, and its panels by label, that of the Euler characteristic last."""
    order = sorted(dict.fromkeys(labels), key=lambda label: label == EULER)
    height = 3.6 if len(order) == 1 else 1.6 * len(order)
    figure = new_figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(len(order), sharex=True, squeeze=False)[:, 0]
    return figure, dict(zip(order, panels, strict=True))


def _describe(figure: Figure, panels: Mapping[str, Axes]) -> None:
    """Label the axes of panels, with thresholds below the last one only."""
    for label, ax in panels.items():
        if ax.get_xlabel():
            ax.set_ylabel(label)
            ax.label_outer()
        if label.startswith("$b_"):
            ax.set_yscale("symlog")
            ax.set_ylim(0, max(1, ax.get_ylim()[1]))
        if label == EULER:
            _scale_counts(ax)
    figure.align_ylabels()
