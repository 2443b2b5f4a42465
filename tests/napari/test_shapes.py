"""Surface and Points layers in Directions."""

import numpy as np
import pytest
from napari.layers import Points, Surface
from napari_helpers import run_copied, settle
from numpy.testing import assert_array_equal

from napari_ecc import actions

CUBE = np.array(np.meshgrid(*[[0.0, 1.0]] * 3, indexing="ij")).reshape(3, -1).T
FACES = np.array(
    [
        *([0, 1, 3], [0, 2, 3], [4, 5, 7], [4, 6, 7], [0, 1, 5], [0, 4, 5]),
        *([2, 3, 7], [2, 6, 7], [0, 2, 6], [0, 4, 6], [1, 3, 7], [1, 5, 7]),
    ]
)


def counted(points, faces, direction, heights):
    """Vertices minus edges plus triangles below each height, one by one."""
    edges = {tuple(sorted((a, b))) for f in faces.tolist() for a in f for b in f if a != b}
    height = points @ direction
    of_edges = np.array([max(height[a], height[b]) for a, b in edges])
    of_faces = height[faces].max(axis=1)
    found = []
    for level in heights:
        points_below, edges_below, faces_below = (
            np.count_nonzero(entry <= level) for entry in (height, of_edges, of_faces)
        )
        found.append(points_below - edges_below + faces_below)
    return found


def test_a_surface_in_the_world():
    """Scaled, turned and moved as in the canvas, and measured from the middle of its box."""
    turn = np.eye(3)
    turn[1:, 1:] = [[0.8, -0.6], [0.6, 0.8]]
    layer = Surface((CUBE, FACES), scale=(2, 1, 3), rotate=turn, translate=(5, 6, 7))
    found = actions.shape_transform(layer, 4, 9, elevation=25.0)
    world = np.array([layer.data_to_world(at) for at in CUBE])
    world -= (world.min(axis=0) + world.max(axis=0)) / 2
    expected = [counted(world, FACES, direction, found.heights) for direction in found.directions]
    assert_array_equal(found.values, expected)
    assert (found.values[:, -1] == 2).all()  # The surface is closed.


def without_a_place():
    """A point that has lost its place in memory, as napari refuses such points at first."""
    layer = Points([[0.0, 1.0]])
    layer.data[0, 1] = np.nan
    return layer


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (Points(np.zeros((2, 4))), "must have 2 or 3 axes to be swept, got 4"),
        (Points(ndim=2), "has no points yet"),
        (without_a_place(), "must have finite coordinates"),
    ],
)
def test_shapes_that_cannot_be_swept(layer, message):
    with pytest.raises(ValueError, match=message):
        actions.shape_transform(layer)


def test_a_surface_is_swept_instead_of_the_image(directions, qtbot):
    viewer, panel = directions(np.eye(8, dtype=np.uint8))
    of_image = panel.model.curve
    surface = viewer.add_surface((CUBE, FACES), name="cube", scale=(1, 2, 1))
    panel.form["shape"].value = "cube"
    settle(qtbot, panel)
    assert panel.model.ndim == 3
    assert panel.controller.subject == "cube"
    assert "8 points, 12 triangles" in panel.work.text.text()
    expected = actions.shape_transform(surface, panel.model.n_directions, panel.model.n_heights)
    assert_array_equal(panel.model.transform.values, expected.values)
    panel.model.turn(90.0)
    settle(qtbot, panel)
    row = np.argmin(np.linalg.norm(expected.directions - panel.model.direction, axis=1))
    assert_array_equal(panel.model.curve.values, expected.values[row])
    assert_array_equal(run_copied(viewer, panel)["transform"].values, expected.values)
    surface.scale = (3, 1, 1)
    settle(qtbot, panel)
    again = actions.shape_transform(surface, panel.model.n_directions, panel.model.n_heights)
    assert_array_equal(panel.model.transform.values, again.values)
    viewer.layers.remove(surface)
    panel.model.turn(0.0)
    settle(qtbot, panel)
    assert panel.model.ndim == 2
    assert_array_equal(panel.model.curve.values, of_image.values)


def test_a_shape_has_its_own_unit_and_no_controls_of_the_image(directions, qtbot):
    options = {"scale": (2, 2), "units": ("um", "um")}
    viewer, panel = directions(np.eye(8, dtype=np.uint8), **options)
    panel.model.filtration = "plane"
    viewer.add_points(CUBE[:, :2], name="cells", units=("nm", "nm"))
    rows = (
        (panel.settings, "connectivity"),
        (panel.settings, "filtration"),
        (panel.arrow, "show_arrow"),
    )

    def shown():
        return [form[name].native.isVisibleTo(panel.arrow.parent()) for form, name in rows]

    panel.settings.show()
    assert shown() == [True] * 3
    panel.form["shape"].value = "cells"
    settle(qtbot, panel)
    assert shown() == [False] * 3
    assert panel.plot.plotItem.getAxis("bottom").labelText == "height (nanometer)"
    assert list(panel.controller.curve_table()) == ["height", "euler_number"]
    panel.form["shape"].value = "none: the image"
    settle(qtbot, panel)
    assert shown() == [True] * 3
    assert panel.plot.plotItem.getAxis("bottom").labelText == "value t of image + plane"


def test_where_there_is_no_image_a_shape_is_offered(directions, qtbot):
    """An image is offered again, once there is no shape either."""
    viewer, panel = directions()
    assert panel.main.state == "Open an image, or a sample."
    viewer.add_points(CUBE, name="corners")
    assert panel.main.state == "Choose “corners” as the shape that is swept, or open an image."
    panel.form["shape"].value = "corners"
    settle(qtbot, panel)
    assert panel.model.curve is not None
    viewer.layers.clear()
    assert panel.main.state == "Open an image, or a sample."
