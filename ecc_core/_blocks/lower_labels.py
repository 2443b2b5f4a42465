"""The labels that meet at the death points of lasting components, of an image read by boxes.

A box's labels are recorded when the box leaves memory. The labels of its neighbours may change
after that, so those in its halo are recorded again in the end.
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
"""The mark of label 1, given to every point of a halo to find out which neighbours lie there."""


class Window(NamedTuple):
    """The points of a box and of its margin."""

    keys: Array
    places: Points | None
    """The places of the points in the image, or None if they are in the same order there."""
    marks: NDArray[np.int32]


@dataclass
class LowerLabels:
    """For some points of the image, the labels of the neighbours that enter before them."""

    grid: BoxGrid
    filtration: Filtration
    places: Points
    """The places of the points in the image."""
    rows: Labels = field(init=False)
    """A row for each point with a column for each neighbour, 0 if the neighbour enters later."""

    def __post_init__(self) -> None:
        width = 3 ** len(self.grid.shape)
        self.rows = np.zeros((self.places.size, width), np.int32)

    @cached_property
    def of_box(self) -> Callable[[int], Points]:
        """A function of a box's number that gives the indices of the points within the box."""
        return by_box(self.grid, self.places)

    def note(self, number: int, window: Window) -> None:
        """Record the labels beside the points of a box, from its window."""
        own = self.of_box(number)
        if own.size:
            found = self._labels(number, own, window)
            self.rows[own, : found.shape[1]] = found

    def note_halo(self, number: int, window: Window) -> None:
        """Record the labels in the halo of a box again, from a window without marks of the box."""
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
