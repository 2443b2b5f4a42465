"""Layers by the CUDA kernels, as one function of autograd, against the same layers on the CPU."""

import pytest
import torch
from emulated_soft import drawn
from layer_cases import CASES, assert_near, in_double, step

OTHERS = "superlevel", "volume", "one channel", "sides", "fixed heights"  # share code with the rest
SOME = [pytest.param(case, marks=pytest.mark.slow) if case in OTHERS else case for case in CASES]


@pytest.mark.parametrize("case", SOME)
def test_layers_equal_those_of_the_cpu(on_device, case):
    shape, layer = CASES[case]
    image = drawn(shape)
    known, slopes = step(in_double(layer), image.double())
    with on_device():
        found, own = step(layer, image)
    assert_near(found, known, terms=0)
    of_image, *others = slopes
    assert_near(own[0], of_image, terms=0)
    for one, other in zip(own[1:], others, strict=True):
        assert_near(one, other, terms=of_image.abs().sum())
    with on_device():
        alone, slopes = step(layer, image, is_needed=False)
    assert torch.equal(alone, found)
    for one, other in zip(slopes, own[1:], strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("case", ["directions", "windows", "transform"])
def test_recorded_gradients_equal_those_of_the_cpu(on_device, case):
    """Which operators compute, since kernels record nothing."""
    shape, layer = CASES[case]
    image = drawn(shape)
    _, slopes = step(in_double(layer), image.double())
    with on_device():
        _, own = step(layer, image, create_graph=True)
    assert all(gradient.requires_grad for gradient in own[:1])
    for one, other in zip(own, slopes, strict=True):
        assert_near(one.detach(), other, terms=slopes[0].abs().sum())
