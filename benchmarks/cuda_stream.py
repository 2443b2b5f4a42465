"""Host volumes streamed to one or several GPUs, and shards that are on the devices already.

    python -m benchmarks.cuda_stream [--size 2048] [--output benchmarks/results/cuda_stream.json]
    python -m benchmarks.cuda_stream --large

Rates in GB/s of a uint8 volume: a plain pinned copy to all devices at once, the curve from pinned
memory, and the curve of a quarter of it as an ordinary NumPy array against a plain copy of that.
Then milliseconds of volumes of which every device holds its part. `--large` adds volumes of 64 GiB
of uint8 and of as much float32 as fits on two devices to the results; it also measures curves and
Minkowski functionals of dask arrays whose chunks are on two devices, and the rates of a volume of
64 GiB in pinned memory. Curves of shards are compared with those of other cuts. Large volumes
repeat one period, and their curves are compared with those that follow from small volumes on the
host. Earlier results of more devices than this machine has are kept.
"""

from __future__ import annotations

import argparse
import itertools
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
LARGE = [((4096, 4096, 4096), "uint8"), ((4096, 4096, 4096), "float32")]
PERIOD = 64
"""Points along each axis."""
REST = 0.05
"""Seconds after which a busy device has its full clock rate again."""


def seconds(call: Callable[[], Any], repeats: int = 3, rest: float = 0) -> float:
    """Return the least time of a call; between calls devices rest, and the processor is busy."""
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
    """Copy the volume as the curve does, without computing."""
    cuts = np.linspace(0, len(volume), len(devices) + 1)
    bounds = cuts.astype(int).tolist()

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


def levels_of(dtype: str) -> np.ndarray:
    return LEVELS if dtype == "uint8" else np.linspace(0, 1, 256)


def noise(shape: tuple[int, ...], dtype: str, devices: Sequence[int]) -> list[Any]:
    """Return parts of a volume along its first axis, one on each device."""
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
    return parts


def period(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    if dtype == "float32":
        return rng.random((PERIOD,) * 3, np.float32)
    return rng.integers(0, 256, (PERIOD,) * 3, np.uint8)


def repeated(shape: tuple[int, ...], dtype: str, devices: Sequence[int]) -> list[Any]:
    """Return parts of a volume that repeats one period along all axes."""
    depth = shape[0] // len(devices)
    split = [count for length in (depth, *shape[1:]) for count in (length // PERIOD, PERIOD)]
    parts = []
    for device in devices:
        with cupy.cuda.Device(device):
            part = cupy.empty((depth, *shape[1:]), dtype)
            part.reshape(split)[...] = cupy.asarray(period(dtype))[:, None, :, None, :]
            cupy.cuda.Device().synchronize()
        parts.append(part)
    return parts


def expected(shape: tuple[int, ...], dtype: str, compute: Callable[[np.ndarray], Any]) -> Any:
    """Return the numbers of a repeated volume, from those of 1 or 2 periods along each axis.

    A number of cells that add up is a polynomial of the numbers of periods, linear in each of them.
    """
    total: Any = 0
    for counts in itertools.product((1, 2), repeat=3):
        weight = 1
        for count, length in zip(counts, shape, strict=True):
            weight *= length // PERIOD - 1 if count == 2 else 2 - length // PERIOD
        total = total + weight * compute(np.tile(period(dtype), counts))
    return total


def shards(parts: list[Any], levels: np.ndarray, known: Any = None) -> dict[str, float]:
    """Return milliseconds of a call, and of its replay, for parts that are on the devices.

    Both wait for the curve, and begin after a rest.
    """
    depth = len(parts[0])

    def curve() -> Any:
        if len(parts) == 1:
            return ecc.euler_curve(parts[0], levels, nan="omit").values
        return ecc.euler_curve_shards(parts, levels, nan="omit").values

    pieces = [piece for part in parts for piece in (part[: depth // 3], part[depth // 3 :])]
    recut = ecc.euler_curve_shards(pieces, levels, nan="omit").values
    assert bool((recut == curve()).all())
    if known is not None:
        np.testing.assert_array_equal(recut.get(), known)
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


def large(shape: tuple[int, ...], dtype: str) -> dict[str, Any]:
    """Return the row of a large volume, or one that says why there are no times."""
    row = {"shape": shape, "dtype": dtype, "devices": 2, "equal_to_periods": True}
    levels = levels_of(dtype)
    known = expected(shape, dtype, lambda volume: ecc.euler_curve(volume, levels).values)
    try:
        found = shards(repeated(shape, dtype, [0, 1]), levels, known)
    except cupy.cuda.memory.OutOfMemoryError as error:
        return {"shape": shape, "dtype": dtype, "devices": 2, "error": str(error)}
    finally:
        for device in (0, 1):
            with cupy.cuda.Device(device):
                cupy.get_default_memory_pool().free_all_blocks()
    return row | found | {"rate": np.prod(shape) / found["replay_ms"] * 1e3}


def streamed(size: int) -> dict[str, Any]:
    """Return rates in GB/s of a volume in pinned memory that is streamed through two devices."""
    one = period("uint8")
    volume = cupyx.empty_pinned((size,) * 3, np.uint8)
    slabs = np.tile(one, (1, size // PERIOD, size // PERIOD))
    for start in range(0, size, PERIOD):
        volume[start : start + PERIOD] = slabs
    known = expected(volume.shape, "uint8", lambda v: ecc.euler_curve(v, LEVELS).values)

    def curve() -> None:
        found, _ = stream.curve(volume, LEVELS, FILTRATION, devices=[0, 1])
        np.testing.assert_array_equal(found, known)

    calls = {"curve": curve, "copy": partial(copy_only, volume, [0, 1])}
    rates = {name: volume.nbytes / 1e9 / seconds(call) for name, call in calls.items()}
    return {"shape": volume.shape, "dtype": "uint8", "devices": 2, **rates}


COMPUTES: dict[str, Callable[[Any, np.ndarray], Any]] = {
    "euler_curve": lambda volume, levels: ecc.euler_curve(volume, levels, nan="omit").values,
    "minkowski_curves": lambda volume, levels: (
        ecc.minkowski_curves(volume, levels, nan="omit").values
    ),
}


def lazy(size: int, dtype: str, name: str) -> dict[str, Any]:
    """Return milliseconds of an array on a device, and of dask arrays of its halves, on one or two.

    "dask" is what the same graph takes for two chunks of a few points, so without any work for the
    devices.
    """
    import dask

    shape = (size,) * 3
    levels = levels_of(dtype)
    function = COMPUTES[name]
    known = expected(shape, dtype, partial(function, levels=levels))

    def compute(volume: Any) -> np.ndarray:
        values = function(volume, levels)
        return cupy.asnumpy(values.compute() if hasattr(values, "compute") else values)

    row: dict[str, Any] = {"shape": shape, "dtype": dtype, "function": name}
    (whole,) = repeated(shape, dtype, [0])
    parts = repeated(shape, dtype, [0, 1])
    small = [part[:4, :4, :4] for part in parts]
    volumes = {
        "whole": whole,
        "one": chunked(np.array_split(whole, 2), f"one-{size}-{dtype}"),
        "two": chunked(parts, f"two-{size}-{dtype}"),
        "dask": chunked(small, f"dask-{size}-{dtype}"),
    }
    with dask.config.set(scheduler="threads", num_workers=2):
        for key, volume in volumes.items():
            found = compute(volume)
            assert key == "dask" or np.allclose(found, known, rtol=1e-12, atol=1e-6)
            row[f"{key}_ms"] = 1e3 * seconds(partial(compute, volume), 10)
    return row


def chunked(parts: Sequence[Any], name: str) -> Any:
    """Return a dask array whose chunks are the parts along the first axis, where they are.

    `dask.array.from_array` would copy all of them to the current device.
    """
    import dask
    import dask.array as da

    arrays = []
    for i, part in enumerate(parts):
        there = dask.delayed(part, name=f"{name}-{i}", traverse=False)
        arrays.append(da.from_delayed(there, part.shape, meta=parts[0][:0, :0, :0]))
    return da.concatenate(arrays)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_stream.json"))
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    if arguments.large:
        report = json.loads(arguments.output.read_text())
        report["large"] = [large(*given) for given in LARGE]
        cases = [(2048, *case) for case in itertools.product(("uint8", "float32"), COMPUTES)]
        report["lazy"] = [lazy(*case) for case in (*cases, (4096, "uint8", "euler_curve"))]
        report["streamed"] = streamed(4096)
        print(json.dumps([report["large"], report["lazy"], report["streamed"]]))
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
            found = shards(noise(shape, dtype, devices), levels_of(dtype))
            row[f"shards_{dtype}_{name}"] = found
        report["rows"].append(row)
        print(row, flush=True)
    if arguments.output.exists():
        earlier = json.loads(arguments.output.read_text())
        report["rows"] += [row for row in earlier["rows"] if row["devices"] > count]
        report |= {name: earlier[name] for name in ("large", "lazy", "streamed") if name in earlier}
    print(json.dumps(report))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
