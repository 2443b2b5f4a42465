"""Ordinary calls on the CPU, as multiples of the fastest one.

    python benchmarks/cpu_map.py [--quick] [--only GROUP] [--workers]

The measure is the time a point of ``euler_curve`` with one worker, of a contiguous float32 image of
the same dimension and smoothness at 256 even thresholds. Every call takes turns with it in one run,
and the least times count: the processor time of the thread that calls, in which other processes do
not count. Writes benchmarks/results/cpu_map.json and .md, and docs/images/cpu-map.png; `--quick`
takes small images and writes nothing. `--workers` only adds the gain in real time of a second
worker to the results there are, for four times as many points, and needs an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

if "--workers" not in sys.argv:  # Calls without `workers` use one thread, too.
    os.environ["NUMBA_NUM_THREADS"] = "1"

import numpy as np
from cpu_map_cases import GROUPS, Case, Images, measures
from report import A_TURN, RESULTS, in_turns, machine

TURNS = 5


def thread_time(call: Callable[[], Any]) -> float:
    """Return the least processor time of calls that follow each other for 20 ms."""
    best = float("inf")
    spent = 0.0
    while spent < A_TURN:
        start = time.thread_time()
        call()
        seconds = time.thread_time() - start
        best = min(best, seconds)
        spent += seconds
    return best


def measure(case: Case, against: tuple[Callable[[int], Any], int] | None) -> dict[str, Any]:
    """Return the times of a case and of the call it is compared with, both with one worker."""
    one_thread = partial(case.call, 1)
    one_thread()
    one = fastest = float("inf")
    for _ in range(TURNS):
        one = min(one, thread_time(one_thread))
        if against is not None:
            fastest_call, _ = against
            fastest = min(fastest, thread_time(partial(fastest_call, 1)))
    entry: dict[str, Any] = {"case": case.name, "ms": one * 1e3, "bar": case.bar}
    if against is None:
        entry |= {"unit": "us", "value": one * 1e6}
    else:
        fastest /= against[1]
        entry |= {"unit": "x", "of": case.measure, "value": one / case.points / fastest}
        entry["ns"] = one / case.points * 1e9
    met = case.bar is None or entry["value"] <= case.bar
    entry["cause"] = "" if met else case.cause
    return entry


def gain(case: Case) -> float:
    """Return how many times as fast a case is with two workers."""
    timed = in_turns({"one": lambda: case.call(1), "two": lambda: case.call(2)}, TURNS)
    return timed["one"].seconds / timed["two"].seconds


def table(report: dict[str, Any]) -> str:
    """Return the report as one table for each group."""
    of = report["machine"]
    lines = ["# Ordinary calls on the CPU", "", f"{of['cpu']}, {of['cores']} cores.", ""]
    lines += [
        "Multiples of the time a point of the fastest call: contiguous float32, 256 even "
        "thresholds, one worker, the same dimension and smoothness. Processor time. Two workers: "
        "how many times as fast they are as one, in real time, for four times as many points. "
        "Written by `python benchmarks/cpu_map.py`.",
    ]
    for name, entries in report["groups"].items():
        lines += ["", f"## {(GROUPS[name].__doc__ or name).rstrip('.')}", ""]
        lines += ["| call | ms | ns a point | multiple | two workers | why |"]
        lines += ["|---|---|---|---|---|---|"]
        for entry in entries:
            unit = " µs" if entry["unit"] == "us" else ""
            two = f"{entry['two workers']:.2f}" if "two workers" in entry else ""
            point = f"{entry['ns']:.2f}" if "ns" in entry else ""
            lines.append(
                f"| {entry['case']} | {entry['ms']:.3g} | {point} | {entry['value']:.3g}{unit} "
                f"| {two} | {entry['cause']} |"
            )
    return "\n".join(lines) + "\n"


def picture(report: dict[str, Any], path: Any) -> None:
    """Draw one bar for each call."""
    from matplotlib import pyplot as plt

    entries = [e for group in report["groups"].values() for e in group if e["unit"] == "x"]
    figure, axes = plt.subplots(figsize=(8, 0.2 * len(entries) + 1), layout="constrained")
    places = np.arange(len(entries))
    axes.barh(places, [entry["value"] for entry in entries])
    axes.set_yticks(places, [entry["case"] for entry in entries], fontsize=6)
    axes.set(xscale="log", xlabel="multiple of the fastest call, a point")
    axes.axvline(1, color="0.7", linewidth=0.8)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small images; writes nothing")
    parser.add_argument("--only", choices=GROUPS, help="measure one group")
    parser.add_argument("--workers", action="store_true", help="measure two workers, too")
    arguments = parser.parse_args()
    side = 4096 if arguments.workers else 2048  # Two workers pay off for 10^7 points.
    images = Images(512 if arguments.quick else side)
    against = measures(images)
    report: dict[str, Any] = {"machine": machine(), "groups": {}}
    path = RESULTS / "cpu_map.json"
    if arguments.only or arguments.workers:
        report["groups"] = json.loads(path.read_text())["groups"]
    for name in [arguments.only] if arguments.only else GROUPS:
        cases = GROUPS[name](images)
        if arguments.workers:
            for entry, case in zip(report["groups"][name], cases, strict=True):
                entry["two workers"] = gain(case)
        else:
            report["groups"][name] = [measure(case, against.get(case.measure)) for case in cases]
    text = table(report)
    if not arguments.quick:
        path.write_text(json.dumps(report, indent=1) + "\n")
        path.with_suffix(".md").write_text(text)
        picture(report, RESULTS.parents[1] / "docs" / "images" / "cpu-map.png")
    print(text)


if __name__ == "__main__":
    main()
