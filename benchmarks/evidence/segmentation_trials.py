"""The protocol of the studies of segmentation: training, choices by validation, and scores."""

from __future__ import annotations

import copy
import itertools
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from outcome import ROOT, Row, best_times, interval
from scipy.stats import ttest_rel
from skimage.morphology import remove_small_holes, remove_small_objects
from topological_losses import betti_curve_loss, centreline_dice
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from ecc_core.nn import EulerCurveLoss, PersistenceLoss

sys.path.insert(0, str(ROOT / "examples"))
from learn_segmentation import betti_numbers, network

PROTOCOL = """All networks are equal (4,913 parameters), start from the same weights, and see the
same batches of 8 images; the second loss is added after half of the steps. Its weight is the one of
four with the fewest errors after post-processing on the validation images, over two other seeds.
The threshold of probabilities is chosen on the validation images for each network, as is the size
of objects and holes that post-processing removes. Errors are the absolute differences of the
numbers of components and holes, averaged over the test images: means over 10 seeds with their 95 %
confidence intervals (Student's t). The change is that from cross entropy with the same post-
processing, paired by seed, and p the value of the paired t-test. Times are of one step of training
with 8 images on one thread, the least of nine. "Soft Betti curves" compares soft numbers of
components and holes, from persistence pairs, at the thresholds of EulerCurveLoss. Losses of others
are our implementations after their papers: TopoLoss (Hu et al. 2019), clDice (Shit et al. 2021)."""
SEEDS = range(10)
TUNING = (100, 101)
CUTS = np.linspace(0.2, 0.8, 9)
SIZES = (0, 8, 16, 32)
WINDOW = 32
Masks = NDArray[np.bool_]
Loss = Callable[[Tensor, Tensor], Tensor]
Data = tuple[Tensor, Tensor]
"""Images and masks, (count, 1, rows, columns)."""

LOSSES: dict[str, tuple[Loss | None, tuple[float, ...]]] = {
    "cross entropy": (None, (0.0,)),
    "EulerCurveLoss": (EulerCurveLoss(window=WINDOW), (30.0, 100.0, 300.0, 1000.0)),
    "soft Betti curves": (partial(betti_curve_loss, window=WINDOW), (30.0, 100.0, 300.0, 1000.0)),
    "TopoLoss": (PersistenceLoss(WINDOW), (0.01, 0.03, 0.1, 0.3)),
    "clDice": (centreline_dice, (0.3, 1.0, 3.0, 10.0)),
}


class Task(NamedTuple):
    """Images to train on, by seed, and those to validate and to test on."""

    training: Callable[[int], Data]
    validation: Data
    test: Data
    steps: int
    losses: tuple[str, ...]


class Training(NamedTuple):
    """A network, its optimizer, and the images and masks that it is trained on."""

    model: Any
    optimizer: Any
    images: Tensor
    masks: Tensor


class Scores(NamedTuple):
    """Errors after post-processing on validation images; on test images, without and with it."""

    validation: float
    errors: float
    dice: float
    processed: float
    processed_dice: float


def train_step(model: Any, optimizer: Any, image: Tensor, mask: Tensor, loss: Any) -> None:
    logits = model(image)
    total = binary_cross_entropy_with_logits(logits, mask)
    if loss is not None:
        function, weight = loss
        total = total + weight * function(logits.sigmoid(), mask)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()


def first_half(task: Task, seed: int) -> Training:
    """Train with cross entropy alone. The second half starts from here, whatever its loss."""
    torch.manual_seed(seed)
    model = network()
    training = Training(model, torch.optim.Adam(model.parameters(), 3e-3), *task.training(seed))
    train(training, task.steps // 2, None)
    return training


def second_half(task: Task, start: Training, seed: int, loss: Any) -> Any:
    training = copy.deepcopy(start)
    torch.manual_seed(~seed)
    train(training, task.steps - task.steps // 2, loss)
    return training.model.eval()


def train(training: Training, steps: int, loss: Any) -> None:
    """Train on random batches of 8, turned at random."""
    for _ in range(steps):
        chosen = torch.randint(len(training.images), (8,))
        turns = int(torch.randint(4, ()))
        pair = training.images, training.masks.float()
        image, mask = (x[chosen].rot90(turns, (2, 3)) for x in pair)
        train_step(training.model, training.optimizer, image=image, mask=mask, loss=loss)


def cleaned(masks: Masks, size: int) -> Masks:
    """Remove components and holes of at most `size` pixels."""
    if size == 0:
        return masks
    found = [
        remove_small_holes(
            remove_small_objects(mask, max_size=size, connectivity=2), max_size=size, connectivity=1
        )
        for mask in masks
    ]
    return np.array(found)


def errors(found: Masks, true: Masks) -> float:
    own = np.array([betti_numbers(mask) for mask in found])
    wanted = np.array([betti_numbers(mask) for mask in true])
    of_masks = np.abs(own - wanted).sum(-1)
    return float(of_masks.mean())


def dice(found: Masks, true: Masks) -> float:
    return float(2 * (found & true).sum() / (found.sum() + true.sum()))


def score(model: Any, task: Task) -> Scores:
    """Choose cut and size on the validation images, and evaluate on the test images."""
    sets = [task.validation, task.test]
    with torch.no_grad():
        logits = [model(images) for images, _ in sets]
        found = [one.sigmoid().numpy()[:, 0] for one in logits]
    true = [masks.numpy()[:, 0] for _, masks in sets]
    by_choice = {
        (cut, size): errors(cleaned(found[0] > cut, size), true[0])
        for cut, size in itertools.product(CUTS, SIZES)
    }
    plain = min((choice for choice in by_choice if choice[1] == 0), key=by_choice.__getitem__)
    best = min(by_choice, key=by_choice.__getitem__)
    masks = [cleaned(found[1] > cut, size) for cut, size in (plain, best)]
    results = [number for mask in masks for number in (errors(mask, true[1]), dice(mask, true[1]))]
    return Scores(by_choice[best], *results)


def step_times(data: Data) -> dict[str, float]:
    """Return the processor time of a training step with 8 images, for each loss."""
    images, masks = (tensor[:8] for tensor in data)
    calls = {}
    for name, (function, weights) in LOSSES.items():
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), 3e-3)
        second = None if function is None else (function, weights[0])
        calls[name] = lambda m=model, o=optimizer, s=second: train_step(
            m, o, image=images, mask=masks.float(), loss=s
        )
    return best_times(calls)


def study(
    task: Task, name: str, starts: dict[int, Training], tuning: Iterable[int]
) -> tuple[float, list[Scores]]:
    """Return the weight chosen on validation images, and the scores with it for the other seeds."""
    function, weights = LOSSES[name]

    def scored(weight: float, seed: int) -> Scores:
        second = None if function is None else (function, weight)
        return score(second_half(task, starts[seed], seed, second), task)

    def error_with(weight: float) -> float:
        errors_of_seeds = [scored(weight, seed).validation for seed in tuning]
        return float(np.mean(errors_of_seeds))

    chosen = min(weights, key=error_with) if len(weights) > 1 else weights[0]
    return chosen, [scored(chosen, seed) for seed in starts if seed not in tuning]


def compare(task: Task, quick: bool) -> list[Row]:
    """Return a row for each loss, with the change of the errors of cross entropy, seed by seed."""
    torch.set_num_threads(1)
    if quick:
        task = task._replace(steps=10)
    seeds, tuning = (range(2), TUNING[:1]) if quick else (SEEDS, TUNING)
    starts = {seed: first_half(task, seed) for seed in (*seeds, *tuning)}
    seconds = step_times(task.training(0))
    rows: list[Row] = []
    baseline: list[float] = []
    for name in task.losses:
        weight, scores = study(task, name, starts, tuning)
        processed = [x.processed for x in scores]
        baseline = baseline or processed
        change = np.subtract(processed, baseline)
        rows.append(
            {
                "loss": name,
                "weight": weight,
                "errors": interval(x.errors for x in scores),
                "Dice": interval(x.dice for x in scores),
                "errors, post-processed": interval(processed),
                "Dice, post-processed": interval(x.processed_dice for x in scores),
                "change of errors, post-processed": interval(change) if change.any() else "",
                "p": float(ttest_rel(processed, baseline).pvalue) if change.any() else "",
                "ms a step": 1e3 * seconds[name],
                "time / cross entropy's": seconds[name] / seconds["cross entropy"],
            }
        )
        print(rows[-1], flush=True)
    return rows
