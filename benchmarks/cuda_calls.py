"""Times of single calls from Python on a CUDA device, with CuPy and torch.

    python -m benchmarks.cuda_calls [--output benchmarks/results/cuda_calls]

Microseconds between two events around the call, or by the clock until the number is there; the
least of many calls, in turns. Writes JSON and Markdown.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import torch

import ecc_core as ecc
from benchmarks.cuda_timing import field
from benchmarks.pages import cuda_device, markdown_table, paragraph_of

TURNS = 400
HEAD = "| call | timed by | CuPy | torch |"

Call = Callable[[Any], Any]


def between_events(call: Call, image: Any) -> float:
    stream = cupy.cuda.get_current_stream()
    start = cupy.cuda.Event()
    stop = cupy.cuda.Event()
    stream.synchronize()
    start.record(stream)
    call(image)
    stop.record(stream)
    stop.synchronize()
    return float(1e3 * cupy.cuda.get_elapsed_time(start, stop))


def by_clock(call: Call, image: Any) -> float:
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    call(image)
    return 1e6 * (time.perf_counter() - start)


def cases() -> Iterator[tuple[str, Call, Any, Callable[..., float]]]:
    """Yield titles, calls, images, and functions that time a call."""
    at = np.linspace(0, 1, 256)
    given = cupy.asarray(at)
    for n in (128, 1024):
        (image,) = field((n, n), 0, "float32")
        title = f"{n}^2 float32"
        yield f"{title}, 256 thresholds", partial(curve, at), image, between_events
        yield f"{title}, thresholds on the device", partial(curve, given), image, by_clock
        yield f"{title}, default thresholds", partial(curve, 256), image, by_clock
        yield f"{title}, `euler_coefficients`", ecc.euler_coefficients, image, by_clock
        labels = (image > 0.5).astype(cupy.int32)
        regions = partial(region_curves, labels, torch.from_dlpack(labels), at)
        yield f"{title}, `region_curves` of one", regions, image, by_clock
    for shape in ((8192,) * 2, (512,) * 3):
        mask = field(shape, 4, "float32")[0] < 0.5
        title = f"`euler_number` of a mask {shape[0]}^{len(shape)}"
        yield title, ecc.euler_number, mask, by_clock


def curve(thresholds: Any, image: Any) -> Any:
    return ecc.euler_curve(image, thresholds).values


def region_curves(labels: Any, tensor: Any, thresholds: Any, image: Any) -> Any:
    given = tensor if isinstance(image, torch.Tensor) else labels
    return ecc.region_curves(image, given, thresholds).values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_calls"))
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for title, call, image, timer in cases():
        images = {"CuPy": image, "torch": torch.from_dlpack(image)}
        least = dict.fromkeys(images, np.inf)
        for turn in range(TURNS):
            for library, own in images.items():
                taken = timer(call, own)
                if turn >= 10:
                    least[library] = min(least[library], taken)
        how = timer.__name__.replace("_", " ")
        rows.append({"call": title, "timed": how, "us": least})
        print(rows[-1], flush=True)
    name = cuda_device()
    report = {"device": name, "rows": rows}
    arguments.output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    lines = []
    for row in rows:
        times = f"{row['us']['CuPy']:.1f} | {row['us']['torch']:.1f}"
        lines.append(f"| {row['call']} | {row['timed']} | {times} |")
    text = paragraph_of(__doc__, 2)
    table = markdown_table(HEAD, lines)
    arguments.output.with_suffix(".md").write_text(
        f"# Calls from Python on a CUDA device\n\n{name}; cupy {cupy.__version__}, torch "
        f"{torch.__version__}. {text}\n\n{table}\n"
    )


if __name__ == "__main__":
    main()
