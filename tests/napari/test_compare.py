"""Comparing curves of layers, frames and groups, in a real window and without one."""

import re

import numpy as np
import pandas as pd
import pytest
import zarr
from napari.layers import Image
from napari_helpers import run_copied, settle
from numpy.testing import assert_allclose, assert_array_equal
from qtpy.QtCore import QPoint, Qt
from scipy.ndimage import gaussian_filter
from skimage.measure import euler_number
from tifffile import imwrite

import ecc_core as ecc
from ecc_core.features import MixedUnitsError, align_curves, permutation_test
from ecc_core.io import CurveTable
from napari_ecc import actions
from napari_ecc._model.compare import compare_groups, joined
from napari_ecc._qt.canvas import symlog


def noise(seed, sigma):
    values = gaussian_filter(np.random.default_rng(seed).standard_normal((40, 40)), sigma)
    return (values / values.std() * 20 + 128).astype(np.uint8)


def click_on_the_curve(panel, name, qtbot):
    """Click where a curve is further from the others than anywhere else."""
    lines = {line.name: line for line in panel.plot.lines}
    places = lines[name].x
    heights = {key: symlog([line.value_at(x) for x in places]) for key, line in lines.items()}
    apart = [np.abs(own - heights[name]) for key, own in heights.items() if key != name]
    k = int(np.min(apart, axis=0).argmax())
    x, y = panel.plot.pixels(places[k], heights[name][k])
    qtbot.mouseClick(panel.plot.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(int(x), int(y)))


def test_groups_by_a_column():
    curves = {name: ecc.euler_curve(noise(k, 1.0), 16) for k, name in enumerate("abcd")}
    features = {"name": ["d", "c", "b", "e"], "dose": [2, 1, 2, 1]}
    found = compare_groups(curves, features=features, by="dose", n_permutations=9)
    assert found.groups == {"none": ["a"], "2": ["b", "d"], "1": ["c"]}
    found = compare_groups(curves, "2", features=features, by="dose", n_permutations=9)
    assert found.groups == {"other": ["a", "c"], "2": ["b", "d"]}
    with pytest.raises(ValueError, match="`by` must be a column of `features`, got 'drug'"):
        compare_groups(curves, features=features, by="drug")
    table = actions.curve_table(curves, features)
    assert list(table.columns[:2]) == ["name", "dose"]
    assert_array_equal(table["dose"], [np.nan, 2, 1, 2])
    assert_array_equal(table["maximum"], actions.curve_table(curves)["maximum"])
    with pytest.raises(ValueError, match="one of the columns"):
        actions.curve_table(curves, {"dose": [1]})
    with pytest.raises(ValueError, match="one row for each"):
        actions.curve_table(curves, {"name": ["a", "a"], "dose": [1, 2]})


def test_groups_are_compared_by_their_means():
    curves = {
        name: ecc.euler_curve(noise(seed, sigma), superlevel=True)
        for seed, (name, sigma) in enumerate(
            [(f"{kind} {k}", s) for kind, s in (("fine", 1.0), ("coarse", 3.0)) for k in range(5)]
        )
    }
    found = compare_groups(curves, r"(fine|coarse) \d", n_permutations=499)
    fine = [curve for name, curve in curves.items() if "fine" in name]
    coarse = [curve for name, curve in curves.items() if "coarse" in name]
    expected = permutation_test(fine, coarse, n_permutations=499, rng=0)
    assert found.test.pvalue == expected.pvalue < 0.05
    assert "fine (n = 5) and coarse (n = 5)" in found.in_words()
    _, result, where, note = found.in_words().splitlines()
    assert note.startswith("Valid if the curves are independent")
    assert result.startswith(f"p = {found.test.pvalue:.2g}")
    assert where.startswith("Thresholds that differ")
    assert found.difference_in_words == "fine \N{MINUS SIGN} coarse"
    first, last = found.test.differing()[0][0], found.test.differing()[-1][1]
    assert f"from {first:g} to {last:g}" in found.in_words()
    assert compare_groups(curves).test is None
    assert compare_groups(curves, ".+").in_words().startswith("10 groups. A test needs")
    kinds = ["fine"] * 5 + ["coarse"] * 2 + ["other"] * 3
    features = {"name": list(curves), "kind": kinds}
    third = compare_groups(curves, features=features, by="kind", n_permutations=99)
    assert third.test.units == (5, 2, 3)
    assert third.difference is None
    single = compare_groups(dict(list(curves.items())[:1]))
    assert_array_equal(single.bands["all"].mean, fine[0].values)


def test_units_are_averaged_and_permuted():
    """Cells of two wells per treatment: two curves a group, of which no p-value is below 1 / 3."""
    wells = ["A1", "A1", "A2", "A2", "A2", "B1", "B2", "B2"]
    curves = {f"cell {k}": ecc.euler_curve(noise(k, 1 + k // 5), 16) for k in range(8)}
    features = {"name": list(curves), "well": wells, "row": [well[0] for well in wells]}
    found = compare_groups(curves, features=features, by="row", unit="well", n_permutations=99)
    t = np.unique(np.concatenate([curve.thresholds for curve in curves.values()]))
    heights = pd.DataFrame(
        np.insert(curve.values, 0, 0)[np.searchsorted(curve.thresholds, t, "right")]
        for curve in curves.values()
    )
    means = heights.groupby(wells).mean().to_numpy()  # by the names of the wells
    expected = permutation_test((t, means[:2]), (t, means[2:]))
    assert found.test.units == (2, 2)
    assert found.test.pvalue == expected.pvalue
    assert found.test.statistic == pytest.approx(expected.statistic)
    assert_allclose(found.difference[1], np.mean(means[:2], axis=0) - np.mean(means[2:], axis=0))
    own = found.bands["A"]
    expected = np.mean(means[:2], axis=0)[np.searchsorted(t, own.thresholds)]
    assert_allclose(own.mean, expected)
    assert "A (well = 2) and B (well = 2)" in found.in_words()
    assert "independent" not in found.in_words()
    single = compare_groups(curves, features=features, by="well", unit="well")
    assert single.test is None
    assert_allclose(single.bands["B2"].lower, single.bands["B2"].mean)
    with pytest.raises(ValueError, match="each unit in one group"):
        compare_groups(curves, "(cell) [0-3]", features=features, unit="well")


def test_curves_that_differ_are_not_compared():
    closed, periodic = (
        ecc.euler_curve(noise(0, 1.0), 16, boundary=b) for b in ("closed", "periodic")
    )
    curves = {"closed": closed, "superlevel": periodic}
    for pattern in ("", "closed|super", ".*"):  # one group, two, and one of each
        with pytest.raises(ValueError, match=r"agree in `boundary`.* 'periodic' in `superlevel`"):
            compare_groups(curves, pattern)


def test_actions_without_a_window():
    layers = [Image(noise(k, 1.5), name=f"image {k}") for k in range(3)]
    curves = actions.layer_curves(layers, thresholds=32, superlevel=False)
    expected = ecc.euler_curve(layers[1].data, curves["image 1"].thresholds)
    assert_array_equal(curves["image 1"].values, expected.values)
    assert not curves["image 1"].superlevel
    table = actions.curve_table(curves)
    assert list(table["name"]) == ["image 0", "image 1", "image 2"]
    assert_array_equal(table["maximum"], [curve.values.max() for curve in curves.values()])
    movie = Image(np.stack([layer.data for layer in layers]), name="movie")
    frames = actions.all_frames(movie, part=np.s_[0, :, :])
    expected = ecc.euler_curve(layers[2].data, frames["movie axis 0 2"].thresholds, superlevel=True)
    assert_array_equal(frames["movie axis 0 2"].values, expected.values)
    with pytest.raises(ValueError, match="one of `threshold` and `slope`"):
        actions.layer_transform(layers[0])


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


def test_rows_with_equal_texts_are_joined():
    """As the command joins tables, in which numbers may be stored as texts."""
    table = pd.DataFrame({"name": ["b", "a"], "index": [1, 0]})
    rows = joined(table, {"index": ["0", "1"], "drug": ["none", "taxol"]})
    assert rows["drug"].tolist() == ["taxol", "none"]


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
    assert len({line.colour for line in panel.plot.lines}) == 2  # by group
    panel.form["by"].value = "name"
    settle(qtbot, panel)
    colours = [line.colour for line in panel.plot.lines]
    assert len(set(colours)) == 4  # by frame
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
    for name, image in images.items():
        curve = panel.model.curves[name]
        expected = [euler_number(image >= t, 2) for t in curve.thresholds[::50]]
        assert_array_equal(curve.values[::50], expected)
    assert not panel.empty.native.isVisibleTo(panel)  # the sample is for those without curves
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
    assert not panel.table.native.isVisibleTo(panel)  # an empty table says nothing
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
    viewer.add_image(np.stack([noise(k, 1.0) for k in range(3)]), name="movie")
    for clears in (False, True):
        panel.sources["frames"].native.click()
        panel.work.cancel.native.click()
        if clears:
            panel.others["clear"].native.click()
        assert panel.work.resume.native.isVisibleTo(panel) != clears
        panel.work.resume.native.click()
        settle(qtbot, panel)
        assert len(panel.model.curves) == (0 if clears else 3)


def test_the_smoothing_of_a_file_follows_its_spacing(tmp_path):
    """Twice as far in Z: half the standard deviation in points."""
    volume = np.random.default_rng(0).random((6, 9, 8), np.float32)
    options = {"imagej": True, "resolution": (1, 1), "metadata": {"spacing": 2.0, "axes": "ZYX"}}
    imwrite(tmp_path / "volume.tif", volume, **options)
    (curve,) = actions.folder_curves(tmp_path, smoothing=1.0, thresholds=20).values()
    smoothed = gaussian_filter(volume, (0.5, 1.0, 1.0))
    expected = [euler_number(smoothed >= t, 3) for t in curve.thresholds]
    assert_array_equal(curve.values, expected)


def of_wells(*channels):
    """A curve of each channel of eight wells, and what is known of them."""
    places = [(well, channel) for well in [*"abcdefgh"] for channel in channels]
    curves = {
        f"{well} {at}": ecc.euler_curve(noise(k, 1.0), 16) for k, (well, at) in enumerate(places)
    }
    wells = [well for well, _ in places]
    features = {"name": list(curves), "well": wells, "channel": [at for _, at in places]}
    return curves, {**features, "drug": ["y" if well > "d" else "x" for well in wells]}


@pytest.mark.parametrize("unit", ["well", ""])
def test_channels_are_no_replicates(unit):
    """The message is that of the library; one channel, or the average, is compared."""
    curves, features = of_wells("DAPI", "GFP")
    options = {"features": features, "by": "drug", "unit": unit, "n_permutations": 99}
    tables = [
        CurveTable(align_curves([curves[name] for name in rows["name"]]), rows)
        for _, rows in pd.DataFrame(features).groupby("drug")
    ]
    units = tuple(table.metadata["well"].tolist() for table in tables) if unit else None
    with pytest.raises(MixedUnitsError) as refused:
        permutation_test(*tables, units=units)
    start = str(refused.value).partition(": choose")[0]
    with pytest.raises(ValueError, match=re.escape(start)) as error:
        compare_groups(curves, **options)
    assert 'choose one, such as `where="channel=DAPI"`, or give `average="channel"`' in str(
        error.value
    )

    alone = {name: curve for name, curve in curves.items() if "DAPI" in name}
    expected = compare_groups(alone, **options)
    found = compare_groups(curves, where="channel=DAPI", **options)
    assert found.sizes == expected.sizes == (4, 4)
    assert found.test.pvalue == expected.test.pvalue
    averaged = compare_groups(curves, average="channel", **options)
    assert averaged.sizes == ((4, 4) if unit else (8, 8))
    with pytest.raises(ValueError, match="no replicates"):  # bands of one group, too
        compare_groups(curves, features=features, by="well", unit="well")


def test_the_dock_offers_what_to_do_about_frames(open_panel, qtbot):
    """Time points are shown but not compared, unless one is chosen or all are averaged."""
    movie = np.stack([noise(k, 1.0) for k in range(4)])
    viewer, panel = open_panel("Compare", movie, name="movie")
    panel.sources["frames"].native.click()
    settle(qtbot, panel)
    assert "no replicates" not in panel.model.status  # nothing is compared
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
