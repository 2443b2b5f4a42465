"""Results of Minkowski functionals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ecc_core._arrays import adapter_of, is_lazy, on_host
from ecc_core._request.batch_axes import BatchAxis
from ecc_core._request.estimator import MEASURES
from ecc_core.results._base import ArrayT
from ecc_core.results._curves import CurveResult, RegionCurveResult, curve_facts
from ecc_core.results._facts import as_floats, plain
from ecc_core.results._words import EULER, symbol_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ecc_core._request.estimator import Estimator
    from ecc_core._request.filtration import Filtration


class _Measured(CurveResult[ArrayT]):
    """Functionals along the last axis but one of the values, which are also attributes by name."""

    ndim: int | None
    spacing_units: str | None
    window: Any
    density: bool
    _quantity: ClassVar = "functional"

    def __post_init__(self) -> None:
        super().__post_init__()
        plain(self, spacing=as_floats, window=_as_sizes)

    def densities(self) -> Self:
        """The functionals per unit of length, area or volume of the window.

        Returns
        -------
        MinkowskiCurves or RegionMinkowski
            The densities, with ``window=1`` and ``density=True``. Those of half-open windows and of
            periodic images are unbiased; those of closed windows count the border of the image as
            border of the set. They are NaN for images and regions of size 0, if there are several.

        Raises
        ------
        ValueError
            If the window is zero, or unknown because of a mask or regions that are no windows: for
            these, use ``boundary="half-open"``.
        """
        window = self.window
        if window is None:
            raise ValueError(
                "densities() needs the size of the window, which is unknown with a mask or labels, "
                f'unless `boundary` is "half-open", got "{self.boundary}"'
            )
        if is_lazy(window):
            sizes = window[..., None, None]
        else:
            sizes = np.reshape(window, (*self.values.shape[:-2], 1, 1) if np.ndim(window) else ())
            if sizes.size and not sizes.any():
                raise ValueError("densities() needs the size of the window, which is 0")
            sizes = adapter_of(self.values).wrap(sizes, self.values)
        with np.errstate(invalid="ignore"):
            values = self.values / sizes
        return replace(self, values=values, window=1.0, density=True)  # type: ignore[type-var]

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the functionals, in their order in `values`."""
        return MEASURES[self.values.shape[-2] - 1]

    @property
    def measure_units(self) -> tuple[str, ...]:
        """Unit of each functional, such as ``"millimeter^2"``; "" if it has none, or is unknown."""
        unit = self.spacing_units
        ndim = len(self.measures) - 1
        if not unit:
            return ("",) * len(self.measures)
        powers = range(ndim, -1, -1)
        if vars(self).get("density"):  # The functionals are divided by the size of the window.
            powers = range(0, -ndim - 1, -1)
        return tuple(_power(unit, power) for power in powers)

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
        units = [f"\n({symbol_of(unit)})" if unit else "" for unit in self.measure_units]
        return [name + what + unit for name, unit in zip(names, units, strict=True)]

    def plot(self, **line: Any) -> Figure:  # type: ignore[override]
        """Plot each functional; see :func:`ecc_core.plotting.plot_minkowski_curves`."""
        from ecc_core.plotting import plot_minkowski_curves

        return plot_minkowski_curves(self, **line)


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
    window : float, tuple of float or None
        Length, area or volume of the image, by which densities are divided. If the boundary is
        half-open, with or without a mask, it is the number of points whose cells count times the
        size of a grid cell: one for each image, in C order, if these differ, and a dask array for a
        dask array. None with a mask that is no window.
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
    boundary: str | tuple[str, ...] = "closed"
    spacing: tuple[float, ...] | None = None
    estimator: str = "exact"
    window: Any = None
    density: bool = False
    spacing_units: str | None = None
    coordinates: tuple[BatchAxis, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        plain(self, window=_as_one_size)


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
    connectivity, superlevel, ndim, units, boundary, spacing, estimator, density, spacing_units
        As in :class:`MinkowskiCurves`.
    window : tuple of float or None
        Length, area or volume of each region as a window, for `densities`; a dask array for a dask
        array. None unless the boundary is "half-open".

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> labels = np.array([[1, 1, 0], [1, 1, 3]])
    >>> found = ecc.region_minkowski(np.zeros((2, 3)), labels, [0.0], connectivity=2)
    >>> found.area, found.select(1).perimeter
    (array([[4.],
           [1.]]), array([8.]))
    """

    spacing: tuple[float, ...] | None = None
    estimator: str = "exact"
    spacing_units: str | None = None
    window: Any = None
    density: bool = False
    _one: ClassVar = MinkowskiCurves

    def select(self, label: int) -> MinkowskiCurves[ArrayT]:
        one: MinkowskiCurves[ArrayT] = super().select(label)
        if one.window is None or np.ndim(one.window) == 0:
            return one
        (row,) = np.flatnonzero(on_host(self.labels) == label).tolist()
        return replace(one, window=one.window[row])


def _as_one_size(window: Any) -> Any:
    """Return a single float if all windows have the same size."""
    if isinstance(window, tuple) and len(set(window)) == 1:
        return window[0]
    return window


def _as_sizes(window: Any) -> Any:
    """Return sizes of windows as a float or a tuple of floats. A dask array is unchanged."""
    if is_lazy(window):
        return window
    sizes = np.asarray(window, np.float64)
    if sizes.ndim == 0:
        return sizes.item()
    return tuple(sizes.ravel().tolist())


def minkowski_facts(filtration: Filtration, estimator: Estimator) -> dict[str, Any]:
    """Return the facts of Minkowski functionals of a filtration."""
    known = {"spacing": estimator.spacing, "estimator": estimator.name}
    return {**curve_facts(filtration), **known}
