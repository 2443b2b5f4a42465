"""The request of a curve, and its details: counts, critical points, a histogram, objects."""

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from napari.utils.notifications import show_info

from ecc_core import BettiCurves
from napari_ecc._controller import uncompiled
from napari_ecc._controller.choice import find_chosen
from napari_ecc._controller.curves import Progress, Request, compute_curve
from napari_ecc._controller.docks import call
from napari_ecc._controller.fields import (
    CriticalPoints,
    Field,
    Objects,
    compute_histogram,
    count_all,
    find_classes,
    find_critical_points,
    find_whole_objects,
    why_unpaired,
)
from napari_ecc._controller.lasting import Lasting, LastingSearch, find_solid_objects
from napari_ecc._controller.layers import Selection, can_be_held, describe
from napari_ecc._controller.loading import (
    OF_ALL_IMAGES,
    OF_IMAGES,
    device_name,
    is_prepared,
    kernel_of,
    prepared,
    warm,
)
from napari_ecc._controller.overlays import PointsOverlay
from napari_ecc._controller.session import read_settings
from napari_ecc._model.explorer import ExplorerModel
from napari_ecc._workers import Job, Runner, Step

QUICK = 1 << 20
"""Points of a picture whose births and deaths are found about as quickly as classes are counted."""
SETTLED = 0.12
"""Seconds after the last move of the threshold until details are computed."""
IN_MEMORY = (
    "The histogram and Otsu's threshold are found of data in memory only: load the data, or crop "
    "them."
)


class Source(NamedTuple):
    """The request of a curve and its progress."""

    layer: Any
    selection: Selection
    options: dict[str, Any]
    """Keyword arguments of `napari_ecc.actions.layer_curve`."""
    request: Request
    progress: Progress

    def steps(self) -> Iterator[Step]:
        """Compute the curve, or what of it is missing, without kernels if that is sooner."""
        image = self.request.levels[-1]
        compiled = is_prepared("curve", image) or not uncompiled.is_quick(image)
        if compiled:
            yield from prepared("curve", image)
        else:
            warm(kernel_of("curve", image))  # Later curves are computed by kernels.
        yield from compute_curve(self.request, self.progress, compiled=compiled)

    def in_words(self, data: Any) -> str:
        """Shape and dtype of what was computed, and the device."""
        return f"{describe(data.shape)}, {data.dtype} · {device_name() or 'CPU'}"

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
        self.counting = Runner("Counting components")
        self._locating = Runner("Critical points")
        self._drawing = Runner("Histogram")
        self.finding = Runner("Objects")
        self.lasting = LastingSearch(model)
        self.runners = (
            *(self.counting, self._locating, self._drawing),
            *(self.finding, self.lasting.runner),
        )
        self.objects: Objects | None = None
        self.source: Source | None = None
        """None before there is a curve."""
        self.field: Field | None = None
        """None before the curve is complete."""
        self._counted = np.zeros(0)
        """Thresholds at which components are being counted."""

    def examine(self, source: Source | None = None, field: Field | None = None) -> None:
        """Stop, and set what is examined: nothing without arguments."""
        self.cancel()
        self.forget_objects()
        self.source = source
        self.field = field
        self.lasting.forget()
        self._model.betti = self._model.classes = None
        self._model.chosen = ()
        self._model.unpaired = "" if field is None else why_unpaired(field)
        if field is None:
            self.points.remove_soon()
            self._model.histogram = None

    def count_again(self) -> None:
        """Count what has been cancelled."""
        self._counted = np.zeros(0)
        self.look()

    def cancel(self) -> None:
        """Stop looking at the threshold."""
        self.counting.cancel()
        self._locating.cancel()
        self._counted = np.zeros(0)

    def look(self) -> None:
        """Find the critical points if they are shown, and count if necessary.

        Components, tunnels and cavities are counted at all thresholds, including the current one.
        Their births and deaths follow, which take longer.
        """
        self.locate()
        field = self.field
        model = self._model
        sets = self._model.sets
        if field is None or model.curve is None or math.isnan(model.threshold):
            return
        if model.counts is not None or model.threshold in self._counted:
            return
        if not can_be_held(field.data):
            return
        of_curve = model.curve.thresholds
        paired = not model.unpaired
        levels = self._counted = np.union1d(of_curve, model.threshold)

        def find() -> Iterator[Step]:
            data = field.data
            at_once = paired and data.ndim == 2 and data.size <= QUICK
            compiled = is_prepared("pairs" if at_once else "counts", data)
            if not compiled and uncompiled.can_be_counted(field, levels):
                yield from uncompiled.count_all(field, levels, **sets)
            elif not at_once:
                yield from count_all(field, levels, **sets)
            if paired:  # The counts follow from births and deaths.
                yield from find_classes(field, of_curve, **sets)
            tasks = OF_IMAGES if paired else OF_ALL_IMAGES
            warm(*(kernel_of(task, data) for task in tasks))

        self.counting.submit(settled(find), self._on_counts)

    def _on_counts(self, step: Step) -> None:
        if isinstance(step.value, BettiCurves):
            self._model.betti = step.value
        elif step.value is not None:
            self._model.betti = self._model.betti or step.value.betti_curves(0.0)
            self._model.classes = step.value

    def window(self) -> tuple[float, float] | None:
        """Return the window of thresholds whose critical points are shown."""
        curve = self._model.curve
        model = self._model
        if curve is None or math.isnan(model.threshold) or not model.show_changes:
            return None
        first, last = (model.window / 100 * curve.thresholds[[0, -1]]).tolist()
        half = last - first  # The range itself may be no float.
        return model.threshold - half, model.threshold + half

    def locate(self) -> None:
        """Find the critical points in the window."""
        window = self.window()
        field = self.field
        if window is None:
            self._locating.cancel()
            self.points.remove()
            return
        if field is None:
            return
        most = read_settings("overlay").get("most_points", 500)
        job = partial(find_critical_points, field, window, most=most, **self._model.sets)
        self._locating.submit(settled(job), self._on_points)

    def _on_points(self, step: Step) -> None:
        found = step.value
        source = self.source
        if isinstance(found, CriticalPoints) and source is not None:
            self.points.show(source.layer, source.selection, found)
            self._model.changes = (len(found.points), found.total)

    def forget_objects(self) -> None:
        """Stop looking for the objects at the threshold, or forget them."""
        self.finding.cancel()
        self.objects = None

    def find_objects(self, use: Callable[[Objects], None]) -> None:
        """Call a function with the objects at the threshold, at once if they are known."""
        field = self.field
        model = self._model

        def on_step(step: Step) -> None:
            if step.value is not None:
                self.objects = step.value
                use(step.value)

        if self.objects is not None:
            use(self.objects)
        elif field is not None and not math.isnan(model.threshold):
            job = partial(
                find_solid_objects,
                field,
                model.threshold,
                model.least,
                least_of_holes=model.least,
                known=self.lasting.known,
                **model.sets,
            )
            self.finding.submit(job, on_step)

    def find_whole_objects(self, use: Callable[[Objects], None]) -> None:
        """Call a function with the objects that last, up to half of their heights."""
        field = self.field
        model = self._model
        if field is None:
            return

        def on_step(step: Step) -> None:
            if step.value is not None:
                use(step.value)

        self.finding.submit(partial(find_whole_objects, field, model.least, **model.sets), on_step)

    def find_chosen(self, use: Callable[[Objects], None]) -> None:
        """Call a function with the chosen classes that the set has at the threshold."""
        field = self.field
        model = self._model
        classes = self._model.classes
        if field is None or classes is None:
            return

        def on_step(step: Step) -> None:
            if step.value is not None:
                use(step.value)

        job = partial(
            find_chosen,
            field,
            classes,
            model.chosen,
            model.threshold,
            least_of_holes=model.least,
            known=self.lasting.known,
            **model.sets,
        )
        self.finding.submit(job, on_step)

    def find_lasting(self, use: Callable[[Lasting | None], None]) -> None:
        """Call a function with what lasts, once it is known; None if all counts."""
        self.lasting.find(self.field, use)

    def show_histogram(self, *_: Any, go_to_otsu: bool = False) -> None:
        """Find the histogram of the values, if it is shown.

        With `go_to_otsu` it is found in any case, and the threshold moves to the one that divides
        the values best into two classes.
        """
        field = self.field
        curve = self._model.curve
        model = self._model
        if go_to_otsu and field is None:
            show_info("There is no complete curve yet.")
        if field is None or curve is None or not (model.show_histogram or go_to_otsu):
            if field is None:
                self._drawing.cancel()
            model.histogram = None
            return

        def on_step(step: Step) -> None:
            model.histogram = step.value if model.show_histogram else None
            if go_to_otsu and step.value is None:
                show_info(IN_MEMORY)
            elif go_to_otsu:
                model.threshold = curve.dividing(step.value.otsu)

        self._drawing.submit(partial(compute_histogram, field, curve), on_step)


def settled(job: Job) -> Job:
    """A job that starts after a delay, unless it is replaced by another one."""

    def waiting() -> Iterator[Step]:
        time.sleep(SETTLED)
        yield Step(None)
        yield from job()

    return waiting
