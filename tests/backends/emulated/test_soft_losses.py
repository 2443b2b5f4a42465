"""Losses of curves by the CUDA kernels, as one function of autograd, against those of the CPU."""

import weakref
from copy import deepcopy

import pytest
import torch
from emulated_soft import drawn
from loss_cases import CASES, errors

OTHERS = "volume", "sum", "images", "each by windows"
"""Cases that share code with the rest."""
SOME = [pytest.param(case, marks=pytest.mark.slow) if case in OTHERS else case for case in CASES]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("case", SOME)
def test_losses_equal_those_of_the_cpu(on_device, case, masked):
    shape, loss = CASES[case]
    known = errors(deepcopy(loss).double(), shape, masked, dtype=torch.float64)
    with on_device():
        found = errors(loss, shape, masked)
    torch.testing.assert_close([one.double() for one in found], list(known), rtol=1e-4, atol=1e-6)


def test_a_loss_depends_on_images_alone_and_keeps_none_after_its_backward_pass(on_device):
    shape, loss = CASES["images"]
    image = drawn(shape).requires_grad_()
    target = drawn(shape).requires_grad_()
    with on_device():
        assert not loss(image.detach(), target).requires_grad
    prediction = image * 0.5
    kept = weakref.ref(prediction)
    with on_device():
        found = loss(prediction, target)
    found.backward()
    del prediction
    assert kept() is None
    assert target.grad is None
    assert image.grad.abs().sum() > 0


def test_a_sharpness_may_be_learned_and_is_checked(on_device):
    """Operators compute it, as kernels have no gradient for it."""
    shape, loss = CASES["images"]
    image = drawn(shape)
    target = image.flip(-1)
    learned = deepcopy(loss)
    learned.sharpness = torch.nn.Parameter(torch.tensor(5.0))
    (known,) = torch.autograd.grad(learned(image, target), learned.sharpness)
    with on_device():
        loss(image, target)
        (found,) = torch.autograd.grad(learned(image, target), learned.sharpness)
        wrong = deepcopy(loss)
        wrong.sharpness = -1.0
        with pytest.raises(ValueError, match="`sharpness` must be positive"):
            wrong(image, target)
    assert known != 0
    assert torch.equal(found, known)


def test_images_of_more_points_than_kernels_number_are_left_to_operators(soft):
    kind = soft.loss_steps.Kind(
        n_spatial=2,
        connectivity=1,
        levels=4,
        sharpness=1.0,
        window=None,
        order=1.0,
        factor=1.0,
        is_reduced=True,
    )
    assert soft.loss_steps.plan_loss(kind, (1, 5, 6), torch.float32, 0) is not None
    assert soft.loss_steps.plan_loss(kind, (1, 1 << 16, 1 << 15), torch.float32, 0) is None
