"""Figures of several curves by name, and of Minkowski functionals: a panel for each quantity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ecc_core._arrays import on_host
from ecc_core._request.levels import distinct_values
from ecc_core.plotting._curves import (
    MOST_LINES,
    Curve,
    draw_steps,
    label_axes,
    meaning_of,
    plot_curve,
    scale_counts,
)
from ecc_core.plotting._figures import EULER, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from ecc_core.results import ComponentCurves, MinkowskiCurves, RegionMinkowski


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
    _describe(panels)
    figure.align_ylabels()
    handles: list[Any] = [lines[k] for k in sorted(lines)]
    names = [*curves]
    if len(curves) > MOST_LINES:
        handles, names = next(iter(panels.values())).get_legend_handles_labels()
    if handles:
        _name(figure, handles, names)
    return figure


def _draw_together(ax: Axes, curves: Sequence[Curve], superlevel: bool | None) -> None:
    """Draw the mean and the band of curves, each at the thresholds of all of them."""
    label_axes(ax, curves[0])
    above = meaning_of(curves[0], superlevel)["superlevel"]
    pairs = [tuple(map(on_host, tuple(curve)[-2:])) for curve in curves]
    levels = distinct_values(np.concatenate([at for at, _ in pairs]))
    levels = levels[np.isfinite(levels)]
    rows = []
    for at, values in pairs:
        flat = np.pad(values.reshape(-1, at.size), ((0, 0), (1, 1)))  # outside the set is empty
        place = np.searchsorted(at, levels, "left" if above else "right")
        rows.append(flat[:, place + above])
    draw_steps(ax, levels, np.concatenate(rows), above)


def plot_minkowski_curves(
    curves: MinkowskiCurves[Any] | RegionMinkowski[Any] | ComponentCurves[Any], **line: Any
) -> Figure:
    """Plot each Minkowski functional as a step function, one below the other.

    Parameters
    ----------
    curves : MinkowskiCurves, RegionMinkowski or ComponentCurves
    **line
        Passed on to `matplotlib.axes.Axes.plot`, such as ``linewidth``.

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
    _describe(panels)
    figure.align_ylabels()
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


def _describe(panels: Mapping[str, Axes]) -> None:
    """Label the axes of panels with curves, the thresholds at the last one only."""
    for label, ax in panels.items():
        if ax.get_xlabel():
            ax.set_ylabel(label)
            ax.label_outer()
        if label.startswith("$b_"):
            ax.set_yscale("symlog")
            ax.set_ylim(0, max(1, ax.get_ylim()[1]))
        if label == EULER:
            scale_counts(ax)


def _name(figure: Figure, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Add a legend at the right of the panels, for which the figure becomes wider."""
    legend = figure.legend(handles, [" "] * len(handles), loc="outside right upper", frameon=False)
    for text, name in zip(legend.texts, names, strict=True):
        text.set(text=name, parse_math=False)  # names may hold $ or begin with _
    width = legend.get_window_extent().width / figure.dpi
    figure.set_figwidth(figure.get_figwidth() + width)
