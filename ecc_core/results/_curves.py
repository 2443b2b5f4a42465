"""Results of curves over thresholds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ecc_core._arrays import on_host
from ecc_core._request.batch_axes import BatchAxis, as_batch_axes
from ecc_core.results._base import MOST_DRAWN, ArrayT, OneT, RegionResult, Result
from ecc_core.results._facts import as_floats, plain
from ecc_core.results._words import EULER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from ecc_core._request.filtration import Filtration


class CurveResult(Result[ArrayT]):
    """Curves of image values over thresholds, with the facts of their filtration."""

    thresholds: ArrayT
    superlevel: bool
    units: str | None
    _fields: ClassVar[tuple[str, ...]] = ("thresholds", "values")

    def __post_init__(self) -> None:
        plain(self, direction=as_floats, spacing=as_floats, superlevel=bool)
        if self.coordinates != ():  # A file has a list in place of a tuple.
            plain(self, coordinates=as_batch_axes)

    def _axes(self) -> dict[str, Any]:
        several = self._functionals
        axis = {} if several == ("euler",) else {"measure": np.array(several)}
        return {**axis, "threshold": self.thresholds}

    def _preview(self) -> Self:
        values = self.values
        one = values.shape[values.ndim - len(self._axes()) :]
        rows = values.reshape((-1, *one))[:MOST_DRAWN]
        return replace(self, values=rows)  # type: ignore[type-var]

    @property
    def _labels(self) -> Sequence[str]:
        """The names of the functionals in figures."""
        return (EULER,)

    def _quantities(self) -> dict[str, CurveResult[Any]]:
        """Return the curve of each functional by its label."""
        if self._functionals == ("euler",):
            return {EULER: self}
        at = on_host(self.thresholds)
        values = on_host(self.values)
        each = enumerate(self._labels)
        return {
            label: EulerCurve(at, values[..., k, :], superlevel=self.superlevel, units=self.units)
            for k, label in each
        }

    def by_name(self) -> dict[str, Any]:
        """Return the curves by the names that columns of tables have.

        Returns
        -------
        dict of str to array
            Such as ``euler_number``, ``b0`` or ``area``; the Euler characteristic comes first.

        Examples
        --------
        >>> import ecc_core as ecc
        >>> curves = ecc.betti_curves([[0, 1], [1, 0]], [0, 1], connectivity=1)
        >>> {name: values.tolist() for name, values in curves.by_name().items()}
        {'euler_number': [2, 1], 'b0': [2, 1], 'b1': [0, 0]}
        """
        values = self.values
        names = [name for name in self._functionals if name != "euler"]
        if not names:
            return {self._quantity: values}
        several = {name: values[..., k, :] for k, name in enumerate(names)}
        euler = getattr(self, "euler", None)
        return several if euler is None else {"euler_number": euler, **several}

    def _meaning(
        self, functional: str | None = None, *, superlevel: bool | None = None
    ) -> dict[str, Any]:
        """Return the facts in which curves must agree to be compared, without unknown ones.

        With a functional, they are those of this one of Betti or Minkowski curves. `superlevel` is
        the argument of a public function, which must not contradict the curve.
        """
        facts = self.facts
        several = self._functionals
        name = functional or (several[0] if len(several) == 1 else self._quantity)
        known = {k: facts[k] for k in ("ndim", "connectivity", "units") if facts.get(k) is not None}
        known |= {
            "functional": name,
            "superlevel": agreed_superlevel(self, superlevel),
            "boundary": self.boundary,
            "density": bool(facts.get("density")),
            "direction": facts.get("direction"),
        }
        # Without a functional, the name is that of all functionals together.
        measured = "estimator" in facts and name != "euler"
        if measured:
            known["estimator"] = facts["estimator"]
        if known["direction"] is not None:
            known["direction_scale"] = facts["direction_scale"]
        if measured or known["density"] or known["direction"] is not None:
            known["spacing_units"] = facts.get("spacing_units")  # The numbers depend on it.
        return known

    def plot(
        self,
        ax: Axes | None = None,
        *,
        superlevel: bool | None = None,
        label: str | None = None,
        **line: Any,
    ) -> Axes:
        """Plot the curves as step functions; see :func:`ecc_core.plotting.plot_curve`.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. Default: those of a new figure, available as ``ax.figure``.
        superlevel : bool, optional
            That of the curve, which need not be given.
        label : str, optional
            Name in the legend.
        **line
            What `matplotlib.axes.Axes.plot` takes.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from ecc_core.plotting import plot_curve

        return plot_curve(self, ax, superlevel=superlevel, label=label, **line)


@dataclass(frozen=True, eq=False, repr=False)
class RegionCurveResult(RegionResult[OneT, ArrayT], CurveResult[ArrayT]):
    """Curves of the regions of a label image."""

    labels: ArrayT
    thresholds: ArrayT
    values: ArrayT
    connectivity: int | None = None
    superlevel: bool = False
    ndim: int | None = None
    units: str | None = None
    boundary: str | tuple[str, ...] = "closed"
    _fields: ClassVar = ("labels", "thresholds", "values")


@dataclass(frozen=True, eq=False, repr=False)
class EulerCurve(CurveResult[ArrayT]):
    """Thresholds and the Euler characteristic at each of them.

    Unpacks into these two: ``thresholds, values = euler_curve(image)``.

    Attributes
    ----------
    thresholds : (n,) array
        Increasing.
    values : (..., n) int64 array
        ``values[..., i]`` belongs to the sublevel (or superlevel) set at ``thresholds[i]``. Batch
        axes lead.
    connectivity : int or None
        As for :func:`ecc_core.euler_curve`. None if unknown, as for all attributes below.
    superlevel : bool
        Whether the values are those of the sets ``image >= t`` rather than ``image <= t``.
    ndim : int or None
        Number of spatial axes of the image.
    direction : tuple of float or None
        The unit vector of a directional filtration.
    direction_scale : float
        The factor of the directional term.
    spacing : tuple of float or None
        The distance between neighbouring points along each axis, for a directional filtration.
    units : str or None
        Unit of the thresholds, for the labels of axes: that of the image if this is a DataArray of
        xarray with ``attrs["units"]``. Elsewhere set it with :func:`dataclasses.replace`.
    boundary : str, or one for each spatial axis
        What happens at the border of the image, as for :func:`ecc_core.euler_curve`: one word if
        that is the same along all axes, otherwise a tuple.
    density : bool
        Whether the values are divided by the length, area or volume of the image.
    spacing_units : str or None
        Unit of `spacing`, such as ``"millimeter"``: that of the coordinates of a DataArray. Set by
        the command and the plugin, which know it; elsewhere with :func:`dataclasses.replace`.
    coordinates : tuple
        Names and coordinates of the batch axes of an image that is a DataArray of xarray.

    Examples
    --------
    >>> import dataclasses, numpy as np, ecc_core as ecc
    >>> curve = ecc.euler_curve(np.eye(3), [0, 1], superlevel=True)
    >>> curve
    EulerCurve(thresholds=[0, 1], values=[1, 1], connectivity=2, superlevel=True)
    >>> thresholds, values = curve
    >>> curve == dataclasses.replace(curve, superlevel=False)
    False
    """

    thresholds: ArrayT
    values: ArrayT
    connectivity: int | None = None
    superlevel: bool = False
    ndim: int | None = None
    direction: tuple[float, ...] | None = None
    direction_scale: float = 1.0
    spacing: tuple[float, ...] | None = None
    units: str | None = None
    boundary: str | tuple[str, ...] = "closed"
    spacing_units: str | None = None
    density: bool = False
    coordinates: tuple[BatchAxis, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class RegionCurves(RegionCurveResult[EulerCurve[ArrayT], ArrayT]):
    """Label ids, thresholds, and the curve of each label.

    Attributes
    ----------
    labels : (k,) array
        The ids, increasing, in the dtype of the label image.
    thresholds : (n,) array
    values : (k, n) int64 array
    connectivity, superlevel, ndim, units, boundary
        As in :class:`ecc_core.EulerCurve`.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> labels = np.array([[1, 1, 0], [0, 0, 4]])
    >>> found = ecc.region_curves(np.array([[0, 2, 0], [0, 0, 1]]), labels, [0, 1, 2])
    >>> found.labels, found.select(4).values
    (array([1, 4]), array([0, 1, 1]))
    """

    _one: ClassVar = EulerCurve


@dataclass(frozen=True, eq=False, repr=False)
class LocalCurves(CurveResult[ArrayT]):
    """Curves of the tiles of an image.

    Attributes
    ----------
    thresholds : (n,) array
    values : int64 array
        The curves of all tiles, of shape (tiles along each axis) + (n,).
    connectivity, superlevel, ndim, units
        As in :class:`ecc_core.EulerCurve`.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from ecc_core.dask import local_curves
    >>> image = da.from_array(np.eye(4), chunks=2)
    >>> curves = local_curves(image, 2, [0, 1])
    >>> curves.values.shape, curves.to_numpy().values[0, 1].tolist()
    ((2, 2, 2), [1, 1])
    """

    thresholds: ArrayT
    values: ArrayT
    connectivity: int | None = None
    superlevel: bool = False
    ndim: int | None = None
    units: str | None = None


def agreed_superlevel(curve: Any, given: bool | None, name: str = "curve") -> bool:
    """Return whether a curve is that of superlevel sets, by the curve or, for a pair, as given."""
    if not isinstance(curve, CurveResult):
        return bool(given)
    if given is not None and bool(given) != curve.superlevel:
        raise ValueError(
            f"`superlevel` must be {curve.superlevel} or left out, as `{name}` was computed, "
            f"got {given!r}"
        )
    return curve.superlevel


def without_arrays(result_type: type[CurveResult[Any]], filtration: Filtration) -> Any:
    """Return a result of this type with None in place of its arrays, for `_with_arrays`."""
    missing: dict[str, Any] = dict.fromkeys(result_type._fields)
    return result_type(**missing, **curve_facts(filtration))


def curve_facts(filtration: Filtration) -> dict[str, Any]:
    """Return the facts of the curves of a filtration."""
    facts: dict[str, Any] = {
        "ndim": filtration.ndim,
        "connectivity": int(filtration.connectivity),
        "superlevel": bool(filtration.superlevel),
    }
    if not filtration.boundary.is_closed:
        facts["boundary"] = filtration.boundary.name
    if filtration.direction is not None:
        facts["direction"] = filtration.direction.vector
        facts["direction_scale"] = filtration.direction.scale
        facts["spacing"] = filtration.direction.spacing
    return facts
