"""Networks with and without a layer of Euler curves, with equally many parameters.

    python benchmarks/evidence/classification.py [--quick]

Writes benchmarks/results/evidence/classification.{json,md}.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from outcome import ROOT, Outcome, Row, interval, report
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from textures import local_patterns, standardised
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ecc_core.nn import EulerCurveLayer

sys.path.insert(0, str(ROOT / "examples"))
from learn_textures import HALF, patches

TITLE = "Classification with and without Euler curves"
QUESTION = "Does a layer of Euler curves help a small network that has few training images?"
CONCLUSION = """
As a pooling layer level sets help, topology does not: soft perimeters of the same sets do as well
on textures (0.987 and 0.993 against 0.978 and 0.992) and digits (0.852 against 0.856 with 10
images; 0.619 against 0.669 with 2, intervals overlap). With 2 training images of each class the
curves are 0.06 (textures) and 0.04 (digits) more accurate than two convolutions with as many
parameters, though the intervals overlap for digits; with 5 or 10 by 0.01 and 0.004. On digits a
linear support vector machine on the pixels is better than all networks (0.753 and 0.901). As the
first layer curves are less accurate than all other networks.
"""
TEXT = """
Five networks with almost equally many parameters. *Pooling*: a convolution whose feature maps
become Euler characteristic curves (8 thresholds) and a linear layer. *First*: the curves of the
image in 4 directions (textures) or 8 (digits), normalized, and two linear layers. *Average*: as
pooling, with a wider convolution and averages over the maps. *Deep*: two convolutions with pooling
by maxima between them, and averages. *Perimeters*: as pooling, with lengths of the borders of the
same soft sets, per point of the map. All have the same data, steps (200 of Adam with a rate of 0.01
that decays by a cosine, all images in each) and initial seeds. Textures: patches of 32 x 32 pixels
of bricks, grass and gravel (scikit-image), training on left halves of the photographs, test on
right halves. Digits: 8 x 8 pixels (scikit-learn), training on some of the first 1,000, test on the
other 797. Accuracies on the test images: means over 10 seeds, which choose training images and
initial weights, with their 95 % confidence intervals. Settings of the networks were not chosen on
validation data. Perimeters divided by the side of the map instead reach 0.931 and 0.969 (textures),
0.636 and 0.866 (digits). LBP are standardised, pixels are not, which is the better way for each.
"""
STEPS = 200
SEEDS = range(10)
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


class Perimeters(Curves):
    """Lengths of the borders of the same soft sets, which know nothing of topology."""

    def forward(self, maps: Tensor) -> Tensor:
        if not self.layer.calibrated:
            self.layer(maps)
        above = self.layer.thresholds[:, None, None] - maps[..., None, :, :]
        sets = torch.sigmoid(self.layer.sharpness * above)
        steps = [sets.diff(dim=axis).abs() for axis in (-2, -1)]
        lengths = sum(step.sum((-2, -1)) for step in steps)
        return lengths.flatten(1) / maps.shape[-2] / maps.shape[-1]


def convolution(inputs: int, outputs: int, kernel: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, kernel), nn.BatchNorm2d(outputs)]


def averages(channels: int, classes: int) -> list[nn.Module]:
    return [nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]


def pooling(channels: int, kernel: int, classes: int, pool: type[Curves] = Curves) -> nn.Module:
    last = nn.Linear(8 * channels, classes)
    return nn.Sequential(*convolution(1, channels, kernel), pool(8), last)


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
        "perimeters": lambda: pooling(8, 5, 3, Perimeters),
        "first": lambda: first(4, 8, 11, 3),
        "average": lambda: average(14, 5, 3),
        "deep": lambda: deep(4, 5, 8, 3),
    },
    "digits": {
        "pooling": lambda: pooling(12, 3, 10),
        "perimeters": lambda: pooling(12, 3, 10, Perimeters),
        "first": lambda: first(8, 8, 15, 10),
        "average": lambda: average(52, 3, 10),
        "deep": lambda: deep(10, 3, 9, 10),
    },
}
COUNTS = {"textures": (2, 5), "digits": (2, 10)}
"""Images of each class."""


def digits(count: int, seed: int) -> Data:
    """Return `count` training images of each class, or if it is 0 all images of the test."""
    found = load_digits()
    images = torch.from_numpy(found.images / 16).float()[:, None]
    classes = torch.from_numpy(found.target)
    if count == 0:
        return images[1000:], classes[1000:]
    order = torch.randperm(1000, generator=torch.Generator().manual_seed(seed))
    of_kinds = [order[classes[order] == kind] for kind in range(10)]
    chosen = torch.cat([members[:count] for members in of_kinds])
    return images[chosen], classes[chosen]


def textures(count: int, seed: int) -> Data:
    return patches(count, 0, seed) if count else patches(100, HALF, seed=10_000)


def accuracy(
    make: Callable[[], nn.Module], shown: Data, unseen: Data, seed: int, steps: int
) -> float:
    torch.manual_seed(seed)
    model = make()
    model(shown[0])  # This calibrates the layer.
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


def pixels(images: Tensor) -> NDArray[np.float64]:
    return np.asarray(images.flatten(1), np.float64)


def patterns(images: Tensor) -> NDArray[np.float64]:
    scaled = map(standardised, images[:, 0].numpy())
    return np.stack([local_patterns(image) for image in scaled])


SIMPLE = {
    "textures": ("LBP, linear SVM", patterns, StandardScaler()),
    "digits": ("pixels, linear SVM", pixels, "passthrough"),
}


def linear(task: str, load: Callable[[int, int], Data], unseen: Data, seeds: range) -> Row:
    """Return the row of a support vector machine without a network."""
    name, features, scaler = SIMPLE[task]
    test = features(unseen[0])
    row: Row = {"network": name, "parameters": ""}
    for count in COUNTS[task]:
        found = []
        for seed in seeds:
            images, classes = load(count, seed)
            model = make_pipeline(scaler, SVC(kernel="linear")).fit(features(images), classes)
            found.append(model.score(test, unseen[1]))
        row[str(count)] = interval(found)
    return row


def run(quick: bool) -> Outcome:
    torch.set_num_threads(1)
    steps, seeds = (5, range(2)) if quick else (STEPS, SEEDS)
    tables: dict[str, list[Row]] = {}
    for task, load in (("textures", textures), ("digits", digits)):
        unseen = load(0, 0)
        rows = tables[f"Accuracy on {task}, by training images of each class"] = []
        for name, make in NETWORKS[task].items():
            sizes = [parameter.numel() for parameter in make().parameters()]
            row: Row = {"network": name, "parameters": sum(sizes)}
            for count in COUNTS[task]:
                found = [
                    accuracy(make, load(count, s), unseen=unseen, seed=s, steps=steps)
                    for s in seeds
                ]
                row[str(count)] = interval(found)
            rows.append(row)
            print(row, flush=True)
        rows.append(linear(task, load, unseen, seeds))
    return Outcome(TITLE, TEXT, tables, {}, QUESTION, CONCLUSION)


if __name__ == "__main__":
    report("classification", run)
