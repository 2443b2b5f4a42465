"""State of the Euler explorer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psygnal import SignalGroupDescriptor

from ecc_core import BettiCurves

__all__ = ["BETTI_NAMES", "Counts", "Curve", "ExplorerModel", "Histogram"]

Scope = Literal["slice", "volume"]
Stage = Literal["preview", "partial", "stopped", "complete"]

COMPONENTS, TUNNELS = ("component", "components"), ("tunnel", "tunnels")
HOLES, CAVITIES = ("hole", "holes"), ("cavity", "cavities")
BETTI_NAMES = {2: (COMPONENTS, HOLES), 3: (COMPONENTS, TUNNELS, CAVITIES)}
"""What Betti numbers count, in singular and plural, by the number of axes."""


@dataclass(frozen=True, eq=False)
class Curve:
    """An Euler characteristic curve, which may be incomplete.

    Attributes
    ----------
    thresholds, values : (n,) arrays
    superlevel : bool
        Whether the sets are ``image >= t``.
    stage : {"preview", "partial", "stopped", "complete"}
        From a coarse level, or from some of the points; from the blocks read so far, of which more
        will come or not; exact.
    done, total : int
        Number of blocks that have been read, and of all.
    """

    thresholds: NDArray[np.float64]
    values: NDArray[np.int64]
    superlevel: bool
    stage: Stage = "complete"
    done: int = 0
    total: int = 0

    @property
    def complete(self) -> bool:
        """Whether it is the exact curve of the whole image."""
        return self.stage == "complete"

    def in_words(self) -> str:
        """The part of the image that the curve describes; "" for the whole image."""
        if self.complete:
            return ""
        if self.stage == "preview" or not self.done:
            what = "preview at low resolution"
        else:
            what = f"partial, {self.done} of {self.total} blocks"
        return f"cancelled: {what}" if self.stage == "stopped" else what

    def stopped(self) -> Curve:
        """Return the curve, marked as cancelled."""
        return self if self.complete else replace(self, stage="stopped")

    def value_at(self, threshold: float) -> int:
        """Return the value of the curve at a threshold, exact if it is one of `thresholds`."""
        if self.superlevel:
            index = int(np.searchsorted(self.thresholds, threshold, side="left"))
            return int(self.values[index]) if index < self.values.size else 0
        index = int(np.searchsorted(self.thresholds, threshold, side="right")) - 1
        return int(self.values[index]) if index >= 0 else 0

    def index_of(self, threshold: float) -> int:
        """Index of the nearest of the curve's thresholds."""
        return int(np.argmin(np.abs(self.thresholds - threshold)))

    def nearest(self, threshold: float) -> float:
        """The nearest of the curve's thresholds."""
        return float(self.thresholds[self.index_of(threshold)])


class Counts(NamedTuple):
    """The Betti numbers of a set.

    Attributes
    ----------
    threshold : float
    numbers : tuple of int
        Betti numbers: components and holes, or components, tunnels and cavities.
    """

    threshold: float
    numbers: tuple[int, ...]

    @property
    def euler(self) -> int:
        """Euler characteristic: the alternating sum."""
        return sum(self.numbers[::2]) - sum(self.numbers[1::2])

    def in_words(self, colours: Sequence[str] = ()) -> str:
        """The sum that makes the Euler characteristic, such as "3 components - 1 hole".

        Parameters
        ----------
        colours : sequence of str, default ()
            ``#rrggbb`` of each term, which make it rich text.
        """
        names = BETTI_NAMES[len(self.numbers)]
        terms = [_of(number, *name) for number, name in zip(self.numbers, names, strict=True)]
        if colours:
            pairs = zip(terms, colours, strict=False)
            terms = [f"<span style='color: {colour}'>{term}</span>" for term, colour in pairs]
        signs = ("", " \N{MINUS SIGN} ", " + ")
        return "".join(f"{sign}{term}" for sign, term in zip(signs, terms, strict=False))


@dataclass(frozen=True, eq=False)
class Histogram:
    """Histogram of the values of an image.

    Attributes
    ----------
    edges : (n + 1,) array
    counts : (n,) int array
    otsu : float
        Otsu's threshold.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    otsu: float


def _of(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


@dataclass
class ExplorerModel:
    """Settings and results of the Euler explorer.

    Attributes
    ----------
    image, roi : str
        Names of layers; "" for none.
    superlevel : bool
        Sets ``image >= t`` instead of ``image <= t``.
    connectivity : {1, None}
        1: points are connected along sides only; None (that is, d): along diagonals, too.
    bins : int
        Number of thresholds. Integer images with fewer levels have a threshold at each of them.
    sigma : float
        Gaussian smoothing before the curve, in sides of the smallest pixel.
    scope : {"slice", "volume"}
        The displayed plane, or the last three axes.
    threshold : float
        In values of the image; NaN before there is a curve.
    window : float
        Half width of the window of critical points, as a share of the curve's range.
    show_set, show_changes : bool
        Whether the layers of the set and of its critical points are wanted.
    show_histogram : bool
        Whether the histogram of the values is wanted behind the curve.
    show_betti : bool
        Whether the Betti curves are wanted beside the curve.
    curve : Curve or None
    betti : BettiCurves or None
        At the thresholds of the curve; None while they are counted.
    histogram : Histogram or None
        None unless it is wanted and known.
    changes : (int, int)
        How many critical points are shown, and how many there are in the window.
    status : str
        One line for the user.
    """

    image: str = ""
    roi: str = ""
    superlevel: bool = True
    connectivity: int | None = None
    bins: int = 256
    sigma: float = 0.0
    scope: Scope = "slice"
    threshold: float = math.nan
    window: float = 0.02
    show_set: bool = True
    show_changes: bool = False
    show_histogram: bool = False
    show_betti: bool = False
    curve: Curve | None = field(default=None)
    betti: BettiCurves | None = field(default=None)
    histogram: Histogram | None = field(default=None)
    changes: tuple[int, int] = (0, 0)
    status: str = ""

    events: ClassVar[SignalGroupDescriptor] = SignalGroupDescriptor()

    @property
    def counts(self) -> Counts | None:
        """The Betti numbers at the threshold; None if unknown."""
        if self.betti is None:
            return None
        (known,) = np.nonzero(self.betti.thresholds == self.threshold)
        if not known.size:
            return None
        numbers = tuple(int(curve[known[0]]) for curve in self.betti.values)
        return Counts(self.threshold, numbers)
