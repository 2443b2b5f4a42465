"""State of the series panel: one curve for each time, channel or slice."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal, SignalGroupDescriptor

from napari_ecc._model.explorer import Classes, Counts
from napari_ecc._model.levels import even_levels

Index = tuple[int, ...]
"""Index of a frame along the leading axes."""
Key = tuple[Any, ...]
"""A frame, and all that its curve depends on."""
MOST_CLASSES = 1 << 21
"""Largest number of classes of all frames that are kept, about 200 MB."""


class Counted(NamedTuple):
    """What a frame has at all thresholds."""

    betti: NDArray[np.int64]
    """The Betti numbers of what lasts, (d, thresholds)."""
    least: float
    """The persistence that a class must have to be counted."""
    offer: float | None = None
    """The middle of the widest gap of persistences of components."""
    classes: Classes | None = None
    """The classes; None where births and deaths are not found, or there is no room for them."""
    unpaired: str = ""
    """Why births and deaths are not found, or ""."""

    @classmethod
    def of(cls, classes: Classes, least: float) -> "Counted":
        """Count the classes that last."""
        return cls(classes.betti_curves(least).values, least, classes.offer(), classes)


@dataclass
class SeriesModel:
    """Settings of the series panel, and the curves known so far.

    The image layer is the dock Threshold's.

    Curves are kept by their frame's index along all leading axes and by the settings, so turning to
    another axis, another channel or another setting and back computes no frame twice.
    """

    events: ClassVar[SignalGroupDescriptor] = SignalGroupDescriptor()
    stored: ClassVar[Signal] = Signal()
    """Curves are stored or removed."""

    scope: Literal["slice", "volume"] = "slice"
    """A frame is a plane of the last two axes, or a volume of the last three."""
    shape: tuple[int, ...] = ()
    """Lengths of the leading axes of the image."""
    axis: int = 0
    """The axis that the heat map shows."""
    index: Index = ()
    """The frame in view; its entry along `axis` is the cursor."""
    superlevel: bool = True
    connectivity: int | None = None
    """The connectivity of sets, which means the same as in the dock Threshold."""
    n_thresholds: int = 128
    """Number of thresholds; if integers have fewer values, all of these."""
    whole: bool = False
    """Whether the values are integers."""
    range: tuple[float, float] = (0.0, 1.0)
    """The first and the last threshold, the same for all frames."""
    sigma: float = 0.0
    """Gaussian smoothing, in sides of the smallest pixel."""
    threshold: float = math.nan
    """The present threshold, one of `thresholds`; NaN before there is a series."""
    min_persistence: float = 0.0
    """Classes of less persistence are left out of curves, counts and tracks."""
    rows: dict[Key, NDArray[np.int64]] = field(default_factory=dict)
    """Curves by `key`."""
    counts: dict[Key, Counted] = field(default_factory=dict)
    """What the frames have, by `key`, of at least some persistence."""
    status: str = ""
    """One line for the user."""

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """Thresholds of all curves: integers of integers, unless these are smoothed."""
        whole = self.whole and not self.sigma
        return even_levels(*self.range, self.n_thresholds, whole=whole)

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `napari_ecc.actions.frame_curves`, and of the request of each frame."""
        return {
            "thresholds": self.n_thresholds,
            "range": self.range,
            "superlevel": self.superlevel,
            "connectivity": self.connectivity,
            "smoothing": self.sigma,
        }

    @property
    def sets(self) -> dict[str, Any]:
        """Arguments that say which sets are meant."""
        return {"superlevel": self.superlevel, "connectivity": self.connectivity}

    @property
    def length(self) -> int:
        """Number of frames along the axis."""
        return self.shape[self.axis] if self.shape else 0

    @property
    def cursor(self) -> int:
        """The frame in view along the axis."""
        return self.index[self.axis] if self.index else 0

    def frames(self) -> Iterator[Index]:
        """Indices of the frames along the axis, through the one in view."""
        for i in range(self.length):
            yield (*self.index[: self.axis], i, *self.index[self.axis + 1 :])

    def missing(self) -> list[Index]:
        """Frames to compute, starting at the displayed one and wrapping around."""
        return [frame for frame in self._from_cursor() if self.key(frame) not in self.rows]

    def uncounted(self) -> list[Index]:
        """Frames whose counts are missing, in the same order."""
        return [frame for frame in self._from_cursor() if self.counted(frame) is None]

    def _from_cursor(self) -> list[Index]:
        frames = list(self.frames())
        return frames[self.cursor :] + frames[: self.cursor]

    def key(self, frame: Index) -> Key:
        """Return the key of a frame in `rows`."""
        return (self.scope, *self.options.values(), *frame)

    def store(self, curves: Mapping[Key, NDArray[np.int64]]) -> None:
        """Store curves."""
        self.rows.update(curves)
        self.stored.emit()

    def store_counts(self, counts: Mapping[Key, Counted]) -> None:
        """Store what frames have."""
        self.counts.update(counts)
        self.stored.emit()

    def forget(self) -> None:
        """Remove all curves."""
        self.rows.clear()
        self.counts.clear()
        self.stored.emit()

    def counted(self, frame: Index) -> Counted | None:
        """Return what a frame has of the present persistence; None where that is not known."""
        key = self.key(frame)
        known = self.counts.get(key)
        if known is None or known.least == self.min_persistence or known.unpaired:
            return known
        if known.classes is None:
            return None
        self.counts[key] = Counted.of(known.classes, self.min_persistence)
        return self.counts[key]

    def room(self) -> int:
        """Return how many more classes can be kept."""
        kept = (known.classes for known in self.counts.values())
        return MOST_CLASSES - sum(classes.births.size for classes in kept if classes is not None)

    def curve(self, frame: Index) -> NDArray[Any] | None:
        """Return the curve of what lasts in a frame; None where that is not known."""
        if not self.min_persistence:
            return self.rows.get(self.key(frame))
        known = self.counted(frame)
        if known is None:
            return None
        if known.unpaired:
            return self.rows.get(self.key(frame))
        return np.asarray(known.betti[::2].sum(axis=0) - known.betti[1::2].sum(axis=0))

    def table(self) -> NDArray[Any]:
        """Return curves along the axis, (length, thresholds), NaN where not yet known."""
        values = np.full((self.length, self.thresholds.size), np.nan)
        for row, frame in zip(values, self.frames(), strict=True):
            known = self.curve(frame)
            if known is not None:
                row[:] = known
        return values

    def numbers(self, frame: Index) -> Counts | None:
        """Return the Betti numbers of a frame at the threshold; None where they are not known."""
        known = self.counted(frame)
        place = self.place
        if known is None or place is None:
            return None
        return Counts(tuple(known.betti[:, place].tolist()))

    @property
    def place(self) -> int | None:
        """The place of the threshold among all; None before there is one."""
        if math.isnan(self.threshold):
            return None
        return int(np.abs(self.thresholds - self.threshold).argmin())
