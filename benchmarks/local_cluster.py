"""`ecc stack --scheduler` on local dask clusters, and what the model says of them.

    python -m benchmarks.local_cluster --folder /tmp/scale

The volume of 10^9 points is that of `benchmarks.scale`. Workers are processes of one thread. What
the model of `benchmarks.cluster_model` says follows from the processor time of the tasks of one
block, measured alone, and from that of client and scheduler for a task, measured in the same runs;
threads beyond the cores gain nothing. Writes benchmarks/results/local_cluster.md.
"""

import argparse
import math
import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from distributed import Client, LocalCluster

from benchmarks.cluster_model import GROUP, Cluster, costs_of_tasks, run, table
from benchmarks.scale import Case
from ecc_core._blocks import window
from ecc_core._blocks.work import Group, Work
from ecc_core._io.blocks import Blocks
from ecc_core._io.stored import View
from ecc_core._request.filtration import Filtration
from ecc_core.io import open_image
from ecc_core.quantities.euler import CurveValues

CODECS = ("zstd", "none")
WORKERS = (1, 2, 4)
CORES = os.cpu_count() or 1
ROUNDS = 3
RESULTS = Path(__file__).parent / "results" / "local_cluster.md"


class Comparison(NamedTuple):
    """Rows of the tables of what was measured and what is modelled."""

    measured: list[list[str]]
    modelled: list[list[str]]


class Run(NamedTuple):
    """Seconds of the volume on a cluster."""

    wall: float
    workers: float
    """Seconds of the processor, in all workers."""
    scheduling: float
    """Seconds of the processor for a task, in client and scheduler."""


def work_of(path: Path) -> Work:
    image = open_image(path)
    blocks = Blocks(View.all_of(image))
    return Work(
        blocks, blocks.image.chunks(image.chunks), CurveValues(np.arange(256), Filtration(3, 3))
    )


def groups_of(work: Work) -> list[Group]:
    return work.groups(GROUP, side=max(work.partition.counts))


def tasks_of(work: Work) -> int:
    return 2 * work.blocks + len(groups_of(work))


def measured(work: Work, workers: int, expected: np.ndarray) -> Run:
    """Compute the volume on a cluster whose workers have started."""
    groups = groups_of(work)
    options = {"threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(workers, processes=True, **options) as cluster, Client(cluster) as client:
        address = cluster.scheduler_address
        some = range(1)  # Workers import the libraries and load their kernels.
        for _ in range(workers):
            list(window.sums_of_groups(work, groups, some, scheduler=address))
        of_workers = _processor_time(client)
        start = time.perf_counter()
        processor = time.process_time()  # Workers are other processes.
        sums = window.sums_of_groups(work, groups, range(len(groups)), scheduler=address)
        found = sum(values for _, values in sums)
        wall = time.perf_counter() - start
        used = time.process_time() - processor
        of_workers = _processor_time(client) - of_workers
    assert np.array_equal(found, expected)
    return Run(wall, of_workers, used / tasks_of(work))


def _processor_time(client: Client) -> float:
    return sum(client.run(time.process_time).values())


def modelled(work: Work, workers: int, costs: dict[str, float], scheduling: float) -> float:
    """Return the seconds that the model says."""
    cluster = Cluster(min(workers, CORES), costs, scheduling)
    run(cluster, work, groups_of(work))
    return max(cluster.free)


def compare(case: Case) -> Comparison:
    """Return the rows of both tables for a codec."""
    path = case.volume()
    work = work_of(path)
    size = math.prod(work.partition.shape) / 1e9
    costs = costs_of_tasks(work)
    compared = Comparison([], [])
    for workers in WORKERS:
        runs = [measured(work, workers, case.known()) for _ in range(ROUNDS)]
        least = map(min, zip(*runs, strict=True))
        best = Run(*least)
        used = best.workers + best.scheduling * tasks_of(work)
        compared.measured.append(
            [
                *(case.codec, str(workers), f"{best.wall:.1f}", f"{size / best.wall:.2f}"),
                *(f"{best.workers:.1f}", f"{1e3 * best.scheduling:.1f}"),
                f"{used / best.wall:.1f}",
            ]
        )
        said = modelled(work, workers, costs, best.scheduling)
        compared.modelled.append([case.codec, str(workers), f"{said:.1f}", f"{size / said:.2f}"])
    return compared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("scale"))
    folder = parser.parse_args().folder
    found = [
        compare(Case(folder=folder, points="1e9", codec=codec, what="curve", boundary="closed"))
        for codec in CODECS
    ]
    is_undisturbed = os.sched_getscheduler(0) == os.SCHED_RR
    priority = "real-time priority" if is_undisturbed else "other programs running"
    lines = [
        "# `ecc stack --scheduler` on local clusters",
        "",
        "Measured by `python -m benchmarks.local_cluster`: 10^9 points of uint8 in 64 blocks, on "
        f"{CORES} cores with {priority}, the best of {ROUNDS} runs after the workers had started. "
        "Workers are processes of one thread, beside which zarr decodes chunks in threads of its "
        "own. All curves equal the truth.",
        "",
        *table(
            [
                *("codec", "workers", "measured, s", "GB/s", "CPU of workers, s"),
                *("CPU of client and scheduler, ms a task", "cores busy"),
            ],
            [row for one in found for row in one.measured],
        ),
        "",
        f"Modelled for as many workers and at most {CORES} cores, with the processor time of tasks "
        "that was measured alone, each on one thread:",
        "",
        *table(
            ["codec", "workers", "modelled, s", "GB/s"],
            [row for one in found for row in one.modelled],
        ),
    ]
    RESULTS.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
