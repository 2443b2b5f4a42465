"""Segment cell walls with fewer gaps: ``python examples/learn_segmentation.py [FOLDER]``.

Trains a small network to find the walls between cells in noisy images in which the walls fade here
and there: with cross entropy alone, and with EulerCurveLoss beside it from half-way on. Both start
from the same weights and see the same images in the same order, for as many steps. Prints, over
several seeds, the Betti errors on images that neither has seen: how many pieces and holes too many
or too few there are. Holes are the cells. Writes learn-segmentation.png.
"""

from typing import NamedTuple

import learning
import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.ndimage import label as label_parts
from scipy.spatial import KDTree
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

import ecc_core as ecc
from ecc_core.nn import EulerCurveLoss

Mask = NDArray[np.bool_]

SIDE = 64
CELLS = 20
WALL = 2.6
NOISE = 0.7
WEIGHT = 100.0
"""The weight of the loss; a cell has about 250 points."""
CUTS = 0.3, 0.4, 0.5, 0.6, 0.7
"""Thresholds for probabilities."""
TEST_SEED = 10_000
NAMES = "cross entropy", "with EulerCurveLoss"


class Result(NamedTuple):
    """Means over the test images, and what was found in them."""

    pieces: float
    holes: float
    dice: float
    masks: Mask

    @property
    def betti(self) -> float:
        return self.pieces + self.holes


def walls(rng: np.random.Generator) -> tuple[NDArray[np.float32], Mask]:
    """Return a noisy image of the walls of a Voronoi diagram, faded in places, and the walls."""
    seeds = rng.uniform(-8, SIDE + 8, (CELLS, 2))
    points = np.stack(np.mgrid[:SIDE, :SIDE], axis=-1).reshape(-1, 2)
    distances, pair = KDTree(seeds).query(points, k=2)
    between = np.linalg.norm(np.diff(seeds[pair], axis=1)[:, 0], axis=1)
    from_wall = np.diff(distances**2, axis=1)[:, 0] / (2 * between)
    mask = (from_wall < WALL / 2).reshape(SIDE, SIDE)
    fog = gaussian_filter(rng.standard_normal((SIDE, SIDE)), 3)
    strength = np.where(fog > 1.2 * fog.std(), 0.25, 1.0)
    noise = NOISE * gaussian_filter(rng.standard_normal((SIDE, SIDE)), 0.7)
    return (gaussian_filter(mask * strength, 0.8) + noise).astype(np.float32), mask


def data_set(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return images and their walls, (count, 1, SIDE, SIDE)."""
    rng = np.random.default_rng(seed)
    images, masks = zip(*(walls(rng) for _ in range(count)), strict=True)
    return torch.from_numpy(np.stack(images))[:, None], torch.from_numpy(np.stack(masks))[:, None]


def network(width: int = 16) -> nn.Sequential:
    layers: list[nn.Module] = []
    for channels, dilation in ((1, 1), (width, 2), (width, 4)):
        layers += [
            nn.Conv2d(channels, width, 3, padding=dilation, dilation=dilation),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers, nn.Conv2d(width, 1, 1))


def train(weight: float, seed: int, images: Tensor, masks: Tensor, steps: int) -> nn.Module:
    """Train on random batches, turned at random; the loss joins half-way with this weight."""
    torch.manual_seed(seed)
    model = network()
    topology = EulerCurveLoss(window=SIDE // 2)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for step in range(steps):
        chosen = torch.randint(len(images), (8,))
        turns = int(torch.randint(4, ()))
        image = images[chosen].rot90(turns, (2, 3))
        mask = masks[chosen].rot90(turns, (2, 3))
        logits = model(image)
        loss = binary_cross_entropy_with_logits(logits, mask.float())
        if weight and step >= steps // 2:
            loss = loss + weight * topology(logits.sigmoid(), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def betti_numbers(mask: Mask) -> tuple[int, int]:
    """Pieces (8-connected) and holes."""
    pieces = label_parts(mask, np.ones((3, 3)))[1]
    return pieces, pieces - ecc.euler_number(mask)


def probabilities(model: nn.Module, images: Tensor) -> NDArray[np.float32]:
    with torch.no_grad():
        return model(images).sigmoid().numpy()[:, 0]


def evaluate(found: Mask, true: Mask) -> Result:
    numbers = np.array([[betti_numbers(mask) for mask in masks] for masks in (found, true)])
    pieces, holes = np.abs(numbers[0] - numbers[1]).mean(axis=0)
    dice = 2 * (found & true).sum() / (found.sum() + true.sum())
    return Result(float(pieces), float(holes), float(dice), found)


def compare(
    seeds: int, weight: float = WEIGHT, steps: int = 300, shown: int = 24, unseen: int = 60
) -> list[list[Result]]:
    """Train without and with the loss for each seed: results of both on the images not seen.

    Probabilities are cut where each network makes the fewest errors on the images it was shown.
    """
    test_images, test_masks = data_set(unseen, TEST_SEED)
    results = []
    for seed in range(seeds):
        images, masks = data_set(shown, seed)
        results.append([])
        for given in (0.0, weight):
            model = train(given, seed, images, masks, steps)
            known = probabilities(model, images)
            true = masks.numpy()[:, 0]
            cut = min(CUTS, key=lambda c, k=known, t=true: evaluate(k > c, t).betti)
            found = probabilities(model, test_images) > cut
            results[-1].append(evaluate(found, test_masks.numpy()[:, 0]))
    return results


def report(results: list[list[Result]]) -> None:
    print(f"means over the images, mean (standard deviation) of {len(results)} seeds")
    print(f"{'':22}{'pieces':>14}{'holes':>14}{'both':>14}{'Dice':>16}")
    for name, runs in zip(NAMES, zip(*results, strict=True), strict=True):
        row = f"{name:22}"
        for measure, digits in (("pieces", 2), ("holes", 2), ("betti", 2), ("dice", 3)):
            values = [getattr(run, measure) for run in runs]
            row += f"{np.mean(values):8.{digits}f} ({np.std(values):.{digits}f})"
        print(row)


def draw(results: list[list[Result]], index: int = 3) -> Figure:
    """An image, its walls, and what both networks of the first seed found; the errors of all."""
    images, masks = data_set(index + 1, TEST_SEED)
    true = masks[index, 0].numpy()
    pictures = {"image": images[index, 0].numpy(), "walls": ~true}
    pictures |= {n: ~r.masks[index] for n, r in zip(NAMES, results[0], strict=True)}
    figure = Figure(figsize=(9.6, 2.5), layout="constrained")
    axes = figure.subplots(1, 5, width_ratios=[1, 1, 1, 1, 1.1])
    for ax, (title, picture) in zip(axes, pictures.items(), strict=False):
        ax.imshow(picture, cmap="gray", interpolation="nearest")
        ax.set_title(title, fontsize="medium")
        ax.set(xticks=[], yticks=[])
        if picture.dtype == bool:
            pieces, holes = betti_numbers(~picture)
            ax.set_xlabel(f"pieces: {pieces}, holes: {holes}")
    for row in results:
        axes[-1].plot([0, 1], [run.betti for run in row], "o-", color="0.6", markersize=4)
    axes[-1].set(xticks=[0, 1], xlim=(-0.4, 1.4), ylim=(0, None))
    axes[-1].set_xticklabels(["without", "with"])
    axes[-1].set_title("Betti errors, each seed", fontsize="medium")
    return figure


if __name__ == "__main__":
    learning.main(__doc__ or "", "segmentation", compare, report, draw, weight=WEIGHT)
