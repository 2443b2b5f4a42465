"""The results of statistics of groups, and their plots."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ecc_core.features._steps import Floats, check_level
from ecc_core.plotting._figures import FAINT, named, new_axes
from ecc_core.results import Result
from ecc_core.results._base import summary
from ecc_core.results._words import EULER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 2.4  # In inches.


@dataclass(frozen=True, eq=False, repr=False)
class CurveBand(Result[Floats]):
    """Thresholds, the mean curve, and a band around it.

    Unpacks into its four arrays. Of transforms, thresholds are heights, and the others have the
    shape (directions, heights); of all functionals, (functionals, n).

    Attributes
    ----------
    thresholds, mean, lower, upper : (n,) float64 arrays
    quantity : str
        What the curves count or measure, for the labels of axes.
    units : str or None
        Unit of the thresholds, as the curves know it.
    coordinate : {"threshold", "height"}
        What the thresholds are.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.features import mean_band
    >>> values = np.random.default_rng(0).poisson(9, (40, 5))
    >>> band = mean_band((np.arange(5), values), rng=1)
    >>> thresholds, mean, lower, upper = band
    >>> bool((lower < mean).all() and (mean < upper).all())
    True
    """

    thresholds: Floats
    mean: Floats
    lower: Floats
    upper: Floats
    quantity: str = EULER
    units: str | None = None
    coordinate: str = "threshold"
    _fields: ClassVar = ("thresholds", "mean", "lower", "upper")
    _quantity: ClassVar = "mean"

    @property
    def values(self) -> Floats:  # type: ignore[override]
        """The mean curve."""
        return self.mean

    def _axes(self) -> dict[str, Any]:
        return {self.coordinate: self.thresholds}

    def _more_columns(self) -> dict[str, Any]:
        return {"lower": self.lower.ravel(), "upper": self.upper.ravel()}

    def plot(self, ax: Axes | None = None, **line: Any) -> Axes:
        """Plot the mean curve and the band.

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
        ax = ax or new_panel(self.coordinate, f"mean {self.quantity}", self.units)
        return draw_band(
            ax, self.thresholds, middle=self.mean, lower=self.lower, upper=self.upper, **line
        )


class PermutationTest(NamedTuple):
    """The distance between groups, its p-value, and where they differ.

    For transforms, thresholds are heights, and arrays that are (n,) here have the shape
    (directions, heights). For all Minkowski functionals together they are (functionals, n).

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.features import permutation_test
    >>> curves = np.array([[0, 1, 2], [0, 1, 3], [0, 1, 4]])
    >>> test = permutation_test((np.arange(3), curves), (np.arange(3), curves + [0, 5, 0]))
    >>> test.difference, test.units, test.exact
    (array([ 0., -5.,  0.]), (3, 3), True)
    >>> test.pvalue == test.least_pvalue
    True
    """

    statistic: float
    """Distance between the mean curves."""
    pvalue: float
    null: Floats
    """(k,), the distances of the permutations."""
    thresholds: Floats
    """(n,), of both groups."""
    difference: Floats
    """(n,), mean curve of the first group minus that of the second; of more than two groups the
    standard deviation of their means."""
    pvalues: Floats
    """(n,), p-values of the thresholds, corrected for their number."""
    effect_size: Floats
    """(n,), the difference in standard deviations (Cohen's d; f for more than two groups): those of
    the units within groups, or of the differences of pairs."""
    units: tuple[int, ...]
    """Numbers of units of the groups; the same for pairs."""
    exact: bool
    """Whether all permutations were taken, and not random ones."""
    quantity: str = EULER
    """The name of the quantity, for the labels of axes."""
    threshold_units: str | None = None
    """The unit of the thresholds, if the curves have one."""
    coordinate: str = "threshold"
    """The word for the thresholds: "threshold", or "height" for transforms."""
    paired: bool = False
    """Whether each unit is in both groups."""

    @property
    def least_pvalue(self) -> float:
        """The smallest p-value that curves of this number of units, or permutations, can have."""
        if not self.exact:
            return 1 / (1 + self.null.size)
        if self.paired:  # Reversing the signs of all pairs gives the same distance.
            return 2 / self.null.size
        # Exchanging whole groups of one size gives the same distance.
        groups_of_size = Counter(self.units).values()
        same = math.prod(math.factorial(count) for count in groups_of_size)
        return same / self.null.size

    @property
    def is_least(self) -> bool:
        """Whether curves of this number of units, or permutations, have no smaller p-value."""
        return math.isclose(self.pvalue, self.least_pvalue)

    def __eq__(self, other: object) -> bool:
        """Whether all numbers and facts are equal, and the dtypes of arrays."""
        if not isinstance(other, PermutationTest):
            return NotImplemented
        return all(map(_same, self, other))

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __repr__(self) -> str:
        parts = self._asdict().items()
        shown = {k: summary(v) if isinstance(v, np.ndarray) else repr(v) for k, v in parts}
        return f"PermutationTest({', '.join(f'{k}={v}' for k, v in shown.items())})"

    def differing(self, level: float = 0.05) -> list[tuple[float, float]]:
        """Return where the groups differ: the first and last threshold of each range.

        Parameters
        ----------
        level : float, default 0.05
            The corrected p-values are at most this; of several curves, that of any of them.

        Returns
        -------
        list of (float, float)
            In the order of the thresholds.

        Examples
        --------
        >>> import numpy as np
        >>> from ecc_core.features import permutation_test
        >>> values = np.random.default_rng(0).poisson(3, (18, 5))
        >>> t, first, second = np.arange(5), values[:9], values[9:] + [0, 9, 9, 0, 9]
        >>> permutation_test((t, first), (t, second), n_permutations=999, rng=0).differing()
        [(1.0, 2.0), (4.0, 4.0)]
        """
        edges = np.diff(self._where(level).astype(np.int8), prepend=0, append=0)
        begins = np.flatnonzero(edges > 0)
        ends = np.flatnonzero(edges < 0) - 1
        pairs = zip(self.thresholds[begins].tolist(), self.thresholds[ends].tolist(), strict=True)
        return list(pairs)

    def _where(self, level: float) -> Any:
        """Return whether the groups differ at each threshold, (n,) bool."""
        return np.any(np.atleast_2d(self.pvalues <= check_level(level)), axis=0)

    def plot(self, ax: Axes | None = None, *, level: float = 0.05, **line: Any) -> Axes:
        """Plot the difference of the mean curves, with the thresholds at which groups differ.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. Default: those of a new figure, available as ``ax.figure``.
        level : float, default 0.05
            Thresholds with a corrected p-value of at most this are shaded.
        **line
            What `matplotlib.axes.Axes.plot` takes.

        Returns
        -------
        matplotlib.axes.Axes
        """
        what = f"difference of means\n{self.quantity}"
        ax = ax or new_panel(self.coordinate, what, self.threshold_units)
        ax.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
        ax.plot(self.thresholds, self.difference.T, **line)
        where = self._where(level)
        ax.fill_between(
            self.thresholds,
            0,
            1,
            where=where,
            color=FAINT,
            alpha=0.4,
            lw=0,
            transform=ax.get_xaxis_transform(),
            step="mid",
            zorder=0,
        )
        return ax


def _same(one: Any, other: Any) -> bool:
    """Return whether two parts of a result are equal; NaN is equal to itself."""
    if not isinstance(one, np.ndarray):
        return bool(one == other)
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True)


def draw_band(
    ax: Axes, thresholds: Floats, middle: Floats, lower: Floats, upper: Floats, **line: Any
) -> Axes:
    """Draw a curve and the band around it in one colour."""
    drawn = ax.plot(thresholds, middle.T, **line)
    for line2d, low, high in zip(drawn, np.atleast_2d(lower), np.atleast_2d(upper), strict=True):
        ax.fill_between(thresholds, low, high, color=line2d.get_color(), alpha=0.2, lw=0)
    return ax


def new_panel(at: str, quantity: str, units: str | None) -> Axes:
    """Return the only axes of a new figure, with labels."""
    ax = new_axes(HEIGHT)
    ax.set(xlabel=named(at, units), ylabel=quantity)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
