"""The result of Betti matching."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import adapter_of, on_host
from ecc_core._optional import import_optional
from ecc_core.results._pairs import PersistencePairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

NO_MATCH = -1


@dataclass(frozen=True, eq=False)
class BettiMatching:
    """The classes of two images, and which of them match: components, holes or tunnels, cavities.

    It unpacks into its three attributes.

    Attributes
    ----------
    prediction, target : PersistencePairs
        All classes of either image, with their births and deaths and the points that cause them.
    matches : (m, 2) int64 array
        The numbers of a class of the prediction and of the class of the target that it matches.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> target = np.array([[1, 1, 1, 0, 1], [1, 0, 1, 0, 1], [1, 1, 1, 0, 1]], bool)
    >>> prediction = target.copy()
    >>> prediction[1, 2] = False  # a gap in the ring
    >>> prediction[:, 4] = False  # and the bar is missing
    >>> found = ecc.betti_matching(prediction, target)
    >>> found.error  # components, holes
    array([1, 1])
    >>> found.unmatched_target.birth_points[0]
    array([0, 4])
    >>> found.unmatched_target.select(1).death_points  # the hole
    array([[1, 1]])
    """

    prediction: PersistencePairs[Any]
    target: PersistencePairs[Any]
    matches: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.prediction, self.target, self.matches))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        same = np.array_equal(on_host(self.matches), on_host(other.matches))
        return same and self.prediction == other.prediction and self.target == other.target

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        counts = f"prediction={len(self.prediction.births)}, target={len(self.target.births)}"
        error = ", ".join(map(str, on_host(self.error)))
        return f"BettiMatching({counts}, matches={len(self.matches)}, error=[{error}])"

    @property
    def matched(self) -> tuple[PersistencePairs[Any], PersistencePairs[Any]]:
        """The classes of the prediction that match, and those of the target, in the same order."""
        numbers = on_host(self.matches)
        return _chosen(self.prediction, numbers[:, 0]), _chosen(self.target, numbers[:, 1])

    @property
    def unmatched_prediction(self) -> PersistencePairs[Any]:
        """The classes of the prediction that the target does not have there."""
        return self._unmatched(0)

    @property
    def unmatched_target(self) -> PersistencePairs[Any]:
        """The classes of the target that the prediction does not have there."""
        return self._unmatched(1)

    def _unmatched(self, image: int) -> PersistencePairs[Any]:
        pairs = (self.prediction, self.target)[image]
        left = np.ones(len(pairs.births), bool)
        left[on_host(self.matches)[:, image]] = False
        return _chosen(pairs, np.flatnonzero(left))

    @property
    def error(self) -> Any:
        """The Betti matching error: how many classes of either image do not match, (d,) int64.

        The numbers are those of components, holes or tunnels, and cavities.
        """
        counts = [on_host(pairs.dimensions) for pairs in (self.prediction, self.target)]
        dimensions = len(self.prediction.counts or ())
        classes = sum(np.bincount(own, minlength=dimensions) for own in counts)
        matched = np.bincount(counts[0][on_host(self.matches)[:, 0]], minlength=dimensions)
        return adapter_of(self.matches).wrap(classes - 2 * matched, self.matches)

    def to_pandas(self) -> DataFrame:
        """Return a table with one row for each class.

        Returns
        -------
        pandas.DataFrame
            The columns ``image`` ("prediction" or "target"), ``dimension``, ``birth``, ``death``,
            ``persistence``, ``match``, which is the number of the pair of classes or -1, and the
            indices of both points.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas = import_optional("pandas", extra="features", purpose="to_pandas")
        parts = []
        for image, name in enumerate(("prediction", "target")):
            pairs = (self.prediction, self.target)[image].to_numpy()
            match = np.full(len(pairs.births), NO_MATCH)
            match[on_host(self.matches)[:, image]] = np.arange(len(self.matches))
            table = {
                "image": name,
                "dimension": pairs.dimensions,
                "birth": pairs.births,
                "death": pairs.deaths,
                "persistence": pairs.persistence,
                "match": match,
            }
            for event in ("birth", "death"):
                points = getattr(pairs, f"{event}_points")
                table |= {f"{event}_point_{i}": points[:, i] for i in range(points.shape[1])}
            parts.append(pandas.DataFrame(table))
        table = pandas.concat(parts, ignore_index=True)
        table.attrs.update(self.prediction.facts)
        return table

    def plot(self, image: Any = None, ax: Axes | None = None, **markers: Any) -> Axes:
        """Plot what does not match; see :func:`ecc_core.plotting.plot_matching`.

        Parameters
        ----------
        image : array, optional
            What to draw the classes on, such as the prediction.
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. Default: those of a new figure, available as ``ax.figure``.
        **markers
            What `matplotlib.axes.Axes.plot` takes.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from ecc_core.plotting import plot_matching

        return plot_matching(self, image, ax, **markers)


def _chosen(pairs: PersistencePairs[Any], numbers: NDArray[np.int64]) -> PersistencePairs[Any]:
    """Return the classes with some numbers, ordered by dimension."""
    dimensions = on_host(pairs.dimensions)[numbers]
    numbers = numbers[np.argsort(dimensions, kind="stable")]
    counts = np.bincount(dimensions, minlength=len(pairs.counts or ())).tolist()
    parts = {name: part[numbers] for name, part in pairs._asdict().items()}
    return replace(pairs, **parts, counts=tuple(counts))
