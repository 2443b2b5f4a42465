"""The losses from the literature that the studies compare with."""

import importlib
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

FOLDER = Path(__file__).parents[2] / "benchmarks" / "evidence"


@pytest.fixture
def losses(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("topological_losses")


@pytest.fixture
def ring():
    mask = torch.zeros(1, 1, 16, 16)
    mask[..., 3:13, 3:13] = 1
    mask[..., 6:10, 6:10] = 0
    return mask


def test_gaps_in_a_centreline(losses, ring):
    """The wider the gap, the more of the centreline is missing."""
    found = []
    for columns in (0, 1, 3):
        torn = ring.clone()
        torn[..., 3:6, 6 : 6 + columns] = 0
        found.append(losses.centreline_dice(torn, ring).item())
    assert found[0] == pytest.approx(0, abs=1e-6)
    assert 0.01 < found[1] < found[2] / 2


def test_pairs_of_windows_are_those_of_each_alone(losses):
    images = torch.rand(3, 6, 6, generator=torch.Generator().manual_seed(0))
    together = set(zip(*(part.tolist() for part in losses.pairs_of(images)), strict=True))
    alone = set()
    for index, image in enumerate(images):
        groups, births, deaths = losses.pairs_of(image[None])
        remains = deaths == image.numel()
        places = births + 36 * index, torch.where(remains, images.numel(), deaths + 36 * index)
        alone |= set(zip(*(p.tolist() for p in (groups + 2 * index, *places)), strict=True))
    assert together == alone
    assert len(together) > 6


def test_components_and_holes_do_not_cancel_in_betti_curves(losses, ring):
    """A disc with a spot has one component more than a ring, and one hole less."""
    prediction = ring.clone()
    prediction[..., 6:10, 6:10] = 1
    prediction[..., 15, 15] = 1
    found = losses.betti_curve_loss(prediction, ring, 16).item()
    assert found == pytest.approx(2 / 16**2, rel=0.1)
    assert losses.betti_curve_loss(ring, ring, 16) == 0


def test_gradients_of_betti_curves(losses, ring):
    generator = torch.Generator().manual_seed(0)
    image = torch.rand(1, 1, 8, 8, generator=generator, dtype=torch.float64).requires_grad_()
    target = ring[..., 2:10, 2:10].double()
    assert torch.autograd.gradcheck(lambda x: losses.betti_curve_loss(x, target, 4), image)
