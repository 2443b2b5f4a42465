"""Losses on persistence pairs on CUDA devices equal those on the host."""

import pytest

from ecc_core.nn import PersistenceLoss, _classes

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("shape", [(3, 2, 17, 20), (2, 1, 6, 7, 9)])
def test_persistence_loss_and_its_gradient(monkeypatch, shape, masked):
    monkeypatch.setattr(_classes, "LEAST_ON_DEVICE", 0)
    torch.manual_seed(0)
    images = torch.rand(shape)
    targets = (torch.rand(shape) < 0.5).float()
    mask = torch.rand(shape) < 0.8 if masked else None
    results = []
    for device in ("cpu", "cuda"):
        own = images.detach().to(device, copy=True).requires_grad_()
        shown = None if mask is None else mask.to(device)
        loss = PersistenceLoss(min_persistence=0.1, n_spatial=len(shape) - 2)
        found = loss(own, targets.to(device), mask=shown)
        found.backward()
        results.append((found.detach().cpu(), own.grad.cpu()))
    torch.testing.assert_close(*results)
