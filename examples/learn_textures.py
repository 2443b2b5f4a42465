"""Tell textures apart from few examples: ``python examples/learn_textures.py [FOLDER]``.

Small patches of three photographs that come with scikit-image, of bricks, grass and gravel, turned
at random and brought to the same mean and contrast. The left halves of the photographs are for
training, the right ones for the test. Four networks of about 440 parameters: a convolution whose
feature maps become Euler characteristic curves; and without that layer, the same convolution with
the areas of the same sets, a wider one with averages, and two convolutions. Prints their accuracies
after learning from a few patches of each texture, over several seeds. Writes learn-textures.png.
"""

from collections.abc import Callable

import learning
import numpy as np
import torch
from matplotlib.figure import Figure
from skimage import data
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ecc_core.nn import EulerCurveLayer

TEXTURES = {"bricks": data.brick, "grass": data.grass, "gravel": data.gravel}
SIDE = 32
HALF = 256
KERNEL = 5
CHANNELS = 8
THRESHOLDS = 8
COUNTS = 2, 3, 5
"""Patches of each texture to learn from."""

Accuracies = dict[str, dict[int, list[float]]]
"""Accuracies of a network, by patches, for each seed."""


class Curves(nn.Module):
    """Euler characteristic curves of feature maps, in units of their side."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = EulerCurveLayer(THRESHOLDS, range=(-2, 2))

    def forward(self, maps: Tensor) -> Tensor:
        return self.layer(maps).flatten(1) / maps.shape[-1]


class Areas(Curves):
    """The areas of the same soft sets: what a histogram knows, and no topology."""

    def forward(self, maps: Tensor) -> Tensor:
        above = self.layer.thresholds - maps.flatten(2)[..., None]
        share = torch.sigmoid(self.layer.sharpness * above).mean(2)
        return 6 * (share.flatten(1) - 0.5)  # Values of this size are as easy to learn from.


def convolution(inputs: int, outputs: int, kernel: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, kernel), nn.BatchNorm2d(outputs)]


def mean_and_decide(channels: int) -> list[nn.Module]:
    last = nn.Linear(channels, len(TEXTURES))
    return [nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), last]


def with_sets(middle: nn.Module) -> nn.Sequential:
    last = nn.Linear(CHANNELS * THRESHOLDS, len(TEXTURES))
    return nn.Sequential(*convolution(1, CHANNELS, KERNEL), middle, last)


def one_convolution() -> nn.Sequential:
    return nn.Sequential(*convolution(1, 14, KERNEL), *mean_and_decide(14))


def two_convolutions() -> nn.Sequential:
    first = *convolution(1, 4, KERNEL), nn.ReLU(), nn.MaxPool2d(2)
    return nn.Sequential(*first, *convolution(4, 8, 3), *mean_and_decide(8))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "Euler curves": lambda: with_sets(Curves()),
    "areas": lambda: with_sets(Areas()),
    "one convolution": one_convolution,
    "two convolutions": two_convolutions,
}


def patches(count: int, left: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return so many patches of each texture from the half that begins at `left`, and classes."""
    rng = np.random.default_rng(seed)
    images = []
    for load in TEXTURES.values():
        photograph = load().astype(np.float32)
        for _ in range(count):
            row = rng.integers(0, photograph.shape[0] - SIDE + 1)
            column = left + rng.integers(0, HALF - SIDE + 1)
            patch = photograph[row : row + SIDE, column : column + SIDE]
            patch = np.rot90(patch, rng.integers(4))
            images.append((patch - patch.mean()) / patch.std())
    classes = torch.arange(len(TEXTURES)).repeat_interleave(count)
    return torch.from_numpy(np.stack(images))[:, None], classes


def train(network: Callable[[], nn.Module], count: int, seed: int, epochs: int) -> nn.Module:
    images, classes = patches(count, 0, seed)
    torch.manual_seed(seed)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        loss = cross_entropy(model(images), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def compare(seeds: int, counts: tuple[int, ...] = COUNTS, epochs: int = 160) -> Accuracies:
    """Train every network on so many patches of each texture, once for each seed."""
    images, classes = patches(100, HALF, seed=10_000)
    results: Accuracies = {name: {count: [] for count in counts} for name in NETWORKS}
    for name, network in NETWORKS.items():
        for count, found in results[name].items():
            for seed in range(seeds):
                model = train(network, count, seed, epochs)
                with torch.no_grad():
                    right = model(images).argmax(1) == classes
                found.append(right.float().mean().item())
    return results


def parameters(name: str) -> int:
    return sum(parameter.numel() for parameter in NETWORKS[name]().parameters())


def report(results: Accuracies) -> None:
    print("accuracy, mean (lowest) of the seeds, by patches of each texture")
    for name, by_count in results.items():
        cells = (f"{n}: {np.mean(a):.3f} ({min(a):.3f})" for n, a in by_count.items())
        print(f"{name:18}{parameters(name)} parameters", *cells, sep="   ")


def draw(results: Accuracies) -> Figure:
    """A patch of each texture; the accuracy of each network and seed."""
    figure = Figure(figsize=(9.6, 2.5), layout="constrained")
    axes = figure.subplots(1, 4, width_ratios=[1, 1, 1, 3.2])
    images, _ = patches(1, HALF, seed=10_000)
    for ax, name, image in zip(axes, TEXTURES, images[:, 0].numpy(), strict=False):
        ax.imshow(image, cmap="gray")
        ax.set_title(name, fontsize="medium")
        ax.set(xticks=[], yticks=[])
    for shift, (name, by_count) in zip((-0.24, -0.08, 0.08, 0.24), results.items(), strict=True):
        places = np.repeat(np.arange(len(by_count)) + shift, len(next(iter(by_count.values()))))
        axes[3].plot(places, np.concatenate(list(by_count.values())), "o", markersize=4, label=name)
    axes[3].set_xticks(range(len(COUNTS)), COUNTS)
    axes[3].set(xlabel="patches of each texture to learn from", ylim=(0.6, 1.02))
    axes[3].set_title("accuracy, each seed", fontsize="medium")
    axes[3].legend(fontsize="small", loc="lower right", ncols=2)
    return figure


if __name__ == "__main__":
    learning.main(__doc__ or "", "textures", compare, report, draw)
