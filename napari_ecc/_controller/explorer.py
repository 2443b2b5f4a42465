"""The dock Threshold: from a layer to its curve, and from a threshold to its set."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from napari.layers import Labels, Shapes
from napari.utils.notifications import show_info
from numpy.typing import ArrayLike

from napari_ecc._controller.curves import Progress, request_of, result_of
from napari_ecc._controller.details import IN_MEMORY, Details, Source
from napari_ecc._controller.docks import DockController, LayerChoice, Work
from napari_ecc._controller.fields import Objects
from napari_ecc._controller.lasting import Lasting
from napari_ecc._controller.layers import RESULT_KEY, contrast_limits, is_lazy, selection_of
from napari_ecc._controller.loading import OF_IMAGES, warm
from napari_ecc._controller.measuring import placed
from napari_ecc._controller.overlays import embedded
from napari_ecc._controller.probe import ObjectProbe
from napari_ecc._controller.session import remove_added
from napari_ecc._controller.set_overlay import SetOverlay
from napari_ecc._model.compare import Curves
from napari_ecc._model.explorer import ExplorerModel
from napari_ecc._model.levels import formatted, stepped
from napari_ecc._model.words import counted
from napari_ecc._workers import Step, in_one_line, log

CURVE_FIELDS = ("superlevel", "connectivity", "bins", "sigma", "scope")
KEPT = (*CURVE_FIELDS[:-1], "min_size", "half_height", "threshold", "min_persistence", "contour")
"""Settings that are kept with a layer."""
KEPT_AS = "napari-ecc settings"
"""Their key in its metadata."""
STALE = "stale: of earlier settings, press Recompute"


class ExplorerController(DockController):
    """Synchronises the model, the layers of a viewer and the overlays."""

    model: ExplorerModel

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, "explorer", "Euler curve")
        self.model = self.session.explorer
        self.regions = LayerChoice(viewer, self.model, "roi", Shapes, Labels, optional=True)
        self.details = Details(viewer, self.model)
        self.probe = ObjectProbe(viewer, self.model, self.details)
        self._set = SetOverlay(viewer, partial(setattr, self.model, "show_set", False))
        self._not_drawn = ""
        """Why the set could not be drawn the last time; the user is told once."""
        self.runners += [*self.details.runners, *self.probe.runners]
        self._owned += [self.regions, self._set, self.details.points, self.probe]
        self._wanted: Source | None = None
        self._explored: Any = None
        events: Any = self.model.events
        self._links.add(self._on_image, events.image)
        self._links.add(self._on_region, events.roi)
        self._links.add(self._on_threshold, events.threshold)
        self._links.add(self.details.locate, events.window, events.show_changes)
        self._links.add(self._on_show_histogram, events.show_histogram)
        self._links.add(self._scale_histogram, events.histogram_log)
        self._links.add(self._on_show_set, events.show_set)
        self._links.add(self._on_lasting, events.min_persistence, events.classes)
        self._links.add(lambda on: self._set.draw(outline=on), events.contour)
        self._links.add(self.request, *(getattr(events, name) for name in CURVE_FIELDS))
        self._links.add(self._keep, *(getattr(events, name) for name in KEPT))
        self._on_image()
        if self.layer is None:  # Otherwise kernels are made when its curve is known.
            warm(*((task, "uint8", 2) for task in OF_IMAGES))

    @property
    def layers(self) -> tuple[Any, ...]:
        """The image and the region of interest."""
        return self.layer, self.regions.layer

    @property
    def works(self) -> tuple[Work, ...]:
        """The curve, and the counts that follow."""
        counting = Work(self.details.counting, "Counting components …", self.details.count_again)
        return (*super().works, counting)

    def _on_image(self, *_: Any) -> None:
        """Handle the selection of another layer."""
        layer = self.layer
        if layer is None or layer != self._explored:
            self.show_nothing()
            self._explored = None  # Its settings are not those of the other layer.
            self.model.threshold = math.nan
            self.model.min_persistence = 0.0
            if layer is not None:
                for name, value in layer.metadata.get(KEPT_AS, {}).items():
                    setattr(self.model, name, value)
        if layer is None:
            self._set.remove()
            self.details.points.remove()
        self._explored = layer
        self._on_region()

    def _keep(self, *_: Any) -> None:
        """Keep the settings with the layer, where they survive the dock."""
        layer = self._explored
        if layer is not None and layer == self.layer and not math.isnan(self.model.threshold):
            layer.metadata[KEPT_AS] = {name: getattr(self.model, name) for name in KEPT}

    def _on_region(self) -> None:
        self._watch()
        histogram = self._napari_histogram
        if histogram is not None:
            self._of_layers.add(self._follow_histogram, histogram.events.log_scale)
            self._follow_histogram()
        self.request()

    def _on_show_histogram(self, shown: bool) -> None:
        """Draw the histogram, or say that there is none."""
        field = self.details.field
        if shown and field is not None and is_lazy(field.data):
            show_info(IN_MEMORY)
        self.details.show_histogram()

    @property
    def _napari_histogram(self) -> Any:
        """The histogram in napari's layer controls; None for Labels, which have none."""
        return getattr(self.layer, "histogram", None)

    def _follow_histogram(self, *_: Any) -> None:
        """Draw counts at the scale of napari's histogram."""
        self.model.histogram_log = self._napari_histogram.log_scale

    def _scale_histogram(self, log: bool) -> None:
        """Let napari's histogram have the same scale."""
        if self._napari_histogram is not None:
            self._napari_histogram.log_scale = log

    def _clear(self) -> None:
        self.details.examine()
        self._set.remove_soon(self.runner)
        self._wanted = self.model.curve = None

    def _start(self) -> None:
        layer = self.checked_layer()
        selection = selection_of(layer, self.part_in_view(layer))
        options = {"region": self.regions.layer, **self.model.options}
        request = request_of(layer, selection.where, **options)
        self._wanted = Source(layer, selection, options, request, Progress())
        self._part = selection.where
        self._submit(self._wanted)

    def refresh(self, *_: Any) -> None:
        """Compute the curve again, of data that may have been changed in place."""
        self._set.refresh()
        self.request()

    def resume(self) -> None:
        """Resume a curve that has been cancelled."""
        if self._wanted is not None:
            self._submit(self._wanted)

    def _submit(self, source: Source) -> None:
        self.details.cancel()
        # Another image is not computed at once: napari may crash if layers come while it removes
        # one.
        known = self.details.source is not None
        kind = source.request.kind
        on_step = partial(self._on_curve, source)
        self.runner.submit(source.steps, on_step, kind, at_once=known)

    def _on_curve(self, source: Source, step: Step) -> None:
        curve, field = step.value
        model = self.model
        self.details.examine(source, field)
        model.curve = curve
        if math.isnan(model.threshold) and curve.thresholds.size:
            # The middle of the contrast limits divides the image visually. If it is half-way
            # between two thresholds, the one with the smaller set is taken.
            middle = sum(contrast_limits(source.layer)) / 2
            upper = np.inf if curve.superlevel else -np.inf
            model.threshold = stepped(curve.thresholds, np.nextafter(middle, upper))
        self.show_part(source.layer, source.selection.where, curve.in_words() or "complete")
        if field is None:
            return
        model.status = source.in_words(field.data)
        self._on_show_set()
        self.details.look()
        self.details.show_histogram()

    def _on_stopped(self) -> None:
        """Handle the cancellation of the curve by the user."""
        curve = self.model.curve
        shown = self.details.source
        if curve is None or shown is None:
            super()._on_stopped()
            return
        if not curve.complete:
            self.model.curve = curve = replace(curve, stage="stopped")
        self.show_part(shown.layer, shown.selection.where, curve.in_words() or STALE)

    def _on_threshold(self) -> None:
        if self._set.can_move(self.model.threshold):
            self._set.move(self.model.threshold)
        else:
            self._on_show_set()
        self.details.look()

    def _on_show_set(self) -> None:
        if not self.model.show_set:
            self._set.remove()
        elif not self.details.lasting.known or not self.model.least:
            self._show_set(None)
        self._on_lasting()

    def _on_lasting(self, *_: Any) -> None:
        """Show what lasts of the set as soon as it is known."""
        if self.model.show_set:
            self.details.find_lasting(self._show_set)

    def _show_set(self, lasting: Lasting | None) -> None:
        shown = self.details.source
        field = self.details.field
        if shown is None or field is None or not self.model.show_set:
            return
        if lasting is not None and self._set.shows(lasting):
            self._set.follow_least()
            return
        try:
            self._set.show(shown.layer, shown.selection, field, self.model, lasting)
        except Exception as error:  # The curve is shown even if napari cannot draw the set.
            log.debug("the set could not be drawn", exc_info=True)
            self._set.remove()
            reason = in_one_line(error)
            if reason != self._not_drawn:
                show_info(f"The set cannot be drawn: {reason}")
            self._not_drawn = reason
        else:
            self._not_drawn = ""

    def snap(self, threshold: float, count: int = 0) -> None:
        """Move the threshold to the nearest one of the curve, or some further."""
        if self.model.curve is not None and not math.isnan(threshold):
            self.model.threshold = stepped(self.model.curve.thresholds, threshold, count)

    def step(self, count: int) -> None:
        """Move the threshold by a number of thresholds of the curve."""
        self.snap(self.model.threshold, count)

    def jump(self, kind: str, step: int) -> None:
        """Move the threshold to the next "birth" or "merge" above (`step` 1) or below (-1)."""
        model = self.model
        if model.classes is None:
            show_info(model.unpaired or "Births and merges are being found.")
            return
        place = model.classes.following(kind, model.threshold, step, model.least)
        if place is None:
            show_info(f"There is no {kind} {'above' if step > 0 else 'below'} the threshold.")
        else:
            model.threshold = place

    def make_labels(self) -> None:
        """Add a Labels layer of what is chosen, or of all components that are counted.

        It has what the set at the threshold has of it, or all that lasts, each object up to half
        of its height. It can be undone.
        """
        shown = self.details.source
        model = self.model
        reason = self._why_no_labels()
        if shown is None or reason:
            show_info(reason)
            return
        some = model.chosen
        whole = model.half_height and not some
        threshold = formatted(model.threshold)
        name = f"{shown.layer.name} {'≥' if model.superlevel else '≤'} {threshold}"
        if whole:
            name = f"{shown.layer.name} half height"

        def add(found: Objects) -> None:
            selected = set(self.viewer.layers.selection)
            if not some:
                found = found.of_size(model.min_size)
            place = embedded(found.labels, shown.layer, shown.selection)
            features = None if found.table is None else placed(found.table)
            title = f"{name}, {len(some):,} chosen" if some else name
            made = {RESULT_KEY: {"dock": "Threshold"}}
            layer = self.viewer.add_labels(name=title, features=features, metadata=made, **place)
            if found.table is not None:
                model.status = f"{counted(len(found.table), 'label')} in “{layer.name}”"
            elif is_lazy(found.labels):
                model.status = (
                    f"“{layer.name}” has one label, as components of data that are not in memory "
                    "are not told apart: load the data, or crop them."
                )

            undo = partial(remove_added, self.viewer, (layer,), selected)
            self.session.history.add("Make Labels", undo)

        if some:
            self.details.find_chosen(add)
        elif whole:
            self.details.find_whole_objects(add)
        else:
            self.details.find_objects(add)

    def _why_no_labels(self) -> str:
        """Return why there is nothing to label; "" if there is."""
        model = self.model
        some = self.model.chosen
        if self.details.source is None or self.details.field is None:
            return "There is no curve yet."
        if some and model.classes is not None:
            inside = model.classes.alive(model.threshold)[list(some)]
            return (
                ""
                if inside.any()
                else "This set has nothing of what is chosen: move the threshold."
            )
        if model.half_height and (model.classes is None or not model.least):
            return model.unpaired or "Choose first how long objects must last: at least ..."
        return ""

    def choose_objects(self, numbers: Sequence[int]) -> None:
        """Choose objects of the merge tree, by their places in the table of objects."""
        objects = self.details.objects
        classes = self.model.classes
        if objects is None or classes is None or objects.birth_points is None:
            return
        births = objects.birth_points[list(numbers)]
        self.model.chosen = tuple(classes.born_at(births).tolist())

    def _statements(self) -> list[str]:
        shown = self.details.source
        curve = self.model.curve
        if shown is None or curve is None:
            return []
        bounds = (float(curve.thresholds[0]), float(curve.thresholds[-1]))
        calls = [shown.code("t, chi", "layer_curve", range=bounds)]
        least = self.model.least or None
        if self.model.show_betti or least:
            calls.append(
                shown.code("t, betti", "layer_betti_curves", range=bounds, min_persistence=least)
            )
        return calls

    @property
    def facts(self) -> dict[str, str]:
        """How the curves were computed."""
        least = self.model.least
        return {**super().facts, **({"least persistence": formatted(least)} if least else {})}

    def shown_curves(self) -> tuple[Curves, dict[str, Any], str] | None:
        """The complete curve by name, what else is known of it, and its code; None without one."""
        shown = self.details.source
        curve = self.model.curve
        if shown is None or curve is None or not curve.complete:
            return None
        code = f"{shown.code('curve', 'layer_curve')}\ncurves = {{{self.subject!r}: curve}}"
        return {self.subject: result_of(curve, shown.request)}, {}, code

    def table(self) -> dict[str, ArrayLike]:
        """Columns of the curve, and of the Betti curves as far as they are known."""
        curve = self.model.curve
        if curve is None:
            raise ValueError("There is no curve yet.")
        columns: dict[str, ArrayLike] = {
            "threshold": curve.thresholds,
            "euler_number": curve.values,
        }
        for name, betti in (("b", self.model.betti), ("lasting_b", self.model.lasting_betti)):
            if betti is not None and (name == "b" or self.model.least):
                places = np.searchsorted(betti.thresholds, curve.thresholds)
                columns |= {f"{name}{k}": at[places] for k, at in enumerate(betti.values)}
        columns["complete"] = np.full(curve.thresholds.size, curve.complete)
        return columns
