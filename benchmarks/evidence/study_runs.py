"""Networks that are trained with one loss each, and what they find in images not seen before.

python benchmarks/evidence/study_runs.py [--seeds 8] [--subjects walls,vessels]

Trains what has not been trained yet, and writes a line for each network. It may be stopped at any
time. With all losses a seed takes about 3 minutes on one core, and the choice of weights 8.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from outcome import RESULTS
from skimage.morphology import remove_small_holes, remove_small_objects
from study_images import SUBJECTS, Data, Sets
from study_losses import BASE, Loss, base_loss, candidates
from torch import Tensor, nn

import ecc_core as ecc

Masks = NDArray[np.bool_]
Record = dict[str, Any]

RUNS = RESULTS / "loss-study-runs.jsonl"
BATCH = 4
LEARNING_RATE = 3e-3
WIDTHS = {2: (8, 16, 32), 3: (4, 8, 16)}
"""The channels of the three levels of a network, for images in 2-D and in 3-D."""
STEPS = (200, 80)
"""The training steps with the base loss alone, and with a second loss."""
CUTS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
SIZES = (0, 8, 24, 72)
WAYS = ("as it is", "cleaned")
TUNING = 0
"""The seed of the images by which weights are chosen."""
MOST_DICE_LOST = 0.1


class Network(nn.Module):
    """A U-Net with three levels, and one convolution at each of them on either side."""

    def __init__(self, ndim: int) -> None:
        super().__init__()
        self.ndim = ndim
        first, second, third = WIDTHS[ndim]
        self.down = nn.ModuleList([self._block(1, first), self._block(first, second)])
        self.middle = self._block(second, third)
        self.up = nn.ModuleList(
            [self._block(third + second, second), self._block(second + first, first)]
        )
        convolution = nn.Conv2d if ndim == 2 else nn.Conv3d
        self.last = convolution(first, 1, 1)

    def _block(self, channels: int, width: int) -> nn.Sequential:
        flat = self.ndim == 2
        convolution = nn.Conv2d if flat else nn.Conv3d
        normalization = nn.BatchNorm2d if flat else nn.BatchNorm3d
        return nn.Sequential(
            convolution(channels, width, 3, padding=1), normalization(width), nn.ReLU()
        )

    def forward(self, x: Tensor) -> Tensor:
        pool = nn.functional.max_pool2d if self.ndim == 2 else nn.functional.max_pool3d
        levels = []
        for block in self.down:
            x = block(x)
            levels.append(x)
            x = pool(x, 2)
        x = self.middle(x)
        for block, level in zip(self.up, reversed(levels), strict=True):
            x = nn.functional.interpolate(x, scale_factor=2)
            x = block(torch.cat([x, level], 1))
        found: Tensor = self.last(x)
        return found


class Training(NamedTuple):
    """A network, and its optimizer."""

    network: Network
    optimizer: torch.optim.Optimizer


def train(
    training: Training, data: Data, crop: int, steps: int, added: tuple[Loss, float] | None
) -> None:
    """Train on parts of random batches, turned at random."""
    images = data[0]
    masks = data[1].float()
    for _ in range(steps):
        chosen = torch.randint(len(images), (BATCH,))
        turns = int(torch.randint(4, ()))
        rooms = [n - crop + 1 for n in images.shape[2:]]
        ends = [int(torch.randint(room, ())) for room in rooms]
        part = (chosen, slice(None), *(slice(first, first + crop) for first in ends))
        image, mask = (x[part].rot90(turns, (-2, -1)) for x in (images, masks))
        logits = training.network(image)
        total = base_loss(logits, mask)
        if added is not None:
            loss, weight = added
            total = total + weight * loss(logits, mask)
        training.optimizer.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]
        training.optimizer.step()


@cache
def drawn(name: str, seed: int) -> Sets:
    return SUBJECTS[name].draw(seed)


@cache
def begun(name: str, seed: int) -> Training:
    """Train with the base alone. All losses continue from here."""
    torch.manual_seed(seed)
    subject = SUBJECTS[name]
    network = Network(subject.ndim)
    training = Training(network, torch.optim.Adam(network.parameters(), LEARNING_RATE))
    train(training, drawn(name, seed).training, crop=subject.crop, steps=STEPS[0], added=None)
    return training


def trained(name: str, seed: int, added: tuple[Loss, float] | None) -> tuple[Network, float]:
    """Return a network, and the milliseconds of processor time that a step took."""
    training = copy.deepcopy(begun(name, seed))
    torch.manual_seed(~seed)
    start = process_time()
    train(
        training, drawn(name, seed).training, crop=SUBJECTS[name].crop, steps=STEPS[1], added=added
    )
    return training.network.eval(), 1e3 * (process_time() - start) / STEPS[1]


def probabilities(network: Network, images: Tensor) -> NDArray[np.float32]:
    with torch.no_grad():
        found: NDArray[np.float32] = network(images).sigmoid().numpy()[:, 0]
    return found


def cleaned(masks: Masks, size: int) -> Masks:
    """Remove components of at most `size` points, and holes or cavities."""
    if size == 0:
        return masks
    found = []
    for mask in masks:
        large = remove_small_objects(mask, max_size=size, connectivity=mask.ndim)
        found.append(remove_small_holes(large, max_size=size, connectivity=1))
    return np.array(found)


def betti_numbers(masks: Masks) -> NDArray[np.int64]:
    """Return the numbers of components, holes and cavities of each mask."""
    return np.array([ecc.betti_numbers(mask) for mask in masks])


def betti_error(masks: Masks, true: NDArray[np.int64]) -> float:
    """Return the mean difference from the true numbers of components, holes and cavities."""
    errors = np.abs(betti_numbers(masks) - true).sum(axis=1)
    return float(errors.mean())


def matched_error(masks: Masks, true: Masks) -> float:
    """Return the mean number of classes of one mask that the other does not have there."""
    pairs = zip(masks, true, strict=True)
    matchings = [ecc.betti_matching(one, other) for one, other in pairs]
    errors = [matching.error.sum() for matching in matchings]
    return float(np.mean(errors))


def dice(masks: Masks, true: Masks) -> float:
    return float(2 * (masks & true).sum() / (masks.sum() + true.sum()))


def judged(network: Network, sets: Sets) -> dict[str, Record]:
    """Choose cut and size by the validation images, and judge by the test images."""
    known = probabilities(network, sets.validation[0])
    numbers = betti_numbers(sets.validation[1].numpy()[:, 0])
    new = probabilities(network, sets.test[0])
    wanted = sets.test[1].numpy()[:, 0]
    wanted_numbers = betti_numbers(wanted)
    by_choice = {
        (cut, size): betti_error(cleaned(known > cut, size), numbers)
        for cut, size in itertools.product(CUTS, SIZES)
    }
    without = {choice: error for choice, error in by_choice.items() if choice[1] == 0}
    found = {}
    for way, choices in zip(WAYS, (without, by_choice), strict=True):
        cut, size = min(choices, key=choices.__getitem__)
        masks = cleaned(new > cut, size)
        found[way] = {
            "validation": choices[cut, size],
            "cut": cut,
            "size": size,
            "errors": betti_error(masks, wanted_numbers),
            "matched": matched_error(masks, wanted),
            "dice": dice(masks, wanted),
        }
    return found


class Run(NamedTuple):
    """One network of the study."""

    subject: str
    seed: int
    loss: str
    weight: float


def tuning_runs(subjects: tuple[str, ...]) -> Iterator[Run]:
    """Yield the runs by which weights are chosen."""
    for name in subjects:
        yield Run(name, TUNING, BASE, 0.0)
        for loss, candidate in losses_of(name).items():
            for weight in candidate.weights:
                yield Run(name, TUNING, loss, weight)


def runs_of(
    subjects: tuple[str, ...], seeds: range, weights: dict[tuple[str, str], float]
) -> Iterator[Run]:
    """Yield all other runs of the study, seed by seed."""
    for seed, name in itertools.product(seeds, subjects):
        yield Run(name, seed, BASE, 0.0)
        for loss in losses_of(name):
            yield Run(name, seed, loss, weights[name, loss])


def chosen_weights(records: Iterable[Record]) -> dict[tuple[str, str], float]:
    """Return the weight of each subject and loss with the fewest errors in validation images.

    Those of masks as they are and of cleaned ones are added. Masks that have little to do with the
    true ones may have few errors by chance: weights that cost much Dice are not chosen.
    """
    tuning = [record for record in records if record["seed"] == TUNING]
    base = {
        record["subject"]: record[WAYS[0]]["dice"] for record in tuning if record["loss"] == BASE
    }
    best: dict[tuple[str, str], tuple[float, float]] = {}
    for record in tuning:
        if record[WAYS[0]]["dice"] < base[record["subject"]] - MOST_DICE_LOST:
            continue
        key = record["subject"], record["loss"]
        error = sum(record[way]["validation"] for way in WAYS)
        best[key] = min(best.get(key, (np.inf, 0.0)), (error, record["weight"]))
    return {key: weight for key, (_, weight) in best.items()}


@cache
def losses_of(name: str) -> dict[str, Any]:
    return candidates(SUBJECTS[name])


def result_of(run: Run) -> Record:
    """Train a network and judge it."""
    loss = None if run.loss == BASE else losses_of(run.subject)[run.loss].loss
    added = None if loss is None else (loss, run.weight)
    network, milliseconds = trained(run.subject, run.seed, added)
    scores = judged(network, drawn(run.subject, run.seed))
    return {**run._asdict(), "ms a step": milliseconds, **scores}


def read_records(path: Path) -> list[Record]:
    """Return what was found before."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def continue_study(path: Path, subjects: tuple[str, ...], seeds: range) -> None:
    """Do the runs that have no line in a file, and add their lines."""
    torch.set_num_threads(1)
    done = {run_of(record) for record in read_records(path)}

    def do(runs: Iterable[Run]) -> None:
        for run in runs:
            if run in done:
                continue
            record = result_of(run)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            ways = (f"{record[way]['errors']:.2f}" for way in WAYS)
            print(*run, *ways, f"{record['ms a step']:.0f} ms", flush=True)

    do(tuning_runs(subjects))
    do(runs_of(subjects, seeds, chosen_weights(read_records(path))))


def run_of(record: Record) -> Run:
    """Return the run whose result a record is."""
    return Run(*(record[field] for field in Run._fields))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=8, help="how many, without that of tuning")
    parser.add_argument("--subjects", default=",".join(SUBJECTS), help="separated by commas")
    arguments = parser.parse_args()
    seeds = range(TUNING + 1, TUNING + 1 + arguments.seeds)
    continue_study(RUNS, tuple(arguments.subjects.split(",")), seeds)


if __name__ == "__main__":
    main()
