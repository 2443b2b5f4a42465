"""Host volumes streamed to one or several GPUs, and shards that are on the devices already.

    python -m benchmarks.cuda_stream [--size 2048] [--output benchmarks/results/cuda_stream.json]

Rates in GB/s of a uint8 volume: a plain pinned copy to all devices at once, the curve from pinned
memory, and the curve of a quarter of it as an ordinary NumPy array against a plain copy of that.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import cupy
import cupyx
import numpy as np

from ecc_core._cuda import launch, stream

LEVELS = np.arange(256)
OPTIONS = {"construction": "T", "superlevel": False, "nan": "raise"}


def seconds(call: Callable[[], Any], repeats: int = 3) -> float:
    call()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def copy_only(volume: np.ndarray, devices: Sequence[int]) -> None:
    """The same bytes by the same copies, without computing."""
    bounds = np.linspace(0, len(volume), len(devices) + 1).astype(int).tolist()

    def run(index: int) -> None:
        with cupy.cuda.Device(devices[index]):
            copying = cupy.cuda.Stream(non_blocking=True)
            step = max(1, stream.SLAB_BYTES // volume[0].nbytes)
            target = cupy.empty((step, *volume.shape[1:]), volume.dtype)
            for start in range(bounds[index], bounds[index + 1], step):
                part = volume[start : min(start + step, bounds[index + 1])]
                cupy.cuda.runtime.memcpyAsync(
                    target.data.ptr, part.ctypes.data, part.nbytes, 1, copying.ptr
                )
            copying.synchronize()

    with ThreadPoolExecutor(len(devices)) as pool:
        list(pool.map(run, range(len(devices))))


def shards(size: int, devices: Sequence[int]) -> float:
    """Seconds for a float32 volume of which each device holds its part."""
    levels = np.linspace(0, 1, 256)
    parts = []
    for device in devices:
        with cupy.cuda.Device(device):
            parts.append(cupy.random.random((1, size // len(devices), size, size), cupy.float32))

    def run() -> None:
        for part in parts:
            with part.device:
                launch.curve(part, levels, **{**OPTIONS, "nan": "omit"}, mask=None)
        for device in devices:
            cupy.cuda.Device(device).synchronize()

    return seconds(run, 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_stream.json"))
    arguments = parser.parse_args()
    size = arguments.size
    count = cupy.cuda.runtime.getDeviceCount()
    pinned = cupyx.empty_pinned((size, size, size), np.uint8)
    pattern = np.random.default_rng(1).integers(0, 256, (16, size, size), np.uint8)
    for start in range(0, size, 16):
        pinned[start : start + 16] = pattern
    report: dict[str, Any] = {"size": size, "rows": []}
    plain = np.array(pinned[: size // 4])
    report["pageable_copy"] = (
        plain.nbytes / 1e9 / seconds(partial(cupy.empty_like(plain).set, plain))
    )
    known = None
    for devices in [list(range(n)) for n in (1, 2, 4) if n <= count]:
        found = stream.curve(pinned, LEVELS, devices=devices, **OPTIONS)
        known = found if known is None else known
        row = {"devices": len(devices), "equal": bool((found == known).all())}
        row["copy"] = pinned.nbytes / 1e9 / seconds(lambda d=devices: copy_only(pinned, d))
        row["curve"] = (
            pinned.nbytes
            / 1e9
            / seconds(lambda d=devices: stream.curve(pinned, LEVELS, devices=d, **OPTIONS))
        )
        row["pageable_curve"] = (
            plain.nbytes
            / 1e9
            / seconds(lambda d=devices: stream.curve(plain, LEVELS, devices=d, **OPTIONS), 5)
        )
        row["shards_1024_ms"] = shards(1024, devices) * 1e3
        report["rows"].append(row)
        print(row, flush=True)
    print(json.dumps(report))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
