"""Labels that spread from box to box of an image, until none changes.

Labels spread within a box and its halo (`flood_boxes.py` of the backend), and boxes are looked at
again whose halo has changed. As many of them as fit in memory are held; of the others, the marks
are kept as runs, beside those of the outermost points, which neighbours read. Marks only ever
become less, so that an interrupted computation goes on from those that were kept, in any order, and
ends with the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends import betti_numbers
from ecc_core._blocks.box_grid import Array, BoxGrid, Points, shell_of
from ecc_core._blocks.pair_boxes import Found, Kept, PairTree, that_enter
from ecc_core._partition import Offset
from ecc_core._request.filtration import Filtration
from ecc_core.errors import InputFileError

Marks = NDArray[np.int32]
NONE = np.empty(0, np.int64)
MOST_SHELLS = 64
"""Boxes that are not in memory, of whose outermost points the keys or the marks are."""
BYTES_HELD = 6
"""What a point of a box in memory takes with its mark and links, besides its key."""
BYTES_OF_RANK = 4
"""What it takes more in a periodic image, in which keys alone do not tell the order of points."""
LOST = "partial results of an earlier run are damaged or missing: run it again without --resume"


def held_bytes(dtype: np.dtype[Any], wraps: tuple[bool, ...]) -> int:
    """Return what a point of a box in memory takes."""
    ranks = BYTES_OF_RANK if any(wraps) else 0
    return dtype.itemsize + BYTES_HELD + ranks


class Window(NamedTuple):
    """A box with what surrounds it."""

    keys: Array
    places: Points | None
    """Those of its points in the image, where these are not in the same order."""
    marks: Marks


@dataclass
class Held:
    """A box that is in memory."""

    keys: Array
    order: Array
    """Numbers of its points in the order in which they enter; they may be the keys."""
    marks: Marks
    """Those of the window of the box."""
    links: Any
    is_known: bool
    """Whether marks have spread in it before, in this run or in an earlier one."""
    is_new: bool = True
    """Whether its marks have not spread since it was read."""


@dataclass
class MarkedBoxes:
    """The boxes of an image whose labels spread."""

    tree: PairTree
    found: Found
    levels: NDArray[np.uint64]
    """The keys after which labels are cut, by label; none if they are not."""
    kind: str
    """That of the arrays that are kept."""
    most_held: int
    """How many boxes fit in memory."""
    held: dict[int, Held] = field(default_factory=dict)
    """Boxes in memory, the one that was used last at the end."""
    shells: dict[int, Marks] = field(default_factory=dict)
    """Marks of the outermost points of these, and of boxes that were in memory before."""
    shell_keys: dict[int, Array] = field(default_factory=dict)
    """Keys of the outermost points of other boxes."""

    def __post_init__(self) -> None:
        grid = self.grid
        self._seeds = by_box(grid, self.found.lasting.birth_places)
        self._begin = by_box(grid, self.found.births)
        self._end = by_box(grid, self.found.deaths)
        self.end_marks = np.full(self.found.deaths.size, self.flood.UNKNOWN, np.int32)
        """Marks of the points where components of several boxes end."""
        order = grid.partition.in_halves(grid.partition.whole)
        self.waiting = dict.fromkeys(map(grid.number, order))
        """Boxes to be looked at, or again, in an order in which near ones follow each other."""

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
                    del self.waiting[number]
                    held = self.held.pop(number, None)
                    running[pool.submit(self._visit, number, held)] = number
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    number = running.pop(future)
                    for other in future.result():
                        self.waiting.setdefault(other)
                    step(1)
        self._keep_all_but(0, set())

    def _next(self, running: set[int]) -> int | None:
        """Return a box that waits, one in memory if there is one; None if none can be taken."""
        free = (number for number in self.waiting if number not in running)
        first = None
        for number in free:
            first = number if first is None else first
            if number in self.held:
                return number
        if first is not None:
            self._keep_all_but(max(0, self.most_held - len(running) - 1), running)
        return first

    def _keep_all_but(self, most: int, running: set[int]) -> None:
        """Keep the marks of boxes, those used longest ago first, until so many are in memory."""
        own = [number for number in list(self.held) if number not in running]
        for number in own[: max(0, len(own) - most)]:
            marks = np.ascontiguousarray(self.held[number].marks[self.grid.inner])
            runs = betti_numbers("cpu").mark_runs.runs_of(marks)
            shell = self.shells[number]
            self.kept.keep(self.kind, number, runs)
            self.kept.keep(f"{self.kind}-shell", number, shell)
            del self.held[number]
            del self.shells[number]
            self.shells[number] = shell  # the last one
        in_use = {*self.held, *running}
        away = [number for number in list(self.shells) if number not in in_use]
        for number in away[: max(0, len(away) - MOST_SHELLS)]:
            del self.shells[number]

    def _visit(self, number: int, held: Held | None) -> set[int]:
        """Spread the labels within a box, and return which others can change now."""
        held = held or self._read(number)
        marks = held.marks
        entries = self._entries(number, held)
        before = [(at, marks[at].copy()) for at in self._halos(number)]
        spread = self.flood.spread_marks if held.is_known else self.flood.first_marks
        spread(held.order, held.keys, marks, self.filtration, entries, held.links, self.levels)
        held.is_known = True
        held.is_new = False
        self.held[number] = held
        self.shells[number] = shell_of(marks[self.grid.inner])
        neighbours = zip(self.grid.neighbours(number), before, strict=True)
        changed = {other for (_, other), (at, old) in neighbours if (marks[at] < old).any()}
        return changed | self._note_ends(number, marks)

    def _halos(self, number: int) -> Iterator[tuple[slice, ...]]:
        """Yield where neighbours lie in the window of a box."""
        return (self.grid.halo(number, offset) for offset, _ in self.grid.neighbours(number))

    def _read(self, number: int) -> Held:
        """Return a box that was not in memory."""
        window = self.window(number)
        births, deaths = self._kept("short", number).astype(np.int64)
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
        for offset, other in grid.neighbours(number):
            beside = grid.halo(number, offset)
            keys[beside] = grid.from_shell(self._keys_of(other), other, offset)
            marks[beside] = self._beside(other, offset)
        return Window(keys, grid.in_image(number), marks)

    def _marks(self, number: int, there: Array | None) -> Any:
        """Return what is known of a box."""
        runs = self.kept.load(self.kind, number)
        if runs is not None:
            return betti_numbers("cpu").mark_runs.read_runs(runs, self.grid.shape_of(number))
        if there is None:
            return self.flood.UNKNOWN
        return np.where(there, self.flood.UNKNOWN, self.flood.NEVER)

    def _keys_of(self, number: int) -> Array:
        """Return the keys of the outermost points of a box; those of many boxes are held."""
        keys = self.shell_keys.get(number)
        if keys is None:
            keys = self._kept("keys", number)
            if len(self.shell_keys) >= MOST_SHELLS:
                self.shell_keys.clear()
            self.shell_keys[number] = keys
        return keys

    def _kept(self, kind: str, number: int) -> Array:
        """Return an array that must be there."""
        found = self.kept.load(kind, number)
        if found is None:
            raise InputFileError(LOST)
        return found

    def _beside(self, number: int, offset: Offset) -> Any:
        """Return the marks of the points of a neighbour that a halo has."""
        shell = self.shells.get(number)
        if shell is None:
            shell = self.kept.load(f"{self.kind}-shell", number)
        if shell is not None:
            return self.grid.from_shell(shell, number, offset)
        shown = self.kept.load("shown", number)
        if shown is None:
            return self.flood.UNKNOWN
        there = self.grid.from_shell(shown, number, offset)
        return np.where(there, self.flood.UNKNOWN, self.flood.NEVER)

    def _entries(self, number: int, held: Held) -> tuple[Points, Marks]:
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
            known = self._changed(number, held.marks)
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
        if number not in self.shells:
            parts += self.grid.sides(number)
        found = [NONE]
        for at in parts:
            known = (marks[at] != self.flood.NEVER) & (marks[at] != self.flood.UNKNOWN)
            found.append(_places(known, at, marks.shape))
        return np.concatenate(found)

    def _changed(self, number: int, marks: Marks) -> Points:
        """Copy the marks of neighbours to the halo; return the places of those that are new."""
        changed = [NONE]
        for offset, other in self.grid.neighbours(number):
            at = self.grid.halo(number, offset)
            new = np.asarray(self._beside(other, offset))
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


def by_box(grid: BoxGrid, places: Points) -> Callable[[int], Points]:
    """Return a function that gives the numbers of those of some points that lie in a box."""
    numbers = grid.numbers_of(places)
    order = np.argsort(numbers, kind="stable")
    firsts = np.searchsorted(numbers[order], np.arange(grid.size + 1, dtype=np.int32))
    if order.size < 1 << 32:
        order = order.astype(np.uint32)

    def of_box(number: int) -> Points:
        return order[firsts[number] : firsts[number + 1]].astype(np.int64)

    return of_box
