"""Curves of 10^12 voxels on a dask cluster: the real order of tasks, with measured costs.

    python -m benchmarks.cluster_model

The volume has 10,000^3 voxels of uint8. The window over its blocks is that of `ecc stack`, and so
are the groups of blocks and what each task depends on; only the cluster is replaced, by one in
which each task takes the time measured here. Blocks are decompressed from chunks in memory, so
storage and network are assumed to deliver what is asked for. Client and scheduler take one task
after another, for as long as they need on this machine if blocks are very small. Writes Markdown
to benchmarks/results/cluster_model.md.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
import zarr
from scipy import ndimage

import ecc_core as ecc
from benchmarks.scale import peak_memory
from ecc_core._arithmetic import ceil_div
from ecc_core._blocks import window
from ecc_core._blocks.work import Group, Work
from ecc_core._request.filtration import Filtration
from ecc_core.quantities.euler import CurveValues

SIDE = 10_000
GROUP = 16
COLUMN = 26
SMALL = 4
"""Points along each side of blocks whose computation takes hardly any time."""
THREADS = 2
"""Threads of each worker."""


class Read(NamedTuple):
    """A source that has the same points in every block."""

    points: Any

    def __call__(self, box: tuple[slice, ...]) -> tuple[Any]:
        shape = tuple(part.stop - part.start for part in box)
        return (self.points[tuple(map(slice, shape))],)


def work_of(side: int, blocks: int, points: Any) -> Work:
    curve = CurveValues(np.arange(256), Filtration(3, 3))
    return Work(Read(points), ((side,) * blocks,) * 3, curve)


class Task(NamedTuple):
    end: float


class Cluster:
    """A cluster that runs no task, but computes when each would end.

    This follows from the cost of the task, from the tasks that it waits for, and from the threads.
    """

    def __init__(self, threads: int, costs: dict[str, float], scheduling: float) -> None:
        self.costs = costs
        self.scheduling = scheduling
        self.free = [0.0] * threads  # The time from which on each thread is free.
        self.scheduled = self.now = self.busy = 0.0
        self.tasks = 0
        self.ahead = window.AHEAD_A_THREAD_OF_CLUSTER * threads
        self.most_shares = window.MOST_SHARES_A_THREAD_OF_CLUSTER * threads

    def submit(self, function: Any, *arguments: Any) -> Task:
        flat = [a for part in arguments for a in (part if isinstance(part, list) else [part])]
        ready = max((task.end for task in flat if isinstance(task, Task)), default=0.0)
        self.scheduled = max(self.scheduled, self.now) + self.scheduling
        start = max(self.scheduled, ready, heapq.heappop(self.free))
        cost = self.costs[function.__name__]
        heapq.heappush(self.free, start + cost)
        self.busy += cost
        self.tasks += 1
        return Task(start + cost)

    def wait(self, tasks: list[Task]) -> None:
        self.now = max(self.now, *(task.end for task in tasks))


def run(cluster: Cluster, work: Work, groups: Sequence[Group]) -> int:
    """Let a cluster compute all groups; return the most blocks that wait for others at a time."""
    moving = window._Window(work, groups, cluster)  # type: ignore[arg-type]
    held = 0
    for _ in moving.sums(range(len(groups))):
        held = max(held, len(moving.processed))
    return held


def simulate(side: int, workers: int, costs: dict[str, float], scheduling: float) -> list[Any]:
    blocks = ceil_div(SIDE, side)
    work = work_of(SMALL, blocks, None)
    cluster = Cluster(workers * THREADS, costs, scheduling)
    held = run(cluster, work, work.groups(GROUP, side=COLUMN))
    hours = max(cluster.free) / 3600
    used = cluster.busy / (hours * 3600 * len(cluster.free))
    planes = held * 6 * side**2 / workers / 2**20
    return [
        f"{side}^3",
        workers,
        f"{blocks**3:,}",
        f"{cluster.tasks:,}",
        f"{60 * hours:.1f}",
        f"{100 * used:.0f} %",
        f"{100 * cluster.tasks * scheduling / (hours * 3600):.0f} %",
        f"{held:,}",
        f"{planes + THREADS * 5 * side**3 / 2**20:.0f}",
    ]


def costs_of(side: int) -> dict[str, float]:
    """Return the processor seconds of a task, for smoothed noise in compressed chunks."""
    rng = np.random.default_rng(0)
    noise = ndimage.gaussian_filter(rng.normal(size=(side,) * 3).astype(np.float32), 1)
    points = np.clip(noise * 200 + 128, 0, 255).astype(np.uint8)
    stored = zarr.create_array({}, shape=points.shape, chunks=(256,) * 3, dtype=np.uint8)
    stored[...] = points
    return costs_of_tasks(work_of(side, 2, stored))


def costs_of_tasks(work: Work) -> dict[str, float]:
    """Return the processor seconds of the tasks of the first block."""
    seconds: dict[str, float] = {}

    def timed(function: Any, *given: Any) -> Any:
        start = time.process_time()
        found = function(work, *given)
        took = time.process_time() - start
        seconds[function.__name__] = min(took, seconds.get(function.__name__, took))
        return found

    for _ in range(3):
        near = [timed(Work.process, block) for block in work.near((0, 0, 0))]
        timed(Work.planes, (0, 0, 1), (2,))
        share = timed(Work.share, (0, 0, 0), near)
        timed(Work.sum, [share] * GROUP)
    return seconds


def scheduling_of(blocks: int) -> float:
    """Return the processor seconds of client and scheduler for a task, with very small blocks."""
    from distributed import LocalCluster

    work = work_of(SMALL, blocks, np.zeros((SMALL,) * 3, np.uint8))
    groups = work.groups(GROUP, side=COLUMN)
    counted = Counter[str]()
    with LocalCluster(1, processes=True, threads_per_worker=2, dashboard_address=None) as cluster:
        start = time.process_time()  # The worker is another process.
        found = window.sums_of_groups(
            work, groups, range(len(groups)), scheduler=cluster.scheduler_address
        )
        counted["groups"] = sum(1 for _ in found)
        took = time.process_time() - start
    return took / (2 * blocks**3 + counted["groups"])


def graph_of(blocks: int, *, optimized: bool = True) -> list[Any]:
    """Return the cost of the graph of the dask function, which has all blocks at once."""
    volume = da.zeros((SMALL * blocks,) * 3, chunks=SMALL, dtype=np.uint8)
    before = peak_memory()
    start = time.process_time()
    values = ecc.euler_curve(volume, 256, range=(0, 255)).values
    built = time.process_time() - start
    tasks = took = ""
    if optimized:
        tasks = f"{len(dask.optimize(values)[0].__dask_graph__()):,}"
        took = f"{time.process_time() - start - built:.0f}"
    return [f"{blocks**3:,}", f"{built:.1f}", tasks, took, f"{peak_memory() - before:.0f}"]


def table(head: list[str], rows: list[list[Any]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    texts = [" | ".join(map(str, line)) for line in lines]
    return [f"| {text} |" for text in texts]


def main() -> None:
    # First, since it is the peak of memory that is measured.
    graphs = [graph_of(-(-SIDE // 256)), graph_of(100, optimized=False)]
    scheduling = scheduling_of(12)
    costs = {side: costs_of(side) for side in (256, 512)}
    rows = [
        simulate(side, workers, costs[side], scheduling)
        for side in (256, 512)
        for workers in (1, 16, 64, 256)
    ]
    names = ("process", "planes", "share", "sum")
    of_block = [[f"{s}^3", *(f"{costs[s][name]:.4f}" for name in names)] for s in costs]
    of_run = [
        *("block", "workers", "blocks", "tasks", "minutes", "threads busy"),
        *("scheduler busy", "blocks that wait", "MiB a worker"),
    ]
    of_graph = ["blocks", "built, s", "tasks", "optimized by dask, s", "MiB"]
    lines = [
        "# 10,000^3 voxels of uint8 on a cluster",
        "",
        f"Simulated by `python -m benchmarks.cluster_model`, workers of {THREADS} threads. A "
        f"task takes {1e3 * scheduling:.2f} ms of client and scheduler. Seconds of the tasks of a "
        "block:",
        "",
        *table(["block", *names], of_block),
        "",
        *table(of_run, rows),
        "",
        "The graph of `ecc.euler_curve` of a dask array of as many blocks of 256^3, which is made "
        "before the first one is read:",
        "",
        *table(of_graph, graphs),
    ]
    text = "\n".join(lines) + "\n"
    (Path(__file__).parent / "results" / "cluster_model.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
