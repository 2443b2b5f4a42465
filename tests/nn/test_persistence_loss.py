"""`PersistenceLoss` against the diagrams of GUDHI."""

import itertools
from functools import partial

import numpy as np
import pytest
import torch
from nn_helpers import noise
from topology_helpers import intervals

from ecc_core.nn import PersistenceLoss

draw = partial(noise, dtype=torch.float64)


def diagrams(image, connectivity):
    """Births and deaths (k, 2) of superlevel sets by dimension; what never dies dies at 0."""
    found = intervals(-np.asarray(image, float), connectivity)
    return [-np.where(np.isinf(pairs), 0, pairs) for pairs in found]


def error_of(image, target, connectivity, least=0.0):
    total = 0.0
    both = (diagrams(x, connectivity) for x in (image, target))
    for own, true in zip(*both, strict=True):
        births, deaths = own[np.argsort(own[:, 1] - own[:, 0], kind="stable")].T
        count = int(((true[:, 0] >= 0.5) & (true[:, 1] < 0.5)).sum())
        others = (births - deaths)[count:]
        total += ((1 - births[:count]) ** 2 + deaths[:count] ** 2).sum()
        total += (others[others >= least] ** 2).sum()
    return total


@pytest.mark.parametrize("shape", [(9,), (8, 11), (5, 6, 7)])
@pytest.mark.parametrize("connectivity", [1, None])
@pytest.mark.parametrize("least", [0, 0.4])
def test_equals_diagrams(shape, connectivity, least):
    images, targets = draw(2, 3, *shape), draw(2, 3, *shape, seed=1) > 0.6
    options = {"connectivity": connectivity, "n_spatial": len(shape), "min_persistence": least}
    found = PersistenceLoss(**options, reduction="none")(images, targets)
    assert found.shape == (2, 3)
    used = len(shape) if connectivity is None else 1
    for i, j in np.ndindex(2, 3):
        wanted = error_of(images[i, j].numpy(), targets[i, j].numpy(), used, least)
        assert found[i, j].item() == pytest.approx(wanted)
    assert PersistenceLoss(**options)(images, targets) == found.mean()
    total = PersistenceLoss(**options, reduction="sum")(images, targets.to(torch.uint8))
    torch.testing.assert_close(total, found.sum())


def test_windows():
    image, target = draw(10, 13), draw(10, 13, seed=1) > 0.7
    padded = [np.pad(x.numpy(), ((0, 2), (0, 5))) for x in (image, target)]
    corners = itertools.product(range(0, 12, 6), range(0, 18, 6))
    wanted = [error_of(*(x[y : y + 6, k : k + 6] for x in padded), 2) for y, k in corners]
    assert PersistenceLoss(6)(image, target).item() == pytest.approx(np.mean(wanted))


@pytest.mark.parametrize("window", [None, 4])
def test_gradients(window):
    logits, target = draw(2, 8, 9) * 6 - 3, draw(2, 8, 9, seed=1) > 0.6
    loss = PersistenceLoss(window, from_logits=True)
    assert torch.autograd.gradcheck(lambda x: loss(x, target), logits.requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_dtypes(dtype):
    image, target = draw(2, 7, 8, dtype=dtype), draw(2, 7, 8, seed=1) > 0.5
    found = PersistenceLoss()(image, target)
    assert found.dtype == dtype
    wanted = PersistenceLoss()(image.double(), target).item()
    assert found.item() == pytest.approx(wanted, rel=1e-6 if dtype == torch.float32 else 2e-2)


def test_bad_input():
    image = draw(2, 6, 7)
    with pytest.raises(ValueError, match=r"`min_persistence`.*-1"):
        PersistenceLoss(min_persistence=-1)
    with pytest.raises(ValueError, match="`window` must be a positive int, got 0"):
        PersistenceLoss(0)
    with pytest.raises(ValueError, match=r"`reduction` must be .* got .median"):
        PersistenceLoss(reduction="median")
    with pytest.raises(ValueError, match=r"`target` must have the shape of `input`, \(2, 6, 7\)"):
        PersistenceLoss()(image, image[0])
    with pytest.raises(ValueError, match="`input` must be between 0 and 1"):
        PersistenceLoss()(image * 4, image > 0.5)
    with pytest.raises(TypeError, match="`input` must be a torch tensor, got ndarray"):
        PersistenceLoss()(image.numpy(), image)
    assert PersistenceLoss(reduction="sum")(image[:0], image[:0]) == 0
