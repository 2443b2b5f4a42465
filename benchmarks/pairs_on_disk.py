"""Pairs of birth and death of a volume on disk, by chunks, beside its curve and pairs in memory.

    python -m benchmarks.pairs_on_disk --points 1.25e8 --folder /tmp/scale

The volume is that of `benchmarks.scale`, whose shards are the chunks of a dask array. Each
computation runs in a process of its own with one thread, by turns; the pairs must be equal. The
table is benchmarks/results/pairs_on_disk.md.

    python -m benchmarks.pairs_on_disk --smooth --folder /tmp/objects

The volume is the one of `benchmarks.objects_on_disk` without noise, and pairs are those of
components and cavities, which are not compared with those in memory. The table is
benchmarks/results/pairs_of_smooth_volume.md.

    python -m benchmarks.pairs_on_disk --tunnels 512 1024 --folder /tmp/tunnels

Pairs of tunnels of cubes with that many points along a side, of the same smoothed noise, beside
their curve. The table is benchmarks/results/tunnels_of_smooth_volume.md.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import zarr

import ecc_core as ecc
from benchmarks import objects_on_disk
from benchmarks.periodic_volumes import STORAGES, make
from benchmarks.scale import PERIODS, peak_memory, prepared

RESULTS = Path(__file__).parent / "results" / "pairs_on_disk.md"
LARGE_PERIODS = (8, 8, 4)
OF_SMOOTH = RESULTS.with_name("pairs_of_smooth_volume.md")
OF_TUNNELS = RESULTS.with_name("tunnels_of_smooth_volume.md")
PERIOD_OF_TUNNELS = 256
PERSISTENCE = 30
DIMENSIONS = (0, 1, 2)
CURVE = "Euler curve, chunks"


def name_of(kind: str, dimension: int) -> str:
    return f"pairs of dimension {dimension}, {kind}"


def compute(what: str, image: Any) -> Any:
    """Return the curve of a dask array, or pairs of this or of an array in memory."""
    if what == CURVE:
        return ecc.euler_curve(image, 256, range=(0, 255)).to_numpy()
    dimension = next(k for k in DIMENSIONS if f"dimension {k}" in what)
    workers = None if isinstance(image, da.Array) else 1
    found = ecc.persistence_pairs(image, dimension, min_persistence=PERSISTENCE, workers=workers)
    return found.to_numpy()


def measure(what: str, path: str, out: Path) -> None:
    """Print processor time and the peak of memory of one computation, and keep its arrays."""
    volume = zarr.open_array(path, mode="r")
    image = da.from_zarr(path, chunks=volume.shards)
    small = da.zeros((8, 8, 8), chunks=4, dtype=volume.dtype)
    in_memory = "memory" in what
    with dask.config.set(scheduler="threads", num_workers=1):
        compute(what, small.compute() if in_memory else small)  # This loads the kernels.
        processor = time.process_time()
        found = compute(what, image.compute() if in_memory else image)
        used = time.process_time() - processor
    np.savez(out, **found._asdict())
    print(json.dumps({"cpu": used, "memory": peak_memory()}))


def measured(what: str, path: Path, out: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.pairs_on_disk", "--measure", what]
    places = ["--path", str(path), "--out", str(out)]
    done = subprocess.run([*command, *places], stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def compare(folder: Path, points: str, rounds: int) -> None:
    """Measure all computations by turns, compare the pairs, and write the table."""
    path, _ = prepared(folder, points)
    kinds = ("chunks", "memory")
    names = [CURVE, *(name_of(kind, k) for k in DIMENSIONS for kind in kinds)]
    files = {name: folder / f"{name}.npz" for name in names}

    def measured_once() -> dict[str, dict[str, float]]:
        return {name: measured(name, path, files[name]) for name in names}

    runs = [measured_once() for _ in range(rounds)]
    for k in DIMENSIONS:
        chunks, memory = (np.load(files[name_of(kind, k)]) for kind in kinds)
        for name in memory:
            np.testing.assert_array_equal(chunks[name], memory[name])
    lines = [
        "# Pairs of a volume on disk",
        "",
        "Measured by `python -m benchmarks.pairs_on_disk`: a volume of uint8 as in",
        "`benchmarks.scale`, as sharded Zarr whose shards of 250^3 points are the chunks of a dask",
        "array; one thread, files in the page cache, kernels loaded before; least processor time",
        f"and largest memory of {rounds} runs. Classes last for at least {PERSISTENCE}. Reading is",
        "part of all of them. Pairs and their points are equal.",
        "",
        "| points | | CPU s | MiB | CPU / curve |",
        "|---|---|---|---|---|",
    ]
    curve = min(run[CURVE]["cpu"] for run in runs)
    for name in names:
        cpu = min(run[name]["cpu"] for run in runs)
        memory = max(run[name]["memory"] for run in runs)
        lines.append(f"| {points} | {name} | {cpu:.2f} | {memory:.0f} | {cpu / curve:.1f} |")
    RESULTS.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def smooth(folder: Path, rounds: int) -> None:
    """Measure pairs of smooth volumes beside their curves, and write the table."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        "# Pairs of smooth volumes on disk",
        "",
        "Measured by `python -m benchmarks.pairs_on_disk --smooth`: smoothed noise of uint8",
        "(sigma 2), sharded Zarr whose shards of 250^3 points are the chunks of a dask array; one",
        "thread, files in the page cache, kernels loaded before; least processor time and largest",
        f"memory of {rounds} runs by turns, of the large volume of one. Classes last for at least",
        f"{PERSISTENCE}.",
        "",
        "| points | | ns a point | MiB | times the curve |",
        "|---|---|---|---|---|",
    ]
    path = smooth_volume(folder, objects_on_disk.PERIODS)
    lines += smooth_rows(folder, path, dimensions=(0, 2), rounds=rounds)
    OF_SMOOTH.write_text("\n".join(lines) + "\n")
    path = smooth_volume(folder, LARGE_PERIODS)
    lines += smooth_rows(folder, path, dimensions=(0,), rounds=1)
    OF_SMOOTH.write_text("\n".join(lines) + "\n")


def tunnels(folder: Path, sides: list[int]) -> None:
    """Measure pairs of tunnels of smooth volumes beside their curves, and write the table."""
    folder.mkdir(parents=True, exist_ok=True)
    side = PERIOD_OF_TUNNELS
    lines = [
        "# Tunnels of smooth volumes on disk",
        "",
        "Measured by `python -m benchmarks.pairs_on_disk --tunnels`: smoothed noise of uint8",
        f"(sigma 2), sharded Zarr whose shards of {side}^3 points are the chunks of a dask array;",
        "one thread, files in the page cache, kernels loaded before; one run, of a machine with",
        f"other load. Memory is that of the process. Classes last for at least {PERSISTENCE}.",
        "",
        "| points | | ns a point | MiB | times the curve |",
        "|---|---|---|---|---|",
    ]
    storage = STORAGES["zstd"]._replace(chunk=side // 2)
    for length in sides:
        path = make(
            folder / f"tunnels-{length}.zarr",
            objects_on_disk.period(0, side),
            (length // side,) * 3,
            shard=side,
            storage=storage,
        )
        lines += smooth_rows(folder, path, dimensions=(1,), rounds=1)
        OF_TUNNELS.write_text("\n".join(lines) + "\n")


def smooth_volume(folder: Path, periods: tuple[int, ...]) -> Path:
    name = "smooth-{}-{}-{}.zarr".format(*periods)
    return make(folder / name, objects_on_disk.period(0), periods)


def smooth_rows(folder: Path, path: Path, dimensions: tuple[int, ...], rounds: int) -> list[str]:
    """Return the rows of a smooth volume."""
    points = zarr.open_array(path, mode="r").size
    names = [CURVE, *(name_of("chunks", k) for k in dimensions)]

    def measured_once() -> dict[str, dict[str, float]]:
        return {name: measured(name, path, folder / f"{name}.npz") for name in names}

    runs = [measured_once() for _ in range(rounds)]
    least = {}
    for name in names:
        least[name] = min(run[name]["cpu"] for run in runs)
    rows = []
    for name in names:
        memory = max(run[name]["memory"] for run in runs)
        nanoseconds = 1e9 * least[name] / points
        times = least[name] / least[CURVE]
        rows.append(f"| {points:.3g} | {name} | {nanoseconds:.1f} | {memory:.0f} | {times:.1f} |")
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", choices=PERIODS, default="1.25e8")
    parser.add_argument("--folder", type=Path, default=Path("scale"))
    parser.add_argument("--smooth", action="store_true")
    parser.add_argument("--tunnels", type=int, nargs="+", metavar="SIDE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure")
    parser.add_argument("--path")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure, arguments.path, arguments.out)
    elif arguments.tunnels:
        tunnels(arguments.folder, arguments.tunnels)
    elif arguments.smooth:
        smooth(arguments.folder, arguments.rounds)
    else:
        compare(arguments.folder, arguments.points, arguments.rounds)


if __name__ == "__main__":
    main()
