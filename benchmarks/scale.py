"""Volumes of up to 10^12 points on disk: `ecc stack` against the sum of all points, and the truth.

    python -m benchmarks.scale time --points 1e10 --folder /tmp/scale
    python -m benchmarks.scale parts --points 1e12 --parts 16 --folder /tmp/scale
    python -m benchmarks.scale table

A volume repeats a period of 500^3 points, in a sharded Zarr array whose shards are links to those
of the first period: any reader decodes all of it, and the disk holds one period. `time` measures
the sum of all points, as dask computes it, and `ecc stack`, by turns and in processes of two
threads. `parts` computes the parts that are not there yet, one after another, and merges them, so
that it goes on where it was stopped; after each part it measures the sum of 10^9 points for
comparison. Both compare the numbers with those of one period, and add rows to
benchmarks/results/scale.json, of which `table` makes the table.

The curve of a volume whose opposite sides touch is that of its periods. Where the image ends, each
axis of k periods counts as k - 1 of an axis that goes on and one that ends, in all combinations.
"""

import argparse
import csv
import itertools
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import zarr
from scipy import ndimage

import ecc_core as ecc

PERIOD = 500
SHARD = 250
CHUNK = 125
PERIODS = {
    "1.25e8": (1, 1, 1),
    "1e9": (2, 2, 2),
    "1e10": (4, 4, 5),
    "1e11": (8, 10, 10),
    "1e12": (20, 20, 20),
}
"""Along each axis, by the number of points."""
WORKERS = 2
RESULTS = Path(__file__).parent / "results" / "scale.json"
ESTIMATOR = "crofton-13"
TOLERANCE = 1e-9  # of sums of floating-point products
SAMPLE = 10**9  # points whose sum is measured beside each part


def scene(side: int = PERIOD) -> np.ndarray:
    """Smoothed noise, blobs, and the noise of a camera, which go on behind the border."""
    rng = np.random.default_rng(0)
    shape = (side,) * 3
    background = ndimage.gaussian_filter(rng.standard_normal(shape, np.float32), 2, mode="wrap")
    background -= background.min()
    background *= 70 / background.max()
    blobs = (rng.random(shape, np.float32) < 2e-5).astype(np.float32)
    blobs = ndimage.gaussian_filter(blobs, 6, mode="wrap")
    background += 120 / blobs.max() * blobs
    background += 2 * rng.standard_normal(shape, np.float32)
    return np.clip(background, 0, 255).astype(np.uint8)


def make(
    path: Path, period: np.ndarray, periods: Sequence[int], shard: int = SHARD, chunk: int = CHUNK
) -> Path:
    """Write a volume of so many periods along each axis, whose shards are links to those of one."""
    if (path / "complete").exists():
        return path
    side = len(period)
    shape = tuple(side * count for count in periods)
    shards = (shard,) * 3
    array = zarr.create_array(
        path, shape=shape, shards=shards, chunks=(chunk,) * 3, dtype=period.dtype, overwrite=True
    )
    array[:side, :side, :side] = period
    of_period = side // shard
    for place in itertools.product(*(range(length // shard) for length in shape)):
        source = path.joinpath("c", *(str(i % of_period) for i in place))
        target = path.joinpath("c", *map(str, place))
        if target != source:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(source, target)
    (path / "complete").touch()
    return path


def truth(
    compute: Callable[..., np.ndarray], period: np.ndarray, periods: Sequence[int], boundary: str
) -> np.ndarray:
    """Return the numbers of a volume from those of its period, for all borders of its axes.

    `compute` returns those of an image for a boundary.
    """
    if boundary == "periodic":
        return math.prod(periods) * compute(period, boundary="periodic")
    total = 0
    for words in itertools.product(("periodic", "closed"), repeat=len(periods)):
        times = math.prod(
            count - 1 if word == "periodic" else 1
            for word, count in zip(words, periods, strict=True)
        )
        if times:
            total = total + times * compute(period, boundary=words)
    return np.asarray(total)


def curve_of(image: np.ndarray, boundary: Any) -> np.ndarray:
    return ecc.euler_curve(image, 256, range=(0, 255), boundary=boundary).values


def functionals_of(image: np.ndarray, boundary: Any) -> np.ndarray:
    options = {"range": (0, 255), "estimator": ESTIMATOR, "boundary": boundary}
    return ecc.minkowski_curves(image, 256, **options).values


def known(folder: Path, name: str, periods: Sequence[int], boundary: str) -> np.ndarray:
    """Return the truth of a volume, which is computed once for each size."""
    kept = folder / f"truth-{name}-{'x'.join(map(str, periods))}-{boundary}.npy"
    if not kept.exists():
        compute = curve_of if name == "curve" else functionals_of
        np.save(kept, truth(compute, np.load(folder / "period.npy"), periods, boundary))
    return np.load(kept)


def assert_true(table: Path, expected: np.ndarray) -> None:
    """Compare a table with the truth, integers exactly."""
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = ["euler_number"] if expected.ndim == 1 else ["volume", "surface", "mean_breadth"]
    for name, values in zip(names, np.atleast_2d(expected), strict=False):
        found = np.array([float(row[name]) for row in rows])
        if name == "euler_number":
            assert [int(row[name]) for row in rows] == values.tolist()
        else:
            np.testing.assert_allclose(found, values, rtol=TOLERANCE)


def measure(what: str, path: str, sample: bool) -> None:
    """Print seconds of wall and processor, and the peak of memory, of one computation."""
    from ecc_core.cli import main as ecc_command

    volume = zarr.open_array(path, mode="r")
    curve_of(np.zeros((8, 8, 8), volume.dtype), "closed")  # kernels are loaded before
    start = time.perf_counter()
    processor = time.process_time()
    if what == "sum":
        points = da.from_zarr(path, chunks=volume.shards)
        if sample:
            points = rows_of_shards(points, volume.shards)
        points.sum().compute(scheduler="threads", num_workers=WORKERS)
        count = points.size
    else:
        count = math.prod(volume.shape)
        assert ecc_command(["stack", path, *what.split()]) == 0
    seconds = time.perf_counter() - start
    used = time.process_time() - processor
    print(json.dumps({"points": count, "wall": seconds, "cpu": used, "memory": peak_memory()}))


def rows_of_shards(points: da.Array, shards: Sequence[int]) -> da.Array:
    """Return whole rows of shards of the first layer, of about as many points as a sample."""
    of_row = shards[0] * shards[1] * points.shape[2]
    rows = max(1, round(SAMPLE / of_row))
    return points[: shards[0], : rows * shards[1]]


def peak_memory() -> float:
    """MiB of this process alone: `ru_maxrss` begins with those of the process that started it."""
    status = Path("/proc/self/status").read_text()
    return float(status.partition("VmHWM:")[2].split()[0]) / 2**10


def measured(what: str, path: Path, *more: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.scale", "measure", "--path", str(path)]
    done = subprocess.run(
        [*command, f"--what={what}", *more], stdout=subprocess.PIPE, text=True, check=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def add_row(row: dict[str, Any]) -> None:
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    rows.append(row)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    print(json.dumps(row), flush=True)


def prepared(folder: Path, points: str) -> tuple[Path, Sequence[int]]:
    """Return the volume of so many points, which is written if it is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "period.npy"
    if not kept.exists():
        np.save(folder / "unfinished.npy", scene())
        (folder / "unfinished.npy").rename(kept)
    periods = PERIODS[points]
    return make(folder / f"{points}.zarr", np.load(kept), periods), periods


def compare(folder: Path, points: str, boundary: str, minkowski: bool, rounds: int) -> None:
    """Measure the sum and `ecc stack` by turns; note the least of each."""
    path, periods = prepared(folder, points)
    out = folder / "curve.csv"
    flags = f"--out {out} --boundary {boundary} --workers {WORKERS}"
    flags += f" --minkowski {ESTIMATOR}" if minkowski else ""
    runs: dict[str, list[dict[str, float]]] = {"sum": [], flags: []}
    for _ in range(rounds):
        for what, results in runs.items():
            results.append(measured(what, path))
    assert_true(out, known(folder, "functionals" if minkowski else "curve", periods, boundary))
    best = {
        name: {key: min(run[key] for run in results) for key in ("wall", "cpu")}
        | {"memory": max(run["memory"] for run in results)}
        for name, results in zip(("sum", "stack"), runs.values(), strict=True)
    }
    what = ESTIMATOR if minkowski else "curve"
    add_row({"points": points, "what": what, "boundary": boundary, "rounds": rounds, **best})


def by_parts(folder: Path, points: str, parts: int, boundary: str) -> None:
    """Compute the parts that are missing, and merge all of them."""
    path, periods = prepared(folder, points)
    kept = folder / f"parts-{points}-{parts}-{boundary}"
    kept.mkdir(exist_ok=True)
    for number in range(1, parts + 1):
        out = kept / f"part-{number}.npz"
        note = kept / f"part-{number}.json"
        if note.exists():
            continue
        share = f"--part {number}/{parts} --out {out} --resume"
        one = measured(f"{share} --boundary {boundary} --workers {WORKERS}", path)
        beside = measured("sum", path, "--sample")
        note.write_text(json.dumps({"part": one, "sum of a sample": beside}))
        print(number, json.dumps(one), json.dumps(beside), flush=True)
    merged = kept / "curve.csv"
    start = time.perf_counter()
    line = ["merge", *map(str, kept.glob("part-*.npz")), "--out", str(merged)]
    subprocess.run([sys.executable, "-m", "ecc_core.cli", *line], check=True)
    merging = time.perf_counter() - start
    assert_true(merged, known(folder, "curve", periods, boundary))
    notes = [json.loads(note.read_text()) for note in kept.glob("part-*.json")]
    ones = [note["part"] for note in notes]
    sums = [note["sum of a sample"] for note in notes]
    total = {key: sum(one[key] for one in ones) for key in ("wall", "cpu")}
    scale = ones[0]["points"] / sum(one["points"] for one in sums)
    scaled = {key: scale * sum(one[key] for one in sums) for key in ("wall", "cpu")}
    peaks = [max(one["memory"] for one in of) for of in (ones, sums)]
    add_row(
        {
            "points": points,
            "what": "curve",
            "boundary": boundary,
            "parts": parts,
            "longest_part": max(one["wall"] for one in ones),
            "merging": merging,
            "sum": scaled | {"memory": peaks[1]},
            "stack": total | {"memory": peaks[0]},
        }
    )


def write_table() -> None:
    """Write the table of all rows as Markdown."""
    lines = [
        "# Volumes on disk",
        "",
        "Measured by `python -m benchmarks.scale`: periodic volumes of uint8, as sharded Zarr",
        f"(shards of {SHARD}^3, chunks of {CHUNK}^3 points), {WORKERS} threads, files in the page",
        "cache, kernels loaded before. All numbers equal those that follow from one period. The",
        "sum beside parts follows from that of 10^9 points, measured after each part.",
        "",
        "| points | what | boundary | parts | stack, wall s | CPU s | MiB | sum, wall s | CPU s "
        "| wall / sum | CPU / sum |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in json.loads(RESULTS.read_text()):
        stack = row["stack"]
        total = row["sum"]
        ratios = [stack[key] / total[key] for key in ("wall", "cpu")]
        cells = [
            *(row["points"], row["what"], row["boundary"], row.get("parts", 1)),
            *(f"{stack['wall']:.1f}", f"{stack['cpu']:.1f}", f"{stack['memory']:.0f}"),
            *(f"{total['wall']:.1f}", f"{total['cpu']:.1f}"),
            *(f"{ratio:.2f}" for ratio in ratios),
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    RESULTS.with_suffix(".md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=["time", "parts", "table", "measure"])
    parser.add_argument("--points", choices=PERIODS, default="1e9")
    parser.add_argument("--folder", type=Path, default=Path("scale"))
    parser.add_argument("--boundary", choices=["closed", "periodic"], default="closed")
    parser.add_argument("--minkowski", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--what")
    parser.add_argument("--path")
    parser.add_argument("--sample", action="store_true")
    arguments = parser.parse_args()
    folder = arguments.folder
    points = arguments.points
    run: dict[str, Callable[[], None]] = {
        "time": partial(
            compare, folder, points, arguments.boundary, arguments.minkowski, arguments.rounds
        ),
        "parts": partial(by_parts, folder, points, arguments.parts, arguments.boundary),
        "table": write_table,
        "measure": partial(measure, arguments.what, arguments.path, arguments.sample),
    }
    run[arguments.case]()


if __name__ == "__main__":
    main()
