"""The regions panel in a real window: measuring objects."""

import numpy as np
import pandas as pd
from napari_helpers import (
    TIMEOUT,
    measure,
    objects,
    push,
    run_copied,
    save_all,
    settle,
)
from numpy.testing import assert_array_equal

import ecc_core as ecc
from napari_ecc import actions


def test_measured_objects_become_features(regions, qtbot, tmp_path, messages):
    image, labels = objects()
    viewer, panel, layer = regions(image, labels, scale=(2, 1))
    found = panel.model.regions
    curves = ecc.region_curves(image, labels, 32, superlevel=True)
    transforms = ecc.region_transforms(labels, 8, 16, spacing=(2, 1), normalize="radius")
    assert_array_equal(found.curves.values, curves.values)
    assert_array_equal(found.transforms.values, transforms.values)
    assert_array_equal(found.transforms.heights, transforms.heights)
    assert panel.model.status.startswith("6 objects")
    assert panel.object["selected"].native.placeholderText() == "click objects"

    names = ["index", "ecc_pc1", "ecc_pc2", "ect_pc1", "ect_pc2"]
    assert [*layer.features] == names  # Curves would fill the status bar.
    assert_array_equal(layer.features["index"], range(13))
    features = layer.features.dropna()
    assert_array_equal(features["index"], [2, 4, 6, 8, 10, 12])
    assert_array_equal(features["ecc_pc1"], found.components["curves"].scores[:, 0])

    copied = run_copied(viewer, panel)["table"]
    assert copied.shape == (6, 1 + 4 + 32 + 8 * 16)
    assert_array_equal(copied[names], features)
    last = f"ecc_t{curves.thresholds[-1]:.6g}"
    assert_array_equal(copied[last], curves.values[:, -1])
    files = [tmp_path / name for name in ("table.csv", "table.parquet", "plot.png")]
    save_all(panel.save, *files, messages=messages)
    assert_array_equal(pd.read_csv(tmp_path / "table.csv", comment="#")["label"], curves.labels)
    table = pd.read_parquet(tmp_path / "table.parquet")
    assert_array_equal(table.drop(columns="label"), copied.drop(columns="index"))

    panel.settings["superlevel"].value = "Dark ≤ t"
    panel.settings["n_thresholds"].value = 5
    assert "measure again" in panel.plot.state
    measure(qtbot, panel)
    expected = ecc.region_curves(image, labels, 5).values
    assert_array_equal(panel.model.regions.curves.values, expected)
    first = layer.features["ecc_pc1"].dropna()
    assert_array_equal(first, panel.model.regions.components["curves"].scores[:, 0])
    push(panel, "Undo")
    assert_array_equal(layer.features.dropna(), features)
    push(panel, "Undo")
    assert layer.features.shape[1] == 0


def test_betti_curves_and_functionals_of_objects(regions, qtbot):
    """Become columns, and the former are drawn for the selected object."""
    image, labels = objects()
    _, panel, _ = regions(image, labels, scale=(2, 1))
    panel.settings["with_betti"].value = True
    panel.settings["with_minkowski"].value = True
    measure(qtbot, panel)
    thresholds = panel.model.regions.curves.thresholds
    of_all = image, labels, thresholds
    expected = ecc.region_betti_curves(*of_all, superlevel=True)
    lengths = {"spacing": (2, 1), "estimator": "crofton-4"}
    perimeter = ecc.region_minkowski(*of_all, superlevel=True, **lengths).perimeter
    b0, b1 = expected.values[:, 0], expected.values[:, 1]
    table = panel.controller.table()
    found = {
        name: np.stack([table[f"{name}_t{t:.6g}"] for t in thresholds], axis=1)
        for name in ("b0", "b1", "perimeter")
    }
    np.testing.assert_equal(found, {"b0": b0, "b1": b1, "perimeter": perimeter})
    panel.model.selected = (6,)
    lines = {line.label: line.y for line in panel.plot.lines}
    assert_array_equal(lines["holes"], expected.select(6).values[1])
    panel.model.selected = (6, 8)
    assert "holes" not in [line.label for line in panel.plot.lines]
    panel.settings["with_betti"].value = False
    measure(qtbot, panel)
    names = [*panel.controller.table()]
    assert not [name for name in names if name.startswith("b")]
    assert f"area_t{thresholds[0]:.6g}" in names


def test_clear_messages(regions, qtbot, messages):
    image, labels = objects()
    viewer, panel, layer = regions(image, np.zeros_like(labels))
    assert panel.plot.state == "“labels” has no objects here."
    layer.data = labels[:20]
    push(panel, "Measure")
    assert "must have the shape of “image”, 40 × 60, got 20 × 60" in panel.work.text.text()  # noqa: RUF001
    layer.data = labels
    viewer.layers["image"].data = np.full((40, 60), np.nan)
    measure(qtbot, panel)
    assert "NaN" in panel.plot.state
    assert messages == []
    viewer.layers.remove("image")
    panel.controller.session.explorer.image = viewer.add_image(
        np.zeros((40, 60, 3), np.uint8), rgb=True
    )
    push(panel, "Measure")
    assert "RGB" in panel.work.text.text()
    viewer.layers.remove(layer)
    push(panel, "Measure")
    assert "Open or draw a Labels layer" in panel.work.text.text()


def test_cancelled_measurements_and_painting_meanwhile(open_panel, qtbot, gate):
    """The objects are those of the moment of the click, and said to have changed since."""
    image, labels = objects()
    began, go = gate("measuring")
    viewer, panel = open_panel("Objects", image.copy(), labels=labels.copy())
    picture, layer = viewer.layers
    for cancelled in (True, False):
        panel.controller.request()
        qtbot.waitUntil(began.is_set, timeout=TIMEOUT)
        if cancelled:
            panel.work.cancel.native.click()
        else:
            layer.brush_size = 20
            layer.paint((10, 10), 1_000_000_007)
            picture.data[:] = 0
        go.set()
        settle(qtbot, panel)
        if cancelled:
            assert panel.work.text.text() == "Cancelled: nothing has been measured."
            assert panel.model.regions is None
        began.clear()
        go.clear()
    found = panel.model.regions.curves
    assert_array_equal(found.labels, [2, 4, 6, 8, 10, 12])
    assert_array_equal(found.values, ecc.region_curves(image, labels, 32, superlevel=True).values)
    assert "measure again" in panel.plot.state


def test_objects_of_each_frame_are_kept(regions, qtbot):
    """Moving in time shows the objects of that frame; features have a row for each of them."""
    image, labels = objects()
    movie = np.stack([image, image[::-1], image])
    frames = np.stack([labels, np.where(labels < 9, labels, 0), np.zeros_like(labels)])
    viewer, panel, layer = regions(movie, frames, axis_labels=("t", "y", "x"))
    panel.form["scope"].value = "Slice"
    for frame in (0, 1):
        viewer.dims.set_current_step(0, frame)
        measure(qtbot, panel)
    panel.model.selected = (4, 8)
    panel.controller.classify()
    features = layer.features
    assert_array_equal(features["class"], [""] * 7 + ["A", "", "A"])
    assert_array_equal(features["frame"], [0] * 6 + [1] * 4)
    assert_array_equal(features["index"], [2, 4, 6, 8, 10, 12, 2, 4, 6, 8])
    assert "t = 1 / 2" in panel.subject.text()
    viewer.dims.set_current_step(0, 0)
    assert panel.model.status.startswith("6 objects")
    expected = ecc.region_curves(image, labels, 32, superlevel=True).values
    assert_array_equal(panel.model.regions.curves.values, expected)
    viewer.dims.set_current_step(0, 2)
    assert panel.model.regions is None
    assert "not been measured" in panel.work.text.text()
    viewer.dims.set_current_step(0, 1)
    measure(qtbot, panel)
    assert_array_equal(layer.features["frame"], features["frame"])


def test_shapes_without_an_image(open_panel, qtbot):
    _, labels = objects()
    viewer, panel = open_panel("Objects", labels=labels)
    layer = viewer.layers["labels"]
    measure(qtbot, panel)
    expected = ecc.region_transforms(labels, 8, 16, normalize="radius").values
    assert_array_equal(panel.model.regions.transforms.values, expected)
    assert [*layer.features] == ["index", "ect_pc1", "ect_pc2"]
    assert "Without an image" in panel.plot.state
    layer.features = layer.features.assign(area=range(13))
    panel.settings["with_betti"].value = panel.settings["with_minkowski"].value = True
    measure(qtbot, panel)
    measure(qtbot, panel)
    table = layer.features.dropna()
    assert_array_equal(table["area"], table["index"])
    assert_array_equal(table["area_shape"], np.unique(labels, return_counts=True)[1][1:])
    assert_array_equal(table["b0_shape"] - table["b1_shape"], np.ones(6))
    assert "perimeter_shape" in table
    assert_array_equal(actions.region_table(layer, betti=True)["b0_shape"], np.ones(6))
