"""Volumes of up to 10^12 points on disk: `ecc stack` against the sum of all points, and the truth.

    python -m benchmarks.scale time --points 1e10 --codec none --folder /tmp/scale
    python -m benchmarks.scale time --points 1e10 --what betti --rounds 1 --folder /tmp/scale
    python -m benchmarks.scale parts --points 1e12 --boundary periodic --folder /tmp/scale
    python -m benchmarks.scale table

The volumes are those of `benchmarks.periodic_volumes`, with periods of 500^3 points, or of 1000^3
with walls for Betti numbers. `time` measures the sum of all points, as dask computes it, and `ecc
stack`, by turns and in processes of two threads. `parts` computes the parts that are not there yet,
one after another, and merges them, so that it goes on where it was stopped; after each part it
measures the sum of 10^9 points for comparison. Both compare the numbers with those of one period,
and add rows to benchmarks/results/scale.json, of which `table` makes the table.
"""

import argparse
import csv
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import zarr

from benchmarks.periodic_volumes import (
    ESTIMATOR,
    SHARD,
    STORAGES,
    curve_of,
    functionals_of,
    make,
    scene,
    truth,
    truth_of_walled,
    walled,
)

PERIODS = {
    "1.25e8": (1, 1, 1),
    "1e9": (2, 2, 2),
    "1e10": (4, 4, 5),
    "1e11": (8, 10, 10),
    "1e12": (20, 20, 20),
}
"""The periods along each axis, for each number of points."""
WALLED_PERIODS = {"1e9": (1, 1, 1), "1e10": (1, 2, 5)}
COLUMNS = {
    "curve": ("euler_number",),
    "betti": ("b0", "b1", "b2"),
    ESTIMATOR: ("volume", "surface", "mean_breadth", "euler_number"),
}
"""The columns of the table of each quantity, in the order of the values of its result."""
FLAGS = {"curve": "", "betti": "--betti", ESTIMATOR: f"--minkowski {ESTIMATOR}"}
MEASURED = ("volume", "surface", "mean_breadth")
"""Columns of floating-point numbers."""
WORKERS = 2
RESULTS = Path(__file__).parent / "results" / "scale.json"
TOLERANCE = 1e-9
"""The relative error of sums of floating-point products."""
SAMPLE = 10**9
"""Points whose sum is measured after each part."""


class Case(NamedTuple):
    """A volume, and the quantity that is computed."""

    folder: Path
    points: str
    codec: str
    what: str
    boundary: str

    @property
    def is_walled(self) -> bool:
        return self.what == "betti"

    @property
    def periods(self) -> Sequence[int]:
        return (WALLED_PERIODS if self.is_walled else PERIODS)[self.points]

    @property
    def flags(self) -> str:
        return f"--boundary {self.boundary} --workers {WORKERS} {FLAGS[self.what]}"

    @property
    def row(self) -> dict[str, Any]:
        """The entries of the case in a row of the table."""
        names = ("points", "codec", "what", "boundary")
        return {name: getattr(self, name) for name in names}

    def period(self) -> np.ndarray:
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = self.folder / "period.npy"
        if not kept.exists():
            np.save(self.folder / "unfinished.npy", scene())
            (self.folder / "unfinished.npy").rename(kept)
        period = np.load(kept)
        return walled(period) if self.is_walled else period

    def volume(self) -> Path:
        """Return the volume, which is written if it is not there yet."""
        name = f"{self.points}-{self.codec}{'-walled' if self.is_walled else ''}.zarr"
        storage = STORAGES[self.codec]
        return make(self.folder / name, self.period(), self.periods, storage=storage)

    def known(self) -> np.ndarray:
        """Return the truth, which is computed once for each size."""
        sizes = "x".join(map(str, self.periods))
        kept = self.folder / f"truth-{self.what}-{sizes}-{self.boundary}.npy"
        if not kept.exists():
            np.save(kept, self._computed())
        return np.load(kept)

    def _computed(self) -> np.ndarray:
        if self.is_walled:
            if self.boundary != "closed":
                raise ValueError("walled periods are known for a closed boundary only")
            return truth_of_walled(self.period(), self.periods)
        compute = curve_of if self.what == "curve" else functionals_of
        return truth(compute, self.period(), self.periods, self.boundary)


def prepared(folder: Path, points: str) -> tuple[Path, Sequence[int]]:
    """Return the volume of so many points for curves, as zarr stores it by default."""
    case = Case(folder=folder, points=points, codec="zstd", what="curve", boundary="closed")
    return case.volume(), case.periods


def known(folder: Path, points: str, boundary: str) -> np.ndarray:
    """Return the curve of such a volume."""
    return Case(folder=folder, points=points, codec="zstd", what="curve", boundary=boundary).known()


def assert_true(table: Path, expected: np.ndarray, what: str = "curve") -> None:
    """Compare a table with the truth, integers exactly."""
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for name, values in zip(COLUMNS[what], np.atleast_2d(expected), strict=True):
        if name in MEASURED:
            found = np.array([float(row[name]) for row in rows])
            np.testing.assert_allclose(found, values, rtol=TOLERANCE)
        else:
            assert [int(row[name]) for row in rows] == values.tolist()


def measure(what: str, path: str, sample: bool) -> None:
    """Print seconds of wall and processor, and the peak of memory, of one computation."""
    from ecc_core.cli import main as ecc_command

    volume = zarr.open_array(path, mode="r")
    curve_of(np.zeros((8, 8, 8), volume.dtype), "closed")  # This loads the kernels.
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
    """Return whole rows of shards in the first layer, with about as many points as a sample."""
    of_row = shards[0] * shards[1] * points.shape[2]
    rows = max(1, round(SAMPLE / of_row))
    return points[: shards[0], : rows * shards[1]]


def peak_memory() -> float:
    """Return the peak memory of this process in MiB; `ru_maxrss` includes that of its parent."""
    status = Path("/proc/self/status").read_text()
    _, _, rest = status.partition("VmHWM:")
    kibibytes = rest.split()[0]
    return float(kibibytes) / 2**10


def measured(what: str, path: Path, *more: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.scale", "measure", "--path", str(path)]
    done = subprocess.run(
        [*command, f"--run={what}", *more], stdout=subprocess.PIPE, text=True, check=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def add_row(row: dict[str, Any]) -> None:
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    rows.append(row)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    print(json.dumps(row), flush=True)


def compare(case: Case, rounds: int) -> None:
    """Measure the sum and `ecc stack` by turns; note the least of each."""
    path = case.volume()
    expected = case.known()
    out = case.folder / "curve.csv"
    flags = f"--out {out} {case.flags}"
    runs: dict[str, list[dict[str, float]]] = {"sum": [], flags: []}
    for _ in range(rounds):
        for what, results in runs.items():
            results.append(measured(what, path))
    assert_true(out, expected, case.what)
    best = {}
    for name, results in zip(("sum", "stack"), runs.values(), strict=True):
        best[name] = {}
        for key in ("wall", "cpu"):
            best[name][key] = min(run[key] for run in results)
        best[name]["memory"] = max(run["memory"] for run in results)
    add_row({**case.row, "rounds": rounds, **best})


def by_parts(case: Case, parts: int) -> None:
    """Compute the parts that are missing, and merge all of them."""
    path = case.volume()
    expected = case.known()
    kept = case.folder / f"parts-{case.points}-{case.codec}-{case.what}-{parts}-{case.boundary}"
    kept.mkdir(exist_ok=True)
    for number in range(1, parts + 1):
        out = kept / f"part-{number}.npz"
        note = kept / f"part-{number}.json"
        if note.exists():
            continue
        share = f"--part {number}/{parts} --out {out} --resume"
        one = measured(f"{share} {case.flags}", path)
        beside = measured("sum", path, "--sample")
        note.write_text(json.dumps({"part": one, "sum of a sample": beside}))
        print(number, json.dumps(one), json.dumps(beside), flush=True)
    merged = kept / "curve.csv"
    start = time.perf_counter()
    line = ["merge", *map(str, kept.glob("part-*.npz")), "--out", str(merged)]
    subprocess.run([sys.executable, "-m", "ecc_core.cli", *line], check=True)
    merging = time.perf_counter() - start
    assert_true(merged, expected, case.what)
    notes = [json.loads(note.read_text()) for note in kept.glob("part-*.json")]
    ones = [note["part"] for note in notes]
    sums = [note["sum of a sample"] for note in notes]
    scale = ones[0]["points"] / sum(one["points"] for one in sums)
    total = {}
    scaled = {}
    for key in ("wall", "cpu"):
        total[key] = sum(one[key] for one in ones)
        scaled[key] = scale * sum(one[key] for one in sums)
    memories = [[one["memory"] for one in found] for found in (ones, sums)]
    peaks = [max(found) for found in memories]
    add_row(
        {
            **case.row,
            "parts": parts,
            "longest_part": max(one["wall"] for one in ones),
            "merging": merging,
            "sum": scaled | {"memory": peaks[1]},
            "stack": total | {"memory": peaks[0]},
        }
    )


def write_table() -> None:
    """Write the table of all rows as Markdown."""
    chunks = ", ".join(f"{storage.chunk}^3 for {name}" for name, storage in STORAGES.items())
    lines = [
        "# Volumes on disk",
        "",
        "Measured by `python -m benchmarks.scale`: periodic volumes of uint8, as sharded Zarr",
        f"(shards of {SHARD}^3 points; chunks of {chunks}), {WORKERS} threads, files in the page",
        "cache, kernels loaded before. All numbers equal those that follow from one period. The",
        "sum beside parts follows from that of 10^9 points, measured after each part. Where wall",
        "times are not much less than CPU times, other programs ran on the same two cores: only",
        "CPU times can be compared there.",
        "",
        "| points | codec | what | boundary | parts | stack, wall s | CPU s | MiB "
        "| sum, wall s | CPU s | wall / sum | CPU / sum |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(json.loads(RESULTS.read_text()), key=_order):
        stack = row["stack"]
        total = row["sum"]
        ratios = [stack[key] / total[key] for key in ("wall", "cpu")]
        cells = [
            *(row[name] for name in ("points", "codec", "what", "boundary")),
            row.get("parts", 1),
            *(f"{stack['wall']:.1f}", f"{stack['cpu']:.1f}", f"{stack['memory']:.0f}"),
            *(f"{total['wall']:.1f}", f"{total['cpu']:.1f}"),
            *(f"{ratio:.2f}" for ratio in ratios),
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    RESULTS.with_suffix(".md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def _order(row: dict[str, Any]) -> tuple[float, int, int]:
    """Return the key by which rows of the table are sorted."""
    codec = list(STORAGES).index(row["codec"])
    what = list(COLUMNS).index(row["what"])
    return float(row["points"]), codec, what


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=["time", "parts", "table", "measure"])
    parser.add_argument("--points", choices=PERIODS, default="1e9")
    parser.add_argument("--codec", choices=STORAGES, default="none")
    parser.add_argument("--what", choices=COLUMNS, default="curve")
    parser.add_argument("--folder", type=Path, default=Path("scale"))
    parser.add_argument("--boundary", choices=["closed", "periodic"], default="closed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", type=int, default=32)
    parser.add_argument("--run", help="what to measure: sum, or arguments of ecc stack")
    parser.add_argument("--path")
    parser.add_argument("--sample", action="store_true")
    given = parser.parse_args()
    case = Case(
        folder=given.folder,
        points=given.points,
        codec=given.codec,
        what=given.what,
        boundary=given.boundary,
    )
    run: dict[str, Callable[[], None]] = {
        "time": partial(compare, case, given.rounds),
        "parts": partial(by_parts, case, given.parts),
        "table": write_table,
        "measure": partial(measure, given.run, given.path, given.sample),
    }
    run[given.case]()


if __name__ == "__main__":
    main()
