"""Thresholds and ranges stay what they are, whatever type they are given as, or are refused."""

import numpy as np
import pytest

import ecc_core as ecc

BIG = 2**63 + 1
HALF = 2**53 + 1
POINTS = [BIG - 1, 2**64 - 1, BIG, 2**64 - 1, BIG + 1]


@pytest.mark.parametrize(
    ("image", "thresholds", "values"),
    [
        ([0, BIG - 1, BIG, BIG + 1], [0, BIG], [1, 1]),
        ([BIG, 5, BIG + 1], [6, BIG], [1, 1]),
        (POINTS, [BIG - 1, BIG, BIG + 1], [1, 2, 3]),
        (POINTS, (np.uint64(BIG), BIG + 1), [2, 3]),
        (np.array([HALF - 1, 2**60, HALF, 2**60, HALF + 1]), [-5, HALF - 1, HALF], [0, 1, 2]),
    ],
)
def test_python_integers_of_64_bits(image, thresholds, values):
    image = image if isinstance(image, np.ndarray) else np.array(image, np.uint64)
    found = ecc.euler_curve(image, thresholds)
    assert found.thresholds.dtype == image.dtype
    assert found.thresholds.tolist() == list(map(int, thresholds))
    assert found.values.tolist() == values


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ([0.5, HALF], f"`thresholds` must be float64 where not all are integers, .* {HALF} is not"),
        ([-1, BIG], f"`thresholds` must fit 64-bit integers of one type, got -1 and {BIG}"),
        ([0, 2**70], f"`thresholds` must fit 64-bit integers of one type, got 0 and {2**70}"),
        ([[1, 2], [3]], "`thresholds` must be one-dimensional, got a ragged sequence"),
    ],
)
def test_numbers_that_no_type_holds(thresholds, message):
    with pytest.raises(ValueError, match=message):
        ecc.euler_curve(np.zeros((3, 3), np.int64), thresholds)


def test_numbers_that_floats_hold_are_floats():
    found = ecc.euler_curve(np.arange(5), [0.5, 2**60])
    assert found.thresholds.tolist() == [0.5, 2.0**60]
    assert ecc.euler_curve(np.arange(5), [1, 2, 3.0]).thresholds.dtype == np.float64


@pytest.mark.parametrize("value", [HALF, -HALF, 2**63 - 1, 2**64 - 1, BIG])
def test_default_thresholds_end_at_the_largest_value(value):
    image = np.array([value], np.int64 if value < 2**63 else np.uint64)
    found = ecc.euler_curve(image, 2)
    assert found.thresholds.tolist() == [value, value]
    assert found.values.tolist() == [1, 1]
    other = np.array([value, 7], image.dtype)
    found = ecc.euler_curve(other, 5)
    ends = sorted([value, 7])
    expected = [ends[0] + i * (ends[1] - ends[0]) // 4 for i in range(5)]
    assert found.thresholds.tolist() == expected
    assert found.values[-1] == 1


def test_ranges_of_integers():
    image = np.array([BIG - 1, 0, BIG, 0, BIG + 1], np.uint64)
    found = ecc.euler_curve(image, 3, range=(BIG - 1, BIG + 1), superlevel=True)
    assert found.thresholds.tolist() == [BIG - 1, BIG, BIG + 1]
    assert found.values.tolist() == [3, 2, 1]
    with pytest.raises(ValueError, match="`range` must be float64 where not both ends are integer"):
        ecc.euler_curve(image, 3, range=(0.5, HALF))
    with pytest.raises(ValueError, match="`range` must fit 64-bit integers of one type"):
        ecc.euler_curve(image, 3, range=(-1, BIG))
    assert ecc.euler_curve(image, 1, range=(5, BIG)).thresholds.tolist() == [5]


@pytest.mark.parametrize("count", [2, 3, 256, 5000])
@pytest.mark.parametrize(
    ("low", "high"),
    [(-5e-324, 1e-320), (0.0, 5e-324), (-3e-310, 2e-308), (-1.7e308, 1.7e308), (0.1, 0.1)],
)
def test_even_thresholds_increase_and_meet_both_ends(low, high, count):
    found = ecc.euler_curve(np.zeros(1), count, range=(low, high)).thresholds
    assert np.isfinite(found).all()
    assert (found[1:] >= found[:-1]).all()
    assert (found[0], found[-1], found.size) == (low, high, count)


def test_heights_of_a_huge_range_are_finite():
    found = ecc.euler_transform(np.eye(3, dtype=bool), 4, 5, range=(-1.7e308, 1.7e308))
    assert np.isfinite(found.heights).all()
    assert found.values[:, -1].tolist() == [1] * 4


@pytest.mark.parametrize("spacing", [1e200, 1e-200, (1, 1e170)])
@pytest.mark.parametrize("function", [ecc.euler_transform, ecc.region_transforms])
def test_spacings_whose_squares_are_no_numbers(spacing, function):
    with pytest.raises(ValueError, match="`spacing` must make the half diagonal lie between"):
        function(np.eye(3, dtype=bool), 4, 5, spacing=spacing)


def test_heights_must_be_exact():
    with pytest.raises(ValueError, match=f"`heights` must be exact in float64, got {HALF}"):
        ecc.euler_transform(np.eye(3, dtype=bool), 4, [0, HALF])


def test_weights_whose_sums_overflow():
    three = np.full((1, 5), 2**62 - 1)
    three[:, 1::2] = 0
    with pytest.raises(ValueError, match="absolute values add up to less than 2\\*\\*63"):
        ecc.euler_transform(three, 4, 5, weighted=True)
    fits = np.array([[2**61, 0, 2**61]])
    assert ecc.euler_transform(fits, [[0, 1]], [9], weighted=True).values.tolist() == [[2**62]]


@pytest.mark.parametrize("value", [1.7e308, -1.7e308])
def test_floats_whose_sums_overflow(value):
    with pytest.raises(ValueError, match="`image` must hold weights whose sums are finite"):
        ecc.euler_transform(np.full((2, 2), value), 4, 5, weighted=True)


def test_weights_of_volumes_whose_sums_overflow():
    """A point is the highest of up to eight cells, of which four count with one sign."""
    volume = np.zeros((2, 2, 2), np.int64)
    volume[0, 0, 0] = volume[1, 1, 1] = 2**60
    with pytest.raises(ValueError, match="absolute values add up to less than 2\\*\\*61"):
        ecc.euler_transform(volume, 4, 5, weighted=True)
    volume[0, 0, 0] -= 2**20
    found = ecc.euler_transform(volume, [[0, 0, 1]], [9], weighted=True)
    assert found.values.dtype == np.int64


@pytest.mark.parametrize("options", [{"direction_scale": 1e308}, {"spacing": 1e308}])
def test_heights_of_a_direction_that_overflow(options):
    message = "`direction_scale` and `spacing` must keep the added heights finite"
    with pytest.raises(ValueError, match=message):
        ecc.euler_curve(np.zeros((9, 9)), [0], direction=(1, 1), **options)
