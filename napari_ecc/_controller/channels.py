"""The Euler characteristic of two channels, at every pair of thresholds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from napari.layers import Image, Labels
from numpy.typing import ArrayLike

from napari_ecc._controller.code import call, script
from napari_ecc._controller.docks import NO_IMAGE, DockController
from napari_ecc._controller.layer_choice import LayerChoice
from napari_ecc._controller.layers import part_of, problem_with
from napari_ecc._controller.loading import describe
from napari_ecc._controller.output import write_columns
from napari_ecc._controller.refreshes import on_refresh
from napari_ecc._controller.surfaces import (
    Channels,
    IntersectionOverlay,
    Surface,
    channels_of,
    compute_surface,
)
from napari_ecc._model.channels import ChannelModel
from napari_ecc._workers import Runner, Step

__all__ = ["ChannelController"]

NO_SECOND = "Open a second image of the same shape: another channel, a gradient, a distance."
SETTINGS = ("superlevel", "superlevel_second", "connectivity", "n_thresholds")


class ChannelController(DockController):
    """Keeps the surface of two layers up to date, and shows the points in both sets.

    Parameters
    ----------
    viewer : napari.viewer.Viewer

    Attributes
    ----------
    model : ChannelModel
    others : LayerChoice
        Of the second channel.
    """

    sample = "labelled_coins"

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, "channels", "Euler surface")
        explorer = self.session.explorer
        self.model = ChannelModel(
            superlevel=explorer.superlevel, connectivity=explorer.connectivity
        )
        self.others = LayerChoice(viewer, self.model, "second", Image, Labels)
        self._set = IntersectionOverlay(viewer)
        self._comparing = Runner("Points in both sets")
        self._shown: tuple[Any, Channels, Surface] | None = None
        self._code: Callable[[], str] = str
        self._part: Any = None
        events, dims = self.model.events, viewer.dims.events
        self._links.add(self._choose_second, self.others.names_changed)
        self._links.add(self._on_layers, explorer.events.image, events.second)
        self._links.add(self.request, explorer.events.scope)
        self._links.add(self.request, *(getattr(events, name) for name in SETTINGS))
        self._links.add(self._show_both, events.place, events.show_both)
        self._links.add(self._on_dims, dims.current_step, dims.order)
        self._on_layers()

    @property
    def running(self) -> bool:
        """Whether the surface or the points in both sets are computed."""
        return self.runner.running or self._comparing.running

    def close(self) -> None:
        """Stop, disconnect from the viewer, and remove the overlay."""
        super().close()
        self._comparing.close()
        self.others.close()
        self._set.close()

    def request(self, *_: Any) -> None:
        """Compute the surface in the background."""
        first, second, model = self.layer, self.others.layer, self.model
        problem = NO_IMAGE if first is None else problem_with(first)
        if not problem and (second is None or second == first):
            problem = NO_SECOND
        if problem:
            self._show_nothing(problem)
            return
        options: dict[str, Any] = {
            "part": part_of(self.viewer, first, self.session.explorer.scope),
            "thresholds": model.n_thresholds,
            "superlevel": (model.superlevel, model.superlevel_second),
            "connectivity": model.connectivity,
        }
        self._part = options["part"]
        try:
            what = channels_of(first, second, **options)
        except ValueError as error:
            self._show_nothing(str(error))
            return

        def code() -> str:
            return script(call("surface", "layer_surface", first, second, **options))

        self.runner.submit(
            partial(compute_surface, what), partial(self._on_surface, first, what, code)
        )

    def resume(self) -> None:
        """Compute the surface again."""
        self.request()

    def move(self, second: float, first: float) -> None:
        """Move to the nearest pair of thresholds."""
        self.model.place = self.model.nearest(first, second)

    def python_call(self) -> str:
        """Return the code of the surface; "" if there is none."""
        return self._code()

    def save_table(self, path: str) -> None:
        """Write a row for each pair of thresholds; see `write_columns`."""
        surface = self.model.surface
        if surface is None:
            raise ValueError("There is no surface yet.")
        first, second = surface.thresholds_first, surface.thresholds_second
        columns: dict[str, ArrayLike] = {
            "threshold_first": np.repeat(first, second.size),
            "threshold_second": np.tile(second, first.size),
            "euler_characteristic": surface.values.ravel(),
        }
        write_columns(path, columns, self.facts)

    @property
    def facts(self) -> dict[str, str]:
        """How the surface was computed."""
        return {**super().facts, "second layer": self.model.second}

    def _choose_second(self, *_: Any) -> bool:
        """Choose another layer than the first, if there is one; return whether that was needed."""
        rest = [name for name in self.others.names if name != self.session.explorer.image]
        needed = bool(rest) and self.model.second not in rest
        if needed:
            self.model.second = rest[-1]
        return needed

    def _on_layers(self, *_: Any) -> None:
        """Follow two different layers, and their data."""
        self._of_layer.close()
        if self._choose_second():  # asks again
            return
        for layer in (self.layer, self.others.layer):
            if layer is not None:
                self._of_layer.add(self.request, layer.events.data, layer.events.scale)
                on_refresh(self.viewer, layer, self._of_layer, self.request)
        self.model.place = None
        self.request()

    def _on_dims(self, *_: Any) -> None:
        layer = self.layer
        if layer is None or self._part is None:
            return
        if part_of(self.viewer, layer, self.session.explorer.scope) != self._part:
            self.request()

    def _on_surface(self, layer: Any, what: Channels, code: Callable[[], str], step: Step) -> None:
        if step.value is None:
            return
        surface = step.value.values
        self._shown, self._code = (layer, what, step.value), code
        self.model.surface = surface
        levels = surface.thresholds_first, surface.thresholds_second
        middle = [float(at[[0, -1]].mean()) for at in levels]
        place = self.model.nearest(*(self.model.place or middle))
        if place == self.model.place:
            self._show_both()
        self.model.place = place
        self.show_part(layer, what.selection.where, "complete")
        self.model.status = f"{describe(step.value.images[0].shape)} · CPU"

    def _show_both(self, *_: Any) -> None:
        place, shown = self.model.place, self._shown
        if shown is None or place is None or not self.model.show_both:
            self._comparing.cancel()
            self._set.remove_soon()
            return
        layer, what, surface = shown

        self._comparing.submit(
            lambda: iter([Step(surface.both(place))]),
            lambda step: self._set.show(layer, what, step.value),
        )

    def _on_stopped(self) -> None:
        self.model.status = "Cancelled."

    def _on_failed(self, message: str) -> None:
        self._show_nothing(message)

    def _show_nothing(self, why: str) -> None:
        self.runner.cancel()
        self._shown, self._part, self._code = None, None, str
        self.model.surface = self.model.place = None
        self._set.remove()
        self.model.status = why
        self.show_part()
