"""Layers of many kinds in the docks of one window: right numbers, or one sentence on one line."""

import dask.array as da
import numpy as np
import pytest
from napari_helpers import DOCKS, TIMEOUT, smooth
from numpy.testing import assert_array_equal
from oracles.components import counted
from skimage.measure import euler_number

from napari_ecc._controller.layers import RESULT_KEY

SHAPE = (20, 24)
LIMITS = {"contrast_limits": (0, 100)}


def some_of(dtype, *values):
    """An image of values from 0 to 100, at some points of which there are others."""
    image = (100 * smooth(*SHAPE, dtype=float)).astype(dtype)
    places = np.random.default_rng(1).permutation(image.size)
    for k, value in enumerate(values):
        image.flat[places[20 * k : 20 * (k + 1)]] = value
    return image


def ends_of(dtype):
    """An image of the smallest and the largest number of a dtype."""
    inside = smooth(*SHAPE, dtype=float) > 0.5
    least, most = (getattr(np.iinfo(dtype), end) for end in ("min", "max"))
    return np.where(inside, np.array(most, dtype), np.array(least, dtype))


slow = pytest.mark.slow
IMAGES = {
    "float16, infinite": (some_of(np.float16, np.inf, -np.inf), LIMITS),
    "float32, NaN": (some_of(np.float32, np.nan), LIMITS),
    "float64, infinite and NaN": (some_of(np.float64, np.inf, -np.inf, np.nan), LIMITS),
    "float64, subnormal": (some_of(np.uint8) * 5e-324, LIMITS),
    "bool": (some_of(np.uint8) > 50, {}),
    "int8": (ends_of(np.int8), {}),
    "uint16": (ends_of(np.uint16), {}),
    "int64": (ends_of(np.int64), {}),
    "uint64": (ends_of(np.uint64), {}),
    "constant": (np.full(SHAPE, -7.25), {}),
    "a row": (some_of(np.uint8)[:1], LIMITS),
    "dask": (da.from_array(some_of(np.float32, np.nan), chunks=9), LIMITS),
    "levels": ([some_of(np.uint8), some_of(np.uint8)[::2, ::2]], {"multiscale": True, **LIMITS}),
    "sheared": (some_of(np.uint8), {"shear": [0.5]}),
}
QUICK = ("float16, infinite", "bool", "uint64", "dask")
REFUSED = {
    "RGB": (np.zeros((*SHAPE, 3), np.uint8), {"rgb": True}, "Split its channels"),
    "NaN": (np.full(SHAPE, np.nan), LIMITS, "no finite values"),
    "infinite": (np.full(SHAPE, np.inf), LIMITS, "no finite values"),
}


@pytest.fixture
def docks(make_napari_viewer_proxy, open_panel):
    """A viewer with all docks, by their titles."""
    viewer = make_napari_viewer_proxy()
    return viewer, {name: open_panel(name, viewer=viewer)[1] for name in DOCKS}


def settle_all(qtbot, panels):
    """Wait until no dock computes."""
    busy = panels.values()
    qtbot.waitUntil(lambda: not any(at.controller.running for at in busy), timeout=TIMEOUT)


def inside(values, threshold):
    """The set at a threshold, of Python's numbers, which are compared exactly."""
    flat = [value >= threshold for value in np.asarray(values).ravel().tolist()]
    return np.reshape(flat, np.shape(values))


@pytest.mark.parametrize(
    "kind", [kind if kind in QUICK else pytest.param(kind, marks=slow) for kind in IMAGES]
)
def test_images_in_all_docks(docks, qtbot, kind, messages):
    """Curves and numbers are those of scikit-image and of labelling, in each dock that counts."""
    viewer, panels = docks
    data, options = IMAGES[kind]
    values = np.asarray(data[0] if isinstance(data, list) else data)
    viewer.add_image(data, name="image", **options)
    settle_all(qtbot, panels)
    model = panels["Threshold"].model
    curve = model.curve
    expected = [euler_number(inside(values, t), 2) for t in curve.thresholds[::17].tolist()]
    assert_array_equal(curve.values[::17], expected)
    for plot in ("diagram", "tree", "curve"):
        model.plot = plot
        settle_all(qtbot, panels)
    shown = inside(values, model.threshold)
    assert (model.counts.numbers[0], model.counts.numbers[1]) == counted(shown, 2)
    panels["Threshold"].actions["make_labels"].native.click()
    panels["Compare"].controller.add_layers()
    second = (np.indices(values.shape).sum(axis=0) % 11).astype(np.uint8)
    viewer.add_image(second, name="second", shear=options.get("shear"))
    model.image = "image"
    panels["Two channels"].model.second = "second"
    settle_all(qtbot, panels)
    (made,) = [layer for layer in viewer.layers if RESULT_KEY in layer.metadata]
    assert_array_equal(np.asarray(made.data) > 0, shown)
    assert_array_equal(panels["Compare"].model.curves["image"].values, curve.values)
    first, _, surface = panels["Two channels"].model.surface
    alone = [euler_number(inside(values, t), 2) for t in first[::13].tolist()]
    assert_array_equal(surface[::13, 0], alone)
    swept = panels["Directions"].model.curve
    if swept is None:
        assert "must have perpendicular axes" in panels["Directions"].model.status
    else:
        assert swept.values[-1] == euler_number(shown, 2)
    assert "Series needs several" in panels["Series"].model.status
    assert messages == []


@pytest.mark.parametrize("kind", REFUSED)
def test_images_that_have_no_curve_in_all_docks(docks, qtbot, kind, messages):
    """Each dock says so in one line, and none raises an error."""
    viewer, panels = docks
    data, options, reason = REFUSED[kind]
    viewer.add_image(data, name="image", **options)
    settle_all(qtbot, panels)
    panels["Compare"].controller.add_layers()
    settle_all(qtbot, panels)
    said = {name: panel.model.status for name, panel in panels.items()}
    assert reason in said["Threshold"]
    assert reason in said["Compare"]
    assert all(text and "\n" not in text for text in said.values())
    assert panels["Threshold"].model.curve is None
    assert panels["Compare"].model.curves == {}
    assert messages == []
