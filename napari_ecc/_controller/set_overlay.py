"""The set at a threshold, on top of the image, and its outline."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from napari._vispy.utils.gl import get_max_texture_sizes
from napari.utils.colormaps import Colormap
from napari.utils.colormaps.standardize_color import transform_color

from napari_ecc._controller.fields import Field
from napari_ecc._controller.lasting import Flooding, Lasting
from napari_ecc._controller.layers import (
    Selection,
    levels_of,
    nearest_point,
    placement,
    selection_of,
    shown_axes,
    whole_along,
)
from napari_ecc._controller.overlays import CLEAR, Overlay, embedded, look_of_sets
from napari_ecc._controller.places import position_in_view
from napari_ecc._controller.set_drawing import Body, Contour, Lookup

LARGEST = 1e38
"""Threshold that is drawn: napari draws float32, which ends at 3.4e38."""
MOST_DRAWN = 1 << 23
"""Points of the set that are drawn at a time; of more, evenly spaced ones are."""


class SetOverlay(Overlay):
    """The set at a threshold, as a second view of the image's own data.

    The graphics card compares with the threshold, so that nothing is computed when it moves: the
    colormap has a step in its middle, and the contrast limits put the threshold there. Which
    components and holes of the set last is looked up by the card, too, in tables of their labels.
    """

    rank = 0

    def __init__(self, viewer: Any, removed: Callable[[], None]) -> None:
        super().__init__(viewer, removed)
        self._dtype = np.dtype(bool)
        self._superlevel = True
        self._contour: Contour | None = None
        self._body: Body | None = None
        self._refused = False
        """Whether the last set was not shown, for its threshold."""
        self._shown: tuple[Any, Selection, Field, Any] | None = None
        self._lasting: Lasting | None = None
        self._slice: tuple[Any, list[int]] | None = None
        """The slice, and the order of axes, whose labels are known to the graphics card."""
        self._some: tuple[slice, ...] = ()
        """Which points of the field are drawn."""
        self._links.add(self._rename, viewer.layers.events.renamed)
        self._links.add(self._show_again, viewer.dims.events.ndisplay)

    def show(
        self,
        image: Any,
        selection: Selection,
        field: Field,
        model: Any,
        lasting: Lasting | None = None,
    ) -> None:
        """Show the set of a field at the model's threshold on an image, or what of it lasts."""
        self._superlevel = model.superlevel
        self._dtype = field.data.dtype
        self._refused = not self._can_draw(model.threshold)
        if self._refused:
            raise ValueError(f"napari draws values up to {LARGEST:g}: divide the data")
        look = look_of_sets()
        inside = transform_color(look["colour"])[0]
        sides = [CLEAR, inside] if model.superlevel else [inside, CLEAR]
        content = {
            **self._data(image, selection, field, model, lasting),
            "name": self._name(image),
            "colormap": Colormap(sides, name="ecc-set", interpolation="zero", controls=[0, 0.5, 1]),
            "rendering": "mip" if model.superlevel else "minip",
            "contrast_limits": self._limits(model.threshold),
        }
        multiscale = isinstance(content["data"], list)
        self._lasting = None  # It belongs to the data that the layer had before.
        self._show(
            image,
            self._viewer.add_image,
            content,
            fits=getattr(self.layer, "multiscale", False) == multiscale,
            opacity=look["opacity"],
            blending="translucent_no_depth",
            interpolation2d="nearest",
            interpolation3d="nearest",
            multiscale=multiscale,
        )
        self._make_room(model)
        # These are set last: removing a layer that did not fit forgets what it showed.
        self._shown = (image, selection, field, model)
        self._lasting = lasting
        self._slice = None
        self.draw(outline=model.contour)
        self._leave_out()

    def _make_room(self, model: Any) -> None:
        """Let the contrast limits at all thresholds be within their range.

        napari would widen it at each move beyond, and then set the limits twice.
        """
        if self.layer is None or model.curve is None:
            return
        thresholds = model.curve.thresholds
        ends = [*thresholds[:1].tolist(), *thresholds[-1:].tolist()]
        limits = [self._limits(at) for at in ends if self._can_draw(at)]
        limits.append(self.layer.contrast_limits_range)
        self.layer.contrast_limits_range = np.min(limits), np.max(limits)

    def _show_again(self, *_: Any) -> None:
        """Show as many points as planes or volumes allow."""
        if self.layer is not None and self._shown is not None and not self._ending:
            self.show(*self._shown, self._lasting)

    def draw(self, *, outline: bool) -> None:
        """Draw the outline of the set, but that of volumes in three dimensions, or all of it."""
        if self._contour is not None:
            self._contour.show(outline=outline)

    def _add(self, add: Callable[..., Any], **content: Any) -> Any:
        layer = super()._add(add, **content)
        window = getattr(self._viewer, "__wrapped__", self._viewer).window
        drawn = window._qt_viewer.canvas.layer_to_visual[layer]
        self._contour = Contour(drawn._layer_node.get_node(2))
        self._body = Body(drawn._layer_node.get_node(3))
        layer.events.set_data.connect(self._label_slice)
        return layer

    def remove(self) -> None:
        """Remove the layer, and forget what it shows."""
        self._shown = self._contour = self._body = self._lasting = None
        super().remove()

    def _name(self, image: Any) -> str:
        return f"{image.name} {'≥' if self._superlevel else '≤'} t"

    def _rename(self, event: Any) -> None:
        """Follow the name of the image.

        The layer itself is renamed where another one has its name, which must not be undone.
        """
        if self.layer is not None and self._viewer.layers[event.index] == self._described:
            self.layer.name = self._name(self._described)

    def _data(
        self,
        image: Any,
        selection: Selection,
        field: Field,
        model: Any,
        lasting: Lasting | None,
    ) -> dict[str, Any]:
        """The points that are drawn, and where: the layer's own, or some if there are too many."""
        levels = levels_of(image)
        plain = field.mask is None and not model.sigma and lasting is None
        if plain and len(levels) > 1:
            return {"data": levels, **placement(image)}
        part = selection_of(image, (slice(None),) * image.ndim) if plain else selection
        values = part.full if plain else field.data
        shown = np.isin(part.axes, shown_axes(self._viewer, image))
        sides = np.array(values.shape)[shown]
        step = math.ceil((math.prod(sides.tolist()) / MOST_DRAWN) ** (1 / max(sides.size, 1)))
        steps = np.where(shown, step, 1)
        if plain and step <= 1:
            return {"data": levels[0], **placement(image)}
        if lasting is not None:  # One texture holds the labels, and so limits their size.
            most = get_max_texture_sizes()[self._is_solid] or max(values.shape)
            least = np.ceil(np.array(values.shape) / most).astype(int)
            steps = np.where(shown, np.maximum(steps, least), 1)
        some = self._some = tuple(slice(None, None, at) for at in steps.tolist())
        values = values[some]
        if model.sigma or field.mask is not None:
            values = values.astype(np.float32)
        if field.mask is not None:
            values = np.where(field.mask[some], values, np.nan)
        return embedded(values, image, part._replace(step=steps))

    def _can_draw(self, threshold: float) -> bool:
        return self._dtype.kind != "f" or math.isnan(threshold) or abs(threshold) <= LARGEST

    def can_move(self, threshold: float) -> bool:
        """Whether `move` is enough for another threshold; `show` is not if it draws nothing."""
        return not self._refused and self._can_draw(threshold)

    def move(self, threshold: float) -> None:
        """Show the set at another threshold, unless that of another image is about to be shown."""
        if self.layer is not None and not self._ending:
            self.layer.contrast_limits = self._limits(threshold)
            self.follow_least()

    def shows(self, lasting: Lasting | None) -> bool:
        """Whether the layer shows this part of the set, at whatever least persistence."""
        return self.layer is not None and not self._ending and self._lasting is lasting

    @property
    def _is_solid(self) -> bool:
        """Whether the layer is drawn in three dimensions."""
        return bool(self._viewer.dims.ndisplay == 3)

    def _leave_out(self) -> None:
        """Draw what lasts alone, or all of the set."""
        if self._contour is None or self._body is None:
            return
        if self._lasting is not None:
            self._label_slice()
            self.follow_least()
        self._contour.leave_out(others=self._lasting is not None)
        self._body.leave_out(others=self._lasting is not None)

    def _lookups(self) -> list[tuple[Lookup, Flooding]]:
        """The tables from which the graphics card draws what lasts, and what they describe."""
        if self._lasting is None or self._contour is None or self._body is None:
            return []
        components, complement = self._lasting
        if self._is_solid:
            return [(self._body.components, components)]
        return [(self._contour.components, components), (self._contour.complement, complement)]

    def follow_least(self) -> None:
        """Let the graphics card know which components and holes last at the threshold."""
        if self._shown is None or self.layer is None:
            return
        model = self._shown[-1]
        threshold = 0.0 if math.isnan(model.threshold) else model.threshold
        for lookup, flooding in self._lookups():
            lookup.choose(flooding.lasting(threshold, model.least))
        if self._contour is not None and self._body is not None:
            self._contour.node.update()
            self._body.node.update()

    def _label_slice(self, *_: Any) -> None:
        """Let the graphics card know the labels of the displayed points."""
        layer = self.layer
        lookups = self._lookups()
        if layer is None or not lookups:
            return
        displayed = shown_axes(self._viewer, layer)
        if len(displayed) < 2:
            return
        at = nearest_point(layer, position_in_view(self._viewer, layer))
        index = whole_along(displayed, at)
        if (index, displayed) == self._slice:
            return
        self._slice = index, displayed
        axes = sorted(displayed)
        order = [axes.index(axis) for axis in displayed]
        for lookup, flooding in lookups:
            labels = flooding.labels[self._some].reshape(layer.data.shape)[index].transpose(order)
            lookup.set_labels(labels)

    def _limits(self, threshold: float) -> tuple[float, float]:
        """Return contrast limits whose middle separates the values of the two sides.

        They are 511 of the smallest steps of the values apart (napari rescales the data where it is
        less than 256), 256 below the least value on the upper side: 256/511 is more than a half,
        255/511 less.
        """
        upper, step = self._least_above(threshold)
        return upper - 256 * step, upper + 255 * step

    def _least_above(self, threshold: float) -> tuple[float, float]:
        """Return the least value on the upper side of a threshold, and the smallest step there."""
        t = 0.0 if math.isnan(threshold) else threshold
        if self._dtype.kind in "biu":
            upper = float(math.ceil(t) if self._superlevel else math.floor(t) + 1)
            step = max(1.0, _spacing_at(upper))
        else:
            # napari converts float64 to float32, so the threshold is rounded in the same way.
            t = float(np.float32(t)) if self._dtype.itemsize == 8 else t
            upper = float(np.float32(t))
            if upper < t or (upper == t and not self._superlevel):
                upper = float(np.nextafter(np.float32(t), np.float32(np.inf)))
            step = _spacing_at(upper)
        return upper, step


def _spacing_at(value: float) -> float:
    """Return the distance of a float32 from the next larger one."""
    return float(np.spacing(np.float32(abs(value))))
