"""Figures of the false and the missing classes of a prediction, at their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import on_host
from ecc_core.plotting._figures import COLUMN, new_axes
from ecc_core.plotting._persistence import NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ecc_core.results._matching import BettiMatching
    from ecc_core.results._pairs import PersistencePairs

MARKERS = ("o", "s", "D")
"""The marker of each dimension."""
COLOURS = {"false": "#d95f02", "missing": "#1b9e77"}


def plot_matching(
    matching: BettiMatching, image: Any = None, ax: Axes | None = None, **markers: Any
) -> Axes:
    """Plot the classes that do not match at their places, over an image.

    A component is drawn where it is born, and a hole, tunnel or cavity where it is filled. Volumes
    are seen along their first axis.

    Parameters
    ----------
    matching : BettiMatching
    image : array, optional
        What to draw them on, such as the prediction; of a volume its largest values along the first
        axis.
    ax : matplotlib.axes.Axes, optional
        Where to plot. Default: the axes of a new figure, which is ``ax.figure`` of the result.
    **markers
        Passed to `matplotlib.axes.Axes.plot`.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> target = np.zeros((5, 8), bool)
    >>> target[1:4, 1:4] = target[1:4, 6] = True
    >>> prediction = target.copy()
    >>> prediction[2, 2] = False
    >>> ax = ecc.betti_matching(prediction, target).plot(prediction)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['false holes: 1']
    """
    ax = ax or new_axes(COLUMN)
    if image is not None:
        shown = on_host(image)
        ax.imshow(shown.max(axis=0) if shown.ndim == 3 else shown, cmap="gray")
    ndim = matching.prediction.ndim or 2
    for kind, pairs in (
        ("false", matching.unmatched_prediction),
        ("missing", matching.unmatched_target),
    ):
        for dimension in range(len(pairs.counts or ())):
            points = _places(pairs.select(dimension), dimension)
            if len(points):
                style = {
                    "color": COLOURS[kind],
                    "marker": MARKERS[dimension],
                    "linestyle": "none",
                    "fillstyle": "none",
                    "label": f"{kind} {NAMES[ndim][dimension]}: {len(points)}",
                }
                rows = points[:, -2] if points.shape[1] > 1 else np.zeros(len(points))
                ax.plot(points[:, -1], rows, **{**style, **markers})
    if ax.get_legend_handles_labels()[0]:
        ax.legend()
    return ax


def _places(pairs: PersistencePairs[Any], dimension: int) -> NDArray[np.int64]:
    """Return the places of classes: births of components, and deaths of others if they die."""
    births = on_host(pairs.birth_points)
    deaths = on_host(pairs.death_points)
    if dimension == 0:
        return births
    return np.where(deaths < 0, births, deaths)
