"""The dock "Directions"."""

import numpy as np

from napari_ecc._controller.directions import DirectionController
from napari_ecc._qt import form
from napari_ecc._qt.heatmap import HeatMap
from napari_ecc._qt.panel import Panel
from napari_ecc._qt.plot import CurvePlot, Line
from napari_ecc._qt.saving import Saver

QUARTERS = (0.0, 90.0, 180.0, 270.0)
STEEPEST = 2.0
"""Steepest slope of the slider: rise of the plane across the image per range of its values."""
CHOICES: form.Rows = {
    "Image": form.choice("image", "The layer, the same as in the dock Threshold"),
    "Shape": form.choice("shape", "A Surface or Points layer that is swept instead of the image"),
    "Sets": (form.SUPERLEVEL, form.SCOPE),
    "Threshold": form.slider("threshold", "That of the object, shared with the dock Threshold"),
    "Slope": form.slider("slope", "That of the plane, in values of the image per world unit"),
}
SETTINGS = {
    "Connect": form.CONNECTIVITY,
    "Filter by": form.choice(
        "filtration",
        "Sweep the object at the threshold along the direction, "
        "or add a plane that rises in the direction to the image",
        {"Height of the object": "height", "Image plus a plane": "plane"},
    ),
    "Directions": form.whole_number("n_directions", "Rows of the transform", 4, 720),
    "Heights": form.whole_number(
        "n_heights", "Columns of the transform, points of the curve", 8, 4096
    ),
}
ANGLES = {
    "Azimuth": form.number(
        "azimuth", "From the last but one axis to the last, in the plane", 0, 360, step=1
    ),
    "Elevation": form.slider("elevation", "From the plane to the axis before", -90, 90),
}
ARROW = {"": form.check("show_arrow", "Arrow in the canvas", "Drag its tip to turn the direction")}


class DirectionExplorer(Panel):
    """Turn a direction, and see the curve of an object swept along it."""

    dock = DirectionController
    title = "Directions"
    about = "The object, swept along a direction."

    def _fill(self) -> None:
        model = self.model
        controller = self.controller
        self.form = self.add_form(CHOICES, self.explorer, model)
        self.settings = self.add_settings(SETTINGS, model, self.explorer)
        self.angles = self.add_form(ANGLES)
        self.angles["azimuth"].native.setSuffix("°")
        self.angles["azimuth"].native.setWrapping(True)
        self.arrow = self.add_form(ARROW, model)
        self.plot = self.add(CurvePlot("height", "χ"), stretch=1)
        self.map = self.add(HeatMap("height", "azimuth °"), stretch=1)
        self.save_curve = Saver(self, "curve.csv", controller.curve_table, self.plot)
        self.save_transform = Saver(self, "transform.csv", controller.transform_table, self.map)
        self.actions = self.add_actions(
            curve=self.save_curve.button("Save curve…"),
            transform=self.save_transform.button("Save transform…"),
            copy=self.copy_button,
        )
        self.plot.threshold_moved.connect(controller.mark)
        self.plot.stepped.connect(controller.step)
        self._links.add(self.plot.set_threshold, model.events.height)
        self.map.placed.connect(lambda _, row: model.turn(row))
        self.angles["azimuth"].changed.connect(model.turn)
        self.angles["elevation"].changed.connect(lambda up: model.turn(model.azimuth, up))
        self.offer(self.form, "image", controller.images)
        self.show(
            lambda: self.form.show_scope(controller.layer),
            self.explorer.events.image,
            controller.images.names_changed,
        )
        self.offer(self.form, "shape", controller.shapes, **{"none: the image": ""})
        self.show(self._show_rows, model.events.shape)
        self.show(self._show_limits, controller.limits_changed)
        self.show(self._show_direction, model.turned)
        self.show(self._show_rows, model.events.ndim, model.events.filtration)
        self.show(self._show_curve, model.events.curve)
        self.show(self._show_transform, model.events.transform)

    def _show_limits(self) -> None:
        """Update bounds, names of axes and units for another layer."""
        limits = self.controller.limits()
        self.form.set_range("threshold", limits.low, limits.high, whole=limits.whole)
        self.form.display("threshold", self.explorer.threshold)
        steepest = STEEPEST * (limits.high - limits.low) / limits.diameter
        self.form.set_range("slope", -steepest, steepest)
        self.form.display("slope", self.model.slope)
        self._show_rows()

    def _show_rows(self) -> None:
        """Show what matters for this filtration and number of axes."""
        of_image = not self.model.shape
        plane = of_image and self.model.filtration == "plane"
        solid = self.model.ndim == 3
        self.form.set_visible("image", of_image)
        self.form.set_visible("shape", bool(self.controller.shapes.names))
        self.form.set_visible("superlevel", of_image)
        self.form.set_visible("threshold", of_image and not plane)
        self.form.set_visible("slope", plane)
        self.settings.set_visible("connectivity", of_image)
        self.settings.set_visible("filtration", of_image)
        self.arrow.setVisible(of_image)
        self.angles.set_visible("elevation", solid)
        level = "value t of image + plane" if plane else f"height ({self.controller.unit})"
        self.plot.setLabel("bottom", level)
        self.map.set_labels(level, "azimuth °", QUARTERS)
        self._show_direction()

    def _show_direction(self) -> None:
        model = self.model
        self.map.set_marker(self._marked(model.azimuth))
        self.angles.display("azimuth", model.azimuth)
        self.angles.display("elevation", model.elevation)

    def _marked(self, azimuth: float) -> float:
        """Return the row of an azimuth, whose first row is that of 0 and 360 degrees."""
        step = 360 / self.model.n_directions
        return azimuth if azimuth < 360 - step / 2 else azimuth - 360

    def _show_curve(self) -> None:
        curve = self.model.curve
        self.enable(self.actions, "curve", "copy", on=curve is not None)
        lines = [] if curve is None else [Line(curve.thresholds, curve.values, curve.superlevel)]
        self.plot.set_lines(lines)

    def _show_transform(self) -> None:
        transform = self.model.transform
        self.enable(self.actions, "transform", on=transform is not None)
        if transform is None:
            self.map.show_nothing()
        else:
            rows = 360 * np.arange(len(transform.directions)) / len(transform.directions)
            self.map.set_values(transform.values, transform.heights, rows)
            self.map.set_marker(self._marked(self.model.azimuth))
