"""Real textures told apart by Euler curves, LBP, GLCM, HOG and persistence images.

    python benchmarks/evidence/texture_classification.py [--quick]

Writes benchmarks/results/evidence/texture-classification.{json,md} and
docs/images/evidence-texture-classification.png.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from outcome import BLUE, GRAY, ORANGE, QUIET, Outcome, Row, best_times, report, summary
from textures import FEATURES, classifier, compute, patches, splits, standardised

TEXT = """
Seven textures of 512 x 512 pixels from images that come with scikit-image: brick, grass, gravel,
tissue (immunohistochemistry), moon, galaxies (Hubble deep field), retina. They are cut into
patches, each brought to mean 0 and variance 1. For each split half of the 16 regions (128 x 128
pixels) of every image, drawn at random, train, and the other half test: no pixel is in both.
Accuracies are means ± standard deviations over the splits; "turned" tests on patches turned by 90
degrees after training on upright ones. The classifier is the same for all: a support vector machine
whose C and whether features are scaled is chosen by cross-validation within the training set. "3
bands" are the patch and two differences of Gaussians (sigma 0, 1, 2), chosen on these images. ECC:
32 thresholds, roots of the counts. LBP: uniform, radii 1, 2, 3. GLCM: 16 levels, distances 1, 2, 4,
mean and range over 4 angles of 7 properties. HOG: 4 x 4 cells, 9 orientations. Persistence images:
GUDHI's cubical persistence in dimensions 0 and 1, 12 x 12 pixels each. Times are for one patch on
one thread, the least of 9 turns over 20 patches.
"""
TIMED = 20


def study(side: int, most: int, names: list[str], n_splits: int) -> list[Row]:
    images, kinds, regions = patches(side)
    chosen = np.random.default_rng(0).permutation(len(images))[:most]
    images, kinds, regions = images[chosen], kinds[chosen], regions[chosen]
    rows: list[Row] = []
    for name in names:
        upright = compute(FEATURES[name], images)
        turned = compute(FEATURES[name], np.rot90(images, axes=(1, 2)))
        accuracies: dict[str, list[float]] = {"accuracy": [], "turned": []}
        for training in splits(kinds, regions, n_splits, seed=1):
            model = classifier().fit(upright[training], kinds[training])
            for key, features in (("accuracy", upright), ("turned", turned)):
                accuracies[key].append(model.score(features[~training], kinds[~training]))
        found = {key: summary(each) for key, each in accuracies.items()}
        rows.append({"features": name, "numbers": upright.shape[1], **found})
    ready = [standardised(image) for image in images[:TIMED]]
    calls = {name: lambda name=name: [FEATURES[name](one) for one in ready] for name in names}
    seconds = best_times(calls)
    for row in rows:
        row["ms a patch"] = 1e3 * seconds[row["features"]] / len(ready)
        row["time / ECC's"] = seconds[row["features"]] / seconds[names[0]]
    return rows


def run(quick: bool) -> Outcome:
    if quick:
        names = ["ECC", "ECC, 3 bands", "HOG", "persistence images"]
        tables = {"Patches of 64 x 64 pixels": study(64, 240, names, 2)}
    else:
        names = list(FEATURES)
        tables = {
            f"Patches of {side} x {side} pixels": study(side, 900, names, 10) for side in (64, 32)
        }
    return Outcome("Texture classification", TEXT, tables, {})


def draw(outcome: Outcome) -> Figure:
    with plt.rc_context(QUIET):
        figure = Figure(figsize=(9, 3.8), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for ax, (title, rows) in zip(axes, outcome.tables.items(), strict=True):
            names = [row["features"] for row in rows]
            places = np.arange(len(rows))
            for offset, key, colour in ((-0.2, "accuracy", BLUE), (0.2, "turned", ORANGE)):
                ax.barh(
                    places + offset,
                    [row[key]["mean"] for row in rows],
                    0.38,
                    xerr=[row[key]["sd"] for row in rows],
                    color=colour,
                    ecolor=GRAY,
                    label={"accuracy": "upright", "turned": "turned by 90°"}[key],
                )
            for place, row in zip(places, rows, strict=True):
                ax.text(1.03, place, f"{row['ms a patch']:.2g} ms", va="center", fontsize=9)
            ax.set(yticks=places, yticklabels=names, xlim=(0.4, 1), xlabel="accuracy", title=title)
            ax.invert_yaxis() if ax is axes[0] else None
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


if __name__ == "__main__":
    report("texture_classification", run, draw)
