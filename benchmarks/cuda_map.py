"""Every ordinary call on a CUDA device, as multiples of the time it takes to read its own bytes.

    python -m benchmarks.cuda_map [--rows WORDS] [--beside CHECKOUT ...] [--output FILE]
    python -m benchmarks.cuda_map --warm [--share 0/8] [--checkout CHECKOUT]
    python -m benchmarks.cuda_map --picture docs/images/cuda-map.png

Each case is compared with the CPU backend (long ones on a part of the image), then timed on the
device: by replaying a CUDA graph where a call can be captured, else by the clock until the device
is done. NaN is an error, as by default: in a graph the device looks for it, but the host does not
wait. The time of the host is that of the same call of a small image, the least of many; where a
call waits for the device, that is included. The rate of reading is that of a max-reduction of
4 GiB.

`--beside` measures other checkouts of this repository by turns in the same run, each in a process
of its own. `--rows` takes the rows whose titles contain one of the words. `--warm` only compiles
what a share of the cases needs. Writes JSON and Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import ecc_core as ecc
from benchmarks.checkouts import REPOSITORY, Checkout, answer_questions
from benchmarks.pages import cuda_device, rule

try:
    import cupy

    from benchmarks.cuda_map_cases import Case, cases, shape_of
    from benchmarks.cuda_timing import field, read_rate, replay
    from ecc_core._backends.cuda import launch
except ImportError:  # `--picture` needs no CuPy.
    pass

FIELDS = {"noise": 0, "smooth": 4}
SMALL = {1: (1 << 16,), 2: (256, 256), 3: (32, 64, 64)}
"""Shapes of images for the time of the host."""
TURNS = 2
MODULE = "benchmarks.cuda_map"
"""The name of this file, which is also right where it is the main module."""
LOOPED, SIDES = 32, (64, 128, 256, 512)
"""Numbers and sides of small images in a loop."""
PICTURED = ("8192^2", "512^3")
"""Sizes of images in the picture."""
TICKS = (1, 2, 3, 5, 10, 20, 30)
"""Ticks of the axis of the picture."""


@lru_cache(maxsize=4)
def a_field(shape: tuple[int, ...], sigma: float) -> Any:
    return field(shape, sigma, "float32")[0]


def clock(call: Callable[[], Any]) -> float:
    """Return the seconds until the device has finished, the least of several calls."""
    best = float("inf")
    spent = 0.0
    while spent < 0.1:
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        call()
        cupy.cuda.Device().synchronize()
        best = min(best, time.perf_counter() - start)
        spent += time.perf_counter() - start
    return best


def host_time(call: Callable[[], Any], calls: int = 300) -> float:
    """Return the seconds until a call returns, the least of many, on an idle device."""
    best = float("inf")
    with one_core():
        for _ in range(calls):
            cupy.cuda.Device().synchronize()
            start = time.perf_counter()
            call()
            best = min(best, time.perf_counter() - start)
    return best


@contextmanager
def one_core() -> Iterator[None]:
    """Run on the last core, so that all checkouts run on the same one."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


def does_not_wait() -> AbstractContextManager[Any]:
    """Skip the wait for the answer whether there is a NaN, which no captured call can have."""
    return mock.patch.object(launch, "raise_for_nan", return_value=None)


def equal(case: Case, image: Any, others: tuple[Any, ...]) -> bool:
    """Whether the device's result is that of the CPU."""
    if case.part:
        image = image[(slice(case.part),) * image.ndim]
    found = case.call(image, *others)
    host_others = [other.get() if hasattr(other, "get") else other for other in others]
    known = case.call(image.get(), *host_others)
    pairs = zip(found, known, strict=True) if isinstance(found, tuple) else [(found, known)]
    are_equal = [np.array_equal(on_host(a), b) for a, b in pairs]
    return all(are_equal)


def on_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else array


def small_shape(case: Case) -> tuple[int, ...]:
    """Return a small shape like that of a case's image, with as many channels."""
    shape = shape_of(case)
    most = SMALL[len(shape)]
    if min(shape) <= 5:
        most = (1 << 16,) * len(shape) if max(shape) > 1 << 20 else (256,) * len(shape)
    return tuple(map(min, shape, most))


def measure(case: Case, name: str, rate: float, *, check: bool) -> dict[str, Any]:
    """Return milliseconds of the device, microseconds of the host, and whether both agree."""
    small = case.image(a_field(small_shape(case), FIELDS[name]))
    given = case.others(small)
    host = host_time(partial(case.call, small, *given))
    image = case.image(a_field(shape_of(case), FIELDS[name]))
    others = case.others(image)
    call = partial(case.call, image, *others)
    row = {"row": case.row, "size": case.size, "field": name, "host_us": host * 1e6}
    if check:
        row["equal"] = equal(case, image, others)
    times = 200 if image.nbytes < 1 << 24 else 10
    with does_not_wait() if case.captured else nullcontext():
        seconds = replay(call, times) if case.captured else clock(call)
    floor = (image.size * (image.itemsize + case.extra)) / rate
    row |= {"ms": seconds * 1e3, "floor_ms": floor * 1e3, "ratio": seconds / floor}
    return row | {"timed": "graph" if case.captured else "clock"}


def small_images() -> list[dict[str, Any]]:
    """Return the microseconds for each of many small images, in a loop and in one batch."""
    even = np.linspace(0, 1, 256)
    found = []
    for side in SIDES:
        images = cupy.random.default_rng(4).random((LOOPED, side, side), dtype=cupy.float32)
        several = list(images)

        def loop(several: list[Any] = several) -> None:
            for image in several:
                ecc.euler_curve(image, even)

        batch = partial(ecc.euler_curve, images, even, axis=(1, 2))
        for call in (loop, batch):
            call()
        with one_core():
            times = [clock(call) / LOOPED * 1e6 for call in (loop, batch)]
        found.append({"side": side, "loop_us": times[0], "batch_us": times[1]})
    return found


def serve() -> None:
    """Answer questions: the number of a case, its field, and whether to check it."""
    every = list(cases())

    def answer(asked: dict[str, Any]) -> Any:
        try:
            if asked["case"] is None:
                return small_images()
            given = every[asked["case"]], asked["field"], asked["rate"]
            return measure(*given, check=asked["check"])
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
        finally:
            cupy.get_default_memory_pool().free_all_blocks()

    answer_questions(answer)


def least(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the shortest times of several turns of a case."""
    found = rows[0] | {"equal": rows[0].get("equal")}
    for key in ("ms", "ratio", "host_us"):
        found[key] = min(row[key] for row in rows)
    return found


def measure_by_turns(
    case: int, name: str, rate: float, checkouts: list[Checkout]
) -> list[dict[str, Any]]:
    """Return the row of a case for each checkout, or the error that it raised there."""
    rows: list[list[dict[str, Any]]] = [[] for _ in checkouts]
    for turn in range(TURNS):
        for k, checkout in enumerate(checkouts):
            check = turn == 0 and k == 0
            if not (rows[k] and "error" in rows[k][0]):
                rows[k].append(checkout.ask(case=case, field=name, rate=rate, check=check))
    return [found[0] if "error" in found[0] else least(found) for found in rows]


def markdown(report: dict[str, Any]) -> str:
    found: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for rows in report["cases"]:
        found.setdefault((rows[0]["row"], rows[0]["size"]), {})[rows[0]["field"]] = rows
    others = report["checkouts"][1:]
    heads = [f"{name}: ms | {name}: host" for name in others]
    lines = [
        f"# {report['device']}",
        "",
        f"Multiples of the time to read a call's bytes at {report['read_rate'] / 1e12:.2f} TB/s, "
        "for noise and a smooth image. Then milliseconds on the device, for both, by replaying a "
        "graph or by the clock, and microseconds of the host for a small image.",
        "",
        " | ".join(["| call", "image", "noise", "smooth", "ms", "by", "host", "right", *heads, ""]),
        rule(8 + 2 * len(others)),
    ]
    for (title, size), fields in found.items():
        own = [fields[name][0] for name in FIELDS]
        are_equal = [row["equal"] for row in own]
        good = "yes" if all(are_equal) else "NO"
        cells = [title, size, *(f"{row['ratio']:.2f}" for row in own), _ms(own), own[0]["timed"]]
        cells += [_host(own), good]
        for k in range(len(others)):
            before = [fields[name][k + 1] for name in FIELDS]
            known = not any("error" in row for row in before)
            cells += [_ms(before), _host(before)] if known else ["", ""]
        lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        f"A loop over {LOOPED} small images, and one batch of them, microseconds an image:",
        "",
    ]
    lines += ["| image | checkout | loop | batch |", "|---|---|---|---|"]
    for name, rows in zip(report["checkouts"], report["small"], strict=True):
        lines += [
            f"| {row['side']}^2 | {name} | {row['loop_us']:.1f} | {row['batch_us']:.1f} |"
            for row in (rows if isinstance(rows, list) else [])
        ]
    return "\n".join(lines) + "\n"


def _ms(rows: list[dict[str, Any]]) -> str:
    return " / ".join(f"{row['ms']:.3f}" for row in rows)


def _host(rows: list[dict[str, Any]]) -> str:
    return f"{min(row['host_us'] for row in rows):.0f}"


def picture(report: dict[str, Any], file: Path) -> None:
    """Draw the multiples of an image and of a volume side by side, on a logarithmic axis."""
    import matplotlib.pyplot as plt

    figure, panes = plt.subplots(1, len(PICTURED), figsize=(12, 7), sharey=True, sharex=True)
    for pane, size in zip(panes, PICTURED, strict=True):
        for name, shift in (("noise", -0.2), ("smooth", 0.2)):
            own = [rows[0] for rows in report["cases"]]
            rows = [r for r in own if r["size"] == size and r["field"] == name]
            places = [len(rows) - i - shift for i in range(len(rows))]
            pane.barh(places, [row["ratio"] for row in rows], 0.38, label=name)
        titles = [row["row"].replace("`", "") for row in rows]
        places = list(range(len(rows), 0, -1))
        pane.set_yticks(places, titles)
        pane.set(xscale="log", title=size, xlabel="time / time to read the bytes once")
        pane.set_xticks(TICKS, [str(tick) for tick in TICKS])
        pane.axvline(1, color="black", linewidth=0.8)
        pane.grid(axis="x", alpha=0.3)
    panes[0].legend(loc="lower right")
    figure.suptitle(report["device"])
    figure.tight_layout()
    figure.savefig(file, dpi=110)


def is_chosen(row: str, words: list[str]) -> bool:
    """Whether the name of a row of the table has one of the words."""
    return any(word in row for word in words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="*", default=[""])
    parser.add_argument("--beside", nargs="*", type=Path, default=[])
    parser.add_argument("--checkout", type=Path, default=REPOSITORY, help="with --warm")
    parser.add_argument("--share", default="0/1", help="with --warm: only cases i of n, as i/n")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--picture", type=Path, help="only draw the results that there are")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_map"))
    arguments = parser.parse_args()
    if arguments.picture:
        picture(json.loads(arguments.output.with_suffix(".json").read_text()), arguments.picture)
        return
    chosen = [i for i, case in enumerate(cases()) if is_chosen(case.row, arguments.rows)]
    if arguments.warm:
        which, parts = map(int, arguments.share.split("/"))
        checkout = Checkout(arguments.checkout, MODULE)
        for i in chosen[which::parts]:
            checkout.ask(case=i, field="noise", rate=1e12, check=False)
        return
    checkouts = [Checkout(path, MODULE) for path in (REPOSITORY, *arguments.beside)]
    rate = read_rate()
    report: dict[str, Any] = {"read_rate": rate, "cases": []}
    report["device"] = cuda_device()
    report["checkouts"] = [checkout.name for checkout in checkouts]
    for i in chosen:
        rows = [measure_by_turns(i, name, rate, checkouts) for name in FIELDS]
        print(json.dumps(rows), flush=True)
        if not any("error" in row[0] for row in rows):
            report["cases"] += rows
    report["small"] = [checkout.ask(case=None) for checkout in checkouts]
    arguments.output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    arguments.output.with_suffix(".md").write_text(markdown(report))
    print(markdown(report))


if __name__ == "__main__":
    main()
