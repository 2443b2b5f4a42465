"""The result of a surface over the thresholds of two images."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ecc_core._request.batch_axes import BatchAxis, as_batch_axes
from ecc_core.results._base import ArrayT, Result
from ecc_core.results._facts import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ecc_core._request.filtration import Filtration


@dataclass(frozen=True, eq=False, repr=False)
class EulerSurface(Result[ArrayT]):
    """The thresholds of two images, and the Euler characteristic at each pair of them.

    Unpacks into its three arrays.

    Attributes
    ----------
    thresholds_first : (n,) array
        Increasing.
    thresholds_second : (m,) array
        Increasing.
    values : (..., n, m) int64 array
        ``values[..., i, j]`` belongs to the intersection of the sublevel (or superlevel) sets at
        ``thresholds_first[i]`` and ``thresholds_second[j]``. Batch axes lead.
    connectivity : int or None
        As for :func:`ecc_core.euler_surface`. None if unknown.
    superlevel : (bool, bool)
        Whether the sets are those of points above the threshold, for the first and for the second
        image.
    ndim : int or None
        Number of spatial axes of the images. None if unknown.
    units_first, units_second : str or None
        Units of the thresholds, for the labels of axes: those of DataArrays of xarray. Elsewhere
        set them with :func:`dataclasses.replace`.
    coordinates : tuple
        As in :class:`ecc_core.EulerCurve`.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> ecc.euler_surface(np.eye(3), np.arange(9).reshape(3, 3), [0, 1], [2, 5, 8])
    EulerSurface(thresholds_first=[0, 1], thresholds_second=[2, 5, 8], values=<int64 (2, 3)>, \
connectivity=2)
    """

    thresholds_first: ArrayT
    thresholds_second: ArrayT
    values: ArrayT
    connectivity: int | None = None
    superlevel: tuple[bool, bool] = (False, False)
    ndim: int | None = None
    units_first: str | None = None
    units_second: str | None = None
    coordinates: tuple[BatchAxis, ...] = ()
    _fields: ClassVar = ("thresholds_first", "thresholds_second", "values")

    def __post_init__(self) -> None:
        plain(self, superlevel=_as_flags, coordinates=as_batch_axes)

    def _axes(self) -> dict[str, Any]:
        return {
            "threshold_first": self.thresholds_first,
            "threshold_second": self.thresholds_second,
        }

    def _preview(self) -> Self:
        values = self.values
        return replace(self, values=values.reshape((-1, *values.shape[-2:]))[0])

    def plot(
        self, ax: Axes | None = None, *, contours: int = 8, colorbar: bool = True, **mesh: Any
    ) -> Axes:
        """Plot the surface as a heat map; see :func:`ecc_core.plotting.plot_surface`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. Default: those of a new figure, available as ``ax.figure``.
        contours : int, default 8
            Number of contour lines.
        colorbar : bool, default True
        **mesh
            What `matplotlib.axes.Axes.pcolormesh` takes.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from ecc_core.plotting import plot_surface

        return plot_surface(self, ax, contours=contours, colorbar=colorbar, **mesh)


def _as_flags(flags: Any) -> tuple[bool, ...]:
    return tuple(bool(flag) for flag in flags)


def surface_facts(filtrations: tuple[Filtration, Filtration]) -> dict[str, Any]:
    """Return the facts of the surface of two filtrations."""
    first, second = filtrations
    return {
        "ndim": first.ndim,
        "connectivity": int(first.connectivity),
        "superlevel": (first.superlevel, second.superlevel),
    }
