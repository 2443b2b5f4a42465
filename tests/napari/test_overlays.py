"""Where the set is drawn among the layers: pixels of a window that is shown."""

from itertools import product

import networkx as nx
import numpy as np
import pytest
from napari.utils.colormaps import CyclicLabelColormap
from napari_helpers import TIMEOUT, colourful, overlays, settle, smooth
from numpy.testing import assert_allclose, assert_array_equal
from qtpy.QtWidgets import QApplication
from scipy.ndimage import binary_erosion

import napari_ecc._controller.set_overlay
from napari_ecc._controller.overlays import label_colours

APART = 30
"""Pixels between the middle of the canvas and the points that are looked at."""


def half(ndim, axis):
    """An image whose greater half along one of the last two axes is bright."""
    image = np.full((40,) * ndim, 50, np.uint8)
    np.moveaxis(image, axis, -1)[..., 20:] = 200
    return image


def coloured_quadrants(viewer):
    """The quadrants of the canvas in which the set is seen, as (below the middle, right of it)."""
    coloured = colourful(viewer)
    middle = np.array(coloured.shape) // 2
    at = {(y > 0, x > 0): middle + APART * np.array((y, x)) for y, x in product((-1, 1), repeat=2)}
    return {place for place, (y, x) in at.items() if coloured[y, x]}


class Layers:
    """Does to the layers of a viewer what a user does."""

    def __init__(self, viewer, panel, ndim):
        self.viewer, self.panel, self.ndim, self.count = viewer, panel, ndim, 0

    @property
    def images(self):
        return [layer for layer in self.viewer.layers if layer not in overlays(self.viewer)]

    @property
    def explored(self):
        return self.viewer.layers[self.panel.model.image]

    def open(self):
        axis = -1 - self.count % 2
        self.viewer.add_image(half(self.ndim, axis), name=f"{self.count}", metadata={"axis": axis})
        self.count += 1

    def choose(self):
        others = [layer for layer in self.images if layer != self.explored]
        self.panel.model.image = (others or self.images)[-1].name

    def move(self):
        """Drag the lowest layer to the top."""
        self.viewer.layers.move(0, len(self.viewer.layers))

    def move_overlay(self):
        self.viewer.layers.move(self.viewer.layers.index(overlays(self.viewer)[0]), 0)

    def rename(self):
        self.explored.name += "'"

    def remove(self):
        if len(self.images) == 1:
            self.open()
        self.viewer.layers.remove(self.explored.name)

    def check(self):
        """The set of the explored image lies on it, and is seen unless another image does."""
        (overlay,) = overlays(self.viewer)
        layers = list(self.viewer.layers)
        assert layers.index(overlay) == layers.index(self.explored) + 1
        assert overlay.name == f"{self.explored.name} ≥ t"
        assert overlay not in self.viewer.layers.selection
        across = self.explored.metadata["axis"] == -1
        inside = {place for place in product((False, True), repeat=2) if place[across]}
        on_top = self.images[-1] == self.explored
        assert coloured_quadrants(self.viewer) == (inside if on_top else set())


ACTIONS = "open", "choose", "move", "move_overlay", "rename", "remove"


@pytest.mark.parametrize(
    ("ndim", "all_pairs"),
    [
        (2, False),
        pytest.param(2, True, marks=pytest.mark.slow),
        pytest.param(3, False, marks=pytest.mark.slow),  # Volumes are drawn slowly.
    ],
)
def test_the_set_lies_directly_above_the_explored_layer(explorer, qtbot, ndim, all_pairs):
    """Whatever is opened, chosen, moved, renamed or removed, or also after whatever else."""
    viewer, panel = explorer(show=True)
    panel.model.contour = False
    layers = Layers(viewer, panel, ndim)
    layers.open()
    viewer.dims.ndisplay = ndim
    each_after_each = nx.eulerian_circuit(nx.DiGraph(product(ACTIONS, repeat=2)), "remove")
    actions = ["remove", *(action for _, action in each_after_each)]
    for action in actions if all_pairs else ACTIONS:
        getattr(layers, action)()
        settle(qtbot, panel)
        QApplication.processEvents()
        panel.model.threshold = 200.0
        layers.check()


def look_between_pixels(viewer):
    """Let no edge of a pixel of the image pass through the centre of a pixel of the window.

    Rounding would decide there on which side the edge is: of the fill, and anew of the outline. In
    a window that is an odd number of pixels wide, the middle of the image is such a place.
    """
    pixels_apart = 25
    viewer.scene.camera.zoom = pixels_apart
    middle = 5.5 + 0.25 / pixels_apart
    viewer.scene.camera.center = (0, middle, middle)


@pytest.mark.parametrize("dark", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_outline_is_that_of_the_pixels(explorer, qtbot, dark):
    """Pixels of the window next to those outside of the set, at the edges of the image's pixels."""
    inner = np.random.default_rng(0).integers(0, 200, (10, 10)).astype(np.uint8)
    image = np.pad(inner, 1, constant_values=200 if dark else 0)
    viewer, panel = explorer(image, show=True)
    viewer.layers[0].visible = False
    panel.model.superlevel = not dark
    settle(qtbot, panel)
    look_between_pixels(viewer)

    def coloured(contour="Contour"):
        panel.settings["contour"].value = contour
        QApplication.processEvents()
        return colourful(viewer)

    for threshold in (60.0, 100.0):
        panel.model.threshold = threshold
        outline, inside = coloured(), coloured("Fill")
        within = binary_erosion(inside, np.ones((3, 3)), 2, border_value=1)
        # Coordinates of pixels are rounded.
        wrong = np.count_nonzero(outline != (inside & ~within))
        assert wrong <= 0.002 * np.count_nonzero(outline)
        assert outline.any()
    for ndisplay in (3, 2):
        viewer.dims.ndisplay = ndisplay
        settle(qtbot, panel)
    look_between_pixels(viewer)
    assert_array_equal(coloured(), outline)


@pytest.mark.parametrize("smoothed", [pytest.param(False, marks=pytest.mark.slow), True])
def test_of_large_images_some_points_are_drawn(explorer, qtbot, monkeypatch, smoothed):
    """Evenly spaced ones, each in the middle of those that it stands for."""
    monkeypatch.setattr(napari_ecc._controller.set_overlay, "MOST_DRAWN", 100)
    image = np.random.default_rng(0).integers(0, 200, (3, 40, 50)).astype(np.uint8)
    viewer, panel = explorer(image, scale=(1, 2, 3), translate=(0, 5, 7), rotate=5)
    viewer.dims.set_current_step(0, 0)
    panel.model.sigma = 0.01 * smoothed  # It changes nothing but the type.
    settle(qtbot, panel)
    for step in (5, 4):
        (overlay,) = overlays(viewer)
        every = (step if step == 4 else 1, step, step)
        planes = 1 if smoothed and step == 5 else None
        assert_array_equal(overlay.data, image[:: every[0], ::step, ::step][:planes])
        for at in ((0, 0, 0), (1, 2, 3))[:planes]:
            around = np.multiply(at, every) + (np.array(every) - 1) / 2
            expected = viewer.layers[0].data_to_world(around)
            assert_allclose(overlay.data_to_world(at), expected)
        viewer.dims.ndisplay = 3
        settle(qtbot, panel)


def test_other_overlays_lie_above_the_set(explorer, qtbot):
    """They lie in the order of their ranks, and none is selected."""
    viewer, panel = explorer(half(2, -1), name="below")
    panel.overlays["show_changes"].value = True
    panel.model.window = 50.0
    settle(qtbot, panel)
    viewer.add_image(half(2, -2), name="above")
    expected = ["below", "below ≥ t", "changes at t", "above"]
    assert [layer.name for layer in viewer.layers] == expected
    panel.overlays["show_set"].value = False
    panel.overlays["show_set"].value = True
    assert [layer.name for layer in viewer.layers] == expected
    viewer.layers.reverse()
    assert [layer.name for layer in viewer.layers] == ["above", *expected[:-1]]


def test_another_layer_may_have_the_name_of_the_set(explorer):
    """napari numbers the name then, and sets it anew."""
    viewer, _ = explorer(smooth(20, 20), name="a")
    viewer.add_points(name="b ≥ t")
    viewer.layers["a"].name = "b"
    assert [layer.name for layer in overlays(viewer)] == ["b ≥ t [1]"]


def test_all_overlays_return_after_all_layers_have_been_removed(open_panel, qtbot):
    """Only an overlay that the user removes alone does not return."""
    viewer, panel = open_panel("Directions", half(2, -1))

    def both_are_there():
        return len(overlays(viewer)) == 2

    qtbot.waitUntil(both_are_there, timeout=TIMEOUT)
    viewer.layers.clear()
    settle(qtbot, panel)
    QApplication.processEvents()
    assert not overlays(viewer)
    viewer.add_image(half(2, -2))
    qtbot.waitUntil(both_are_there, timeout=TIMEOUT)
    viewer.layers.remove("Euler direction")
    qtbot.waitUntil(lambda: not panel.arrow["show_arrow"].value, timeout=TIMEOUT)
    panel.model.turn(50)
    settle(qtbot, panel)
    assert len(overlays(viewer)) == 1
    panel.arrow["show_arrow"].value = True
    settle(qtbot, panel)
    assert len(overlays(viewer)) == 2


def test_the_layer_of_the_set_is_kept_for_another_image(explorer, qtbot):
    """It is hidden while that has no curve, and removed if there is none in the end."""
    viewer, panel = explorer(half(2, -1), half(2, -2), show=True)
    (overlay,) = overlays(viewer)
    before, seen, gone = panel.model.image, [], []
    viewer.layers.events.removed.connect(lambda event: gone.append(event.value))
    overlay.events.visible.connect(lambda: seen.append(overlay.visible))
    (other,) = (layer for layer in viewer.layers if layer.name not in (before, overlay.name))
    panel.model.image = other.name
    settle(qtbot, panel)
    assert gone == []
    assert seen in ([], [False, True])  # The curve may come within one loop of events.
    assert overlays(viewer) == [overlay]
    assert overlay.visible
    assert_array_equal(overlay.data, other.data)

    panel.model.image = before
    panel.controller.runner.stop()
    qtbot.waitUntil(lambda: not overlays(viewer), timeout=TIMEOUT)
    panel.controller.resume()
    settle(qtbot, panel)
    (overlay,) = overlays(viewer)
    assert_array_equal(overlay.data, viewer.layers[before].data)

    overlay.visible = False  # The user hides it.
    panel.model.image = other.name
    settle(qtbot, panel)
    assert not overlays(viewer)[0].visible


@pytest.mark.parametrize(("superlevel", "threshold"), [(True, 0.7), (False, 0.1)])
def test_values_at_the_threshold_are_drawn_with_the_set(explorer, qtbot, superlevel, threshold):
    """napari draws float64 as float32, which is below 0.7 and above 0.1."""
    image = np.tile([0.1, 0.4, 0.7, 0.9], (4, 1))
    viewer, panel = explorer(image)
    panel.model.superlevel = superlevel
    settle(qtbot, panel)
    panel.model.threshold = threshold
    drawn, middle = image.astype(np.float32), np.mean(overlays(viewer)[0].contrast_limits)
    inside = image >= threshold if superlevel else image <= threshold
    assert_array_equal(drawn > middle if superlevel else drawn < middle, inside)


def test_labels_have_the_colours_that_are_given():
    """napari compiles nothing for them, while a `DirectLabelColormap` needs a table of numba's."""
    colours = label_colours("red", "blue")
    assert isinstance(colours, CyclicLabelColormap)
    found = colours.map(np.array([0, 1, 2], np.uint8))
    assert_array_equal(found[1:], [(1, 0, 0, 1), (0, 0, 1, 1)])
    assert found[0, 3] == 0
