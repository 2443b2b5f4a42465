"""Heat maps of Euler characteristic surfaces and transforms."""

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core.plotting._figures import FAINT, named, new_axes, new_figure
from ecc_core.results._words import EULER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.projections.polar import PolarAxes

    from ecc_core.results import EulerSurface, EulerTransform

PANEL = 2.2  # The side of a panel, in inches.
PANELS_A_ROW = 4


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
    x = first[drawn[0]]
    y = second[drawn[1]]
    heights = values[np.ix_(*drawn)].T
    if heights.size == 0:
        raise ValueError("`surface` must have finite thresholds, got none")
    ax = ax or new_axes(2.8)
    image = ax.pcolormesh(x, y, heights, shading="nearest", **_colours(heights, mesh))
    if contours and min(heights.shape) > 1 and heights.min() < heights.max():
        ax.contour(x, y, heights, contours, colors="black", linewidths=0.4, alpha=0.6)
    ax.set_xlabel(named("first threshold", surface.units_first))
    ax.set_ylabel(named("second threshold", surface.units_second))
    if colorbar:
        ax.figure.colorbar(image, ax=ax, extend="both").set_label(EULER)
    return ax


def plot_transform(
    transform: "EulerTransform[Any]",
    ax: "Axes | None" = None,
    *,
    colorbar: bool = True,
    **mesh: Any,
) -> "Axes":
    """Plot a transform as a heat map with directions on the x-axis and heights on the y-axis.

    Zero is white, positive values are red, and negative values are blue. The 1 % of the values
    that are furthest from zero may exceed the colour scale.

    Parameters
    ----------
    transform : EulerTransform
        Transform of one object; may be smooth. Infinite heights are not drawn.
    ax : matplotlib.axes.Axes, optional
        Axes to plot on. Default: those of a new figure, available as ``ax.figure``.
    colorbar : bool, default True
        Whether to draw a colour bar.
    **mesh
        Passed to `matplotlib.axes.Axes.pcolormesh`, such as ``vmax``.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> from ecc_core.plotting import plot_transform
    >>> ax = plot_transform(ecc.euler_transform(np.ones((4, 6), bool)))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('direction (degrees)', 'height')
    """
    ax = ax or new_axes(2.6)
    transform = transform.to_numpy()
    heights, values = _finite(transform)
    angles = _angles(transform.directions)
    places = np.arange(len(values)) if angles is None else np.degrees(angles)
    drawn = ax.pcolormesh(places, heights, values.T, shading="nearest", **_colours(values, mesh))
    ax.set_xlabel("direction" if angles is None else "direction (degrees)")
    ax.set_ylabel(named("height", transform.units))
    if angles is not None:
        ax.locator_params(axis="x", steps=[1, 4.5, 9, 10])
    if colorbar:
        ax.figure.colorbar(drawn, ax=ax, extend="both").set_label(_quantity(transform))
    return ax


def plot_transform_polar(
    transform: "EulerTransform[Any]",
    ax: "PolarAxes | None" = None,
    *,
    colorbar: bool = True,
    **mesh: Any,
) -> "PolarAxes":
    """Plot the transform of a 2-D image around a circle.

    Directions are drawn as they point in the displayed image, with the first axis downwards
    and the second to the right. The lowest height is the centre, the highest the rim.

    Parameters
    ----------
    transform : EulerTransform
        Transform of one 2-D object, with directions evenly spaced on the circle.
    ax : matplotlib.projections.polar.PolarAxes, optional
        Axes to plot on. Default: those of a new figure, available as ``ax.figure``.
    colorbar : bool, default True
        Whether to draw a colour bar.
    **mesh
        Passed to `matplotlib.axes.Axes.pcolormesh`, such as ``vmax``.

    Returns
    -------
    matplotlib.projections.polar.PolarAxes

    Raises
    ------
    ValueError
        If the directions are not evenly spaced on the circle.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> from ecc_core.plotting import plot_transform_polar
    >>> ax = plot_transform_polar(ecc.euler_transform(np.ones((4, 6), bool)))
    >>> ax.name
    'polar'
    """
    transform = transform.to_numpy()
    angles = _angles(transform.directions)
    if angles is None:
        raise ValueError(
            "`transform` must have directions that are evenly spaced on the circle, "
            f"got directions of shape {transform.directions.shape}"
        )
    if ax is None:
        ax = cast("PolarAxes", new_axes(2.6, projection="polar"))
    heights, values = _finite(transform)
    # Counter-clockwise from the right: rows run down, so their axis points to -90 degrees.
    step = 2 * np.pi / len(angles)
    edges = np.append(angles, angles[-1] + step) - step / 2 - np.pi / 2
    rings = np.append(heights, 2 * heights[-1] - heights[-2])
    drawn = ax.pcolormesh(edges, rings, values.T, shading="flat", **_colours(values, mesh))
    ax.set_rorigin(rings[0])
    ax.set_rlim(rings[0], rings[-1])
    ax.set_xticks([0, np.pi / 2, np.pi, 3 * np.pi / 2], ["right", "up", "left", "down"])
    ax.set_yticks([])
    ax.grid(False)
    ax.spines["polar"].set_color(FAINT)
    if colorbar:
        ax.figure.colorbar(drawn, ax=ax, pad=0.1, extend="both").set_label(_quantity(transform))
    return ax


def plot_transforms(
    transforms: "Mapping[str, EulerTransform[Any]]", shapes: "Mapping[str, ArrayLike] | None" = None
) -> "Figure":
    """Plot several transforms side by side with a common colour scale.

    Parameters
    ----------
    transforms : mapping of str to EulerTransform
        Transforms of single objects by name.
    shapes : mapping of str to (m, n) or (p, m, n) array, optional
        The objects by the same names, which are drawn above their transforms; volumes as seen along
        the first axis.

    Returns
    -------
    matplotlib.figure.Figure
        A heat map of each transform, and a polar plot below it if its directions are evenly spaced
        on the circle.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> from ecc_core.plotting import plot_transforms
    >>> shapes = {"bar": np.ones((2, 9), bool), "square": np.ones((5, 5), bool)}
    >>> figure = plot_transforms({name: ecc.euler_transform(s) for name, s in shapes.items()})
    >>> [ax.get_title() for ax in figure.axes[:4]]
    ['bar', '', 'square', '']
    """
    transforms = {name: transform.to_numpy() for name, transform in transforms.items()}
    on_circle = [_angles(transform.directions) is not None for transform in transforms.values()]
    columns = min(max(len(transforms), 1), PANELS_A_ROW)
    panels = ["map"]  # The panels of an object, one below the other.
    if shapes is not None:
        panels.append("shape")
    if any(on_circle):
        panels.append("circle")
    each = len(panels)
    rows = each * ceil_div(max(len(transforms), 1), columns)
    figure = new_figure(figsize=(PANEL * columns + 0.8, PANEL * rows), layout="constrained")
    values = [transform.values.ravel() for transform in transforms.values()]
    colours = _colours(np.concatenate(values), {}) if values else {}
    axes: list[Axes] = []
    for i, (name, transform) in enumerate(transforms.items()):
        place = each * columns * (i // columns) + i % columns + 1
        if shapes is not None:
            top = figure.add_subplot(rows, columns, place)
            seen = np.asarray(shapes[name])
            seen = seen.max(axis=0) if seen.ndim == 3 else seen
            down, across = (transform.spacing or (1.0, 1.0))[-2:]
            top.imshow(seen, cmap="gray_r", vmin=0, interpolation="nearest", aspect=down / across)
            top.set(xticks=[], yticks=[])
            place += columns
        flat = figure.add_subplot(rows, columns, place)
        axes.append(plot_transform(transform, flat, colorbar=False, **colours))
        (flat if shapes is None else top).set_title(name, parse_math=False)
        if on_circle[i]:
            flat.set_xticks([0, 180])
            around = figure.add_subplot(rows, columns, place + columns, projection="polar")
            polar = cast("PolarAxes", around)
            axes.append(plot_transform_polar(transform, polar, colorbar=False, **colours))
    if axes:
        bar = figure.colorbar(axes[0].collections[0], ax=axes, extend="both", shrink=0.6)
        some = next(iter(transforms.values()))
        bar.set_label(_quantity(some))
    return figure


def _colours(values: NDArray[Any], mesh: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a diverging colour scale that a few extreme values do not affect."""
    largest = 1.0
    if values.size:
        largest = float(np.quantile(np.abs(values), 0.99))
    if values.dtype.kind in "iu" or largest == 0:
        largest = max(1.0, np.ceil(largest))
    return {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest, **mesh}


def _quantity(transform: "EulerTransform[Any]") -> str:
    """Return the name of the values of a transform."""
    if transform.smooth:
        return "smooth transform"
    return f"weighted {EULER}" if transform.weighted else EULER


def _finite(transform: "EulerTransform[Any]") -> tuple[NDArray[Any], NDArray[Any]]:
    finite = np.isfinite(transform.heights)
    return transform.heights[finite], transform.values[:, finite]


def _angles(directions: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return increasing angles from the first axis, None unless evenly spaced on the circle."""
    n, ndim = directions.shape
    if ndim != 2 or n < 2:
        return None
    angles = np.unwrap(np.arctan2(directions[:, 1], directions[:, 0]))
    return angles if np.allclose(np.diff(angles), 2 * np.pi / n) else None
