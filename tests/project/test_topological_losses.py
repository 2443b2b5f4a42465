"""The losses from the literature that the studies compare with."""

import importlib
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

FOLDER = Path(__file__).parents[2] / "benchmarks" / "evidence"


@pytest.fixture
def study(monkeypatch):
    """Import a module of the folder."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


@pytest.fixture
def losses(study):
    return study("topological_losses")


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
    columns = [part.tolist() for part in losses.pairs_of(images)]
    together = set(zip(*columns, strict=True))
    alone = set()
    for index, image in enumerate(images):
        groups, births, deaths = losses.pairs_of(image[None])
        remains = deaths == image.numel()
        places = births + 36 * index, torch.where(remains, images.numel(), deaths + 36 * index)
        columns = [part.tolist() for part in (groups + 2 * index, *places)]
        alone |= set(zip(*columns, strict=True))
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


@pytest.mark.parametrize("shape", [(6, 7), (4, 5, 6)], ids=str)
def test_points_are_penalized_for_the_worst_neighbour_of_their_class(study, shape):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=shape)
    mask = rng.random(shape) < 0.5
    worst = np.empty(shape)
    for point in np.ndindex(*shape):
        firsts = [max(i - 1, 0) for i in point]
        around = tuple(slice(first, i + 2) for first, i in zip(firsts, point, strict=True))
        same = logits[around][mask[around] == mask[point]]
        worst[point] = same.min() if mask[point] else same.max()
    given, wanted, target = (
        torch.tensor(x)[None, None] for x in (logits, worst, mask.astype(float))
    )
    study_losses = study("study_losses")
    found = study_losses.neighbour_penalty(given, target)
    assert found.item() == pytest.approx(study_losses.base_loss(wanted, target).item())


def test_corrected_p_values(study):
    """The least value is multiplied by four, the next one by three; they do not decrease."""
    found = study("loss_study").holm([0.01, 0.04, 0.03, 0.005])
    assert found == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_weights_are_chosen_by_validation_images_of_one_seed(study):
    runs = study("study_runs")

    def record(seed, weight, as_it_is, cleaned, dice=0.8):
        errors = zip(runs.WAYS, (as_it_is, cleaned), strict=True)
        ways = {way: {"validation": error, "dice": dice} for way, error in errors}
        loss = "SCNP" if weight else runs.BASE
        return {"subject": "walls", "seed": seed, "loss": loss, "weight": weight, **ways}

    records = [
        record(runs.TUNING, 0.0, 5, 5),
        record(runs.TUNING, 1.0, 3, 3),
        record(runs.TUNING, 2.0, 4, 1),
        record(runs.TUNING, 4.0, 1, 5),
        record(runs.TUNING, 8.0, 0, 0, dice=0.6),
        record(runs.TUNING + 1, 4.0, 0, 0),
    ]
    assert runs.chosen_weights(records) == {("walls", runs.BASE): 0.0, ("walls", "SCNP"): 2.0}


@pytest.mark.parametrize("name", ["walls", "vessels", "tubes"])
def test_images_are_fresh_for_each_seed(study, name, monkeypatch):
    images = study("study_images")
    monkeypatch.setattr(images, "COUNTS", (2, 1, 1))
    drawn = [images.SUBJECTS[name].draw(seed) for seed in (1, 1, 2)]
    first, again, other = ([part[0] for part in sets] for sets in drawn)
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    pairs = zip(first, other, strict=True)
    assert not any(torch.equal(one, another) for one, another in pairs)
    assert not torch.equal(first[1], first[2])
    masks = [part[1] for part in drawn[0]]
    assert all(0.03 < mask.float().mean() < 0.5 for mask in masks)
