"""Layers and losses on a CUDA device without CuPy: in operators of torch, as with kernels."""

import sys

import pytest
import torch

from ecc_core._backends import fallback, registry
from ecc_core.nn import (
    BettiCurveLayer,
    BettiError,
    BettiMatchingLoss,
    EulerCurveLayer,
    EulerCurveLoss,
    EulerCurveMap,
    EulerTransformLayer,
    LifetimeLayer,
    PersistenceLoss,
)

pytestmark = pytest.mark.gpu

MODULES = {
    "curve": lambda: EulerCurveLayer(5, range=(0, 1), learn_sharpness=True),
    "directions": lambda: EulerCurveLayer(5, range=(0, 1), directions=2, direction_scale=0.02),
    "exact": lambda: EulerCurveLayer(5, range=(0, 1), hard="forward"),
    "map": lambda: EulerCurveMap(5, range=(0, 1), window=8),
    "transform": lambda: EulerTransformLayer(3, 6, range=(-20, 20)),
    "exact transform": lambda: EulerTransformLayer(3, 6, range=(-20, 20), hard="forward"),
    "Betti curves": lambda: BettiCurveLayer(5, range=(0, 1)),
    "exact Betti curves": lambda: BettiCurveLayer(5, range=(0, 1), hard="forward"),
    "lifetimes": lambda: LifetimeLayer(4),
    "curve loss": lambda: EulerCurveLoss(window=8),
    "persistence loss": lambda: PersistenceLoss(),
    "matching loss": lambda: BettiMatchingLoss(),
}


def results(make):
    """What a module returns, and the gradients of the image and of all parameters."""
    torch.manual_seed(0)
    module = make().cuda()
    image = torch.rand(2, 1, 17, 20, device="cuda").requires_grad_()
    given = (image, torch.rand(2, 1, 17, 20, device="cuda") < 0.5)
    found = module(*given) if make().__class__.__name__.endswith("Loss") else module(image)
    inputs = image, *module.parameters()
    return found, *torch.autograd.grad(found.square().sum(), inputs, allow_unused=True)


@pytest.fixture
def forgotten():
    yield
    for remembered in (registry.is_usable, fallback._in_torch):
        remembered.cache_clear()


@pytest.mark.filterwarnings("ignore:soft curves on cuda are computed by operators of torch")
@pytest.mark.parametrize("make", MODULES.values(), ids=MODULES)
def test_results_are_those_of_kernels(monkeypatch, forgotten, make):
    wanted = results(make)
    monkeypatch.setitem(sys.modules, "cupy", None)
    registry.is_usable.cache_clear()
    assert not fallback.has_kernels("cuda")
    found = results(make)
    for own, true in zip(found, wanted, strict=True):
        assert (own is None) == (true is None)
        if own is not None:
            scale = true.abs().max().item() if true.numel() else 0.0
            torch.testing.assert_close(own, true, rtol=1e-4, atol=1e-4 * scale)


@pytest.mark.parametrize("matched", [False, True])
def test_errors_are_those_of_kernels(monkeypatch, forgotten, matched):
    torch.manual_seed(0)
    given = [torch.rand(2, 1, 17, 20, device="cuda") < 0.5 for _ in range(2)]
    metric = BettiError(matched=matched, per_dimension=True)
    wanted = metric(*given)
    monkeypatch.setitem(sys.modules, "cupy", None)
    registry.is_usable.cache_clear()
    found = metric(*given)
    assert found.device == given[0].device
    assert torch.equal(found, wanted)
