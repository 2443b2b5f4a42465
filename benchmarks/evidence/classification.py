"""Networks with and without a layer of Euler curves, with equally many parameters.

    python benchmarks/evidence/classification.py [--quick]

Writes benchmarks/results/evidence/classification.{json,md}.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from outcome import ROOT, Outcome, Row, interval, report
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ecc_core.nn import EulerCurveLayer

sys.path.insert(0, str(ROOT / "examples"))
from learn_textures import HALF, patches

TITLE = "Classification with and without Euler curves"
QUESTION = "Does a layer of Euler curves help a small network that has few training images?"
CONCLUSION = """
As a pooling layer, yes, though other measures of the same level sets were not compared: with 2
training images of each class it is 0.06 (textures) and 0.04 (digits) more accurate than two
convolutions with as many parameters, though the intervals overlap for digits, and 0.15 and 0.11
more than averages. With 5 or 10 images of each class it is 0.01 and 0.004 more accurate than two
convolutions. As the first layer it is less accurate than all other networks: the curves of the
image alone do not tell enough about it.
"""
TEXT = """
Four networks with almost equally many parameters. *Pooling*: a convolution whose feature maps
become Euler characteristic curves (8 thresholds) and a linear layer. *First*: the curves of the
image in 4 directions (textures) or 8 (digits), normalized, and two linear layers. *Average*: as
pooling, with a wider convolution and averages over the maps. *Deep*: two convolutions with pooling
by maxima between them, and averages. All have the same data, steps (200 of Adam with a rate of 0.01
that decays by a cosine, all images in each) and initial seeds. Textures: patches of 32 x 32 pixels
of bricks, grass and gravel (scikit-image), training on left halves of the photographs, test on
right halves. Digits: 8 x 8 pixels (scikit-learn), training on some of the first 1,000, test on the
other 797. Accuracies on the test images: means over 10 seeds, which choose training images and
initial weights, with their 95 % confidence intervals.
"""
STEPS, SEEDS = 200, range(10)
Data = tuple[Tensor, Tensor]


class Curves(nn.Module):
    """Curves of all channels, and of all directions if there are any, in one row."""

    def __init__(self, thresholds: int, directions: int | None = None) -> None:
        super().__init__()
        normalize = "batch" if directions else None
        self.layer = EulerCurveLayer(thresholds, directions=directions, normalize=normalize)
        self.directed = directions is not None

    def forward(self, maps: Tensor) -> Tensor:
        curves = self.layer(maps).flatten(1)
        return curves if self.directed else curves / maps.shape[-1]


def convolution(inputs: int, outputs: int, kernel: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, kernel), nn.BatchNorm2d(outputs)]


def averages(channels: int, classes: int) -> list[nn.Module]:
    return [nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]


def pooling(channels: int, kernel: int, classes: int) -> nn.Module:
    last = nn.Linear(8 * channels, classes)
    return nn.Sequential(*convolution(1, channels, kernel), Curves(8), last)


def first(directions: int, thresholds: int, hidden: int, classes: int) -> nn.Module:
    curves = Curves(thresholds, directions)
    inner = nn.Linear(directions * thresholds, hidden)
    return nn.Sequential(curves, inner, nn.ReLU(), nn.Linear(hidden, classes))


def average(channels: int, kernel: int, classes: int) -> nn.Module:
    return nn.Sequential(*convolution(1, channels, kernel), *averages(channels, classes))


def deep(channels: int, kernel: int, wide: int, classes: int) -> nn.Module:
    start = *convolution(1, channels, kernel), nn.ReLU(), nn.MaxPool2d(2)
    return nn.Sequential(*start, *convolution(channels, wide, 3), *averages(wide, classes))


NETWORKS: dict[str, dict[str, Callable[[], nn.Module]]] = {
    "textures": {
        "pooling": lambda: pooling(8, 5, 3),
        "first": lambda: first(4, 8, 11, 3),
        "average": lambda: average(14, 5, 3),
        "deep": lambda: deep(4, 5, 8, 3),
    },
    "digits": {
        "pooling": lambda: pooling(12, 3, 10),
        "first": lambda: first(8, 8, 15, 10),
        "average": lambda: average(52, 3, 10),
        "deep": lambda: deep(10, 3, 9, 10),
    },
}
COUNTS = {"textures": (2, 5), "digits": (2, 10)}  # images of each class


def digits(count: int, seed: int) -> Data:
    """So many training images of each class, or all for the test if `count` is 0."""
    found = load_digits()
    images = torch.from_numpy(found.images / 16).float()[:, None]
    classes = torch.from_numpy(found.target)
    if count == 0:
        return images[1000:], classes[1000:]
    order = torch.randperm(1000, generator=torch.Generator().manual_seed(seed))
    chosen = torch.cat([order[classes[order] == kind][:count] for kind in range(10)])
    return images[chosen], classes[chosen]


def textures(count: int, seed: int) -> Data:
    return patches(count, 0, seed) if count else patches(100, HALF, seed=10_000)


def accuracy(
    make: Callable[[], nn.Module], shown: Data, unseen: Data, seed: int, steps: int
) -> float:
    torch.manual_seed(seed)
    model = make()
    model(shown[0])  # calibrates the layer
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        loss = cross_entropy(model(shown[0]), shown[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        right = model.eval()(unseen[0]).argmax(1) == unseen[1]
    return float(right.float().mean())


def run(quick: bool) -> Outcome:
    torch.set_num_threads(1)
    steps, seeds = (5, range(2)) if quick else (STEPS, SEEDS)
    tables: dict[str, list[Row]] = {}
    for task, load in (("textures", textures), ("digits", digits)):
        unseen = load(0, 0)
        rows = tables[f"Accuracy on {task}, by training images of each class"] = []
        for name, make in NETWORKS[task].items():
            row: Row = {
                "network": name,
                "parameters": sum(parameter.numel() for parameter in make().parameters()),
            }
            for count in COUNTS[task]:
                found = [accuracy(make, load(count, s), unseen, s, steps) for s in seeds]
                row[str(count)] = interval(found)
            rows.append(row)
            print(row, flush=True)
    return Outcome(TITLE, TEXT, tables, {}, QUESTION, CONCLUSION)


if __name__ == "__main__":
    report("classification", run)
