"""The Euler characteristic of two channels, at every pair of thresholds."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from napari.layers import Image, Labels
from pandas import DataFrame

import ecc_core as ecc
from napari_ecc._controller.docks import DockController, LayerChoice, call
from napari_ecc._controller.fields import Field
from napari_ecc._controller.layers import (
    RESULT_KEY,
    Part,
    describe,
    fitting_level,
    matching_level,
    selection_of,
    values_of,
)
from napari_ecc._controller.loading import WORKERS, load
from napari_ecc._controller.overlays import LabelsOverlay
from napari_ecc._model.channels import ChannelModel
from napari_ecc._workers import Job, Step

NO_SECOND = "Open a second image of the same shape: another channel, a gradient, a distance."
SETTINGS = ("superlevel", "superlevel_second", "connectivity", "n_thresholds")


def surface_job(first: Any, second: Any, *, part: Part, thresholds: int, **sets: Any) -> Job:
    """Return the job of the surface of layers in their current state; see `layer_surface`.

    The value of its step is the surface, the images, and the selection of them in the first layer.
    """
    selection = values_of(first, selection_of(first, part))
    level = fitting_level(selection, first.name)
    other = matching_level(first, selection, level, second)

    def compute() -> Iterator[Step]:
        images = (yield from load(level.full)), (yield from load(other.full))
        levels = (Field(image, None).levels(thresholds) for image in images)
        surface = ecc.euler_surface(
            *images, *levels, nan="omit", axis=range(images[0].ndim), workers=WORKERS, **sets
        )
        yield Step((surface, images, level))

    return compute


class ChannelController(DockController):
    """Keeps the surface of two layers up to date, and shows the points in both sets."""

    sample = "labelled_coins"
    model: ChannelModel

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, "channels", "Euler surface")
        explorer = self.session.explorer
        self.model = ChannelModel(**explorer.sets)
        self.others = LayerChoice(viewer, self.model, "second", Image, Labels)
        self._set = LabelsOverlay(viewer, "both channels", outline=False)
        self._owned += [self.others, self._set]
        self.runners.append(self._set.runner)
        self._shown: tuple[Any, Any, Callable[[], str]] | None = None
        """The first layer; the surface, its images and the selection of them; and its code."""
        events = self.model.events
        self._links.add(self._choose_second, self.others.names_changed)
        self._links.add(self._on_layers, explorer.events.image, events.second)
        self._links.add(self.request, explorer.events.scope)
        self._links.add(self.request, *(getattr(events, name) for name in SETTINGS))
        self._links.add(self._show_both, events.place, events.show_both)
        self._on_layers()

    @property
    def layers(self) -> tuple[Any, ...]:
        """Both channels."""
        return self.layer, self.others.layer

    def _start(self) -> None:
        first = self.checked_layer()
        second = self.others.layer
        model = self.model
        if second is None or second == first:
            raise ValueError(NO_SECOND)
        self._part = self.part_in_view(first)
        options: dict[str, Any] = {
            "part": self._part,
            "thresholds": model.n_thresholds,
            "superlevel": (model.superlevel, model.superlevel_second),
            "connectivity": model.connectivity,
        }
        job = surface_job(first, second, **options)
        code = partial(call, "surface", "layer_surface", first, second, **options)

        def on_step(step: Step) -> None:
            if step.value is None:
                return
            surface, images, selection = step.value
            self._shown = first, step.value, code
            model.surface = surface
            place = model.nearest(*(model.place or model.middle(surface)))
            if place == model.place:
                self._show_both()
            model.place = place
            self.show_part(first, selection.where, "complete")
            model.status = f"{describe(images[0].shape)} · CPU"

        self.runner.submit(job, on_step)

    def move(self, second: float, first: float) -> None:
        """Move to the nearest pair of thresholds."""
        self.model.place = self.model.nearest(first, second)

    def _statements(self) -> list[str]:
        return [] if self._shown is None else [self._shown[2]()]

    def table(self) -> DataFrame:
        """A row for each pair of thresholds."""
        surface = self.model.surface
        if surface is None:
            raise ValueError("There is no surface yet.")
        return surface.to_pandas()

    @property
    def facts(self) -> dict[str, str]:
        """How the surface was computed."""
        return {**super().facts, "second layer": self.model.second}

    def _choose_second(self, *_: Any) -> bool:
        """Make the second layer differ from the first; return whether it had to be changed.

        What a dock has made of an image is no channel, unless the user chooses it.
        """
        rest = [name for name in self.others.names if name != self.session.explorer.image]
        given = [name for name in rest if RESULT_KEY not in self.viewer.layers[name].metadata]
        needed = bool(given) and self.model.second not in rest
        if needed:
            self.model.second = given[-1]
        return needed

    def _on_layers(self, *_: Any) -> None:
        """Follow two different layers, and their data."""
        self._of_layers.close()
        if self._choose_second():  # The signal of a new choice calls this method again.
            return
        self._watch()
        self.model.place = None
        self.request()

    def _show_both(self, *_: Any) -> None:
        place = self.model.place
        shown = self._shown
        if shown is None or place is None or not self.model.show_both:
            self._set.clear()
            return
        layer, (surface, images, selection) = shown[:2]

        def both() -> Iterator[Step]:
            """Find the points in both sets."""
            pairs = zip(images, place, surface.superlevel, strict=True)
            first, second = (Field(image, None).inside(t, above) for image, t, above in pairs)
            yield Step((0, first & second))

        self._set.find(both, layer, selection)

    def _clear(self) -> None:
        self._shown = self.model.surface = self.model.place = None
        self._set.remove()
