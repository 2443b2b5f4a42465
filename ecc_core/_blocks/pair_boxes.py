"""Persistence pairs of the components of an image that is read by boxes.

Boxes are joined in groups, and groups in a tree, as in `glued.py`. The piece and the pairs of each
group are kept, so that an interrupted computation can continue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends import betti_numbers
from ecc_core._backends.pair_options import PairOptions, Pairs
from ecc_core._blocks.box_grid import Array, BoxGrid, Points, shell_of
from ecc_core._partition import Ranges, block_count
from ecc_core._request.persistence import lasting

MOST_BOXES_OF_GROUP = 64
AHEAD = 1
"""Number of finished boxes that may wait to be joined while each thread computes another."""

Read = Callable[[tuple[slice, ...]], tuple[Array, Array | None]]
"""Returns the values of a box, and its mask or None."""
Item = TypeVar("Item")
Value = TypeVar("Value")


class Kept(Protocol):
    """A store of arrays, by kind and number, from which an interrupted run can continue."""

    def load(self, kind: str, number: int) -> Array | None:
        """Return an array; None if it is not there."""

    def keep(self, kind: str, number: int, values: Array) -> None: ...

    def drop(self, kind: str) -> None:
        """Forget all arrays of a kind."""


class Found(NamedTuple):
    """The components that have been found in some boxes."""

    lasting: Pairs
    """The components whose persistence is large enough, or which never die."""
    births: Points
    """The birth places of the other components that extend over several boxes."""
    deaths: Points
    """The death places of the same components."""


@dataclass(frozen=True)
class PairTree:
    """Reads the boxes of an image, and joins them."""

    grid: BoxGrid
    read: Read
    options: PairOptions
    """The options for components of any persistence."""
    least: float
    """The least persistence of components that are labelled."""
    kept: Kept
    workers: int

    def found(self, step: Callable[[int], object]) -> Found:
        """Return the components of the image; `step` is called with a number of boxes."""
        whole = self.grid.partition.whole
        groups = list(self._groups(whole))
        numbers = {group: number for number, group in enumerate(groups)}
        parts: list[Found] = []

        def join(box: Ranges) -> Any:
            if box in numbers:
                piece, found = self._group(box, numbers[box])
                step(block_count(box))
            else:
                cut = self.grid.partition.halves(box)
                assert cut is not None
                axis, low, high = cut
                piece, found = self._joined(join(low), join(high), axis)
            parts.append(found)
            return piece

        piece = join(whole)
        pairs = self._functions.pairs_of(piece, self.options)
        parts.append(self._sorted_out(pairs))
        found = together(parts)
        ordered = self._functions.in_order(found.lasting, self.options)
        return found._replace(lasting=ordered)

    @property
    def _functions(self) -> Any:
        return betti_numbers("cpu").pair_pieces

    def _groups(self, box: Ranges) -> Iterator[Ranges]:
        """Yield the groups of the boxes in `box`."""
        cut = self.grid.partition.halves(box)
        if cut is None or block_count(box) <= MOST_BOXES_OF_GROUP:
            yield box
            return
        for half in cut[1:]:
            yield from self._groups(half)

    def _group(self, box: Ranges, number: int) -> tuple[Any, Found]:
        """Return the piece of a group and its components, which are kept."""
        known = self.kept.load("group", number)
        if known is not None:
            return self._unpacked(known)
        with ThreadPoolExecutor(self.workers) as pool:
            order = self.grid.partition.in_halves(box)
            pieces = in_order(pool, self._leaf, order, self.workers + AHEAD)
            piece, found = self._of_group(box, pieces)
        self.kept.keep("group", number, self._packed(piece, found))
        return piece, found

    def _of_group(self, box: Ranges, pieces: Iterator[tuple[Any, Found]]) -> tuple[Any, Found]:
        cut = self.grid.partition.halves(box)
        if cut is None:
            return next(pieces)
        axis, low, high = cut
        first, of_first = self._of_group(low, pieces)
        second, of_second = self._of_group(high, pieces)
        piece, found = self._joined(first, second, axis)
        return piece, together([of_first, of_second, found])

    def _joined(self, low: Any, high: Any, axis: int) -> tuple[Any, Found]:
        functions = self._functions
        piece, pairs = functions.take_pairs(functions.join_pieces(low, high, axis, self.options))
        return piece, self._sorted_out(pairs)

    def _leaf(self, index: tuple[int, ...]) -> tuple[Any, Found]:
        """Return the piece of a box and its components.

        Keep the arrays that :mod:`ecc_core._blocks.marked_boxes` needs of the box.
        """
        number = self.grid.number(index)
        box = self.grid.box(number)
        values, shown = self.read(box)
        starts = [part.start for part in box]
        functions = self._functions
        made = functions.piece_of(
            values, self.options, starts, self.grid.shape, mask=shown, workers=1
        )
        piece, pairs = functions.take_pairs(made)
        found = self._sorted_out(pairs)
        boxes = betti_numbers("cpu").flood_boxes
        keys = boxes.keys_of(values, self.options.filtration.superlevel)
        there = that_enter(values, shown)
        inside = [self.grid.in_window(number, points) for points in (found.births, found.deaths)]
        narrow = np.int32 if np.prod(self.grid.window_of(number)) < 2**31 else np.int64
        self.kept.keep("short", number, np.stack(inside).astype(narrow))
        self.kept.keep("keys", number, shell_of(keys))
        if there is not None:
            self.kept.keep("shown", number, shell_of(there))
        ends = boxes.ends_of(values, there, self.options.filtration.superlevel)
        self.kept.keep("ends", number, ends)
        none = np.empty(0, np.int64)
        return piece, Found(found.lasting, none, none)

    def _sorted_out(self, pairs: Pairs) -> Found:
        """Separate the lasting components from the others."""
        alive = pairs.births != pairs.deaths
        lasts = alive & lasting(pairs.births, pairs.deaths, self.least)
        lasts |= pairs.death_places < 0
        kept = Pairs(*(part[lasts] for part in pairs))
        return Found(kept, pairs.birth_places[~lasts], pairs.death_places[~lasts])

    def _packed(self, piece: Any, found: Found) -> Points:
        words = self._functions.pack_piece(self._functions.with_pairs(piece, found.lasting))
        lengths = [words.size, found.births.size]
        return np.concatenate([lengths, words, found.births, found.deaths])

    def _unpacked(self, values: Points) -> tuple[Any, Found]:
        words, count = values[:2].tolist()
        both = values[2 + words :]
        functions = self._functions
        piece, pairs = functions.take_pairs(functions.unpack_piece(values[2 : 2 + words]))
        return piece, Found(pairs, both[:count], both[count:])


def together(parts: Sequence[Found]) -> Found:
    """Return the components of several sets of boxes as one."""
    fields = zip(*[part.lasting for part in parts], strict=True)
    pairs = Pairs(*[np.concatenate(field) for field in fields])
    births = np.concatenate([part.births for part in parts])
    return Found(pairs, births, np.concatenate([part.deaths for part in parts]))


def in_order(
    pool: ThreadPoolExecutor,
    function: Callable[[Item], Value],
    items: Iterable[Item],
    ahead: int,
) -> Iterator[Value]:
    """Yield the values of a function of items, in order, computed by the threads of a pool.

    At most `ahead` items beyond the one that is yielded next are computed or wait.
    """
    waiting: deque[Future[Value]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def that_enter(values: Array, shown: Array | None) -> NDArray[np.bool_] | None:
    """Return which points of a box enter at all; None if all of them do."""
    there = np.ones(values.shape, np.bool_) if shown is None else shown.astype(np.bool_)
    if values.dtype.kind == "f":
        there &= ~np.isnan(values)
    return None if there.all() else there
