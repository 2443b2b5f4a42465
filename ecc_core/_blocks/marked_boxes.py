"""Labels that spread from box to box of an image, until none changes.

Labels spread within a box and its halo (`flood_boxes.py` of the backend). A box is visited again if
its halo has changed. As many boxes as fit are held in memory. Of the others, the marks are kept as
runs, and those of the outermost points also by themselves, because neighbours read them. Marks only
decrease, so an interrupted computation can continue from those that were kept, in any order, and
ends with the same marks.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends import betti_numbers
from ecc_core._blocks.box_grid import Array, BoxGrid, Points, by_box, shell_of
from ecc_core._blocks.lower_labels import LowerLabels, Window
from ecc_core._blocks.pair_boxes import Found, Kept, PairTree, in_order, that_enter
from ecc_core._blocks.shells import Shells, kept_array
from ecc_core._request.filtration import Filtration

Marks = NDArray[np.int32]
NONE = np.empty(0, np.int64)
BYTES_HELD = 6
"""Bytes for the mark and the links of a point of a box in memory."""
BYTES_OF_RANK = 4
"""Bytes for the rank of a point in a periodic image, where keys do not determine the order."""


def held_bytes(dtype: np.dtype[Any], wraps: tuple[bool, ...]) -> int:
    """Return the bytes that each point of a box in memory takes."""
    ranks = BYTES_OF_RANK if any(wraps) else 0
    return dtype.itemsize + BYTES_HELD + ranks


@dataclass
class Held:
    """A box that is in memory."""

    keys: Array
    order: Array
    """Numbers that order the points by entry: the keys, or ranks in a periodic image."""
    marks: Marks
    """The marks of the points of its window."""
    links: Any
    is_known: bool
    """Whether any of its points had a mark when it was read, or has been visited since."""
    is_new: bool = True
    """Whether it has not been visited since it was read."""


class Waiting(NamedTuple):
    """A box that is to be visited."""

    turn: int
    """A number that increases from box to box as they begin to wait."""
    changed: set[int]
    """The neighbours whose marks have changed since the box was visited."""


@dataclass
class MarkedBoxes:
    """The boxes of an image whose labels spread."""

    tree: PairTree
    found: Found
    levels: NDArray[np.uint64]
    """The key after which each label is cut, by label; empty if no label is cut."""
    kind: str
    """The kind of the arrays that are kept."""
    most_held: int
    """The number of boxes that fit in memory."""
    held: dict[int, Held] = field(default_factory=dict)
    """Boxes in memory, the most recently used one last."""

    def __post_init__(self) -> None:
        grid = self.grid
        self._seeds = by_box(grid, self.found.lasting.birth_places)
        self._begin = by_box(grid, self.found.births)
        self._end = by_box(grid, self.found.deaths)
        self.end_marks = np.full(self.found.deaths.size, self.flood.UNKNOWN, np.int32)
        """The marks of the death points of components that extend over several boxes."""
        order = grid.partition.in_halves(grid.partition.whole)
        places = self.found.lasting.death_places
        self.lower = LowerLabels(grid, self.filtration, places[places >= 0])
        self.shells = Shells(grid, self.kept, self.kind)
        self._turns = itertools.count()
        self.waiting: dict[int, Waiting] = {}
        """The boxes that are to be visited. At first these are all, neighbours near each other."""
        for index in order:
            self._wait(grid.number(index))
        self.waiting_in_memory: dict[int, None] = {}
        """The boxes of `waiting` that are in memory, in the order in which they are taken."""

    @property
    def grid(self) -> BoxGrid:
        return self.tree.grid

    @property
    def kept(self) -> Kept:
        return self.tree.kept

    @property
    def filtration(self) -> Filtration:
        return self.tree.options.filtration

    @cached_property
    def flood(self) -> Any:
        return betti_numbers("cpu").flood_boxes

    def spread(self, step: Callable[[int], object]) -> None:
        """Visit boxes until no label changes.

        `step` is called with the number of boxes that have been visited since its last call.
        """
        running: dict[Future[set[int]], int] = {}
        with ThreadPoolExecutor(self.tree.workers) as pool:
            while self.waiting or running:
                while len(running) < self.tree.workers:
                    number = self._next({*running.values()})
                    if number is None:
                        break
                    changed = self.waiting.pop(number).changed
                    held = self.held.pop(number, None)
                    running[pool.submit(self._visit, number, held, changed)] = number
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    number = running.pop(future)
                    for other in future.result():
                        self._wait(other, number)
                        # A box is in `held` shortly before its visit ends.
                        if other in self.held and other not in running.values():
                            self.waiting_in_memory[other] = None
                    if number in self.waiting:
                        self.waiting_in_memory[number] = None
                    step(1)
        self._keep_all_but(0, set())

    def _wait(self, number: int, *changed: int) -> None:
        """Let a box wait to be visited, because the marks of the boxes `changed` have changed."""
        if number not in self.waiting:
            self.waiting[number] = Waiting(next(self._turns), set())
        self.waiting[number].changed.update(changed)

    def _next(self, running: set[int]) -> int | None:
        """Return the box to visit next, preferably one in memory; None if all are `running`."""
        if self.waiting_in_memory:
            number = next(iter(self.waiting_in_memory))
            del self.waiting_in_memory[number]
            return number
        nearest = self._nearest(running)
        if nearest is not None:
            self._keep_all_but(max(0, self.most_held - len(running) - 1), running)
        return nearest

    def _nearest(self, running: set[int]) -> int | None:
        """Return the waiting box that has most neighbours in memory, None if all are `running`.

        Visits that follow each other then change the same boxes, which need not be read again.
        """
        beside = Counter(
            other
            for number in list(self.held)  # A copy, because other threads add boxes.
            for _, other in self.grid.neighbours(number)
            if other in self.waiting and other not in running
        )
        if beside:
            return max(beside, key=lambda other: (beside[other], -self.waiting[other].turn))
        return next((number for number in self.waiting if number not in running), None)

    def _keep_all_but(self, most: int, running: set[int]) -> None:
        """Move boxes out of memory, the least recently used first, until `most` are left.

        Their marks are kept. Boxes that are `running` stay, and are not counted.
        """
        own = [number for number in list(self.held) if number not in running]
        for number in own[: max(0, len(own) - most)]:
            marks = np.ascontiguousarray(self.held[number].marks[self.grid.inner])
            runs = betti_numbers("cpu").mark_runs.runs_of(marks)
            self._note_lower(number)
            self.kept.keep(self.kind, number, runs)
            self.shells.keep(number)
            del self.held[number]
        self.shells.forget_all_but({*self.held, *running})

    def lower_labels(self) -> NDArray[np.int32]:
        """Return the rows of `LowerLabels`, for the death points of the lasting components.

        No label may change after that.
        """
        boxes = range(self.grid.size)
        workers = self.tree.workers
        with ThreadPoolExecutor(workers) as pool:
            for _ in in_order(pool, self._note_halo, boxes, workers):
                pass
        return self.lower.rows

    def _note_lower(self, number: int) -> None:
        held = self.held[number]
        window = Window(held.keys, self.grid.in_image(number), held.marks)
        self.lower.note(number, window)

    def _note_halo(self, number: int) -> None:
        grid = self.grid
        shape = grid.window_of(number)
        own = self.shells.keys_of(number)
        keys = np.zeros(shape, own.dtype)
        marks = np.full(shape, self.flood.NEVER, np.int32)
        for at, offset in grid.sides(number):
            keys[at] = grid.from_shell(own, number, offset)
        self._fill_halo(number, keys, marks)
        self.lower.note_halo(number, Window(keys, grid.in_image(number), marks))

    def _visit(self, number: int, held: Held | None, changed: set[int]) -> set[int]:
        """Spread the labels within a box, and return the boxes that can change because of it.

        `changed` are the neighbours whose marks have changed since the box was last visited.
        """
        held = held or self._read(number)
        marks = held.marks
        entries = self._entries(number, held, changed)
        spread = self.flood.spread_marks if held.is_known else self.flood.first_marks
        spread(held.order, held.keys, marks, self.filtration, entries, held.links, self.levels)
        held.is_known = True
        held.is_new = False
        self.held[number] = held
        self.shells.set(number, shell_of(marks[self.grid.inner]))
        can_change = self._note_ends(number, marks)
        for offset, other in self.grid.neighbours(number):
            at = self.grid.halo(number, offset)
            there = self.shells.marks_beside(other, offset)
            if np.less(marks[at], there).any():
                can_change.add(other)
                # The neighbour spreads the lesser marks itself. If it changes, this box takes its
                # new marks in `_changed`, which needs to see that they differ from those here.
                marks[at] = np.maximum(marks[at], there)
        return can_change

    def _halos(self, number: int) -> Iterator[tuple[slice, ...]]:
        """Yield the parts of a box's window that have points of neighbours."""
        return (self.grid.halo(number, offset) for offset, _ in self.grid.neighbours(number))

    def _read(self, number: int) -> Held:
        """Read a box that is not in memory."""
        window = self.window(number)
        births, deaths = kept_array(self.kept, "short", number).astype(np.int64)
        links = self.flood.Links.of(births, deaths, window.keys.size)
        order = self.flood.order_of(window.keys, window.places)
        return Held(window.keys, order, window.marks, links, self._is_known(window.marks))

    def _is_known(self, marks: Marks) -> bool:
        """Whether any point of a box has a mark."""
        own = marks[self.grid.inner]
        return bool(((own != self.flood.NEVER) & (own != self.flood.UNKNOWN)).any())

    def window(self, number: int) -> Window:
        """Return a box and its halo, with the marks that are known so far."""
        grid = self.grid
        values, shown = self.tree.read(grid.box(number))
        own = self.flood.keys_of(values, self.filtration.superlevel)
        there = that_enter(values, shown)
        shape = grid.window_of(number)
        keys = np.zeros(shape, own.dtype)
        marks = np.full(shape, self.flood.NEVER, np.int32)
        keys[grid.inner] = own
        marks[grid.inner] = self._marks(number, there)
        self._fill_halo(number, keys, marks)
        return Window(keys, grid.in_image(number), marks)

    def _fill_halo(self, number: int, keys: Array, marks: Marks) -> None:
        """Write the keys and the marks of neighbours into the halo of a window."""
        grid = self.grid
        for offset, other in grid.neighbours(number):
            beside = grid.halo(number, offset)
            keys[beside] = self.shells.keys_beside(other, offset)
            marks[beside] = self.shells.marks_beside(other, offset)

    def _marks(self, number: int, there: Array | None) -> Any:
        """Return the marks of a box that were kept, or the initial ones."""
        runs = self.kept.load(self.kind, number)
        if runs is not None:
            return betti_numbers("cpu").mark_runs.read_runs(runs, self.grid.shape_of(number))
        if there is None:
            return self.flood.UNKNOWN
        return np.where(there, self.flood.UNKNOWN, self.flood.NEVER)

    def _entries(self, number: int, held: Held, changed: set[int]) -> tuple[Points, Marks]:
        """Return the places in a window from which marks spread, and their marks."""
        grid = self.grid
        marks = held.marks.reshape(-1)
        begin = self._begin(number)
        births = grid.in_window(number, self.found.births[begin])
        if held.is_new:
            known = self._around(number, held.marks)
            seeds = self._seeds(number)
            own = grid.in_window(number, self.found.lasting.birth_places[seeds])
            given = [marks[known], self._seed_marks(seeds, own, held.keys)]
            places = [known, own]
        else:
            known = self._changed(number, held.marks, changed)
            given = [marks[known]]
            places = [known]
        at = np.concatenate([*places, births])
        found = np.concatenate([*given, self.end_marks[begin]])
        is_known = found != self.flood.UNKNOWN
        return at[is_known], found[is_known]

    def _around(self, number: int, marks: Marks) -> Points:
        """Return the places of the points in the halo of a box whose marks are known.

        The box's own outermost points are added if it has not been visited in this run: an earlier
        run may have ended before the neighbours took their marks.
        """
        parts = list(self._halos(number))
        if not self.shells.has(number):
            parts += [at for at, _ in self.grid.sides(number)]
        found = [NONE]
        for at in parts:
            known = (marks[at] != self.flood.NEVER) & (marks[at] != self.flood.UNKNOWN)
            found.append(_places(known, at, marks.shape))
        return np.concatenate(found)

    def _changed(self, number: int, marks: Marks, senders: set[int]) -> Points:
        """Copy the marks of `senders` to the halo; return the places where they have decreased.

        Marks of other neighbours may have changed, too, but cannot lower any mark of the box.
        """
        changed = [NONE]
        for offset, other in self.grid.neighbours(number):
            if other not in senders:
                continue
            at = self.grid.halo(number, offset)
            new = np.asarray(self.shells.marks_beside(other, offset))
            changed.append(_places(np.less(new, marks[at]), at, marks.shape))
            marks[at] = np.minimum(marks[at], new)
        return np.concatenate(changed)

    def _seed_marks(self, seeds: Points, places: Points, keys: Array) -> Marks:
        marks = 2 * (seeds + 1)
        if self.levels.size:
            entered = keys.reshape(-1)[places].astype(np.uint64)
            marks += entered > self.levels[seeds + 1]
        return marks.astype(np.int32)

    def _note_ends(self, number: int, found: Marks) -> set[int]:
        """Record the marks of the death points in a box of components of several boxes.

        Returns the boxes that have the births of the components whose marks have changed.
        """
        own = self._end(number)
        at = self.grid.in_window(number, self.found.deaths[own])
        marks = found.reshape(-1)[at]
        new = own[marks < self.end_marks[own]]
        self.end_marks[own] = marks
        if not new.size:
            return set()
        numbers = self.grid.numbers_of(self.found.births[new])
        return set(numbers.tolist())


def _places(flags: Array, at: tuple[slice, ...], shape: tuple[int, ...]) -> Points:
    """Return the places in a window, of a given shape, of the flagged points of its part `at`."""
    index = np.nonzero(flags)
    first = (along + part.start for along, part in zip(index, at, strict=True))
    found: Points = np.ravel_multi_index(tuple(first), shape)
    return found
