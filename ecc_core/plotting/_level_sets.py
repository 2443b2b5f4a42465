"""Figures of an image, its level sets and its curves, for a column of a journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._optional import import_optional
from ecc_core.plotting._curves import Curve, plot_curve
from ecc_core.plotting._figures import COLUMN, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

THRESHOLD_COLOURS = ("#0072B2", "#D55E00", "#009E73")
"""Blue, vermilion and green of Okabe and Ito, which are safe for colour-blind readers."""

PAPER = "#f4f4f4"
CURVE_STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#b3b3b3", "linewidth": 2.4, "zorder": 2},
    {"color": "#1a1a1a", "linewidth": 0.8, "zorder": 2},
)
"""The first curve is wider, so that both stay visible if the second one covers it."""
MARKER_STYLE: dict[str, Any] = {
    "markersize": 3.4,
    "markeredgecolor": "white",
    "markeredgewidth": 0.5,
    "zorder": 3,
}
# The font size is in points, lengths are in inches.
FONT_SIZE = 7.0
LEFT = 0.56
RIGHT = 0.05
TOP = 0.18
BOTTOM = 0.36
GAP = 0.08
CAPTION = 0.36  # The space between the panels and the curves.
BELOW_PANELS = CAPTION + 1.35 + BOTTOM


def plot_level_sets(
    picture: ArrayLike,
    sets: Sequence[ArrayLike],
    thresholds: Sequence[float],
    curves: Mapping[int, Curve],
    *,
    title: str = "",
    figure: Figure | SubFigure | None = None,
) -> Figure | SubFigure:
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
        figure = new_figure(figsize=(COLUMN, TOP + height + BELOW_PANELS))
    plot_top = TOP + height + CAPTION
    room = figure.bbox.height / figure.dpi - plot_top - BOTTOM
    ax = _axes_in_inches(figure, LEFT, top=plot_top, width=COLUMN - LEFT - RIGHT, height=room)
    for (neighbours, curve), style in zip(curves.items(), CURVE_STYLES, strict=False):
        plot_curve(curve, ax, label=f"{neighbours}-connected", **style)
    lines = ax.get_legend_handles_labels()[0]
    frames = [
        _axes_in_inches(figure, LEFT + i * (side + GAP), top=TOP, width=side, height=height)
        for i in range(len(panels))
    ]
    frames[0].imshow(panels[0], cmap="gray", interpolation="antialiased")
    frames[0].set_title(title, fontsize=FONT_SIZE, pad=3)
    for frame, panel, t, colour in zip(
        frames[1:], panels[1:], thresholds, THRESHOLD_COLOURS, strict=False
    ):
        numbers = {}
        for neighbours, curve in curves.items():
            at, values = map(np.asarray, curve)
            numbers[neighbours] = int(values[np.searchsorted(at, t, side="right") - 1])
        _draw_set(frame, panel, t=t, numbers=numbers, colour=colour)
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
        ax.yaxis.set_major_formatter(ticker.EngFormatter(sep=""))  # It writes 250k.
    # The legend is below the picture, with each entry in line with its Euler numbers.
    frames[0].legend(
        handles=lines,
        fontsize=FONT_SIZE - 0.8,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.045),
        frameon=False,
        handlelength=0.9,
        handletextpad=0.35,
        labelspacing=0.36,
        borderpad=0.1,
        borderaxespad=0.0,
    )
    return figure


def _draw_set(
    frame: Axes, panel: NDArray[Any], t: float, numbers: Mapping[int, int], colour: str
) -> None:
    colors = import_optional("matplotlib.colors", extra="io", purpose="plotting")
    shades = colors.LinearSegmentedColormap.from_list("shades", [PAPER, colour])
    frame.imshow(panel, cmap=shades, vmin=0, vmax=1, interpolation="antialiased")
    frame.set_title(f"X ≤ {t:g}".replace("-", "\u2212"), fontsize=FONT_SIZE, pad=3, color=colour)
    lines = [f"$\\chi_{{{neighbours}}} = {number}$" for neighbours, number in numbers.items()]
    frame.set_xlabel("\n".join(lines), fontsize=FONT_SIZE, labelpad=2, color=colour)
    frame.spines[:].set(color=colour, linewidth=0.8)


def _axes_in_inches(
    figure: Figure | SubFigure, left: float, top: float, width: float, height: float
) -> Axes:
    """Add axes at a distance from the figure's upper left corner."""
    full_width = figure.bbox.width / figure.dpi
    full_height = figure.bbox.height / figure.dpi
    bottom = full_height - top - height
    return figure.add_axes(
        (left / full_width, bottom / full_height, width / full_width, height / full_height)
    )
