"""Host volumes streamed to one or several GPUs, and shards that are on the devices already.

    python -m benchmarks.cuda_stream [--size 2048] [--output benchmarks/results/cuda_stream.json]
    python -m benchmarks.cuda_stream --large

Rates in GB/s of a uint8 volume: a plain pinned copy to all devices at once, the curve from pinned
memory, and the curve of a quarter of it as an ordinary NumPy array against a plain copy of that.
Then milliseconds of volumes of which every device holds its part. `--large` adds that of 64 GiB on
two devices to the results. Curves of shards are compared with those of other cuts. Earlier
results of more devices than this machine has are kept.
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

import ecc_core as ecc
from ecc_core._backends.cuda import stream
from ecc_core._request.filtration import Filtration

LEVELS = np.arange(256)
FILTRATION = Filtration(3, 3)
SHARDED = [
    ((1024, 1024, 1024), "float32"),
    ((2048, 2048, 2048), "uint8"),
    ((2048, 2048, 2048), "float32"),
    ((4096, 2048, 2048), "float32"),
]
LARGE = ((4096, 4096, 4096), "uint8")
REST = 0.05  # seconds after which a device that was busy has its full clock again


def seconds(call: Callable[[], Any], repeats: int = 3, rest: float = 0) -> float:
    """The least time of a call; the processor stays awake while the devices rest."""
    call()
    best = float("inf")
    for _ in range(repeats):
        awake = time.perf_counter() + rest
        while time.perf_counter() < awake:
            pass
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


def shards(shape: tuple[int, ...], dtype: str, devices: Sequence[int]) -> dict[str, float]:
    """Milliseconds for a volume of which each device holds its part: a call, and its replay.

    Both wait for the curve, and begin after a rest.
    """
    levels = LEVELS if dtype == "uint8" else np.linspace(0, 1, 256)
    depth = shape[0] // len(devices)
    parts = []
    for device in devices:
        with cupy.cuda.Device(device):
            rng = cupy.random.RandomState(device)
            draw = rng.random_sample if dtype == "float32" else partial(rng.randint, 0, 256)
            part = cupy.empty((depth, *shape[1:]), dtype)
            for piece in np.array_split(part, 16):
                piece[...] = draw(size=piece.shape, dtype=dtype)
            cupy.cuda.Device().synchronize()
            cupy.get_default_memory_pool().free_all_blocks()
        parts.append(part)

    def curve() -> Any:
        if len(parts) == 1:
            return ecc.euler_curve(parts[0], levels, nan="omit").values
        return ecc.euler_curve_shards(parts, levels, nan="omit").values

    pieces = [piece for part in parts for piece in (part[: depth // 3], part[depth // 3 :])]
    recut = ecc.euler_curve_shards(pieces, levels, nan="omit").values
    assert bool((recut == curve()).all())
    with parts[0].device, cupy.cuda.Stream(non_blocking=True) as queue:

        def call() -> None:
            curve()
            queue.synchronize()

        direct = seconds(call, 20, REST)
        queue.begin_capture()
        values = curve()
        graph = queue.end_capture()

        def replay() -> None:
            graph.launch(queue)
            queue.synchronize()

        replayed = seconds(replay, 20, REST)
        assert bool((values == curve()).all())
    return {"call_ms": direct * 1e3, "replay_ms": replayed * 1e3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_stream.json"))
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    if arguments.large:
        report = json.loads(arguments.output.read_text())
        shape, dtype = LARGE
        found = shards(shape, dtype, [0, 1])
        rate = np.prod(shape) / found["replay_ms"] * 1e3
        report["large"] = {"shape": shape, "dtype": dtype, "devices": 2, **found, "rate": rate}
        print(json.dumps(report["large"]))
        arguments.output.write_text(json.dumps(report, indent=1) + "\n")
        return
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
        found, _ = stream.curve(pinned, LEVELS, FILTRATION, devices=devices)
        known = found if known is None else known
        row = {"devices": len(devices), "equal": bool((found == known).all())}
        row["copy"] = pinned.nbytes / 1e9 / seconds(lambda d=devices: copy_only(pinned, d))
        row["curve"] = (
            pinned.nbytes
            / 1e9
            / seconds(lambda d=devices: stream.curve(pinned, LEVELS, FILTRATION, devices=d))
        )
        row["pageable_curve"] = (
            plain.nbytes
            / 1e9
            / seconds(lambda d=devices: stream.curve(plain, LEVELS, FILTRATION, devices=d), 5)
        )
        for shape, dtype in SHARDED:
            name = "x".join(map(str, shape))
            row[f"shards_{dtype}_{name}"] = shards(shape, dtype, devices)
        report["rows"].append(row)
        print(row, flush=True)
    if arguments.output.exists():
        earlier = json.loads(arguments.output.read_text())
        report["rows"] += [row for row in earlier["rows"] if row["devices"] > count]
        report["large"] = earlier.get("large")
    print(json.dumps(report))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
