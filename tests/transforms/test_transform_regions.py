"""Transforms of labelled regions: against the transform of each region alone."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transform_cases import some_directions

import ecc_core as ecc
from ecc_core.testing import strategies as ecc_st


def check(labels, directions, heights, normalize=None, **options):
    result = ecc.region_transforms(labels, directions, heights, normalize=normalize, **options)
    assert result.labels.dtype == labels.dtype
    assert result.values.dtype == np.int64
    np.testing.assert_array_equal(result.labels, np.unique(labels[labels > 0]))
    assert result.values.shape == (*result.labels.shape, len(directions), len(result.heights))
    for label, values in zip(result.labels, result.values, strict=True):
        at = np.argwhere(labels == label)
        box = tuple(map(slice, at.min(axis=0), at.max(axis=0) + 1))
        mask = labels[box] == label
        size = mask.shape * np.array(options.get("spacing") or 1.0)
        scale = np.linalg.norm(size / 2) if normalize else 1.0
        alone = ecc.euler_transform(mask, directions, result.heights * scale, **options)
        np.testing.assert_array_equal(values, alone.values)


@given(st.data(), st.integers(1, 3), st.booleans(), st.sampled_from([None, "radius"]))
def test_each_region_as_if_alone(data, ndim, dual, normalize):
    shape = data.draw(st.sampled_from([(60,), (25, 31), (6, 17, 13), (1, 70)]))
    labels = data.draw(ecc_st.labels(shape))
    spacing = data.draw(st.sampled_from([None, [0.5, 1.0, 1.7][: len(shape)]]))
    heights = data.draw(
        st.sampled_from([np.linspace(-6, 6, 30), np.arange(-3, 3.5, 0.5), [-2.0, -0.3, 0.1, 4.0]])
    )
    options = {"spacing": spacing, "connectivity": len(shape) if dual else 1}
    check(labels, some_directions(len(shape)), heights, normalize, **options)


def test_more_corners_than_room():
    """The list of corners is written in parts."""
    labels = np.arange(1, 300 * 400 + 1).reshape(300, 400)  # Every point is a region of its own.
    result = ecc.region_transforms(labels, 3, [-1.0, 0.0, 1.0])
    one = ecc.euler_transform(np.ones((1, 1), bool), 3, [-1.0, 0.0, 1.0])
    np.testing.assert_array_equal(result.labels, labels.ravel())
    np.testing.assert_array_equal(result.values, np.broadcast_to(one.values, (120000, 3, 3)))


@pytest.mark.parametrize(
    "largest", [np.int64(2**63 - 1), np.uint64(2**40), np.uint8(255), np.int32(2**31 - 1)]
)
def test_large_labels(largest):
    labels = np.zeros((5, 6), dtype=largest.dtype)
    labels[1:3, 1:4] = largest
    labels[3:, 4:] = 1
    check(labels, some_directions(2), np.linspace(-3, 3, 9))


def test_default_range_sees_the_largest_region():
    labels = np.zeros((20, 30), dtype=int)
    labels[2:9, 3:28] = 4
    labels[10, 10] = 2
    result = ecc.region_transforms(labels, 8, 5)
    assert result.heights[-1] == pytest.approx(np.hypot(7, 25) / 2)
    assert result.heights[0] == -result.heights[-1]
    np.testing.assert_array_equal(result.values[:, :, -1], 1)
    np.testing.assert_array_equal(result.values[:, :, 0], 0)


def test_radius_takes_size_out():
    small = np.random.default_rng(0).random((7, 9)) < 0.7
    large = np.kron(small, np.ones((3, 3), bool))
    labels = np.zeros((40, 60), dtype=int)
    labels[1:8, 1:10][small] = 1
    labels[12:33, 12:39][large] = 2
    result = ecc.region_transforms(labels, 16, 33, normalize="radius")
    assert result.heights[-1] == pytest.approx(1)
    # The same but for rounding of the largest heights, which a level in the middle does not meet.
    np.testing.assert_array_equal(result.values[0], result.values[1])
    assert (ecc.region_transforms(labels, 16, 33).values[0] != result.values[0]).any()


@pytest.mark.parametrize("labels", [np.zeros((4, 5), int), np.zeros((0, 5), int), np.zeros(3, int)])
def test_no_regions(labels):
    result = ecc.region_transforms(labels, 6, 7)
    assert result.labels.shape == (0,)
    assert result.values.shape == (0, 6, 7)
    assert result.values.dtype == np.int64


def test_masked_labels_are_background():
    labels = np.array([[1, 1, 2], [1, 1, 2]])
    masked = np.ma.array(labels, mask=labels == 2)
    np.testing.assert_array_equal(ecc.region_transforms(masked, 4, 4).labels, [1])


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (np.ones((3, 3)), TypeError, "have an integer dtype, got float64"),
        ([[1, -2]], ValueError, "not be negative, got -2"),
        (np.array([[2**63]], np.uint64), ValueError, f"be below 2**63, got {2**63}"),
        (3, ValueError, "have 1 to 3 axes, got shape ()"),
    ],
)
def test_bad_labels(labels, error, message):
    with pytest.raises(error, match=re.escape(f"`labels` must {message}")):
        ecc.region_transforms(labels)


def test_other_scales_are_refused():
    with pytest.raises(ValueError, match="`normalize` must be None or \"radius\", got 'size'"):
        ecc.region_transforms([[1, 0]], normalize="size")
