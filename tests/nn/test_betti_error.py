"""`BettiError`: differences of Betti numbers, also in windows."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

import ecc_core as ecc
from ecc_core.nn import BettiError


def numbers(image):
    return np.array(ecc.betti_numbers(image >= 0.5))


@pytest.fixture
def pair():
    rng = np.random.default_rng(2)
    return rng.random((2, 3, 10, 11)).astype(np.float32), rng.random((2, 3, 10, 11)) > 0.6


def differences(prediction, target):
    """Return by how much the numbers of each dimension differ."""
    return np.abs(numbers(prediction) - numbers(target))


def test_sums_differences(pair):
    prediction, target = pair
    errors = BettiError(2)(prediction, target)
    assert errors.shape == (2, 3)
    expected = np.empty((2, 3))
    for place in np.ndindex(expected.shape):
        expected[place] = differences(prediction[place], target[place]).sum()
    assert_array_equal(errors, expected)
    volumes = BettiError(3)(prediction, target)
    assert volumes.shape == (2,)
    assert volumes[1] == differences(prediction[1], target[1]).sum()
    assert_array_equal(BettiError(2)(target, target), np.zeros((2, 3)))


def test_averages_windows(pair):
    prediction, target = (image[0, 0] for image in pair)
    parts = [(slice(y, y + 4), slice(x, x + 6)) for y in (0, 4, 8) for x in (0, 6)]
    each = [differences(prediction[part], target[part]).sum() for part in parts]
    assert BettiError(2, window=(4, 6))(prediction, target) == np.mean(each)
    assert BettiError(2, window=20)(prediction, target) == BettiError(2)(prediction, target)


def test_takes_tensors(pair):
    prediction, target = map(torch.from_numpy, pair)
    errors = BettiError(2, threshold=0.3, connectivity=1)(prediction, target)
    assert isinstance(errors, torch.Tensor)
    expected = BettiError(2, threshold=0.3, connectivity=1)(*pair)
    assert_array_equal(errors.numpy(), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_spatial": 4}, "`n_spatial`.*4"),
        ({"window": 0}, "`window`.*0"),
        ({"window": (3,)}, "`window`"),
        ({"window": 1.5}, "`window`.*1.5"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        BettiError(**options)


def test_bad_shapes(pair):
    prediction, target = pair
    with pytest.raises(ValueError, match=r"`prediction` and `target`.*\(2, 3, 10, 11\)"):
        BettiError(2)(prediction, target[0])
    with pytest.raises(ValueError, match="points"):
        BettiError(2)(prediction[..., :0], target[..., :0])


@pytest.mark.parametrize("threshold", [0.5, 0.2])
def test_logits(pair, threshold):
    prediction, target = pair
    logits = np.log(prediction / (1 - prediction))
    expected = BettiError(2, threshold=threshold)(prediction, target)
    found = BettiError(2, threshold=threshold, from_logits=True)
    assert_array_equal(found(logits, target), expected)
    assert_array_equal(found(torch.from_numpy(logits), torch.from_numpy(target)), expected)


def test_logits_of_matched_errors(pair):
    prediction, target = pair
    logits = np.log(prediction / (1 - prediction))
    expected = BettiError(2, matched=True)(prediction, target)
    assert_array_equal(BettiError(2, matched=True, from_logits=True)(logits, target), expected)
    with pytest.raises(ValueError, match="`threshold` must be between 0 and 1 with `from_logits`"):
        BettiError(2, threshold=0, from_logits=True)


@pytest.mark.parametrize("library", [np.asarray, torch.from_numpy])
def test_what_are_no_probabilities(pair, library):
    prediction, target = map(library, pair)
    with pytest.raises(ValueError, match=r"`prediction` must be between 0 and 1.*from_logits=True"):
        BettiError(2)(4 * prediction - 2, target)
    with pytest.raises(ValueError, match=r"`target` must be between 0 and 1.*got 255"):
        BettiError(2)(prediction, library(255.0 * pair[1]))
    whole = library(pair[1].astype(np.uint8) * np.uint8(255))  # Masks of integers may hold 255.
    assert_array_equal(BettiError(2)(whole, target), np.zeros((2, 3)))
    bright = BettiError(2, threshold=127.5)  # These images are no probabilities.
    assert_array_equal(bright(255 * prediction, 255.0 * target), BettiError(2)(prediction, target))


class TestClasses:
    """Class indices are counted class by class: never as one object."""

    CLASSES = np.random.default_rng(5).integers(0, 4, (2, 14, 15))
    OTHERS = np.random.default_rng(6).integers(0, 4, (2, 14, 15))

    def expected(self, classes):
        errors = []
        for own, other in zip(self.CLASSES, self.OTHERS, strict=True):
            differences = [numbers(own == c) - numbers(other == c) for c in classes]
            errors.append(np.abs(differences))
        return np.array(errors)

    @pytest.mark.parametrize("background", [True, False])
    @pytest.mark.parametrize("axis", [True, False])
    def test_each_is_a_mask(self, background, axis):
        given = [part[:, None] if axis else part for part in (self.CLASSES, self.OTHERS)]
        options = {"num_classes": 4, "include_background": background}
        expected = self.expected(range(0 if background else 1, 4))
        assert_array_equal(BettiError(**options)(*given), expected.sum(-1))
        assert_array_equal(BettiError(**options, per_dimension=True)(*given), expected)

    def test_the_greatest_score_counts(self):
        scores = np.eye(4)[self.CLASSES].transpose(0, 3, 1, 2) - 0.3
        found = BettiError(num_classes=4)(scores, self.OTHERS)
        assert_array_equal(found, self.expected(range(4)).sum(-1))

    def test_without_the_number_of_classes_they_are_refused(self):
        with pytest.raises(ValueError, match=r"`prediction`.*`num_classes`"):
            BettiError()(self.CLASSES, self.OTHERS)


def test_errors_by_dimension(pair):
    errors = BettiError(2, per_dimension=True)(*pair)
    assert errors.shape == (2, 3, 2)
    prediction, target = pair
    expected = np.empty((2, 3, 2))
    for place in np.ndindex(2, 3):
        expected[place] = differences(prediction[place], target[place])
    assert_array_equal(errors, expected)
    assert_array_equal(errors.sum(-1), BettiError(2)(*pair))


def test_volumes_are_not_counted_slice_by_slice():
    volumes = np.ones((1, 1, 4, 5, 6), np.float32)
    with pytest.raises(ValueError, match="n_spatial=3"):
        BettiError()(volumes, volumes)
