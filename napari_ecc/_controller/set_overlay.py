"""The set at a threshold, on top of the image, and its outline."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from napari.utils.colormaps import Colormap
from napari.utils.colormaps.standardize_color import transform_color
from numpy.typing import NDArray
from vispy.gloo import Texture2D
from vispy.visuals import ImageVisual
from vispy.visuals.shaders import Function

from napari_ecc._controller.fields import Field
from napari_ecc._controller.lasting import LastingSets
from napari_ecc._controller.layers import (
    Selection,
    levels_of,
    nearest_point,
    placement,
    selection_of,
    shown_axes,
)
from napari_ecc._controller.overlays import CLEAR, Overlay, embedded, look_of_sets
from napari_ecc._controller.places import position_in_view

MOST_DRAWN = 1 << 23
"""Points of the set that are drawn at a time; of more, evenly spaced ones are."""
OUTLINE_WIDTH = 2.0
"""In pixels of the screen."""
LAST = 9
"""Place among what is done with a point: after it got its opacity, that of a line is twice it."""
OUTLINE_CODE = """
void keep_outline(vec2 at) {
    vec2 across = $width * dFdx(at), down = $width * dFdy(at);
    bool within = $width > 0.0;
    for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++) {
            vec2 near = at + float(i) * across + float(j) * down;
            bool outside = $lasting > 0.0
                ? (texture2D($outside, near).r < $level) == ($superlevel > 0.0)
                : $colour(texture2D($texture, near)).a == 0.0;
            within = within && !outside;
        }
    if (within) discard;
    gl_FragColor.a = $width > 0.0 ? min(1.0, 2.0 * gl_FragColor.a) : gl_FragColor.a;
}
"""


class SetOverlay(Overlay):
    """The set at a threshold, as a second view of the image's own data.

    The graphics card compares with the threshold, so that nothing is computed when it moves: the
    colormap has a step in its middle, and the contrast limits put the threshold there. Of a field
    of which only what lasts is shown, values are those of `LastingSets`, for which the same holds.
    """

    rank = 0

    def __init__(self, viewer: Any, removed: Callable[[], None]) -> None:
        super().__init__(viewer, removed)
        self._dtype = np.dtype(bool)
        self._superlevel = True
        self._contour: Contour | None = None
        self._shown: tuple[Any, Selection, Field, Any] | None = None
        self._lasting: LastingSets | None = None
        self._some: tuple[slice, ...] = ()
        """Which points of the field are drawn."""
        self._slice: tuple[Any, list[int]] | None = None
        """Which slice of the complement the outline has."""
        self._links.add(self._rename, viewer.layers.events.renamed)
        self._links.add(self._show_again, viewer.dims.events.ndisplay)

    def show(
        self,
        image: Any,
        selection: Selection,
        field: Field,
        model: Any,
        lasting: LastingSets | None = None,
    ) -> None:
        """Show the set of a field at the model's threshold on an image, or what of it lasts."""
        self._superlevel = model.superlevel
        self._dtype = field.data.dtype
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
        self._show(
            image,
            self._viewer.add_image,
            content,
            fits=getattr(self.layer, "multiscale", False) == multiscale,
            opacity=look["opacity"],
            blending="translucent_no_depth",
            interpolation2d="nearest",
            multiscale=multiscale,
        )
        # After a layer that did not fit has been removed, with what it showed
        self._shown = (image, selection, field, model)
        self._lasting = lasting
        self._slice = None
        self.draw(outline=model.contour)
        self._draw_lasting(model.threshold)

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
        layer.events.set_data.connect(self._draw_slice)
        return layer

    def remove(self) -> None:
        """Remove the layer, and forget what it shows."""
        self._shown = self._contour = self._lasting = None
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
        lasting: LastingSets | None,
    ) -> dict[str, Any]:
        """The points that are drawn, and where: the layer's own, or some if there are too many."""
        levels = levels_of(image)
        plain = field.mask is None and not model.sigma and lasting is None
        if plain and len(levels) > 1:
            return {"data": levels, **placement(image)}
        part = selection_of(image, (slice(None),) * image.ndim) if plain else selection
        values = part.full if plain else field.data
        if lasting is not None:
            values = lasting.inside
        shown = np.isin(part.axes, shown_axes(self._viewer, image))
        sides = np.array(values.shape)[shown]
        step = math.ceil((math.prod(sides.tolist()) / MOST_DRAWN) ** (1 / max(sides.size, 1)))
        steps = np.where(shown, step, 1)
        if plain and step <= 1:
            return {"data": levels[0], **placement(image)}
        some = self._some = tuple(slice(None, None, at) for at in steps.tolist())
        values = values[some]
        if model.sigma or field.mask is not None:
            values = values.astype(np.float32)
        if field.mask is not None:
            values = np.where(field.mask[some], values, np.nan)
        return embedded(values, image, part._replace(step=steps))

    def move(self, threshold: float) -> None:
        """Show the set at another threshold."""
        if self.layer is not None:
            self.layer.contrast_limits = self._limits(threshold)
            self._draw_lasting(threshold)

    def _draw_lasting(self, threshold: float) -> None:
        """Let the outline follow what lasts at a threshold, or all of the set."""
        if self._contour is None:
            return
        if self._lasting is None:
            self._contour.follow_set()
        else:
            self._draw_slice()
            self._contour.follow(self._least_above(threshold)[0], superlevel=self._superlevel)

    def _draw_slice(self, *_: Any) -> None:
        """Give the outline the displayed slice of the complement."""
        layer = self.layer
        contour = self._contour
        shown = self._shown
        if layer is None or contour is None or shown is None or self._lasting is None:
            return
        axes = list(shown[1].axes)
        if self._viewer.dims.ndisplay == 3 or len(shown_axes(self._viewer, layer)) < 2:
            return
        order = [axes.index(axis) for axis in shown_axes(self._viewer, layer) if axis in axes]
        at = nearest_point(layer, position_in_view(self._viewer, layer))
        index = tuple(
            slice(None) if place in order else at[axis] for place, axis in enumerate(axes)
        )
        if (index, order) == self._slice:
            return
        self._slice = index, order
        outside = self._lasting.outside[self._some][index]
        contour.set_outside(outside if order == sorted(order) else outside.T)

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
            step = max(1.0, float(np.spacing(np.float32(abs(upper)))))
        else:
            # napari converts float64 to float32, so the threshold is rounded in the same way
            t = float(np.float32(t)) if self._dtype.itemsize == 8 else t
            upper = float(np.float32(t))
            if upper < t or (upper == t and not self._superlevel):
                upper = float(np.nextafter(np.float32(t), np.float32(np.inf)))
            step = float(np.spacing(np.float32(abs(upper))))
        return upper, step


class Contour:
    """The outline of a set, found by the graphics card while it draws.

    It leaves out what an image shows, but for what is near points that its colormap does not show,
    or near those of a complement that is given.

    napari's `Labels.contour` searches the whole array in memory, which is too slow while the
    threshold is dragged: of 2048 x 2048 pixels a frame takes 2.7 times as long as one of a contrast
    drag.
    """

    def __init__(self, node: ImageVisual) -> None:
        self.node = node
        self._outline = outline = Function(OUTLINE_CODE)
        outline["texture"] = node._texture
        outline["width"] = 0.0
        self._outside = Texture2D(
            np.zeros((1, 1), np.float32), interpolation="nearest", internalformat="r32f"
        )
        outline["outside"] = self._outside
        outline["lasting"] = 0.0
        outline["level"] = 0.0
        outline["superlevel"] = 1.0
        build = node._build_color_transform

        def build_and_share() -> Any:
            outline["colour"] = colour = build()
            return colour

        node._build_color_transform = build_and_share
        node._need_colortransform_update = True
        node._get_hook("frag", "post").add(outline("v_texcoord"), position=LAST)

    def show(self, *, outline: bool) -> None:
        """Show the outline, or all points."""
        self._outline["width"] = OUTLINE_WIDTH if outline else 0.0
        self.node.update()

    def follow_set(self) -> None:
        """Show points near those that the colormap does not show."""
        self._outline["lasting"] = 0.0
        self.node.update()

    def follow(self, level: float, *, superlevel: bool) -> None:
        """Show points near those of the complement: below a level, or not, of its values."""
        self._outline["lasting"] = 1.0
        self._outline["level"] = level
        self._outline["superlevel"] = 1.0 if superlevel else 0.0
        self.node.update()

    def set_outside(self, values: NDArray[Any]) -> None:
        """Set the values of the complement, float32, in the order of those that are drawn."""
        self._outside.set_data(np.ascontiguousarray(values))
        self.node.update()
