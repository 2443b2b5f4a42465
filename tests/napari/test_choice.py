"""What is chosen in the diagram or in the merge tree is outlined, counted and labelled."""

import numpy as np
import pytest
from napari_helpers import TIMEOUT, overlays, settle
from numpy.testing import assert_array_equal
from qtpy.QtCore import Qt
from scipy.ndimage import binary_fill_holes, label
from skimage.data import coins

from napari_ecc._controller.choice import find_chosen
from napari_ecc._controller.fields import Field, find_classes
from napari_ecc._workers import result


@pytest.mark.parametrize(
    ("connectivity", "shape"),
    [(None, (23, 26)), (1, (9, 11, 10))],
)
def test_labels_of_classes(connectivity, shape):
    """Each class that the set has is one of its components, or one of those of its complement."""
    image = np.random.default_rng(0).random(shape, np.float32)
    sets, ndim = {"superlevel": True, "connectivity": connectivity}, len(shape)
    field = Field(image, None)
    classes = result(find_classes(field, np.arange(256.0), **sets))
    threshold = float(np.quantile(image, 0.6))
    found = result(find_chosen(field, classes, range(classes.births.size), threshold, **sets))
    table, inside = found.table, image >= threshold
    own = np.ones((3,) * ndim) if connectivity is None else None
    other = None if connectivity is None else np.ones((3,) * ndim)
    components, count = label(inside, own)
    outside, beyond = label(np.pad(~inside, 1, constant_values=True), other)
    outside = outside[(slice(1, -1),) * ndim]
    kinds = table["kind"].tolist()
    assert kinds.count("component") == count
    assert kinds.count("hole" if ndim == 2 else "cavity") == beyond - 1
    assert ("tunnel" in kinds) == (ndim == 3)
    assert_array_equal(table["points"], np.bincount(found.labels.ravel())[1:])
    tunnels = table["index"][table["kind"] == "tunnel"]
    for number, kind in zip(table["index"], kinds, strict=True):
        where = found.labels == number
        if kind == "tunnel":
            assert where.sum() <= 2
        elif where.any():
            whole = components if kind == "component" else outside
            (own_number,) = np.unique(whole[where])
            among = found.labels[whole == own_number]
            assert np.isin(among, [number, *tunnels]).all()
    through = classes.alive(threshold) & (classes.dimensions > 0) & (classes.dimensions < ndim - 1)
    for points in (classes.birth_points[through], classes.death_points[through]):
        labelled = found.labels[tuple(points[(points >= 0).all(axis=1)].T)]
        assert np.isin(labelled, tunnels).all()


def four_by_lasso(panel, counted, drag_mouse):
    """Draw a lasso around the first four of some classes; return which of these are chosen."""
    at = panel.diagram.positions()
    x, y = at[counted].T
    low = (x.min() - 3, y.min() - 3)
    high = (np.sort(x)[4] - 0.5, y.max() + 3)
    drag_mouse(panel.diagram, low, (high[0], low[1]), high, (low[0], high[1]), low)
    inside = ((at > low) & (at < high)).all(axis=1)
    chosen = panel.model.chosen
    assert set(chosen) == set(np.flatnonzero(inside).tolist())
    lassoed = tuple(k for k in chosen if k in counted)
    assert len(lassoed) == 4
    return lassoed


def click_bar(panel, number, drag_mouse):
    """Click the bar of a class in the merge tree, with Ctrl."""
    born = panel.model.classes.born_at(panel.controller.details.objects.birth_points)
    bar = int(np.flatnonzero(born == number)[0])
    tree = panel.tree.tree
    place = panel.tree.pixels(float(tree.births[bar]), float(tree.rows[bar]))
    drag_mouse(panel.tree, place, modifiers=Qt.KeyboardModifier.ControlModifier)


def test_five_coins_become_labels(explorer, qtbot, drag_mouse, messages):
    """A lasso in the diagram, and Ctrl in the merge tree, choose coins and two holes."""
    viewer, panel = explorer(coins(), name="coins", show=True)
    model = panel.model
    qtbot.waitUntil(lambda: model.classes is not None, timeout=TIMEOUT)
    panel.offer_least["accept"].native.click()
    panel.tabs.setCurrentWidget(panel.diagram)
    settle(qtbot, panel)
    classes = model.classes
    last = classes.lasting(model.least)
    counted = np.flatnonzero(classes.alive(model.threshold, model.least))
    counted = counted[
        (classes.dimensions[last][counted] == 0) & np.isfinite(classes.persistence[counted])
    ]
    lassoed = four_by_lasso(panel, counted, drag_mouse)
    model.chosen = lassoed
    assert "4 chosen; in this set 4 components" in panel.object.text()
    panel.tabs.setCurrentWidget(panel.tree)
    settle(qtbot, panel)
    fifth = next(k for k in counted if k not in lassoed)
    click_bar(panel, fifth, drag_mouse)
    assert set(model.chosen) == {*lassoed, fifth}
    assert len(panel.tree.selected) == 5
    panel.tabs.setCurrentWidget(panel.diagram)
    assert set(panel.diagram.selected) == set(model.chosen)
    assert panel.diagram._head.toPlainText().split() == ["●", "components", "●", "holes"]
    assert panel.actions["make_labels"].text == "Label chosen"
    panel.actions["make_labels"].native.click()
    settle(qtbot, panel)
    layer = viewer.layers[-1]
    assert layer.name == "coins ≥ 128, 5 chosen"
    every = label(coins() >= 128, np.ones((3, 3)))[0]
    wanted = every[tuple(classes.birth_points[list(model.chosen)].T)]
    # Holes of noise, of which none of these lasts, are filled.
    assert_array_equal(layer.data > 0, binary_fill_holes(np.isin(every, wanted)))
    outline = viewer.layers["chosen"]
    points = np.argwhere(outline.data) + outline.translate.astype(int)
    assert len(points) > 300
    # Holes of noise have no outline either.
    assert not binary_fill_holes(layer.data > 0)[tuple(points.T)].any()
    assert sorted(layer.features["birth"][1:]) == sorted(classes.births[list(model.chosen)])
    assert set(layer.features["kind"][1:]) == {"component"}
    assert "5 labels in" in model.status
    panel.actions["undo"].native.click()
    assert layer not in viewer.layers

    model.threshold = 250.0
    panel.actions["make_labels"].native.click()
    assert "nothing of what is chosen" in messages[-1]
    model.threshold = 128.0
    holes = np.flatnonzero((classes.dimensions == 1) & classes.alive(128.0))[:2]
    panel.diagram.chosen.emit(tuple(holes.tolist()))
    assert "2 chosen; in this set 2 holes" in panel.object.text()
    settle(qtbot, panel)
    assert "chosen" in [layer.name for layer in overlays(viewer)]
    panel.actions["make_labels"].native.click()
    settle(qtbot, panel)
    assert not (viewer.layers[-1].data > 0)[coins() >= 128].any()
    assert viewer.layers[-1].data.max() == 2
    panel.diagram.chosen.emit(())
    assert panel.actions["make_labels"].text == "Make Labels"


def test_what_is_chosen_becomes_a_class(explorer, open_panel, qtbot):
    """In the dock Objects, the objects at those places get the class, and no others do."""
    image = coins()[:160, :160]
    viewer, panel = explorer(image, name="coins")
    model = panel.model
    qtbot.waitUntil(lambda: model.classes is not None, timeout=TIMEOUT)
    classes = model.classes
    components, holes = label(image >= 128, np.ones((3, 3)))[0], label(image < 128)[0]
    labels = np.where(components > 0, components, holes + components.max())
    _, objects = open_panel("Objects", labels=labels, viewer=viewer)
    layer = viewer.layers["labels"]
    alive = classes.alive(128.0) & np.isfinite(classes.persistence)
    some = [*np.flatnonzero(alive & (classes.dimensions == 0))[:3]]
    some += [*np.flatnonzero(alive & (classes.dimensions == 1))[:2]]
    points = np.where(
        classes.dimensions[some, None] == 1, classes.death_points[some], classes.birth_points[some]
    )
    at_points = labels[tuple(points.T)].tolist()
    wanted = tuple(dict.fromkeys(at_points))
    assert len(wanted) == 5
    model.chosen = tuple(int(k) for k in some)
    assert objects.model.selected == ()  # Nothing has been measured yet.
    objects.controller.request()
    settle(qtbot, objects)
    assert objects.model.selected == wanted
    objects.model.class_name = "odd"
    objects.object["classify"].native.click()
    of_class = layer.features.set_index("index")["class"]
    assert set(of_class[of_class == "odd"].index) == set(wanted)
    model.chosen = ()
    assert objects.model.selected == wanted
    model.chosen = tuple(int(k) for k in some[:1])
    assert objects.model.selected == wanted[:1]
    layer.translate = (3, 0)
    objects.controller.request()
    settle(qtbot, objects)
    assert objects.model.selected == ()
