"""Labels that spread from box to box of an image, until none changes.

Labels spread within a box and its halo (`flood_boxes.py` of the backend), and boxes are looked at
again whose halo has changed. As many of them as fit in memory are held; of the others, the marks
are kept as runs, beside those of the outermost points, which neighbours read. Marks only ever
become less, so that an interrupted computation goes on from those that were kept, in any order, and
ends with the same ones.
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
"""What a point of a box in memory takes with its mark and links, besides its key."""
BYTES_OF_RANK = 4
"""What it takes more in a periodic image, in which keys alone do not tell the order of points."""


def held_bytes(dtype: np.dtype[Any], wraps: tuple[bool, ...]) -> int:
    """Return what a point of a box in memory takes."""
    ranks = BYTES_OF_RANK if any(wraps) else 0
    return dtype.itemsize + BYTES_HELD + ranks


@dataclass
class Held:
    """A box that is in memory."""

    keys: Array
    order: Array
    """Numbers of its points in the order in which they enter; they may be the keys."""
    marks: Marks
    """The marks of the points of its window."""
    links: Any
    is_known: bool
    """Whether marks have spread in it before, in this run or in an earlier one."""
    is_new: bool = True
    """Whether its marks have not spread since it was read."""


class Waiting(NamedTuple):
    """A box that is to be looked at."""

    turn: int
    """When it began to wait."""
    changed: set[int]
    """The boxes whose marks have changed since it was looked at."""


@dataclass
class MarkedBoxes:
    """The boxes of an image whose labels spread."""

    tree: PairTree
    found: Found
    levels: NDArray[np.uint64]
    """The keys after which labels are cut, by label; none if they are not."""
    kind: str
    """The kind of the arrays that are kept."""
    most_held: int
    """How many boxes fit in memory."""
    held: dict[int, Held] = field(default_factory=dict)
    """Boxes in memory, the one that was used last at the end."""

    def __post_init__(self) -> None:
        grid = self.grid
        self._seeds = by_box(grid, self.found.lasting.birth_places)
        self._begin = by_box(grid, self.found.births)
        self._end = by_box(grid, self.found.deaths)
        self.end_marks = np.full(self.found.deaths.size, self.flood.UNKNOWN, np.int32)
        """Marks of the points where components of several boxes end."""
        order = grid.partition.in_halves(grid.partition.whole)
        places = self.found.lasting.death_places
        self.lower = LowerLabels(grid, self.filtration, places[places >= 0])
        self.shells = Shells(grid, self.kept, self.kind)
        self._turns = itertools.count()
        self.waiting: dict[int, Waiting] = {}
        """Boxes to be looked at, or again, in an order in which near ones follow each other."""
        for index in order:
            self._wait(grid.number(index))
        self.next_held: dict[int, None] = {}
        """The boxes of `next` that are in memory."""

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
        """Look at boxes until no label changes; `step` is called with a number of boxes."""
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
                        # One that a thread still looks at may be in memory already.
                        if other in self.held and other not in running.values():
                            self.next_held[other] = None
                    if number in self.waiting:
                        self.next_held[number] = None
                    step(1)
        self._keep_all_but(0, set())

    def _wait(self, number: int, *changed: int) -> None:
        """Let a box wait, also for the sake of boxes whose marks have changed."""
        if number not in self.waiting:
            self.waiting[number] = Waiting(next(self._turns), set())
        self.waiting[number].changed.update(changed)

    def _next(self, running: set[int]) -> int | None:
        """Return a box that waits, one in memory if there is one; None if none can be taken."""
        if self.next_held:
            number = next(iter(self.next_held))
            del self.next_held[number]
            return number
        nearest = self._nearest(running)
        if nearest is not None:
            self._keep_all_but(max(0, self.most_held - len(running) - 1), running)
        return nearest

    def _nearest(self, running: set[int]) -> int | None:
        """Return the box that waits with most neighbours in memory, which need not be read again.

        None if all that wait are `running`.
        """
        beside = Counter(
            other
            for number in list(self.held)  # A copy, since threads add boxes.
            for _, other in self.grid.neighbours(number)
            if other in self.waiting and other not in running
        )
        if beside:
            return max(beside, key=lambda other: (beside[other], -self.waiting[other].turn))
        return next((number for number in self.waiting if number not in running), None)

    def _keep_all_but(self, most: int, running: set[int]) -> None:
        """Keep the marks of boxes, those used longest ago first, until so many are in memory."""
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
        """Return the labels beside the points where components that last end, once none changes."""
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
        """Spread the labels within a box, and return which others can change now.

        `changed` are neighbours whose marks have changed since it was looked at.
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
                # The neighbour itself has to find lesser marks. Its others are taken when they
                # spread.
                marks[at] = np.maximum(marks[at], there)
        return can_change

    def _halos(self, number: int) -> Iterator[tuple[slice, ...]]:
        """Yield where neighbours lie in the window of a box."""
        return (self.grid.halo(number, offset) for offset, _ in self.grid.neighbours(number))

    def _read(self, number: int) -> Held:
        """Return a box that was not in memory."""
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
        """Write what neighbours have of a window."""
        grid = self.grid
        for offset, other in grid.neighbours(number):
            beside = grid.halo(number, offset)
            keys[beside] = self.shells.keys_beside(other, offset)
            marks[beside] = self.shells.marks_beside(other, offset)

    def _marks(self, number: int, there: Array | None) -> Any:
        """Return what is known of a box."""
        runs = self.kept.load(self.kind, number)
        if runs is not None:
            return betti_numbers("cpu").mark_runs.read_runs(runs, self.grid.shape_of(number))
        if there is None:
            return self.flood.UNKNOWN
        return np.where(there, self.flood.UNKNOWN, self.flood.NEVER)

    def _entries(self, number: int, held: Held, changed: set[int]) -> tuple[Points, Marks]:
        """Return the places of a window whose marks spread, and these marks."""
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
        """Return the places of the points around a box whose marks are known.

        So are its own outermost points if the box has not been looked at in this run: an earlier
        one may have ended before neighbours could know their marks.
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
        """Copy the marks of some neighbours to the halo; return the places of those that are new.

        Marks of others may have changed, too, but lead to no lesser marks within the box.
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
        """Note the marks of points where components of several boxes end.

        Returns the boxes in which those begin whose marks have changed.
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
    """Return the places in a window of the points of a part of it whose flag is set."""
    index = np.nonzero(flags)
    first = (along + part.start for along, part in zip(index, at, strict=True))
    found: Points = np.ravel_multi_index(tuple(first), shape)
    return found
