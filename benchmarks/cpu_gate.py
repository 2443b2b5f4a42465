"""Compare the ordinary calls of two checkouts, by turns, and fail if one of them became slower.

    python benchmarks/cpu_gate.py BASE [--limit 1.15] [--only GROUP] [--turns 7]

BASE is the folder of another checkout, such as the main branch. One process for each checkout makes
the calls of ``cpu_map_cases.py`` on the same small images, and the two take turns, call by call.
The measure is the least processor time of the thread that calls. A call that seems slower than the
limit is measured again with three times as many turns before it counts. Calls that BASE does not
have are named and left out. The exit code is 1 if a ratio exceeds the limit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
SIDE = 1024
MOST_RETRIES = 3


class Checkout:
    """A process that makes the calls of one checkout, and says how long they take."""

    def __init__(self, folder: Path) -> None:
        paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "NUMBA_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        package = Path(self.ask({"ask": "package"}))
        if folder not in package.parents:
            raise SystemExit(f"{folder} has no package ecc_core: {package} was imported")

    def ask(self, question: dict[str, Any]) -> Any:
        """Send a question to the process and wait for its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(question), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"the process of a checkout ended with {self.process.wait()}")
        return json.loads(answer)

    def names(self, group: str) -> list[str]:
        """Return the names of the calls of a group."""
        names: list[str] = self.ask({"ask": "names", "group": group})
        return names

    def seconds(self, group: str, place: int) -> float | None:
        """Return the least time of one call in one turn, None if the checkout cannot make it."""
        found: float | None = self.ask({"ask": "time", "group": group, "place": place})
        return found


def serve() -> None:
    """Answer the questions of a `Checkout`."""
    import cpu_map_cases

    images = cpu_map_cases.Images(SIDE)
    groups: dict[str, list[cpu_map_cases.Case]] = {}
    for line in sys.stdin:
        question = json.loads(line)
        if question["ask"] == "package":
            answer: Any = cpu_map_cases.ecc.__file__
        else:
            group = question["group"]
            if group not in groups:
                groups[group] = list(cpu_map_cases.GROUPS[group](images))
            cases = groups[group]
            if question["ask"] == "names":
                answer = [case.name for case in cases]
            else:
                answer = seconds_of(cases[question["place"]])
        print(json.dumps(answer), flush=True)


def seconds_of(case: Any) -> float | None:
    """Return the least processor time of a call, None if this checkout cannot make it."""
    import cpu_map

    try:
        return cpu_map.thread_time(lambda: case.call(1))
    except (AttributeError, TypeError, ValueError) as error:
        print(f"{case.name}: {error}", file=sys.stderr)
        return None


def ratio_of(
    base: Checkout, here: Checkout, group: str, place: int, turns: int
) -> tuple[float, float] | None:
    """Return the least times of a call in both checkouts, None if one of them cannot make it."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for checkout, found in zip((base, here), times, strict=True):
            seconds = checkout.seconds(group, place)
            if seconds is None:
                return None
            found.append(seconds)
    return min(times[0]), min(times[1])


def compare(
    base: Checkout, here: Checkout, groups: list[str], turns: int, limit: float
) -> list[tuple[str, float]]:
    """Print the ratio of every call, and return them with their names."""
    ratios = []
    for group in groups:
        for place, name in enumerate(here.names(group)):
            ratio_of(base, here, group=group, place=place, turns=1)  # It compiles.
            for attempt in range(MOST_RETRIES):
                times = ratio_of(
                    base, here, group=group, place=place, turns=turns * (1 if attempt == 0 else 3)
                )
                if times is None or times[1] <= limit * times[0]:
                    break
            if times is None:
                print(f"{'not in both':>30}  {name}", flush=True)
                continue
            ratio = times[1] / times[0]
            ratios.append((name, ratio))
            milliseconds = f"{times[0] * 1e3:.3f} -> {times[1] * 1e3:.3f} ms"
            print(f"{milliseconds:>24} {ratio:5.2f}  {name}", flush=True)
    return ratios


def main() -> None:
    import cpu_map_cases

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", type=Path, help="the folder of another checkout")
    parser.add_argument("--limit", type=float, default=1.15, help="largest ratio that passes")
    parser.add_argument("--only", choices=cpu_map_cases.GROUPS, help="compare one group")
    parser.add_argument("--turns", type=int, default=7, help="turns of each call")
    arguments = parser.parse_args()
    base = Checkout(arguments.base.resolve())
    here = Checkout(HERE.parents[1])
    groups = [arguments.only] if arguments.only else list(cpu_map_cases.GROUPS)
    ratios = compare(base, here, groups=groups, turns=arguments.turns, limit=arguments.limit)
    slower = [f"{ratio:.2f}  {name}" for name, ratio in ratios if ratio > arguments.limit]
    median = statistics.median(ratio for _, ratio in ratios)
    print(f"{len(ratios)} calls, median ratio {median:.2f}, {len(slower)} above {arguments.limit}")
    if slower:
        raise SystemExit("slower than the base:\n" + "\n".join(slower))


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else main()
