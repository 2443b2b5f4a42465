"""The outcome of a study: tables as JSON and Markdown, and a figure. All studies use it.

python benchmarks/evidence/outcome.py solar_cells    # writes its text again, without a run
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import scipy.stats
from matplotlib.figure import Figure

from ecc_core.io import write_figure

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "evidence"
IMAGES = ROOT / "docs" / "images"
LIBRARIES = "numpy", "scipy", "scikit-image", "scikit-learn", "gudhi", "torch"
# Okabe and Ito's colours can be told apart with every kind of colour vision.
BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
ORANGE = "#E69F00"
SKY = "#56B4E9"
PURPLE = "#CC79A7"
GRAY = "#7f7f7f"
BLACK = "#1a1a1a"
A_TURN = 0.02
"""Seconds for which a call is repeated."""
QUIET = {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}

Row = dict[str, Any]


class Outcome(NamedTuple):
    """The title and the text of a study, its tables by their titles, and arrays for the figure."""

    title: str
    text: str
    tables: dict[str, list[Row]]
    arrays: dict[str, Any]
    question: str = ""
    conclusion: str = ""


def best_times(calls: dict[str, Callable[[], Any]], turns: int = 9) -> dict[str, float]:
    """Return the least processor time of each call in seconds, in turns of at least 20 ms each."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(turns):
        for name, call in calls.items():
            spent = 0.0
            while spent < A_TURN:
                start = time.process_time()
                call()
                seconds = time.process_time() - start
                best[name] = min(best[name], seconds)
                spent += seconds
    return best


def summary(values: Iterable[float]) -> dict[str, float]:
    """Return mean and standard deviation over repetitions."""
    array = np.array(list(values), dtype=float)
    return {"mean": float(array.mean()), "sd": float(array.std(ddof=1))}


def interval(values: Iterable[float]) -> dict[str, float]:
    """Return the mean and half the width of its 95 % confidence interval (Student's t)."""
    array = np.array(list(values), dtype=float)
    half = scipy.stats.t.ppf(0.975, array.size - 1) * array.std(ddof=1) / np.sqrt(array.size)
    return {"mean": float(array.mean()), "95 %": float(half)}


def machine() -> dict[str, str]:
    found = {"python": platform.python_version(), "system": platform.system()}
    found["cores"] = str(os.cpu_count())
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line for line in lines if "model name" in line)
        found["cpu"] = model.partition(": ")[2]
    except (OSError, StopIteration):
        found["cpu"] = platform.machine()
    return found | {name: importlib.metadata.version(name) for name in LIBRARIES}


def cell(value: Any) -> str:
    if isinstance(value, dict):
        if "low" in value:
            return f"{value['mean']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"
        mean, spread = value.values()
        return f"{mean:.3f} ± {spread:.3f}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def markdown(outcome: Outcome, command: str, of: dict[str, str]) -> str:
    lines = [f"# {outcome.title}", ""]
    if outcome.question:
        lines += [f"**Question.** {outcome.question.strip()}", ""]
        lines += [f"**Answer.** {outcome.conclusion.strip()}", ""]
    for title, rows in outcome.tables.items():
        names = list(rows[0])
        lines += [f"## {title}", "", f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
        for row in rows:
            cells = " | ".join(cell(row[name]) for name in names)
            lines.append(f"| {cells} |")
        lines.append("")
    lines += ["## How it was done", "", outcome.text.strip(), ""]
    versions = ", ".join(f"{name} {value}" for name, value in of.items())
    return "\n".join([*lines, f"`{command}` on: {versions}.", ""])


def command_of(name: str) -> str:
    return f"python benchmarks/evidence/{name}.py"


def rewrite(name: str) -> None:
    """Write the page of a study again, from its script and the tables of its last run."""
    study = importlib.import_module(name)
    path = RESULTS / f"{name.replace('_', '-')}.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    outcome = Outcome(
        title=found["title"],
        text=study.TEXT,
        tables=found["tables"],
        arrays={},
        question=study.QUESTION,
        conclusion=study.CONCLUSION,
    )
    text = markdown(outcome, command_of(name), found["machine"])
    path.with_suffix(".md").write_text(text, encoding="utf-8")


def report(
    name: str, run: Callable[[bool], Outcome], draw: Callable[[Outcome], Figure] | None = None
) -> None:
    """Run a study as a command, and write its outcome; `--quick` writes nothing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a small setting, nothing is written")
    quick = parser.parse_args().quick
    start = time.perf_counter()
    outcome = run(quick)
    text = markdown(outcome, command_of(name), machine())
    print(text, f"{time.perf_counter() - start:.0f} s", sep="\n")
    if quick:
        return
    RESULTS.mkdir(parents=True, exist_ok=True)
    stem = name.replace("_", "-")
    (RESULTS / f"{stem}.md").write_text(text, encoding="utf-8")
    found = {"title": outcome.title, "tables": outcome.tables, "machine": machine()}
    (RESULTS / f"{stem}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if draw:
        write_figure(IMAGES / f"evidence-{stem}.png", draw(outcome), dpi=160)


def _colour(name: str, reference: str) -> str:
    """Return the colour of some features: the reference, others with Euler curves, the rest."""
    if name == reference:
        return BLUE
    if "EC" in name:
        return SKY
    return GRAY


def draw_scores(outcome: Outcome, metric: str, label: str, reference: str) -> Figure:
    """Draw a panel for each table: scores with their intervals, the reference in blue."""
    with plt.rc_context(QUIET):
        most = max(len(rows) for rows in outcome.tables.values())
        size = (4.8 * len(outcome.tables), 0.32 * most + 1.2)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(1, len(outcome.tables), squeeze=False)[0]
        for ax, (title, rows) in zip(axes, outcome.tables.items(), strict=True):
            names = [row["features"] for row in rows]
            found = [row[metric] for row in rows]
            means = np.array([one["mean"] for one in found])
            reach = [means - [one["low"] for one in found], [one["high"] for one in found] - means]
            colours = [_colour(name, reference) for name in names]
            ax.barh(names, means, 0.65, xerr=np.abs(reach), color=colours, ecolor="#404040")
            for place, mean in enumerate(means):
                ax.text(
                    0.01,
                    place,
                    f" {mean:.3f}",
                    va="center",
                    color="white",
                    fontsize=8,
                    transform=ax.get_yaxis_transform(),
                )
            ax.invert_yaxis()
            low = min(one["low"] for one in found)
            start = np.floor(10 * low - 1) / 10
            ax.set(xlim=(max(0.0, start), 1), xlabel=label, title=title)
    return figure


if __name__ == "__main__":
    for study in sys.argv[1:]:
        rewrite(study)
