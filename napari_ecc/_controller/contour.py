"""The outline of a set in the canvas, found by the graphics card while it draws."""

from __future__ import annotations

from typing import Any

from vispy.visuals import ImageVisual
from vispy.visuals.shaders import Function

WIDTH = 2.0
"""Of the line, in pixels of the screen."""

LAST = 9
"""Place among what is done with a point: after it got its opacity, that of a line is twice it."""

OUTLINE = """
void keep_outline(vec2 at) {
    vec2 across = $width * dFdx(at), down = $width * dFdy(at);
    bool within = $width > 0.0;
    for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++)
            if ($colour(texture2D($texture, at + float(i) * across + float(j) * down)).a == 0.0)
                within = false;
    if (within) discard;
    gl_FragColor.a = $width > 0.0 ? min(1.0, 2.0 * gl_FragColor.a) : gl_FragColor.a;
}
"""


class Contour:
    """Leaves out what an image shows, but for what is near points that its colormap does not show.

    napari's `Labels.contour` searches the whole array in memory, which is too slow while the
    threshold is dragged: of 2048 x 2048 pixels a frame takes 2.7 times as long as one of a contrast
    drag.
    """

    def __init__(self, node: ImageVisual) -> None:
        self.node = node
        self._outline = outline = Function(OUTLINE)
        outline["texture"], outline["width"] = node._texture, 0.0
        build = node._build_color_transform

        def build_and_share() -> Any:
            outline["colour"] = colour = build()
            return colour

        node._build_color_transform = build_and_share
        node._need_colortransform_update = True
        node._get_hook("frag", "post").add(outline("v_texcoord"), position=LAST)

    def show(self, *, outline: bool) -> None:
        """Show the outline, or all points."""
        self._outline["width"] = WIDTH if outline else 0.0
        self.node.update()
