"""Results of Betti curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ecc_core._request.batch_axes import BatchAxis
from ecc_core.results._base import ArrayT
from ecc_core.results._curves import CurveResult, RegionCurveResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class BettiResult(CurveResult[ArrayT]):
    """Betti numbers over thresholds. The last axes of the values are dimension and threshold."""

    _quantity: ClassVar = "betti_number"

    @property
    def euler(self) -> ArrayT:
        """Euler characteristic at each threshold, (..., n) int64: the alternating sum."""
        values = self.values
        found: ArrayT = values[..., 0::2, :].sum(-2) - values[..., 1::2, :].sum(-2)
        return found

    def _axes(self) -> dict[str, Any]:
        return {"dimension": np.arange(len(self._functionals)), "threshold": self.thresholds}

    @property
    def _functionals(self) -> tuple[str, ...]:
        return tuple(f"b{k}" for k in range(self.values.shape[-2]))

    @property
    def _labels(self) -> list[str]:
        return [f"$b_{k}$" for k in range(len(self._functionals))]

    def plot(self, ax: Axes | None = None, **line: Any) -> Axes:
        """Plot each Betti number; see :func:`ecc_core.plotting.plot_betti_curves`.

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
        from ecc_core.plotting import plot_betti_curves

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
        ``thresholds[i]``. Batch axes lead. (..., d + 1, n) for images that
        are periodic along all axes.
    connectivity : int or None
        As for :func:`ecc_core.betti_curves`. None where it is not known, as for all facts below.
    superlevel : bool
        Whether the values are those of the sets ``image >= t`` rather than ``image <= t``.
    ndim : int or None
        Number of spatial axes of the image.
    units : str or None
        Unit of the thresholds, for the labels of axes.
    boundary : {"closed", "periodic"} or one of them for each spatial axis
    coordinates : tuple
        As in :class:`ecc_core.EulerCurve`.

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
    boundary: str | tuple[str, ...] = "closed"
    coordinates: tuple[BatchAxis, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class RegionBettiCurves(RegionCurveResult[BettiCurves[ArrayT], ArrayT], BettiResult[ArrayT]):
    """Label ids, thresholds, and the Betti numbers of each label.

    It unpacks into these three.

    Attributes
    ----------
    labels : (k,) array
        The ids, increasing, in the dtype of the label image.
    thresholds : (n,) array
    values : (k, d, n) int64 array, (k, d + 1, n) if periodic
    connectivity, superlevel, ndim, units, boundary
        As in :class:`BettiCurves`.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> labels = np.array([[7, 7, 7], [7, 7, 7], [7, 7, 7], [0, 8, 8]])
    >>> image = np.ones(labels.shape, np.uint8)
    >>> image[1, 1] = 9
    >>> found = ecc.region_betti_curves(image, labels, [1, 9])
    >>> found.select(7).values  # one component, whose hole is filled at 9
    array([[1, 1],
           [1, 0]])
    """

    _one: ClassVar = BettiCurves
