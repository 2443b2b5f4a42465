"""What lasts: curves, counts and objects without noise, in the jobs and in the explorer."""

import itertools
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from napari_helpers import TIMEOUT, overlays, settle, smooth
from numpy.testing import assert_array_equal
from qtpy.QtCore import QPoint, Qt
from scipy.ndimage import binary_dilation, binary_fill_holes, generate_binary_structure, label
from scipy.stats import rankdata
from skimage.data import coins
from topology_helpers import alive, intervals

import ecc_core as ecc
from napari_ecc._controller import fields
from napari_ecc._controller.fields import Field, find_classes, find_objects
from napari_ecc._model.explorer import Tree
from napari_ecc._workers import result


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(23, 31), (9, 11, 10)])
@pytest.mark.parametrize("share", [0, 1 / 10, 1 / 3], ids=["all", "a tenth", "a third"])
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("full", [False, True])
def test_curves_and_numbers_of_what_lasts_are_those_of_gudhi(superlevel, full, share, shape, dtype):
    sign = -1 if superlevel else 1
    image = smooth(*shape, dtype=dtype, seed=len(shape))
    connectivity = image.ndim if full else 1
    sets = {"superlevel": superlevel, "connectivity": connectivity}
    levels = np.unique(image)[::7].astype(np.float64)
    classes = result(find_classes(Field(image, None), levels, **sets))
    parts = intervals(sign * image.astype(np.float64), connectivity)
    least = float(np.ptp(image)) * share
    values = alive(parts, sign * levels, least)
    assert_array_equal(classes.betti_curves(least).values, values)
    numbers = [classes.numbers(level, least) for level in levels]
    assert numbers == list(map(tuple, values.T))


def objects_of(image, threshold, least, superlevel, structure):
    """Components of a set, and the values at which they begin and meet an older one."""
    sign = 1 if superlevel else -1
    values = sign * image.astype(np.float64)
    number, count = label(values >= sign * threshold, structure)
    for k in range(1, count + 1):
        inside = number == k
        birth, death = values[inside].max(), -np.inf
        for level in np.unique(values[values < sign * threshold])[::-1]:
            around = label(values >= level, structure)[0]
            whole = around == around[inside][0]
            if values[whole].max() > birth:
                death = level
                break
        if birth - death >= least:
            yield inside, sign * birth, sign * death


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("connectivity", [1, 2])
def test_objects_are_the_components_that_last(superlevel, connectivity):
    """Found once more by looking at the components of every set."""
    noise = np.random.default_rng(3).random((20, 24))
    # Ranks have no ties.
    image = rankdata(smooth(20, 24, dtype=float) + 0.08 * noise).reshape(20, 24)
    image = image.astype(np.int16)
    structure = generate_binary_structure(2, connectivity)
    sets = {"superlevel": superlevel, "connectivity": connectivity}
    for threshold, least in itertools.product((150, 300), (0, 60)):
        expected = list(objects_of(image, threshold, least, superlevel, structure))
        assert expected
        found = result(find_objects(Field(image, None), threshold, least, **sets))
        assert len(found.table) == len(expected)
        for inside, birth, death in expected:
            number = found.labels[inside][0]
            assert_array_equal(found.labels == number, inside)
            row = found.table.iloc[number - 1]
            assert (row["index"], row["points"]) == (number, inside.sum())
            assert (row["birth"], row["death"]) == (birth, death)
            assert row["persistence"] == abs(death - birth)
            assert (row["merges_with"] == 0) == np.isinf(death)


@pytest.mark.parametrize("pairable", [True, False])
def test_small_objects_are_left_out(monkeypatch, pairable):
    """Labels and the table are those of the others, in the same order."""
    if not pairable:
        monkeypatch.setattr(fields, "PAIRED", {2: 0})
    image = np.zeros((9, 9), np.uint8)
    image[1:3, 1:3], image[1, 3] = 9, 5  # In this one object another one could end.
    image[5:8, 5:8], image[8, 0] = 7, 8
    found = result(find_objects(Field(image, None), 4, 0, superlevel=True, connectivity=1))
    assert found.of_size(1) is found
    large = found.of_size(2)
    _, *sizes = np.bincount(large.labels.ravel()).tolist()
    assert sorted(sizes) == [5, 9]
    for number in (1, 2):
        inside = large.labels == number
        assert np.unique(found.labels[inside]).size == 1
        assert (large.table is None) == (not pairable)
        if pairable:
            row = large.table.iloc[number - 1]
            assert (row["index"], row["points"]) == (number, inside.sum())
            assert row["birth"] == image[inside].max()
            assert row["merges_with"] in (0, 1)


def test_the_noise_of_coins_is_left_out(explorer, qtbot):
    """24 coins instead of 652 components, in the curve, the numbers and the labels."""
    viewer, panel = explorer(coins(), name="coins")
    panel.model.threshold = 179.0
    assert "652 components" in panel.readout.text()
    button = panel.offer_least["accept"]
    said = "24 components last at least 117; 628 do not"
    assert panel.lasting.text() == said
    bounds = panel.diagram._bounds  # The plot is drawn before its tab is opened.
    assert bounds[:2] == bounds[2:]
    assert button.text == "Count only what lasts"
    button.native.click()
    assert "24 components" in panel.readout.text()
    assert panel.lasting.text() == said
    assert button.text == "Count all again"
    button.native.click()
    assert "652 components" in panel.readout.text()
    assert panel.model.min_persistence == 0
    button.native.click()
    assert panel.plot.lines[-1].y[panel.model.curve.index_of(179)] == 24
    selected = set(viewer.layers.selection)
    assert not panel.actions["undo"].enabled
    panel.actions["make_labels"].native.click()
    settle(qtbot, panel)
    layer = viewer.layers[-1]
    inside = coins() >= 179
    every = label(inside, np.ones((3, 3)))[0]
    assert layer.data.max() == 24
    assert_array_equal(layer.features["index"], range(25))
    numbers = range(1, 25)
    wholes = []
    for number in numbers:
        own = np.bincount(every[(layer.data == number) & inside]).argmax()
        wholes.append(binary_fill_holes(every == own))  # None of its holes lasts.
    assert_array_equal([layer.data == number for number in numbers], wholes)
    births = [coins()[whole].max() for whole in wholes]
    assert layer.features["birth"][1:].tolist() == births
    assert layer.features["points"][1:].tolist() == [whole.sum() for whole in wholes]
    panel.actions["undo"].native.click()
    assert layer not in viewer.layers
    assert set(viewer.layers.selection) == selected
    assert not panel.actions["undo"].enabled


def two_hills():
    """Peaks of 200 and 150 that meet at 90, and noise of a level."""
    x = np.arange(41)
    first = 200 - 11 * np.abs(x - 10)
    second = 150 - 6 * np.abs(x - 30)
    heights = np.maximum(first, second).clip(10)
    image = np.tile(heights, (21, 1)) - 3 * np.abs(np.arange(21) - 10)[:, None]
    image[::4, ::4] += 1
    return image.clip(0).astype(np.uint8)


def is_outlined(viewer):
    return "chosen" in [layer.name for layer in overlays(viewer)]


def outlined(viewer):
    """Points of the outline of what is chosen."""
    (outline,) = [layer for layer in overlays(viewer) if layer.name == "chosen"]
    return np.argwhere(outline.data) + np.round(outline.translate).astype(int)


def assert_second_hill_is_outlined(viewer, inside):
    hill = label(inside, np.ones((3, 3)))[0]
    points = np.argwhere(hill == hill[10, 30])
    near = np.abs(points[:, None] - outlined(viewer)).sum(axis=2)
    assert (near.min(axis=0) == 1).all()


def test_jumps_and_the_object_under_the_mouse(explorer, qtbot):
    """The threshold at which two objects merge is found by a button, and by a double click."""
    image = two_hills()
    viewer, panel = explorer(image)
    model, probe = panel.model, panel.controller.probe
    model.min_persistence = 20.0
    counts = {t: label(image >= t)[1] for t in range(11, 152)}
    merge = max(t for t in range(11, 151) if counts[t] == 1 and counts[t + 1] != 1)
    model.threshold = 250.0
    panel.jumps["merge_below"].native.click()
    assert model.threshold == merge
    model.threshold = 5.0
    panel.jumps["merge_above"].native.click()
    assert model.threshold == merge
    panel.jumps["birth_above"].native.click()
    assert model.threshold == image[:, 20:].max()

    model.threshold = float(merge + 5)
    qtbot.waitUntil(lambda: not panel.controller.running, timeout=TIMEOUT)
    mouse = SimpleNamespace(position=(10.0, 30.0), modifiers=())
    probe._on_move(viewer, mouse)
    qtbot.waitUntil(lambda: bool(model.pointed), timeout=TIMEOUT)
    labels, _ = label(image >= merge + 5)
    points = np.count_nonzero(labels == labels[10, 30])
    born, older = image[:, 20:].max(), image.max()
    expected = f"{points} points, born at {born}, merges at {merge} with the one born at {older}"
    assert panel.object.text() == expected
    probe._on_double_click(viewer, mouse)
    assert model.threshold == merge
    assert panel.object.text() == ""


@pytest.mark.parametrize("superlevel", [False, True])
def test_no_line_of_a_merge_tree_crosses_a_bar(superlevel):
    """Trees are random; a bar that another merges with is met at its row."""
    rng = np.random.default_rng(5)
    for size in [1, 2, 3, 10, 40] * 4:
        births = np.sort(rng.choice(1000, size, replace=False)).astype(float)
        deaths, parents = np.full(size, np.inf), np.full(size, -1)
        for k in range(1, size):
            parents[k] = rng.integers(k)
        # A component dies after those that merge with it, and before its parent.
        for k in range(size - 1, 0, -1):
            latest = max([births[k], *deaths[parents == k]])
            deaths[k] = latest + 0.5 + rng.random()
        sign = -1 if superlevel else 1
        tree = Tree(sign * births, sign * deaths, parents + 1)
        assert sorted(tree.rows) == list(range(size))
        assert_array_equal(tree.parents, parents)
        for k in np.flatnonzero(parents >= 0):
            low, high = sorted(tree.rows[[k, parents[k]]])
            between = (low < tree.rows) & (tree.rows < high)
            assert not (between & (births < deaths[k]) & (deaths[k] < deaths)).any()


def test_the_diagram_and_the_merge_tree_outline_objects(explorer, qtbot):
    """Two hills, the lower of which meets the higher one at the saddle; a click outlines one.

    So does a click in the diagram.
    """
    image = two_hills()
    viewer, panel = explorer(image, show=True)
    panel.tabs.setCurrentWidget(panel.diagram)
    classes = panel.model.classes
    highest = image[:, 20:].max()
    second = int(np.flatnonzero(classes.births == highest)[0])
    assert "component, born at" in panel.diagram._texts[second]
    panel.diagram.chosen.emit((second,))
    settle(qtbot, panel)
    assert_second_hill_is_outlined(viewer, image >= panel.model.threshold)
    before, panel.model.threshold = panel.model.threshold, 5.0  # Both hills are one.
    settle(qtbot, panel)
    assert_second_hill_is_outlined(viewer, image > classes.deaths[second])
    panel.model.threshold = before

    components = np.flatnonzero((classes.dimensions == 0) & classes.alive(panel.model.threshold))
    panel.diagram.chosen.emit(tuple(components.tolist()))
    settle(qtbot, panel)
    inside = image >= panel.model.threshold
    assert_array_equal(outlined(viewer), np.argwhere(binary_dilation(inside) & ~inside))
    assert set(components) == set(panel.diagram.selected)
    panel.diagram.chosen.emit(())
    settle(qtbot, panel)
    qtbot.waitUntil(lambda: not is_outlined(viewer), timeout=TIMEOUT)

    panel.model.min_persistence = 20.0
    panel.tabs.setCurrentWidget(panel.tree)
    qtbot.waitUntil(lambda: panel.tree.tree.births.size == 2, timeout=TIMEOUT)
    tree = panel.tree.tree
    full = np.ones((3, 3))
    numbers = [label(image >= t, full)[0][10, [10, 30]] for t in range(256)]
    saddle = max(t for t, (first, second) in enumerate(numbers) if first == second > 0)
    assert tree.births.tolist() == [image.max(), image[:, 20:].max()]
    assert tree.deaths.tolist() == [-np.inf, saddle]
    assert tree.parents.tolist() == [-1, 0]

    x, y = panel.tree.pixels(float(tree.births[1]), float(tree.rows[1]))
    at = QPoint(int(x), int(y))
    qtbot.mouseClick(panel.tree.viewport(), Qt.MouseButton.LeftButton, pos=at)
    qtbot.waitUntil(lambda: is_outlined(viewer), timeout=TIMEOUT)
    assert_second_hill_is_outlined(viewer, image >= panel.model.threshold)

    panel.model.threshold = float(saddle)
    qtbot.waitUntil(lambda: panel.tree.tree.births.size == 1, timeout=TIMEOUT)
    panel.tabs.setCurrentWidget(panel.plot)
    assert panel.tree.empty


def test_large_images_have_no_pairs(explorer, qtbot, monkeypatch, messages):
    """What needs them cannot be used, and labels are those of all components, if large enough."""
    monkeypatch.setattr("napari_ecc._controller.fields.PAIRED", {2: 1000})
    image = smooth(40, 50)
    viewer, panel = explorer(image)
    assert panel.model.classes is None
    assert panel.model.counts is not None
    assert not panel.least.enabled
    said = "The image has 0.0 million points; births are found up to 0.0"
    assert panel.diagram.state.startswith(said)
    assert panel.diagram.state == panel.tree.state == panel.lasting.text()
    assert not panel.jumps["merge_above"].enabled
    panel.model.min_persistence = 100.0  # A settings file may set it.
    assert panel.model.counts is not None
    assert panel.least_value.value == 0
    assert "min_persistence" not in panel.controller.python_call()
    inside = image >= panel.model.threshold
    for least, expected in ((1, label(inside, np.ones((3, 3)))[0]), (10_000, np.zeros((40, 50)))):
        panel.model.min_size = least
        panel.controller.make_labels()
        settle(qtbot, panel)
        assert_array_equal(viewer.layers[-1].data, expected)
    assert not messages


def test_coins_up_to_half_of_their_heights(explorer, qtbot, messages):
    """The labels of the function, of what lasts, wherever the threshold is."""
    viewer, panel = explorer(coins(), name="coins")
    panel.settings["half_height"].value = "Half height"
    panel.model.threshold = 250.0
    panel.controller.make_labels()
    assert "how long objects must last" in messages[-1]
    panel.model.min_persistence = 117.0
    panel.controller.make_labels()
    settle(qtbot, panel)
    layer = viewer.layers[-1]
    found = ecc.persistent_regions(coins(), 117, superlevel=True, rel_height=0.5)
    assert layer.name == "coins half height"
    assert_array_equal(layer.data, found.labels)
    assert_array_equal(layer.features["points"][1:], np.bincount(found.labels.ravel())[1:])


def test_the_demo_counts_the_coins(make_napari_viewer, qtbot, monkeypatch):
    monkeypatch.setattr("napari.Viewer", lambda title: make_napari_viewer(title=title))
    folder = Path(__file__).parents[2] / "examples"
    demo = runpy.run_path(str(folder / "napari_demo.py"))
    panel = demo["open_demo"]()
    qtbot.waitUntil(lambda: panel.model.min_persistence > 0, timeout=TIMEOUT)
    assert "24 components" in panel.readout.text()
