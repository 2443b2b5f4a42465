"""Results of persistence: pairs of birth and death, and the curves and diagrams of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import adapter_of, all_on_host, given_on_host, on_host
from ecc_core._request.boundary import COMPLEXES, boundary_of
from ecc_core._request.levels import count_entered, distinct_values, round_to_levels
from ecc_core._request.persistence import check_persistence, lasting, persistences, real_number
from ecc_core._request.thresholds import parse_thresholds
from ecc_core._types import Thresholds
from ecc_core.results._base import ArrayT, Result, known_by
from ecc_core.results._betti import BettiCurves
from ecc_core.results._curves import EulerCurve
from ecc_core.results._facts import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class DiagramResult(Result[ArrayT]):
    """Births and deaths of classes, each with the points that cause them."""

    births: ArrayT
    deaths: ArrayT
    superlevel: bool
    ndim: int | None
    units: str | None
    _quantity: ClassVar = "value"

    @property
    def essential(self) -> ArrayT:
        """Whether each class never dies: (k,) bool array."""
        raise NotImplementedError

    @property
    def persistence(self) -> ArrayT:
        """How long each class lasts: (k,) float64 array.

        The difference of the values at its birth and its death, which cannot wrap around as that
        of two integers of the image's dtype can; infinity for a class that never dies.
        """
        parts = all_on_host([self.births, self.deaths, self.essential])
        found: ArrayT = adapter_of(self.births).wrap(persistences(*parts), self.births)
        return found

    @property
    def values(self) -> NDArray[Any]:  # type: ignore[override]
        """Return births and deaths as one NumPy array, (k, 2)."""
        return np.stack(all_on_host([self.births, self.deaths]), axis=1)

    def plot(
        self, ax: Axes | None = None, *, min_persistence: float | None = None, **markers: Any
    ) -> Axes:
        """Plot the persistence diagram; see :func:`ecc_core.plotting.plot_persistence`."""
        from ecc_core.plotting import plot_persistence

        return plot_persistence(self, ax, min_persistence=min_persistence, **markers)


@dataclass(frozen=True, eq=False, repr=False)
class PersistencePairs(DiagramResult[ArrayT]):
    """Births and deaths of the classes of one or all dimensions, and the points that cause them.

    It unpacks into four arrays: ``births, deaths, birth_points, death_points``, ordered by
    dimension and birth.

    Attributes
    ----------
    births, deaths : (k,) arrays
        Values at which classes are born and die, in the image's dtype (float32 for bfloat16). Their
        difference can wrap around in this dtype, but `persistence` cannot. A class that never dies
        has the largest value of the dtype (infinity for floats) for its death; for superlevel sets
        the smallest.
    birth_points, death_points : (k, d) int64 arrays
        Indices of the points that have these values; -1 where a class does not die.
    dimension : int or None
        0 for components, 1 for holes (2-D) or tunnels (3-D), 2 for cavities. None: all dimensions.
    counts : tuple of int, or None
        Number of classes of each dimension, if `dimension` is None.
    connectivity, superlevel, ndim, boundary, units
        As in :class:`BettiCurves`, with the unit of births and deaths.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> image = np.array([[1, 1, 1], [1, 5, 2], [1, 1, 3]])
    >>> pairs = ecc.persistence_pairs(image)
    >>> pairs.dimensions, pairs.essential
    (array([0, 1]), array([ True, False]))
    >>> pairs.persistence
    array([inf,  3.])
    >>> pairs.select(1).to_gudhi()
    array([[2., 5.]])
    >>> pairs.betti_curves([0, 1, 2, 5]).values
    array([[0, 1, 1, 1],
           [0, 0, 1, 0]])
    """

    births: ArrayT
    deaths: ArrayT
    birth_points: ArrayT
    death_points: ArrayT
    dimension: int | None = 0
    counts: tuple[int, ...] | None = None
    connectivity: int | None = None
    superlevel: bool = False
    ndim: int | None = None
    boundary: str | tuple[str, ...] = "closed"
    units: str | None = None
    _fields: ClassVar = ("births", "deaths", "birth_points", "death_points")

    def __post_init__(self) -> None:
        plain(self, counts=tuple)

    def _axes(self) -> dict[str, Any]:
        return {"class": np.arange(len(self.births)), "event": np.array(["birth", "death"])}

    def _more_columns(self) -> dict[str, Any]:
        """Return dimensions, persistences, and indices of points along each axis of the image."""
        of_classes = {
            "dimension": np.repeat(on_host(self.dimensions), 2),
            "persistence": np.repeat(on_host(self.persistence), 2),
        }
        points = np.stack([on_host(self.birth_points), on_host(self.death_points)], axis=1)
        indices = {f"point_{i}": points[..., i].ravel() for i in range(points.shape[-1])}
        return {**of_classes, **indices}

    @property
    def essential(self) -> ArrayT:
        """Whether each class never dies: (k,) bool array."""
        found: ArrayT = self.death_points[:, 0] < 0
        return found

    @property
    def dimensions(self) -> ArrayT:
        """Dimension of each class: (k,) int64 array."""
        found: ArrayT = self.birth_points[:, 0] * 0
        if self.counts is None:
            found += self.dimension or 0
            return found
        for k, rows in self._rows().items():
            found[rows] = k
        return found

    def _rows(self) -> dict[int, slice]:
        """Return the rows of the classes of each dimension."""
        if self.dimension is not None or self.counts is None:
            return {self.dimension or 0: slice(None)}
        ends = np.cumsum(self.counts).tolist()
        return {k: slice(end - self.counts[k], end) for k, end in enumerate(ends)}

    def select(self, dimension: int) -> PersistencePairs[ArrayT]:
        """Return the classes of one dimension.

        Parameters
        ----------
        dimension : int

        Returns
        -------
        PersistencePairs

        Raises
        ------
        KeyError
            If the result does not contain this dimension.
        """
        rows = self._rows()
        if dimension not in rows:
            raise KeyError(f"there is no dimension {dimension!r}, only {', '.join(map(str, rows))}")
        parts = {name: part[rows[dimension]] for name, part in self._asdict().items()}
        return replace(self, **parts, dimension=int(dimension), counts=None)

    def betti_curves(
        self, thresholds: Thresholds = 256, min_persistence: float = 0
    ) -> BettiCurves[NDArray[Any]]:
        """Count the classes of each dimension that are alive at thresholds, without the noise.

        Parameters
        ----------
        thresholds : int, array or "exact", default 256
            An int: that many, evenly spaced over the finite values of births and deaths. An
            increasing array is used as it is. "exact": every level at which a number changes.
        min_persistence : float, default 0
            Count only classes whose values of birth and death differ by at least so much, and those
            that never die.

        Returns
        -------
        BettiCurves
            NumPy arrays; ``values`` of shape (d, n), int64. For 0 the numbers are those of
            :func:`ecc_core.betti_curves`.

        Raises
        ------
        TypeError, ValueError
            For invalid arguments; ValueError also if the result is of one dimension of several.

        Examples
        --------
        >>> import numpy as np, ecc_core as ecc
        >>> pairs = ecc.persistence_pairs(np.array([0, 3, 1, 2, 0, 9, 8]))
        >>> pairs.betti_curves([0, 1, 2, 3, 8]).values
        array([[2, 3, 2, 1, 2]])
        >>> pairs.betti_curves([0, 1, 2, 3, 8], min_persistence=2).values
        array([[2, 2, 2, 1, 1]])
        """
        host = self.to_numpy()
        rows = host._rows()
        ndim = self.ndim or 0
        needed = ndim + all(boundary_of(self.boundary, ndim, COMPLEXES).wraps)
        if self.ndim is not None and len(rows) < needed:
            raise ValueError(
                f"Betti curves need the pairs of all {needed} dimensions, got those of "
                f"{', '.join(map(str, rows))}: leave `dimension` out"
            )
        kept = host.essential | lasting(
            host.births, host.deaths, check_persistence(min_persistence)
        )
        ends = np.where(host.essential, host.births, host.deaths)
        asked = parse_thresholds(given_on_host(thresholds), None)
        if asked.exact:
            at = distinct_values(np.concatenate([host.births[kept], ends[kept]]))
        else:

            def find_range() -> tuple[Any, Any]:
                values = np.concatenate([host.births, ends])
                values = values[np.isfinite(values)]
                return (values.min(), values.max()) if values.size else (None, None)

            at = asked.over(find_range, ())
        grid = round_to_levels(at, ends.dtype, self.superlevel)
        values = np.zeros((len(rows), at.size), np.int64)
        for k, span in rows.items():
            alive = kept[span]
            dies = (kept & ~host.essential)[span]
            values[k] = count_entered(host.births[span][alive], grid)
            values[k] -= count_entered(host.deaths[span][dies], grid)
        if asked.exact:
            order = slice(None, None, -1 if self.superlevel else 1)
            jumps = np.diff(values[:, order], prepend=0, axis=1)[:, order].any(axis=0)
            at = at[jumps]
            values = values[:, jumps]
        return BettiCurves(at, values, **known_by(BettiCurves, self.facts))

    def euler_curve(
        self, thresholds: Thresholds = 256, min_persistence: float = 0
    ) -> EulerCurve[NDArray[Any]]:
        """Euler characteristic of the classes that last: the alternating sum of Betti curves.

        Parameters
        ----------
        thresholds, min_persistence
            As for :meth:`betti_curves`.

        Returns
        -------
        EulerCurve
            NumPy arrays; ``values`` of shape (n,), int64.

        Raises
        ------
        TypeError, ValueError
            As for :meth:`betti_curves`.

        Examples
        --------
        >>> import numpy as np, ecc_core as ecc
        >>> pairs = ecc.persistence_pairs(np.array([[1, 1, 1], [1, 5, 2], [1, 1, 3]]))
        >>> pairs.euler_curve([1, 2, 5]).values
        array([1, 0, 1])
        """
        curves = self.betti_curves(thresholds, min_persistence)
        return EulerCurve(curves.thresholds, curves.euler, **curves.facts)

    def to_gudhi(self, essential: float | Literal["drop"] | None = None) -> Any:
        """Return the diagram in the form that GUDHI, POT and scikit-tda take.

        Parameters
        ----------
        essential : float or "drop", optional
            What becomes of the classes that never die. Default: their death is infinity, as in
            GUDHI. A number is their death, a value of the image such as its largest (of superlevel
            sets the smallest), as the distances of POT and scikit-tda need finite deaths. "drop":
            they are left out.

        Returns
        -------
        (k, 2) float64 array, or a list of one such array for each dimension
            A list if the result is of all dimensions. Births and deaths. For superlevel sets both
            are those of the negative image, as these libraries know sublevel sets only.

        Raises
        ------
        TypeError
            If `essential` is neither a real number nor "drop".
        ValueError
            If it is NaN, or classes that never die are born after it.

        Examples
        --------
        >>> import numpy as np, ecc_core as ecc
        >>> pairs = ecc.persistence_pairs(np.array([0, 3, 1, 2, 9]), 0)
        >>> pairs.to_gudhi()
        array([[ 0., inf],
               [ 1.,  3.]])
        >>> pairs.to_gudhi(essential=9)
        array([[0., 9.],
               [1., 3.]])
        >>> pairs.to_gudhi(essential="drop")
        array([[1., 3.]])
        """
        host = self.to_numpy()
        sign = -1.0 if self.superlevel else 1.0
        births = sign * np.asarray(host.births, np.float64)
        deaths = sign * np.asarray(host.deaths, np.float64)
        lasts = np.asarray(host.essential)
        end = np.inf
        kept = np.ones(births.shape, np.bool_)
        if isinstance(essential, str):
            if essential != "drop":
                raise TypeError(f'`essential` must be a number or "drop", got {essential!r}')
            kept = ~lasts
        elif essential is not None:
            end = sign * float(real_number(essential, "essential"))
            if not (births[lasts] <= end).all():
                raise ValueError(
                    "`essential` must be a value that no class that never dies is born after, "
                    f"got {essential!r}"
                )
        diagram = np.stack([births, np.where(lasts, end, deaths)], axis=1)
        if self.dimension is not None:
            return diagram[kept]
        return [diagram[rows][kept[rows]] for rows in self._rows().values()]
