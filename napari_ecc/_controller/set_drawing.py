"""How the graphics card draws a set: its outline, and the components and holes that last alone."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from vispy.gloo import Texture2D, Texture3D
from vispy.visuals import ImageVisual, VolumeVisual
from vispy.visuals.shaders import Function

OUTLINE_WIDTH = 2.0
"""In pixels of the screen."""
LAST = 9
"""Place among what is done with a point: after it got its opacity, that of a line is twice it."""
COLUMNS = 4096
"""Entries in a row of a table on the graphics card: a power of two, by which division is exact."""
CHOSEN = 255
"""Of the entries of a table, in 8 bits."""
TEXTURES = {2: Texture2D, 3: Texture3D}
"""By the number of axes that are displayed."""
LOOKUP_CODE = """
float chosen(vec%(ndim)d at) {
    float label = texture%(ndim)dD($labels, at).r;
    float row = floor(label / $columns);
    vec2 entry = vec2(label - row * $columns, row);
    return texture2D($table, (entry + 0.5) / vec2($columns, $rows)).r;
}
"""
OUTLINE_CODE = """
void keep_outline(vec2 at) {
    vec2 across = $width * dFdx(at), down = $width * dFdy(at);
    if (gl_FragColor.a == 0.0) discard;
    if ($lasting > 0.0 && $components(at) == 0.0) discard;
    bool within = $width > 0.0;
    for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++) {
            vec2 near = at + float(i) * across + float(j) * down;
            bool outside = $colour(texture2D($texture, near)).a == 0.0;
            if (outside && $lasting > 0.0) outside = $complement(near) > 0.0;
            within = within && !outside;
        }
    if (within) discard;
    gl_FragColor.a = $width > 0.0 ? min(1.0, 2.0 * gl_FragColor.a) : gl_FragColor.a;
}
"""


ASIDE = 0.00123
"""Of a voxel: vispy rounds a place in two ways, and must not do so where two voxels meet."""
IN_SET_CODE = """
vec4 in_set(vec3 near) {
    vec3 at = (floor(near * $shape + $aside) + 0.5) / $shape;
    vec4 point = $data(at);
    float share = (point.r - $low) / ($high - $low);
    bool inside = $upper > 0.0 ? share > 0.5 : share < 0.5;
    if (inside && $lasting > 0.0) inside = $components(at) > 0.0;
    point.r = inside == ($upper > 0.0) ? $high : $low;
    return point;
}
"""


class Lookup:
    """The points of some components: a label for each point, and a table of the chosen labels.

    A point costs the graphics card two reads, and another choice a table of a byte for each label:
    a two hundredth of what the points of a smooth image take.
    """

    def __init__(self, ndim: int) -> None:
        self._ndim = ndim
        none = np.zeros((1,) * ndim, np.float32)
        self._labels = TEXTURES[ndim](none, interpolation="nearest", internalformat="r32f")
        self._table = Texture2D(np.zeros((1, COLUMNS), np.uint8), interpolation="nearest")
        self.function = Function(LOOKUP_CODE % {"ndim": ndim})
        self.function["labels"] = self._labels
        self.function["table"] = self._table
        self.function["columns"] = float(COLUMNS)
        self.function["rows"] = 1.0

    def set_labels(self, labels: NDArray[np.integer[Any]]) -> None:
        """Set the labels of the points that are drawn, below 2^24, in their order."""
        missing = (1,) * (self._ndim - labels.ndim)  # of a plane that is drawn as a volume
        labels = labels.reshape(missing + labels.shape)
        self._labels.set_data(np.ascontiguousarray(labels, np.float32))

    def choose(self, chosen: NDArray[np.bool_]) -> None:
        """Set which labels are chosen, from label 0 on."""
        rows = math.ceil(chosen.size / COLUMNS)
        table = np.zeros((rows, COLUMNS), np.uint8)
        table.ravel()[: chosen.size] = chosen
        table *= CHOSEN
        self._table.set_data(table)
        self.function["rows"] = float(rows)


class Contour:
    """The outline of a set, found by the graphics card while it draws.

    It leaves out what an image shows, but for what is near points that its colormap does not show.
    Of a set of which only what lasts is drawn, it leaves out other components, too, and lines
    around other holes.

    napari's `Labels.contour` searches the whole array in memory, which is too slow while the
    threshold is dragged: of 2048 x 2048 pixels a frame takes 2.7 times as long as one of a contrast
    drag.
    """

    def __init__(self, node: ImageVisual) -> None:
        self.node = node
        self.components = Lookup(2)
        self.complement = Lookup(2)
        self._outline = outline = Function(OUTLINE_CODE)
        outline["texture"] = node._texture
        outline["width"] = 0.0
        outline["lasting"] = 0.0
        outline["components"] = self.components.function
        outline["complement"] = self.complement.function
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

    def leave_out(self, *, others: bool) -> None:
        """Draw only what is chosen, or the whole set."""
        self._outline["lasting"] = 1.0 if others else 0.0
        self.node.update()


class Body:
    """The points of a set in three dimensions, found by the graphics card while it draws.

    What is drawn is whether the voxel of a place is in the set, and in a component that lasts, so
    that rays end where they meet the set.
    """

    def __init__(self, node: VolumeVisual) -> None:
        self.node = node
        self.components = Lookup(3)
        self._in_set = in_set = Function(IN_SET_CODE)
        in_set["lasting"] = 0.0
        in_set["upper"] = 1.0
        in_set["aside"] = ASIDE
        in_set["components"] = self.components.function
        build = node._build_interpolation
        prepare = node._prepare_draw

        def build_and_replace() -> None:
            build()
            in_set["data"] = node._data_lookup_fn
            node.shared_program.frag["get_data"] = None  # snippets would keep the former function
            node.shared_program.frag["get_data"] = in_set

        def prepare_with_limits(view: Any) -> Any:
            self._follow_limits()
            return prepare(view)

        node._build_interpolation = build_and_replace
        node._prepare_draw = prepare_with_limits
        node._need_interpolation_update = True
        self._follow_limits()

    def _follow_limits(self) -> None:
        """Compare with the middle of the contrast limits, as the texture has them."""
        low, high = self.node._texture.clim_normalized
        self._in_set["low"] = float(low)
        self._in_set["high"] = float(high)
        self._in_set["shape"] = self.node._vol_shape[::-1]

    def show(self, *, upper: bool) -> None:
        """Show the points above the middle of the contrast limits, or those below."""
        self._in_set["upper"] = 1.0 if upper else 0.0
        self.node.update()

    def leave_out(self, *, others: bool) -> None:
        """Draw only what is chosen, or the whole set."""
        self._in_set["lasting"] = 1.0 if others else 0.0
        self.node.update()
