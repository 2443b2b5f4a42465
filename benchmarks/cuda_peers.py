"""Curves on a CUDA device by other libraries, at the thresholds 0 ... 255 of images of 8 bits.

    python -m benchmarks.cuda_peers [--quick] [--output benchmarks/results/cuda_peers]

Everything by the clock: with the image and the result on the device, from the call until the device
has finished, and end to end, from a NumPy array to a NumPy array. The least of several calls. All
curves are compared with those of the CPU backend first. pyECT takes images as float32, ecc_core is
measured on both types. scikit-image's algorithm in cucim looks at one threshold a call: 4 of the
256 are measured. Peers that are not installed are left out and named. Writes JSON and Markdown.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from skimage import data

import ecc_core as ecc
from benchmarks import peers
from benchmarks.cuda_timing import field
from benchmarks.pages import cuda_device, rule

LEVELS = np.arange(peers.LEVELS)
SHAPES = [(1024, 1024), (8192, 8192), (128, 128, 128), (512, 512, 512)]
SOME = [60, 110, 128, 200]
"""Thresholds of peers that take one at a time."""
FEW_SECONDS = 3.0

Call = Callable[[], Any]


def seconds(call: Call, repeats: int) -> float:
    """Return the least time until the device has finished; slow calls are repeated less."""
    call()
    best = total = float("inf")
    for _ in range(repeats):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        call()
        cupy.cuda.Device().synchronize()
        took = time.perf_counter() - start
        best = min(best, took)
        total = took if total == float("inf") else total + took
        if total > FEW_SECONDS:
            break
    return best


def images(shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    found = {"noise": field(shape, 0, "uint8")[0].get()}
    for sigma in (2, 8):
        found[f"sigma {sigma}"] = field(shape, sigma, "uint8")[0].get()
    photograph = data.camera()
    tiles = [-(-n // m) for n, m in zip(shape[-2:], photograph.shape, strict=True)]
    page = np.tile(photograph, tiles)[: shape[-2], : shape[-1]]
    if len(shape) == 3:
        page = np.stack([np.roll(page, z, axis=1) for z in range(shape[0])])
    return {**found, "photograph": np.ascontiguousarray(page)}


def by_cucim(image: np.ndarray, connectivity: int) -> Call:
    """Return a call at 4 of the 256 thresholds."""
    from cucim.skimage.measure import euler_number

    device = cupy.asarray(image)

    def numbers() -> Any:
        sets = (device <= t for t in SOME)
        found = [euler_number(points, connectivity) for points in sets]
        return np.array(list(map(int, found)))

    return numbers


def on_device(image: np.ndarray, connectivity: int) -> dict[str, Call]:
    """Return calls on images that are on the device."""
    device = cupy.asarray(image)
    floats = cupy.asarray(image.astype(np.float32))
    calls: dict[str, Call] = {
        "ecc_core": lambda: ecc.euler_curve(device, LEVELS, connectivity=connectivity).values,
        "ecc_core, float32": lambda: (
            ecc.euler_curve(floats, LEVELS, connectivity=connectivity).values
        ),
        "CuPy maxima + bincount": peers.numpy_bincount(device, connectivity),
    }
    if pyect := peers.pyect(image, connectivity, "cuda"):
        calls["pyECT"] = pyect
    try:
        calls["cucim"] = by_cucim(image, connectivity)
    except ImportError as error:
        print(f"cucim is left out: {error}")
    return calls


def end_to_end(image: np.ndarray, connectivity: int) -> dict[str, Call]:
    """Return calls from a host array to a host array."""
    options = {"connectivity": connectivity}

    def streamed() -> Any:
        return ecc.euler_curve(image, LEVELS, devices=[0], **options).values

    def copied() -> Any:
        return ecc.euler_curve(cupy.asarray(image), LEVELS, **options).values.get()

    def on_host() -> Any:
        return ecc.euler_curve(image, LEVELS, **options).values

    def by_maxima() -> Any:
        count = peers.numpy_bincount(cupy.asarray(image), connectivity)
        return count().get()

    calls: dict[str, Call] = {
        "ecc_core, devices=[0]": streamed,
        "ecc_core, copy": copied,
        "ecc_core on the CPU": on_host,
        "CuPy maxima + bincount": by_maxima,
    }
    if peers.pyect(image[:2], connectivity, "cuda"):
        calls["pyECT"] = lambda: peers.pyect(image, connectivity, "cuda")()
    return calls


def measure(shape: tuple[int, ...], name: str, image: np.ndarray) -> list[dict[str, Any]]:
    rows = []
    for connectivity in (1, image.ndim):
        known = ecc.euler_curve(image, LEVELS, connectivity=connectivity).values
        for way, calls in (
            ("device", on_device(image, connectivity)),
            ("host", end_to_end(image, connectivity)),
        ):
            row: dict[str, Any] = {"shape": list(shape), "image": name, "from": way}
            row |= {"connectivity": connectivity, "ms": {}, "equal": {}}
            for peer, call in calls.items():
                times = len(LEVELS) / len(SOME) if peer == "cucim" else 1
                expected = known[SOME] if peer == "cucim" else known
                try:
                    found = call()
                    taken = 1e3 * times * seconds(call, 10)
                except (MemoryError, RuntimeError) as error:  # A peer may run out of memory.
                    print(f"{peer}: {error}"[:200])
                    continue
                found = found.get() if hasattr(found, "get") else found
                row["equal"][peer] = bool((np.asarray(found) == expected).all())
                row["ms"][peer] = taken
            rows.append(row)
            print(json.dumps(row), flush=True)
        cupy.get_default_memory_pool().free_all_blocks()
    return rows


def markdown(report: dict[str, Any]) -> str:
    lines = [f"# Other libraries on {report['device']}", ""]
    lines += ["ms by the clock, 256 thresholds of 8-bit images; *: differs from the CPU's curve."]
    for way, title in (("device", "Image on the device"), ("host", "From and to host memory")):
        rows = [row for row in report["rows"] if row["from"] == way]
        names = list(dict.fromkeys(name for row in rows for name in row["ms"]))
        lines += ["", f"## {title}", ""]
        lines += [
            f"| image | | connectivity | {' | '.join(names)} |",
            rule(3 + len(names)),
        ]
        for row in rows:
            size = " x ".join(map(str, row["shape"]))
            times = " | ".join(_time(row, name) for name in names)
            lines.append(f"| {size} | {row['image']} | {row['connectivity']} | {times} |")
    return "\n".join(lines) + "\n"


def _time(row: dict[str, Any], name: str) -> str:
    """Return the cell of a library: its milliseconds, with a star if its curve differs."""
    if name not in row["ms"]:
        return "-"
    star = "" if row["equal"][name] else " *"
    return f"{row['ms'][name]:.3g}{star}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the small images of each kind")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_peers"))
    arguments = parser.parse_args()
    device = cuda_device()
    report: dict[str, Any] = {"device": device, "rows": []}
    for shape in SHAPES[::2] if arguments.quick else SHAPES:
        for name, image in images(shape).items():
            report["rows"] += measure(shape, name, image)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    arguments.output.with_suffix(".md").write_text(markdown(report))
    print(markdown(report))


if __name__ == "__main__":
    main()
