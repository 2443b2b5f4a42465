"""Training steps of each layer and loss, launched by Python and in CUDA graphs.

    python -m benchmarks.cuda_graphs [--output benchmarks/results/cuda_graphs]

Milliseconds of a forward and a backward pass, the median of turns of 20 steps that follow each
other, for 16 images of 64 x 64 points, with three small convolutions before the layer or loss.
"Python": as usual; "graphed": the model is given to `torch.cuda.make_graphed_callables`;
"compiled": to `torch.compile`; "reduce-overhead": with this mode. Gradients are compared with those
of Python.

Writes OUTPUT.json and OUTPUT.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.pages import markdown_table, paragraph_of
from benchmarks.step_timing import milliseconds

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from training_cases import TrainingCase, batch, made, training_cases

IMAGES = 16
SIDE = 64
TURNS = 7
STEPS = 20
HEAD = "| step | Python | graphed | compiled | reduce-overhead |"


def measure(case: TrainingCase) -> dict[str, Any]:
    given = tuple(part.cuda() for part in batch(case, IMAGES, SIDE))
    models = {name: made(case, "cuda") for name in HEAD.strip("| ").split(" | ")[1:]}
    calls: dict[str, Callable[..., Any]] = {
        "Python": models["Python"],
        "graphed": torch.cuda.make_graphed_callables(models["graphed"], given),
        "compiled": torch.compile(models["compiled"]),
        "reduce-overhead": torch.compile(models["reduce-overhead"], mode="reduce-overhead"),
    }

    def step(name: str) -> None:
        models[name].zero_grad()
        calls[name](*given).backward()

    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(TURNS + 1):
        for name in calls:
            found = milliseconds(lambda name=name: step(name), STEPS)
            if turn:
                times[name].append(found)
    known = [parameter.grad for parameter in models["Python"].parameters()]
    for model in models.values():
        found = [parameter.grad for parameter in model.parameters()]
        torch.testing.assert_close(found, known, rtol=1e-3, atol=1e-5)
    return {"step": case.name} | {name: median(found) for name, found in times.items()}


def line(row: dict[str, Any]) -> str:
    columns = HEAD.strip("| ").split(" | ")[1:]
    return f"| {row['step']} | " + " | ".join(f"{row[name]:.3g}" for name in columns) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_graphs"))
    output = parser.parse_args().output
    rows = [measure(case) for case in training_cases() if not case.waits]
    name = torch.cuda.get_device_name(0)
    report = {"device": name, "torch": torch.__version__, "rows": rows}
    output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    table = markdown_table(HEAD, map(line, rows))
    text = paragraph_of(__doc__, 2)
    title = "# Training steps in CUDA graphs"
    about = f"{name}; torch {torch.__version__}. {text}"
    output.with_suffix(".md").write_text(f"{title}\n\n{about}\n\n{table}\n")
    print(table)


if __name__ == "__main__":
    main()
