"""Every ordinary call on a CUDA device, as multiples of the time it takes to read its own bytes.

    python -m benchmarks.cuda_map [--rows WORDS] [--warm] [--output benchmarks/results/cuda_map]
    python -m benchmarks.cuda_map --picture docs/images/cuda-map.png

Each case is compared with the CPU backend (long ones on a part of the image), then timed: by
replaying a CUDA graph where a call can be captured, else by the clock until the device is done. NaN
is an error, as by default: in a graph the device looks for it, but the host does not wait. The
rate of reading is that of a max-reduction of 4 GiB in the same run. `--rows` takes the rows whose
titles contain one of the words, `--warm` only compiles. Writes JSON and Markdown.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import ecc_core as ecc

try:
    import cupy

    from benchmarks.cuda import field, read_rate, replay
    from ecc_core._backends.cuda import launch
except ImportError:  # enough for `--picture`
    pass

FIELDS = {"noise": 0, "smooth": 4}
SIZES = ("8192^2", "512^3")
THIN = ("4000x4000x3", "3x4000x4000", "2048x2048x64", "64x2048x2048", "100000000", "1x5x20000000")

TICKS = (1, 2, 3, 5, 10, 20, 30)  # of the picture

Call = Callable[[Any], Any]


def same(image: Any) -> Any:
    return image


class Case(NamedTuple):
    """A call, on an image made from the field.

    Attributes
    ----------
    row, size : str
        Title of the row, and what is measured in it.
    call : function of an image
        Works on NumPy's arrays too.
    image : function of a field in [0, 1]
    others : function of an image
        More arguments of the call, on the image's device.
    extra : float
        Bytes for each sample beside the image's own.
    captured : bool
        Whether the call can be part of a CUDA graph.
    part : slice, optional
        Of each axis, for comparison with the CPU where it takes long.
    """

    row: str
    size: str
    call: Callable[..., Any]
    image: Call = same
    others: Callable[[Any], tuple[Any, ...]] = lambda _: ()
    extra: float = 0
    captured: bool = True
    part: int | None = None


def to_type(dtype: str, top: int | None = None) -> Call:
    """A field in [0, 1] as a type, stretched to its range or to `top`."""

    def convert(image: Any) -> Any:
        if np.dtype(dtype).kind == "f":
            return image.astype(dtype)
        info = np.iinfo(dtype)
        low, high = (info.min, info.max) if top is None else (0, top)
        return (image * (high - low) + low).astype(dtype)

    return convert


def curve(thresholds: Any, **given: Any) -> Call:
    """The values of a curve; with a mask where one is given."""

    def call(image: Any, mask: Any = None) -> Any:
        return ecc.euler_curve(image, thresholds, mask=mask, **given).values

    return call


def a_mask(image: Any) -> tuple[Any, ...]:
    """Four of five samples, in one piece or scattered."""
    rng = cupy.random.default_rng(3)
    return (rng.random(image.shape, dtype=cupy.float32) < 0.8,)


def some_labels(count: int) -> Callable[[Any], tuple[Any, ...]]:
    """Squares or cubes as labels, with background between them."""

    def labels(image: Any) -> tuple[Any, ...]:
        a_side = round(count ** (1 / image.ndim))
        found, inside = 0, True
        for axis, n in enumerate(image.shape):
            along = cupy.arange(n).reshape((-1,) + (1,) * (image.ndim - axis - 1))
            found = found * a_side + along * a_side // n
            inside = inside & (along * a_side % n >= a_side)
        return (((found + 1) * inside).astype(np.int32),)

    return labels


def regions(image: Any, labels: Any) -> Any:
    return ecc.region_curves(image, labels, np.linspace(0, 1, 256)).values


def exact(image: Any) -> Any:
    found = ecc.euler_curve(image, "exact")
    return found.thresholds, found.values


def number(mask: Any) -> Any:
    return np.array(ecc.euler_number(mask))


def at_levels(image: Any, levels: Any) -> Any:
    return ecc.euler_curve(image, levels).values


def its_percentiles(count: int) -> Callable[[Any], tuple[Any, ...]]:
    def levels(image: Any) -> tuple[Any, ...]:
        sample = image.ravel()[:: max(image.size // 100_000, 1)].get()
        return (np.percentile(sample, np.linspace(0, 100, count)),)

    return levels


def everyday(size: str) -> Iterator[Case]:
    """What is measured on a large image and on a volume."""
    even, rounded = np.linspace(0, 1, 256), np.linspace(0.03, 0.97, 256, dtype=np.float32)
    flat = size == "8192^2"
    up = (1, 2, 3)[: 2 if flat else 3]
    yield Case("float32, 256 even thresholds", size, curve(even))
    yield Case("float32, 256 even float32 thresholds", size, curve(rounded))
    for count in (200, 1000):
        levels = its_percentiles(count)
        yield Case(f"float32, {count} percentiles", size, at_levels, same, levels)
    uneven = np.sort(np.random.default_rng(5).normal(0.5, 0.12, 200))
    yield Case("float32, 200 random thresholds", size, curve(uneven))
    yield Case("float32, 4096 even thresholds", size, curve(np.linspace(0, 1, 4096)))
    for dtype, top, levels in (
        ("float64", None, even),
        ("float16", None, even),
        ("int16", None, np.linspace(-32768, 32767, 4096)),
        ("uint16", 4095, np.linspace(0, 4095, 256)),
        ("int32", 10**9, np.linspace(0, 10**9, 256)),
        ("uint8", None, np.array([3, 9, 20, 77, 130, 200, 250])),
        ("uint8", None, np.arange(256)),
    ):
        title = f"{dtype}{f' up to {top}' if top else ''}, {len(levels)} thresholds"
        yield Case(title, size, curve(levels), to_type(dtype, top))
    yield Case("mask", size, curve(even), same, a_mask, extra=1)
    yield Case("every second column", size, curve(even), lambda x: x[..., ::2])
    yield Case("transposed", size, curve(even), lambda x: x.T)
    yield Case("`direction=`", size, curve(even, direction=up))
    clocked = partial(Case, size=size, captured=False)
    yield clocked("default call", call=lambda x: ecc.euler_curve(x).values)
    part = 1500 if flat else 160
    yield clocked("`euler_coefficients`", call=ecc.euler_coefficients, extra=1, part=part)
    yield clocked('"exact"', call=exact, part=1000 if flat else 100)
    yield clocked("`euler_number` of a mask", call=number, image=lambda x: x > 0.5)


def cases() -> Iterator[Case]:
    for size in SIZES:
        yield from everyday(size)
    for size, count in (("2048^2, 2,116 labels", 2116), ("256^3, 32,768 labels", 32768)):
        yield Case("`region_curves`", size, regions, same, some_labels(count), 4, False)
    for dtype, levels in (("float32", np.linspace(0, 1, 256)), ("uint8", np.arange(256))):
        for size in THIN:
            yield Case(f"thin, {dtype}", size, curve(levels), to_type(dtype))
    for dtype, levels in (("uint8", np.arange(256)), ("uint16", np.arange(1 << 16))):
        yield Case(f"{dtype}, every value", "1024^3", curve(levels), to_type(dtype))
    for size in ("128^2", "512^2", "1024^2"):
        yield Case("small", size, curve(np.linspace(0, 1, 256)))


def shape_of(case: Case) -> tuple[int, ...]:
    side, _, power = case.size.partition(",")[0].partition("^")
    return (int(side),) * int(power) if power else tuple(map(int, side.split("x")))


@lru_cache(maxsize=1)
def a_field(shape: tuple[int, ...], sigma: float) -> Any:
    return field(shape, sigma, "float32")[0]


def clock(call: Callable[[], Any]) -> float:
    """Seconds until the device is done, the least of several calls."""
    best, spent = float("inf"), 0.0
    while spent < 0.1:
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        call()
        cupy.cuda.Device().synchronize()
        best = min(best, time.perf_counter() - start)
        spent += time.perf_counter() - start
    return best


def does_not_wait() -> AbstractContextManager[Any]:
    """Do not wait to learn whether there was a NaN, which a captured call cannot do."""
    return mock.patch.object(launch, "raise_for_nan", return_value=None)


def equal(case: Case, image: Any, others: tuple[Any, ...]) -> bool:
    """Whether the device's result is that of the CPU."""
    if case.part:
        image = image[(slice(case.part),) * image.ndim]
    found = case.call(image, *others)
    known = case.call(
        image.get(), *(other.get() if hasattr(other, "get") else other for other in others)
    )
    pairs = zip(found, known, strict=True) if isinstance(found, tuple) else [(found, known)]
    return all(np.array_equal(on_host(a), b) for a, b in pairs)


def on_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else array


def measure(case: Case, name: str, rate: float, warm: bool) -> dict[str, Any]:
    image = case.image(a_field(shape_of(case), FIELDS[name]))
    others = case.others(image)
    call = partial(case.call, image, *others)
    row = {"row": case.row, "size": case.size, "field": name}
    if warm:
        call()
        return row
    row["equal"] = equal(case, image, others)
    times = 200 if image.nbytes < 1 << 24 else 10
    with does_not_wait() if case.captured else nullcontext():
        seconds = replay(call, times) if case.captured else clock(call)
    floor = (image.size * (image.itemsize + case.extra)) / rate
    row |= {"ms": seconds * 1e3, "floor_ms": floor * 1e3, "ratio": seconds / floor}
    return row | {"timed": "graph" if case.captured else "clock"}


def from_python() -> list[dict[str, Any]]:
    """Microseconds between two events around a call of a 1024^2 image."""
    image = a_field((1024, 1024), 4)
    even = np.linspace(0, 1, 256)
    found = []
    for name, levels in (("host", even), ("device", cupy.asarray(even))):
        for _ in range(20):
            ecc.euler_curve(image, levels)
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        best = float("inf")
        for _ in range(200):
            cupy.cuda.Device().synchronize()
            start.record()
            ecc.euler_curve(image, levels)
            stop.record()
            stop.synchronize()
            best = min(best, cupy.cuda.get_elapsed_time(start, stop) * 1e3)
        found.append({"row": f"a call from Python, thresholds on the {name}", "us": best})
    return found


def markdown(report: dict[str, Any]) -> str:
    cells: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in report["cases"]:
        cells.setdefault((row["row"], row["size"]), {})[row["field"]] = row
    lines = [
        f"# {report['device']}",
        "",
        f"Multiples of the time to read a call's bytes at {report['read_rate'] / 1e12:.2f} TB/s.",
        "",
        "| call | image | noise | smooth | ms | timed by | equal to the CPU's |",
        "|---|---|---|---|---|---|---|",
    ]
    for (title, size), found in cells.items():
        ratios = " | ".join(f"{found[name]['ratio']:.2f}" for name in FIELDS)
        times = " / ".join(f"{found[name]['ms']:.3f}" for name in FIELDS)
        good = "yes" if all(row["equal"] for row in found.values()) else "NO"
        timed = found["noise"]["timed"]
        lines.append(f"| {title} | {size} | {ratios} | {times} | {timed} | {good} |")
    lines += ["", "A call on a 1024^2 image, between two events:", ""]
    lines += [f"- {row['row']}: {row['us']:.0f} microseconds" for row in report["calls"]]
    return "\n".join(lines) + "\n"


def picture(report: dict[str, Any], file: Path) -> None:
    """Bars of the multiples, on a logarithmic axis, for an image and a volume side by side."""
    import matplotlib.pyplot as plt

    figure, panes = plt.subplots(1, len(SIZES), figsize=(12, 7), sharey=True, sharex=True)
    for pane, size in zip(panes, SIZES, strict=True):
        for name, shift in (("noise", -0.2), ("smooth", 0.2)):
            rows = [r for r in report["cases"] if r["size"] == size and r["field"] == name]
            places = [len(rows) - i - shift for i in range(len(rows))]
            pane.barh(places, [row["ratio"] for row in rows], 0.38, label=name)
        titles = [row["row"].replace("`", "") for row in rows]
        pane.set_yticks([len(rows) - i for i in range(len(rows))], titles)
        pane.set(xscale="log", title=size, xlabel="time / time to read the bytes once")
        pane.set_xticks(TICKS, [str(tick) for tick in TICKS])
        pane.axvline(1, color="black", linewidth=0.8)
        pane.grid(axis="x", alpha=0.3)
    panes[0].legend(loc="lower right")
    figure.suptitle(report["device"])
    figure.tight_layout()
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="*", default=[""])
    parser.add_argument("--share", default="0/1", help="only cases i of n, as i/n")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--picture", type=Path, help="only draw the results that there are")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_map"))
    arguments = parser.parse_args()
    if arguments.picture:
        picture(json.loads(arguments.output.with_suffix(".json").read_text()), arguments.picture)
        return
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    rate = 1e12 if arguments.warm else read_rate()
    report: dict[str, Any] = {"device": device, "read_rate": rate, "cases": []}
    chosen = [c for c in cases() if any(word in c.row for word in arguments.rows)]
    which, parts = map(int, arguments.share.split("/"))
    for case in chosen[which::parts]:
        for name in list(FIELDS)[: 1 if arguments.warm else None]:
            try:
                report["cases"].append(measure(case, name, rate, arguments.warm))
            except Exception as error:
                print(f"{case.row}, {case.size}: {type(error).__name__}: {error}", flush=True)
                continue
            print(json.dumps(report["cases"][-1]), flush=True)
    if arguments.warm:
        return
    report["calls"] = from_python()
    arguments.output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    complete = [row for row in report["cases"] if "ratio" in row]
    keys = [(row["row"], row["size"]) for row in complete]
    report["cases"] = [row for row, key in zip(complete, keys, strict=True) if keys.count(key) == 2]
    arguments.output.with_suffix(".md").write_text(markdown(report))
    print(markdown(report))


if __name__ == "__main__":
    main()
