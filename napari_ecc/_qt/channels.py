"""The dock "Two channels"."""

from html import escape

from qtpy.QtWidgets import QLabel

from napari_ecc._controller.channels import ChannelController
from napari_ecc._model.levels import formatted
from napari_ecc._qt import form
from napari_ecc._qt.heatmap import HeatMap
from napari_ecc._qt.panel import Panel
from napari_ecc._qt.saving import Saver

CHOICES: form.Rows = {
    "First": (
        form.choice("image", "The layer of the rows, the same as in the dock Threshold"),
        form.SUPERLEVEL,
    ),
    "Second": (
        form.choice("second", "The layer of the columns, of the same shape"),
        form.SUPERLEVEL._replace(name="superlevel_second"),
    ),
    "Part": form.SCOPE,
}
SETTINGS = {
    "Connect": form.CONNECTIVITY,
    "Thresholds": form.whole_number("n_thresholds", "Of each channel", 2, 512),
}
OVERLAY = {"": form.check("show_both", "Show points in both sets", "At the chosen thresholds")}


class ChannelExplorer(Panel):
    """Choose a threshold of each of two channels in a map of their Euler characteristic."""

    dock = ChannelController
    title = "Two channels"
    about = "Two channels at every pair of thresholds."

    def _fill(self) -> None:
        controller = self.controller
        events = self.model.events
        # The first set and the connectivity are of this dock, layer and part of the dock Threshold.
        self.form = self.add_form(CHOICES, self.model, self.explorer)
        self.settings = self.add_settings(SETTINGS, self.model)
        self.map = self.add(HeatMap("second", "first"), stretch=1)
        self.readout = self.add(QLabel())
        self.readout.setWordWrap(True)
        self.overlay = self.add_form(OVERLAY, self.model)
        self.save = Saver(self, "surface.csv", controller.table, self.map)
        self.actions = self.add_actions(save=self.save.button(), copy=self.copy_button)
        self.offer(self.form, "image", controller.images)
        self.show(
            lambda: self.form.show_scope(controller.layer),
            self.explorer.events.image,
            controller.images.names_changed,
        )
        self.offer(self.form, "second", controller.others)
        self.show(
            self._show_names, controller.images.names_changed, controller.others.names_changed
        )
        self.show(self._show_surface, events.surface)
        self.show(self._show_place, events.place)
        self.map.placed.connect(controller.move)

    def _show_names(self) -> None:
        self.map.set_labels(self.model.second, self.explorer.image)

    def _show_surface(self) -> None:
        surface = self.model.surface
        self.enable(self.actions, "save", "copy", on=surface is not None)
        if surface is None:
            self.map.show_nothing()
        else:
            self._show_names()
            first, second, values = surface
            self.map.set_values(values, second, first)
        self._show_place()

    def _show_place(self) -> None:
        place = self.model.place
        value = self.model.value()
        if place is None or value is None:
            self.map.set_marker(None)
            self.readout.clear()
            return
        self.map.set_marker(*place)
        names = self.explorer.image, self.model.second
        at = ", ".join(f"{escape(n)} {formatted(t)}" for n, t in zip(names, place, strict=True))
        self.readout.setText(f"<b>χ = {formatted(value)}</b>&nbsp;&nbsp; at {at}")
