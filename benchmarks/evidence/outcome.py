"""What a study found: tables as JSON and Markdown, and a figure. Shared by the scripts here."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
from matplotlib.figure import Figure

from ecc_core.io import write_figure

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "evidence"
IMAGES = ROOT / "docs" / "images"
LIBRARIES = "numpy", "scipy", "scikit-image", "scikit-learn", "gudhi", "torch"
# Okabe and Ito's colours, told apart whatever one's colour vision
BLUE, VERMILION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE, GRAY, BLACK = "#56B4E9", "#CC79A7", "#7f7f7f", "#1a1a1a"
A_TURN = 0.02  # seconds
QUIET = {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}

Row = dict[str, Any]


class Outcome(NamedTuple):
    """A study's title, what was done, tables by their titles, and arrays for the figure."""

    title: str
    text: str
    tables: dict[str, list[Row]]
    arrays: dict[str, Any]


def best_times(calls: dict[str, Callable[[], Any]], turns: int = 9) -> dict[str, float]:
    """The least time of each call in seconds; calls take turns, each of at least 20 ms."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(turns):
        for name, call in calls.items():
            spent = 0.0
            while spent < A_TURN:
                start = time.perf_counter()
                call()
                seconds = time.perf_counter() - start
                best[name], spent = min(best[name], seconds), spent + seconds
    return best


def summary(values: Iterable[float]) -> dict[str, float]:
    """Mean and standard deviation over repetitions."""
    array = np.array(list(values), dtype=float)
    return {"mean": float(array.mean()), "sd": float(array.std(ddof=1))}


def interval(values: Iterable[float]) -> dict[str, float]:
    """Mean and half the width of its 95 % confidence interval (Student's t)."""
    array = np.array(list(values), dtype=float)
    half = scipy.stats.t.ppf(0.975, array.size - 1) * array.std(ddof=1) / np.sqrt(array.size)
    return {"mean": float(array.mean()), "95 %": float(half)}


def machine() -> dict[str, str]:
    found = {"python": platform.python_version(), "system": platform.system()}
    found["cores"] = str(os.cpu_count())
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        found["cpu"] = next(line for line in lines if "model name" in line).partition(": ")[2]
    except (OSError, StopIteration):
        found["cpu"] = platform.machine()
    return found | {name: importlib.metadata.version(name) for name in LIBRARIES}


def cell(value: Any) -> str:
    if isinstance(value, dict):
        mean, spread = value.values()
        return f"{mean:.3f} ± {spread:.3f}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def markdown(outcome: Outcome, command: str) -> str:
    lines = [f"# {outcome.title}", "", outcome.text.strip(), ""]
    for title, rows in outcome.tables.items():
        names = list(rows[0])
        lines += [f"## {title}", "", f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
        lines += [f"| {' | '.join(cell(row[name]) for name in names)} |" for row in rows]
        lines.append("")
    versions = ", ".join(f"{name} {value}" for name, value in machine().items())
    return "\n".join([*lines, f"`{command}` on: {versions}.", ""])


def report(
    name: str, run: Callable[[bool], Outcome], draw: Callable[[Outcome], Figure] | None = None
) -> None:
    """Run a study from the command line and write what it found; `--quick` writes nothing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a small setting, nothing is written")
    quick = parser.parse_args().quick
    start = time.perf_counter()
    outcome = run(quick)
    text = markdown(outcome, f"python benchmarks/evidence/{name}.py")
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
