"""Which features and networks tell how many rings an image has: Betti or Euler curves, or neither.

    python -m benchmarks.rings [--seeds 5]

A seed is written when it is done, and not computed again. Writes benchmarks/results/rings.json and
.md.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.stats import ttest_rel
from sklearn.ensemble import RandomForestClassifier
from torch import Tensor, nn

import ecc_core as ecc
from ecc_core.nn import BettiCurveLayer, EulerCurveLayer, LifetimeLayer, parameter_groups

OUTPUT = Path(__file__).parent / "results" / "rings"
SIDE = 40
CLASSES = 5
PLACES = 3
"""Places of rings along each axis."""
NOISE = 0.25
BLURS = 0.7, 1.0, 1.4, 2.0
# The text below also has these numbers, in words.
COUNTS = {"training": 100, "validation": 200, "test": 400}
EPOCHS = 32
THRESHOLDS = 8
"""Thresholds of a layer."""
HIDDEN = 32
RATES = 1e-2, 3e-2
ABOUT = f"""Images of {SIDE} x {SIDE} points with noise of {NOISE} show whole rings and 0 to
{CLASSES - 1} other objects, which are discs or rings with a gap; the class is the number of whole
rings (0 to {CLASSES - 1}), and chance is {1 / CLASSES:.2f}. There are 100 images for training, 200
to choose the blur, the learning rate (0.01 or 0.03) and the epoch of at most {EPOCHS}, and 400 for
the test, all of them other ones for each seed. *Forest* is a random forest on exact curves of the
blurred image at 24 thresholds. The layers, with {THRESHOLDS} thresholds, follow a Gaussian blur of
a width that is learned with the rest of the network, or a convolution of 5 x 5 points to 4
channels, and two linear layers follow them, with {HIDDEN} units between. Mean accuracy, standard
deviation, and p of the paired t-test against the network with a layer of Euler curves behind the
same blur. Written by `python -m benchmarks.rings`."""

Images = NDArray[np.float32]
Classes = NDArray[np.int64]
Sets = dict[str, tuple[Images, Classes]]


def images(rng: np.random.Generator, count: int) -> tuple[Images, Classes]:
    """Return noisy images (count, SIDE, SIDE), and their numbers of whole rings."""
    y, x = np.mgrid[:SIDE, :SIDE]
    values = rng.normal(0, NOISE, (count, SIDE, SIDE))
    classes = rng.integers(0, CLASSES, count)
    step = SIDE / PLACES
    for image, rings in zip(values, classes, strict=True):
        objects = np.zeros((SIDE, SIDE))
        places = rng.permutation(PLACES**2)[: rings + rng.integers(0, CLASSES)]
        for number, place in enumerate(places):
            centre = step * (0.5 + np.array(divmod(place, PLACES))) + rng.uniform(-1, 1, 2) - 0.5
            radius = rng.uniform(4, 5.5)
            distance = np.hypot(y - centre[0], x - centre[1])
            band = (distance < radius) & (distance > radius - 2.5)
            if number < rings:
                objects[band] = 1
            elif rng.random() < 0.5:
                objects[distance < radius] = 1
            else:
                angle = np.arctan2(y - centre[0], x - centre[1]) - rng.uniform(-np.pi, np.pi)
                from_gap = np.abs(np.angle(np.exp(1j * angle)))
                objects[band & (from_gap > 0.6)] = 1
        image += objects
    return values.astype(np.float32), classes


def drawn(seed: int) -> Sets:
    rng = np.random.default_rng(seed)
    return {name: images(rng, count) for name, count in COUNTS.items()}


def by_forest(curves: Callable[..., NDArray[np.int64]]) -> Callable[[Sets, int], float]:
    """Return the accuracy of a forest on exact curves of blurred images."""

    def accuracy(sets: Sets, seed: int) -> float:
        best = -1.0
        chosen = 0.0
        for blur in BLURS:
            features = {
                name: curves(gaussian_filter(given, (0, blur, blur)))
                for name, (given, _) in sets.items()
            }
            forest = RandomForestClassifier(300, random_state=seed, n_jobs=1)
            forest.fit(features["training"], sets["training"][1])
            scores = {name: forest.score(features[name], sets[name][1]) for name in sets}
            if scores["validation"] > best:
                best = scores["validation"]
                chosen = scores["test"]
        return chosen

    return accuracy


EXACT_THRESHOLDS = np.linspace(-0.2, 1.2, 24)


def exact_betti(blurred: Images) -> NDArray[np.int64]:
    found = ecc.betti_curves(blurred, EXACT_THRESHOLDS, superlevel=True, axis=(1, 2), workers=1)
    return found.values.reshape(len(blurred), -1)


def exact_euler(blurred: Images) -> NDArray[np.int64]:
    found = ecc.euler_curve(blurred, EXACT_THRESHOLDS, superlevel=True, axis=(1, 2), workers=1)
    return found.values


class Blur(nn.Module):
    """A Gaussian blur of a width that is learned."""

    def __init__(self) -> None:
        super().__init__()
        self.log_width = nn.Parameter(torch.zeros(()))
        self.register_buffer("offsets", torch.arange(-5.0, 6.0))

    def forward(self, given: Tensor) -> Tensor:
        weights = torch.softmax(-((self.offsets / self.log_width.exp()) ** 2) / 2, 0)
        rows = nn.functional.conv2d(given, weights.view(1, 1, -1, 1), padding=(5, 0))
        return nn.functional.conv2d(rows, weights.view(1, 1, 1, -1), padding=(0, 5))


class Rescaled(nn.Module):
    """Births, deaths and lifetimes, each standardized over a batch."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3 * 2 * count)

    def forward(self, pairs: Tensor) -> Tensor:
        lengths = pairs[..., 0] - pairs[..., 1]
        return self.norm(torch.cat([pairs.flatten(1), lengths.flatten(1)], 1))


def convolution() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 5, padding=2), nn.BatchNorm2d(4))


def with_curves(
    layer: Callable[..., nn.Module], channels: int, rows: int, **options: float
) -> nn.Module:
    first = Blur() if channels == 1 else convolution()
    bounds = (0.0, 1.0) if channels == 1 else (-2.0, 2.0)
    curves = layer(THRESHOLDS, range=bounds, superlevel=True, normalize="batch", **options)
    return nn.Sequential(first, curves, nn.Flatten(), *head(THRESHOLDS * channels * rows))


def head(features: int) -> list[nn.Module]:
    return [nn.Linear(features, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES)]


def with_lifetimes() -> nn.Module:
    pairs = LifetimeLayer(8, superlevel=True)
    return nn.Sequential(Blur(), pairs, Rescaled(8), *head(3 * 2 * 8))


def convolutional() -> nn.Module:
    """Return a plain network of 12,000 parameters."""
    steps: list[nn.Module] = []
    before = 1
    for channels in (16, 24, 32):
        steps += [nn.Conv2d(before, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU()]
        steps += [nn.MaxPool2d(2)]
        before = channels
    pooled = nn.Sequential(nn.AdaptiveAvgPool2d(3), nn.Flatten())
    return nn.Sequential(*steps, pooled, nn.Linear(9 * before, CLASSES))


def by_network(make: Callable[[], nn.Module]) -> Callable[[Sets, int], float]:
    """Return the accuracy of a network at the epoch and learning rate that validation chooses."""

    def accuracy(sets: Sets, seed: int) -> float:
        given = {
            name: (torch.from_numpy(values)[:, None], torch.from_numpy(classes))
            for name, (values, classes) in sets.items()
        }
        best = -1.0
        chosen: nn.Module | None = None
        for rate in RATES:
            torch.manual_seed(seed)
            network = make()
            optimizer = torch.optim.AdamW(parameter_groups(network, lr=rate, weight_decay=1e-2))
            for epoch in range(EPOCHS):
                train(network, optimizer, *given["training"])
                if epoch % 4 == 3:
                    score = accuracy_of(network, *given["validation"])
                    if score > best:
                        best = score
                        chosen = copy.deepcopy(network)
        assert chosen is not None
        return accuracy_of(chosen, *given["test"])

    return accuracy


def train(
    network: nn.Module, optimizer: torch.optim.Optimizer, given: Tensor, classes: Tensor
) -> None:
    network.train()
    for batch in torch.randperm(len(given)).split(20):
        loss = nn.functional.cross_entropy(network(given[batch]), classes[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def accuracy_of(network: nn.Module, given: Tensor, classes: Tensor) -> float:
    network.eval()
    is_right = network(given).argmax(1) == classes
    return is_right.float().mean().item()


BASELINE = "blur, EulerCurveLayer"
WAYS: dict[str, Callable[[Sets, int], float]] = {
    "Betti curves, forest": by_forest(exact_betti),
    "Euler curves, forest": by_forest(exact_euler),
    "blur, BettiCurveLayer": by_network(lambda: with_curves(BettiCurveLayer, 1, 2)),
    "blur, BettiCurveLayer of min_persistence 0.3": by_network(
        lambda: with_curves(BettiCurveLayer, 1, 2, min_persistence=0.3)
    ),
    "blur, LifetimeLayer": by_network(with_lifetimes),
    BASELINE: by_network(lambda: with_curves(EulerCurveLayer, 1, 1)),
    "convolution, BettiCurveLayer": by_network(lambda: with_curves(BettiCurveLayer, 4, 2)),
    "convolution, EulerCurveLayer": by_network(lambda: with_curves(EulerCurveLayer, 4, 1)),
    "convolutional network": by_network(convolutional),
}


def table(found: dict[str, list[float]]) -> str:
    lines = ["# Rings: Betti and Euler curves", "", ABOUT, ""]
    seeds = min(map(len, found.values()))
    lines += [f"| {seeds} seeds | accuracy | p |", "|---|---|---|"]
    for name, values in found.items():
        p = ""
        if name != BASELINE and seeds > 1:
            p = f"{ttest_rel(values[:seeds], found[BASELINE][:seeds]).pvalue:.2g}"
        own = np.array(values[:seeds])
        lines.append(f"| {name} | {own.mean():.3f} ± {own.std(ddof=seeds > 1):.3f} | {p} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    stored = OUTPUT.with_suffix(".json")
    found: dict[str, list[float]] = json.loads(stored.read_text()) if stored.exists() else {}
    for seed in range(arguments.seeds):
        sets = drawn(seed)
        for name, way in WAYS.items():
            known = found.setdefault(name, [])
            if len(known) <= seed:
                known.append(way(sets, seed))
                print(f"seed {seed}: {name} {known[-1]:.3f}", flush=True)
                stored.write_text(json.dumps(found, indent=1) + "\n")
    OUTPUT.with_suffix(".md").write_text(table(found))


if __name__ == "__main__":
    main()
