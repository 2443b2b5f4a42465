"""State of the comparison: curves by name, and the groups that they fall into."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psygnal import SignalGroupDescriptor

from ecc_core import EulerCurve
from ecc_core.features import (
    CurveBand,
    PermutationTest,
    align_curves,
    mean_band,
    permutation_test,
)

__all__ = ["CompareModel", "Comparison", "Curves", "View", "compare_groups", "groups_of"]

Curves = dict[str, EulerCurve]
View = Literal["curves", "bands", "difference"]
SEED = 0
"""Of bootstrap and permutations, so that results repeat."""


class Comparison(NamedTuple):
    """Groups of curves, and what sets two of them apart.

    Attributes
    ----------
    groups : dict of str to list of str
        Names of the curves of each group.
    bands : dict of str to CurveBand
        Mean and 95 % band of each group; both bounds are the mean for a single curve.
    difference : (thresholds, values) or None
        Mean of the first group minus that of the second, if there are two.
    test : PermutationTest or None
        Whether they differ, if both have two or more curves.
    """

    groups: dict[str, list[str]]
    bands: dict[str, CurveBand]
    difference: tuple[NDArray[np.float64], NDArray[np.float64]] | None
    test: PermutationTest | None

    def in_words(self) -> str:
        """The result of the test, with the sizes of the groups."""
        sizes = [f"{name} (n = {len(members)})" for name, members in self.groups.items()]
        if self.test is None:
            return f"{', '.join(sizes)}. A test needs two groups of 2 or more curves."
        result = f"p = {self.test.pvalue:.2g}, {self.test.null.size:,} permutations"
        return f"{' and '.join(sizes)}: distance of the means {self.test.statistic:.4g}, {result}"


def groups_of(names: list[str], pattern: str) -> dict[str, list[str]]:
    """Names by what a pattern finds in them.

    Parameters
    ----------
    names : list of str
    pattern : str
        A regular expression. The group is its first parenthesis, or all that it finds; names
        without a match are in the group "other". "": all are in one group.

    Examples
    --------
    >>> from napari_ecc._model.compare import groups_of
    >>> groups_of(["control 1", "drug 1", "drug 2"], "control|drug")
    {'control': ['control 1'], 'drug': ['drug 1', 'drug 2']}
    """
    result: dict[str, list[str]] = {}
    for name in names:
        found = re.search(pattern, name) if pattern else None
        group = "other" if found is None else found.group(1 if found.lastindex else 0)
        result.setdefault(group if pattern else "all", []).append(name)
    return result


def compare_groups(
    curves: Mapping[str, EulerCurve], pattern: str = "", *, n_permutations: int = 9999
) -> Comparison:
    """Compare groups of curves by a permutation test of the distance of their means.

    Parameters
    ----------
    curves : mapping of str to EulerCurve
    pattern : str, default ""
        A regular expression for the names; see `groups_of`.
    n_permutations : int, default 9999

    Returns
    -------
    Comparison
    """
    groups = groups_of(list(curves), pattern)
    bands = {name: _band([curves[at] for at in members]) for name, members in groups.items()}
    difference = test = None
    if len(groups) == 2:
        first, second = ([curves[at] for at in members] for members in groups.values())
        both = align_curves([*first, *second])
        means = np.split(both.values, [len(first)])
        difference = both.thresholds, means[0].mean(axis=0) - means[1].mean(axis=0)
        if min(len(first), len(second)) >= 2:
            test = permutation_test([*first], [*second], n_permutations=n_permutations, rng=SEED)
    return Comparison(groups, bands, difference, test)


def _band(curves: list[EulerCurve]) -> CurveBand:
    if len(curves) > 1:
        return mean_band([*curves], rng=SEED)
    values = np.asarray(curves[0].values, dtype=np.float64)
    return CurveBand(np.asarray(curves[0].thresholds, dtype=np.float64), values, values, values)


@dataclass
class CompareModel:
    """What is compared, and how it is shown.

    Attributes
    ----------
    curves : dict of str to EulerCurve
        By name, in the order in which they came.
    pattern : str
        Of the groups; see `groups_of`.
    view : {"curves", "bands", "difference"}
    comparison : Comparison or None
    status : str
        One line for the user.
    """

    curves: Curves = field(default_factory=dict)
    pattern: str = ""
    view: View = "curves"
    comparison: Comparison | None = None
    status: str = ""

    events: ClassVar[SignalGroupDescriptor] = SignalGroupDescriptor()
