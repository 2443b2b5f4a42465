"""Layers by the CUDA kernels, as one function of autograd, against the same layers on the CPU."""

import pytest
import torch
from emulated_soft import drawn
from layer_cases import CASES, assert_near, in_double, step

from ecc_core._torch.transform import Transformed

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


def test_parameters_of_another_device_are_left_to_operators(soft, monkeypatch):
    """Which raise an error. Kernels would read the memory of the host."""
    image = drawn((3, 4))
    directions, numbers, one = torch.ones(2, 2), torch.ones(2), torch.tensor(1.0)
    weighted = Transformed(image, directions, numbers, one, 1, "max", (1.0, 1.0))
    asked = (
        (soft.cuda_transforms.fuses_transform, (weighted, one)),
        (soft.cuda.adds_heights, (image, directions, numbers)),
        (soft.cuda_layers._are_alike, ((image, numbers, one, directions),)),
    )
    for takes, given in asked:
        assert takes(*given)
    for elsewhere in (directions, numbers):
        monkeypatch.setattr(torch.Tensor, "get_device", lambda t, e=elsewhere: -1 if t is e else 0)
        for takes, given in asked:
            assert not takes(*given)
