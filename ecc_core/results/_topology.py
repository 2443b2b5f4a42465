"""Results of Betti curves and of persistence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import on_host
from ecc_core.plotting import plot_betti_curves, plot_persistence
from ecc_core.results._base import ArrayT, RegionResult, Result
from ecc_core.results._curves import CurveResult, each_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

__all__ = ["BettiCurves", "BettiResult", "PersistencePairs", "RegionBettiCurves"]


class BettiResult(CurveResult[ArrayT]):
    """Betti numbers over thresholds; the last axes of the values are dimension and threshold."""

    units: str | None
    _quantity: ClassVar = "betti_number"

    @property
    def euler(self) -> ArrayT:
        """Euler characteristic at each threshold, (..., n) int64: the alternating sum."""
        values: Any = self.values
        total: ArrayT = values[..., 0::2, :].sum(-2) - values[..., 1::2, :].sum(-2)
        return total

    def _axes(self) -> dict[str, Any]:
        return {"dimension": np.arange(len(self._functionals)), "threshold": self.thresholds}

    @property
    def _functionals(self) -> tuple[str, ...]:
        values: Any = self.values
        return tuple(f"b{k}" for k in range(values.shape[-2]))

    def _quantities(self) -> Mapping[str, CurveResult[Any]]:
        return each_quantity(self, [f"$b_{k}$" for k in range(len(self._functionals))])

    def plot(self, ax: Axes | None = None, **line: Any) -> Axes:
        """Plot each Betti number as a step function, on a scale that shows small and large ones.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. Default: those of a new figure, available as ``ax.figure``.
        **line
            What `matplotlib.axes.Axes.plot` takes.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return plot_betti_curves(self, ax, **line)


@dataclass(frozen=True, eq=False, repr=False)
class BettiCurves(BettiResult[ArrayT]):
    """Thresholds and the Betti numbers at each of them.

    It unpacks into these two: ``thresholds, values = betti_curves(image)``.

    Attributes
    ----------
    thresholds : (n,) array
        Increasing.
    values : (..., d, n) int64 array
        ``values[..., k, i]`` is the k-th Betti number of the sublevel (or superlevel) set at
        ``thresholds[i]``. Batch axes lead.
    connectivity : int or None
        As for :func:`ecc_core.betti_curves`. None where it is not known, as for all facts below.
    superlevel : bool
        Whether the values are those of the sets ``image >= t`` rather than ``image <= t``.
    ndim : int or None
        Number of spatial axes of the image.
    units : str or None
        Unit of the thresholds, for the labels of axes.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> curves = ecc.betti_curves(np.array([[0, 0, 0], [0, 2, 0], [0, 0, 0]]), [0, 1, 2])
    >>> curves.values
    array([[1, 1, 1],
           [1, 1, 0]])
    >>> curves.euler
    array([0, 0, 1])
    """

    thresholds: ArrayT
    values: ArrayT
    connectivity: int | None = None
    superlevel: bool = False
    ndim: int | None = None
    units: str | None = None
    _fields: ClassVar = ("thresholds", "values")


@dataclass(frozen=True, eq=False, repr=False)
class RegionBettiCurves(RegionResult[ArrayT], BettiResult[ArrayT]):
    """Label ids, thresholds, and the Betti numbers of each label.

    It unpacks into these three.

    Attributes
    ----------
    labels : (k,) array
        The ids, increasing, in the dtype of the label image.
    thresholds : (n,) array
    values : (k, d, n) int64 array
    connectivity, superlevel, ndim, units
        As in :class:`BettiCurves`.
    """

    labels: ArrayT
    thresholds: ArrayT
    values: ArrayT
    connectivity: int | None = None
    superlevel: bool = False
    ndim: int | None = None
    units: str | None = None
    _fields: ClassVar = ("labels", "thresholds", "values")

    def select(self, label: int) -> BettiCurves[ArrayT]:
        """Return the Betti curves of one label.

        Parameters
        ----------
        label : int

        Returns
        -------
        BettiCurves

        Raises
        ------
        KeyError
            If there is no such label.
        """
        return BettiCurves(self.thresholds, self._row(label), **self.facts)


@dataclass(frozen=True, eq=False, repr=False)
class PersistencePairs(Result[ArrayT]):
    """Births and deaths of the classes of one dimension, and the points that cause them.

    It unpacks into four arrays: ``births, deaths, birth_points, death_points``, ordered by birth.

    Attributes
    ----------
    births, deaths : (k,) arrays
        Values at which classes are born and die, in the image's dtype. A class that never dies has
        the largest value of the dtype (infinity for floats) for its death; for superlevel sets the
        smallest.
    birth_points, death_points : (k, d) int64 arrays
        Indices of the points that have these values; -1 where a class does not die.
    dimension : int
        0 for components, d - 1 for holes (2-D) or cavities (3-D).
    connectivity, superlevel, ndim
        As in :class:`BettiCurves`.
    """

    births: ArrayT
    deaths: ArrayT
    birth_points: ArrayT
    death_points: ArrayT
    dimension: int = 0
    connectivity: int | None = None
    superlevel: bool = False
    ndim: int | None = None
    _fields: ClassVar = ("births", "deaths", "birth_points", "death_points")
    _quantity: ClassVar = "value"

    @property
    def values(self) -> NDArray[Any]:  # type: ignore[override]
        """Return births and deaths as one NumPy array, (k, 2)."""
        return np.stack([on_host(self.births), on_host(self.deaths)], axis=1)

    def _axes(self) -> dict[str, Any]:
        births: Any = self.births
        return {"class": np.arange(len(births)), "event": np.array(["birth", "death"])}

    def _more_columns(self) -> dict[str, Any]:
        """Return the indices of the points along each axis of the image."""
        points = np.stack([on_host(self.birth_points), on_host(self.death_points)], axis=1)
        return {f"point_{i}": points[..., i].ravel() for i in range(points.shape[-1])}

    def plot(self, ax: Axes | None = None, **markers: Any) -> Axes:
        """Plot the persistence diagram; see :func:`ecc_core.plotting.plot_persistence`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to plot. Default: the axes of a new figure, which is ``ax.figure`` of the result.
        **markers
            What `matplotlib.axes.Axes.plot` takes.

        Returns
        -------
        matplotlib.axes.Axes
        """
        return plot_persistence(self, ax, **markers)

    @property
    def essential(self) -> ArrayT:
        """Whether each class never dies: (k,) bool array."""
        points: Any = self.death_points
        found: ArrayT = points[:, 0] < 0
        return found

    def to_gudhi(self) -> NDArray[np.float64]:
        """Return the diagram in the form that GUDHI, POT and scikit-tda take.

        Returns
        -------
        (k, 2) float64 array
            Births and deaths; infinity for the death of a class that never dies. For superlevel
            sets both are those of the negative image, as these libraries know sublevel sets only.
        """
        host: Any = self.to_numpy()
        sign = -1.0 if self.superlevel else 1.0
        births = sign * np.asarray(host.births, np.float64)
        deaths = sign * np.asarray(host.deaths, np.float64)
        return np.stack([births, np.where(host.essential, np.inf, deaths)], axis=1)
