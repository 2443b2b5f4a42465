"""The dock Threshold on images of all kinds, on parts and on regions of them."""

import numpy as np
import pytest
from napari_helpers import TIMEOUT, assert_curve_of, coloured, overlays, settle, smooth
from numpy.testing import assert_array_equal
from scipy.ndimage import gaussian_filter

import ecc_core as ecc
from napari_ecc._qt.explorer import FINDING


def test_slice_and_volume(explorer, qtbot):
    """The displayed plane follows the dims slider; the volume does not; scales may differ.

    The scope follows the view: it is the volume in 3-D, and the slice that is shown after that.
    """
    volume = smooth(12, 40, 50)
    options = {"scale": (3, 1, 0.5), "translate": (5, 0, 0), "axis_labels": ("z", "y", "x")}
    viewer, panel = explorer(volume, **options)
    viewer.dims.set_current_step(0, 9)
    for ndisplay, shown in ((2, volume[9]), (3, volume), (2, volume[9])):
        viewer.dims.ndisplay = ndisplay
        settle(qtbot, panel)
        assert_curve_of(panel, shown)
        part = "volume" if ndisplay == 3 else "slice z = 9 / 11"
        assert panel.subject.text().endswith(f", {part}")
        assert panel.form["scope"].value == part.split()[0].capitalize()
    viewer.dims.order = (1, 0, 2)
    viewer.dims.set_current_step(1, 7)
    settle(qtbot, panel)
    assert_curve_of(panel, volume[:, 7])
    panel.form["scope"].value = "Volume"
    settle(qtbot, panel)
    curve = assert_curve_of(panel, volume)
    assert len(panel.model.counts.numbers) == 3
    assert panel.model.counts.euler == ecc.euler_number(volume >= panel.model.threshold)
    assert "tunnel" in panel.readout.text()
    viewer.dims.set_current_step(1, 20)
    settle(qtbot, panel)
    assert panel.model.curve is curve
    viewer.dims.ndisplay = 3
    panel.settings["sigma"].value = 1
    settle(qtbot, panel)
    blurred = gaussian_filter(volume.astype(np.float32), (1 / 6, 0.5, 1.0))
    assert_curve_of(panel, blurred)
    (overlay,) = overlays(viewer)
    assert_array_equal(overlay.scale, (3, 1, 0.5))
    assert_array_equal(overlay.translate, (5, 0, 0))


def test_smoothed_slice_lies_where_it_is(explorer, qtbot):
    """Overlay, critical points and Labels of a plane are put on that plane, in world units."""
    volume = smooth(12, 40, 50)
    viewer, panel = explorer(volume, scale=(3, 1, 0.5), translate=(5, 0, 0))
    viewer.dims.set_current_step(0, 9)
    panel.settings["sigma"].value = 0.5
    panel.overlays["show_changes"].value = True
    settle(qtbot, panel)
    panel.controller.make_labels()
    settle(qtbot, panel)
    labels = viewer.layers[-1]
    shown, points = overlays(viewer)
    layers = (labels, shown)
    assert [layer.data.shape for layer in layers] == [(1, 40, 50)] * 2
    assert_array_equal([layer.translate for layer in layers], [(5 + 9 * 3, 0, 0)] * 2)
    assert_array_equal([layer.scale for layer in layers], [(3, 1, 0.5)] * 2)
    assert set(points.data[:, 0]) == {9}
    assert points.data_to_world((9, 0, 0))[0] == 5 + 9 * 3
    blurred = gaussian_filter(volume[9].astype(np.float32), (0.25, 0.5))
    assert_array_equal(labels.data[0] > 0, blurred >= panel.model.threshold)


@pytest.mark.parametrize(
    "dtype",
    [
        bool,
        pytest.param(np.float32, marks=pytest.mark.slow),
        pytest.param(np.int16, marks=pytest.mark.slow),
        np.float64,
    ],
)
def test_dtypes(explorer, qtbot, dtype):
    image = smooth(40, 50, dtype=float)
    image = image > 0.5 if dtype is bool else (image * 100).astype(dtype)
    viewer, panel = explorer(image)
    assert_curve_of(panel, image)
    threshold = panel.model.threshold
    assert 0 < (image >= threshold).sum() < image.size
    for superlevel, among in ((True, np.greater_equal), (False, np.less_equal)):
        panel.model.superlevel = superlevel
        settle(qtbot, panel)
        (overlay,) = overlays(viewer)
        for t in (threshold, *image.ravel()[:20].astype(float).tolist(), -1.5, 0.1):
            panel.model.threshold = t
            assert_array_equal(coloured(overlay, image), among(image, t))


def test_thresholds_of_integers_are_integers(explorer, qtbot):
    """What is typed is what is used and shown, where the thresholds are not all of the levels."""
    image = (smooth(40, 50, dtype=np.float64) * 4000 - 2000).astype(np.int16)
    _, panel = explorer(image)
    curve = assert_curve_of(panel, image)
    assert_array_equal(curve.thresholds, curve.thresholds.astype(int))
    panel.controller.step(7)
    assert panel.value.value == panel.model.threshold
    low, high = curve.thresholds[[0, -1]]
    assert (low, high, curve.thresholds.size) == (image.min(), image.max(), 256)
    used = []
    for typed in (1e9, -1e9, 1234.4, -13):
        panel.value.value = typed
        used.append((panel.value.value, panel.model.threshold, panel.plot.threshold))
    assert used == [(t, t, t) for t in (high, low, 1234, -13)]
    settle(qtbot, panel)
    assert panel.model.counts.numbers == ecc.betti_numbers(image >= -13)


def test_nan_is_left_out_and_infinity_is_no_bound(explorer):
    image = smooth(40, 50, dtype=np.float32)
    image[:5], image[5], image[6] = np.nan, np.inf, -np.inf
    _, panel = explorer(image, contrast_limits=(0, 1))
    curve = assert_curve_of(panel, image, nan="omit")
    assert np.isfinite(curve.thresholds).all()


def infinite():
    """An image with components and holes that begin at infinite values, and some NaN."""
    image = smooth(40, 50, dtype=np.float32) * 100
    image[3:6, 3:6] = image[20:23, 30:33] = np.inf
    image[10:13, 10:13] = image[30:33, 5:8] = -np.inf
    image[:2] = np.nan
    return image


@pytest.mark.parametrize("superlevel", [True, False])
def test_births_at_infinite_values_are_drawn_at_the_ends(explorer, qtbot, superlevel):
    """In the diagram and in the merge tree, which have the thresholds of the curve as axes."""
    _, panel = explorer(infinite(), contrast_limits=(0, 100))
    panel.model.superlevel = superlevel
    settle(qtbot, panel)
    qtbot.waitUntil(lambda: panel.model.classes is not None, timeout=TIMEOUT)
    classes = panel.model.classes
    assert np.isinf(classes.births).sum() >= 2
    low, high = panel.model.curve.thresholds[[0, -1]]
    for plot, tab in (("diagram", panel.diagram), ("tree", panel.tree)):
        panel.model.plot = plot
        settle(qtbot, panel)
        assert not tab.empty
        (x0, x1), _ = tab._view.viewRange()
        assert low - 10 < x0 < x1 < high + 10


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # napari warns of its layer.
@pytest.mark.parametrize("low", [-1.0, 1.0], ids=["both ends", "constant"])
def test_values_that_are_too_large_to_be_drawn_are_counted(explorer, qtbot, low, messages):
    """pyqtgraph would raise errors; the plots say why they are empty, the numbers are there."""
    most = np.finfo(np.float64).max
    inside = smooth(20, 30, dtype=float) > 0.5
    image = np.where(inside, most, low * most)
    viewer, panel = explorer(image, contrast_limits=(0, 1))
    qtbot.waitUntil(lambda: panel.model.classes is not None, timeout=TIMEOUT)
    panel.model.threshold = most
    panel.model.show_histogram = True
    settle(qtbot, panel)
    assert panel.model.counts.numbers == ecc.betti_numbers(image >= most)
    for plot, tab in (("diagram", panel.diagram), ("tree", panel.tree), ("curve", panel.plot)):
        panel.model.plot = plot
        settle(qtbot, panel)
        assert tab.empty
        assert "are too large to be drawn" in tab._text.toPlainText()
    panel.model.plot = "diagram"
    panel.model.classes = None
    assert panel.diagram._text.toPlainText() == FINDING
    panel.jumps["otsu"].native.click()
    settle(qtbot, panel)
    assert_array_equal(image >= panel.model.threshold, image == most)
    panel.actions["make_labels"].native.click()
    settle(qtbot, panel)
    assert_array_equal(viewer.layers[-1].data > 0, image == most)
    assert not [text for text in messages if "cannot be drawn" not in text]


@pytest.mark.parametrize("superlevel", [True, False])
def test_otsu_divides_as_that_of_scikit_image(explorer, qtbot, superlevel):
    """Which puts the values above its threshold into one class."""
    from skimage.data import coins
    from skimage.filters import threshold_otsu

    image = coins()[:150, :150]
    _, panel = explorer(image)
    panel.model.superlevel = superlevel
    settle(qtbot, panel)
    panel.jumps["otsu"].native.click()
    settle(qtbot, panel)
    t = panel.model.threshold
    above = image >= t if superlevel else ~(image <= t)
    assert_array_equal(above, image > threshold_otsu(image))


def test_images_without_a_curve_say_why(explorer, qtbot, messages):
    """An RGB image gives a line of text, a constant and an all-NaN image no traceback."""
    viewer, panel = explorer(np.zeros((20, 30, 3), np.uint8), rgb=True)
    assert "RGB" in panel.model.status
    assert "Split RGB" in panel.work.text.text()
    assert panel.model.curve is None
    assert not panel.slider.enabled
    panel.controller.make_labels()
    assert messages == ["There is no curve yet."]

    viewer.add_image(np.full((20, 30), 3.5), name="constant")
    panel.form["image"].value = "constant"
    settle(qtbot, panel)
    assert_array_equal(panel.model.curve.values, [1])
    viewer.add_image(np.full((20, 30), np.nan), name="empty", contrast_limits=(0, 1))
    panel.form["image"].value = "empty"
    settle(qtbot, panel)
    assert "finite" in panel.plot.state
    assert messages == ["There is no curve yet."]


def test_region_of_interest(explorer, qtbot, messages):
    """Shapes and Labels restrict the image, whatever their scale; a wrong shape is explained."""
    image = smooth(60, 80)
    viewer, panel = explorer(image, scale=(2, 2))
    shapes = viewer.add_shapes(name="shapes")
    panel.settings["roi"].value = "shapes"
    assert "Draw one" in panel.model.status
    shapes.add_rectangles([[20, 20], [20, 100], [80, 100], [80, 20]])
    settle(qtbot, panel)
    inside = np.zeros(image.shape, bool)
    inside[10:41, 10:51] = True
    assert_curve_of(panel, image, mask=inside)
    viewer.add_labels(inside.astype(int), name="labels", scale=(2, 2))
    panel.settings["roi"].value = "labels"
    settle(qtbot, panel)
    assert_curve_of(panel, image, mask=inside)
    (overlay,) = overlays(viewer)
    assert_array_equal(np.isnan(overlay.data), ~inside)
    assert panel.model.counts.euler == ecc.euler_number((image >= panel.model.threshold) & inside)
    viewer.add_labels(np.ones((5, 5), int), name="wrong")
    panel.settings["roi"].value = "wrong"
    assert "must have the shape" in panel.model.status
    viewer.layers.remove("wrong")
    settle(qtbot, panel)
    assert_curve_of(panel, image)


def test_painting_a_region_does_not_change_what_is_computed(explorer, qtbot, gate):
    """The worker has its own copy; the painted region is computed after that."""
    image = smooth(40, 50)
    viewer, panel = explorer(image)
    region = np.repeat([1, 0], 20)[:, None] * np.ones(50, int)
    layer = viewer.add_labels(region.copy(), name="region")
    began, go = gate("details")
    panel.model.roi = "region"
    qtbot.waitUntil(began.is_set, timeout=TIMEOUT)
    layer.data[:] = 1  # No event is emitted, as if another plugin had changed the data.
    go.set()
    settle(qtbot, panel)
    assert_curve_of(panel, image, mask=region > 0)
    layer.paint((10, 10), 0)
    settle(qtbot, panel)
    assert_curve_of(panel, image, mask=layer.data > 0)
