"""The regions panel in a real window: selecting objects, from all sides."""

import numpy as np
import pytest
from napari_helpers import (
    TIMEOUT,
    canvas_of,
    measure,
    objects,
    on_canvas,
    push,
    settle,
)
from numpy.testing import assert_allclose, assert_array_equal
from qtpy.QtCore import Qt
from qtpy.QtGui import QColor
from scipy.ndimage import binary_dilation

import ecc_core as ecc
from napari_ecc._qt.colours import colours_of


def square(x, y, half=8):
    """Corners around a place on a widget."""
    return [(x + half * a, y + half * b) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]


def test_selection_is_the_same_everywhere(regions, qtbot, drag_mouse):
    """Layer, canvas, scatter plot and numbers follow each other."""
    viewer, panel, layer = regions(*objects(), show=True)
    model, scatter, numbers = panel.model, panel.scatter, panel.object["selected"]
    layer.selected_label = 8
    assert model.selected == (8,)
    assert numbers.value == "8"
    assert scatter.selected == (3,)
    layer.selected_label = 7  # There is no such object.
    assert model.selected == ()
    assert scatter.selected == ()

    panel.object["basis"].value = "PCA of transforms"
    panel.object["basis"].value = "PCA of curves"
    drag_mouse(scatter, tuple(scatter.positions()[5]))
    assert layer.selected_label == 12
    assert model.selected == (12,)
    drag_mouse(scatter, (2, 2))
    assert model.selected == ()
    assert layer.selected_label == 12

    numbers.native.setFocus()
    numbers.native.clear()
    qtbot.keyClicks(numbers.native, "10 12,7\r")
    assert model.selected == (10, 12)
    assert numbers.value == "10, 12"
    assert layer.selected_label == 12
    assert scatter.selected == (4, 5)
    drag_mouse(canvas_of(viewer), on_canvas(viewer, (5, 30)))
    assert layer.selected_label == 4
    assert model.selected == (4,)
    path = [on_canvas(viewer, at) for at in ((5, 50), (9, 40), (9, 30))]
    drag_mouse(canvas_of(viewer), *path)  # This moves the canvas.
    assert model.selected == (4,)


@pytest.mark.parametrize("mode", ["pan_zoom", "pick"])
def test_ctrl_adds_objects_and_takes_them_away(regions, drag_mouse, mode):
    """It does so in the canvas and in the scatter plot, for one or several; so does Shift."""
    viewer, panel, layer = regions(*objects(), show=True)
    model, scatter = panel.model, panel.scatter
    layer.mode = mode
    ctrl = {"modifiers": Qt.KeyboardModifier.ControlModifier}
    shift = {"modifiers": Qt.KeyboardModifier.ShiftModifier}
    places = scatter.positions()

    drag_mouse(scatter, tuple(places[1]))
    drag_mouse(scatter, tuple(places[4]), **ctrl)
    drag_mouse(scatter, tuple(places[0]), **shift)
    assert model.selected == (4, 10, 2)
    assert scatter.selected == (1, 4, 0)
    assert panel.object["selected"].value == "4, 10, 2"
    assert layer.selected_label == 2
    drag_mouse(scatter, tuple(places[4]), **ctrl)
    drag_mouse(scatter, (2, 2), **ctrl)  # This is beside all points.
    assert model.selected == (4, 2)

    drag_mouse(scatter, *square(*places[5]), **ctrl)
    assert set(model.selected) == {4, 2, 12}
    around_all = square(*places.mean(axis=0), 1000)
    every = [2, 4, 6, 8, 10, 12]
    drag_mouse(scatter, *around_all, **ctrl)
    assert sorted(model.selected) == every
    drag_mouse(scatter, *around_all, **ctrl)
    assert model.selected == ()
    drag_mouse(scatter, *around_all)
    assert sorted(model.selected) == every

    drag_mouse(canvas_of(viewer), on_canvas(viewer, (5, 30)))
    drag_mouse(canvas_of(viewer), on_canvas(viewer, (25, 30)), **ctrl)
    drag_mouse(canvas_of(viewer), on_canvas(viewer, (5, 5)), **shift)
    assert model.selected == (4, 10, 2)
    drag_mouse(canvas_of(viewer), on_canvas(viewer, (5, 5)), **ctrl)
    # The second place is beside all objects.
    drag_mouse(canvas_of(viewer), on_canvas(viewer, (38, 58)), **ctrl)
    assert model.selected == (4, 10)


def test_rows_of_the_table_of_features(regions, qtbot):
    """napari takes the place of a row for its label, and the column "index" for what it names."""
    viewer, panel, layer = regions(*objects(), show=True)
    viewer.layers.selection = {layer}
    _, widget = viewer.window.add_plugin_dock_widget("napari", "Features table widget")
    table = widget.table

    def click(row, **options):
        at = table.visualRect(table.model().index(row, 0)).center()
        qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at, **options)

    click(2)
    assert panel.model.selected == (2,)
    click(4, modifier=Qt.KeyboardModifier.ControlModifier)
    assert panel.model.selected == (2, 4)
    click(2)
    assert panel.model.selected == (2,)
    panel.model.selected = (10,)
    assert {index.row() for index in table.selectedIndexes()} == {10}
    (column,) = np.flatnonzero(layer.features.columns == "ecc_pc1")
    score = panel.model.regions.components["curves"].scores[4, 0]
    shown = table.model().index(10, int(column) + 1).data()
    assert float(shown) == pytest.approx(score, rel=1e-3)
    status = layer.get_status((30, 30), world=True)["coordinates"]
    told = status.partition("ecc_pc1: ")[2].partition(",")[0]
    assert float(told) == pytest.approx(score, rel=1e-3)


def test_selected_objects_are_marked_in_the_canvas(regions, qtbot, monkeypatch):
    """Points near them are marked, a thin line where they touch; without any, nothing is."""
    monkeypatch.setattr("napari_ecc._controller.fields.WIDTH", 3 / 60)
    image, labels = objects()
    viewer, panel, layer = regions(image, labels, scale=(2, 1), translate=(5, 3))
    for chosen in ((10,), (2, 4, 12)):
        panel.model.selected = chosen
        settle(qtbot, panel)
        mark = viewer.layers["selected objects"]
        union = np.isin(labels, chosen)
        around = binary_dilation(union, iterations=3) & ~union
        for label in chosen:
            around |= binary_dilation(labels == label) & (labels != label)
        found = np.zeros_like(around)
        for corner in np.argwhere(mark.data):
            at = layer.world_to_data(mark.data_to_world(corner))
            found[tuple(np.round(at).astype(int))] = True
        assert_array_equal(found, around)
    # A line lies between 2 and 4.
    assert_array_equal(found[10, 12:24], [False] * 5 + [True] * 2 + [False] * 5)
    panel.model.selected = ()
    qtbot.waitUntil(lambda: "selected objects" not in viewer.layers, timeout=TIMEOUT)
    panel.model.selected = (12,)
    settle(qtbot, panel)
    assert "selected objects" in viewer.layers
    viewer.layers.remove(layer)
    assert "selected objects" not in viewer.layers


def test_the_camera_moves_to_what_is_out_of_view(regions, qtbot):
    """It zooms out if objects do not fit."""
    image, labels = objects()[0], np.zeros((40, 60), np.int32)
    labels[2:6, 2:6], labels[30:34, 50:54] = 2, 12
    viewer, panel, layer = regions(image, labels, show=True, scale=(2, 1), translate=(5, 3))
    camera = viewer.scene.camera

    def state():
        return (*camera.center, camera.zoom)

    def choose(*labels):
        panel.model.selected = labels
        settle(qtbot, panel)
        return state()

    def sees(label):
        y, x = ((5, 3) + np.argwhere(layer.data == label) * (2, 1)).T
        half = np.array(viewer.canvas.size) / camera.zoom / 2
        (top, left), (bottom, right) = (camera.center[-2:] + sign * half for sign in (-1, 1))
        return top < y.min() and y.max() < bottom and left < x.min() and x.max() < right

    qtbot.wait(300)  # The window gets its size, which moves the camera.
    viewer.fit_to_view()
    whole = state()
    assert choose(2, 12) == whole
    camera.zoom = 4 * whole[-1]
    # Half of object 2 is in view.
    camera.center = (0, 11 + viewer.canvas.size[0] / camera.zoom / 2, 7)
    close = state()
    assert choose(2) == close
    assert not sees(2)
    assert choose(12)[-1] == close[-1]
    assert sees(12)
    assert choose(12, 2)[-1] < close[-1]
    assert sees(2)
    assert sees(12)
    camera.zoom, camera.center = close[-1], close[:-1]
    # What remains may be out of view, and so may what was chosen before.
    assert choose(2) == close
    choose(12)
    camera.zoom, camera.center = close[-1], close[:-1]
    assert choose(12, 2) == close


def test_slider_and_camera_move_to_an_object_of_a_volume(regions, qtbot):
    """The slider to a slice that has it, the camera of the volume to a point of it.

    What is measured is the volume.
    """
    labels = np.zeros((30, 20, 24), np.int32)
    labels[2:9, 2:8, 3:9], labels[18:29, 12:18, 14:22] = 1, 2
    labels[20:27, 12:18, 14:22] = 0  # The middle slice of object 2 is empty.
    image = np.random.default_rng(0).integers(0, 200, labels.shape).astype(np.uint8)
    viewer, panel, layer = regions(image, labels, show=True, scale=(3, 1, 2), translate=(5, 3, 0))
    curves = ecc.region_curves(image, labels, 32, superlevel=True)
    transforms = ecc.region_transforms(labels, 8, 16, spacing=(3, 1, 2), normalize="radius")
    assert_array_equal(panel.model.regions.curves.values, curves.values)
    assert_array_equal(panel.model.regions.transforms.values, transforms.values)

    def choose(*labels):
        panel.model.selected = labels
        settle(qtbot, panel)
        return round((viewer.dims.point[0] - 5) / 3)

    viewer.dims.set_current_step(0, 15)
    assert choose(1) == 5
    place = choose(2)
    assert (labels[place] == 2).any()
    viewer.dims.set_current_step(0, 28)
    assert choose(2) == 28
    assert choose(2, 1) == 5  # The object that is new is brought into view.
    choose()
    viewer.dims.ndisplay = 3
    zoom = viewer.scene.camera.zoom

    def label_at_centre():
        at = np.round(layer.world_to_data(viewer.scene.camera.center)).astype(int)
        return labels[tuple(at)]

    choose(2)
    assert label_at_centre() == 2
    choose(1)
    assert label_at_centre() == 1
    assert viewer.scene.camera.zoom == zoom


def test_chosen_objects_are_put_in_a_class(regions, qtbot, drag_mouse):
    """A column of the features, that is shown, kept by further measurements, and undone."""
    _, panel, layer = regions(*objects(), show=True)
    places = panel.scatter.positions()
    left, right = places[:, 0].argmin(), places[:, 0].argmax()
    labels = panel.model.regions.labels
    push(panel, "Put in class")
    assert "Choose objects" in panel.work.text.text()

    drag_mouse(panel.scatter, *square(*places[left]))
    push(panel, "Put in class")
    panel.object["class_name"].value = "B"
    panel.model.selected = (int(labels[right]), 10)
    push(panel, "Put in class")
    features = layer.features.set_index("index")["class"]
    assert features[labels[left]] == "A"
    assert features[labels[right]] == features[10] == "B"
    assert (features == "").sum() == 13 - 3
    assert panel.model.classes[right] == "B"
    assert "2 objects put in class “B”" in panel.work.text.text()
    measure(qtbot, panel)
    assert_array_equal(layer.features["class"], features)
    for _ in range(2):
        push(panel, "Undo")
    assert panel.model.classes[left] == "A"
    assert panel.model.classes[right] == ""


def test_selected_curves_are_in_front(regions):
    """They have the colours of the labels, and names that can be read in any theme."""
    viewer, panel, layer = regions(*objects())
    curves = panel.model.regions.curves
    assert len(panel.plot.lines) == 6
    panel.model.selected = (12, 6, 2)
    behind, front = panel.plot.lines[:6], panel.plot.lines[6:]
    assert_array_equal([line.y for line in front], curves.values[[5, 2, 0]])
    assert [line.label for line in front] == ["Label 12", "Label 6", "Label 2"]
    colours = [QColor(line.colour).getRgbF() for line in front]
    expected = [layer.get_color(label) for label in (12, 6, 2)]
    assert_allclose(colours, expected, rtol=0, atol=1 / 255)
    assert min(line.width for line in front) > behind[0].width
    viewer.theme = "dark"
    assert panel.plot._head.defaultTextColor().name() == colours_of("dark").text
    viewer.theme = "light"
    assert panel.plot._head.defaultTextColor().name() == colours_of("light").text
