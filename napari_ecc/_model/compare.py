"""State of the comparison: curves by name, and the groups that they fall into."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from psygnal import SignalGroupDescriptor

from ecc_core import EulerCurve
from ecc_core.features import (
    CurveBand,
    MixedUnitsError,
    PermutationTest,
    align_curves,
    mean_band,
    permutation_test,
)
from ecc_core.io import CurveTable, join_columns
from ecc_core.results import check_agreement

Curves = dict[str, EulerCurve]
View = Literal["curves", "bands", "difference"]
KEYS = ("name", "layer", "frame", "index")
"""Columns that say which curve a row of a table belongs to."""
KINDS = ("channel", "c", "t", "frame", "label")
"""Columns that may say that curves are no replicates even if all their values differ."""
MOST_NAMED = 8
"""Largest number of groups that are named one by one."""
MOST_RANGES = 4
"""Largest number of ranges of thresholds that are named one by one."""
INDEPENDENT = "Valid if the curves are independent, or a unit such as the well is chosen"
SEED = 0
"""Seed of bootstrap and permutations, for reproducible results."""


class Comparison(NamedTuple):
    """Groups of curves and the result of their comparison."""

    groups: dict[str, list[str]]
    """Names of the curves of each group."""
    bands: dict[str, CurveBand]
    """Mean and 95 % band of each group; both bounds are the mean for a single curve."""
    difference: tuple[NDArray[np.float64], NDArray[np.float64]] | None
    """Mean of the first group minus that of the second, if there are two."""
    test: PermutationTest | None
    """Whether they differ, if there are two or more groups of two or more units."""
    unit: str = ""
    """The column that says which curves are averaged; "" if each is a unit."""
    sizes: tuple[int, ...] = ()
    """The number of units of each group."""
    mixed: MixedUnitsError | None = None
    """What differs between the curves of a unit, or of a group, that are no replicates."""

    def size_in_words(self, number: int) -> str:
        """The number of units of a group, of which each may be the mean of several curves."""
        return f"{self.unit or 'n'} = {self.sizes[number]}"

    @property
    def problem(self) -> str:
        """Why the groups have no means and are not compared, and what can be done; or ""."""
        if self.mixed is None:
            return ""
        mixed = self.mixed.mixed
        words = mixed.in_words(f"compare {mixed.choice} alone", f"choose Average {mixed.column}")
        return f"{words[:1].upper()}{words[1:]}."

    def in_words(self) -> str:
        """Lines with the sizes of the groups, the result of the test, and where they differ."""
        sizes = [f"{name} ({self.size_in_words(k)})" for k, name in enumerate(self.groups)]
        if len(sizes) > MOST_NAMED:
            sizes = [f"{len(sizes)} groups"]
        if self.mixed is not None and len(self.groups) > 1:
            return f"{', '.join(sizes)}. {self.problem}"
        if self.test is None:
            units = f"values of {self.unit}" if self.unit else "curves"
            return f"{', '.join(sizes)}. A test needs groups of 2 or more {units}."
        result = f"p = {self.test.pvalue:.2g}"
        if self.test.is_least:
            least = "units" if self.test.exact else "permutations"
            result = f"{result}, the smallest that so few {least} can give"
        known = (
            f"distance of the means {self.test.statistic:.4g}, {self.test.null.size:,} permutations"
        )
        found = self.test.differing()
        ranges = [f"{a:g}" if a == b else f"{a:g} to {b:g}" for a, b in found]
        if len(ranges) > MOST_RANGES:
            ranges = [f"{len(ranges)} ranges from {found[0][0]:g} to {found[-1][1]:g}"]
        where = f"Thresholds that differ (p ≤ 0.05, corrected): {', '.join(ranges) or 'none'}"
        lines = [" and ".join(sizes), f"{result} ({known})", where]
        return "\n".join(lines if self.unit else [*lines, INDEPENDENT])

    @property
    def difference_in_words(self) -> str:
        """Which mean is subtracted from which, if there are two groups."""
        return " \N{MINUS SIGN} ".join(self.groups) if len(self.groups) == 2 else ""


def groups_of(
    names: list[str], pattern: str, values: Sequence[str] | None = None
) -> dict[str, list[str]]:
    """Group names by what a regular expression matches in them or in their values.

    The group is its first parenthesis, or all that it finds; what is without a match is in the
    group "other". For "" each value is a group, and all names are one.

    Examples
    --------
    >>> from napari_ecc._model.compare import groups_of
    >>> groups_of(["control 1", "drug 1", "drug 2"], "control|drug")
    {'control': ['control 1'], 'drug': ['drug 1', 'drug 2']}
    """
    try:
        re.compile(pattern)
    except re.error as error:
        expected = "`pattern` must be a regular expression such as control|drug"
        raise ValueError(f"{expected}, got {pattern!r}: {error}") from None
    result: dict[str, list[str]] = {}
    for name, text in zip(names, names if values is None else values, strict=True):
        if pattern:
            group = _group_in(text, pattern)
        else:
            group = "all" if values is None else text
        result.setdefault(group, []).append(name)
    return result


def _group_in(text: str, pattern: str) -> str:
    """Return what the first group of a pattern matches, or all of it, or "other"."""
    found = re.search(pattern, text)
    if found is None:
        return "other"
    return found.group(1) if found.lastindex else found.group()


def joined(table: pd.DataFrame, features: Any) -> pd.DataFrame:
    """Join the columns of another table, or of a mapping, by equal values of some of `KEYS`."""
    return join_columns(table, pd.DataFrame(features), KEYS)


def with_suffixes(features: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return features whose names are those of files, if they are these without their suffixes.

    They stay as they are if one of them is a name, or two files differ in their suffixes only.

    Examples
    --------
    >>> import pandas as pd
    >>> from napari_ecc._model.compare import with_suffixes
    >>> wells = pd.DataFrame({"name": ["a/1", "a/2"], "well": ["A1", "A2"]})
    >>> with_suffixes(wells, ["a/1.tif", "a/2.tif", "a/3.tif"])["name"].tolist()
    ['a/1.tif', 'a/2.tif']
    """
    if "name" not in features:
        return features
    given = features["name"].astype(str)
    without_suffix = [PurePosixPath(name).with_suffix("") for name in names]
    stems = list(map(str, without_suffix))
    files = dict(zip(stems, names, strict=True))
    if given.isin(names).any() or len(files) < len(names):
        return features
    whole_names = [files.get(name, name) for name in given]
    return features.assign(name=whole_names)


def column_of_groups(table: pd.DataFrame) -> str:
    """Return the column of the fewest different values, of at least two rows each; "" if none.

    Examples
    --------
    >>> import pandas as pd
    >>> from napari_ecc._model.compare import column_of_groups
    >>> wells = pd.DataFrame({"well": [*"abcd"], "drug": [*"xxyy"], "plate": [1, 1, 1, 1]})
    >>> column_of_groups(wells)
    'drug'
    """
    counts = {name: table[name].value_counts() for name in table.columns}
    usable = {
        str(name): count.size
        for name, count in counts.items()
        if count.size > 1 and count.min() > 1
    }
    return min(usable, key=lambda name: usable[name], default="")


def compare_groups(
    curves: Mapping[str, EulerCurve],
    pattern: str = "",
    *,
    features: Any = None,
    by: str = "",
    unit: str = "",
    where: str | Sequence[str] = (),
    average: str | Sequence[str] = (),
    n_permutations: int = 9999,
) -> Comparison:
    """Compare groups of curves by a permutation test of the distance of their means.

    Parameters
    ----------
    curves : mapping of str to EulerCurve
    pattern : str, default ""
        A regular expression for the names, or for the values of the column `by`. The group is its
        first parenthesis, or all that it finds; what is without a match is in the group "other".
        "": each value of the column is a group.
    features : DataFrame, or mapping of str to columns, optional
        What is known of the curves, with their names in the column ``name``.
    by : str, default ""
        A column of `features`.
    unit : str, default ""
        The column of `features` that names the independent units, such as wells or animals, within
        which curves are averaged. "": each curve is a unit.
    where : str or sequence of str, default ()
        Conditions on columns of `features` that curves must fulfil, such as ``"channel=DAPI"``.
    average : str or sequence of str, default ()
        Columns of `features` whose values within a unit are replicates, although they are channels
        or times, or recur in the other units.
    n_permutations : int, default 9999

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If `by` or `unit` is not a column of `features`, no curve fulfils `where`, a unit is in
        several groups, curves of a unit are no replicates, or curves differ in what must agree; see
        :func:`ecc_core.features.permutation_test`.
    """
    found = compared(
        curves,
        pattern,
        features=features,
        by=by,
        unit=unit,
        where=where,
        average=average,
        n_permutations=n_permutations,
    )
    if found.mixed is not None:
        mixed = found.mixed.mixed
        choice = f'choose one, such as `where="{mixed.choice}"`'
        raise ValueError(mixed.in_words(choice, f'give `average="{mixed.column}"`'))
    return found


def compared(
    curves: Mapping[str, EulerCurve],
    pattern: str = "",
    *,
    features: Any = None,
    by: str = "",
    unit: str = "",
    where: str | Sequence[str] = (),
    average: str | Sequence[str] = (),
    n_permutations: int = 9999,
) -> Comparison:
    """Compare groups as `compare_groups` does; those that cannot be compared have no means."""
    check_agreement(None, **curves)
    table = _in_rows(curves, features)
    if where:
        table = table.where(*([where] if isinstance(where, str) else where))
    names = table.metadata["name"].tolist()
    groups = groups_of(names, pattern, values_of(names, features, by) if by else None)
    unit_of_each = values_of(names, features, unit) if unit else names
    ids = dict(zip(names, unit_of_each, strict=True))
    parts = [table.select(np.isin(names, members)) for members in groups.values()]
    units = [[ids[at] for at in members] for members in groups.values()]
    distinct = [set(own) for own in units]
    sizes = tuple(map(len, distinct))
    difference = test = mixed = None
    bands: dict[str, CurveBand] = {}
    try:
        for name, part, own in zip(groups, parts, units, strict=True):
            bands[name] = _band(part, own if unit else None, average)
        if len(groups) > 1 and min(sizes) >= 2:
            test = permutation_test(
                *parts,
                units=tuple(units) if unit else None,
                average=average,
                n_permutations=n_permutations,
                rng=SEED,
            )
    except MixedUnitsError as error:
        bands = {}
        mixed = error
    if len(bands) == 2:
        first, second = (band.mean for band in bands.values())
        difference = np.asarray(table.curves.thresholds), first - second
    return Comparison(groups, bands, difference, test, unit, sizes, mixed)


def _in_rows(curves: Mapping[str, EulerCurve], features: Any) -> CurveTable:
    """Return a table with a row for each curve, at the thresholds of all of them."""
    metadata = pd.DataFrame({"name": list(curves)})
    if features is not None:
        metadata = joined(metadata, features)
    return CurveTable(align_curves(list(curves.values())), metadata)


def values_of(names: list[str], features: Any, column: str) -> list[str]:
    """Return the values of a column of features for curves, "none" if missing."""
    table = joined(pd.DataFrame({"name": names}), features)
    if column not in table.columns:
        raise ValueError(f"`by` must be a column of `features`, got {column!r}")
    values = table[column].astype(object).where(table[column].notna(), "")
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return [text or "none" for text in texts]


def _band(part: CurveTable, units: list[str] | None, average: str | Sequence[str]) -> CurveBand:
    """Return the mean of a group and its band, which is the mean of a single unit."""
    try:
        return mean_band(part, units=units, average=average, rng=SEED)
    except MixedUnitsError:
        raise
    except ValueError:  # A band needs two units.
        names = part.metadata["name"] if units is None else units
        if len(set(names)) > 1:
            raise
    mean = part.curves.values.mean(axis=0)
    return CurveBand(np.asarray(part.curves.thresholds), mean, mean, mean)


@dataclass
class CompareModel:
    """Settings and results of the comparison."""

    curves: Curves = field(default_factory=dict)
    """The curves by name, in the order in which they came."""
    features: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What is known of the curves, by their names."""
    by: str = ""
    """The column that groups are made by; "" for the names."""
    pattern: str = ""
    """The pattern of the groups; see `groups_of`."""
    unit: str = ""
    """The column whose values are the independent units; "" for the curves."""
    where: str = ""
    """Conditions such as channel=DAPI, with commas between them."""
    average: tuple[str, ...] = ()
    """Columns whose values within a unit are replicates."""
    view: View = "curves"
    comparison: Comparison | None = None
    status: str = ""
    """One line for the user."""

    events: ClassVar[SignalGroupDescriptor] = SignalGroupDescriptor()

    @property
    def table(self) -> pd.DataFrame:
        """Features of the curves, one row each, with the column ``name``."""
        rows = [{"name": name, **self.features.get(name, {})} for name in self.curves]
        return pd.DataFrame(rows)

    @property
    def grouping(self) -> dict[str, Any]:
        """Arguments of `compare_groups`."""
        table = self.table
        chosen: dict[str, Any] = {"by": self.by, "unit": self.unit, "average": self.average}
        chosen["where"] = tuple(filter(None, map(str.strip, self.where.split(","))))
        used = {name: value for name, value in chosen.items() if value}
        conditions = [one.partition("=")[0].rstrip("! ") for one in chosen["where"]]
        named = {self.by, self.unit, *conditions}
        kept = [name for name in table if name in named or _may_differ(table[name])]
        if len(kept):
            names = list(self.curves)
            columns = {name: values_of(names, table, name) for name in kept}
            used = {"features": {"name": names, **columns}, **used}
        return {"pattern": self.pattern, **used}


def _may_differ(column: "pd.Series[Any]") -> bool:
    """Whether a column may say that curves are no replicates: it has values that recur."""
    if column.name == "name" or column.nunique() < 2:
        return False
    return column.name in KINDS or bool(column.duplicated().any())
