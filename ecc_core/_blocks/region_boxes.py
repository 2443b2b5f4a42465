"""Regions of the lasting components of an image that is read by boxes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends import betti_numbers
from ecc_core._backends.pair_options import Pairs
from ecc_core._blocks.box_grid import Array, Points
from ecc_core._blocks.marked_boxes import MarkedBoxes
from ecc_core._blocks.pair_boxes import Found, PairTree, that_enter
from ecc_core._blocks.shells import LOST
from ecc_core._request.levels import round_to_levels
from ecc_core.errors import InputFileError

Step = Callable[[int], object]
MARKS = "marks"
UNCUT = "uncut"
"""Kinds of arrays that are kept."""
MOST_HELD_RUNS = 8
"""The most boxes whose runs are held in memory while labels are read."""


class Regions(NamedTuple):
    """The k lasting components, oldest first. Their labels are 1 to k."""

    births: Array
    deaths: Array
    birth_places: Points
    death_places: Points
    """The places where components die, -1 for those that never do."""
    merged_into: NDArray[np.int32]
    """The label of the component that each one joins when it dies, 0 for those that never do."""
    points: NDArray[np.int64]
    """The number of points with each label."""


@dataclass(frozen=True)
class RegionBoxes:
    """Finds the regions of an image that is read by boxes."""

    tree: PairTree
    threshold: Any = None
    """The value up to which points are labelled, or None for all points."""
    rel_height: float | None = None
    """The fraction of the way from birth to death at which regions are cut, or None."""
    most_held: int = 1
    """The number of boxes that fit in memory."""

    def found(self, step: Step) -> Found:
        """Return the components of the image; `step` is called with a number of boxes."""
        found = self.tree.found(step)
        most = self._flood.MOST_LABELS
        count = found.lasting.births.size
        if count > most:
            raise ValueError(
                f"`min_persistence` must leave at most {most} components, whose labels fit in "
                f"int32, got {count}"
            )
        return found

    def regions(self, found: Found, step: Step) -> Regions:
        """Label the points of the image, and return its regions.

        `step` is called with a number of boxes.
        """
        levels, count = self._levels(found, step)
        marked = MarkedBoxes(
            tree=self.tree, found=found, levels=levels, kind=MARKS, most_held=self.most_held
        )
        marked.spread(step)
        merged = self._merged(marked, found.lasting)
        pairs = Pairs(*(part[:count] for part in found.lasting))
        return Regions(*pairs, merged[:count], self._points(count))

    @property
    def _flood(self) -> Any:
        return betti_numbers("cpu").flood_boxes

    def _levels(self, found: Found, step: Step) -> tuple[NDArray[np.uint64], int]:
        """Return the key after which each label is cut, and the number of labels that have points.

        There are no keys if no label is cut.
        """
        pairs = found.lasting
        options = self.tree.options
        superlevel = options.filtration.superlevel
        total = pairs.births.size
        none = np.empty(0, np.uint64)
        if self.threshold is None and self.rel_height is None:
            return none, total
        keys = np.full(total, np.iinfo(np.uint64).max, np.uint64)
        if self.rel_height is not None:
            last, finite = self._ends(found, step)
            cut = self._flood.cut_keys(pairs, last, self.rel_height, finite, superlevel)
            keys = np.minimum(keys, cut)
        if self.threshold is not None:
            reached = round_to_levels(np.array([self.threshold]), options.dtype, superlevel)
            if not reached.entered[0]:
                return np.zeros(total + 1, np.uint64), 0
            level = reached.values.astype(options.dtype)  # Levels of booleans are bytes.
            keys = np.minimum(keys, self._flood.keys_of(level, superlevel))
        births = self._flood.keys_of(pairs.births, superlevel)
        return np.append(np.uint64(0), keys), int(np.count_nonzero(births <= keys))

    def _ends(self, found: Found, step: Step) -> tuple[Array, tuple[float, float] | None]:
        """Return the last value to enter of the connected part of the image that has each label.

        Also return the first and the last finite value to enter, or None if there is none.
        """
        grid = self.tree.grid
        known: list[Any] = [self.tree.kept.load("ends", number) for number in range(grid.size)]
        ends = np.concatenate(known)
        pairs = found.lasting
        finite = None
        if ends.dtype.kind == "f" and ends.size:
            low = float(ends[:, 0].min())
            high = float(ends[:, 1].max())
            finite = (low, high) if low <= high else None
        if np.count_nonzero(pairs.death_places < 0) > 1:
            return self._last_values(found, step), finite
        lowest = self._flood.lowest(ends.dtype, 1)[0]
        return np.full(pairs.births.size, ends[:, 2].max(initial=lowest)), finite

    def _last_values(self, found: Found, step: Step) -> Array:
        """Return what `_ends` does for an image of several parts that are not connected."""
        tree = self.tree
        marked = MarkedBoxes(
            tree=tree,
            found=found,
            levels=np.empty(0, np.uint64),
            kind=UNCUT,
            most_held=self.most_held,
        )
        marked.spread(step)
        merged = self._merged(marked, found.lasting)
        last: Array = self._flood.lowest(tree.options.dtype, merged.size + 1)
        for number in range(tree.grid.size):
            values, shown = tree.read(tree.grid.box(number))
            runs: Any = tree.kept.load(UNCUT, number)
            labels = betti_numbers("cpu").mark_runs.read_runs(runs, values.shape) >> 1
            there = that_enter(values, shown)
            own = slice(None) if there is None else there
            entered = self._flood.entered_values(values, tree.options.filtration.superlevel)
            np.maximum.at(last, labels[own], entered[own])
        tree.kept.drop(UNCUT)
        for label in range(merged.size, 0, -1):
            elder = merged[label - 1]
            if elder:
                last[elder] = max(last[elder], last[label])
        return last[1:]

    def _merged(self, marked: MarkedBoxes, pairs: Pairs) -> NDArray[np.int32]:
        """Return the label of the component that each one joins when it dies, or 0."""
        ending = np.flatnonzero(pairs.death_places >= 0)
        places = pairs.death_places[ending]
        rows = marked.lower_labels()
        keys = self._flood.keys_of(pairs.deaths[ending], marked.filtration.superlevel)
        merged: NDArray[np.int32] = self._flood.merged_of(
            rows[np.lexsort((places, keys))], pairs.births.size
        )
        return merged

    def _points(self, count: int) -> NDArray[np.int64]:
        """Return the number of points with each label."""
        grid = self.tree.grid
        functions = betti_numbers("cpu").mark_runs
        points = np.zeros(count + 1, np.int64)
        for number in range(grid.size):
            runs: Any = self.tree.kept.load(MARKS, number)
            marks, lengths = functions.lengths_of(runs, grid.shape_of(number))
            functions.add_lengths(labels_of(marks, count), lengths, points)
        return points[1:]


def labels_of(marks: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """Return the labels of marks, 0 for points that are cut and for labels beyond `count`."""
    labels = marks >> 1
    is_cut = marks & 1 == 1
    return np.where(is_cut | (labels > count), 0, labels)


@dataclass(frozen=True)
class KeptLabels:
    """The labels of an image, which are read box by box from the runs that were kept."""

    tree: PairTree
    count: int
    """The number of labels."""
    _runs: dict[int, Any] = field(default_factory=dict)
    """The runs of the boxes that were read last: parts of a box are read one after another."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tree.grid.shape

    @property
    def dtype(self) -> np.dtype[np.int32]:
        return np.dtype(np.int32)

    def __getitem__(self, box: tuple[slice, ...]) -> NDArray[np.int32]:
        grid = self.tree.grid
        labels = np.zeros([part.stop - part.start for part in box], np.int32)
        read_runs = betti_numbers("cpu").mark_runs.read_runs
        change = partial(labels_of, count=self.count)
        for number in grid.that_meet(box):
            inside = []
            here = []
            for part, own in zip(box, grid.box(number), strict=True):
                first = max(part.start, own.start)
                last = min(part.stop, own.stop)
                inside.append(slice(first - own.start, last - own.start))
                here.append(slice(first - part.start, last - part.start))
            labels[tuple(here)] = read_runs(
                self._runs_of(number), grid.shape_of(number), inside, change
            )
        return labels

    def _runs_of(self, number: int) -> Any:
        """Return the runs of a box, and hold them in memory."""
        runs = self._runs.pop(number, None)
        if runs is None:
            runs = self.tree.kept.load(MARKS, number)
            if runs is None:
                raise InputFileError(LOST)
        self._runs[number] = runs
        for other in list(self._runs)[:-MOST_HELD_RUNS]:
            self._runs.pop(other, None)  # Another thread may have removed it already.
        return runs
