"""Clicks on the diagram and the merge tree of a volume, and labels of what is chosen there."""

import numpy as np
import pytest
from napari_helpers import TIMEOUT, overlays, settle
from numpy.testing import assert_array_equal
from qtpy.QtCore import Qt

BOX = np.s_[2:9, 2:9, 2:9]
INSIDE = np.s_[4:7, 4:7, 4:7]
RING = np.s_[2:5, 2:13, 14:25]
THROUGH = np.s_[2:5, 6:9, 18:21]
BALL = np.s_[7:10, 14:17, 4:7]
CTRL = Qt.KeyboardModifier.ControlModifier
COMPONENT, TUNNEL, CAVITY = range(3)


def volume():
    """A box with a cavity, a ring, and a ball, each with classes of its own persistence."""
    image = np.full((12, 19, 27), 10, np.uint8)
    image[BOX] = 200
    image[INSIDE] = 40
    image[RING] = 180
    image[THROUGH] = 30
    image[BALL] = 150
    # Bridges let the ball merge with the box at 60, and the ring at 50.
    image[2:9, 9:14, 5] = 60
    image[3, 5, 9:14] = 50
    return image


@pytest.fixture
def panel(explorer, qtbot):
    """The dock of the volume in a shown window, in three dimensions, with its diagram."""
    viewer, panel = explorer(volume(), name="volume", show=True)
    viewer.dims.ndisplay = 3
    settle(qtbot, panel)
    qtbot.waitUntil(lambda: panel.model.classes is not None, timeout=TIMEOUT)
    panel.model.threshold = 100.0
    panel.tabs.setCurrentWidget(panel.diagram)
    settle(qtbot, panel)
    panel.viewer = viewer
    return panel


def class_of(panel, dimension):
    """Return the class of a dimension that the set has and that dies, which is the only one."""
    classes = panel.model.classes
    alive = classes.alive(panel.model.threshold) & np.isfinite(classes.deaths)
    found = np.flatnonzero(alive & (classes.dimensions == dimension))
    return int(found[0])


def labelled(qtbot, panel):
    """Label what is chosen, and return the labels and their kinds."""
    panel.actions["make_labels"].native.click()
    settle(qtbot, panel)
    layer = panel.viewer.layers[-1]
    return layer, layer.features["kind"].tolist()[1:]


@pytest.mark.parametrize(
    ("dimension", "kind", "where"),
    [
        pytest.param(COMPONENT, "component", RING, marks=pytest.mark.slow),
        (CAVITY, "cavity", INSIDE),
        pytest.param(TUNNEL, "tunnel", None, marks=pytest.mark.slow),
    ],
    ids=["component", "cavity", "tunnel"],
)
def test_a_click_chooses_a_class_of_a_volume(panel, qtbot, drag_mouse, dimension, kind, where):
    """It is outlined, said, labelled by what it is, and undone."""
    number = class_of(panel, dimension)
    drag_mouse(panel.diagram, panel.diagram.positions()[number])
    settle(qtbot, panel)
    assert panel.model.chosen == (number,)
    assert panel.object.text() == f"1 chosen; in this set 1 {kind}"
    outline = next(layer for layer in overlays(panel.viewer) if layer.name == "chosen")
    assert outline.data.any()
    layer, kinds = labelled(qtbot, panel)
    assert kinds == [kind]
    if where is None:
        classes = panel.model.classes
        ends = {tuple(classes.birth_points[number]), tuple(classes.death_points[number])}
        assert set(map(tuple, np.argwhere(layer.data))) <= ends
        assert layer.data.any()
    else:
        expected = np.zeros(volume().shape, bool)
        expected[where] = True
        expected[THROUGH] = False
        assert_array_equal(layer.data > 0, expected)
    panel.actions["undo"].native.click()
    assert layer not in panel.viewer.layers


def test_ctrl_and_a_lasso_choose_classes_of_a_volume(panel, qtbot, drag_mouse):
    """A click with Ctrl adds and takes away; what is drawn around is chosen, and labelled."""
    at = panel.diagram.positions()
    cavity, tunnel = class_of(panel, CAVITY), class_of(panel, TUNNEL)
    drag_mouse(panel.diagram, at[cavity])
    drag_mouse(panel.diagram, at[tunnel], modifiers=CTRL)
    assert set(panel.model.chosen) == {cavity, tunnel}
    assert panel.object.text() == "2 chosen; in this set 1 tunnel, 1 cavity"
    drag_mouse(panel.diagram, at[tunnel], modifiers=CTRL)
    assert panel.model.chosen == (cavity,)
    low, high = at.min(axis=0) - 4, at.max(axis=0) + 4
    corners = [tuple(low), (high[0], low[1]), tuple(high), (low[0], high[1]), tuple(low)]
    drag_mouse(panel.diagram, *corners)
    settle(qtbot, panel)
    assert set(panel.model.chosen) == set(range(len(at)))
    assert panel.object.text().endswith("in this set 3 components, 1 tunnel, 1 cavity")
    layer, kinds = labelled(qtbot, panel)
    assert sorted(kinds) == sorted(["component"] * 3 + ["tunnel", "cavity"])
    inside = volume() >= 100
    assert (layer.data[inside] > 0).all()
    assert (layer.data[INSIDE] > 0).all()


def test_bars_of_the_merge_tree_choose_objects_of_a_volume(panel, qtbot, drag_mouse):
    """Two of three objects, of which labels are made; without a choice there are three."""
    panel.tabs.setCurrentWidget(panel.tree)
    settle(qtbot, panel)
    tree = panel.tree.tree
    assert tree.births.tolist() == [200, 180, 150]
    for number, modifiers in ((2, Qt.KeyboardModifier.NoModifier), (1, CTRL)):
        place = panel.tree.pixels(float(tree.births[number]), float(tree.rows[number]))
        drag_mouse(panel.tree, place, modifiers=modifiers)
    settle(qtbot, panel)
    assert panel.object.text() == "2 chosen; in this set 2 components"
    layer, kinds = labelled(qtbot, panel)
    expected = np.zeros(volume().shape, bool)
    expected[RING] = expected[BALL] = True
    expected[THROUGH] = False
    assert kinds == ["component"] * 2
    assert_array_equal(layer.data > 0, expected)
    panel.actions["undo"].native.click()
    panel.model.chosen = ()
    panel.actions["make_labels"].native.click()
    settle(qtbot, panel)
    assert panel.viewer.layers[-1].data.max() == 3
    assert_array_equal(panel.viewer.layers[-1].data > 0, volume() >= 100)
