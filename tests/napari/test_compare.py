"""Comparing curves of layers, frames and groups, in a real window and without one."""

import numpy as np
import pandas as pd
import zarr
from napari_helpers import noise, run_copied, settle
from numpy.testing import assert_array_equal
from qtpy.QtCore import QPoint, Qt
from skimage.measure import euler_number
from tifffile import imwrite

import ecc_core as ecc
from napari_ecc._qt.canvas import symlog


def curve_by_scikit_image(image, thresholds):
    """Euler numbers of the superlevel sets."""
    return [euler_number(image >= t, 2) for t in thresholds]


def click_on_the_curve(panel, name, qtbot):
    """Click where a curve is further from the others than anywhere else."""
    lines = {line.name: line for line in panel.plot.lines}
    places = lines[name].x
    values = {key: [line.value_at(x) for x in places] for key, line in lines.items()}
    heights = {key: symlog(of_line) for key, of_line in values.items()}
    apart = [np.abs(own - heights[name]) for key, own in heights.items() if key != name]
    k = int(np.min(apart, axis=0).argmax())
    x, y = panel.plot.pixels(places[k], heights[name][k])
    qtbot.mouseClick(panel.plot.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(int(x), int(y)))


def test_comparison_in_the_dock(make_napari_viewer_proxy, open_panel, explorer, qtbot, tmp_path):
    viewer = make_napari_viewer_proxy()
    for seed in range(8):
        viewer.add_image(noise(seed, 1 + seed // 4), name=f"{'ab'[seed // 4]} {seed}")
    _, panel = open_panel("Compare", viewer=viewer)
    assert "Add selected layers" in panel.work.text.text()
    panel.sources["layers"].native.click()
    settle(qtbot, panel)
    assert list(panel.model.curves) == [layer.name for layer in viewer.layers]
    assert len(panel.plot.lines) == 8
    panel.form["pattern"].value = "a|b"
    settle(qtbot, panel)
    assert "p = " in panel.work.text.text()
    assert "Valid if the curves are independent" in panel.work.text.text()
    assert "n = 4" in panel.plot.lines[0].label
    panel.form["view"].value = "Means and bands"
    assert [line.to is None for line in panel.plot.lines] == [True, False] * 2
    band, own = panel.plot.lines[1], panel.model.comparison.bands["a"]
    assert_array_equal(band.outline()[[0, -1], 1], [own.lower[1], own.upper[1]])
    panel.form["view"].value = "Difference"
    assert panel.plot.lines[0].label == "a \N{MINUS SIGN} b"
    line = panel.plot.lines[0]
    assert_array_equal(line.y, panel.model.comparison.difference[1])
    assert panel.table.shape[0] == 8

    assert panel.plot.lines[-1].label == "p ≤ 0.05, corrected"
    marked = ~np.isnan(panel.plot.lines[-1].y)
    assert_array_equal(marked, panel.model.comparison.test.pvalues <= 0.05)
    panel.form["view"].value = "Curves"
    click_on_the_curve(panel, "b 4", qtbot)
    assert {index.row() for index in panel.table.native.selectedIndexes()} == {4}
    assert panel.plot.lines[-1].label == "b 4"
    assert_array_equal(panel.plot.lines[-1].y, panel.model.curves["b 4"].values)
    panel.form["view"].value = "Difference"

    panel.save_curves(str(tmp_path / "curves.csv"))
    table = pd.read_csv(tmp_path / "curves.csv", comment="#")
    assert set(table["group"]) == {"a", "b"}
    chosen = table[table["name"] == "b 4"]
    assert_array_equal(chosen["euler_number"], panel.model.curves["b 4"].values)
    assert "# result: a (n = 4) and b (n = 4)" in (tmp_path / "curves.csv").read_text()
    panel.save_table(str(tmp_path / "table.parquet"))
    assert len(pd.read_parquet(tmp_path / "table.parquet")) == 8
    names = run_copied(viewer, panel)
    assert names["comparison"].test.pvalue == panel.model.comparison.test.pvalue
    assert list(names["all_curves"]) == list(panel.model.curves)

    panel.others["clear"].native.click()
    assert panel.model.curves == {}
    panel.others["pin"].native.click()
    assert "shows no complete curve" in panel.work.text.text()
    _, threshold = explorer(viewer=viewer)
    panel.others["pin"].native.click()
    settle(qtbot, panel)
    (curve,) = panel.model.curves.values()
    assert_array_equal(curve.values, threshold.model.curve.values)
    panel.form["pattern"].value = "("
    settle(qtbot, panel)
    assert "cannot be compared" in panel.work.text.text()


def test_frames_and_objects_by_their_features(open_panel, qtbot, tmp_path, messages):
    """A table joined to frames, and the class of objects, make groups."""
    movie = np.stack([noise(k, 1.0) for k in range(4)])
    viewer, panel = open_panel("Compare", movie, name="movie")
    panel.sources["frames"].native.click()
    settle(qtbot, panel)
    pd.DataFrame({"frame": range(4), "phase": [*"xyxy"]}).to_csv(tmp_path / "phases.csv")
    panel.join(str(tmp_path / "phases.csv"))
    settle(qtbot, panel)
    assert panel.form["by"].value == "phase"
    assert len({line.colour for line in panel.plot.lines}) == 2  # The colour says the group.
    panel.form["by"].value = "name"
    settle(qtbot, panel)
    colours = [line.colour for line in panel.plot.lines]
    assert len(set(colours)) == 4  # The colour says the frame.
    panel.form["by"].value = "phase"
    settle(qtbot, panel)
    groups = panel.model.comparison.groups
    assert groups == {p: [f"movie axis 0 {k}" for k in (i, i + 2)] for i, p in enumerate("xy")}
    panel.save_table(str(tmp_path / "table.csv"))
    assert list(pd.read_csv(tmp_path / "table.csv", comment="#")["phase"]) == [*"xyxy"]
    panel.join(str(tmp_path / "table.csv"))
    panel.join(str(tmp_path / "nothing.csv"))
    assert "nothing.csv" in messages[-1]

    panel.others["clear"].native.click()
    panel.sources["objects"].native.click()
    assert "Measure objects" in panel.work.text.text()
    labels = viewer.add_labels(np.arange(1600).reshape(40, 40) // 400 + 1, name="cells")
    _, regions = open_panel("Objects", viewer=viewer)
    regions.model.scope = "slice"
    regions.controller.request()
    settle(qtbot, regions)
    regions.model.selected = (2, 3)
    regions.controller.classify()
    panel.sources["objects"].native.click()
    panel.form["by"].value = "class"
    settle(qtbot, panel)
    expected = {"none": ["cells 1", "cells 4"], "A": ["cells 2", "cells 3"]}
    assert panel.model.comparison.groups == expected
    expected = ecc.region_curves(movie[0], labels.data, 32, superlevel=True)
    assert_array_equal(panel.model.curves["cells 3"].values, expected.select(3).values)
    names = run_copied(viewer, panel)
    assert names["comparison"].groups == panel.model.comparison.groups
    assert names["comparison"].test.pvalue == panel.model.comparison.test.pvalue


def test_a_folder_of_files(open_panel, qtbot, tmp_path):
    """Images of several formats in folders; what cannot be read is named, the rest is compared."""
    folder = tmp_path / "plate"
    for kind in ("control", "drug"):
        (folder / kind).mkdir(parents=True)
    images = {f"control/{k}.tif": noise(k, 1.0) for k in range(2)}
    images |= {f"drug/{k}.npy": noise(k, 2.0).astype(float) for k in range(2)}
    for name, image in images.items():
        (imwrite if name.endswith("tif") else np.save)(folder / name, image)
    images["other.zarr"] = noise(5, 1.0)
    zarr.save_array(folder / "other.zarr", images["other.zarr"])
    imwrite(folder / "control" / "colours.tif", np.zeros((4, 5, 3), np.uint8), photometric="rgb")
    (folder / "drug" / "damaged.png").write_bytes(b"no image")
    (folder / "notes.txt").write_text("no image either")
    viewer, panel = open_panel("Compare")
    panel.controller.add_folder(str(folder / "control" / "nothing"))
    assert "no image in" in panel.work.text.text()
    panel.controller.add_folder(str(folder))
    settle(qtbot, panel)
    assert list(panel.model.curves) == [*images]
    status = panel.work.text.text()
    assert "2 of 7 images failed" in status
    assert "control/colours.tif: must have the axes Z, Y and X alone, got YXS (4, 5, 3)" in status
    assert "drug/damaged.png" in status
    curves = [panel.model.curves[name] for name in images]
    some = [curve.thresholds[::50] for curve in curves]
    expected = list(map(curve_by_scikit_image, images.values(), some))
    assert [curve.values[::50].tolist() for curve in curves] == expected
    assert not panel.empty.native.isVisibleTo(panel)  # The sample is for those without curves.
    stems = [name.partition(".")[0] for name in images]
    pd.DataFrame({"name": stems, "well": [*"aabbc"]}).to_csv(tmp_path / "wells.csv", index=False)
    panel.join(str(tmp_path / "wells.csv"))
    assert panel.model.table["well"].tolist() == [*"aabbc"]
    panel.form["by"].value = "folder"
    settle(qtbot, panel)
    groups = panel.model.comparison.groups
    assert groups == {"control": [*images][:2], "drug": [*images][2:4], ".": ["other.zarr"]}
    panel.save_table(str(tmp_path / "table.csv"))
    assert len(pd.read_csv(tmp_path / "table.csv", comment="#")) == 5

    (folder / "control" / "colours.tif").unlink()
    (folder / "drug" / "damaged.png").unlink()
    names = run_copied(viewer, panel)
    assert names["comparison"].groups == groups


def test_joined_columns_survive_adding(open_panel, qtbot, tmp_path, messages):
    """Wells that were joined stay the units of curves that are added again, and *Clear* works."""
    layers = [noise(k, 1.0) for k in range(8)]
    viewer, panel = open_panel("Compare")
    for k, image in enumerate(layers):
        viewer.add_image(image, name=f"image {k}")
    assert not panel.table.native.isVisibleTo(panel)  # An empty table says nothing.
    panel.sources["layers"].native.click()
    settle(qtbot, panel)
    assert panel.table.native.isVisibleTo(panel)
    names = [f"image {k}" for k in range(8)]
    pd.DataFrame({"layer": ["picture 1"], "well": ["a"]}).to_csv(tmp_path / "others.csv")
    panel.join(str(tmp_path / "others.csv"))
    assert messages[-1].startswith("others.csv has no row for any of the curves, such as 'image 0'")
    wells, drugs = [*"aabbccdd"], [*"xxxxyyyy"]
    table = pd.DataFrame({"layer": names, "well": wells, "drug": drugs})
    table.to_csv(tmp_path / "wells.csv", index=False)
    panel.join(str(tmp_path / "wells.csv"))
    assert panel.model.by == "drug"
    panel.form["unit"].value = "well"
    panel.sources["layers"].native.click()
    settle(qtbot, panel)
    assert list(panel.model.table["well"]) == wells
    assert panel.model.comparison.test.units == (2, 2)
    labels = [line.label for line in panel.plot.lines if line.label]
    assert labels == ["x (well = 2)", "y (well = 2)"]
    panel.others["clear"].native.click()
    settle(qtbot, panel)
    assert panel.model.curves == {}
    assert (panel.model.by, panel.model.unit) == ("", "")


def test_cleared_curves_are_not_resumed(open_panel, qtbot):
    """*Resume* computes what was cancelled; *Clear* forgets it, and hides the button."""
    viewer, panel = open_panel("Compare")
    frames = [noise(k, 1.0) for k in range(3)]
    viewer.add_image(np.stack(frames), name="movie")
    for clears in (False, True):
        panel.sources["frames"].native.click()
        panel.work.cancel.native.click()
        if clears:
            panel.others["clear"].native.click()
        assert panel.work.resume.native.isVisibleTo(panel) != clears
        panel.work.resume.native.click()
        settle(qtbot, panel)
        assert len(panel.model.curves) == (0 if clears else 3)


def test_the_dock_offers_what_to_do_about_frames(open_panel, qtbot):
    """Time points are shown but not compared, unless one is chosen or all are averaged."""
    movie = np.stack([noise(k, 1.0) for k in range(4)])
    viewer, panel = open_panel("Compare", movie, name="movie")
    panel.sources["frames"].native.click()
    settle(qtbot, panel)
    assert "no replicates" not in panel.model.status  # Nothing is compared.
    panel.form["pattern"].value = "0 (?=[01])"
    settle(qtbot, panel)
    text = "Curves of a group differ in frame (0, 1), which are no replicates"
    assert text in panel.work.text.text()
    assert not panel.plot.empty
    panel.form["view"].value = "Means and bands"
    assert text in panel.plot.state
    offers = panel.choices["choose"], panel.choices["average"]
    assert [button.text for button in offers] == ["Only frame=0", "Average frame"]
    assert panel.plot.empty
    offers[1].native.click()
    settle(qtbot, panel)
    assert panel.model.comparison.test.units == (2, 2)
    assert not panel.choices.visible
    panel.others["clear"].native.click()
    panel.sources["frames"].native.click()
    settle(qtbot, panel)
    panel.form["pattern"].value = "0 (?=[01])"
    settle(qtbot, panel)
    offers[0].native.click()
    settle(qtbot, panel)
    assert panel.form["where"].value == "frame=0"
    assert panel.model.comparison.groups == {"0 ": ["movie axis 0 0"]}
    names = run_copied(viewer, panel)
    assert names["comparison"].groups == panel.model.comparison.groups
