"""Figures of Euler characteristic surfaces."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ecc_core.plotting._figures import EULER, diverging_colours, named, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ecc_core.results import EulerSurface


def plot_surface(
    surface: "EulerSurface[Any]",
    ax: "Axes | None" = None,
    *,
    contours: int = 8,
    colorbar: bool = True,
    **mesh: Any,
) -> "Axes":
    """Plot a surface as a heat map with contours.

    The thresholds of the first image are on the x-axis, those of the second on the y-axis. Zero is
    white, positive values are red, and negative values are blue. The 1 % of the values that are
    furthest from zero may exceed the colour scale.

    Parameters
    ----------
    surface : EulerSurface
        Surface of one pair of images. Infinite thresholds are not drawn.
    ax : matplotlib.axes.Axes, optional
        Axes to plot on. Default: those of a new figure, available as ``ax.figure``.
    contours : int, default 8
        Largest number of contours; 0 for none.
    colorbar : bool, default True
        Whether to draw a colour bar.
    **mesh
        Passed to `matplotlib.axes.Axes.pcolormesh`, such as ``vmax``.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If the surface has batch axes, or there is nothing to draw.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> from ecc_core.plotting import plot_surface
    >>> rng = np.random.default_rng(0)
    >>> ax = plot_surface(ecc.euler_surface(*rng.random((2, 16, 16)), 8, 8))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('first threshold', 'second threshold')
    """
    surface = surface.to_numpy()
    first, second, values = surface
    if values.ndim != 2:
        raise ValueError(
            f"`surface` must be that of one pair of images, got values of shape {values.shape}"
        )
    drawn = np.isfinite(first), np.isfinite(second)
    x, y = first[drawn[0]], second[drawn[1]]
    heights = values[np.ix_(*drawn)].T
    if heights.size == 0:
        raise ValueError("`surface` must have finite thresholds, got none")
    ax = ax or new_axes(2.8)
    colours = diverging_colours(heights, mesh)
    image = ax.pcolormesh(x, y, heights, shading="nearest", **colours)
    if contours and min(heights.shape) > 1 and heights.min() < heights.max():
        ax.contour(x, y, heights, contours, colors="black", linewidths=0.4, alpha=0.6)
    ax.set_xlabel(named("first threshold", surface.units_first))
    ax.set_ylabel(named("second threshold", surface.units_second))
    if colorbar:
        ax.figure.colorbar(image, ax=ax, extend="both").set_label(EULER)
    return ax
