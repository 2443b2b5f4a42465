"""Curves of the frames of an image with time or channel axes, one by one in the background."""

import math
from functools import partial
from typing import Any

import numpy as np
from pandas import DataFrame
from psygnal import Signal

from ecc_core import EulerCurve
from napari_ecc._controller.curves import compute_curves, request_of
from napari_ecc._controller.docks import DockController, Work, call
from napari_ecc._controller.following import Follower
from napari_ecc._controller.frames import can_be_counted, count_frames
from napari_ecc._controller.layers import (
    Part,
    contrast_limits,
    describe,
    levels_of,
    nearest_point,
    problem_with,
)
from napari_ecc._controller.loading import device_name
from napari_ecc._controller.places import axis_name, position_in_view
from napari_ecc._model.levels import stepped
from napari_ecc._model.series import Index, SeriesModel
from napari_ecc._workers import Runner, Step

SETTINGS = ("scope", "axis", "superlevel", "connectivity", "n_thresholds", "range", "sigma")
SHARED = ("sigma", "min_persistence")
"""Settings that are those of the dock Threshold, too."""


class SeriesController(DockController):
    """Computes the missing curves of a `SeriesModel`, and follows the viewer's sliders."""

    layer_changed = Signal()
    """Another layer, or other frames of it, are counted."""
    sample = "drops"
    model: SeriesModel

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, "series", "Euler curves of frames")
        explorer = self.session.explorer
        shared = {name: getattr(explorer, name) for name in SHARED}
        self.model = SeriesModel(**explorer.sets, **shared)
        self.counting = Runner("Components of frames")
        self.follower = Follower(self)
        self.runners += [self.counting, self.follower.runner]
        events = self.model.events
        self._links.add(self._change_layer, explorer.events.image)
        self._links.add(self.request, *(getattr(events, name) for name in SETTINGS))
        self._links.add(self._count, events.min_persistence)
        self._links.add(self._take_threshold, explorer.events.threshold)
        for name in SHARED:
            self._links.add(partial(setattr, explorer, name), getattr(events, name))
            self._links.add(partial(setattr, self.model, name), getattr(explorer.events, name))
        self._change_layer()

    @property
    def works(self) -> tuple[Work, ...]:
        """The curves, the counts, and the components that are followed."""
        return (
            *super().works,
            Work(self.counting, "Counting components …", self._count),
            Work(self.follower.runner, "Following components …", self.follower.follow),
        )

    def axis_names(self) -> list[str]:
        """Return the names and lengths of the axes of possible series."""
        layer = self.layer
        if layer is None:
            return []
        return [f"{axis_name(layer, axis)} ({n})" for axis, n in enumerate(self.model.shape)]

    def take_contrast_limits(self) -> None:
        """Set the range of the thresholds to the layer's contrast limits."""
        if self.layer is not None and not problem_with(self.layer):
            self.model.range = contrast_limits(self.layer)

    def _start(self) -> None:
        """Determine the frames, and compute those that are missing."""
        layer = self.checked_layer()
        model = self.model
        ndim = self._frame_ndim
        if layer.ndim <= ndim:
            one = "image" if layer.ndim == 2 else "volume"
            planes = ", or choose Planes for its slices" if layer.ndim == 3 else ""
            raise ValueError(
                f"“{layer.name}” is one {one}. Series needs several, such as those of a time "
                f"lapse: open one{planes}."
            )
        full = levels_of(layer)[0]
        shape = tuple(full.shape[:-ndim])
        model.whole = full.dtype.kind in "biu"
        if shape != model.shape:
            with model.events.blocked():
                model.shape = shape
                model.axis = min(model.axis, len(shape) - 1)
                model.index = self._index(layer)
            self.layer_changed.emit()
        self._take_threshold()
        wanted = {
            model.key(frame): request_of(layer, self.part_at(frame), **model.options)
            for frame in model.missing()
        }
        self.counting.cancel()
        if wanted:
            self.runner.submit(partial(compute_curves, wanted), self._on_step)
        else:
            self.runner.cancel()
            self._count()
        self._tell()

    def _on_step(self, step: Step) -> None:
        self.model.store({key: curve.values for key, curve in step.value.items()})
        self._tell()
        if not self.model.missing():
            self._count()

    def _count(self) -> None:
        """Count what the frames have, once their curves are known."""
        layer = self.layer
        model = self.model
        if layer is None or not model.shape or model.missing():
            return
        requests = {
            model.key(frame): request_of(layer, self.part_at(frame), **model.options)
            for frame in model.uncounted()
        }
        wanted = {key: at for key, at in requests.items() if can_be_counted(at)}
        if not wanted:
            self.counting.cancel()
            model.stored.emit()
            return
        job = partial(
            count_frames,
            wanted,
            model.thresholds,
            model.min_persistence,
            model.room(),
            **model.sets,
        )
        self.counting.submit(job, self._on_counted)

    def _on_counted(self, step: Step) -> None:
        if step.value is not None:
            self.model.store_counts(step.value)

    def _take_threshold(self, *_: Any) -> None:
        """Take the threshold of the dock Threshold, or else the middle of the contrast limits."""
        layer = self.layer
        model = self.model
        if layer is None or not model.shape:
            return
        wanted = self.session.explorer.threshold
        if math.isnan(wanted):
            wanted = sum(contrast_limits(layer)) / 2
        model.threshold = stepped(model.thresholds, wanted)

    def move(self, threshold: float, count: int = 0) -> None:
        """Move the threshold to the nearest one of the curves, or some further."""
        if self.model.shape and not math.isnan(threshold):
            self.session.explorer.threshold = stepped(self.model.thresholds, threshold, count)

    def step(self, count: int) -> None:
        """Move the threshold by a number of thresholds."""
        self.move(self.model.threshold, count)

    def step_frames(self, count: int) -> None:
        """Move the viewer's slider by a number of frames."""
        self.show_frame(min(max(self.model.cursor + count, 0), self.model.length - 1))

    def point_at(self, threshold: float, frame: float) -> None:
        """Move both the viewer's slider and the threshold."""
        self.show_frame(frame)
        self.move(threshold)

    def accept(self) -> None:
        """Count what lasts as long as is offered by the frame in view, or all classes again."""
        model = self.model
        known = model.counted(model.index) if model.shape else None
        offered = None if known is None else known.offer
        model.min_persistence = 0.0 if model.min_persistence else offered or 0.0

    def show_frame(self, frame: float) -> None:
        """Move the viewer's slider."""
        layer = self.layer
        if layer is not None and self.model.shape:
            missing = self.viewer.dims.ndim - layer.ndim
            self.viewer.dims.set_current_step(self.model.axis + missing, round(frame))

    def _statements(self) -> list[str]:
        model = self.model
        if not model.shape:
            return []
        part = {"axis": model.axis, "part": self.part_at(model.index)}
        options = {**part, **model.options}
        calls = [call("t, chi", "frame_curves", self.layer, **options)]
        if model.min_persistence:
            calls.append(
                call(
                    "t, betti",
                    "frame_betti_curves",
                    self.layer,
                    **options,
                    min_persistence=model.min_persistence,
                )
            )
        return [*calls, *self.follower.statements()]

    def table(self) -> DataFrame:
        """A row for each known frame and threshold; ``complete`` is false if frames are missing."""
        table = self.model.table()
        frames = np.flatnonzero(~np.isnan(table).any(axis=1))
        if frames.size == 0:
            raise ValueError("There is no curve yet.")
        curves = EulerCurve(self.model.thresholds, table[frames].astype(np.int64)).to_pandas()
        curves.insert(0, "frame", frames[curves.pop("batch_0")])
        known = [self.model.counted(frame) for frame in self.model.frames()]
        counted = [known[frame] for frame in frames.tolist()]
        if all(at is not None for at in counted):
            betti = np.stack([at.betti for at in counted if at is not None])
            for dimension in range(betti.shape[1]):
                curves[f"b{dimension}"] = betti[:, dimension].ravel()
        return curves.assign(complete=frames.size == len(table))

    @property
    def _frame_ndim(self) -> int:
        """Number of axes of a frame."""
        return 2 if self.model.scope == "slice" else 3

    def part_at(self, frame: Index) -> Part:
        """Return the part of the layer that a frame is."""
        return (*frame, *(slice(None),) * self._frame_ndim)

    def _known(self) -> str:
        return f"{self.model.length - len(self.model.missing())} of {self.model.length} frames"

    def _tell(self) -> None:
        shape = levels_of(self.layer)[0].shape[-self._frame_ndim :]
        state = "Partial: " if self.model.missing() else ""
        self._show_frame_in_view()
        where = device_name() or "CPU"
        self.model.status = f"{state}{self._known()} of {describe(shape)} · {where}"

    def _show_frame_in_view(self) -> None:
        state = f"{self._known()} known" if self.model.missing() else "complete"
        self.show_part(self.layer, self.part_at(self.model.index), state)

    def _on_failed(self, message: str) -> None:
        self.model.status = message

    def _change_layer(self, *_: Any) -> None:
        self._watch()
        with self.model.events.blocked():
            self.take_contrast_limits()
        self.refresh()

    def refresh(self, *_: Any) -> None:
        """Compute all curves again."""
        with self.model.events.blocked():
            self.model.shape = ()
        self.model.forget()
        self.follower.forget()
        self.request()

    def _index(self, layer: Any) -> Index:
        """Return the position of the viewer's sliders."""
        position = position_in_view(self.viewer, layer)
        return tuple(nearest_point(layer, position)[: len(self.model.shape)])

    def _on_dims(self, *_: Any) -> None:
        """Move the cursor, and update the frames if another axis has moved."""
        if self.layer is None or not self.model.shape:
            return
        index = self._index(self.layer)
        if index != self.model.index:
            self.model.index = index
            self._show_frame_in_view()
            if self.model.missing():
                self.request()

    def _clear(self) -> None:
        self.counting.cancel()
        with self.model.events.blocked():
            self.model.shape = ()
            self.model.index = ()
            self.model.axis = 0
            self.model.threshold = math.nan
        self.layer_changed.emit()
