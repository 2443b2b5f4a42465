"""Checks that the curves of an independent unit are replicates, which can be averaged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ecc_core._io.metadata import Condition, some_of, texts_of

if TYPE_CHECKING:
    from pandas import DataFrame, Series

CHANNELS = ("channel", "c")
TIMES = ("t", "frame")
IMAGE = "input"
"""The column with the image of a curve."""
REPLICATES = (
    *(IMAGE, "folder", "name", "layer", "index"),
    *("plate", "well", "row", "column", "field"),
)
"""Columns with the origin of a curve. Curves of a unit that differ in them are replicates."""
MOST_OBJECTS = 0.5
"""The largest fraction of the images, on average, that have the label of an arbitrary object.
Labels in more images are names."""
PLACES = {"well": ("plate",), "field": ("plate", "well")}
"""Columns that are needed to identify the value of another one: wells of plates have one name."""


class Mixed(NamedTuple):
    """A column whose values within a unit are no replicates."""

    column: str
    values: tuple[str, ...]  # The values within the unit.
    unit: str  # "" for a group as a whole.
    recurs: bool  # Whether the reason is that the same values recur in other units.

    def in_words(self, chosen: str, otherwise: str) -> str:
        """Return a message with the advice to choose a value, or to average nevertheless."""
        differ = f"curves of {f'the unit {self.unit!r}' if self.unit else 'a group'} differ in"
        reason = "which recur in other units, so that they" if self.recurs else "which"
        return (
            f"{differ} {self.column} ({some_of(self.values)}), {reason} are no replicates: "
            f"{chosen}, or {otherwise} to average over them"
        )

    @property
    def choice(self) -> str:
        """The condition that selects the first of the values."""
        return str(Condition(self.column, self.values[0]))


class MixedUnitsError(ValueError):
    """Curves of a unit, or of a group, are no replicates, such as channels of an image.

    Attributes
    ----------
    mixed
        What differs: ``column``, ``values``, ``unit`` and ``choice``, a condition that selects one.

    Examples
    --------
    >>> import pandas as pd
    >>> from ecc_core.features import MixedUnitsError, mean_band
    >>> from ecc_core.io import curves_of_table
    >>> images = {"input": ["a", "a", "b", "b"], "channel": ["DAPI", "GFP"] * 2}
    >>> table = curves_of_table(pd.DataFrame({**images, "0.5": [3, 9, 4, 8]}))
    >>> try:
    ...     mean_band(table)
    ... except MixedUnitsError as error:
    ...     error.mixed.column, error.mixed.values
    ('channel', ('DAPI', 'GFP'))
    """

    def __init__(self, mixed: Mixed) -> None:
        self.mixed = mixed
        chosen = f'choose one, such as table.where("{mixed.choice}")'
        super().__init__(mixed.in_words(chosen, f'give `average="{mixed.column}"`'))


Units = Sequence[Sequence[Any]]
Key = tuple[int, str]
"""The number of a group and the name of a unit in it, "" for the group as a whole."""


def unit_ids(groups: Sequence[DataFrame], column: str, paired: bool) -> list[list[str]]:
    """Return the id of the unit of each curve of each group.

    Wells of different plates are different units. If units are paired, the two groups may be plates
    before and after a treatment: then the plate belongs to the id only if it varies within a group.
    """
    known = [{*map(str, group)} for group in groups]
    in_all = set.intersection(*known)
    needed = [place for place in PLACES.get(column, ()) if place in in_all]
    varying = []
    for place in needed:
        values = [set(texts_of(group[place])) for group in groups]
        if not paired:
            values = [set().union(*values)]
        if any(len(own) > 1 for own in values):
            varying.append(place)
    ids = []
    for group in groups:
        rows = zip(*_columns(group, [*varying, column]), strict=True)
        ids.append([" ".join(texts) for texts in rows])
    return ids


def _columns(metadata: DataFrame, names: Iterable[str]) -> list[list[str]]:
    return [texts_of(metadata[name]) for name in names]


def images_as_units(groups: Sequence[DataFrame]) -> list[list[str]] | None:
    """Return the image of each curve if there are several curves of one image in a group."""
    if not all(IMAGE in group for group in groups):
        return None
    images = [texts_of(group[IMAGE]) for group in groups]
    repeats = [len(own) - len(set(own)) for own in images]
    return images if any(repeats) else None


def check_replicates(
    groups: Sequence[DataFrame], units: Units | None, average: str | Collection[str] = ()
) -> list[str]:
    """Return the columns over which the curves of a unit are averaged.

    `groups` are the metadata of the curves of each group, and `units` the ids of their units, or
    None if each curve is a unit. Raises MixedUnitsError if the values of a column within a unit are
    no replicates, unless the column is in `average`.
    """
    allowed = {average, *REPLICATES} if isinstance(average, str) else {*average, *REPLICATES}
    of_group = [(number, "") for number, group in enumerate(groups) for _ in range(len(group))]
    of_unit = of_group[:0]
    if units is not None:
        of_unit = [(number, str(unit)) for number, ids in enumerate(units) for unit in ids]
    averaged = []
    for column in dict.fromkeys(name for group in groups for name in map(str, group)):
        texts = _texts(groups, column)
        held = _values_by(of_unit, texts) if of_unit else {}
        if any(len(values) > 1 for values in held.values()):
            averaged.append(column)
        if column in CHANNELS or (column in TIMES and not of_unit):
            held |= _values_by(of_group, texts)
        varying = [(key, values) for key, values in held.items() if len(values) > 1]
        if not varying or column in allowed or _is_named(column, groups):
            continue
        recurs = _recurs(column, groups, of_unit, texts)
        if recurs or column in (*CHANNELS, *TIMES):
            (_, unit), values = varying[0]
            raise MixedUnitsError(Mixed(column, tuple(values), unit, recurs))
    return averaged


def _texts(groups: Sequence[DataFrame], column: str) -> list[str]:
    """Return the cells of a column in all groups, empty ones for groups without the column."""
    texts: list[str] = []
    for group in groups:
        texts += texts_of(group[column]) if column in group else [""] * len(group)
    return texts


def _values_by(keys: Sequence[Key], texts: Sequence[str]) -> dict[Key, dict[str, None]]:
    """Return the distinct texts of each key, in their order."""
    found: dict[Key, dict[str, None]] = {}
    for key, text in zip(keys, texts, strict=True):
        found.setdefault(key, {})[text] = None
    return found


def _is_named(column: str, groups: Sequence[DataFrame]) -> bool:
    """Whether a column has indices of channels that all have names, which are checked instead."""
    if column != "c":
        return False
    if not all("channel" in group for group in groups):
        return False
    return all(_texts(groups, "channel"))


def _recurs(
    column: str, groups: Sequence[DataFrame], of_unit: Sequence[Key], texts: Sequence[str]
) -> bool:
    """Whether the values of a column in a unit, or the labels of an image, recur in most others."""
    columns = [group[column] for group in groups if column in group]
    if any(map(_is_measured, columns)):
        return False
    keys = of_unit
    if column == "label" and all(IMAGE in group for group in groups):
        keys = [(0, image) for image in _texts(groups, IMAGE)]
    if not keys:
        return False
    sets = [frozenset(values) for values in _values_by(keys, texts).values()]
    if len(sets) < 2:
        return False
    usual, count = Counter(sets).most_common(1)[0]
    if len(usual) > 1 and 2 * count > len(sets):
        return True
    return column == "label" and _are_names(sets)


def _is_measured(column: Series[Any]) -> bool:
    """Whether a column has fractions, so that it is a measurement and not an id."""
    if column.dtype.kind != "f":
        return False
    known = column.dropna().to_numpy()
    return bool((known != np.round(known)).any())


def _is_numbered(labels: frozenset[str]) -> bool:
    """Whether labels are 1, 2, ... without a gap."""
    return labels == {str(k + 1) for k in range(len(labels))}


def _are_names(sets: Sequence[frozenset[str]]) -> bool:
    """Whether labels are names that recur in the images, though some images lack a few.

    Objects that were only numbered have the labels 1 to n in each image or, after some were
    removed, mostly labels that other images lack.
    """
    numbered = all(map(_is_numbered, sets))
    every = frozenset().union(*sets)
    share = sum(map(len, sets)) / (len(sets) * len(every))
    return not numbered and share > MOST_OBJECTS
