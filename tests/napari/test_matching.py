"""Two Labels layers that are matched: lines around what does not match, and points."""

import numpy as np
import pytest
from napari.layers import Labels
from napari_helpers import run_copied, settle
from numpy.testing import assert_array_equal
from qtpy.QtWidgets import QApplication

import ecc_core as ecc
from napari_ecc import actions
from napari_ecc._controller.matching import MISSING, in_words, match_job
from napari_ecc._workers import result


def two_rings():
    """The target's first ring has a gap in the prediction, the second a bridge; a dot is false."""
    target = np.zeros((9, 15), np.int32)
    target[1:6, 1:6], target[1:6, 9:14] = 1, 2
    target[2:5, 2:5] = target[2:5, 10:13] = 0
    prediction = target.copy()
    prediction[3, 5], prediction[3, 10:13] = 0, 2
    prediction[8, 7] = 5
    return prediction, target


def test_what_does_not_match():
    prediction, target = two_rings()
    layers = Labels(prediction, name="guess"), Labels(target, name="truth")
    found = result(match_job(*layers, (slice(None), slice(None)), None)())
    expected = np.zeros(target.shape, np.uint8)
    expected[8, 7] = 1  # The dot is false; both holes beside the bridge are missing or false.
    expected[2:5, 2:5] = 2
    holes = found.table[found.table["kind"] == "hole"]["error"].tolist()
    assert sorted(holes) == ["false", "missing"]
    assert_array_equal(found.labels[:, :9], expected[:, :9])
    assert set(np.unique(found.labels[2:5, 10:13])) == {0, 1}  # Half of the hole is left.
    places = set(map(tuple, found.points.tolist()))
    assert {(8, 7), (3, 5)} < places  # They are the dot and the gap.
    words = in_words(found, "guess", "truth")
    assert words == (
        "“guess” against “truth”: components: 2 of 2 match, 0 missing, 1 false; "
        "holes: 1 of 2 match, 1 missing, 1 false. Orange: false. Blue: missing."
    )
    assert (
        actions.match_labels(*layers)
        == found.matching
        == ecc.betti_matching(prediction > 0, target > 0)
    )


def test_cavities_and_tunnels():
    target = np.zeros((7, 7, 16), np.uint8)
    target[1:6, 1:6, 1:6] = 1
    target[3, 3, 3] = 0  # It is a cavity.
    target[1:6, 1:6, 9:14] = 2
    target[:, 3, 11] = 0  # It is a tunnel.
    prediction = target.copy()
    prediction[3, 3, 3] = 1
    prediction[3, 3, 11] = 2
    whole = (slice(None),) * 3
    found = result(match_job(Labels(prediction), Labels(target), whole, None)())
    assert_array_equal(np.argwhere(found.labels), [[3, 3, 3]])
    kinds = list(zip(found.table["error"], found.table["kind"], strict=True))
    assert sorted(kinds) == [("missing", "cavity"), ("missing", "tunnel")]


@pytest.mark.parametrize(
    ("prediction", "target", "message"),
    [
        (np.ones((4, 5), int), np.ones((4, 4), int), "must have the shape of"),
        (np.ones((4, 4), int), np.zeros((4, 4), int), "“target” has no objects here"),
        (np.zeros((4, 4), int), np.ones((4, 4), int), "“prediction” has no objects here"),
        (
            np.broadcast_to(np.uint8(1), (3000, 3000)),
            np.broadcast_to(np.uint8(1), (3000, 3000)),
            "at most 8.4 million points to be matched",
        ),
    ],
)
def test_layers_that_cannot_be_matched(prediction, target, message):
    with pytest.raises(ValueError, match=message):
        actions.match_labels(Labels(prediction, name="prediction"), Labels(target, name="target"))


def test_layers_of_a_match(open_panel, qtbot):
    viewer, panel = open_panel("Compare")
    panel.sources["match"].native.click()
    assert "Select two Labels layers" in panel.model.status
    prediction, target = two_rings()
    truth = viewer.add_labels(target, name="truth", scale=(2, 3), translate=(5, 1))
    viewer.add_labels(prediction, name="guess", scale=(2, 3), translate=(5, 1))
    panel.sources["match"].native.click()
    settle(qtbot, panel)
    assert panel.model.status.startswith("“guess” against “truth”: components: 2 of 2 match")
    outlines, points = viewer.layers[-2:]
    assert outlines.contour == 0
    assert_array_equal(outlines.data[8, 7], 1)
    assert_array_equal(outlines.data_to_world((3, 4)), truth.data_to_world((3, 4)))
    assert_array_equal(points.data_to_world((3, 4)), truth.data_to_world((3, 4)))
    assert [3, 5] in points.data.tolist()
    assert set(points.features["error"]) == {"false", "missing"}
    panel.actions["copy"].native.click()
    assert "actions.match_labels" in QApplication.clipboard().text()
    matching = run_copied(viewer, panel)["matching"]
    assert matching == ecc.betti_matching(prediction > 0, target > 0)
    panel.actions["undo"].native.click()
    assert [layer.name for layer in viewer.layers] == ["truth", "guess"]
    assert not panel.actions["copy"].enabled
    panel.sources["match"].native.click()
    settle(qtbot, panel)
    assert len(viewer.layers) == 4
    panel.sources["match"].native.click()  # Lines of the first time are not taken for labels.
    settle(qtbot, panel)
    assert len(viewer.layers) == 6
    panel.actions["undo"].native.click()
    assert panel.actions["copy"].enabled  # The layers that are left were matched, too.
    panel.actions["undo"].native.click()
    viewer.layers["guess"].data = np.zeros_like(prediction)
    panel.sources["match"].native.click()
    settle(qtbot, panel)
    assert panel.model.status == "“guess” has no objects here."


def test_objects_do_not_hide_what_is_missing_inside_them(open_panel, qtbot, messages):
    """A cavity that the prediction has not, seen from outside, by its colour.

    napari says nothing, as it does of its own contours at each drawing of a volume.
    """
    viewer, panel = open_panel("Compare", show=True)
    target = np.zeros((11, 21, 21), np.uint8)
    target[1:10, 3:18, 3:18] = 1
    prediction = target.copy()
    target[3:8, 8:13, 8:13] = 0
    viewer.dims.ndisplay = 3
    viewer.add_labels(target, name="truth", opacity=1.0)
    viewer.add_labels(prediction, name="guess", opacity=1.0)
    viewer.reset_view()
    panel.sources["match"].native.click()
    settle(qtbot, panel)
    assert "cavities: 0 of 1 match, 1 missing" in panel.model.status
    picture = viewer.screenshot(canvas_only=True, flash=False)[..., :3].astype(int)
    missing = np.array([int(MISSING[k : k + 2], 16) for k in (1, 3, 5)])
    assert (np.abs(picture - missing).max(axis=2) < 40).sum() > 100
    expected = np.zeros(target.shape, np.uint8)
    expected[3:8, 8:13, 8:13] = 2
    expected[5, 10, 10] = 0
    assert_array_equal(viewer.layers[-2].data, expected)
    viewer.dims.ndisplay = 2
    viewer.dims.ndisplay = 3
    assert messages == []
