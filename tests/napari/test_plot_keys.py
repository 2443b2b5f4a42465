"""Plots by keyboard, and gates of the scatter plot, without a viewer."""

import numpy as np
import pytest
from napari_helpers import pixels_of, settle
from numpy.testing import assert_array_equal
from qtpy.QtCore import Qt
from qtpy.QtGui import QColor

from napari_ecc._model.explorer import Tree
from napari_ecc._qt import form
from napari_ecc._qt.heatmap import HeatMap
from napari_ecc._qt.merge_tree import MergeTree
from napari_ecc._qt.saving import load_settings, save_settings
from napari_ecc._qt.scatter import Scatter, inside

KEY = Qt.Key


def shown(qtbot, plot):
    qtbot.addWidget(plot)
    plot.resize(400, 300)
    chosen = []

    def keep(*found):
        chosen.append(found if len(found) > 1 else found[0])

    signal = plot.placed if isinstance(plot, HeatMap) else plot.chosen
    signal.connect(keep)
    return chosen


def test_points_by_keys(qtbot):
    """Along the abscissa, up to its ends."""
    plot = Scatter()
    chosen = shown(qtbot, plot)
    points = np.array([[3.0, 0], [1, 1], [2, 5]])
    plot.set_points(points, [QColor("red")] * 3, ["a", "b", "c"], ("x", "y"))
    for key, modifier in [
        (KEY.Key_Right, None),
        (KEY.Key_Right, None),
        (KEY.Key_Right, Qt.KeyboardModifier.ShiftModifier),
        (KEY.Key_Right, None),
        (KEY.Key_Left, None),
    ]:
        qtbot.keyClick(plot, key, modifier or Qt.KeyboardModifier.NoModifier)
        plot.set_selected(*chosen[-1])
    assert chosen == [(1,), (2,), (2, 0), (0,), (2,)]


def test_bars_by_keys(qtbot):
    plot = MergeTree()
    chosen = shown(qtbot, plot)
    tree = Tree(np.array([9.0, 8, 7]), np.array([-np.inf, 3, 5]), np.array([0, 1, 1]))
    plot.set_tree(tree, 0.0, 10.0, 4.0)
    for key in (KEY.Key_Up, KEY.Key_Up, KEY.Key_Up, KEY.Key_Up, KEY.Key_Down):
        qtbot.keyClick(plot, key)
        plot.set_selected(*chosen[-1])
    rows = [int(tree.rows[found[0]]) for found in chosen]
    assert rows == [0, 1, 2, 2, 1]

    def marked(*bars):
        plot.set_selected(*bars)
        return (pixels_of(plot) == QColor(plot._colours.accent).getRgb()[:3]).all(axis=-1)

    alone = marked(1), marked(2)
    none = marked().sum()
    assert all(at.sum() > none for at in alone)
    assert_array_equal(marked(1, 2), np.logical_or(*alone))  # Nothing joins them.


def test_a_map_by_keys(qtbot):
    plot = HeatMap("t", "frame")
    placed = shown(qtbot, plot)
    plot.set_values(np.zeros((3, 30)), np.arange(30.0), np.arange(3.0))
    plot.set_marker(0.0, 12.0)
    shift = Qt.KeyboardModifier.ShiftModifier
    for key, modifier in [(KEY.Key_Down, None), (KEY.Key_Right, shift), (KEY.Key_Up, shift)]:
        qtbot.keyClick(plot, key, modifier or Qt.KeyboardModifier.NoModifier)
        column, row = placed[-1]
        plot.set_marker(row, column)
    assert placed == [(12.0, 1.0), (22.0, 1.0), (22.0, 0.0)]


def test_what_is_inside_a_gate():
    """However different the units of the axes are."""
    points = np.array([[0.0, 0], [1e6, 1e-6], [5e5, 5e-7], [9e5, 1e-7]])
    corners = ((-1.0, -1e-8), (6e5, -1e-8), (6e5, 8e-7), (-1.0, 8e-7))
    assert inside(points, corners) == (0, 2)
    assert inside(points, ()) == inside(points, corners[:2]) == ()
    assert inside(np.zeros((0, 2)), corners) == ()


@pytest.mark.parametrize("value", ["x", [[1, 2]], [[1, 2], [3, 4], [5]], [[1, 2], [3, 4], "no"]])
def test_a_gate_of_a_file_is_checked(value):
    with pytest.raises(ValueError, match="`gate` must be a list of three or more pairs"):
        form.checked_corners("gate", value)


def test_features_on_both_axes_and_a_gate(open_panel, qtbot, drag_mouse, tmp_path):
    """A gate is drawn around two of three objects, saved, loaded, and kept for new objects."""
    labels = np.zeros((20, 30), np.int32)
    labels[2:5, 2:5], labels[2:8, 10:16], labels[2:12, 20:29] = 1, 2, 3
    image = (labels * 40 + np.arange(30)).astype(np.uint8)
    viewer, panel = open_panel("Objects", image, labels=labels)
    viewer.layers["labels"].features = {"index": [0, 1, 2, 3], "size": [0, 9, 36, 90]}
    panel.actions["measure"].native.click()
    settle(qtbot, panel)
    model = panel.model
    panel.object["basis"].value = "Two features"
    assert {"size", "ecc_pc1", "ect_pc2"} <= set(panel.object["first"].choices)
    panel.object["first"].value = "size"
    panel.object["second"].value = "ecc_pc1"
    scatter = panel.scatter
    assert scatter._points[:, 0].tolist() == [9, 36, 90]
    x0, _, y0, y1 = scatter._bounds
    corners = [(x0, y0), (60.0, y0), (60.0, y1), (x0, y1)]
    pixels = [tuple(map(float, scatter.pixels(*corner))) for corner in corners]
    drag_mouse(scatter, *pixels)
    assert model.selected == (1, 2)
    assert len(model.gate) >= 4
    gate = model.gate
    path = tmp_path / "settings.json"
    save_settings(panel, str(path))
    drag_mouse(scatter, pixels[1])  # A click at nothing chooses nothing.
    assert model.gate == model.selected == ()
    load_settings(panel, str(path))
    assert model.gate == gate
    assert model.selected == (1, 2)
    assert (model.first, model.second) == ("size", "ecc_pc1")
    panel.actions["measure"].native.click()
    settle(qtbot, panel)
    assert model.selected == (1, 2)  # The gate chooses them again.
    model.first = "missing"
    assert scatter.empty
