"""How the graphics card draws a set: its outline, and the components and holes that last alone."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from vispy.gloo import Texture2D
from vispy.visuals import ImageVisual
from vispy.visuals.shaders import Function

OUTLINE_WIDTH = 2.0
"""In pixels of the screen."""
LAST = 9
"""Place among what is done with a point: after it got its opacity, that of a line is twice it."""
COLUMNS = 4096
"""Entries in a row of a table on the graphics card: a power of two, by which division is exact."""
CHOSEN = 255
"""Of the entries of a table, in 8 bits."""
LOOKUP_CODE = """
float chosen(vec2 at) {
    float label = texture2D($labels, at).r;
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


class Lookup:
    """The points of some components: a label for each point, and a table of the chosen labels.

    A point costs the graphics card two reads, and another choice a table of a byte for each label:
    a two hundredth of what the points of a smooth image take.
    """

    def __init__(self) -> None:
        none = np.zeros((1, 1), np.float32)
        self._labels = Texture2D(none, interpolation="nearest", internalformat="r32f")
        self._table = Texture2D(np.zeros((1, COLUMNS), np.uint8), interpolation="nearest")
        self.function = Function(LOOKUP_CODE)
        self.function["labels"] = self._labels
        self.function["table"] = self._table
        self.function["columns"] = float(COLUMNS)
        self.function["rows"] = 1.0

    def set_labels(self, labels: NDArray[np.integer[Any]]) -> None:
        """Set the labels of the points that are drawn, below 2^24, in their order."""
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
        self.components = Lookup()
        self.complement = Lookup()
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
