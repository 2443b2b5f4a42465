"""The direction explorer in a real window: what the user does, and what the viewer does."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from napari.layers import Labels
from napari_helpers import TIMEOUT, canvas_of, on_canvas, run_copied, save_all, settle, smooth
from numpy.testing import assert_allclose, assert_array_equal
from qtpy.QtCore import Qt

import ecc_core as ecc
from napari_ecc import _workers, actions
from napari_ecc._controller import layers
from napari_ecc._controller.direction_overlays import NAME
from napari_ecc._qt.form import Form, slider


def assert_exact(panel, inside, **options):
    """The curve and the transform are those of `ecc_core`."""
    model = panel.model
    expected = ecc.euler_transform(inside, [model.direction], model.n_heights, **options)
    assert_array_equal(model.curve.thresholds, expected.heights)
    assert_array_equal(model.curve.values, expected.values[0])
    expected = ecc.euler_transform(inside, model.directions, model.n_heights, **options)
    assert_array_equal(model.transform.values, expected.values)


def test_plane_with_anisotropic_pixels(directions, qtbot, drag_mouse):
    """Directions are in world units; all options of the set reach the curve.

    With another angle the curve follows, and the transform is not computed again.
    """
    image = smooth(40, 60, dtype=float)
    _, panel = directions(image, scale=(3, 0.5), name="cells")
    t = panel.explorer.threshold
    assert_allclose(t, np.mean([image.min(), image.max()]))
    assert_exact(panel, image >= t, spacing=(3, 0.5))
    transform, curves = panel.model.transform, []
    assert transform.values.shape == (64, 128)
    panel.model.events.curve.connect(curves.append)
    panel.angles["azimuth"].value = 90
    settle(qtbot, panel)
    assert panel.model.azimuth == panel.angles["azimuth"].value == panel.map.marker == 90
    assert_exact(panel, image >= t, spacing=(3, 0.5))
    assert_array_equal(curves[-1].values, transform.values[16])  # Row 16 of 64 has 90 degrees.
    assert_array_equal(panel.model.transform.values, transform.values)
    drag_mouse(panel.map, (200, panel.map.pixels(0, 180)[1]))
    assert_allclose(panel.model.azimuth, 180, atol=1)

    panel.form["threshold"].value = 0.4
    panel.form["superlevel"].value = "Dark ≤ t"
    panel.settings["connectivity"].value = "Sides only"
    panel.settings["n_directions"].value = 12
    panel.settings["n_heights"].value = 20
    panel.angles["azimuth"].value = 33
    settle(qtbot, panel)
    assert panel.model.transform.values.shape == (12, 20)
    assert_exact(panel, image <= 0.4, spacing=(3, 0.5), connectivity=1)
    assert "40 × 60" in panel.work.text.text()  # noqa: RUF001


@pytest.mark.parametrize("ndisplay", [2, 3])
@pytest.mark.parametrize("scale", [(3, 2, 2), (1e9, 1e9, 1e9), (0.3, 0.1, 0.1)])
def test_the_arrow_leaves_the_steps_of_sliders(directions, qtbot, scale, ndisplay):
    """Steps of 1 would be more than Qt counts in an image of large pixels."""
    viewer, panel = directions(smooth(5, 12, 14), scale=scale)
    viewer.dims.ndisplay = ndisplay
    settle(qtbot, panel)
    arrow = viewer.layers["Euler direction"]
    least = [min(scale)] * 3 if ndisplay == 3 else scale
    assert_allclose(arrow.scale, least)
    assert_allclose([step for *_, step in viewer.dims.range], least)
    sides = np.array(scale) * (5, 12, 14)
    shown = sides[-ndisplay:]
    width = arrow.edge_width * arrow.scale[-1]
    assert 0.001 < width / shown.max() < 0.05


def test_drag_of_the_arrow_in_a_plane(directions, qtbot, drag_mouse):
    image = smooth(50, 50)
    viewer, panel = directions(image, show=True, scale=(2, 1))
    layer = viewer.layers[NAME]
    assert viewer.layers.selection.active.name != NAME
    centre = np.array([49.0, 24.5])
    foot, across = layer.data[0]
    assert_allclose(foot, centre)
    assert_allclose(across / np.linalg.norm(across), (1, 0))
    left, right = layer.data[1:]  # They are the head of the arrow.
    assert_allclose([left[0], right[0]], [foot + across] * 2)
    assert_allclose(left[1] * (1, -1), right[1])
    assert left[1, 0] < 0
    before = tuple(viewer.scene.camera.center)
    path = across, (15, 9), (9, 12)
    places = np.add(centre, path)
    drag_mouse(canvas_of(viewer), *(on_canvas(viewer, at) for at in places))
    settle(qtbot, panel)
    assert_allclose(panel.model.direction, (0.6, 0.8), atol=0.05)
    assert_allclose(layer.data[0, 1] / np.linalg.norm(across), (0.6, 0.8), atol=0.05)
    assert tuple(viewer.scene.camera.center) == before
    assert viewer.scene.camera.mouse_pan
    assert_exact(panel, image >= panel.explorer.threshold, spacing=(2, 1))
    # Beside the arrow the mouse drags the canvas, as ever.
    azimuth = panel.model.azimuth
    beside = [on_canvas(viewer, centre - [d, d]) for d in (10, 15, 20)]
    drag_mouse(canvas_of(viewer), *beside)
    assert panel.model.azimuth == azimuth
    assert tuple(viewer.scene.camera.center) != before


def test_drag_of_the_arrow_in_a_volume(directions, qtbot, drag_mouse):
    """The tip stays under the mouse, on a sphere about the middle."""
    volume = smooth(12, 30, 30)
    viewer, panel = directions(volume, show=True, scale=(2, 1, 1))
    assert not panel.angles["elevation"].native.isVisibleTo(panel)
    viewer.dims.ndisplay = 3
    panel.form["scope"].value = "Volume"
    settle(qtbot, panel)
    assert panel.angles["elevation"].native.isVisibleTo(panel)
    assert panel.model.ndim == 3
    foot, across = viewer.layers[NAME].data[0]
    assert_allclose(foot, (11, 14.5, 14.5))
    length = np.linalg.norm(across)
    angles_before = tuple(viewer.scene.camera.angles)
    path = across, length * np.array([0, 0.8, 0.1]), length * np.array([0, 0.3, 0.4])
    places = [on_canvas(viewer, foot + at) for at in path]
    drag_mouse(canvas_of(viewer), *places)
    settle(qtbot, panel)
    up, down, right = panel.model.direction
    assert_allclose((down, right), (0.3, 0.4), atol=0.06)
    assert_allclose(abs(up), np.sqrt(0.75), atol=0.06)
    assert_allclose(panel.angles["elevation"].value, panel.model.elevation, atol=0.1)
    assert tuple(viewer.scene.camera.angles) == angles_before
    assert_exact(panel, volume >= panel.explorer.threshold, spacing=(2, 1, 1))
    # Another elevation turns the whole transform.
    panel.angles["elevation"].value = -40
    panel.angles["azimuth"].value = 200
    settle(qtbot, panel)
    assert panel.angles["elevation"].value == panel.model.elevation == -40
    assert_allclose(panel.model.directions[:, 0], np.sin(np.deg2rad(-40)))
    assert_exact(panel, volume >= panel.explorer.threshold, spacing=(2, 1, 1))


def test_plane_image(directions, qtbot):
    """The image plus a plane, row by row."""
    image = smooth(30, 40, dtype=float)
    image[3, 4] = np.nan
    _, panel = directions(image, scale=(2, 2))
    panel.settings["filtration"].value = "Image plus a plane"
    panel.settings["n_directions"].value = 8
    panel.form["slope"].value = 0.004
    panel.model.turn(30)
    settle(qtbot, panel)
    assert panel.form["slope"].native.isVisibleTo(panel)
    assert not panel.form["threshold"].native.isVisibleTo(panel)
    model = panel.model
    options = {"superlevel": True, "spacing": 2, "nan": "omit", "direction_scale": 0.004}
    levels = model.curve.thresholds
    reach = 0.004 * np.hypot(30, 40)  # Half the diagonal in world units.
    assert_allclose(levels[[0, -1]], [np.nanmin(image) - reach, np.nanmax(image) + reach])
    expected = ecc.euler_curve(image, levels, direction=model.direction, **options).values
    assert_array_equal(model.curve.values, expected)
    curves = [
        ecc.euler_curve(image, levels, direction=direction, **options)
        for direction in model.directions
    ]
    assert_array_equal(model.transform.values, [curve.values for curve in curves])


def test_slice_and_data(directions, qtbot):
    """Another slice and other data are computed; sliders that change nothing compute nothing."""
    volume = smooth(6, 30, 30)
    viewer, panel = directions(volume, scale=(5, 1, 1))
    curves = []
    panel.model.events.curve.connect(curves.append)
    viewer.dims.set_current_step(0, 4)
    settle(qtbot, panel)
    assert_exact(panel, volume[4] >= panel.explorer.threshold)
    arrow = viewer.layers[NAME]
    assert_allclose(arrow.data_to_world(arrow.data[0, 0]), (20, 14.5, 14.5))
    count = len(curves)
    viewer.dims.set_current_step(0, 4)
    viewer.layers[0].contrast_limits = (0, 100)
    settle(qtbot, panel)
    assert len(curves) == count
    viewer.layers[0].data = volume[:, ::-1]
    settle(qtbot, panel)
    assert_exact(panel, volume[4, ::-1] >= panel.explorer.threshold)


def test_quick_curves_come_at_once(directions, qtbot, monkeypatch):
    """Others come from a worker, which leaves out those that nobody waits for."""
    monkeypatch.setattr(_workers, "AT_ONCE", 10.0)
    image = smooth(64, 64)
    viewer, panel = directions(image)
    (shown,) = [layer for layer in viewer.layers if layer.name.endswith("≥ t")]
    panel.model.turn(60)
    settle(qtbot, panel)
    sliced = []
    shown.events.set_data.connect(sliced.append)
    panel.model.turn(120)
    assert not panel.controller.running
    assert_exact(panel, image >= panel.explorer.threshold)
    assert sliced == []  # Nothing of the set has changed.
    # Other rows are missing, and come with a curve of their own.
    panel.settings["n_directions"].value = 40
    panel.model.turn(130)
    assert panel.controller.running
    monkeypatch.setattr(_workers, "AT_ONCE", 0.0)
    settle(qtbot, panel)
    curves = []
    panel.model.events.curve.connect(curves.append)
    for azimuth in range(131, 191):
        panel.model.turn(azimuth)
    assert len(curves) <= 1  # One more curve may have been expected to be quick.
    settle(qtbot, panel)
    assert len(curves) < 30
    assert_exact(panel, image >= panel.explorer.threshold)


def test_the_explorer_shares_layer_and_threshold(directions, explorer, qtbot):
    image = smooth(30, 30)
    viewer, panel = directions(image, smooth(20, 20, seed=1))
    _, other = explorer(viewer=viewer)
    other.form["image"].native.setCurrentIndex(0)
    settle(qtbot, other)
    other.controller.snap(120)
    settle(qtbot, panel)
    t = other.model.threshold
    assert panel.form["threshold"].value == pytest.approx(t, abs=1e-4)
    assert_exact(panel, image >= t)


def test_clear_messages(directions, qtbot):
    viewer, panel = directions()
    assert "Open an image" in panel.work.text.text()
    rgb = viewer.add_image(np.zeros((8, 8, 3), np.uint8), rgb=True, name="photo")
    assert "RGB" in panel.work.text.text()
    assert panel.model.curve is None
    assert NAME not in viewer.layers
    viewer.layers.remove(rgb)
    viewer.add_image(smooth(20, 20))
    settle(qtbot, panel)
    assert panel.model.curve is not None
    viewer.layers[0].name = "renamed"
    assert panel.form["image"].value == "renamed"
    viewer.layers.remove("renamed")
    assert panel.model.curve is None
    assert NAME not in viewer.layers


def test_large_images_are_not_loaded_whole(directions, qtbot, monkeypatch):
    """A coarser level is taken and named; without one the image is refused."""
    monkeypatch.setattr(layers, "MOST_POINTS", 500)
    fine = smooth(40, 40, dtype=np.float32)
    lazy = [da.from_array(fine), da.from_array(fine[::2, ::2].copy())]
    viewer, panel = directions(lazy, multiscale=True, contrast_limits=(0, 1))
    assert "level 1, 20 × 20 of 40 × 40" in panel.work.text.text()  # noqa: RUF001
    assert_exact(panel, fine[::2, ::2] >= panel.explorer.threshold, spacing=2)
    viewer.add_image(da.from_array(fine), name="lazy")
    panel.explorer.image = "lazy"
    assert "must have at most 500 points" in panel.work.text.text()
    assert panel.model.curve is None


@pytest.mark.parametrize(("scope", "filtration"), [("slice", "height"), ("volume", "plane")])
def test_copied_code_gives_what_is_shown(directions, qtbot, scope, filtration):
    viewer, panel = directions(smooth(5, 12, 14), scale=(2, 1, 1))
    panel.explorer.scope = scope
    panel.model.filtration = filtration
    panel.model.n_directions, panel.model.slope = 6, 2.0
    panel.model.turn(77, 20)
    settle(qtbot, panel)
    names = run_copied(viewer, panel)
    assert_array_equal(names["levels"], panel.model.curve.thresholds)
    assert_array_equal(names["chi"], panel.model.curve.values)
    found = names["transform"]
    assert_array_equal(getattr(found, "values", found), panel.model.transform.values)


def test_saving(directions, tmp_path, messages):
    _, panel = directions(smooth(20, 20))
    curves = [tmp_path / f"curve.{kind}" for kind in ("csv", "parquet", "png", "svg")]
    save_all(panel.save_curve, *curves, messages=messages)
    transforms = [tmp_path / f"transform.{kind}" for kind in ("csv", "parquet", "png")]
    save_all(panel.save_transform, *transforms, messages=messages)
    curve = pd.read_csv(tmp_path / "curve.csv", comment="#")
    assert_array_equal(curve["euler_number"], panel.model.curve.values)
    table = pd.read_parquet(tmp_path / "transform.parquet")
    assert list(table) == ["direction", "direction_0", "direction_1", "height", "euler_number"]
    assert_array_equal(table["euler_number"], panel.model.transform.values.ravel())
    assert_array_equal(table["direction_1"][::128], panel.model.directions[:, 1])
    panel.save_curve(str(tmp_path / "curve.xlsx"))
    assert messages[-1] == f"Saved {tmp_path / 'curve.xlsx.csv'}"
    panel.save_transform(str(tmp_path / "absent" / "t.csv"))
    assert not messages[-1].startswith("Saved")


@pytest.mark.parametrize("scope", [pytest.param("slice", marks=pytest.mark.slow), "volume"])
def test_a_click_on_the_curve_marks_the_height(directions, qtbot, drag_mouse, scope):
    """The marker lies where the swept part ends, and the set is shown without the explorer."""
    volume = smooth(12, 20, 24)
    viewer, panel = directions(volume, scale=(2, 1, 0.5))
    panel.explorer.scope = scope
    panel.model.turn(30, 20)
    settle(qtbot, panel)
    heights = panel.model.curve.thresholds
    at = panel.plot.position_of(heights[90])
    drag_mouse(panel.plot, (at, 40))
    settle(qtbot, panel)
    assert panel.model.height == panel.plot.threshold == heights[90]
    marker = viewer.layers["Euler height"]
    corners = marker.vertices if scope == "volume" else np.cumsum(marker.data[0], axis=0)
    assert len(corners) == (4 if scope == "volume" else 2)
    axes = [0, 1, 2] if scope == "volume" else [1, 2]
    middle = (np.array(volume.shape) - 1) / 2
    offset = ((corners - middle) * viewer.layers[0].scale)[:, axes]
    assert_allclose(offset @ panel.model.direction, heights[90], atol=1e-5)
    qtbot.keyClick(panel.plot, Qt.Key.Key_Right)
    assert panel.model.height == heights[91]
    qtbot.keyClick(panel.plot, Qt.Key.Key_End)
    assert panel.model.height == heights[-1]
    settle(qtbot, panel)
    (shown,) = [layer for layer in viewer.layers if layer.name.endswith("≥ t")]
    viewer.layers.remove(marker)
    qtbot.waitUntil(lambda: np.isnan(panel.model.height), timeout=TIMEOUT)
    viewer.layers.remove(shown)
    qtbot.waitUntil(lambda: not panel.explorer.show_set, timeout=TIMEOUT)
    panel.model.turn(60)
    settle(qtbot, panel)
    assert not [layer for layer in viewer.layers if layer.name.endswith("≥ t")]


def test_heights_have_the_unit_of_the_layer():
    disk = np.hypot(*np.mgrid[-5:6, -5:6]) < 4
    layer = Labels(disk.astype(np.uint8), scale=(2, 2), units=("mm", "mm"))
    found = actions.layer_transform(layer, 4, 9, threshold=1)
    assert found.units == "millimeter"
    assert_array_equal(found.values, ecc.euler_transform(disk, found.directions, 9, spacing=2)[2])
    assert actions.layer_transform(layer, 4, 9, slope=1.0).units is None
    mixed = Labels(disk.astype(np.uint8), units=("mm", "um"))
    assert actions.layer_transform(mixed, 4, 9, threshold=1).units == "micrometer"


def test_an_image_without_a_threshold_is_said_to_have_none(explorer, open_panel, qtbot):
    """Where the dock Threshold finds none."""
    viewer, _ = explorer(np.full((9, 9), np.nan), contrast_limits=(0, 1))
    _, panel = open_panel("Directions", viewer=viewer)
    settle(qtbot, panel)
    assert panel.main.state == "There is no threshold yet: see the dock Threshold."


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 255), (0, 2.0**32), (2.0**60, 2.0**60 + 1e6), (0, 2.0**64), (-1e300, 1e300)],
)
@pytest.mark.parametrize("whole", [True, False])
def test_the_slider_of_thresholds_reaches_all_values(qapp, low, high, whole):
    """Values may be integers of 64 bits, and then those of an image of small values again."""
    form = Form({"Threshold": slider("threshold", "That of the object")})
    for ends in ((low, high), (0, 255)):
        form.set_range("threshold", *ends, whole=whole)
        assert_allclose(form["threshold"].range, ends, rtol=1e-6)
        middle = sum(ends) / 2
        form.display("threshold", middle)
        assert_allclose(form["threshold"].value, middle, rtol=0.01)
