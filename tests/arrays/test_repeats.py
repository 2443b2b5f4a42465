"""Calls that are remembered: the same results, and still every check."""

import numpy as np
import pytest
from plain import Box, curves
from plain.adapter import Adapter

import ecc_core as ecc
from ecc_core._arrays import repeats

IMAGE = np.array([[0, 3, 1], [2, 2, 0], [1, 3, 3]], np.int16)


@pytest.fixture
def repeated(monkeypatch):
    """Makes calls with boxes remembered, and lists the shapes of those that were known."""
    known = []

    def repeated_curve(images, thresholds, filtration):
        fixed = thresholds.copy()

        def again(box):
            known.append(box.shape)
            return Box(curves.curve(box.get()[None], fixed, filtration)[0])

        return None if filtration.superlevel else again

    def repeated_even_curve(images, count, filtration):
        def again(box):
            known.append(box.shape)
            array = box.get()
            if array.min() == array.max():
                return None
            at = np.linspace(array.min(), array.max(), count)
            return Box(at), Box(curves.curve(array[None], at, filtration)[0])

        return again

    def repeated_number(images, level, filtration):
        def again(box):
            known.append(box.shape)
            return int(curves.curve(box.get()[None], level, filtration)[0, 0])

        return again

    def repeated_regions(image, labels, thresholds, filtration):
        def again(image, labels):
            known.append(image.shape)
            found = curves.region_curves(image.get(), labels.get(), thresholds, filtration)
            return tuple(map(Box, found))

        return again

    def repeated_coefficients(images, filtration):
        def again(box):
            known.append(box.shape)
            return Box(curves.coefficients(box.get()[None], filtration)[0])

        return again

    monkeypatch.setattr(curves, "repeated_coefficients", repeated_coefficients, raising=False)
    monkeypatch.setattr(curves, "repeated_regions", repeated_regions, raising=False)
    monkeypatch.setattr(curves, "repeated_even_curve", repeated_even_curve, raising=False)
    monkeypatch.setattr(curves, "repeated_number", repeated_number, raising=False)
    monkeypatch.setattr(Adapter, "layout", lambda _, box: (box.shape, box.dtype), raising=False)
    monkeypatch.setattr(curves, "repeated_curve", repeated_curve, raising=False)
    monkeypatch.setattr(repeats, "_known", {})
    return known


def assert_same(thresholds, image=IMAGE, **options):
    found = ecc.euler_curve(Box(image), thresholds, **options)
    expected = ecc.euler_curve(image, thresholds, **options)
    np.testing.assert_array_equal(found.values.get(), expected.values)
    np.testing.assert_array_equal(found.thresholds, thresholds)
    for fact in ("connectivity", "superlevel", "ndim"):
        assert getattr(found, fact) == getattr(expected, fact)


def test_results_are_the_same(repeated):
    levels = np.array([0, 1, 2])
    for image in (IMAGE, IMAGE.T, IMAGE[::-1]):
        assert_same(levels, image)
    assert repeated == [(3, 3)] * 2
    assert_same(levels, connectivity=1)
    assert_same(levels.astype(np.float32))
    assert_same(levels, IMAGE[:2])
    assert_same(levels, IMAGE.astype(np.int32))
    assert len(repeated) == 2
    levels[:] = 1, 2, 3  # other thresholds in the same memory
    assert_same(levels)
    assert len(repeated) == 2
    assert_same(levels)
    assert len(repeated) == 3


def test_options_without_a_hash(repeated):
    levels = np.array([0, 1, 2])
    for _ in range(2):
        assert_same(levels, connectivity=np.array(1))
    assert repeated == []


def test_another_thread_replaces_the_last_thresholds(repeated, monkeypatch):
    levels, others = np.array([0, 1, 2]), np.array([1, 2, 3])

    class Last(bytes):
        """Thresholds that are replaced as soon as they have been compared."""

        __hash__ = bytes.__hash__

        def __eq__(self, other):
            repeats._last = others.tobytes()
            return bytes.__eq__(self, other)

    assert_same(others)
    monkeypatch.setattr(repeats, "_last", Last(levels.tobytes()))
    assert_same(levels)


def test_every_argument_is_still_checked(repeated):
    levels = np.array([0, 1, 2])
    assert_same(levels, connectivity=1)
    for given, error, message in (
        ({"connectivity": True}, ValueError, "`connectivity` must be 1 or 2"),
        ({"connectivity": 1, "nan": []}, ValueError, "`nan` must be"),
        ({"connectivity": 1, "workers": 0}, ValueError, "`workers` must"),
        ({"connectivity": 1, "range": (0, 1)}, ValueError, "`range` must be None"),
        ({"connectivity": 1, "spacing": 2}, ValueError, "`spacing`"),
    ):
        with pytest.raises(error, match=message):
            ecc.euler_curve(Box(IMAGE), levels, **given)
    with pytest.raises(ValueError, match="one-dimensional"):
        ecc.euler_curve(Box(IMAGE), levels[None], connectivity=1)
    mask = Box(IMAGE > 0)
    found = ecc.euler_curve(Box(IMAGE), levels, connectivity=1, mask=mask)
    expected = ecc.euler_curve(IMAGE, levels, connectivity=1, mask=IMAGE > 0)
    np.testing.assert_array_equal(found.values.get(), expected.values)
    assert repeated == []


def test_what_a_backend_does_not_repeat_is_not_remembered(repeated):
    for _ in range(2):
        assert_same(np.array([1]), superlevel=True)
    assert repeated == []


def test_no_more_than_some_calls_are_remembered(repeated, monkeypatch):
    monkeypatch.setattr(repeats, "MOST_CALLS", 3)
    for level in range(5):
        assert_same(np.array([level]))
    assert len(repeats._known) == 2


def test_numbers(repeated):
    image = IMAGE - 1
    for connectivity, boundary in ((1, "closed"), (None, "closed"), (None, "periodic")):
        options = {"connectivity": connectivity, "boundary": boundary}
        repeated.clear()
        for part in (image, image.T, image[::-1]):
            found = ecc.euler_number(Box(part), **options)
            assert type(found) is int
            assert found == ecc.euler_number(part, **options)
        assert repeated == [(3, 3)] * 2


def test_even_thresholds(repeated):
    for image in (IMAGE, IMAGE.T, np.zeros((3, 3), np.int16), 2 * IMAGE):
        found = ecc.euler_curve(Box(image), 5)
        expected = ecc.euler_curve(image, 5)
        np.testing.assert_array_equal(found.thresholds.get(), expected.thresholds)
        np.testing.assert_array_equal(found.values.get(), expected.values)
        assert found.connectivity == 2
    assert repeated == [(3, 3)] * 3
    assert_same(np.linspace(0, 3, 5))
    ecc.euler_curve(Box(IMAGE), 5, range=(0, 3))
    ecc.euler_curve(Box(IMAGE), 4)
    assert len(repeated) == 3


def test_regions(repeated):
    levels, labels = np.array([0, 1, 2]), np.array([[1, 1, 0], [4, 1, 0], [4, 4, 0]])
    for options in ({}, {"connectivity": 1}, {"superlevel": True}):
        repeated.clear()
        for image, given in ((IMAGE, labels), (IMAGE.T, labels), (IMAGE, 2 * labels)):
            found = ecc.region_curves(Box(image), Box(given), levels, **options)
            expected = ecc.region_curves(image, given, levels, **options)
            np.testing.assert_array_equal(found.labels.get(), expected.labels)
            np.testing.assert_array_equal(found.values.get(), expected.values)
            np.testing.assert_array_equal(found.thresholds, levels)
            assert found.facts == expected.facts
        assert repeated == [(3, 3)] * 2
    ecc.region_curves(Box(IMAGE), Box(labels.astype(np.uint8)), levels)
    ecc.region_curves(Box(IMAGE), Box(labels), 3)
    with pytest.raises(ValueError, match="`workers` must"):
        ecc.region_curves(Box(IMAGE), Box(labels), levels, workers=0)
    with pytest.raises(ValueError, match="`boundary`"):
        ecc.region_curves(Box(IMAGE), Box(labels), levels, boundary="periodic")
    with pytest.raises(ValueError, match="`labels` must have"):
        ecc.region_curves(Box(IMAGE), Box(labels[1:]), levels)
    assert len(repeated) == 2


def test_thresholds_that_are_read_early(repeated, monkeypatch):
    """If they were not right they are read again, and they are asked for even after an error."""
    asked = []
    reads = iter([(np.arange(3), False), (np.arange(2), True), (np.arange(2), True)])

    def given_early(_):
        values, right = next(reads)

        def is_right():
            asked.append(right)
            return right

        return values, is_right

    def fail(_):
        raise ValueError("NaN")

    monkeypatch.setattr(repeats, "given_early", given_early)
    given, call, curve = repeats.repeat_curve((Box(IMAGE),), None, (None, False), ())
    np.testing.assert_array_equal(given, [0, 1])
    assert curve is None
    monkeypatch.setitem(repeats._known, call, (fail, {}))
    with pytest.raises(ValueError, match="NaN"):
        repeats.repeat_curve((Box(IMAGE),), None, (None, False), ())
    assert asked == [False, True, True]


def test_coefficients_are_the_same(repeated):
    mask = np.ones(IMAGE.shape, bool)
    for options in ({}, {"connectivity": 1}, {"superlevel": True}, {}, {"mask": Box(mask)}):
        for image in (IMAGE, IMAGE.T):
            found = ecc.euler_coefficients(Box(image), **options)
            given = {**options, "mask": mask} if "mask" in options else options
            np.testing.assert_array_equal(found.get(), ecc.euler_coefficients(image, **given))
    assert len(repeated) == 5  # the second image of the first three, and both of the fourth
    with pytest.raises(ValueError, match="connectivity"):
        ecc.euler_coefficients(Box(IMAGE), connectivity=7)
    wrong = {"connectivity": "coefficients", "superlevel": None, "nan": False, "boundary": "raise"}
    with pytest.raises(ValueError, match="must be"):  # coefficients are not taken for a curve
        ecc.euler_curve(Box(IMAGE), 0, **wrong)
