"""Times of single calls from Python on a CUDA device, remembered and not.

    python -m benchmarks.cuda_calls [--output benchmarks/results/cuda_calls]

Microseconds between two events around the call, or by the clock until the number is there; the
least of many calls, in turns. Calls that are not remembered pass all checks. Writes JSON and
Markdown.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import cupy
import numpy as np

import ecc_core as ecc
from benchmarks.cuda import field

TURNS = 400
HEAD = "| call | timed by | remembered | not | bar |"


def never(*_: Any) -> None:
    """What a call is not remembered by."""


def between_events(call: Callable[[], Any]) -> float:
    stream = cupy.cuda.get_current_stream()
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    stream.synchronize()
    start.record(stream)
    call()
    stop.record(stream)
    stop.synchronize()
    return float(1e3 * cupy.cuda.get_elapsed_time(start, stop))


def by_clock(call: Callable[[], Any]) -> float:
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    call()
    return 1e6 * (time.perf_counter() - start)


def cases() -> Iterator[tuple[str, Callable[[], Any], Callable[..., float], str]]:
    """Titles, calls, how they are timed, and the most microseconds they may take."""
    at = np.linspace(0, 1, 256)
    given = cupy.asarray(at)
    for n in (128, 1024):
        (image,) = field((n, n), 0, "float32")
        known = ecc.euler_curve(image.get(), at).values
        for name, thresholds in (("host", at), ("device", given)):

            def call(image: Any = image, thresholds: Any = thresholds) -> Any:
                return ecc.euler_curve(image, thresholds).values

            np.testing.assert_array_equal(call().get(), known)
            bar = "35" if n == 1024 else ""
            yield f"{n}^2 float32, thresholds on the {name}", call, between_events, bar
    for shape in ((8192,) * 2, (512,) * 3):
        mask = field(shape, 4, "float32")[0] < 0.5
        ms = mask.nbytes / 4.46e12 * 1e6
        title = f"`euler_number` of a mask {shape[0]}^{len(shape)}"
        yield title, lambda mask=mask: ecc.euler_number(mask), by_clock, f"{2.5 * ms:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_calls"))
    arguments = parser.parse_args()
    rows = []
    for title, call, timer, bar in cases():
        least = {True: np.inf, False: np.inf}
        with mock.patch("ecc_core._arrays.repeats.call_of", never):
            for _ in range(10):
                call()
        for turn in range(TURNS):
            least[True] = min(least[True], timer(call))
            if turn % 4 == 0:
                with mock.patch("ecc_core._arrays.repeats.call_of", never):
                    least[False] = min(least[False], timer(call))
        how = timer.__name__.replace("_", " ")
        rows.append({"call": title, "timed": how, "us": least[True], "not": least[False]})
        rows[-1]["bar"] = bar
        print(rows[-1], flush=True)
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    report = {"device": name, "rows": rows}
    arguments.output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    lines = [
        f"| {r['call']} | {r['timed']} | {r['us']:.1f} | {r['not']:.1f} | {r['bar']} |"
        for r in rows
    ]
    text = " ".join(part.strip() for part in (__doc__ or "").split("\n\n")[2].splitlines())
    table = "\n".join([HEAD, "|---" * HEAD.count(" | ") + "|---|", *lines])
    arguments.output.with_suffix(".md").write_text(
        f"# Calls from Python on a CUDA device\n\n{name}; cupy {cupy.__version__}. {text}\n\n"
        f"{table}\n"
    )


if __name__ == "__main__":
    main()
