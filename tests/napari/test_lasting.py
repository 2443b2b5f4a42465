"""What is counted is what is shown: outlines of components and holes that last, and no others."""

import itertools

import numpy as np
import pytest
from napari_helpers import TIMEOUT, colourful, on_canvas, overlays, settle
from numpy.testing import assert_array_equal
from qtpy.QtWidgets import QApplication
from scipy.ndimage import gaussian_filter, generate_binary_structure, label

from napari_ecc._controller.fields import Field, find_classes
from napari_ecc._controller.lasting import find_lasting
from napari_ecc._workers import result


@pytest.mark.sweep
@pytest.mark.parametrize("superlevel", [True, False])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
@pytest.mark.parametrize("shape", [(18, 22), (7, 8, 9)])
def test_sets_have_the_classes_that_last(shape, dtype, superlevel):
    """Components of sets and of their complements are counted as births and deaths count them."""
    rng, ndim = np.random.default_rng(len(shape)), len(shape)
    noise = gaussian_filter(rng.standard_normal(shape), 1) + 0.3 * rng.standard_normal(shape)
    image = ((noise - noise.min()) / np.ptp(noise) * 60).astype(dtype)
    mask = rng.random(shape) < 0.9 if dtype == np.int16 else None
    connectivity = 1 if dtype == np.float32 else ndim
    own = generate_binary_structure(ndim, connectivity)
    other = generate_binary_structure(ndim, 1 if connectivity > 1 else ndim)
    field, sets = Field(image, mask), {"superlevel": superlevel, "connectivity": connectivity}
    components, complement = result(find_lasting(field, **sets))
    classes = result(find_classes(field, np.arange(61.0), **sets))
    found = []
    known = []
    for least, t in walk((0, 5, 12, 25), range(0, 61, 6)):
        whole = field.inside(t, superlevel)
        among = whole & components.lasting(t, least)[components.labels]
        beyond = ~whole & complement.lasting(t, least)[complement.labels]
        framed = np.pad(beyond, 1, constant_values=True)
        found.append((label(among, own)[1], label(framed, other)[1] - 1))
        numbers = classes.numbers(t, least)
        known.append((numbers[0], numbers[-1]))
    assert found == known


def walk(leasts, thresholds):
    """Pairs of a least persistence and a threshold, as drags of one and of the other reach them."""
    yield from itertools.product(leasts, thresholds)
    for threshold in thresholds:
        for least in leasts:
            yield least, threshold


def disc_with_noise():
    """A disc with a hole and a shallow hole, and a speck, (64, 64)."""
    y, x = np.mgrid[:64, :64]
    image = np.where((y - 28) ** 2 + (x - 28) ** 2 < 20**2, 200, 10)
    image[(y - 22) ** 2 + (x - 22) ** 2 < 5**2] = 10
    image[32:38, 32:38] = 160
    image[54:60, 54:60] = 190
    return image.astype(np.uint8)


def outlines(viewer, panel, qtbot):
    """How many lines, or bodies, there are on the canvas."""
    settle(qtbot, panel)
    viewer.scene.camera.zoom = 4
    QApplication.processEvents()
    return label(colourful(viewer), np.ones((3, 3)))[1]


def test_lines_are_those_of_what_is_counted(explorer, qtbot):
    """Pixels of the window: at any threshold, and while the least persistence is changed."""
    image = disc_with_noise()
    viewer, panel = explorer(image, show=True)
    model = panel.model
    qtbot.waitUntil(lambda: model.classes is not None, timeout=TIMEOUT)
    lines = {}
    counted = []
    for least in (0.0, 35.0, 60.0, 185.0):
        model.min_persistence = least
        for threshold in (180.0, 120.0):
            model.threshold = threshold
            lines[least, threshold] = outlines(viewer, panel, qtbot)
            counted.append(sum(model.counts.numbers))
    assert list(lines.values()) == counted
    assert list(lines.values()) == [4, 3, 4, 3, 3, 3, 2, 2]
    model.threshold = 180.0
    drawn_at_once = {}
    for least in (35.0, 60.0, 185.0):
        model.min_persistence = least  # As in a drag, nothing is waited for.
        drawn_at_once[least, 180.0] = label(colourful(viewer), np.ones((3, 3)))[1]
    assert drawn_at_once == {key: lines[key] for key in drawn_at_once}
    assert len(overlays(viewer)) == 1


def test_volumes_show_what_is_counted(explorer, qtbot):
    """They do so in three dimensions, and in slices of any orientation."""
    plane = disc_with_noise()
    volume = np.pad(np.stack([plane] * 8), ((4, 4), (0, 0), (0, 0)), constant_values=10)
    viewer, panel = explorer(volume, show=True)
    model = panel.model
    model.scope = "volume"
    qtbot.waitUntil(lambda: model.classes is not None, timeout=TIMEOUT)
    model.threshold = 120.0
    viewer.dims.set_current_step(0, 8)
    assert outlines(viewer, panel, qtbot) == 3
    model.min_persistence = 185.0
    assert outlines(viewer, panel, qtbot) == 2
    viewer.dims.order = (0, 2, 1)
    assert outlines(viewer, panel, qtbot) == 2
    viewer.dims.order = (0, 1, 2)
    viewer.dims.ndisplay = 3
    model.min_persistence = 0.0
    assert outlines(viewer, panel, qtbot) == 2
    model.min_persistence = 185.0
    assert outlines(viewer, panel, qtbot) == 1
    (overlay,) = overlays(viewer)
    data = overlay.data
    model.min_persistence = 100.0
    assert outlines(viewer, panel, qtbot) == 2
    assert overlay.data is data  # The graphics card leaves out what does not last.
    model.min_persistence = 185.0
    assert outlines(viewer, panel, qtbot) == 1
    assert overlay.data is data


@pytest.mark.parametrize(("dtype", "superlevel"), [(np.uint8, True), (np.float32, False)])
def test_rays_meet_the_voxels_that_are_counted(explorer, qtbot, dtype, superlevel):
    """Pixels of the window, where a ray passes through the middles of a row of voxels."""
    image = (np.random.default_rng(3).random((5, 6, 7)) * 60).astype(dtype)
    sets = {"superlevel": superlevel, "connectivity": None}
    viewer, panel = explorer(image, show=True)
    panel.model.superlevel = superlevel
    viewer.dims.ndisplay = 3
    viewer.scene.camera.zoom = 20
    viewer.layers[0].visible = False
    qtbot.waitUntil(lambda: panel.model.classes is not None, timeout=TIMEOUT)
    field = Field(image, None)
    components, _ = result(find_lasting(field, **sets))
    middles = np.argwhere(np.ones(image.shape[1:]))
    for least, threshold in ((0.0, 50.0), (12.0, 50.0), (12.0, 56.0), (25.0, 50.0)):
        threshold = threshold if superlevel else 60 - threshold
        panel.model.min_persistence = least
        # The threshold is moved in any case.
        panel.model.threshold = float(panel.model.curve.thresholds[0])
        panel.controller.snap(threshold)
        settle(qtbot, panel)
        at = panel.model.threshold
        inside = field.inside(at, superlevel)
        inside &= components.lasting(at, least)[components.labels]
        places = [on_canvas(viewer, middle) for middle in middles]
        x, y = np.array(places).astype(int).T
        drawn = colourful(viewer)[y, x].reshape(image.shape[1:])
        assert_array_equal(drawn, inside.any(axis=0))
        assert 0 < np.count_nonzero(drawn) < drawn.size
