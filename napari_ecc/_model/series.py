"""State of the series panel: one curve for each time, channel or slice."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal, SignalGroupDescriptor

from napari_ecc._model.levels import even_levels

Index = tuple[int, ...]
"""Index of a frame along the leading axes."""
Key = tuple[Any, ...]
"""A frame, and all that its curve depends on."""


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
    shape: tuple[int, ...] = ()  # lengths of the leading axes of the image
    axis: int = 0  # the one that the heat map shows
    index: Index = ()  # the frame in view; its entry along `axis` is the cursor
    superlevel: bool = True
    connectivity: int | None = None  # as in the dock Threshold
    n_thresholds: int = 128  # integers that are fewer are all taken
    whole: bool = False  # whether the values are integers
    range: tuple[float, float] = (0.0, 1.0)  # first and last threshold, the same for all frames
    rows: dict[Key, NDArray[np.int64]] = field(default_factory=dict)  # curves by `key`
    status: str = ""  # one line for the user

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """Thresholds of all curves."""
        return even_levels(*self.range, self.n_thresholds, whole=self.whole)

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `napari_ecc.actions.frame_curves`, and of the request of each frame."""
        return {
            "thresholds": self.n_thresholds,
            "range": self.range,
            "superlevel": self.superlevel,
            "connectivity": self.connectivity,
        }

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
        frames = list(self.frames())
        ordered = frames[self.cursor :] + frames[: self.cursor]
        return [frame for frame in ordered if self.key(frame) not in self.rows]

    def key(self, frame: Index) -> Key:
        """Return the key of a frame in `rows`."""
        return (self.scope, *self.options.values(), *frame)

    def store(self, curves: Mapping[Key, NDArray[np.int64]]) -> None:
        """Store curves."""
        self.rows.update(curves)
        self.stored.emit()

    def forget(self) -> None:
        """Remove all curves."""
        self.rows.clear()
        self.stored.emit()

    def table(self) -> NDArray[Any]:
        """Return curves along the axis, (length, thresholds), NaN where not yet known."""
        values = np.full((self.length, self.thresholds.size), np.nan)
        for row, frame in zip(values, self.frames(), strict=True):
            known = self.rows.get(self.key(frame))
            if known is not None:
                row[:] = known
        return values
