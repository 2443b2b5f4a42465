"""Layers and losses on a CUDA device with kernels, and by operators of torch as without CuPy.

    python -m benchmarks.cuda_without_cupy [--output benchmarks/results/cuda_without_cupy]

Milliseconds of a forward and a backward pass from Python, the median of turns of 20 steps, and the
most memory that a step holds beside its arguments. Both ways run in one process, in which CuPy is
hidden for the second one; gradients are compared.

Writes OUTPUT.json and OUTPUT.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.step_timing import milliseconds
from ecc_core._backends import fallback, registry
from ecc_core.nn import (
    BettiCurveLayer,
    EulerCurveLayer,
    EulerCurveLoss,
    EulerTransformLayer,
    PersistenceLoss,
)

TURNS = 5
STEPS = 20
HEAD = "| step | kernels, ms | torch, ms | ratio | kernels, MiB | torch, MiB |"
CASES: list[tuple[str, Callable[[], nn.Module], tuple[int, ...]]] = [
    ("EulerCurveLayer(32), 32 x 64^2", lambda: EulerCurveLayer(32, range=(0, 1)), (32, 1, 64, 64)),
    ("EulerCurveLayer(64), 8 x 256^2", lambda: EulerCurveLayer(64, range=(0, 1)), (8, 1, 256, 256)),
    (
        "EulerCurveLayer(32), 2 x 64^3",
        lambda: EulerCurveLayer(32, range=(0, 1), n_spatial=3),
        (2, 1, 64, 64, 64),
    ),
    (
        "EulerTransformLayer(16, 16), 32 x 28^2",
        lambda: EulerTransformLayer(16, 16, range=(-20, 20)),
        (32, 1, 28, 28),
    ),
    (
        "EulerTransformLayer(64, 32), 8 x 64^2",
        lambda: EulerTransformLayer(64, 32, range=(-45, 45)),
        (8, 1, 64, 64),
    ),
    ("BettiCurveLayer(32), 32 x 64^2", lambda: BettiCurveLayer(32, range=(0, 1)), (32, 1, 64, 64)),
    ("EulerCurveLoss(), 8 x 256^2", lambda: EulerCurveLoss(window=32), (8, 1, 256, 256)),
    ("PersistenceLoss(), 8 x 256^2", lambda: PersistenceLoss(), (8, 1, 256, 256)),
]


@contextmanager
def without_cupy() -> Iterator[None]:
    remembered = registry.is_usable, fallback._in_torch
    modules: dict[str, Any] = sys.modules
    cupy = modules["cupy"]
    modules["cupy"] = None  # `patch.dict` would forget later imports.
    for function in remembered:
        function.cache_clear()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            yield
    finally:
        modules["cupy"] = cupy
        for function in remembered:
            function.cache_clear()


def step(module: nn.Module, given: tuple[Tensor, ...]) -> Tensor:
    """Return the gradient of the image."""
    image = given[0].detach().requires_grad_()
    module.zero_grad()
    loss = module(image, *given[1:]).square().sum()
    loss.backward()
    assert image.grad is not None
    return image.grad


def measured(module: nn.Module, given: tuple[Tensor, ...]) -> tuple[float, float, Tensor]:
    """Return the milliseconds, the MiB and the gradient of a step."""
    gradient = step(module, given)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    step(module, given)
    torch.cuda.synchronize()
    memory = (torch.cuda.max_memory_allocated() - before) / 2**20
    again = partial(step, module, given)
    times = [milliseconds(again, STEPS) for _ in range(TURNS)]
    return median(times), memory, gradient


def compare(name: str, make: Callable[[], nn.Module], shape: tuple[int, ...]) -> dict[str, Any]:
    torch.manual_seed(0)
    module = make().cuda()
    image = torch.rand(shape, device="cuda")
    given = (image, torch.rand(shape, device="cuda") < 0.5) if "Loss" in name else (image,)
    kernels, held, wanted = measured(module, given)
    with without_cupy():
        in_torch, held_in_torch, found = measured(module, given)
    largest = wanted.abs().max().item()
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3 * largest)
    times = {"kernels": kernels, "torch": in_torch, "ratio": in_torch / kernels}
    return {"step": name, **times, "kernels_mib": held, "torch_mib": held_in_torch}


def line(row: dict[str, Any]) -> str:
    names = "kernels", "torch", "ratio", "kernels_mib", "torch_mib"
    return f"| {row['step']} | " + " | ".join(f"{row[name]:.3g}" for name in names) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_without_cupy"))
    output = parser.parse_args().output
    rows = [compare(*case) for case in CASES]
    found = {"device": torch.cuda.get_device_name(0), "torch": torch.__version__, "rows": rows}
    output.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")
    title = "# Layers and losses on a CUDA device with and without CuPy"
    rule = "|---" * HEAD.count(" | ") + "|---|"
    paragraph, _, _ = __doc__.split("\n\n")[2].partition(" Writes")
    paragraph = " ".join(paragraph.split())
    lines = [title, "", f"{found['device']}, torch {found['torch']}. {paragraph}", "", HEAD, rule]
    text = "\n".join([*lines, *map(line, rows)]) + "\n"
    output.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
