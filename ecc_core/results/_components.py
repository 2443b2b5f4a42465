"""Results of components of sets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ecc_core._arrays import adapter_of, is_lazy
from ecc_core._optional import import_optional
from ecc_core._request.batch_axes import BatchAxis
from ecc_core.results._base import ArrayT
from ecc_core.results._curves import CurveResult
from ecc_core.results._facts import plain
from ecc_core.results._pairs import DiagramResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True, eq=False, repr=False)
class ComponentCurves(CurveResult[ArrayT]):
    """Thresholds and, at each of them, the size of the set, and how it is connected.

    It unpacks into ``thresholds, values``; ``points, largest, *spanning = values`` for one image.

    Attributes
    ----------
    thresholds : (n,) array
        Increasing.
    values : (..., d + 2, n) int64 array, (..., 3, n) between an inlet and an outlet
        ``points``, ``largest`` and ``spanning``, one behind the other. Batch axes lead.
    kept : tuple of int
        Number of points of each image of the batch that are neither masked nor NaN. Of a dask array
        with a mask or omitted NaN a dask array, until it is computed.
    spacing : tuple of float or None
        Distance between neighbouring points along each axis. None for a DataArray whose coordinates
        are no lengths of one unit: then `volume` is not known.
    connectivity, superlevel, ndim, boundary, units, spacing_units
        As in :class:`ecc_core.EulerCurve`.
    coordinates : tuple
        As in :class:`ecc_core.EulerCurve`.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> image = np.array([[0, 9, 1], [2, 9, 0], [0, 9, 3]])
    >>> curves = ecc.component_curves(image, [0, 1, 2], spacing=0.5)
    >>> curves.spanning  # from 2 on, the first column
    array([[0, 0, 1],
           [0, 0, 0]])
    >>> curves.porosity.round(2), curves.volume
    (array([0.33, 0.44, 0.56]), array([0.75, 1.  , 1.25]))
    """

    thresholds: ArrayT
    values: ArrayT
    kept: Any = ()
    spacing: tuple[float, ...] | None = None
    connectivity: int | None = None
    superlevel: bool = False
    ndim: int | None = None
    boundary: str | tuple[str, ...] = "closed"
    units: str | None = None
    spacing_units: str | None = None
    coordinates: tuple[BatchAxis, ...] = ()
    _quantity: ClassVar = "count"

    def __post_init__(self) -> None:
        super().__post_init__()
        plain(self, kept=_as_counts)

    @property
    def points(self) -> ArrayT:
        """Points of the set at each threshold: (..., n) int64 array."""
        found: ArrayT = self.values[..., 0, :]
        return found

    @property
    def largest(self) -> ArrayT:
        """Points of its largest component: (..., n) int64 array."""
        found: ArrayT = self.values[..., 1, :]
        return found

    @property
    def spanning(self) -> ArrayT:
        """Components that touch both ends of the sample along each axis: (..., d, n) int64 array.

        Along a periodic axis those that wind around it. Of shape (..., 1, n) between an inlet and
        an outlet.
        """
        found: ArrayT = self.values[..., 2:, :]
        return found

    @property
    def porosity(self) -> ArrayT:
        """Points of the set, as a fraction of those kept, or 0 without any: (..., n) float64."""
        points = self.points
        kept = np.maximum(self.kept, 1.0).reshape((*points.shape[:-1], 1))
        if not is_lazy(kept):
            kept = adapter_of(points).wrap(kept, points)
        found: ArrayT = points / kept
        return found

    @property
    def volume(self) -> ArrayT:
        """Length, area or volume of the set, in units of `spacing`: (..., n) float64 array.

        A ValueError for coordinates of a DataArray that are no lengths of one unit.
        """
        if self.spacing is None and self.spacing_units is not None:
            raise ValueError(
                "`volume` needs lengths, and the coordinates of the image, in "
                f"{self.spacing_units}, are none of one unit: pass `spacing`"
            )
        found: ArrayT = self.points * math.prod(self.spacing or (1.0,))
        return found

    @property
    def _pairs(self) -> int:
        """The number of pairs of ends between which components are counted."""
        return int(self.values.shape[-2]) - 2

    @property
    def _along_axes(self) -> bool:
        """Whether there is a pair of ends for each axis, instead of an inlet and an outlet."""
        return self.ndim is None or self._pairs == self.ndim

    @property
    def _functionals(self) -> tuple[str, ...]:
        spanning = [f"spanning_{axis}" for axis in range(self._pairs)]
        return ("points", "largest", *(spanning if self._along_axes else ["spanning"]))

    @property
    def _labels(self) -> tuple[str, ...]:
        spanning = [f"spanning\naxis {axis}" for axis in range(self._pairs)]
        return ("points", "largest\ncomponent", *(spanning if self._along_axes else ["spanning"]))

    def plot(self, **line: Any) -> Figure:  # type: ignore[override]
        """Plot each functional; see :func:`ecc_core.plotting.plot_minkowski_curves`.

        Parameters
        ----------
        **line
            What `matplotlib.axes.Axes.plot` takes.

        Returns
        -------
        matplotlib.figure.Figure
            One panel for each functional.
        """
        from ecc_core.plotting import plot_minkowski_curves

        return plot_minkowski_curves(self, **line)


def _as_counts(kept: Any) -> Any:
    """Return numbers of points as a tuple of int. A dask array is unchanged."""
    if is_lazy(kept):
        return kept
    return tuple(int(count) for count in kept)


@dataclass(frozen=True, eq=False, repr=False)
class PersistentRegions(DiagramResult[ArrayT]):
    """Labels of the components that last, and one row of facts for each label.

    It unpacks into ``labels, births, deaths, birth_points, merged_into``.

    Attributes
    ----------
    labels : int32 array of the image's shape
        1 to k, the oldest component first; 0 elsewhere.
    births, deaths : (k,) arrays
        Values at which the components are born and die, in the image's dtype. Their difference can
        wrap around in this dtype, but `persistence` cannot. A component that never dies has the
        largest value of the dtype (infinity for floats) for its death; for superlevel sets the
        smallest.
    birth_points : (k, d) int64 array
        Index of the extreme point of each label.
    merged_into : (k,) int32 array
        The label of the older component that each one joins when it dies; 0 if it never dies.
    min_persistence : float or int
        Least difference of birth and death.
    rel_height : float or int, optional
        The share of its way from birth to death at which each label is cut; None: it is not.
    connectivity, superlevel, ndim, units, boundary
        As in :class:`ecc_core.BettiCurves`, with the unit of births and deaths.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> found = ecc.persistent_regions(np.array([0.0, 3.0, 1.0, 2.0, 0.5, 4.0]), 1.5)
    >>> found.persistence
    array([inf, 2.5])
    >>> found.essential
    array([ True, False])
    """

    labels: ArrayT
    births: ArrayT
    deaths: ArrayT
    birth_points: ArrayT
    merged_into: ArrayT
    min_persistence: float = 0
    rel_height: float | None = None
    connectivity: int | None = None
    superlevel: bool = False
    ndim: int | None = None
    units: str | None = None
    boundary: str | tuple[str, ...] = "closed"
    _fields: ClassVar = ("labels", "births", "deaths", "birth_points", "merged_into")

    @property
    def essential(self) -> ArrayT:
        """Whether each component never dies: (k,) bool array."""
        found: ArrayT = self.merged_into == 0
        return found

    def _axes(self) -> dict[str, Any]:
        return {"label": np.arange(1, len(self.births) + 1), "event": np.array(["birth", "death"])}

    def to_pandas(self) -> DataFrame:
        """Return a table with one row for each label; the facts are in its ``attrs``.

        Returns
        -------
        pandas.DataFrame
            The columns ``label``, ``birth``, ``death``, ``persistence``, ``merged_into``, and the
            index of the extreme point, ``point_0`` and so on.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas = import_optional("pandas", extra="features", purpose="to_pandas")
        host = self.to_numpy()
        table: DataFrame = pandas.DataFrame(
            {
                "label": np.arange(1, len(host.births) + 1),
                "birth": host.births,
                "death": host.deaths,
                "persistence": host.persistence,
                "merged_into": host.merged_into,
                **{f"point_{i}": column for i, column in enumerate(host.birth_points.T)},
            }
        )
        table.attrs.update(self.facts)
        return table
