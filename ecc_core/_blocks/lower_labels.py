"""The labels that meet at the points where components that last end, of an image read by boxes.

They are noted when a box leaves the memory. What its neighbours have may change after that, so it
is noted again in the end, from their outermost points.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends import betti_numbers
from ecc_core._blocks.box_grid import Array, BoxGrid, Points, by_box
from ecc_core._request.filtration import Filtration

if TYPE_CHECKING:
    from collections.abc import Callable

Labels = NDArray[np.int32]
IN_HALO = np.int32(2)
"""The mark of the first label, which stands for any."""


class Window(NamedTuple):
    """A box with what surrounds it."""

    keys: Array
    places: Points | None
    """The places of its points in the image, if these are in another order there."""
    marks: NDArray[np.int32]


@dataclass
class LowerLabels:
    """The labels of the neighbours that enter before each of some points."""

    grid: BoxGrid
    filtration: Filtration
    places: Points
    """Where the points are in the image."""
    rows: Labels = field(init=False)
    """A column for each neighbour, 0 for those that enter later."""

    def __post_init__(self) -> None:
        width = 3 ** len(self.grid.shape)
        self.rows = np.zeros((self.places.size, width), np.int32)

    @cached_property
    def of_box(self) -> Callable[[int], Points]:
        """The numbers of the points in a box."""
        return by_box(self.grid, self.places)

    def note(self, number: int, window: Window) -> None:
        """Note the labels in a window of a box."""
        own = self.of_box(number)
        if own.size:
            found = self._labels(number, own, window)
            self.rows[own, : found.shape[1]] = found

    def note_halo(self, number: int, window: Window) -> None:
        """Note the labels around a box, from a window without marks within it."""
        own = self.of_box(number)
        if not own.size:
            return
        inside = np.zeros(window.marks.shape, np.bool_)
        inside[self.grid.inner] = True
        flags = np.where(inside, np.int32(0), IN_HALO)
        in_halo = self._labels(number, own, window._replace(marks=flags)) > 0
        found = self._labels(number, own, window)
        rows = self.rows[own, : found.shape[1]]
        self.rows[own, : found.shape[1]] = np.where(in_halo, found, rows)

    def _labels(self, number: int, own: Points, window: Window) -> Labels:
        functions: Any = betti_numbers("cpu").flood_boxes
        at = self.grid.in_window(number, self.places[own])
        labels: Labels = functions.lower_labels(*window, at, self.filtration)
        return labels
