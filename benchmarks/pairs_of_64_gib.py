"""Pairs of birth and death of a volume of 64 GiB, by chunks, beside `ecc stack`.

    python -m benchmarks.pairs_of_64_gib --folder /tmp/large

The volume repeats a period of 256^3 points of uint8, smoothed noise (sigma 4), 16 times along each
axis. It is sharded Zarr, whose shards are links to one, so that the disk holds one period and any
reader decodes all of it. The Euler curve by `ecc stack` and the decoding alone are measured for a
part of it, and the pairs of components and of cavities for all of it, each in a process of its own
with two threads. What was measured by an earlier run is kept in the folder. The numbers of pairs by
birth and death are compared with those that follow from small volumes of the same period. The table
is benchmarks/results/pairs_of_64_gib.md, and pairs_of_1_gib.md with `--side 64 --what "pairs 0"
"pairs 2"`: as many chunks, which are smaller.
"""

import argparse
import itertools
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
from dask.callbacks import Callback

import ecc_core as ecc
from benchmarks.objects_on_disk import period
from benchmarks.periodic_volumes import STORAGES, Storage, make
from benchmarks.scale import peak_memory
from ecc_core._partition import Partition
from ecc_core.cli import main as command

RESULTS = Path(__file__).parent / "results"
SIDE = 256
"""The points of a period along each axis."""
PERIODS = 16
"""The number of periods along each axis."""
PARTS = 64
"""The number of parts of the volume, of which `ecc stack` and the decoding take one."""
SIGMA = 4
PERSISTENCE = 30
NAMES = {
    "stack": "Euler curve, `ecc stack`, a part",
    "decode": "decoding alone, a part",
    "pairs 0": "pairs of components",
    "pairs 2": "pairs of cavities",
}
FEW = 2
"""The periods along each axis of the smallest volumes from which the truth follows."""
LEVELS = 256
WORKERS = 2
"""The threads of each computation."""
SECONDS_OF_LOG = 60


class Progress(Callback):
    """Prints how many tasks are done, the processor time and the peak of memory."""

    def __init__(self) -> None:
        super().__init__(posttask=self._done)
        self.tasks = 0
        self.start = time.monotonic()
        self.printed = self.start

    def _done(self, *_: Any) -> None:
        self.tasks += 1
        now = time.monotonic()
        if now - self.printed < SECONDS_OF_LOG:
            return
        self.printed = now
        spent = f"{now - self.start:.0f} s, {time.process_time():.0f} s of processor"
        print(f"{self.tasks} tasks, {spent}, {peak_memory():.0f} MiB", file=sys.stderr, flush=True)


def by_birth_and_death(pairs: Any) -> np.ndarray:
    """Return the numbers of pairs with each birth and death, (256, 256)."""
    numbers = pairs.births.astype(np.int64) * LEVELS + pairs.deaths
    return np.bincount(numbers, minlength=LEVELS**2).reshape(LEVELS, LEVELS)


def pairs(path: Path, dimension: int, out: Path) -> int:
    """Keep the numbers of pairs of the whole volume; return the number of points."""
    volume = zarr.open_array(path, mode="r")
    image = da.from_zarr(str(path), chunks=volume.shards)
    with Progress():
        found = ecc.persistence_pairs(image, dimension, min_persistence=PERSISTENCE).to_numpy()
    np.save(out, by_birth_and_death(found))
    return int(volume.size)


def stack(path: Path, out: Path, part: str) -> int:
    """Compute the Euler curve of a part; return the number of points."""
    assert (
        command(["stack", str(path), "--workers", str(WORKERS), "--part", part, "--out", str(out)])
        == 0
    )
    return int(zarr.open_array(path, mode="r").size) // PARTS


def decode(path: Path) -> int:
    """Decode the shards of a part; return the number of points."""
    volume = zarr.open_array(path, mode="r")
    shards = Partition.of_chunks(volume.shape, volume.shards)
    part = itertools.islice(shards.boxes(), max(shards.size // PARTS, 1))
    return sum(volume[box].size for box in part)


def compute(what: str, path: Path, out: Path, part: str) -> int:
    """Run one computation; return the number of points that it has read."""
    if what == "stack":
        return stack(path, out.with_suffix(".npz"), part)
    if what == "decode":
        return decode(path)
    return pairs(path, int(what.split()[1]), out)


def measure(what: str, path: Path, out: Path) -> None:
    """Print the points, the time and the peak of memory of one computation."""
    small = make(
        out.with_name("warm.zarr"),
        np.ones((16,) * 3, np.uint8),
        periods=(1, 1, 1),
        shard=16,
        storage=Storage("auto", 8),
    )
    with dask.config.set(scheduler="threads", num_workers=WORKERS):
        compute(what, small, out, part="1/1")  # This loads the kernels.
        wall = time.monotonic()
        processor = time.process_time()
        points = compute(what, path, out, part=f"1/{PARTS}")
        used = time.process_time() - processor
    found = {"points": points, "cpu": used, "wall": time.monotonic() - wall}
    print(json.dumps({**found, "memory": peak_memory()}))


def measured(what: str, path: Path, out: Path) -> dict[str, float]:
    line = [sys.executable, "-m", "benchmarks.pairs_of_64_gib", "--measure", what]
    line += ["--path", str(path), "--out", str(out)]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def numbers_of(dimension: int, side: int, periods: tuple[int, ...]) -> np.ndarray:
    """Return the numbers of pairs of a small volume, which is in memory."""
    image = np.tile(period(0, side, SIGMA), periods)
    found = ecc.persistence_pairs(image, dimension, min_persistence=PERSISTENCE, workers=WORKERS)
    return by_birth_and_death(found)


def truth(dimension: int, side: int, folder: Path) -> np.ndarray:
    """Return the numbers of pairs of the volume from those of small ones.

    A further period along an axis adds the same pairs as the one before, from the third one on.
    """
    kept = folder / f"truth {dimension}.npy"
    if not kept.exists():
        total = np.zeros((LEVELS, LEVELS), np.int64)
        few, more = FEW, FEW + 1
        for periods in itertools.product((few, more), repeat=3):
            weights = [PERIODS - few if count == more else more - PERIODS for count in periods]
            total += np.prod(weights) * numbers_of(dimension, side, periods)
        np.save(kept, total)
    return np.load(kept)


def rows(runs: dict[str, dict[str, float]], side: int, folder: Path) -> list[str]:
    """Return the rows of the table, after comparing numbers of pairs with the truth."""
    found = []
    for what, one in runs.items():
        pairs = ""
        if what.startswith("pairs"):
            numbers = np.load(folder / f"{what}.npy")
            known = truth(int(what.split()[1]), side, folder)
            np.testing.assert_array_equal(numbers, known)
            pairs = f"{numbers.sum():,}"
        each = one["cpu"] / one["points"]
        times = ""
        if "stack" in runs:
            times = f"{each / (runs['stack']['cpu'] / runs['stack']['points']):.1f}"
        found.append(
            f"| {NAMES[what]} | {one['points'] / 2**30:g} | {one['cpu']:.0f} | {one['wall']:.0f} "
            f"| {1e9 * each:.1f} | {one['memory']:.0f} | {times} | {pairs} |"
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("large"))
    parser.add_argument("--side", type=int, default=SIDE)
    parser.add_argument("--what", nargs="+", choices=NAMES, default=[*NAMES])
    parser.add_argument("--measure")
    parser.add_argument("--path", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure, arguments.path, arguments.out)
        return
    folder = arguments.folder
    side = arguments.side
    folder.mkdir(parents=True, exist_ok=True)
    path = make(
        folder / "volume.zarr",
        period(0, side, SIGMA),
        periods=(PERIODS,) * 3,
        shard=side,
        storage=STORAGES["lz4"]._replace(chunk=side),
    )
    kept = folder / "runs.jsonl"
    known = kept.read_text().splitlines() if kept.exists() else []
    runs = {run.pop("what"): run for run in map(json.loads, known)}
    for what in arguments.what:
        if what not in runs:
            runs[what] = measured(what, path, folder / f"{what}.npy")
            with kept.open("a") as file:
                file.write(json.dumps({"what": what, **runs[what]}) + "\n")
    gibibytes = (side * PERIODS) ** 3 / 2**30
    lines = [
        f"# Pairs of {gibibytes:g} GiB",
        "",
        f"Measured by `python -m benchmarks.pairs_of_64_gib --side {side}`: smoothed noise of",
        f"uint8 (sigma {SIGMA}) in {PERIODS} periods of {side} points along each axis. Periods are",
        "the shards of a Zarr array (Blosc, lz4), and the chunks of a dask array. Two threads of a",
        "machine with other load, files in the page cache, kernels loaded before. Classes last",
        f"for at least {PERSISTENCE}. Numbers of pairs by birth and death are those that follow",
        "from volumes of two and three periods.",
        "",
        "| | GiB read | CPU s | wall s | ns a point | MiB | times the curve | pairs |",
        "|---|---|---|---|---|---|---|---|",
        *rows({what: runs[what] for what in NAMES if what in runs}, side, folder),
    ]
    RESULTS.joinpath(f"pairs_of_{gibibytes:g}_gib.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
