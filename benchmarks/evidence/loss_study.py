"""Topological losses compared: ours, those of topolosses, and SCNP.

    pip install topolosses opencv-python torchvision pot
    git clone https://github.com/unidesigner/groundtruth-drosophila-vnc
    python benchmarks/evidence/study_runs.py      # trains the networks; goes on where it stopped
    python benchmarks/evidence/loss_study.py [--quick]      # the tables of what has been trained

Writes benchmarks/results/evidence/loss-study.{json,md}; the networks are in loss-study-runs.jsonl
there. The environment variable DROSOPHILA_VNC is the folder of the micrographs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from outcome import Outcome, Row, best_times, interval, report
from scipy.stats import ttest_rel
from study_images import COUNTS, SUBJECTS
from study_losses import BASE, Loss, base_loss
from study_runs import (
    BATCH,
    CUTS,
    MOST_DICE_LOST,
    RUNS,
    SIZES,
    STEPS,
    TUNING,
    WAYS,
    Record,
    chosen_weights,
    drawn,
    losses_of,
    read_records,
)

MEASURES = {"errors": "errors", "matched": "matched errors"}
Scores = dict[int, Record]
"""The scores of the networks with one loss, by seed."""
QUESTION = "Which topological loss leaves the fewest errors of topology, with the same training?"
CONCLUSION = """
Once small components and holes have been removed, no loss, ours among them, has significantly
fewer errors than cross entropy + Dice in the plane (walls 2.09, vessels 3.52, membranes 3.54).
SCNP, two poolings, does as well as EulerCurveLoss on walls and vessels before that, and in the
mean better than all of ours on membranes. EulerCurveLoss and PersistenceLoss have more matched
errors than without a loss on cleaned walls (3.93 and 4.15 after 3.51; p of 0.12 and 0.05).

As networks leave their masks, losses help: EulerCurveLoss halves the errors on walls (5.08 to
2.47) and takes a quarter to two fifths on vessels, tubes and membranes. On membranes
PersistenceLoss and clDice take more. TopoLoss, Topograph and warping take less everywhere. In
volumes of tubes EulerCurveLoss and BettiMatchingLoss still help after cleaning: 1.22 errors become
1.09 and 0.99.
"""
TEXT = f"""
Four kinds of images: faded cell walls (as in `examples/learn_segmentation.py`), thin vessels that
cross each other and fade in places, volumes of 20 x 20 x 20 points with tubes, and electron
micrographs of the nerve cord of a Drosophila larva with membranes drawn by experts (Gerhard, Funke,
Martel, Cardona and Fetter, figshare 2013, doi:10.6084/m9.figshare.856713; CC BY-NC-SA 3.0, not
included here), averaged over blocks of 4 x 4 pixels. Images in the plane have 64 x 64 points. For
each seed {COUNTS[0]} images for training, {COUNTS[1]} for validation and {COUNTS[2]} for the test
are drawn anew. Those of the micrographs are tiles at random places, with separate columns for
training, validation and the test; tiles of two seeds may overlap.

All networks of a seed are one U-Net (14,721 parameters, 11,033 for volumes) that was trained with
cross entropy + Dice in {STEPS[0]} steps of Adam, each with parts of 32 x 32 or 16 x 16 x 16 points
of {BATCH} images. It is trained in another {STEPS[1]} steps with the same parts, with the same loss
alone (the first row) or with a second loss added to it. Its weight is the one of three with the
fewest errors on the validation images of seed {TUNING}, which is used for nothing else. Weights
with which Dice was lower by more than {MOST_DICE_LOST} than without the loss were not chosen; a
first run, in which they could be, chose a weight of `WarpingLoss` that left a Dice of 0.24.

"As it is": the threshold of probabilities is chosen from {len(CUTS)} by the validation images of
each network. "Cleaned": so is the size of components and holes (in volumes, cavities) that are
removed, one of {", ".join(map(str, SIZES))} points.

Errors are the absolute differences of the numbers of components and holes (and cavities), matched
errors those of Betti matching: components and holes of either mask that the other does not have
there. Both are averaged over the test images. Means over the seeds with their 95 % confidence
intervals (Student's t). A change is from the first row, paired by seed; p is the value of the
paired t-test, corrected by Holm for the losses in the table. Times are those of the loss alone,
forward and backward, of {BATCH} images on one thread.

clDice, TopoLoss, Topograph and warping are those of topolosses 0.2.0, in the plane, with its
defaults. Its `WarpingLoss` compares the predicted class with the first channel of the target, so
that channels are exchanged here; as they are documented it would train for the inverse. SCNP is
written after its paper (arXiv:2603.18671): logits are replaced by the worst one of the same class
in a neighbourhood of 3 points along each axis, and cross entropy + Dice of them is the second loss.
Not compared is Fast chi (arXiv:2507.23763): by its abstract, a second network corrects the result
of the first where the Euler characteristic of windows is wrong, so that it is no loss of a network,
and the rest of its text was not at hand. Our losses were written by those who made this study.
"""


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values corrected for the number of tests by Holm's procedure."""
    order = np.argsort(values)
    factors = len(values) - np.arange(len(values))
    corrected = np.maximum.accumulate(factors * np.asarray(values)[order]).clip(max=1)
    found = np.empty(len(values))
    found[order] = corrected
    return found.tolist()


def p_value(own: NDArray[np.float64], base: NDArray[np.float64]) -> float:
    """Return the p-value of the paired t-test, which is 1 if nothing differs."""
    return float(ttest_rel(own, base).pvalue) if (own != base).any() else 1.0


def times_of(subject: str) -> dict[str, float]:
    """Return the milliseconds of a forward and backward pass of each loss."""
    images, masks = (part[:BATCH] for part in drawn(subject, TUNING).training)
    functions: dict[str, Loss] = {BASE: base_loss}
    functions |= {name: candidate.loss for name, candidate in losses_of(subject).items()}
    logits = (3 * images - 1.5).requires_grad_()
    calls: dict[str, Callable[[], Any]] = {
        name: partial(pass_of, loss, logits, masks.float()) for name, loss in functions.items()
    }
    return {name: 1e3 * seconds for name, seconds in best_times(calls, turns=5).items()}


def pass_of(loss: Loss, logits: torch.Tensor, mask: torch.Tensor) -> None:
    """Compute a loss and its gradient."""
    logits.grad = None
    loss(logits, mask).backward()  # type: ignore[no-untyped-call]


def scores_of(subject: str, records: Sequence[Record]) -> dict[str, Scores]:
    """Return the scores of each loss with its weight, by seed, if all seeds have been trained."""
    own = [record for record in records if record["subject"] == subject]
    weights = chosen_weights(own)
    found: dict[str, Scores] = {}
    for record in own:
        name = record["loss"]
        if record["seed"] != TUNING and record["weight"] == weights[subject, name]:
            found.setdefault(name, {})[record["seed"]] = record
    seeds = set.intersection(*(set(scores) for scores in found.values()))
    return {name: {seed: scores[seed] for seed in sorted(seeds)} for name, scores in found.items()}


def table(scores: dict[str, Scores], way: str, times: dict[str, float]) -> list[Row]:
    """Return one row for each loss."""

    def values(name: str, measure: str) -> NDArray[np.float64]:
        return np.array([record[way][measure] for record in scores[name].values()])

    rows: list[Row] = []
    for name, records in scores.items():
        weight = next(iter(records.values()))["weight"]
        row: Row = {"loss": name, "weight": "" if name == BASE else weight}
        for measure, title in MEASURES.items():
            row[title] = interval(values(name, measure))
            change = values(name, measure) - values(BASE, measure)
            row[f"change of {title}"] = "" if name == BASE else interval(change)
            row[f"p of {title}"] = ""
        row["Dice"] = interval(values(name, "dice"))
        row["ms"] = times[name]
        rows.append(row)
    for measure, title in MEASURES.items():
        others = list(scores)[1:]
        found = [p_value(values(name, measure), values(BASE, measure)) for name in others]
        for row, p in zip(rows[1:], holm(found), strict=True):
            row[f"p of {title}"] = p
    return rows


def run(quick: bool) -> Outcome:
    torch.set_num_threads(1)
    records = read_records(RUNS)
    tables = {}
    for subject in list(SUBJECTS)[: 1 if quick else None]:
        times = times_of(subject)
        scores = scores_of(subject, records)
        for way in WAYS:
            title = f"{SUBJECTS[subject].title}, {way} ({len(scores[BASE])} seeds)"
            tables[title] = table(scores, way, times)
    return Outcome("Topological losses compared", TEXT, tables, {}, QUESTION, CONCLUSION)


if __name__ == "__main__":
    report("loss_study", run)
