"""Arguments of the transform: what they may be, and messages for what they may not be."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import ecc_core as ecc

MASK = np.random.default_rng(0).random((12, 15)) < 0.5
EXPECTED = ecc.euler_transform(MASK, 6, 20)


@pytest.mark.parametrize(
    "image",
    [
        MASK.astype(np.uint8),
        MASK.astype(">f4"),
        MASK.tolist(),
        np.ma.array(np.ones_like(MASK), mask=~MASK),
        np.ma.array(np.where(MASK, 1, 7), mask=~MASK),
        np.where(MASK, 300, 0).astype(np.uint16),
        np.where(MASK, 300, 0).astype(">i8"),
        np.ma.array(np.full(MASK.shape, 300), mask=~MASK),
        np.ma.array(np.where(MASK, 300, np.nan), mask=~MASK),
        np.asfortranarray(np.where(MASK, 300.0, 0.0).astype(np.float16)),
    ],
)
def test_masks_and_weights_of_all_dtypes(image):
    weight = int(np.max(image))
    assert_array_equal(ecc.euler_transform(image, 6, 20).values, EXPECTED.values)
    weighted = ecc.euler_transform(image, 6, 20, weighted=True)
    assert_array_equal(weighted.values, weight * EXPECTED.values)


def test_large_integer_weights_are_exact():
    weights = np.array([[2**53 + 1, 0, 2**62 - 1]])
    values = ecc.euler_transform(weights, [[0, 1]], [-1, 0, 1], connectivity=1, weighted=True)
    assert values.values.tolist() == [[2**53 + 1, 2**53 + 1, 2**53 + 2**62]]


def test_default_range_holds_the_furthest_corner():
    for shape in ((3, 4), (7, 5), (2, 3, 6), (101, 203)):
        corner = np.array(shape, dtype=float)
        result = ecc.euler_transform(np.ones(shape, bool), [corner, -corner], 5)
        assert_array_equal(result.values[:, -1], 1)
        assert_array_equal(result.values[:, 0], 0)
        assert result.heights[-1] == pytest.approx(np.linalg.norm(corner) / 2, rel=1e-14)


def test_directions_are_normalised_and_unit_vectors_kept():
    given = np.array([[3, 4], [1e-200, 0], [0, -1e300], [5e-324, 5e-324]])
    result = ecc.euler_transform(MASK, given, 3)
    np.testing.assert_allclose(np.linalg.norm(result.directions, axis=1), 1, rtol=1e-15)
    np.testing.assert_allclose(result.directions[3], np.sqrt([0.5, 0.5]))
    again = ecc.euler_transform(MASK, result.directions, 3)
    assert_array_equal(again.directions, result.directions)


def test_empty_results():
    assert ecc.euler_transform(MASK, 0, 5).values.shape == (0, 5)
    assert ecc.euler_transform(MASK, np.empty((0, 2)), 5).values.shape == (0, 5)
    assert ecc.euler_transform(MASK, 4, 0).values.shape == (4, 0)
    assert ecc.euler_transform(MASK, 4, []).values.shape == (4, 0)
    assert_array_equal(ecc.euler_transform(np.zeros((4, 5), bool)).values, 0)
    for shape in ((0,), (0, 4), (3, 0, 2)):
        for weighted in (False, True):
            result = ecc.euler_transform(np.zeros(shape, bool), 4, [0.0, 1.0], weighted=weighted)
            assert result.values.tolist() == [[0, 0]] * 4
    result = ecc.euler_transform(np.zeros((0, 4), bool), 4, 3, range=(-1, 1))
    assert result.heights.tolist() == [-1, 0, 1]


def test_many_heights():
    result = ecc.euler_transform(MASK, [[0.6, 0.8]], 2**22)
    few = ecc.euler_transform(MASK, [[0.6, 0.8]], result.heights[:: 2**18])
    assert_array_equal(few.values, result.values[:, :: 2**18])


BINARY = "be boolean, or 0 and one other value, unless `weighted` is True, got"
REAL = "have a boolean, integer or real floating dtype of at most 64 bits, got"
FINITE = "be finite where it holds weights, got"
BELOW = "hold weights below 2**62, got"
SHAPE = "have shape (k, 2) for shapes of 2 axes, got"
WEIGHTS = {"weighted": True}
LARGEST = np.array([[2**64 - 1]], np.uint64)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"image": [[0, 2, 1]]}, ValueError, f"{BINARY} int64 with more values"),
        ({"image": [[0, np.nan]]}, ValueError, f"{BINARY} float64 with more values"),
        ({"image": [[1j]]}, TypeError, f"{REAL} complex128"),
        ({"image": True}, ValueError, "have 1 to 3 axes, got shape ()"),
        ({"image": MASK[None, None]}, ValueError, "have 1 to 3 axes, got shape (1, 1, 12, 15)"),
        ({"image": [[np.nan]], **WEIGHTS}, ValueError, f"{FINITE} NaN"),
        ({"image": [[-np.inf]], **WEIGHTS}, ValueError, f"{FINITE} infinity"),
        ({"image": [[-(2**62)]], **WEIGHTS}, ValueError, f"{BELOW} {2**62}"),
        ({"image": LARGEST, **WEIGHTS}, ValueError, f"{BELOW} {2**64 - 1}"),
        ({"directions": 1.5}, TypeError, "be an int or an array, got 1.5"),
        ({"directions": -1}, ValueError, "not be negative, got -1"),
        ({"directions": [1, 0]}, ValueError, f"{SHAPE} (2,)"),
        ({"directions": [[1, 0, 0]]}, ValueError, f"{SHAPE} (1, 3)"),
        ({"directions": [[1.0, 0], [0, 0]]}, ValueError, "be finite and not zero, got [0. 0.] in"),
        ({"directions": [[np.inf, 0.0]]}, ValueError, "be finite and not zero, got [inf  0.] in"),
        ({"directions": [["a", "b"]]}, TypeError, "be real numbers, got <U1"),
        ({"heights": -3}, ValueError, "not be negative, got -3"),
        ({"heights": [0, np.nan]}, ValueError, "not contain NaN, got NaN"),
        ({"heights": [1, 0]}, ValueError, "be increasing, got 1 before 0"),
        ({"heights": "exact"}, TypeError, "be an int or an array, got 'exact'"),
        ({"range": (0, 1), "heights": [0]}, ValueError, "be None where `heights` is an array, got"),
        ({"range": (1, 0)}, ValueError, "be finite with low <= high, got (1, 0)"),
        ({"range": None, "image": MASK[:0]}, ValueError, "be given for an image without points"),
    ],
)
def test_messages(arguments, error, message):
    """The first of the arguments is the one that is named."""
    with pytest.raises(error) as caught:
        ecc.euler_transform(**({"image": MASK} | arguments))
    assert str(caught.value).startswith(f"`{next(iter(arguments))}` must {message}")


def test_directions_of_a_result_may_be_written_to():
    image, given = np.ones((3, 4), bool), np.array([[3.0, 4.0], [0.0, 2.0]])
    expected = ecc.euler_transform(image, given, 4).directions.copy()
    for _ in range(2):
        result = ecc.euler_transform(image, given, 4)
        assert_array_equal(result.directions, expected)
        result.directions[:] = 0
