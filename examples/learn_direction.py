"""Learn which direction tells classes apart: ``python examples/learn_direction.py [FOLDER]``.

Bumps grow in height along a direction that the network is not told. Each image of the first class
has a twin in the second: itself turned by 180 degrees. An image and its twin have exactly the same
Euler characteristic curve, so without directions no network can tell them apart by it. A layer with
one direction learns which way to look, and thresholds to look at, though it starts 80 degrees away,
where there is next to nothing to see. Prints accuracies on images not seen, and the angle between
the hidden direction and the layer's, over several seeds. Writes learn-direction.png.
"""

from typing import Any, NamedTuple

import learning
import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

import ecc_core as ecc
from ecc_core.nn import EulerCurveLayer

SIDE = 32
BUMPS = 14
WIDTH = 1.6
ANGLE = np.deg2rad(115)
HIDDEN = np.array([np.cos(ANGLE), np.sin(ANGLE)])
START = np.deg2rad(80)
"""The angle between the first direction and the hidden one."""
LOW = -0.2
HIGH = 1.8
THRESHOLDS = 12
NAMES = "no direction", "direction fixed", "direction learned"


class Run(NamedTuple):
    """Accuracy on images not seen, angles to the hidden direction, and thresholds at the end."""

    accuracy: float
    angles: list[float]
    """In degrees, at the start and after each epoch."""
    thresholds: NDArray[np.float32]


def twins(count: int, rng: np.random.Generator) -> Tensor:
    """Return images of the first class and their twins in the second, (count, 2, SIDE, SIDE)."""
    points = np.stack(np.mgrid[:SIDE, :SIDE], axis=-1) - (SIDE - 1) / 2
    images = []
    for _ in range(count):
        places = rng.uniform(-SIDE / 2, SIDE / 2, (BUMPS, 2))
        heights = 1 + places @ HIDDEN / SIDE + 0.25 * rng.standard_normal(BUMPS)
        distances = np.square(points[:, :, None] - places).sum(axis=-1)
        images.append((heights * np.exp(-distances / (2 * WIDTH**2))).max(axis=-1))
    stack = torch.from_numpy(np.stack(images).astype(np.float32))
    return torch.stack([stack, stack.flip(1, 2)], dim=1)


class Classifier(nn.Module):
    """Says from one curve whether an image is of the second class."""

    def __init__(self, **directions: Any) -> None:
        super().__init__()
        self.curve = EulerCurveLayer(
            THRESHOLDS, range=(LOW, HIGH), superlevel=True, learn_sharpness=True, **directions
        )
        self.last = nn.Linear(THRESHOLDS, 1)

    def forward(self, image: Tensor) -> Tensor:
        return self.last(self.curve(image).flatten(1) / BUMPS)[:, 0]


def angle_between(direction: Tensor) -> float:
    """Angle to the hidden direction, between lines: the last layer can turn either end up."""
    cosine = abs(direction.detach().numpy() @ HIDDEN)
    return float(np.rad2deg(np.arccos(min(cosine, 1.0))))


def train(kind: str, seed: int, epochs: int, count: int) -> Run:
    rng = np.random.default_rng(seed)
    shown = twins(count, rng)
    unseen = twins(200, rng)
    start = ANGLE + rng.choice([-START, START])
    torch.manual_seed(seed)
    learned = kind == "direction learned"
    options = {
        "directions": [[np.cos(start), np.sin(start)]],
        "direction_scale": 1 / SIDE,
        "learn_directions": learned,
        "learn_direction_scale": learned,
    }
    model = Classifier(**(options if kind != "no direction" else {}))
    optimizer = torch.optim.Adam(model.parameters(), 0.03)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    directed = model.curve.directed
    angles = [angle_between(model.curve.directions[0])] if directed else []
    for _ in range(epochs):
        for chosen in torch.randperm(count).split(25):
            images = shown[chosen].flatten(0, 1)
            classes = torch.tensor([0.0, 1.0]).repeat(len(chosen))
            loss = binary_cross_entropy_with_logits(model(images), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        if directed:
            angles.append(angle_between(model.curve.directions[0]))
    with torch.no_grad():
        second = model(unseen.flatten(0, 1)).view(-1, 2) > 0
    accuracy = (second == torch.tensor([False, True])).float().mean().item()
    return Run(accuracy, angles, model.curve.thresholds.detach().numpy())


def compare(seeds: int, epochs: int = 40, count: int = 100) -> dict[str, list[Run]]:
    """Train a classifier of every kind for each seed."""
    return {name: [train(name, seed, epochs, count) for seed in range(seeds)] for name in NAMES}


def report(results: dict[str, list[Run]]) -> None:
    print(f"{len(results[NAMES[0]])} seeds")
    for name, runs in results.items():
        accuracies = [run.accuracy for run in runs]
        print(f"{name:18} accuracy {np.mean(accuracies):.3f} ({np.std(accuracies):.3f})", end="")
        if runs[0].angles:
            first, last = ([run.angles[place] for run in runs] for place in (0, -1))
            ends = ", ".join(f"{angle:.0f}" for angle in last)
            print(f", {np.mean(first):.0f} degrees at the start, at the end {ends}", end="")
        print()
    even = np.linspace(LOW, HIGH, THRESHOLDS)
    moved = [np.abs(run.thresholds - even).max() for run in results["direction learned"]]
    print(
        f"thresholds moved by up to {min(moved):.2f} to {max(moved):.2f}, "
        f"from a spacing of {even[1] - LOW:.2f}"
    )


def draw(results: dict[str, list[Run]]) -> Figure:
    """Twins and their curves; how the directions turn."""
    figure = Figure(figsize=(9.6, 2.5), layout="constrained")
    axes = figure.subplots(1, 4, width_ratios=[1, 1, 1.4, 1.4])
    pair = twins(1, np.random.default_rng(5))[0].numpy()
    turn = HIDDEN[0] * 10, HIDDEN[1] * 10
    for ax, image, sign, title in zip(axes, pair, (1, -1), ("first", "second"), strict=False):
        ax.imshow(image, cmap="gray", vmin=0, vmax=1.6)
        tip = {"xytext": (15.5 - sign * turn[1], 15.5 - sign * turn[0])}
        ax.annotate(
            "", (15.5 + sign * turn[1], 15.5 + sign * turn[0]), arrowprops={"color": "C1"}, **tip
        )
        ax.set_title(f"{title} class", fontsize="medium")
        ax.set(xticks=[], yticks=[])
    levels = np.linspace(0, 1.6, 200)
    for tilt, style in (({}, "0.3"), ({"direction": HIDDEN, "direction_scale": -1 / SIDE}, "C1")):
        for image, line in zip(pair, ("-", "--"), strict=True):
            curve = ecc.euler_curve(image, levels, superlevel=True, **tilt).values
            axes[2].plot(levels, curve, line, color=style, linewidth=1)
    axes[2].set_title("curves: none, hidden direction", fontsize="medium")
    axes[2].set(xlabel="threshold")
    for run in results["direction learned"]:
        axes[3].plot(run.angles, color="C0", linewidth=1)
    axes[3].set(xlabel="epoch", ylabel="degrees", ylim=(0, 92), yticks=[0, 30, 60, 90])
    axes[3].set_title("angle to the hidden direction", fontsize="medium")
    return figure


if __name__ == "__main__":
    learning.main(__doc__ or "", "direction", compare, report, draw)
