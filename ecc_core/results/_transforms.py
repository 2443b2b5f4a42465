"""Results of transforms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ecc_core._arrays import on_host
from ecc_core.results._base import ArrayT, RegionResult, Result
from ecc_core.results._facts import as_floats, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class TransformResult(Result[ArrayT]):
    """Curves over the heights along directions, with the facts of their transform."""

    directions: ArrayT
    heights: ArrayT

    def __post_init__(self) -> None:
        plain(self, spacing=as_floats, smooth=bool)

    def _axes(self) -> dict[str, Any]:
        return {"direction": self.directions, "height": self.heights}

    def _meaning(self, functional: str | None = None) -> dict[str, Any]:
        facts = self.facts
        known = ("connectivity", "spacing", "normalize", "smooth", "weighted", "units", "axes")
        return {name: facts[name] for name in known if facts.get(name) is not None}


@dataclass(frozen=True, eq=False, repr=False)
class EulerTransform(TransformResult[ArrayT]):
    """Directions, heights, and the curve of each direction.

    Unpacks into its three arrays.

    Attributes
    ----------
    directions : (k, d) float64 array
        Unit vectors, their components along the axes of the image in order.
    heights : (n,) float64 array
        In the units of `spacing`.
    values : (k, n) array
        int64, and float64 for weights that are floats and for smooth transforms.
    connectivity : int or None
        As for :func:`ecc_core.euler_transform`. None if unknown.
    spacing : tuple of float or None
        The distance between neighbouring points along each axis. None if unknown.
    weighted : bool
        Whether the values are sums of weights.
    smooth : bool
        Whether this is what :func:`ecc_core.smooth_transform` returns.
    units : str or None
        Unit of the heights and of `spacing`, such as ``"millimeter"``. Set by the command and the
        plugin, which know it; elsewhere set it with :func:`dataclasses.replace`.
    axes : str or None
        A letter for each component of the directions, such as ``"ZYX"``. Set like `units`.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> found = ecc.euler_transform(np.ones((3, 3), bool), directions=4, heights=[-1.5, 0.0, 1.5])
    >>> found.values.shape, found.spacing
    ((4, 3), (1.0, 1.0))
    >>> directions, heights, values = found
    """

    directions: ArrayT
    heights: ArrayT
    values: ArrayT
    connectivity: int | None = None
    spacing: tuple[float, ...] | None = None
    weighted: bool = False
    smooth: bool = False
    units: str | None = None
    axes: str | None = None
    _fields: ClassVar = ("directions", "heights", "values")

    def plot(self, ax: Axes | None = None, *, colorbar: bool = True, **mesh: Any) -> Axes:
        """Plot the transform as a heat map; see :func:`ecc_core.plotting.plot_transform`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. Default: those of a new figure, available as ``ax.figure``.
        colorbar : bool, default True
        **mesh
            What `matplotlib.axes.Axes.pcolormesh` takes.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from ecc_core.plotting import plot_transform

        return plot_transform(self, ax, colorbar=colorbar, **mesh)


@dataclass(frozen=True, eq=False, repr=False)
class RegionTransforms(RegionResult[EulerTransform[ArrayT], ArrayT], TransformResult[ArrayT]):
    """Label ids, directions, heights, and the transform of each label.

    Unpacks into its four arrays.

    Attributes
    ----------
    labels : (m,) array
        The ids, increasing, in the dtype of the label image.
    directions : (k, d) float64 array
        Unit vectors, their components along the axes of the image in order.
    heights : (n,) float64 array
        In the units of `spacing`, or of the regions' radii.
    values : (m, k, n) int64 array
    normalize : {"radius", None}
        As for :func:`ecc_core.region_transforms`.
    connectivity, spacing, smooth, units, axes
        As in :class:`ecc_core.EulerTransform`.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> labels = np.array([[1, 1, 0, 2], [1, 1, 0, 2]])
    >>> found = ecc.region_transforms(labels, directions=4, heights=3)
    >>> found.labels, found.values.shape
    (array([1, 2]), (2, 4, 3))
    >>> found.select(2).values.shape
    (4, 3)
    """

    labels: ArrayT
    directions: ArrayT
    heights: ArrayT
    values: ArrayT
    connectivity: int | None = None
    spacing: tuple[float, ...] | None = None
    normalize: str | None = None
    smooth: bool = False
    units: str | None = None
    axes: str | None = None
    _fields: ClassVar = ("labels", "directions", "heights", "values")
    _one: ClassVar = EulerTransform
    _most_drawn: ClassVar = 4

    def plot(self) -> Figure:
        """Plot every label as a heat map; see :func:`ecc_core.plotting.plot_transforms`.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from ecc_core.plotting import plot_transforms

        labels = on_host(self.labels).tolist()
        named = {f"label {label}": self.select(label) for label in labels}
        return plot_transforms(named)
