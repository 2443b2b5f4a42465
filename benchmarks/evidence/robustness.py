"""What noise and resolution do to Euler curves and transforms.

    python benchmarks/evidence/robustness.py [--quick]

Writes benchmarks/results/evidence/robustness.{json,md} and docs/images/evidence-robustness.png.
"""

from __future__ import annotations

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from fields import gaussian_field
from matplotlib.figure import Figure
from morphology import lobes
from numpy.typing import NDArray
from outcome import BLUE, GREEN, ORANGE, PURPLE, QUIET, VERMILION, Outcome, Row, report, summary
from scipy.ndimage import gaussian_filter
from scipy.stats import pearsonr
from skimage.measure import block_reduce
from textures import FEATURES, classifier, compute, patches, splits

import ecc_core as ecc
from ecc_core.features import distance_matrix

QUESTION = "What do noise and a lower resolution do to curves and transforms?"
CONCLUSION = """
White noise of 5 % of the signal's standard deviation changes the curve of an unsmoothed image by
69 % of its area; after smoothing by one point, the curve is that of the clean image within 6 %.
Classification by curves tolerates a little noise better than LBP and HOG do, but no method
tolerates 20 %. A curve hardly changes on a coarser grid as long as a grain has 4 points or more;
transforms should be compared at one resolution.
"""
TEXT = """
Noise and the curve: Gaussian fields (256 x 256, smoothed by 6 points, variance 1) plus white noise;
the L1 distance of the noisy curve to the clean one, relative to the area under abs(chi) of the
clean one. The noisy image is smoothed by `presmoothing` points first; the row for noise 0 shows
the effect of smoothing alone.

Noise and classification: the textures of the texture study, 64 x 64 pixels. Trained on clean
patches, tested on patches with white noise whose standard deviation is this fraction of the
patch's.

Resolution and the curve: fields of 1024 x 1024 points smoothed by 16, averaged over blocks; the
relative L1 distance of the curve to that at full resolution, and the largest distance to the curve
of another realisation for comparison. "points a grain" is sigma on the coarser grid.

Resolution and the transform: shapes with lobes drawn at 256 x 256 pixels and averaged down; the L2
distance of their smooth transforms (64 directions) to that at full resolution, relative to the mean
distance of two different shapes; and the correlation of the distances of all pairs of shapes with
those at full resolution. The first does not go to 0: a border made of pixels is a staircase at any
resolution, and in directions nearly across it its steps are components of their own. Compare
transforms at one resolution.

Means ± standard deviations over realisations, splits or shapes.
"""
THRESHOLDS = np.linspace(-4, 4, 161)
LEVELS = 0.0, 0.05, 0.1, 0.2, 0.4, 0.8
COMPARED = "ECC", "ECC, 3 bands", "LBP", "GLCM", "HOG", "persistence images"
COLOURS = dict(zip(COMPARED, (BLUE, "#003f66", VERMILION, ORANGE, GREEN, PURPLE), strict=True))

Floats = NDArray[np.float64]


def curve(image: Floats) -> tuple[Floats, Floats]:
    return THRESHOLDS, ecc.euler_curve(image, THRESHOLDS).values.astype(float)


def relative_distance(a: tuple[Floats, Floats], b: tuple[Floats, Floats]) -> float:
    """Return the L1 distance, relative to the area under abs(a)."""
    zero = THRESHOLDS, np.zeros_like(THRESHOLDS)
    between, size = distance_matrix([a], [b, zero], metric="L1")[0]
    return float(between / size)


def noise_on_curves(side: int, count: int) -> list[Row]:
    found: dict[tuple[float, float], list[float]] = {}
    for seed in np.random.SeedSequence(21).spawn(count):
        rng = np.random.default_rng(seed)
        clean = gaussian_field((side, side), 6.0, rng)
        noise = rng.standard_normal((side, side))
        for level in LEVELS:
            for sigma in (0.0, 1.0, 2.0, 3.0):
                noisy = clean + level * noise
                seen = gaussian_filter(noisy, sigma) if sigma else noisy
                distance = relative_distance(curve(clean), curve(seen))
                found.setdefault((level, sigma), []).append(distance)
    rows = []
    for level in LEVELS:
        row: Row = {"noise": level}
        for sigma in (0.0, 1.0, 2.0, 3.0):
            row[f"presmoothing {sigma:g}"] = summary(found[level, sigma])
        rows.append(row)
    return rows


def noise_on_classification(most: int, n_splits: int, names: tuple[str, ...]) -> list[Row]:
    images, kinds, regions = patches(64)
    chosen = np.random.default_rng(0).permutation(len(images))[:most]
    images = images[chosen].astype(float)
    kinds = kinds[chosen]
    regions = regions[chosen]
    noise = np.random.default_rng(22).standard_normal(images.shape)
    spread = images.std(axis=(1, 2), keepdims=True)
    rows: list[Row] = [{"noise": level} for level in LEVELS]
    for name in names:
        tables = [compute(FEATURES[name], images + level * spread * noise) for level in LEVELS]
        scores: list[list[float]] = [[] for _ in LEVELS]
        for training in splits(kinds, regions, n_splits, seed=1):
            model = classifier().fit(tables[0][training], kinds[training])
            for table, found in zip(tables, scores, strict=True):
                found.append(model.score(table[~training], kinds[~training]))
        for row, found in zip(rows, scores, strict=True):
            row[name] = summary(found)
    return rows


def resolution_of_curves(side: int, sigma: float, count: int) -> list[Row]:
    seeds = np.random.SeedSequence(23).spawn(count)
    fields = [gaussian_field((side, side), sigma, np.random.default_rng(seed)) for seed in seeds]
    full = [curve(field) for field in fields]
    others = [relative_distance(a, b) for a, b in pairwise(full)]
    rows: list[Row] = []
    for factor in (2, 4, 8, 16):
        coarse = [curve(block_reduce(field, (factor, factor), np.mean)) for field in fields]
        off = [relative_distance(a, b) for a, b in zip(full, coarse, strict=True)]
        rows.append(
            {
                "points": f"{side // factor} x {side // factor}",
                "points a grain": sigma / factor,
                "distance to full resolution": summary(off),
                "distance of two realisations": summary(others),
            }
        )
    return rows


def smooth_transform(mask: NDArray[np.bool_]) -> ecc.EulerTransform:
    """Return the smooth transform, with heights in units of half the frame."""
    result = ecc.euler_transform(mask, 64, 128, range=(-1.5, 1.5), spacing=2 / len(mask))
    return ecc.smooth_transform(result)


def distances_of_pairs(transforms: list[ecc.EulerTransform]) -> Floats:
    pairs = zip(*np.triu_indices(len(transforms), 1), strict=True)
    return np.array([ecc.transform_distance(transforms[i], transforms[j]) for i, j in pairs])


def resolution_of_transforms(side: int, each: int) -> list[Row]:
    masks, _ = lobes(each, side)
    full = [smooth_transform(mask) for mask in masks]
    others = distances_of_pairs(full)
    rows: list[Row] = []
    for factor in (2, 4, 8, 16):
        smaller = [block_reduce(mask, (factor, factor), np.mean) >= 0.5 for mask in masks]
        coarse = [smooth_transform(mask) for mask in smaller]
        off = [ecc.transform_distance(a, b) for a, b in zip(full, coarse, strict=True)]
        rows.append(
            {
                "pixels": f"{side // factor} x {side // factor}",
                "distance to full resolution": summary(np.array(off) / others.mean()),
                "correlation of distances": pearsonr(others, distances_of_pairs(coarse)).statistic,
            }
        )
    return rows


def run(quick: bool) -> Outcome:
    if quick:
        tables = {
            "Noise and the curve": noise_on_curves(128, 3),
            "Noise and classification": noise_on_classification(240, 2, ("ECC, 3 bands", "LBP")),
            "Resolution and the curve": resolution_of_curves(512, 8.0, 3),
            "Resolution and the transform": resolution_of_transforms(128, 2),
        }
    else:
        tables = {
            "Noise and the curve": noise_on_curves(256, 20),
            "Noise and classification": noise_on_classification(448, 10, COMPARED),
            "Resolution and the curve": resolution_of_curves(1024, 16.0, 10),
            "Resolution and the transform": resolution_of_transforms(256, 6),
        }
    return Outcome("Noise and resolution", TEXT, tables, {}, QUESTION, CONCLUSION)


def draw(outcome: Outcome) -> Figure:
    noise, classes, curves, _ = outcome.tables.values()
    with plt.rc_context(QUIET):
        figure = Figure(figsize=(10.5, 3.6), layout="constrained")
        first, second, third = figure.subplots(1, 3)
        smoothing = [name for name in noise[0] if name != "noise"]
        for name, colour in zip(smoothing, (VERMILION, ORANGE, GREEN, BLUE), strict=True):
            lines(first, noise[1:], key="noise", name=name, colour=colour)
        first.set(xlabel="noise / signal", ylabel="relative L1 distance to the clean curve")
        for name in COMPARED:
            lines(second, classes, key="noise", name=name, colour=COLOURS[name])
        second.set(
            xlabel="noise / signal", ylabel="accuracy, trained without noise", ylim=(0, 1.02)
        )
        for name, colour in zip(list(curves[0])[2:], (BLUE, ORANGE), strict=True):
            lines(third, curves, key="points a grain", name=name, colour=colour)
        third.set(xlabel="points a grain (sigma)", ylabel="relative L1 distance", ylim=(5e-3, 1))
        for ax, rows, key in ((first, noise[1:], "noise"), (third, curves, "points a grain")):
            ax.set(xscale="log", yscale="log")
            places = [row[key] for row in rows]
            ax.set_xticks(places, [f"{place:g}" for place in places])
            ax.set_xticks([], minor=True)
        for ax in (first, second, third):
            ax.legend(fontsize=8)
    return figure


def lines(ax: plt.Axes, rows: list[Row], key: str, name: str, colour: str) -> None:
    means, spreads = ([row[name][part] for row in rows] for part in ("mean", "sd"))
    at = [row[key] for row in rows]
    ax.errorbar(at, means, spreads, fmt="o-", color=colour, markersize=3, linewidth=1.2, label=name)


if __name__ == "__main__":
    report("robustness", run, draw)
