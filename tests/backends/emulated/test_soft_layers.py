"""Layers by the CUDA kernels, as one function of autograd, against the same layers on the CPU."""

from contextlib import contextmanager

import pytest
import torch
from layer_cases import CASES, assert_near, in_double, step
from soft_modules import drawn

import ecc_core._torch
from ecc_core.nn.layers import _calibrated
from ecc_core.nn.layers import transform as transform_layer


@pytest.fixture
def on_device(soft, monkeypatch):
    """Return what sends layers with tensors of the CPU the way of CUDA devices for a while."""
    for name in ("cuda_layers", "cuda_transforms"):
        monkeypatch.setattr(ecc_core._torch, name, getattr(soft, name), raising=False)

    @contextmanager
    def send():
        with monkeypatch.context() as patch:
            patch.setattr(torch.Tensor, "is_cuda", True, raising=False)
            for module in (_calibrated, transform_layer):
                patch.setattr(module, "has_kernels", lambda _: True)
            yield
            assert soft.launched
        soft.launched.clear()

    return send


@pytest.mark.parametrize("case", CASES)
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
