"""Layers by the CUDA kernels, as one function of autograd, against the same layers on the CPU."""

import pytest
import torch
from emulated_soft import drawn
from layer_cases import CASES, assert_all_near, assert_near, in_double, step

from ecc_core._backends.soft import LayerOptions, LayerParameters, Transformed

OTHERS = "superlevel", "volume", "one channel", "sides", "fixed heights"
"""Cases that share code with the rest."""
SOME = [pytest.param(case, marks=pytest.mark.slow) if case in OTHERS else case for case in CASES]


OPTIONS = LayerOptions(n_spatial=2, connectivity=1, superlevel=False, spacing=(1.0, 1.0))


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
    assert_all_near(own[1:], others, terms=of_image.abs().sum())
    with on_device():
        alone, slopes = step(layer, image, is_needed=False)
    assert torch.equal(alone, found)
    torch.testing.assert_close(list(slopes), list(own[1:]), rtol=0, atol=0)


@pytest.mark.parametrize("case", ["directions", "windows", "transform"])
def test_recorded_gradients_equal_those_of_the_cpu(on_device, case):
    """Kernels record nothing, so that operators compute gradients that are recorded."""
    shape, layer = CASES[case]
    image = drawn(shape)
    _, slopes = step(in_double(layer), image.double())
    with on_device():
        _, own = step(layer, image, create_graph=True)
    assert all(gradient.requires_grad for gradient in own[:1])
    assert_all_near([one.detach() for one in own], slopes, terms=slopes[0].abs().sum())


@pytest.mark.parametrize("parameter", ["directions", "numbers"])
def test_parameters_of_another_device_are_left_to_operators(soft, monkeypatch, parameter):
    """Operators raise an error, where kernels would read addresses of the host."""
    image = drawn((3, 4))
    directions, numbers, one = torch.ones(2, 2), torch.ones(2), torch.tensor(1.0)
    weighted = Transformed(image, directions, numbers, one, 1, "max", (1.0, 1.0))
    parameters = LayerParameters(numbers, one, one, directions, numbers)

    def taken():
        curves = soft.cuda_layers.layer_curves(image, parameters, OPTIONS)
        transform = soft.cuda_transforms.fused_transform(weighted, one)
        can_add_heights = soft.cuda.can_add_heights(image, directions, numbers)
        return curves is not None, transform is not None, can_add_heights

    assert taken() == (True, True, True)
    elsewhere = {"directions": directions, "numbers": numbers}[parameter]
    monkeypatch.setattr(torch.Tensor, "get_device", lambda t: -1 if t is elsewhere else 0)
    assert taken() == (False, False, False)


def test_steps_with_a_gradient_are_left_to_operators(soft):
    """Kernels would leave it unwritten."""
    image = drawn((3, 4))
    numbers = torch.ones(2)
    step = torch.tensor(1.0, requires_grad=True)
    parameters = LayerParameters(numbers, step, numbers[:1], None, None)
    assert soft.cuda_layers.layer_curves(image, parameters, OPTIONS) is None
    weighted = Transformed(image, torch.eye(2), numbers, numbers[0], 1, "max", (1.0, 1.0))
    assert soft.cuda_transforms.fused_transform(weighted, step) is None
