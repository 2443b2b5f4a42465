"""State of the panel of two channels."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from psygnal import SignalGroupDescriptor

from ecc_core import EulerSurface
from napari_ecc._model.levels import stepped


@dataclass
class ChannelModel:
    """Settings and results of the panel of two channels.

    The first channel and the part of it are the dock Threshold's.
    """

    second: str = ""
    """The name of the layer of the second channel, or ""."""
    superlevel: bool = True
    superlevel_second: bool = True
    connectivity: int | None = None
    """The connectivity of sets, which means the same as in the dock Threshold."""
    n_thresholds: int = 64
    """Thresholds of each channel."""
    show_both: bool = True
    """Whether the points in both sets are shown in the canvas."""
    surface: EulerSurface | None = None
    place: tuple[float, float] | None = None
    """The threshold of each channel."""
    status: str = ""
    """One line for the user."""

    events: ClassVar[SignalGroupDescriptor] = SignalGroupDescriptor()

    def nearest(self, first: float, second: float) -> tuple[float, float] | None:
        """The nearest thresholds of the surface."""
        if self.surface is None:
            return None
        first_levels, second_levels, _ = self.surface
        return stepped(first_levels, first), stepped(second_levels, second)

    def middle(self, surface: EulerSurface) -> tuple[float, float]:
        """The middle of the thresholds of both channels; half-way, where the set is smaller."""
        first = _beside_middle(surface.thresholds_first, superlevel=self.superlevel)
        second = _beside_middle(surface.thresholds_second, superlevel=self.superlevel_second)
        return first, second

    def value(self) -> int | None:
        """Return the Euler characteristic at the thresholds; None if unknown."""
        surface = self.surface
        place = self.place
        if surface is None or place is None:
            return None
        row = np.searchsorted(surface.thresholds_first, place[0])
        column = np.searchsorted(surface.thresholds_second, place[1])
        return int(surface.values[row, column])


def _beside_middle(levels: NDArray[np.float64], *, superlevel: bool) -> float:
    """Return the number next to the middle of thresholds, on the side of smaller sets."""
    middle = float(levels[[0, -1]].mean())
    return math.nextafter(middle, math.inf if superlevel else -math.inf)
