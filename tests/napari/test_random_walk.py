"""Many actions of a user in random order: nothing is raised, stale or left over."""

import gc

import dask.array as da
import numpy as np
import pytest
from napari_helpers import DOCKS, TIMEOUT, settle
from numpy.testing import assert_array_equal
from qtpy.QtWidgets import QApplication
from scipy.ndimage import gaussian_filter

import ecc_core as ecc
from napari_ecc._controller.layers import PLUGIN_KEY
from napari_ecc._qt.panel import Panel

ACTIONS = 300
TOPICS = "explorer", "directions", "regions", "series", "compare", "channels"


class User:
    """Acts at random on a viewer and the panels of all docks."""

    def __init__(self, viewer, panels, seed):
        self.viewer, self.panels = viewer, panels
        self.rng = np.random.default_rng(seed)
        self.acts = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("do_")]

    def act(self):
        self.rng.choice(self.acts)()

    def pick(self, items):
        items = list(items)
        return items[self.rng.integers(len(items))] if items else None

    def own_layers(self):
        return [layer for layer in self.viewer.layers if PLUGIN_KEY not in layer.metadata]

    def image(self):
        shape = self.pick([(24, 30), (5, 24, 30), (3, 4, 16, 18)])
        values = gaussian_filter(self.rng.standard_normal(shape), 1)
        return ((values - values.min()) / np.ptp(values) * 200).astype(np.uint8)

    def do_add_image(self):
        if len(self.own_layers()) < 6:
            image = self.image()
            if self.rng.random() < 0.3:
                image = da.from_array(image, chunks=8)
            self.viewer.add_image(image, contrast_limits=(0, 200))

    def do_add_labels(self):
        if len(self.own_layers()) < 6:
            self.viewer.add_labels(self.image() // 70)

    def do_remove(self):
        layer = self.pick(self.viewer.layers)
        if layer is not None and self.rng.random() < 0.4:
            self.viewer.layers.remove(layer)

    def do_rename(self):
        layer = self.pick(self.own_layers())
        if layer is not None:
            layer.name = f"layer {self.rng.integers(100)}"

    def do_move_slider(self):
        for axis in range(self.viewer.dims.ndim - 2):
            self.viewer.dims.set_current_step(axis, int(self.rng.integers(5)))

    def do_switch_view(self):
        if self.rng.random() < 0.3:
            self.viewer.dims.ndisplay = 5 - self.viewer.dims.ndisplay

    def do_choose_layer(self):
        model = self.panels["explorer"].model
        model.image = self.pick(self.panels["explorer"].controller.images.names) or ""

    def do_choose_region(self):
        panel = self.panels["explorer"]
        panel.model.roi = self.pick(["", *panel.controller.regions.names])

    def do_drag(self):
        panel = self.panels["explorer"]
        for x in self.rng.uniform(0, 200, 3):
            panel.plot.threshold_moved.emit(float(x))

    def do_change_settings(self):
        panel = self.panels[self.pick(["explorer", "regions", "series", "channels"])]
        panel.model.superlevel = bool(self.rng.integers(2))
        panel.model.connectivity = self.pick([None, 1])

    def do_toggle(self):
        model = self.panels["explorer"].model
        name = self.pick(["show_set", "show_changes", "show_histogram"])
        setattr(model, name, not getattr(model, name))

    def do_smooth(self):
        self.panels["explorer"].model.sigma = float(self.pick([0, 0, 1]))

    def do_change_scope(self):
        self.panels["explorer"].model.scope = self.pick(["slice", "volume"])

    def do_make_labels(self):
        self.panels["explorer"].controller.make_labels()

    def do_undo(self):
        self.panels["explorer"].actions["undo"].native.click()

    def do_turn(self):
        self.panels["directions"].model.turn(float(self.rng.uniform(0, 360)))

    def do_mark_height(self):
        self.panels["directions"].controller.mark(float(self.rng.uniform(-10, 10)))

    def do_place(self):
        self.panels["channels"].controller.move(*self.rng.uniform(0, 200, 2).tolist())

    def do_measure(self):
        self.panels["regions"].controller.request()

    def do_compare(self):
        to = self.panels["compare"].controller
        self.pick([to.add_layers, to.add_frames, to.pin, to.clear])()

    def do_cancel(self):
        self.pick(self.panels.values()).controller.runner.stop()

    def do_resume(self):
        self.pick(self.panels.values()).controller.resume()

    def do_paint(self):
        layer = self.pick([at for at in self.own_layers() if hasattr(at, "brush_size")])
        if layer is not None:
            layer.paint((0,) * (layer.ndim - 2) + (5, 5), int(self.rng.integers(4)))

    def do_wait(self):
        QApplication.processEvents()


def assert_nothing_is_stale(panels) -> bool:
    """The explorer's curve is that of its layer, part and settings now; whether there is one."""
    explorer = panels["explorer"]
    model, shown = explorer.model, explorer.controller.details.source
    if model.curve is None or not model.curve.complete or model.status.startswith("Cancelled"):
        return False
    assert shown.layer == explorer.controller.layer
    request = shown.request
    image = np.asarray(request.levels[-1])
    if model.sigma:
        image = gaussian_filter(image.astype(np.float32), request.sigma)
    mask = None if request.read_mask is None else request.read_mask()
    sets = {"superlevel": model.superlevel, "connectivity": model.connectivity, "mask": mask}
    expected = ecc.euler_curve(image, model.curve.thresholds, **sets)
    assert_array_equal(model.curve.values, expected.values)
    return True


@pytest.mark.slow
def test_random_walk(make_napari_viewer_proxy, open_panel, qtbot):
    viewer = make_napari_viewer_proxy()
    panels = {
        topic: open_panel(name, viewer=viewer)[1] for topic, name in zip(TOPICS, DOCKS, strict=True)
    }
    user, checked = User(viewer, panels, seed=0), 0
    for count in range(1, ACTIONS + 1):
        user.act()
        if count % 25 == 0:
            for panel in panels.values():
                settle(qtbot, panel)
            QApplication.processEvents()
            checked += assert_nothing_is_stale(panels)
    assert checked >= 5
    for panel in panels.values():
        settle(qtbot, panel)
        viewer.window.remove_dock_widget(panel)
    panels.clear()
    user.panels.clear()
    del panel

    def left():
        gc.collect()
        return [widget for widget in QApplication.allWidgets() if isinstance(widget, Panel)]

    qtbot.waitUntil(lambda: not left(), timeout=TIMEOUT)
    assert not [layer for layer in viewer.layers if PLUGIN_KEY in layer.metadata]
