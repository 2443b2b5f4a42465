"""Figures of Euler characteristic curves, surfaces and transforms. Requires matplotlib (extra io).

Figures are created without pyplot, so they need no display and leave no global state.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._arrays import on_host
from ecc_core._optional import import_optional
from ecc_core._surface_plots import plot_surface
from ecc_core._transform_plots import plot_transform, plot_transform_polar, plot_transforms
from ecc_core.results import (
    BettiResult,
    CurveResult,
    EulerCurve,
    MinkowskiCurves,
    PersistencePairs,
    RegionMinkowski,
    agreed_superlevel,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = [
    "THRESHOLD_COLOURS",
    "plot_betti_curves",
    "plot_curve",
    "plot_curves",
    "plot_level_sets",
    "plot_minkowski_curves",
    "plot_persistence",
    "plot_surface",
    "plot_transform",
    "plot_transform_polar",
    "plot_transforms",
]

Curve = CurveResult[Any] | tuple[ArrayLike, ArrayLike]
"""An `EulerCurve`, or a pair of thresholds and values."""

THRESHOLD_COLOURS = ("#0072B2", "#D55E00", "#009E73")
"""Blue, vermilion and green of Okabe and Ito, which are safe for colour-blind readers."""

FAINT, PAPER = "#cfcfcf", "#f4f4f4"
CURVE_STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#b3b3b3", "linewidth": 2.4, "zorder": 2},
    {"color": "#1a1a1a", "linewidth": 0.8, "zorder": 2},
)  # both stay visible where one covers the other
MARKER_STYLE: dict[str, Any] = {
    "markersize": 3.4,
    "markeredgecolor": "white",
    "markeredgewidth": 0.5,
    "zorder": 3,
}
LEGEND_STYLE: dict[str, Any] = {
    "frameon": False,
    "handlelength": 0.9,
    "handletextpad": 0.35,
    "labelspacing": 0.36,
    "borderpad": 0.1,
    "borderaxespad": 0.0,
}
MOST_NAMED_CURVES = 10

# Points and inches, for one column of a journal
FONT_SIZE = 7.0
COLUMN = 3.5
LEFT, RIGHT, TOP, BOTTOM, GAP = 0.56, 0.05, 0.18, 0.36, 0.08
CAPTION = 0.36  # between the panels and the curves
BELOW_PANELS = CAPTION + 1.35 + BOTTOM


def plot_curve(
    curve: Curve,
    ax: "Axes | None" = None,
    *,
    superlevel: bool | None = None,
    label: str | None = None,
    **line: Any,
) -> "Axes":
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
        ax = _figure(figsize=(COLUMN, 2.4), layout="constrained").add_subplot()
    if not ax.get_xlabel():
        ax.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
        units = getattr(curve, "units", None)
        ax.set_xlabel(f"threshold ({units})" if units else "threshold")
        ax.set_ylabel("Euler characteristic")
        ax.spines[["top", "right"]].set_visible(False)
        ax.locator_params(axis="y", integer=True)
        ax.margins(x=0.01)
    superlevel = agreed_superlevel(curve, superlevel)
    thresholds, values = (on_host(a) for a in tuple(curve)[-2:])
    finite = np.isfinite(thresholds)
    lines = values[..., finite].reshape(-1, np.count_nonzero(finite))
    steps = "steps-pre" if superlevel else "steps-post"
    style = {"linewidth": 1.0, "solid_joinstyle": "miter", "drawstyle": steps, **line}
    ax.plot(thresholds[finite], lines.T, label=label, **style)
    return ax


def plot_betti_curves(curves: BettiResult, ax: "Axes | None" = None, **line: Any) -> "Axes":
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
    thresholds, values = on_host(curves.thresholds), on_host(curves.values)
    for k in range(values.shape[-2]):
        pair = EulerCurve(thresholds, values[..., k, :], superlevel=curves.superlevel)
        ax = plot_curve(pair, ax, **{"color": f"C{k}", **line})
        ax.lines[-1].set_label(f"$b_{k}$")
    assert ax is not None
    units = f" ({curves.units})" if curves.units else ""
    ax.set(xlabel=f"threshold{units}", ylabel="Betti number", yscale="symlog")
    ax.legend(frameon=False)
    return ax


def plot_minkowski_curves(curves: MinkowskiCurves | RegionMinkowski, **line: Any) -> "Figure":
    """Plot each Minkowski functional as a step function, one below the other.

    Parameters
    ----------
    curves : MinkowskiCurves or RegionMinkowski
    **line
        Passed on to `matplotlib.axes.Axes.plot`, such as ``linewidth``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> from ecc_core.plotting import plot_minkowski_curves
    >>> figure = plot_minkowski_curves(ecc.minkowski_curves(np.eye(5)))
    >>> [ax.get_ylabel() for ax in figure.axes]
    ['area', 'perimeter', 'euler']
    """
    thresholds, values = on_host(curves.thresholds), on_host(curves.values)
    figure = _figure(figsize=(4.5, 1.6 * len(curves.measures)), layout="constrained")
    panels = figure.subplots(len(curves.measures), sharex=True)
    for k, (name, ax) in enumerate(zip(curves.measures, panels, strict=True)):
        pair = EulerCurve(thresholds, values[..., k, :], superlevel=curves.superlevel)
        plot_curve(pair, ax, **line)
        ax.set(ylabel=name.replace("_", " "), xlabel="")
    units = f" ({curves.units})" if curves.units else ""
    panels[-1].set(xlabel=f"threshold{units}")
    return figure


def plot_persistence(pairs: PersistencePairs, ax: "Axes | None" = None, **markers: Any) -> "Axes":
    """Plot a persistence diagram: a point for each class, its death over its birth.

    The farther a point lies from the diagonal, the longer its class lasts. Classes that never die
    are triangles at the border.

    Parameters
    ----------
    pairs : PersistencePairs
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
        ax = _figure(figsize=(COLUMN, COLUMN), layout="constrained").add_subplot()
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


def plot_curves(curves: Mapping[str, Curve], *, superlevel: bool | None = None) -> "Figure":
    """Plot several named curves on the same axes.

    Parameters
    ----------
    curves : mapping of str to EulerCurve
        Curves by name. Up to ten curves are listed in a legend. More are drawn thin and without
        a legend, from dark to light in the order of the mapping.
    superlevel : bool, optional
        As for :func:`plot_curve`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> from ecc_core.plotting import plot_curves
    >>> figure = plot_curves({"a": ([0, 1], [2, 1]), "b": ([0, 1], [5, 1])})
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['a', 'b']
    """
    figure = _figure(figsize=(6.0, 3.6), layout="constrained")
    ax = figure.add_subplot()
    colormaps = import_optional("matplotlib", extra="io", purpose="plotting").colormaps
    colours = colormaps["viridis"](np.linspace(0, 0.85, len(curves)))
    few = len(curves) <= MOST_NAMED_CURVES
    style = {"linewidth": 1.2} if few else {"linewidth": 0.5, "alpha": 0.7}
    handles = []
    for curve, colour in zip(curves.values(), colours, strict=True):
        plot_curve(curve, ax, superlevel=superlevel, label=None, color=colour, **style)
        handles.append(ax.lines[-1])
    if few:
        legend = ax.legend(handles, [" "] * len(handles), frameon=False)
        for text, name in zip(legend.texts, curves, strict=True):
            text.set(text=name, parse_math=False)  # names may hold $ or begin with _
    return figure


def plot_level_sets(
    picture: ArrayLike,
    sets: Sequence[ArrayLike],
    thresholds: Sequence[float],
    curves: Mapping[int, Curve],
    *,
    title: str = "",
    figure: "Figure | SubFigure | None" = None,
) -> "Figure | SubFigure":
    """Plot an image, its sublevel sets at up to three thresholds, and its curves below them.

    Each threshold has the same colour as its set, and the Euler numbers of the set are shown
    below it.

    Parameters
    ----------
    picture : array_like
        The image, of shape (rows, columns), or a 2-D rendering of a volume; drawn in grey.
    sets : sequence of array_like
        The set at each threshold, of the same shape: boolean, or a rendering with values from 0
        (background) to 1 (darkest).
    thresholds : sequence of float
        One to three thresholds within the range of the curves.
    curves : mapping of int to EulerCurve
        One or two curves by the number of neighbours that points connect to, such as 8 and 4.
    title : str, optional
        Name of the image.
    figure : matplotlib.figure.Figure or matplotlib.figure.SubFigure, optional
        Figure to plot on. Default: a new figure with the width of a journal column.

    Returns
    -------
    matplotlib.figure.Figure or matplotlib.figure.SubFigure

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.plotting import plot_level_sets
    >>> image = np.array([[0, 2, 0], [2, 2, 2], [0, 2, 0]])
    >>> figure = plot_level_sets(image, [image <= 0], [0], {4: ([0, 1, 2], [4, 4, 1])})
    >>> [ax.get_title() for ax in figure.axes]
    ['', '', 'X ≤ 0']
    """
    panels = [np.asarray(panel, dtype=np.float32) for panel in (picture, *sets)]
    side = (COLUMN - LEFT - RIGHT - 3 * GAP) / 4
    height = side * panels[0].shape[0] / panels[0].shape[1]
    if figure is None:
        figure = _figure(figsize=(COLUMN, TOP + height + BELOW_PANELS))
    plot_top = TOP + height + CAPTION
    room = figure.bbox.height / figure.dpi - plot_top - BOTTOM
    ax = _axes_in_inches(figure, LEFT, plot_top, COLUMN - LEFT - RIGHT, room)
    for (neighbours, curve), style in zip(curves.items(), CURVE_STYLES, strict=False):
        plot_curve(curve, ax, label=f"{neighbours}-connected", **style)
    lines = ax.get_legend_handles_labels()[0]
    frames = [
        _axes_in_inches(figure, LEFT + i * (side + GAP), TOP, side, height)
        for i in range(len(panels))
    ]
    frames[0].imshow(panels[0], cmap="gray", interpolation="antialiased")
    frames[0].set_title(title, fontsize=FONT_SIZE, pad=3)
    for frame, panel, t, colour in zip(
        frames[1:], panels[1:], thresholds, THRESHOLD_COLOURS, strict=False
    ):
        numbers = {neighbours: _value_at(curve, t) for neighbours, curve in curves.items()}
        _draw_set(frame, panel, t, numbers, colour)
        ax.axvline(t, color=colour, linewidth=0.8, zorder=1)
        ax.plot([t] * len(numbers), list(numbers.values()), "o", color=colour, **MARKER_STYLE)
    for frame in frames:
        frame.set(xticks=[], yticks=[])
    ax.set_xlabel("threshold $t$", fontsize=FONT_SIZE, labelpad=2)
    ax.set_ylabel("Euler characteristic $\\chi$", fontsize=FONT_SIZE, labelpad=1)
    ax.tick_params(labelsize=FONT_SIZE - 1, width=0.5, length=2.5)
    ax.spines[:].set_linewidth(0.5)
    if max(map(abs, ax.get_ylim())) >= 10_000:
        ticker = import_optional("matplotlib.ticker", extra="io", purpose="plotting")
        ax.yaxis.set_major_formatter(ticker.EngFormatter(sep=""))  # 250k
    # The legend is below the picture, with each entry in line with its Euler numbers
    frames[0].legend(
        handles=lines,
        fontsize=FONT_SIZE - 0.8,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.045),
        **LEGEND_STYLE,
    )
    return figure


def _draw_set(
    frame: "Axes", panel: NDArray[Any], t: float, numbers: Mapping[int, int], colour: str
) -> None:
    colors = import_optional("matplotlib.colors", extra="io", purpose="plotting")
    shades = colors.LinearSegmentedColormap.from_list("shades", [PAPER, colour])
    frame.imshow(panel, cmap=shades, vmin=0, vmax=1, interpolation="antialiased")
    frame.set_title(f"X ≤ {t:g}".replace("-", "\u2212"), fontsize=FONT_SIZE, pad=3, color=colour)
    lines = [f"$\\chi_{{{neighbours}}} = {number}$" for neighbours, number in numbers.items()]
    frame.set_xlabel("\n".join(lines), fontsize=FONT_SIZE, labelpad=2, color=colour)
    frame.spines[:].set(color=colour, linewidth=0.8)


def _value_at(curve: Curve, threshold: float) -> int:
    thresholds, values = (np.asarray(a) for a in curve)
    return int(values[np.searchsorted(thresholds, threshold, side="right") - 1])


def _axes_in_inches(
    figure: "Figure | SubFigure", left: float, top: float, width: float, height: float
) -> "Axes":
    """Add axes at a distance from the figure's upper left corner."""
    full_width, full_height = figure.bbox.width / figure.dpi, figure.bbox.height / figure.dpi
    bottom = full_height - top - height
    ax: Axes = figure.add_axes(
        (left / full_width, bottom / full_height, width / full_width, height / full_height)
    )
    return ax


def _figure(**settings: Any) -> "Figure":
    figures = import_optional("matplotlib.figure", extra="io", purpose="plotting")
    figure: Figure = figures.Figure(**settings)
    return figure
