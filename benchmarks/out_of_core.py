"""Curves of Zarr volumes against reading them: time, memory, and tasks.

    python -m benchmarks.out_of_core time --dtype uint8 --gib 4
    python -m benchmarks.out_of_core memory --gib 16
    python -m benchmarks.out_of_core overhead
    python -m benchmarks.out_of_core window
    python -m benchmarks.out_of_core throughput --gib 1

Each measurement is a process of its own with two threads; `time` alternates between the sum of the
volume, as dask computes it, its curve at 256 thresholds, and `ecc stack`. `window` counts the
blocks that wait at once in volumes of tiny blocks that are not read. `throughput` needs a CUDA
device, and compares it with 1 and 4 threads. Rows go to stdout as Markdown.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import weakref
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import zarr
from scipy import ndimage

import ecc_core as ecc
from ecc_core._blocks.window import sums_of_groups
from ecc_core._blocks.work import Work
from ecc_core._request.filtration import Filtration
from ecc_core.cli import main as main_of_ecc
from ecc_core.quantities.euler import CurveValues

CHUNK = 256
WORKERS = 2
DISTINCT = 8
"""Chunks that are stored; the others are links to them."""
TOP = {"uint8": 200, "uint16": 6000}


def scene(dtype: str, seed: int) -> np.ndarray:
    """Return smoothed noise with blobs and the noise of a camera."""
    rng = np.random.default_rng(seed)
    shape = (CHUNK,) * 3
    background = ndimage.gaussian_filter(rng.normal(size=shape).astype(np.float32), 2, mode="wrap")
    background = (background - background.min()) / np.ptp(background)
    seeds = (rng.random(shape) < 2e-5).astype(np.float32)
    blobs = ndimage.gaussian_filter(seeds, 6, mode="wrap")
    image = TOP[dtype] * (0.35 * background + 0.6 * blobs / blobs.max())
    image += 0.01 * TOP[dtype] * rng.normal(size=shape)
    return np.clip(image, 0, np.iinfo(dtype).max).astype(dtype)


def make(folder: Path, dtype: str, gib: int) -> Path:
    """Write a volume in chunks of 256^3, compressed as by default, and return its path."""
    count = gib * 2**30 // (CHUNK**3 * np.dtype(dtype).itemsize)
    blocks = [1, 1, 1]
    for i in range(count.bit_length() - 1):
        blocks[i % 3] *= 2
    path = folder / f"{dtype}-{gib}.zarr"
    shape = tuple(CHUNK * n for n in blocks)
    array = zarr.create_array(path, shape=shape, chunks=(CHUNK,) * 3, dtype=dtype)
    places = list(itertools.product(*map(range, blocks)))
    files = [path.joinpath("c", *map(str, place)) for place in places]
    for i, (place, file) in enumerate(zip(places, files, strict=True)):
        if i < DISTINCT:
            array.blocks[place] = scene(dtype, seed=i)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            os.link(files[i * 5 % DISTINCT], file)
    return path


def measure(what: str, path: str, workers: int) -> None:
    """Print seconds of wall and processor and the greatest memory of one computation."""
    dask.config.set(num_workers=workers)
    volume = da.from_zarr(path)
    warm = da.zeros((8, 8, 8), chunks=4, dtype=volume.dtype)
    ecc.euler_curve(warm, 256, range=(0, TOP[volume.dtype.name])).values.compute()
    start = time.perf_counter()
    processor = time.process_time()
    if what == "sum":
        volume.sum().compute()
    elif what.startswith("stack"):
        with tempfile.TemporaryDirectory() as folder:
            means = ["--out", f"{folder}/curve.csv", "--range", f"0,{TOP[volume.dtype.name]}"]
            command = [*what.split(), path, *means, "--workers", str(workers)]
            assert main_of_ecc(command) == 0
    else:
        ecc.euler_curve(volume, 256, range=(0, TOP[volume.dtype.name])).values.compute()
    print(
        json.dumps(
            {
                "wall": time.perf_counter() - start,
                "processor": time.process_time() - processor,
                "memory": peak_memory(),
            }
        )
    )


def peak_memory() -> float:
    """Return the peak memory of this process in MiB; `ru_maxrss` includes that of its parent."""
    status = Path("/proc/self/status").read_text()
    _, _, rest = status.partition("VmHWM:")
    kibibytes = rest.split()[0]
    return float(kibibytes) / 2**10


def measured(what: str, path: Path, workers: int = WORKERS) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.out_of_core", "measure", "--what", what]
    command += ["--path", str(path), "--workers", str(workers)]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return dict(json.loads(found))


def compare(folder: Path, dtype: str, gib: int, rounds: int) -> None:
    path = make(folder, dtype, gib)
    runs: dict[str, list[dict[str, float]]] = {"sum": [], "curve": [], "stack": []}
    for _ in range(rounds):
        for what, results in runs.items():
            results.append(measured(what, path))
    print("| volume | | wall, s | processor, s | memory, MiB |\n|---|---|---|---|---|")
    least = {}
    for what, results in runs.items():
        least[what] = {}
        for key in results[0]:
            least[what][key] = min(run[key] for run in results)
    for what, best in least.items():
        peak = max(run["memory"] for run in runs[what])
        print(
            f"| {dtype}, {gib} GiB | {what} | {best['wall']:.2f} "
            f"| {best['processor']:.2f} | {peak:.0f} |"
        )
    for what in ("curve", "stack"):
        wall, processor = (least[what][key] / least["sum"][key] for key in ("wall", "processor"))
        print(f"| {dtype}, {gib} GiB | {what} / sum | {wall:.2f} | {processor:.2f} | |")


def memory(folder: Path, gib: int) -> None:
    path = make(folder, "uint8", gib)
    print("| volume | | wall, s | memory, MiB |\n|---|---|---|---|")
    for what in ("sum", "curve", "stack"):
        run = measured(what, path)
        print(
            f"| uint8, {gib} GiB | {what} | {run['wall']:.1f} | {run['memory']:.0f} |", flush=True
        )


def throughput(folder: Path, gib: int, rounds: int) -> None:
    """Print the best rate of each way in GB/s."""
    ways = "sum", "stack", "stack --device cuda"
    print(f"| | threads | {' | '.join(ways)} |\n|---|---|---|---|---|")
    for dtype in TOP:
        path = make(folder, dtype, gib)
        for workers in (1, 4):
            best = dict.fromkeys(ways, 0.0)
            for _ in range(rounds):
                for what in ways:
                    rate = gib * 2**30 / 1e9 / measured(what, path, workers)["wall"]
                    best[what] = max(best[what], rate)
            rates = " | ".join(f"{rate:.2f}" for rate in best.values())
            print(f"| {dtype} | {workers} | {rates} |", flush=True)


def window() -> None:
    """Print how many blocks wait, which does not grow with the depth, and the size of one graph."""
    print(
        "| blocks | of a layer | most that wait | memory, MiB | tasks of one graph | ms a block |"
    )
    print("|---|---|---|---|---|---|")
    for side in (8, 16, 24):
        command = [sys.executable, "-m", "benchmarks.out_of_core", "blocks"]
        command += ["--gib", str(side)]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        row = json.loads(found)
        counts = f"{side**2} | {row['waiting']} | {row['memory']:.0f} | {row['graph']}"
        print(f"| {side}^3 | {counts} | {row['ms']:.2f} |", flush=True)


def count_blocks(side: int) -> None:
    """Print the blocks that wait and the time, for side^3 blocks of zeros."""
    points = np.zeros((4, 4, 4), np.uint8)
    curve = CurveValues(np.arange(256), Filtration(3, 3))
    work = Work(lambda _: (points,), ((4,) * side,) * 3, curve)
    groups = work.groups(16, side=side)
    waiting: set[Any] = set()
    most = 0
    process = Work.process

    def counted(self: Work, block: tuple[int, ...]) -> Any:
        nonlocal most
        processed = process(self, block)
        waiting.add(block)
        most = max(most, len(waiting))
        weakref.finalize(processed.own, waiting.discard, block)
        return processed

    Work.process = counted  # type: ignore[method-assign]
    start = time.perf_counter()
    for _ in sums_of_groups(work, groups, range(len(groups)), workers=WORKERS):
        pass
    seconds = time.perf_counter() - start
    peak = peak_memory()
    volume = da.zeros((4 * side,) * 3, chunks=4, dtype=np.uint8)
    whole = dask.optimize(ecc.euler_curve(volume, 256, range=(0, 255)).values)[0]
    row = {"waiting": most, "memory": peak, "ms": seconds / side**3 * 1e3}
    print(json.dumps({**row, "graph": len(whole.__dask_graph__())}))


def overhead() -> None:
    """Print the time of a block of zeros, which is not read and takes the least computing."""
    print("| chunk | blocks | tasks a block | ms a block |\n|---|---|---|---|")
    for chunk in (64, 128, 256):
        volume = da.zeros((512,) * 3, chunks=chunk, dtype=np.uint8)
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            values = ecc.euler_curve(volume, 256, range=(0, 255)).values
            values.compute()
            seconds.append(time.perf_counter() - start)
        blocks = volume.npartitions
        tasks = len(dask.optimize(values)[0].__dask_graph__())
        print(
            f"| {chunk}^3 | {blocks} | {tasks / blocks:.2f} | {min(seconds) / blocks * 1e3:.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "case",
        choices=["time", "memory", "overhead", "window", "throughput", "measure", "blocks"],
    )
    parser.add_argument("--dtype", choices=sorted(TOP), default="uint8")
    parser.add_argument("--gib", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--what", choices=["sum", "curve", "stack", "stack --device cuda"])
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--path")
    arguments = parser.parse_args()
    dask.config.set(scheduler="threads", num_workers=WORKERS)
    if arguments.case == "measure":
        measure(arguments.what, arguments.path, arguments.workers)
        return
    if arguments.case == "blocks":
        count_blocks(arguments.gib)
        return
    with tempfile.TemporaryDirectory() as name:
        if arguments.case == "time":
            compare(Path(name), arguments.dtype, arguments.gib, arguments.rounds)
        elif arguments.case == "memory":
            memory(Path(name), arguments.gib)
        elif arguments.case == "window":
            window()
        elif arguments.case == "throughput":
            throughput(Path(name), arguments.gib, arguments.rounds)
        else:
            overhead()


if __name__ == "__main__":
    main()
