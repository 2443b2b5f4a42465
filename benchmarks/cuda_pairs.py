"""Times of persistence pairs on a CUDA device, against one core of the same machine.

    python -m benchmarks.cuda_pairs [--quick] [--output benchmarks/results/cuda_pairs]

float32 images that are on the device already, by the clock, from the call until the device has
finished; the least of several calls. For volumes the CPU backend finds the same pairs at the same
time, by one thread of another process. Its arrays are equal, which hashes tell. Writes JSON and
Markdown.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import torch
from cupyx.scipy.ndimage import gaussian_filter

import ecc_core as ecc
from benchmarks.pages import cuda_device, markdown_table, paragraph_of
from ecc_core.nn import PersistenceLoss
from ecc_core.nn._classes import classes_of

CALLS = 3
HEAD = "| case | device ms | pairs | bytes a point | one core s | core / device | equal |"
# The program of the process on the CPU: it compiles, and prints its time and the hash.
HOST = """
import sys
import time

import numpy as np

import ecc_core as ecc
from benchmarks.cuda_pairs import digest

image = np.load(sys.argv[1])
ecc.persistence_pairs(image[:16, :16, :16], connectivity=1, workers=1)
start = time.perf_counter()
pairs = ecc.persistence_pairs(image, connectivity=1, workers=1)
print(time.perf_counter() - start, digest(pairs))
"""


def digest(pairs: Any) -> str:
    """Return a hash of all pairs on the host."""
    found = hashlib.sha256()
    for array in (pairs.birth_points, pairs.death_points):
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def field(shape: tuple[int, ...], sigma: float) -> Any:
    """Return noise, or smooth noise."""
    values = cupy.random.default_rng(0).random(shape, dtype=cupy.float32)
    return gaussian_filter(values, sigma) if sigma else values


def seconds(call: Callable[[], Any]) -> float:
    best = float("inf")
    for _ in range(1 + CALLS):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        call()
        cupy.cuda.Device().synchronize()
        best = min(best, time.perf_counter() - start)
    return best


class Case:
    """An image, and the process that finds its pairs on the host, if there is one."""

    def __init__(self, shape: tuple[int, ...], sigma: float, dimension: int | None) -> None:
        self.title = f"{shape[0]}^{len(shape)} {f'sigma {sigma:g}' if sigma else 'noise'}"
        self.title += ", all dimensions" if dimension is None else f", dimension {dimension}"
        self.shape = shape
        self.sigma = sigma
        self.dimension = dimension
        self.process: subprocess.Popen[str] | None = None
        self.row: dict[str, Any] = {}

    def start_host(self, folder: Path) -> None:
        if len(self.shape) < 3 or self.dimension is not None:
            return
        file = folder / f"{self.title}.npy"
        np.save(file, field(self.shape, self.sigma).get())
        command = [sys.executable, "-c", HOST, str(file)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def measure(self) -> None:
        image = field(self.shape, self.sigma)
        options: dict[str, Any] = {"connectivity": 1, "dimension": self.dimension}
        pool = cupy.get_default_memory_pool()
        pool.free_all_blocks()
        before = pool.total_bytes()
        pairs = ecc.persistence_pairs(image, **options)
        extra = (pool.total_bytes() - before) / image.size
        self.row = {"case": self.title, "pairs": len(pairs.births), "bytes_a_point": extra}
        if self.process is not None:
            self.row["digest"] = digest(_Host(pairs.birth_points.get(), pairs.death_points.get()))
        del pairs
        self.row["device_ms"] = 1e3 * seconds(lambda: ecc.persistence_pairs(image, **options))
        pool.free_all_blocks()

    def finish(self) -> None:
        if self.process is None or self.process.stdout is None:
            return
        taken, known = self.process.stdout.read().split()
        self.row["core_s"] = float(taken)
        self.row["equal"] = known == self.row["digest"]


class _Host:
    """The points of pairs in host memory."""

    def __init__(self, births: Any, deaths: Any) -> None:
        self.birth_points = births
        self.death_points = deaths


def probabilities(count: int, side: int) -> torch.Tensor:
    """Return smooth images (count, 1, side, side) between 0 and 1."""
    smooth = cupy.stack([field((side, side), 4) for _ in range(count)])
    smooth -= smooth.min()
    return torch.from_dlpack(smooth / smooth.max())[:, None]


def batch_row(count: int, side: int) -> dict[str, Any]:
    """Return the time of the pairs of a batch, as layers find them."""
    images = probabilities(count, side)[:, 0]
    found = classes_of(images, None, connectivity=2, superlevel=True)
    taken = seconds(lambda: classes_of(images, None, connectivity=2, superlevel=True))
    title = f"{count} x {side}^2 sigma 4, all dimensions, in layers"
    return {"case": title, "pairs": len(found.births), "device_ms": 1e3 * taken}


def loss_row(count: int, side: int) -> dict[str, Any]:
    """Return the time of a loss of smooth probabilities against masks, forward and backward."""
    images = probabilities(count, side).requires_grad_()
    targets = (images.detach() > 0.5).float()
    loss = PersistenceLoss()

    def step() -> None:
        images.grad = None
        loss(images, targets).backward()

    title = f"`PersistenceLoss` {count} x {side}^2 sigma 4, forward and backward"
    return {"case": title, "device_ms": 1e3 * seconds(step)}


def line(row: dict[str, Any]) -> str:
    core = row.get("core_s")
    cells = [row["case"], f"{row['device_ms']:.4g}", f"{row.get('pairs', '')}"]
    cells += [f"{row['bytes_a_point']:.0f}" if "bytes_a_point" in row else ""]
    cells += [f"{core:.3g}", f"{1e3 * core / row['device_ms']:.0f}"] if core else ["", ""]
    cells += [{True: "yes", False: "NO"}.get(row.get("equal"), "")]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_pairs"))
    arguments = parser.parse_args()
    small, large, flat = (64, 128, 256) if arguments.quick else (256, 512, 2048)
    shapes = ((large,) * 3, 0, None), ((large,) * 3, 2, None), ((small,) * 3, 0, None)
    shapes += ((small,) * 3, 2, None), ((small,) * 3, 8, None), ((large,) * 3, 0, 0)
    shapes += ((large,) * 3, 2, 0), ((flat,) * 2, 0, None), ((flat,) * 2, 2, None)
    cases = [Case(*given) for given in shapes]
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            case.start_host(Path(folder))
        for case in cases:
            case.measure()
            print(case.row, flush=True)
        losses = [batch_row(32, 512), loss_row(8, 256), loss_row(32, 512)]
        print(losses, flush=True)
        for case in cases:
            case.finish()
    rows = [case.row for case in cases] + losses
    name = cuda_device()
    about = f"{name}; cupy {cupy.__version__}, torch {torch.__version__}. Connectivity 1, float32."
    report = json.dumps({"device": name, "rows": rows}, indent=1)
    arguments.output.with_suffix(".json").write_text(report + "\n")
    table = markdown_table(HEAD, map(line, rows))
    text = paragraph_of(__doc__, 2)
    page = f"# Persistence pairs on a CUDA device\n\n{about} {text}\n\n{table}\n"
    arguments.output.with_suffix(".md").write_text(page)
    print(page)


if __name__ == "__main__":
    main()
