"""A Zarr array larger than the memory of most machines, on one or several CUDA devices.

    python -m benchmarks.cuda_zarr FOLDER [--gib 64] [--devices 0 1] [--output RESULTS]

Writes a uint8 volume of noise to FOLDER/volume.zarr unless there is one, in chunks of 64 MiB that
are not compressed. Then times reading it, `euler_curve` with `devices=`, and `ecc stack` with the
device and on the CPU, and compares all curves. The system keeps in memory what it can of files
that were just written, so the rates are those of such files. Writes JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import zarr

import ecc_core as ecc
from benchmarks.pages import cuda_device
from ecc_core.cli import main as run_command
from ecc_core.io import read_result

SIDE = 4096
CHUNK = (64, 1024, 1024)


def write(path: Path, gib: int) -> zarr.Array:
    """Create a volume of independent random values."""
    volume = zarr.create_array(
        path, shape=(gib << 30 >> 24, SIDE, SIDE), chunks=CHUNK, dtype="uint8", compressors=None
    )

    def fill(index: tuple[int, ...]) -> None:
        along = zip(index, CHUNK, strict=True)
        starts = [(i * n, n) for i, n in along]
        box = tuple([slice(start, start + n) for start, n in starts])
        noise = np.random.default_rng(index).integers(0, 1 << 64, np.prod(CHUNK) // 8, np.uint64)
        volume[box] = noise.view(np.uint8).reshape(CHUNK)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, np.ndindex(volume.cdata_shape)))
    return volume


def read(volume: zarr.Array) -> None:
    """Read slabs as `devices=` does, without computing."""
    for start in range(0, volume.shape[0], CHUNK[0]):
        volume[start : start + CHUNK[0]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gib", type=int, default=64)
    parser.add_argument("--devices", type=int, nargs="+", default=[0])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_zarr.json"))
    arguments = parser.parse_args()
    path = arguments.folder / "volume.zarr"
    device = cuda_device()
    report: dict[str, Any] = {"gib": arguments.gib, "device": device}
    curves = []

    def timed(name: str, call: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = call()
        report[name] = time.perf_counter() - start
        print(name, f"{report[name]:.1f} s, {arguments.gib / report[name]:.2f} GiB/s", flush=True)
        save()
        return result

    def save() -> None:
        arguments.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")

    def stack(device: str) -> Any:
        table = arguments.folder / f"{device}.json"
        options = ["--device", device, "--max-memory", "32G", "--out", str(table)]
        if run_command(["stack", str(path), *options]):
            raise RuntimeError(f"ecc stack --device {device} failed")
        return read_result(table).values

    volume = zarr.open_array(path) if path.exists() else write(path, arguments.gib)
    for count in sorted({1, len(arguments.devices)}, reverse=True):
        devices = arguments.devices[:count]
        name = f"euler_curve, {count} devices"

        def curve(devices: list[int] = devices) -> Any:
            return ecc.euler_curve(volume, devices=devices).values

        curves.append(timed(name, curve))
    curves += [
        timed(f"ecc stack --device {name}", partial(stack, name)) for name in ("cuda", "cpu")
    ]
    timed("read", lambda: read(volume))
    report["equal"] = all(np.array_equal(curve, curves[0]) for curve in curves)
    save()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
