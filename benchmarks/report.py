"""Times of calls that take turns, and ratios with bounds, as JSON and as tables."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).parent / "results"
TURNS = 9
A_TURN = 0.02
"""Seconds for which a call is repeated."""

Clock = Callable[[], float]
Section = Callable[[bool], Iterator["Row"]]  # The argument is the flag `quick`.


class Row(NamedTuple):
    """A ratio, and the bound that it should meet. Times are in milliseconds."""

    case: str
    connectivity: int
    workers: int
    time: float | None
    ratio_of: str
    other: float
    turns: int
    ratio: float
    bar: str

    @property
    def met(self) -> bool | None:
        if not self.bar:
            return None
        relation, number = self.bar.split()
        return self.ratio <= float(number) if relation == "<=" else self.ratio >= float(number)


class Timed(NamedTuple):
    seconds: float
    turns: int
    result: Any


def least(call: Callable[[], Any], clock: Clock = time.perf_counter) -> tuple[float, Any]:
    """Return the least time of calls that are repeated for 20 ms, and the result."""
    best = float("inf")
    spent = 0.0
    while spent < A_TURN:
        start = clock()
        result = call()
        seconds = clock() - start
        best = min(best, seconds)
        spent += seconds
    return best, result


def in_turns(
    calls: dict[str, Callable[[], Any]], turns: int, clock: Clock = time.perf_counter
) -> dict[str, Timed]:
    """Return the least time of each call, all of which take turns."""
    best: dict[str, Timed] = {}
    for turn in range(turns):
        for name, call in calls.items():
            known = best.get(name)
            if known and known.seconds > 1 and turn >= (1 if known.seconds > 4 else 3):
                continue
            seconds, result = least(call, clock)
            if known:
                seconds = min(seconds, known.seconds)
                result = known.result
            best[name] = Timed(seconds, turn + 1, result)
    return best


def row(
    case: str,
    connectivity: int,
    workers: int,
    ours: Timed,
    other: tuple[str, Timed],
    bar: str = "",
    faster: bool = False,
) -> Row:
    """Return our time divided by the other's; with `faster`, the other's divided by ours."""
    name, peer = other
    ratio = peer.seconds / ours.seconds if faster else ours.seconds / peer.seconds
    text = f"{name} / time" if faster else f"time / {name}"
    times = ours.seconds * 1e3, text, peer.seconds * 1e3
    return Row(case, connectivity, workers, *times, peer.turns, ratio, bar)


def machine() -> dict[str, Any]:
    """Return the processor and the versions of libraries."""
    model = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        model = named[0] if named else model
    versions = {}
    for name in ("numpy", "numba", "scikit-image", "gudhi", "cripser", "pyect", "torch"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    versions["python"] = platform.python_version()
    return {"cpu": model, "cores": os.cpu_count(), "versions": versions}


def markdown(
    report: dict[str, Any], title: str, about: str, sections: Mapping[str, Section]
) -> str:
    """Return the report as tables in Markdown."""
    of = report["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in of["versions"].items())
    lines = [f"# {title}", "", f"{of['cpu']}, {of['cores']} cores; {versions}.", "", about]
    for name, rows in report["sections"].items():
        lines += [
            "",
            f"## {(sections[name].__doc__ or name).rstrip('.')}",
            "",
            "| case | connectivity | workers | ms | ratio | other, ms | repeats | value |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for values in rows:
            entry = Row(**values)
            spent = "" if entry.time is None else f"{entry.time:.4g}"
            other = f"{entry.other:.4g}" if entry.other else ""
            lines.append(
                f"| {entry.case} | {entry.connectivity} | {entry.workers} | {spent} "
                f"| {entry.ratio_of} | {other} | {entry.turns} | {entry.ratio:.3g} |"
            )
    return "\n".join(lines) + "\n"


def run(results: str, title: str, about: str, sections: Mapping[str, Section]) -> None:
    """Run a benchmark as a command: measure, print, and write `results` with .json and .md."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--quick", action="store_true", help="small images; writes nothing")
    parser.add_argument("--only", choices=sections, help="measure one section")
    arguments = parser.parse_args()
    report: dict[str, Any] = {"machine": machine(), "sections": {}}
    path = (RESULTS / results).with_suffix(".json")
    if arguments.only and path.exists() and not arguments.quick:
        known = json.loads(path.read_text())
        if known["machine"] == report["machine"]:
            report["sections"] = known["sections"]
    for name in [arguments.only] if arguments.only else sections:
        rows = [
            r._replace(bar="") if arguments.quick else r for r in sections[name](arguments.quick)
        ]
        report["sections"][name] = [r._asdict() for r in rows]
    report["sections"] = {k: report["sections"][k] for k in sections if k in report["sections"]}
    tables = markdown(report, title, about, sections)
    if not arguments.quick:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report, indent=1) + "\n")
        path.with_suffix(".md").write_text(tables)
    print(tables)
    for entry in (Row(**values) for rows in report["sections"].values() for values in rows):
        if entry.met is False:
            print(f"{entry.case}: {entry.ratio_of} is {entry.ratio:.3g}, not {entry.bar}")
