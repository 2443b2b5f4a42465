"""Labels have the holes that are counted, and no others."""

import numpy as np
import pytest
from napari_helpers import TIMEOUT, settle, smooth
from numpy.testing import assert_array_equal
from scipy.ndimage import generate_binary_structure, label

from napari_ecc._controller.fields import Field, find_objects
from napari_ecc._controller.lasting import find_lasting, find_solid_objects
from napari_ecc._workers import result


def noisy():
    """Blobs with noise, in which there are many shallow holes, (24, 30) uint8."""
    noise = np.random.default_rng(4).integers(-30, 30, (24, 30))
    return np.clip(smooth(24, 30, seed=1).astype(int) + noise, 0, 255).astype(np.uint8)


def depth_of(hole, image, threshold, structure):
    """How far a hole of the set above a threshold is below where an older one, or none, begins.

    The threshold rises until the hole meets a deeper one, or the outside.
    """
    floor = image[hole].min()
    for level in range(int(threshold), 256):
        beyond = np.pad(image <= level, 1, constant_values=True)
        parts, _ = label(beyond, structure)
        part = parts == parts[1:-1, 1:-1][hole][0]
        if part[0, 0] or image[part[1:-1, 1:-1]].min() < floor:
            return level - int(floor)
    raise AssertionError("the outside is below everything")


@pytest.mark.parametrize("connectivity", [1, 2])
@pytest.mark.parametrize("threshold", [100, 140])
@pytest.mark.parametrize("least", [20, 45])
def test_holes_that_do_not_last_are_filled(connectivity, threshold, least):
    """Each hole is looked at alone, by raising the threshold."""
    image = noisy()
    field = Field(image, None)
    sets = {"superlevel": True, "connectivity": connectivity}
    own = generate_binary_structure(2, connectivity)
    other = generate_binary_structure(2, 3 - connectivity)
    objects = result(find_objects(field, threshold, least, **sets))
    solid = image >= threshold
    framed = np.pad(~solid, 1, constant_values=True)
    parts, count = label(framed, other)
    for number in range(1, count + 1):
        hole = (parts == number)[1:-1, 1:-1]
        if number != parts[0, 0] and depth_of(hole, image, threshold, other) < least:
            solid |= hole
    bodies, _ = label(solid, own)
    expected = np.zeros_like(bodies)
    for body in range(1, bodies.max() + 1):
        inside = bodies == body
        labels = objects.labels[inside & (objects.labels > 0)]
        if labels.size:
            expected[inside] = labels.min()
    expected = np.where(objects.labels > 0, objects.labels, expected)
    assert (expected != objects.labels).any()
    lasting = result(find_lasting(field, **sets))
    for known in (None, lasting):
        found = result(
            find_solid_objects(field, threshold, least, least_of_holes=least, known=known, **sets)
        )
        assert_array_equal(found.labels, expected)
        assert_array_equal(found.table["points"], np.bincount(expected.ravel())[1:])
        assert_array_equal(found.table["birth"], objects.table["birth"])
    without = find_solid_objects(field, threshold, least, least_of_holes=0, known=None, **sets)
    assert_array_equal(result(without).labels, objects.labels)


def test_labels_in_the_window_have_the_holes_of_the_sentence(explorer, qtbot):
    """All objects have them, and so do chosen ones."""
    image = noisy()
    image[2:5, 2:5] = 0
    image[1:6, 1:6][~np.pad(np.ones((3, 3), bool), 1)] = 255  # The hole of this ring lasts.
    viewer, panel = explorer(image)
    model = panel.model
    qtbot.waitUntil(lambda: model.classes is not None, timeout=TIMEOUT)
    model.threshold = 140.0
    every = sum(model.counts.numbers)
    model.min_persistence = 60.0
    assert sum(model.counts.numbers) < every
    panel.controller.make_labels()
    settle(qtbot, panel)
    inside = np.pad(viewer.layers[-1].data > 0, 1)
    _, parts = label(~inside)
    assert parts - 1 == model.counts.numbers[1] > 0

    components = np.flatnonzero(model.classes.alive(140.0, 60.0))
    components = components[model.classes.dimensions[components] == 0]
    model.chosen = tuple(components.tolist())
    panel.controller.make_labels()
    settle(qtbot, panel)
    assert_array_equal(viewer.layers[-1].data > 0, inside[1:-1, 1:-1])
