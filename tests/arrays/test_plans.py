"""Calls whose arguments were checked before: the same results, and still every check."""

import gc
import weakref

import numpy as np
import pytest
from plain import Box, curves
from plain.adapter import Adapter

import ecc_core as ecc
from ecc_core._arrays import plans

IMAGE = np.array([[0, 3, 1], [2, 2, 0], [1, 3, 3]], np.int16)
LEVELS = np.array([0, 1, 2])


@pytest.fixture
def planned(monkeypatch):
    """Give the plain backend plans, and list the shapes of the images that they ran for."""
    ran = []

    def plan(images, thresholds, filtration):
        def run(box):
            ran.append(box.shape)
            found = curves.curve(box.get()[None], thresholds, filtration)[0]
            return None if box.get().max() > 100 else Box(found)

        return None if filtration.superlevel else run

    monkeypatch.setattr(curves, "plan", plan, raising=False)
    monkeypatch.setattr(Adapter, "layout", lambda _, box: (box.shape, box.dtype))
    plans._plan.cache_clear()
    yield ran
    plans._plan.cache_clear()


def assert_same(thresholds, image=IMAGE, **options):
    found = ecc.euler_curve(Box(image), thresholds, **options)
    expected = ecc.euler_curve(image, thresholds, **options)
    np.testing.assert_array_equal(found.values.get(), expected.values)
    np.testing.assert_array_equal(found.thresholds, thresholds)
    assert found.facts == expected.facts


def test_results_are_the_same(planned):
    levels = LEVELS.copy()
    for image in (IMAGE, IMAGE.T, IMAGE[::-1], IMAGE[:2], IMAGE.astype(np.int32)):
        assert_same(levels, image)
        assert_same(levels, image, connectivity=1)
    assert_same(levels.astype(np.float32))
    assert len(planned) == 11
    assert plans._plan.cache_info().misses == 7
    levels[:] = 1, 2, 3  # other thresholds in the same memory
    assert_same(levels)


def test_calls_that_are_made_in_full(planned):
    for _ in range(2):
        assert_same(LEVELS, superlevel=True)
        assert_same(LEVELS, connectivity=np.array(1))
        ecc.euler_curve(Box(IMAGE), LEVELS, mask=Box(IMAGE > 0))
        assert_same(LEVELS, IMAGE[None], axis=(1, 2))
        assert_same(list(LEVELS))
    assert planned == []
    assert_same(LEVELS, 100 * IMAGE)
    assert planned == [(3, 3)]


def test_every_argument_is_still_checked(planned):
    assert_same(LEVELS, connectivity=1)
    for given, error, message in (
        ({"connectivity": True}, ValueError, "`connectivity` must be 1 or 2"),
        ({"connectivity": 1, "nan": []}, ValueError, "`nan` must be"),
        ({"connectivity": 1, "workers": 0}, ValueError, "`workers` must"),
        ({"connectivity": 1, "range": (0, 1)}, ValueError, "`range` must be None"),
        ({"connectivity": 1, "spacing": 2}, ValueError, "`spacing`"),
    ):
        with pytest.raises(error, match=message):
            ecc.euler_curve(Box(IMAGE), LEVELS, **given)
    with pytest.raises(ValueError, match="one-dimensional"):
        ecc.euler_curve(Box(IMAGE), LEVELS[None], connectivity=1)
    with pytest.raises(TypeError, match="real numbers"):
        ecc.euler_curve(Box(IMAGE), LEVELS.astype(object), connectivity=1)
    assert len(planned) == 1


def test_every_call_warns_of_channels(planned):
    image = np.zeros((3, 20, 30), np.uint8)
    for _ in range(2):
        with pytest.warns(UserWarning, match="taken for a volume"):
            ecc.euler_curve(Box(image), LEVELS)
    assert planned == []


def test_plans_keep_no_image(planned):
    box = Box(IMAGE)
    ecc.euler_curve(box, LEVELS)
    gone = weakref.ref(box)
    del box
    gc.collect()
    assert gone() is None
