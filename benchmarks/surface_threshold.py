"""How often noise on a cortical surface exceeds the thresholds that are to hold it to 5 %.

    pip install nilearn nibabel
    python benchmarks/surface_threshold.py

White noise on the left white surface of fsaverage5, which nilearn ships, is averaged over
neighbours several times and scaled to variance 1. The threshold comes from 100 such maps; the share
of 2000 other maps whose maximum exceeds it is the family-wise error rate. Writes
benchmarks/results/surface_threshold.{json,md}.
"""

from __future__ import annotations

import json
import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import norm

from ecc_core.features import gaussian_threshold
from ecc_core.io import read_mesh

RESULTS = Path(__file__).parent / "results"
ALPHA = 0.05
STEPS = (4, 16)
"""Numbers of averaging steps."""
TRAINED = 100
TESTED = 2000
AT_ONCE = 250


def white_surface() -> np.ndarray:
    """Return the triangles of the surface."""
    spec = find_spec("nilearn")
    if spec is None or spec.origin is None:
        raise SystemExit("nilearn is not installed")
    data = Path(spec.origin).parent / "datasets" / "data" / "fsaverage5"
    return read_mesh(data / "white_left.gii.gz").triangles


def smoothing(triangles: np.ndarray, steps: int) -> Any:
    """Return a matrix that makes white noise smooth, of variance 1 at each point."""
    count = int(triangles.max()) + 1
    first, second = np.concatenate([triangles[:, pair] for pair in ((0, 1), (1, 2), (2, 0))]).T
    ones = np.ones(len(first))
    beside = sp.coo_matrix((ones, (first, second)), (count, count)).tocsr()
    beside = ((beside + beside.T) > 0).astype(float) + sp.eye(count)
    neighbours = np.asarray(beside.sum(axis=1)).ravel()
    mean = sp.diags(1 / neighbours) @ beside
    found = sp.identity(count, format="csr")
    for _ in range(steps):
        found = mean @ found
    variance = np.asarray(found.multiply(found).sum(axis=1)).ravel()
    return sp.diags(1 / np.sqrt(variance)) @ found


def study(triangles: np.ndarray, steps: int) -> dict[str, Any]:
    smooth = smoothing(triangles, steps)
    count = smooth.shape[0]
    rng = np.random.default_rng(steps)

    def maps(number: int) -> np.ndarray:
        return np.asarray((smooth @ rng.normal(size=(count, number))).T)

    found = gaussian_threshold((count,), ALPHA, residuals=maps(TRAINED), simplices=triangles)
    repetitions = range(TESTED // AT_ONCE)
    maxima = [maps(AT_ONCE).max(axis=1) for _ in repetitions]
    largest = np.concatenate(maxima)
    bound = float(norm.isf(ALPHA / count))
    return {
        "steps": steps,
        "points": count,
        "threshold": found.threshold,
        "error": found.error,
        "rate": float((largest >= found.threshold).mean()),
        "bonferroni": bound,
        "bonferroni_rate": float((largest >= bound).mean()),
    }


def markdown(rows: list[dict[str, Any]]) -> str:
    error = 100 * math.sqrt(ALPHA * (1 - ALPHA) / TESTED)
    lines = ["# Thresholds for maps on a cortical surface", "", (__doc__ or "").splitlines()[0], ""]
    lines += [
        f"{rows[0]['points']:,} points; {TESTED} maps, so that the standard error of 5 % is "
        f"{error:.2f} %.",
        "",
        "| averaged | threshold | its error | exceeded by, % | Bonferroni | exceeded by, % |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['steps']} times | {row['threshold']:.3f} | {row['error']:.3f} "
            f"| {100 * row['rate']:.2f} | {row['bonferroni']:.3f} "
            f"| {100 * row['bonferroni_rate']:.2f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    surface = white_surface()
    rows = [study(surface, steps) for steps in STEPS]
    (RESULTS / "surface_threshold.json").write_text(json.dumps(rows, indent=1) + "\n")
    (RESULTS / "surface_threshold.md").write_text(markdown(rows))
    print(markdown(rows))
