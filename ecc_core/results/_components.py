"""Results of components of sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ecc_core._optional import import_optional
from ecc_core.results._base import ArrayT
from ecc_core.results._topology import DiagramResult

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["PersistentRegions"]


@dataclass(frozen=True, eq=False, repr=False)
class PersistentRegions(DiagramResult[ArrayT]):
    """Labels of the components that last, and one row of facts for each label.

    It unpacks into ``labels, births, deaths, birth_points, merged_into``.

    Attributes
    ----------
    labels : int32 array of the image's shape
        1 to k, the oldest component first; 0 elsewhere.
    births, deaths : (k,) arrays
        Values at which the components are born and die, in the image's dtype. A component that
        never dies has the largest value of the dtype (infinity for floats) for its death; for
        superlevel sets the smallest.
    birth_points : (k, d) int64 array
        Index of the extreme point of each label.
    merged_into : (k,) int32 array
        The label of the older component that each one joins when it dies; 0 if it never dies.
    min_persistence : float or int
        Least difference of birth and death.
    connectivity, superlevel, ndim
        As in :class:`ecc_core.BettiCurves`.
    """

    labels: ArrayT
    births: ArrayT
    deaths: ArrayT
    birth_points: ArrayT
    merged_into: ArrayT
    min_persistence: float = 0
    connectivity: int | None = None
    superlevel: bool = False
    ndim: int | None = None
    _fields: ClassVar = ("labels", "births", "deaths", "birth_points", "merged_into")

    @property
    def essential(self) -> ArrayT:
        """Whether each component never dies: (k,) bool array."""
        elders: Any = self.merged_into
        found: ArrayT = elders == 0
        return found

    def _axes(self) -> dict[str, Any]:
        births: Any = self.births
        return {"label": np.arange(1, len(births) + 1), "event": np.array(["birth", "death"])}

    def to_pandas(self) -> DataFrame:
        """Return a table with one row for each label; the facts are in its ``attrs``.

        Returns
        -------
        pandas.DataFrame
            The columns ``label``, ``birth``, ``death``, ``merged_into``, and the index of the
            extreme point, ``point_0`` and so on.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas = import_optional("pandas", extra="features", purpose="to_pandas")
        host: Any = self.to_numpy()
        table: DataFrame = pandas.DataFrame(
            {
                "label": np.arange(1, len(host.births) + 1),
                "birth": host.births,
                "death": host.deaths,
                "merged_into": host.merged_into,
                **{f"point_{i}": column for i, column in enumerate(host.birth_points.T)},
            }
        )
        table.attrs.update(self.facts)
        return table
