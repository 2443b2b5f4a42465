"""Euler curves against persistent homology: what they tell apart, and how long they take.

    python benchmarks/evidence/persistent_homology.py [--quick]

Writes benchmarks/results/evidence/persistent-homology.{json,md} and
docs/images/evidence-persistent-homology.png.
"""

from __future__ import annotations

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
from fields import gaussian_field
from matplotlib.figure import Figure
from numpy.typing import NDArray
from outcome import BLUE, GREEN, QUIET, VERMILION, Outcome, Row, best_times, report, summary
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from textures import diagrams, persistence_image, signed_root

import ecc_core as ecc

TEXT = """
Separation: two groups of 60 random images each, every image brought to the same histogram (normal,
by ranks), so that only the arrangement of its values tells the groups apart. "grain" compares
Gaussian fields smoothed by 2 and by 2.1 points (3-D: 1.5 and 1.55); "ridges" Gaussian fields and
fields with a share of |X|, which has crests instead of domes. ECC: 32 thresholds. Betti curves: the
numbers of components, loops (and cavities) at the same thresholds. Persistence images: 12 x 12
pixels a dimension. The classifier is logistic regression on standardised roots; areas under the ROC
curve are means ± standard deviations over 5 times 5 folds. The curve is the alternating sum of the
Betti curves; that this holds exactly is checked for every image.

Time: smooth noise (sigma 2), float32, one thread, 256 thresholds; the least of 9 turns, or of 3
where GUDHI takes longer than half a second. For GUDHI the time is that of the diagrams alone.
"""
THRESHOLDS = np.linspace(-2.5, 2.5, 32)
GRAINS, RIDGES = {2: (2.0, 2.1), 3: (1.5, 1.55)}, {2: 0.7, 3: 0.6}
Image = NDArray[np.float64]
Features = NDArray[np.float64]


def same_histogram(image: Image) -> Image:
    ranks = rankdata(image, method="ordinal").reshape(image.shape)
    return np.asarray(ndtri((ranks - 0.5) / image.size))


def ridges(shape: tuple[int, ...], sigma: float, share: float, rng: np.random.Generator) -> Image:
    x, y = (gaussian_field(shape, sigma, rng) for _ in range(2))
    return x + share * (np.abs(y) - np.sqrt(2 / np.pi))


def groups(task: str, sides: dict[int, int]) -> list[Callable[[np.random.Generator], Image]]:
    """What makes an image of either group."""
    ndim = int(task[0])
    shape = (sides[ndim],) * ndim
    if "grain" in task:
        return [lambda rng, s=s: gaussian_field(shape, s, rng) for s in GRAINS[ndim]]
    return [lambda rng, r=r: ridges(shape, GRAINS[ndim][0], r, rng) for r in (0.0, RIDGES[ndim])]


def betti_curves(found: list[NDArray[np.float64]]) -> NDArray[np.int64]:
    """How many classes are born and not yet dead at each threshold, (dimensions, thresholds)."""
    alive = []
    for diagram in found:
        born = np.searchsorted(np.sort(diagram[:, 0]), THRESHOLDS, side="right")
        dead = np.searchsorted(np.sort(diagram[:, 1]), THRESHOLDS, side="right")
        alive.append(born - dead)
    return np.array(alive)


def describe(image: Image) -> dict[str, Features]:
    """Features of one image; the curve is checked against the Betti numbers."""
    curve = ecc.euler_curve(image, THRESHOLDS, workers=1).values
    found = diagrams(image)
    betti = betti_curves(found)
    signs = (-1) ** np.arange(image.ndim)
    np.testing.assert_array_equal(signs @ betti, curve)
    images = [persistence_image(diagram) for diagram in found]
    return {
        "ECC": signed_root(curve),
        "Betti curves": signed_root(betti.ravel()),
        "persistence images": signed_root(np.concatenate(images)),
    }


def separation(task: str, sides: dict[int, int], each: int, repeats: int) -> Row:
    rng = np.random.default_rng(5)
    both = groups(task, sides)
    found = [describe(same_histogram(make(rng))) for make in both for _ in range(each)]
    kinds = np.repeat([0, 1], each)
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=repeats, random_state=6)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    row: Row = {"task": task}
    for name in found[0]:
        table = np.stack([one[name] for one in found])
        row[name] = summary(cross_val_score(model, table, kinds, cv=folds, scoring="roc_auc"))
    return row


def times(shape: tuple[int, ...]) -> Row:
    image = gaussian_field(shape, 2.0, np.random.default_rng(0)).astype(np.float32)
    at = np.linspace(-3, 3, 256)
    calls = {"ECC": lambda: ecc.euler_curve(image, at, workers=1), "GUDHI": lambda: diagrams(image)}
    seconds = best_times(calls, 1)
    turns = 3 if seconds["GUDHI"] > 0.5 else 9
    seconds = best_times(calls, turns)
    return {
        "image": " x ".join(map(str, shape)),
        "ECC, ms": 1e3 * seconds["ECC"],
        "GUDHI, ms": 1e3 * seconds["GUDHI"],
        "turns": turns,
        "times faster": round(seconds["GUDHI"] / seconds["ECC"]),
    }


def run(quick: bool) -> Outcome:
    tasks = [f"{ndim}-D, {kind}" for ndim in (2, 3) for kind in ("grain", "ridges")]
    shapes = [(128,) * 2, (512,) * 2, (1024,) * 2, (32,) * 3, (64,) * 3, (96,) * 3]
    sides, each, repeats = {2: 96, 3: 28}, 60, 5
    if quick:
        tasks, shapes = ["2-D, ridges"], [(96,) * 2, (24,) * 3]
        each, repeats = 30, 1
    separated = [separation(task, sides, each, repeats) for task in tasks]
    timed = [times(shape) for shape in shapes]
    tables = {"Separation: area under the ROC curve": separated, "Time": timed}
    return Outcome("Euler curves and persistent homology", TEXT, tables, {})


def draw(outcome: Outcome) -> Figure:
    separated, timed = outcome.tables.values()
    with plt.rc_context(QUIET):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        names = list(separated[0])[1:]
        for i, (name, colour) in enumerate(zip(names, (BLUE, GREEN, VERMILION), strict=True)):
            means, spreads = ([row[name][key] for row in separated] for key in ("mean", "sd"))
            places = np.arange(len(separated)) + 0.27 * (i - 1)
            left.bar(places, means, 0.25, yerr=spreads, color=colour, ecolor="#404040", label=name)
        left.set_xticks(np.arange(len(separated)), [row["task"] for row in separated])
        left.set(ylim=(0.5, 1.0), ylabel="area under the ROC curve")
        figure.legend(*left.get_legend_handles_labels(), loc="outside upper left", ncols=3)
        sizes = [np.prod([int(n) for n in row["image"].split(" x ")]) for row in timed]
        for name, colour in (("ECC", BLUE), ("GUDHI", VERMILION)):
            for ndim, marker, line in ((2, "o", "-"), (3, "s", "--")):
                some = [i for i, row in enumerate(timed) if row["image"].count("x") == ndim - 1]
                right.plot(
                    [sizes[i] for i in some],
                    [timed[i][f"{name}, ms"] for i in some],
                    marker + line,
                    color=colour,
                    label=f"{name}, {ndim}-D",
                )
        right.set(xscale="log", yscale="log", xlabel="points", ylabel="ms")
        right.legend(fontsize=8)
    return figure


if __name__ == "__main__":
    report("persistent_homology", run, draw)
