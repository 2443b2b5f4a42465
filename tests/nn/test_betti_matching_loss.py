"""`BettiMatchingLoss` and matched `BettiError` against reduced boundary matrices and labels."""

from functools import partial

import numpy as np
import pytest
import torch
from nn_helpers import noise
from oracles.matching import betti_matching

from ecc_core.nn import BettiError, BettiMatchingLoss

draw = partial(noise, dtype=torch.float64)


def error_of(image, target, connectivity, least=0.0):
    """The loss of an image, from the points that the oracle matches."""
    image, target = (np.asarray(x, float) for x in (image, target))
    matched, false, missing = betti_matching(image, target, connectivity, superlevel=True)

    def values(one, of):
        flat = of.ravel()
        return np.array([flat[one[1]], 0 if one[2] < 0 else flat[one[2]]])

    gaps = [values(a, image) - values(b, target) for a, b in matched]
    total = sum((gap**2).sum() for gap in gaps)
    for classes, of in ((false, image), (missing, target)):
        lengths = [values(one, of)[0] - values(one, of)[1] for one in classes]
        total += sum(length**2 / 2 for length in lengths if length >= least)
    return total


@pytest.mark.parametrize("shape", [(5, 6), (3, 4, 3)], ids=str)
@pytest.mark.parametrize("least", [0, 0.3])
def test_equals_reduced_matrices(shape, least):
    images = draw(2, 2, *shape)
    targets = draw(2, 2, *shape, seed=1) > 0.6
    options = {"connectivity": 1, "n_spatial": len(shape), "min_persistence": least}
    found = BettiMatchingLoss(**options, reduction="none")(images, targets)
    expected = np.empty((2, 2))
    for place in np.ndindex(2, 2):
        expected[place] = error_of(images[place], targets[place], 1, least)
    assert found.numpy() == pytest.approx(expected)
    probabilities = BettiMatchingLoss(**options)(images, draw(2, 2, *shape, seed=2))
    assert probabilities.shape == ()


def test_windows_and_masks():
    image = draw(8, 9)
    target = draw(8, 9, seed=1) > 0.7
    padded = [np.pad(x.numpy(), ((0, 0), (0, 3))) for x in (image, target)]
    windows = [np.s_[y : y + 4, x : x + 4] for y in (0, 4) for x in (0, 4, 8)]
    wanted = [error_of(padded[0][window], padded[1][window], 1) for window in windows]
    loss = BettiMatchingLoss(4, connectivity=1)
    assert loss(image, target).item() == pytest.approx(np.mean(wanted))
    shown = torch.ones(8, 9, dtype=torch.bool)
    shown[:, 4:] = False
    part = BettiMatchingLoss(connectivity=1)(image, target, shown)
    assert part.item() == pytest.approx(error_of(image[:, :4], target[:, :4], 1))


def test_gradients():
    images = draw(2, 1, 3, 4).requires_grad_()
    targets = draw(2, 1, 3, 4, seed=1) > 0.5
    loss = BettiMatchingLoss(3)
    assert torch.autograd.gradcheck(lambda x: loss(x, targets), images)


def test_moves_the_true_hole():
    """PersistenceLoss keeps the deeper hole, which is the false one."""
    target = torch.ones(1, 1, 5, 9)
    target[..., 2, 2] = 0
    prediction = torch.ones(1, 1, 5, 9)
    prediction[..., 2, 2], prediction[..., 2, 6] = 0.4, 0.1
    prediction.requires_grad_()
    BettiMatchingLoss()(prediction, target).backward()
    assert prediction.grad[0, 0, 2, 2] > 0  # The hole must become deeper.
    assert prediction.grad[0, 0, 2, 6] < 0  # The other one must be filled.


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(dtype):
    images = torch.rand(1, 1, 6, 7, generator=torch.Generator().manual_seed(0)).to(dtype)
    targets = images > 0.5
    found = BettiMatchingLoss()(images, targets)
    assert found.dtype == torch.float32
    assert found == BettiMatchingLoss()(images.float(), targets)


def test_targets_without_objects():
    images = torch.rand(1, 1, 5, 5)
    none = torch.zeros(1, 1, 5, 5)
    assert BettiMatchingLoss()(images, none) > 0
    assert BettiError(matched=True)(none, none).tolist() == [[0.0]]


def test_matched_error():
    target = torch.zeros(2, 1, 6, 9, dtype=torch.bool)
    target[:, :, 1:3, 1:3] = True
    prediction = target.clone()
    prediction[1] = target[1].flip(-1)
    assert BettiError()(prediction, target).tolist() == [[0.0], [0.0]]
    error = BettiError(matched=True, per_dimension=True)
    assert error(prediction, target).tolist() == [[[0.0, 0.0]], [[2.0, 0.0]]]
    assert BettiError(matched=True)(prediction.numpy(), target.numpy()).tolist() == [[0.0], [2.0]]
    logits = torch.where(prediction, 3.0, -3.0)
    found = BettiError(matched=True, from_logits=True, window=(6, 5))(logits, target)
    assert found.tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize(
    ("prediction", "message"),
    [(torch.rand(5, 6) + 1, "`input` must be between 0 and 1"), (torch.rand(6, 5), "shape")],
)
def test_refusals(prediction, message):
    with pytest.raises(ValueError, match=message):
        BettiMatchingLoss()(prediction, torch.ones(5, 6))
