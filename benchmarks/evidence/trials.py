"""Comparisons of features: choices by validation, one test, intervals and paired tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from outcome import Row
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

Indices = NDArray[np.int64]
Table = NDArray[np.float64]
Candidates = Mapping[str, Table]
"""Tables of features, one row for each object, by the setting of the method that made them."""
SHARES = 0.5, 0.2
"""Shares of objects for training and for validation; others are for the test."""
MODELS = tuple(
    make_pipeline(scaler, SVC(C=penalty))
    for scaler in (StandardScaler(), "passthrough")
    for penalty in (1.0, 10.0, 100.0)
)


class Trial(NamedTuple):
    """Which objects train, validate and test."""

    training: Indices
    validation: Indices
    test: Indices


def trials(kinds: Indices, count: int, seed: int, groups: Indices | None = None) -> list[Trial]:
    """Return random divisions in which the objects of a group, such as a region, stay together."""
    rng = np.random.default_rng(seed)
    groups = np.arange(kinds.size) if groups is None else groups
    found = []
    for _ in range(count):
        parts: tuple[list[Indices], ...] = ([], [], [])
        for kind in np.unique(kinds):
            own = rng.permutation(np.unique(groups[kinds == kind]))
            cuts = np.round(np.cumsum(SHARES) * own.size).astype(int)
            for part, chosen in zip(parts, np.split(own, cuts), strict=True):
                part.append(np.flatnonzero((kinds == kind) & np.isin(groups, chosen)))
        found.append(Trial(*map(np.concatenate, parts)))
    return found


def score(candidates: Candidates, kinds: Indices, trial: Trial, metric: str) -> tuple[float, str]:
    """Return the score on the test set with the best setting of the validation set, and this."""
    judge = get_scorer(metric)
    best = -np.inf
    chosen = ("", MODELS[0])
    for setting, table in candidates.items():
        for model in MODELS:
            fitted = clone(model).fit(table[trial.training], kinds[trial.training])
            found = judge(fitted, table[trial.validation], kinds[trial.validation])
            if found > best:
                best = found
                chosen = (setting, model)
    setting, model = chosen
    known = np.concatenate([trial.training, trial.validation])
    table = candidates[setting]
    fitted = clone(model).fit(table[known], kinds[known])
    return float(judge(fitted, table[trial.test], kinds[trial.test])), setting


def interval(values: Iterable[float], overlap: float) -> dict[str, float]:
    """Return mean and 95 % interval over trials, with Nadeau and Bengio's correction.

    `overlap` is the number of test objects divided by that of known ones if the trials divide the
    same objects, which makes their scores dependent, and 0 if each trial draws its own.
    """
    array = np.array(list(values), dtype=float)
    error = np.sqrt(array.var(ddof=1) * (1 / array.size + overlap))
    half = float(student.ppf(0.975, array.size - 1) * error)
    mean = float(array.mean())
    return {"mean": mean, "low": mean - half, "high": mean + half}


def p_value(differences: Sequence[float], overlap: float) -> float:
    """Return the two-sided p-value of the paired t-test with the same correction."""
    array = np.array(differences, dtype=float)
    error = np.sqrt(array.var(ddof=1) * (1 / array.size + overlap))
    if error == 0:
        return 1.0 if array.mean() == 0 else 0.0
    statistic = abs(array.mean()) / error
    return float(2 * student.sf(statistic, array.size - 1))


def overlap_of(trial: Trial) -> float:
    return trial.test.size / (trial.training.size + trial.validation.size)


def rows_of(
    scores: Mapping[str, Sequence[float]], reference: str, metric: str, overlap: float
) -> list[Row]:
    """Return a row for each method: its score, and the difference from the reference."""
    rows: list[Row] = []
    for name, values in scores.items():
        row: Row = {"features": name, metric: interval(values, overlap)}
        off = np.subtract(values, scores[reference])
        row["minus reference"] = "" if name == reference else interval(off, overlap)
        row["p"] = "" if name == reference else p_value(off, overlap)
        rows.append(row)
    return rows


def compare(
    features: Mapping[str, Candidates],
    kinds: Indices,
    chosen: list[Trial],
    reference: str,
    metric: str = "accuracy",
) -> list[Row]:
    """Return scores of all methods in the same trials."""
    scores: dict[str, list[float]] = {}
    settings: dict[str, list[str]] = {}
    for name, candidates in features.items():
        calls = (delayed(score)(candidates, kinds, trial, metric) for trial in chosen)
        found = Parallel(2, prefer="threads")(calls)
        scores[name] = [value for value, _ in found]
        settings[name] = [setting for _, setting in found]
    rows = rows_of(scores, reference, metric, overlap_of(chosen[0]))
    for row in rows:
        of = settings[row["features"]]
        row["setting chosen"] = max(set(of), key=of.count)
    return rows
