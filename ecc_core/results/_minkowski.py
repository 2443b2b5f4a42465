"""Results of Minkowski functionals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ecc_core._arrays import adapter_of
from ecc_core._request.batch import BatchAxis
from ecc_core._request.estimator import MEASURES
from ecc_core.plotting import plot_minkowski_curves
from ecc_core.plotting._figures import EULER
from ecc_core.results._base import ArrayT, as_floats, plain
from ecc_core.results._curves import CurveResult, RegionCurveResult, curve_facts

if TYPE_CHECKING:
    from ecc_core._request.estimator import Estimator
    from ecc_core._request.filtration import Filtration


class _Measured(CurveResult[ArrayT]):
    """Functionals along the last axis but one of the values, also by name."""

    ndim: int | None
    spacing_units: str | None
    _quantity: ClassVar = "functional"

    def __post_init__(self) -> None:
        super().__post_init__()
        plain(self, spacing=as_floats)

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the functionals, in their order in `values`."""
        return MEASURES[self.values.shape[-2] - 1]

    @property
    def measure_units(self) -> tuple[str, ...]:
        """Unit of each functional, such as ``"millimeter^2"``; "" if it has none, or is unknown."""
        unit, last = self.spacing_units, len(self.measures) - 1
        missing = last if vars(self).get("density") else 0
        return tuple(_power(unit, last - k - missing) if unit else "" for k in range(last + 1))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "values" or name not in self.measures:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        found = self.values[..., self.measures.index(name), :]
        counts = name == "euler" and not vars(self).get("density")
        return adapter_of(found).as_integers(found) if counts else found

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.measures]

    @property
    def _functionals(self) -> tuple[str, ...]:
        return self.measures

    @property
    def _labels(self) -> list[str]:
        what = "\ndensity" if vars(self).get("density") else ""
        names = [EULER if name == "euler" else name.replace("_", " ") for name in self.measures]
        return [
            name + what + (f"\n({unit})" if unit else "")
            for name, unit in zip(names, self.measure_units, strict=True)
        ]

    plot = plot_minkowski_curves  # type: ignore[assignment]


def _power(unit: str, exponent: int) -> str:
    """Return a power of a unit."""
    if exponent == 0:
        return ""
    return unit if exponent == 1 else f"{unit}^{exponent}"


@dataclass(frozen=True, eq=False, repr=False)
class MinkowskiCurves(_Measured[ArrayT]):
    """Thresholds and the Minkowski functionals at each of them.

    Unpacks into these two: ``thresholds, values = minkowski_curves(image)``. Functionals also have
    names: ``length`` and ``euler`` in 1-D, ``area``, ``perimeter`` and ``euler`` in 2-D, and
    ``volume``, ``surface``, ``mean_breadth`` and ``euler`` in 3-D.

    Attributes
    ----------
    thresholds : (n,) array
        Increasing.
    values : (..., d + 1, n) float64 array
        ``values[..., k, i]`` is the k-th functional of the sublevel (or superlevel) set at
        ``thresholds[i]``, in units of `spacing`. Batch axes lead.
    length, area, perimeter, volume, surface, mean_breadth : (..., n) float64 arrays
        Those that exist for images of d axes.
    euler : (..., n) int64 array
        The Euler characteristic.
    connectivity, superlevel, ndim, units, boundary
        As in :class:`ecc_core.EulerCurve`.
    spacing : tuple of float
        Distance between neighbouring points along each axis.
    estimator : str
        As for :func:`ecc_core.minkowski_curves`.
    window : float or None
        Length, area or volume of the image, by which densities are divided; None with a mask.
    density : bool
        Whether the values are densities, see :meth:`densities`. Otherwise ``euler`` has an integer
        dtype.
    spacing_units : str or None
        Unit of `spacing`, and so of lengths; areas and volumes are in its powers. Set as in
        :class:`ecc_core.EulerCurve`.
    coordinates : tuple
        As in :class:`ecc_core.EulerCurve`.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> curves = ecc.minkowski_curves(np.array([[0, 0, 0], [0, 2, 0], [0, 0, 0]]), [0, 2])
    >>> curves.area, curves.perimeter, curves.euler
    (array([8., 9.]), array([16., 12.]), array([0, 1]))
    """

    thresholds: ArrayT
    values: ArrayT
    connectivity: int | None = None
    superlevel: bool = False
    ndim: int | None = None
    units: str | None = None
    boundary: str = "closed"
    spacing: tuple[float, ...] | None = None
    estimator: str = "exact"
    window: float | None = None
    density: bool = False
    spacing_units: str | None = None
    coordinates: tuple[BatchAxis, ...] = ()

    def densities(self) -> Self:
        """The functionals per unit of length, area or volume of the image.

        Returns
        -------
        MinkowskiCurves
            With ``window=1`` and ``density=True``. Densities of half-open windows and of periodic
            images are unbiased; those of closed ones count the border of the image as border of the
            set.

        Raises
        ------
        ValueError
            If the size of the window is unknown because of a mask, or zero.
        """
        if not self.window:
            raise ValueError(
                "densities() needs the size of the window, which is "
                f"{'unknown with a mask' if self.window is None else self.window}"
            )
        return replace(self, values=self.values / self.window, window=1.0, density=True)


@dataclass(frozen=True, eq=False, repr=False)
class RegionMinkowski(RegionCurveResult[MinkowskiCurves[ArrayT], ArrayT], _Measured[ArrayT]):
    """Label ids, thresholds, and the Minkowski functionals of each label.

    Attributes
    ----------
    labels : (k,) array
        The ids, increasing, in the dtype of the label image.
    thresholds : (n,) array
    values : (k, d + 1, n) float64 array
    length, area, perimeter, volume, surface, mean_breadth, euler : (k, n) arrays
        As in :class:`MinkowskiCurves`.
    connectivity, superlevel, ndim, units, boundary, spacing, estimator, spacing_units
        As in :class:`MinkowskiCurves`.
    """

    spacing: tuple[float, ...] | None = None
    estimator: str = "exact"
    spacing_units: str | None = None
    _one: ClassVar = MinkowskiCurves


def minkowski_facts(filtration: Filtration, estimator: Estimator) -> dict[str, Any]:
    """Return the facts that results have in common."""
    known = {"spacing": estimator.spacing, "estimator": estimator.name}
    return {**curve_facts(filtration), **known}
