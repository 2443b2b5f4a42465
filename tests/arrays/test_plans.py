"""Calls whose arguments were checked before: the same results, and still every check."""

import gc
import itertools
import weakref

import numpy as np
import pytest
from oracles import euler as reference
from plain import Box
from plain.adapter import Adapter
from skimage import measure

import ecc_core as ecc
from ecc_core._arrays import plans
from ecc_core._arrays.adapters.numpy import NumPy
from ecc_core._arrays.complex_plans import numbers_key
from ecc_core._backends.cpu import prepared
from ecc_core._backends.cpu.encoders import plans as encoders
from ecc_core._backends.plain import curves

IMAGE = np.array([[0, 3, 1], [2, 2, 0], [1, 3, 3]], np.int16)
LEVELS = np.array([0, 1, 2])


@pytest.fixture
def planned(monkeypatch):
    """Give the plain backend plans, and list the shapes of the images that they ran for."""
    ran = []

    def plan(kind, images, labels, levels, filtration, *, mask, geometry, workers):
        def curve(box, mask=None):
            ran.append(box.shape)
            image = box.get()
            at = levels.array
            at = np.linspace(image.min(), image.max(), levels.count) if at is None else at
            shown = None
            if mask is not None:
                shown = geometry.stack(geometry.spread(mask.get()))
            found = curves.curve(geometry.stack(image), at, filtration, mask=shown)
            given = None if levels.array is not None else Box(at)
            values = Box(found.reshape(*geometry.batch, at.size))
            return None if image.max() > 100 else (given, values)

        def number(box):
            ran.append(box.shape)
            return int(curves.curve(box.get()[None], levels.array, filtration)[0, 0])

        def region_curves(box, labels):
            ran.append(box.shape)
            given = box.get(), labels.get(), levels.array, filtration
            return tuple(map(Box, curves.region_curves(*given)))

        def coefficients(box, mask=None):
            ran.append(box.shape)
            shown = None if mask is None else geometry.stack(mask.get())
            images = geometry.stack(box.get())
            found = curves.coefficients(images, filtration, mask=shown)
            return (Box(found[0]),)

        runs = {"curve": curve, "number": number, "region_curves": region_curves}
        runs["coefficients"] = coefficients
        return None if filtration.superlevel and kind == "curve" else runs[kind]

    monkeypatch.setattr(curves, "plan", plan, raising=False)
    monkeypatch.setattr(Adapter, "layout", lambda _, box: (box.shape, box.dtype))
    monkeypatch.setattr(NumPy, "layout", lambda *_: None)  # No call is planned.
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
    levels[:] = 1, 2, 3  # The same memory now holds other thresholds.
    assert_same(levels)


def test_default_thresholds_numbers_and_regions(planned):
    labels = np.array([[1, 1, 0], [1, 2, 2], [0, 2, 2]])
    for image in (IMAGE, IMAGE.T):
        found = ecc.euler_curve(Box(image), 5)
        known = ecc.euler_curve(image, 5)
        np.testing.assert_array_equal(found.thresholds.get(), known.thresholds)
        np.testing.assert_array_equal(found.values.get(), known.values)
        assert ecc.euler_number(Box(image > 1), 1) == ecc.euler_number(image > 1, 1)
        found = ecc.region_curves(Box(image), Box(labels), LEVELS)
        known = ecc.region_curves(image, labels, LEVELS)
        np.testing.assert_equal([np.asarray(array) for array in found], list(known))
        assert found.facts == known.facts
    assert planned == [(3, 3)] * 6
    assert plans._plan.cache_info().misses == 3


def test_calls_that_are_made_in_full(planned):
    for _ in range(2):
        assert_same(LEVELS, superlevel=True)
        assert_same(LEVELS, connectivity=np.array(1))
    assert planned == []
    assert_same(LEVELS, 100 * IMAGE)
    assert planned == [(3, 3)]


def test_masks_batches_and_coefficients(planned):
    """One plan for each shape, with or without a mask, whatever the values of the mask."""
    for kept in (IMAGE > 0, IMAGE > 1):
        found = ecc.euler_curve(Box(IMAGE), LEVELS, mask=Box(kept))
        known = ecc.euler_curve(IMAGE, LEVELS, mask=kept)
        np.testing.assert_array_equal(found.values.get(), known.values)
        found = ecc.euler_coefficients(Box(IMAGE), mask=Box(kept))
        np.testing.assert_array_equal(found.get(), ecc.euler_coefficients(IMAGE, mask=kept))
    stack = np.stack([IMAGE, IMAGE.T])
    for image in (stack, stack + 1):
        assert_same(LEVELS, image, axis=(1, 2))
        assert_same(LEVELS, image, axis=(2, 0))
    assert len(planned) == 8
    assert plans._plan.cache_info().misses == 4


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"connectivity": True}, ValueError, "`connectivity` must be 1 or 2"),
        ({"nan": []}, ValueError, "`nan` must be"),
        ({"workers": 0}, ValueError, "`workers` must"),
        ({"range": (0, 1)}, ValueError, "`range` must be None"),
        ({"spacing": 2}, ValueError, "`spacing`"),
        ({"thresholds": LEVELS[None]}, ValueError, "one-dimensional"),
        ({"thresholds": LEVELS.astype(object)}, TypeError, "real numbers"),
    ],
)
def test_every_argument_is_still_checked(planned, given, error, message):
    assert_same(LEVELS, connectivity=1)
    with pytest.raises(error, match=message):
        ecc.euler_curve(Box(IMAGE), **{"thresholds": LEVELS, "connectivity": 1, **given})
    assert len(planned) == 1


def test_a_type_error_of_a_backend_is_an_error(planned, monkeypatch):
    """It does not let the call be made in full, as options without a hash do."""

    def broken(*_, **__):
        raise TypeError("a fault of the backend")

    monkeypatch.setattr(curves, "plan", broken)
    with pytest.raises(TypeError, match="a fault of the backend"):
        ecc.euler_curve(Box(IMAGE), LEVELS)
    with pytest.raises(TypeError, match="a fault of the backend"):
        ecc.euler_number(Box(IMAGE > 1))
    assert_same(LEVELS, connectivity=np.array(1))


def test_every_call_warns_of_channels(planned):
    image = np.zeros((3, 20, 30), np.uint8)
    for _ in range(2):
        with pytest.warns(UserWarning, match="taken for a volume"):
            ecc.euler_curve(Box(image), LEVELS)
    assert planned == [image.shape] * 2


def test_plans_keep_no_image(planned):
    box = Box(IMAGE)
    ecc.euler_curve(box, LEVELS)
    gone = weakref.ref(box)
    del box
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("thresholds", "options"),
    [(5, {}), (7, {"range": (0, 2)}), (np.arange(3), {})],
    ids=["5", "7 of a range", "given"],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, ">f8", bool])
@pytest.mark.parametrize("shape", [(40,), (9, 70), (5, 6, 7)])
def test_small_images_of_numpy(shape, dtype, thresholds, options):
    """Other values in the same memory, and views, give their own curves in their own memory."""
    rng = np.random.default_rng(0)
    image = np.empty(shape, dtype)
    results = []
    for _ in range(2):
        image[...] = rng.integers(0, 4, shape)
        for view in (image, image[::-1, ...][::2]):
            found = ecc.euler_curve(view, thresholds, **options)
            known = reference.euler_curve(view, found.thresholds)
            np.testing.assert_array_equal(found.values, known)
            results.append(found)
    assert plans._plan.cache_info().hits
    for one, two in itertools.pairwise(results):
        assert not np.shares_memory(one.values, two.values)
        if one.thresholds.size != 3:  # Results share thresholds that were given.
            assert not np.shares_memory(one.thresholds, two.thresholds)


@pytest.mark.parametrize("shape", [(5, 6), (500, 600)])
def test_encoders_of_many_thresholds_are_not_kept_with_plans(shape):
    """They take megabytes, and thresholds may be others in every call."""
    image = np.random.default_rng(0).random(shape, np.float32)

    def kept_encoders():
        encoders._plans.cache_clear()
        gc.collect()
        # `isinstance` would ask objects of other libraries for their class, and some warn.
        return sum(type(one) is encoders.Plan for one in gc.get_objects())

    before = kept_encoders()
    for first in range(3):
        levels = np.linspace(first, 9, prepared.MOST_KEPT_THRESHOLDS + 1) ** 2
        for _ in range(2):
            found = ecc.euler_curve(image, levels)
        np.testing.assert_array_equal(found.values, reference.euler_curve(image, levels))
    assert plans._plan.cache_info().hits
    assert kept_encoders() <= before


@pytest.mark.parametrize("thresholds", [np.arange(3), 5], ids=["given", "5"])
@pytest.mark.parametrize("connectivity", [1, 2])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, bool])
def test_betti_curves_of_small_images(dtype, connectivity, thresholds):
    """Components are those of scikit-image, and holes follow from the Euler characteristic."""
    rng = np.random.default_rng(0)
    image = np.empty((9, 70), dtype)
    for _ in range(2):
        image[...] = rng.integers(0, 4, image.shape)
        for view in (image, image[::-1, ::2]):
            found = ecc.betti_curves(view, thresholds, connectivity=connectivity)
            components = [
                measure.label(view <= t, connectivity=connectivity).max() for t in found.thresholds
            ]
            np.testing.assert_array_equal(found.values[0], components)
            euler = reference.euler_curve(view, found.thresholds, connectivity=connectivity)
            np.testing.assert_array_equal(found.values[0] - found.values[1], euler)
    assert plans._plan.cache_info().hits


@pytest.mark.parametrize("before", [LEVELS, LEVELS + 1], ids=["the same", "others"])
def test_thresholds_that_are_read_early_warn_once_of_a_missing_axis(planned, monkeypatch, before):
    """Their values are compared after a call that used the values read before."""
    thin = np.stack([np.resize(IMAGE, (6, 6))] * 3)
    given = Box(LEVELS.copy())
    same = bool((before == LEVELS).all())
    monkeypatch.setattr(Adapter, "reads_early", True)
    monkeypatch.setattr(Adapter, "read_early", lambda *_: (before, lambda: same), raising=False)
    with pytest.warns(UserWarning, match="taken for a volume") as warned:
        found = ecc.euler_curve(Box(thin), given)
    expected = ecc.euler_curve(thin, LEVELS, axis=(0, 1, 2))
    np.testing.assert_array_equal(found.values.get(), expected.values)
    assert found.thresholds is given
    assert len(warned) == 1


def test_numbers_in_a_list_are_planned(planned):
    """They become an array of the image's library, of which each result has its own."""
    for _ in range(2):
        found = ecc.euler_curve(Box(IMAGE), [0, 1, 2])
        expected = ecc.euler_curve(IMAGE, LEVELS)
        np.testing.assert_array_equal(found.values.get(), expected.values)
        np.testing.assert_array_equal(found.thresholds.get(), LEVELS)
        found.thresholds.get()[:] = 7
    assert len(planned) == 2


def test_plans_of_complexes_distinguish_numbers():
    """Numbers are compared by their bytes, which for a masked array do not contain the mask."""
    numbers = np.array([0.0, 1.0])
    assert numbers_key(numbers) == numbers_key(numbers.copy())
    assert numbers_key(np.ma.masked_array(numbers, [False, True])) is None
    assert numbers_key(()) != numbers_key(None)
    assert numbers_key(True) is None
