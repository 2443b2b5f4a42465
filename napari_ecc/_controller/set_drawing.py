"""How the graphics card draws a set: its outline, and the components and holes that last alone."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from vispy.gloo import Texture2D, Texture3D
from vispy.visuals import ImageVisual, VolumeVisual
from vispy.visuals.shaders import Function

OUTLINE_WIDTH = 2.0
"""Width of the outline in pixels of the screen."""
LAST = 9
"""Place among what is done with a point: after it got its opacity, that of a line is twice it."""
COLUMNS = 4096
"""Entries in a row of a table on the graphics card: a power of two, by which division is exact."""
CHOSEN = 255
"""The entry of a chosen label in a table of 8 bits."""
TEXTURES = {2: Texture2D, 3: Texture3D}
"""Classes of textures by the number of displayed axes."""
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
"""Part of a voxel by which places are moved: where voxels meet, the card rounds in two ways."""
FIRST_POINT = "int first = -1;"
"""What a ray does before its loop: it has not met the set."""
GO_ON_CODE = """
while (iter < nsteps - 1 && !(%(inside)s && distance_from_clip >= 0.0)) {
    loc += step;
    iter++;
    distance_from_clip = $clip_with_planes(loc, u_shape);
    val = colorToVal($get_data(loc));
}
if (%(inside)s && distance_from_clip >= 0.0%(also)s) {
    first = iter;
    iter = nsteps;
}
"""
"""What a ray does in its loop: it goes on to the next point of the set, and ends where it meets it.

Graphics without a card take the time of both branches at each step, but not that of what comes
after an inner loop: whether the point is in a component that lasts is looked up where it matters.
"""
LASTS_CALL = " && lasts(loc, u_shape, clim) > 0.0"
LASTS_CODE = """
float lasts(vec3 near, vec3 shape, vec2 clim) {
    vec3 at = (floor(near * shape + $aside) + 0.5) / shape;
    float val = $data(at).r;
    return %(inside)s ? $components(at) : 0.0;
}
"""
LOOK_UP_CODE = "vec4 look_up(vec3 at) { return $data(at); }"
MET_CODE = """
if (first < 0) discard;
frag_depth_point = (start_loc + step * float(first)) * u_shape;
gl_FragColor = applyColormap(vec4(%(colour)s));
"""
"""What a ray does after its loop."""
INSIDE = {
    "mip": "(2.0 * (val - clim.x) > clim.y - clim.x)",
    "minip": "(2.0 * (val - clim.x) < clim.y - clim.x)",
}
"""Whether a value is on the side of the middle of the contrast limits that is drawn."""
COLOURS = {"mip": "clim.y", "minip": "clim.x"}


def _snippets(method: str, *, lasting: bool) -> dict[str, str]:
    """Return what a ray does for a method of vispy that draws the points of a set."""
    inside = INSIDE[method]
    return {
        "before_loop": FIRST_POINT,
        "in_loop": GO_ON_CODE % {"inside": inside, "also": LASTS_CALL if lasting else ""},
        "after_loop": MET_CODE % {"colour": COLOURS[method]},
    }


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
        missing = (1,) * (self._ndim - labels.ndim)  # A plane may be drawn as a volume.
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
        self._lasting = False
        build = node._build_interpolation

        def build_and_look_up() -> None:
            build()
            functions = {"clip_with_planes": node._clip_func, "get_data": self._look_up()}
            for name, function in functions.items():
                # Otherwise snippets keep the former function.
                node.shared_program.frag[name] = None
                node.shared_program.frag[name] = function

        node._build_interpolation = build_and_look_up
        self.leave_out(others=False)

    def _look_up(self) -> Function:
        """Return the function that reads a point, and brings what snippets call by its name."""
        data = self.node._data_lookup_fn
        if not self._lasting or self.node.method not in INSIDE:
            return data
        lasts = Function(LASTS_CODE % {"inside": INSIDE[self.node.method]})
        lasts["aside"] = ASIDE
        lasts["data"] = data
        lasts["components"] = self.components.function
        look_up = Function(LOOK_UP_CODE, dependencies=[lasts])
        look_up["data"] = data
        return look_up

    def leave_out(self, *, others: bool) -> None:
        """Draw only what is chosen, or the whole set."""
        self._lasting = others
        own = {method: _snippets(method, lasting=others) for method in INSIDE}
        self.node._rendering_methods = {**self.node._rendering_methods, **own}
        self.node.method = self.node.method  # Setting the method takes the new snippets.
