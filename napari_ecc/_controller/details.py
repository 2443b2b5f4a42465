"""The request of a curve, and details of it: component counts, critical points, a histogram."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from napari.utils.notifications import show_info
from numpy.typing import NDArray

from ecc_core import BettiCurves
from napari_ecc._controller.code import call
from napari_ecc._controller.curves import Progress, Request, compute_curve
from napari_ecc._controller.fields import (
    CriticalPoints,
    Field,
    compute_histogram,
    count_all,
    find_critical_points,
)
from napari_ecc._controller.layers import Selection, part_in_words
from napari_ecc._controller.loading import can_be_held, describe, device_name
from napari_ecc._controller.overlays import PointsOverlay
from napari_ecc._controller.persistence import Objects, can_be_paired, find_classes, find_objects
from napari_ecc._controller.session import read_settings
from napari_ecc._controller.warming import prepared
from napari_ecc._model.explorer import ExplorerModel
from napari_ecc._model.levels import stepped
from napari_ecc._workers import Job, Runner, Step

QUICK = 1 << 20
"""Points of a picture whose births and deaths are found about as quickly as classes are counted."""
SETTLED = 0.12
"""Seconds after the last move of the threshold until details are computed."""


class Source(NamedTuple):
    """The request of a curve and its progress."""

    layer: Any
    selection: Selection
    options: dict[str, Any]
    """Keyword arguments of `napari_ecc.actions.layer_curve`."""
    request: Request
    progress: Progress

    @property
    def name(self) -> str:
        """The layer and the part of it."""
        return f"{self.layer.name}, {part_in_words(self.layer, self.selection.where)}"

    def steps(self) -> Iterator[Step]:
        """Compute the curve; `progress` has the time that it takes, without compiling kernels."""
        yield from prepared("curve", self.request.levels[-1])
        start = time.perf_counter()
        with closing(compute_curve(self.request, self.progress)) as steps:
            for step in steps:
                self.progress.seconds = time.perf_counter() - start
                yield step

    def in_words(self, data: Any) -> str:
        """Shape and dtype of what was computed, the time it took and the device."""
        seconds = self.progress.seconds
        spent = f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
        return f"{describe(data.shape)}, {data.dtype} · {spent} · {device_name() or 'CPU'}"

    def code(self, target: str, action: str, **options: Any) -> str:
        """A statement that calls one of `napari_ecc.actions` on the same part."""
        part = self.selection.where
        return call(target, action, self.layer, **self.options, part=part, **options)


class Details:
    """Counts components and finds critical points once the threshold stops moving.

    It finds the histogram of the values, too, and sets `betti`, `changes` and `histogram` of the
    model.
    """

    def __init__(self, viewer: Any, model: ExplorerModel) -> None:
        self.points = PointsOverlay(viewer, partial(setattr, model, "show_changes", False))
        self._model = model
        self._counting = Runner("Counting components")
        self._locating = Runner("Critical points")
        self._drawing, self._finding = Runner("Histogram"), Runner("Objects")
        self.runners = self._counting, self._locating, self._drawing, self._finding
        self.objects: Objects | None = None
        self.source: Source | None = None  # None before there is a curve
        self.field: Field | None = None  # None before it is complete
        self._counted = np.zeros(0)
        """Thresholds at which components are being counted."""

    def examine(self, source: Source | None = None, field: Field | None = None) -> None:
        """Stop, and set what is examined: nothing without arguments."""
        self.cancel()
        self.forget_objects()
        self.source, self.field = source, field
        self._model.betti = self._model.classes = None
        if field is None:
            self.points.remove_soon()
            self._model.histogram = None

    def cancel(self) -> None:
        """Stop looking at the threshold."""
        self._counting.cancel()
        self._locating.cancel()
        self._counted = np.zeros(0)

    def look(self) -> None:
        """Count if necessary, and find the critical points if they are shown."""
        self.count()
        self.locate()

    def count(self) -> None:
        """Count components, tunnels and cavities at all thresholds, including the current one.

        Their births and deaths follow, which take longer.
        """
        field, model = self.field, self._model
        if field is None or model.curve is None or math.isnan(model.threshold):
            return
        if model.counts is not None or model.threshold in self._counted:
            return
        if not can_be_held(field.data):
            return
        levels = self._counted = np.union1d(model.curve.thresholds, model.threshold)
        find = partial(_details, field, levels, model.curve.thresholds, **self.sets)
        self._counting.submit(_after(SETTLED, find), self._on_counts)

    @property
    def sets(self) -> dict[str, Any]:
        """Arguments that say which sets are meant."""
        return {"superlevel": self._model.superlevel, "connectivity": self._model.connectivity}

    def _on_counts(self, step: Step) -> None:
        if isinstance(step.value, BettiCurves):
            self._model.betti = step.value
        elif step.value is not None:
            self._model.betti = self._model.betti or step.value.betti_curves(0.0)
            self._model.classes = step.value

    def window(self) -> tuple[float, float] | None:
        """Return the window of thresholds whose critical points are shown."""
        curve, model = self._model.curve, self._model
        if curve is None or math.isnan(model.threshold) or not model.show_changes:
            return None
        half = model.window / 100 * float(curve.thresholds[-1] - curve.thresholds[0])
        return model.threshold - half, model.threshold + half

    def locate(self) -> None:
        """Find the critical points in the window."""
        window, field = self.window(), self.field
        if window is None:
            self._locating.cancel()
            self.points.remove()
            return
        if field is None:
            return
        most = read_settings("overlay").get("most_points", 500)
        job = partial(find_critical_points, field, window, most=most, **self.sets)
        self._locating.submit(_after(SETTLED, job), self._on_points)

    def _on_points(self, step: Step) -> None:
        found, source = step.value, self.source
        if not isinstance(found, CriticalPoints) or source is None:
            return
        self.points.show(source.layer, source.selection, found)
        self._model.changes = (len(found.points), found.total)

    def forget_objects(self) -> None:
        """Stop looking for the objects at the threshold, or forget them."""
        self._finding.cancel()
        self.objects = None

    @property
    def finding(self) -> bool:
        """Whether the objects at the threshold are being looked for."""
        return self._finding.running

    def find_objects(self, use: Callable[[Objects], None]) -> None:
        """Call a function with the objects at the threshold, at once if they are known."""
        field, model = self.field, self._model
        if self.objects is not None:
            use(self.objects)
        elif field is not None:
            job = partial(find_objects, field, model.threshold, model.min_persistence, **self.sets)
            self._finding.submit(job, partial(self._on_objects, use))

    def _on_objects(self, use: Callable[[Objects], None], step: Step) -> None:
        if step.value is not None:
            self.objects = step.value
            use(step.value)

    def show_histogram(self) -> None:
        """Find the histogram of the values, if it is shown."""
        if self._model.show_histogram:
            self._find_histogram()
        else:
            self._model.histogram = None

    def go_to_otsu(self) -> None:
        """Move the threshold to the one that divides the values best into two classes."""
        if self.field is None:
            show_info("There is no complete curve yet.")
        self._find_histogram(go_to_otsu=True)

    def _find_histogram(self, *, go_to_otsu: bool = False) -> None:
        field, curve, model = self.field, self._model.curve, self._model
        if field is None or curve is None:
            self._drawing.cancel()
            model.histogram = None
            return

        def on_step(step: Step) -> None:
            model.histogram = step.value if model.show_histogram else None
            if go_to_otsu and step.value is None:
                show_info("There is no histogram of data that are not in memory.")
            elif go_to_otsu:
                model.threshold = stepped(curve.thresholds, step.value.otsu)

        self._drawing.submit(partial(compute_histogram, field, curve), on_step)


def _details(
    field: Field, levels: NDArray[np.float64], of_curve: NDArray[np.float64], **sets: Any
) -> Iterator[Step]:
    """Count all classes, then find their births and deaths, from which the counts follow."""
    paired = can_be_paired(field)
    if not paired or field.data.ndim > 2 or field.data.size > QUICK:
        yield from count_all(field, levels, **sets)
    if paired:
        yield from find_classes(field, of_curve, **sets)


def _after(seconds: float, job: Job) -> Job:
    """A job that starts after a delay, unless it is replaced by another one."""

    def waiting() -> Iterator[Step]:
        time.sleep(seconds)
        yield Step(None)
        yield from job()

    return waiting
