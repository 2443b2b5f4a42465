"""The outermost points of the boxes of an image: their keys, and their marks so far.

Those of boxes in memory and of some others are held in memory; the rest is read from the store.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends import betti_numbers
from ecc_core._blocks.box_grid import Array, BoxGrid
from ecc_core._blocks.pair_boxes import Kept
from ecc_core._partition import Offset
from ecc_core.errors import InputFileError

Marks = NDArray[np.int32]
MOST_SHELLS = 64
"""The most boxes outside memory whose keys, or whose marks, at the outermost points are held."""
LOST = "partial results of an earlier run are damaged or missing: run it again without --resume"


@dataclass
class Shells:
    """The outermost points of boxes."""

    grid: BoxGrid
    kept: Kept
    kind: str
    """The kind of the marks that are kept."""
    _marks: dict[int, Marks] = field(default_factory=dict)
    """The marks of boxes that are in memory, or recently were."""
    _read_again: dict[int, Marks] = field(default_factory=dict)
    """The marks of other boxes, which were read from the store."""
    _keys: dict[int, Array] = field(default_factory=dict)
    _reading: Lock = field(default_factory=Lock)

    @property
    def _flood(self) -> Any:
        return betti_numbers("cpu").flood_boxes

    def has(self, number: int) -> bool:
        """Whether a box is, or recently was, in memory."""
        return number in self._marks

    def set(self, number: int, marks: Marks) -> None:
        """Record the marks of a box in memory."""
        self._marks[number] = marks

    def keep(self, number: int) -> None:
        """Write the marks of a box that leaves memory to the store."""
        shell = self._marks[number]
        self.kept.keep(f"{self.kind}-shell", number, shell)
        # The marks become the most recent ones. Between these statements other threads read them
        # from the store.
        del self._marks[number]
        self._marks[number] = shell

    def forget_all_but(self, in_memory: Collection[int]) -> None:
        """Drop marks of boxes that are not in memory, except of the most recent ones."""
        away = [number for number in list(self._marks) if number not in in_memory]
        for number in away[: max(0, len(away) - MOST_SHELLS)]:
            with self._reading:
                self._read_again.pop(number, None)
                del self._marks[number]

    def keys_beside(self, number: int, offset: Offset) -> Array:
        """Return the keys of a box's points in the halo of a neighbour (`BoxGrid.from_shell`)."""
        return self.grid.from_shell(self.keys_of(number), number, offset)

    def marks_beside(self, number: int, offset: Offset) -> Any:
        """Return the marks of a box's points in the halo of a neighbour (`BoxGrid.from_shell`)."""
        shell = self._shell(number)
        if shell is not None:
            return self.grid.from_shell(shell, number, offset)
        shown = self.kept.load("shown", number)
        if shown is None:
            return self._flood.UNKNOWN
        there = self.grid.from_shell(shown, number, offset)
        return np.where(there, self._flood.UNKNOWN, self._flood.NEVER)

    def keys_of(self, number: int) -> Array:
        """Return the keys of the outermost points of a box."""
        keys = self._keys.get(number)
        if keys is None:
            keys = kept_array(self.kept, "keys", number)
            _add(self._keys, number, keys)
        return keys

    def _shell(self, number: int) -> Marks | None:
        """Return the marks of the outermost points of a box, None if it has none yet."""
        shell = self._marks.get(number)
        if shell is not None:
            return shell
        # The lock orders this after `forget_all_but`: marks read before newer ones were written
        # must not be held after these were dropped.
        with self._reading:
            shell = self._read_again.get(number)
            if shell is None:
                shell = self.kept.load(f"{self.kind}-shell", number)
                if shell is not None:
                    _add(self._read_again, number, shell)
        return shell


def kept_array(kept: Kept, kind: str, number: int) -> Array:
    """Return an array of the store, which must have it."""
    found = kept.load(kind, number)
    if found is None:
        raise InputFileError(LOST)
    return found


def _add(shells: dict[int, Array], number: int, shell: Array) -> None:
    """Add a shell, and drop those added first if there are more than `MOST_SHELLS`."""
    for other in list(shells)[: max(0, len(shells) + 1 - MOST_SHELLS)]:
        shells.pop(other, None)  # Another thread may have removed it already.
    shells[number] = shell
