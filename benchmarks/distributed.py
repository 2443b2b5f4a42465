"""Training steps of each layer and loss on two devices, with averaged gradients.

    python -m benchmarks.distributed [--output benchmarks/results/distributed]

Each device has its own process, half of a batch, and convolutions of 512 channels before the layer
or loss, whose 9.5 MB of gradients `DistributedDataParallel` averages by NCCL while the backward
pass goes on. Milliseconds, the median of steps in turns, of the slower device: a step ("two
devices"), the same without averaging ("not averaged"), an average of as many numbers by itself
("averaging"), and a step of one device with the whole batch ("one device"), which "ratio" divides
by that of two. "hidden" is the share of the time of NCCL's kernels in which other kernels ran on
the device, in one step that torch's profiler recorded. Writes OUTPUT.json and OUTPUT.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import distributed
from torch.autograd import DeviceType
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

from benchmarks.pages import markdown_table, paragraph_of
from benchmarks.step_timing import milliseconds

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from training_cases import TrainingCase, batch, made, training_cases

# The batch as a whole has so many channels, rows and columns, and images.
WIDTH = 512
SIDE = 64
IMAGES = 32
TURNS = 7
STEPS = 3
HEAD = "| step | two devices | not averaged | averaging | hidden | one device | ratio |"


def hidden_share(step: Callable[[], Any]) -> float:
    """Return the share of the time of NCCL's kernels in which other kernels run, too."""
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        step()
        torch.cuda.synchronize()
    averaging = []
    others = []
    for event in recorded.events():
        if event.device_type == DeviceType.CUDA:
            span = event.time_range.start, event.time_range.end
            (averaging if "nccl" in event.name.lower() else others).append(span)
    total = sum(end - start for start, end in averaging)
    hidden = 0.0
    for start, end in averaging:
        done = start  # Everything before has been counted.
        for first, last in sorted(others):
            hidden += max(0.0, min(end, last) - max(done, first))
            done = max(done, min(end, last))
    return hidden / total


def measure(case: TrainingCase, rank: int, count: int) -> dict[str, float]:
    """Return the times of a case on this device."""
    device = torch.device("cuda", rank)
    images, targets = (given.to(device) for given in batch(case, IMAGES, SIDE))
    own = slice(rank * IMAGES // count, (rank + 1) * IMAGES // count)
    model = DistributedDataParallel(made(case, device), device_ids=[rank])
    alone = made(case, device)
    gradients = [torch.zeros_like(p) for p in alone.parameters()]
    flat = torch.cat([gradient.flatten() for gradient in gradients])

    def averaged() -> None:
        model(images[own], targets[own]).backward()

    def not_averaged() -> None:
        with model.no_sync():
            model(images[own], targets[own]).backward()

    def averaging() -> None:
        distributed.all_reduce(flat)

    def one_device() -> None:
        alone(images, targets).backward()

    steps = {
        "two devices": averaged,
        "not averaged": not_averaged,
        "averaging": averaging,
        "one device": one_device,
    }
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(TURNS + 1):
        for name, step in steps.items():
            distributed.barrier()
            found = milliseconds(step, STEPS)
            if turn:
                times[name].append(found)
    return {name: median(found) for name, found in times.items()} | {
        "hidden": hidden_share(averaged)
    }


def work(rank: int, count: int, folder: str) -> None:
    """Measure all cases in one of the processes, and write the times to a file."""
    torch.cuda.set_device(rank)
    store = f"file://{folder}/store"
    wait = timedelta(minutes=5)
    distributed.init_process_group(
        "nccl", store, wait, rank=rank, world_size=count, device_id=torch.device("cuda", rank)
    )
    found = {case.name: measure(case, rank, count) for case in training_cases(WIDTH)}
    Path(folder, f"{rank}.json").write_text(json.dumps(found))
    distributed.barrier()
    distributed.destroy_process_group()


def row(name: str, devices: list[dict[str, float]]) -> dict[str, Any]:
    """Return the times of the slower device, and what follows from them."""
    times = {}
    for step in devices[0]:
        times[step] = max(found[step] for found in devices)
    times["hidden"] = min(found["hidden"] for found in devices)
    return {"step": name, **times, "ratio": times["one device"] / times["two devices"]}


def line(row: dict[str, Any]) -> str:
    columns = HEAD.strip("| ").split(" | ")[1:]
    return f"| {row['step']} | " + " | ".join(f"{row[name]:.3g}" for name in columns) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/distributed"))
    output = parser.parse_args().output
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # It needs rights that containers lack.
    count = 2
    if torch.cuda.device_count() < count:
        parser.error("needs two CUDA devices")
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (count, folder), nprocs=count)
        files = [Path(folder, f"{rank}.json") for rank in range(count)]
        devices = [json.loads(file.read_text()) for file in files]
    by_name = {name: [found[name] for found in devices] for name in devices[0]}
    rows = [row(name, found) for name, found in by_name.items()]
    name = torch.cuda.get_device_name(0)
    report = {"device": f"{count} {name}", "torch": torch.__version__, "rows": rows}
    output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    table = markdown_table(HEAD, map(line, rows))
    text = paragraph_of(__doc__, 2)
    title = "# Training steps on two devices"
    about = f"{count} {name}; torch {torch.__version__}. {text}"
    output.with_suffix(".md").write_text(f"{title}\n\n{about}\n\n{table}\n")
    print(table)


if __name__ == "__main__":
    main()
