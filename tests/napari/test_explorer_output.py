"""What leaves the explorer: files, code that gives the same curve, commands of the palette."""

import dask.array as da
import pandas as pd
import pyarrow.parquet as parquet
import pytest
from napari_helpers import TIMEOUT, run_copied, settle, smooth
from numpy.testing import assert_array_equal
from qtpy.QtGui import QImage
from qtpy.QtWidgets import QApplication, QFileDialog

from napari_ecc import _commands


def test_tables_and_pictures(explorer, tmp_path, messages, monkeypatch):
    """Both say how their numbers were computed."""
    _, panel = explorer(smooth(30, 40), name="cells", units=("um", "um"))
    curve, betti = panel.model.curve, panel.model.betti
    panel.save(str(tmp_path / "curve"))
    lines = (tmp_path / "curve.csv").read_text().splitlines()
    assert lines[1] == "# layer: cells"
    facts = {"# part: whole image", "# unit of lengths: micrometer", "# state: complete"}
    assert facts <= set(lines)
    assert "# code:     viewer.layers['cells']," in lines
    table = pd.read_csv(tmp_path / "curve.csv", comment="#")
    assert_array_equal(table["threshold"], curve.thresholds)
    assert_array_equal(table["euler_number"], curve.values)
    assert table["complete"].all()
    assert_array_equal(table[["b0", "b1"]].T, betti.values)
    panel.save(str(tmp_path / "curve.parquet"))
    assert b'"layer": "cells"' in parquet.read_schema(tmp_path / "curve.parquet").metadata[b"ecc"]
    assert_array_equal(pd.read_parquet(tmp_path / "curve.parquet"), table)
    panel.save(str(tmp_path / "curve.svg"))
    drawing = (tmp_path / "curve.svg").read_text()
    assert "<polyline" in drawing
    assert "Euler characteristic" in drawing
    assert "layer: cells" in drawing
    panel.save(str(tmp_path / "curve.png"))
    picture = QImage(str(tmp_path / "curve.png"))
    assert picture.width() > 1000
    assert picture.text("layer") == "cells"
    assert picture.pixelColor(2, 2).name() == "#ffffff"
    assert [m for m in messages if not m.startswith("Saved")] == []
    panel.save(str(tmp_path / "missing" / "curve.csv"))
    assert "missing" in messages[-1]
    panel.save(str(tmp_path / "missing" / "curve.png"))
    assert "cannot be written" in messages[-1]

    chosen = (str(tmp_path / "asked"), "Parquet table (*.parquet)")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: chosen)
    panel.save.ask()
    assert (tmp_path / "asked.parquet").exists()


@pytest.mark.parametrize(
    "case",
    [
        *("volume", "smoothed", "labels", "shapes"),
        *(pytest.param(case, marks=pytest.mark.slow) for case in ("plane", "dask")),
    ],
)
def test_copied_python_gives_the_curve(explorer, qtbot, messages, case):
    """The code on the clipboard runs as it is, and gives exactly the curve on the screen."""
    image = smooth(6, 30, 40)
    data = da.from_array(image, chunks=10) if case == "dask" else image
    viewer, panel = explorer(data, name="it's", scale=(2, 1, 1))
    model = panel.model
    model.superlevel = case != "volume"
    model.connectivity = 1 if case == "volume" else None
    model.scope = "slice" if case in ("plane", "shapes") else "volume"
    model.sigma = 1.2 if case == "smoothed" else 0.0
    model.show_betti = case in ("plane", "labels")
    if case == "labels":
        viewer.add_labels((image > 20).astype(int), name="region", scale=(2, 1, 1))
    if case == "shapes":
        shapes = viewer.add_shapes(name="region")
        shapes.add_rectangles([[4, 5], [4, 25], [20, 25], [20, 5]])
        shapes.add_ellipses([[6, 20], [6, 35], [28, 35], [28, 20]])
    model.roi = "region" if "region" in viewer.layers else ""
    settle(qtbot, panel)
    assert model.curve.stage == "complete"
    names = run_copied(viewer, panel)
    assert_array_equal(names["t"], model.curve.thresholds)
    assert_array_equal(names["chi"], model.curve.values)
    if model.show_betti:
        assert_array_equal(names["betti"], model.betti.values)
    assert "Copied" in messages[-1]


def test_commands_of_the_palette(make_napari_viewer, qtbot, messages):
    """They open the explorer where it is not open, and do what their buttons do."""
    viewer = make_napari_viewer()
    viewer.add_image(smooth(30, 40), name="image")
    _commands.next_merge(viewer)
    controller = _commands._explorer(viewer)
    assert _commands._explorer(viewer) is controller
    qtbot.waitUntil(lambda: not controller.running, timeout=TIMEOUT)
    controller.model.threshold = before = float(controller.model.curve.thresholds[0])
    _commands.next_birth(viewer)
    assert controller.model.threshold > before
    _commands.next_merge(viewer)
    _commands.toggle_changes(viewer)
    assert controller.model.show_changes
    qtbot.waitUntil(lambda: not controller.running, timeout=TIMEOUT)
    _commands.make_labels(viewer)
    qtbot.waitUntil(lambda: not controller.running, timeout=TIMEOUT)
    labels = viewer.layers[-1]
    assert "image ≥" in labels.name
    _commands.undo(viewer)
    assert labels not in viewer.layers
    _commands.copy_python(viewer)
    assert "actions.layer_curve(" in QApplication.clipboard().text()


def test_settings_are_kept_with_the_layer(explorer, qtbot):
    """They survive another image, and closing the dock."""
    viewer, panel = explorer(smooth(30, 40), smooth(30, 40)[::-1].copy(), name="image")
    model = panel.model
    model.image = "image"
    settle(qtbot, panel)
    model.superlevel, model.bins = False, 33
    settle(qtbot, panel)
    model.threshold, model.min_persistence = 17.0, 3.0
    model.image = "image [1]"
    settle(qtbot, panel)
    assert model.min_persistence == 0
    assert model.threshold != 17
    viewer.window.remove_dock_widget(panel)
    _, again = viewer.window.add_plugin_dock_widget("napari-ecc", "Threshold")
    again.model.image = "image"
    settle(qtbot, again)
    kept = again.model
    assert (kept.superlevel, kept.bins) == (False, 33)
    assert (kept.threshold, kept.min_persistence) == (17, 3)
