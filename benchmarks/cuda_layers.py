"""Forward and backward passes of each layer and loss on a CUDA device, launched from Python.

    python -m benchmarks.cuda_layers [--output benchmarks/results/cuda_layers] [--beside CHECKOUT]

Milliseconds of a pass, the median of turns of 50 passes that follow each other, by turns. "Empty"
is an operator of the same tensors whose forward and backward passes only allocate results: what
torch and its thread take. "With launches" besides launches as many kernels as the layer, which do
nothing. "One thread" is without the thread of autograd, by
`torch.autograd.set_multithreading_enabled(False)`. "Before" is another checkout, by turns, in a
process of its own as the layers themselves.

Writes OUTPUT.json and OUTPUT.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import cupy
import torch
from torch import Tensor, nn

from benchmarks.checkouts import REPOSITORY, Checkout, answer_questions
from benchmarks.meshes import shapes_of
from benchmarks.pages import markdown_table, paragraph_of
from benchmarks.step_timing import milliseconds
from ecc_core.nn import (
    EulerCurveLayer,
    EulerCurveLoss,
    EulerCurveMap,
    EulerTransformLayer,
    SimplicialTransformLayer,
)
from ecc_core.nn.functional import soft_euler_curve

TURNS = 9
STEPS = 50
KINDS = "ms", "empty", "launching"
ALONE = "one thread: "
MODULE = "benchmarks.cuda_layers"
"""The name of this file, which is also right where it is the main module."""
NOTHING = 'extern "C" __global__ void nothing() {}'
Step = Callable[[], None]


class Launches(NamedTuple):
    """How many kernels the passes of a step launch."""

    forward: int
    backward: int


@cache
def empty_kernel() -> Any:
    return cupy.RawKernel(NOTHING, "nothing").kernel


def launch_nothing(count: int) -> None:
    kernel = empty_kernel().ptr
    stream = torch._C._cuda_getCurrentRawStream(0)
    launch = cupy.cuda.driver.launchKernel
    for _ in range(count):
        launch(kernel, 1, 1, 1, 32, 1, 1, 0, stream, 0, 0)


class _Empty(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *tensors, like, launches = given
        ctx.save_for_backward(*tensors)
        ctx.launches = launches
        if launches:
            launch_nothing(launches.forward)
        return torch.empty_like(like)

    @staticmethod
    def backward(ctx: Any, _gradient: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.launches:
            launch_nothing(ctx.launches.backward)
        return (*(torch.empty_like(tensor) for tensor in ctx.saved_tensors), None, None)


def _empty(*given: Any) -> Tensor:
    found: Tensor = _Empty.apply(*given)  # type: ignore[no-untyped-call]
    return found


def step(call: Callable[[Tensor], Tensor], image: Tensor, learned: list[Tensor]) -> Step:
    upstream = torch.ones_like(call(image)).detach()

    def run() -> None:
        image.grad = None
        for tensor in learned:
            tensor.grad = None
        torch.autograd.backward(call(image), upstream)

    return run


def in_one_thread(run: Step) -> Step:
    def alone() -> None:
        with torch.autograd.set_multithreading_enabled(False):
            run()

    return alone


def launches_of(call: Callable[[Tensor], Tensor], image: Tensor) -> Launches:
    counted = [0]
    launch = cupy.cuda.driver.launchKernel

    def count(*given: Any) -> None:
        counted[-1] += 1
        launch(*given)

    cupy.cuda.driver.launchKernel = count
    try:
        found = call(image)
        counted.append(0)
        torch.autograd.backward(found, torch.ones_like(found))
    finally:
        cupy.cuda.driver.launchKernel = launch
    return Launches(*counted)


def steps(
    call: Callable[[Tensor], Tensor], image: Tensor, learned: list[Tensor]
) -> dict[str, Step]:
    step(call, image, learned)()  # It plans the launches.
    launches = launches_of(call, image)
    like = call(image).detach()
    copies = [tensor.detach().clone() for tensor in learned]
    own = [tensor.requires_grad_() for tensor in copies]
    both = {
        "ms": step(call, image, learned),
        "empty": step(lambda x: _empty(x, *own, like, None), image, own),
        "launching": step(lambda x: _empty(x, *own, like, launches), image, own),
    }
    return both | {ALONE + kind: in_one_thread(run) for kind, run in both.items()}


def loss_steps(loss: EulerCurveLoss, images: Tensor) -> dict[str, Step]:
    target = (images.detach() > 0.5).float()
    loss.cuda()
    return steps(lambda x: loss(x, target), images, [])


def cases() -> dict[str, dict[str, Step]]:
    def drawn(*shape: int) -> Tensor:
        return torch.rand(shape, device="cuda").requires_grad_()

    letters = drawn(32, 1, 28, 28)
    images = drawn(16, 1, 64, 64)
    large = drawn(8, 1, 256, 256)
    levels = torch.linspace(0, 1, 32, device="cuda").requires_grad_()
    sharpness = torch.tensor(100.0, device="cuda")
    layers: dict[str, tuple[nn.Module, Tensor]] = {
        "EulerTransformLayer, 32 x 28^2, 16 directions, 16 heights": (
            EulerTransformLayer(16, 16, range=(-20, 20)),
            letters,
        ),
        "EulerTransformLayer, 8 x 256^2, 16 directions, 32 heights": (
            EulerTransformLayer(16, 32, range=(-180, 180)),
            large,
        ),
        "EulerCurveLayer, 16 x 64^2": (EulerCurveLayer(32, range=(0, 1)), images),
        "EulerCurveLayer, 16 x 64^2, fixed thresholds": (
            EulerCurveLayer(32, range=(0, 1), learn_thresholds=False),
            images,
        ),
        "EulerCurveLayer, 16 x 64^2, 16 directions": (
            EulerCurveLayer(32, range=(0, 1), directions=16, direction_scale=0.02),
            images,
        ),
        "EulerCurveMap, 16 x 64^2, windows of 8": (
            EulerCurveMap(4, window=8, stride=8, range=(0, 1)),
            images,
        ),
    }
    found: dict[str, dict[str, Step]] = {}
    for name, (layer, given) in layers.items():
        layer.cuda()
        found[name] = steps(layer, given, list(layer.parameters()))

    def curve(image: Tensor) -> Tensor:
        return soft_euler_curve(image, levels, sharpness=sharpness)

    found["soft_euler_curve, 16 x 64^2, 32 thresholds"] = steps(curve, images, [levels])
    found["EulerCurveLoss, 16 x 64^2"] = loss_steps(EulerCurveLoss(), images)
    found["EulerCurveLoss, 16 x 64^2, windows of 8"] = loss_steps(EulerCurveLoss(window=8), images)
    found["SimplicialTransformLayer, 64 letters, 32 directions, 32 heights"] = shape_steps()
    return found


def shape_steps() -> dict[str, Step]:
    shapes = shapes_of("letters")
    simplices = [rows.cuda() for rows in shapes.simplices]
    given = {"batch": shapes.batch.cuda(), "shapes": shapes.count}
    points = shapes.points.cuda().requires_grad_()
    layer = SimplicialTransformLayer(32, 32, range=(-1.1, 1.1), n_spatial=points.shape[1]).cuda()
    return steps(lambda x: layer(x, simplices, **given), points, list(layer.parameters()))


def serve() -> None:
    """Answer questions: the number of a case, of which each step is timed once."""
    every = list(cases().items())

    def answer(asked: dict[str, Any]) -> Any:
        if asked["case"] >= len(every):
            return None
        name, kinds = every[asked["case"]]
        return {"name": name, "ms": {kind: milliseconds(run, STEPS) for kind, run in kinds.items()}}

    answer_questions(answer)


def times_of(checkouts: list[Checkout]) -> list[dict[str, dict[str, float]]]:
    """Milliseconds of each kind of step of each layer, for each checkout."""
    found: list[dict[str, list[dict[str, float]]]] = [{} for _ in checkouts]
    for turn in range(TURNS + 1):
        for case in itertools.count():
            answers = [checkout.ask(case=case) for checkout in checkouts]
            if None in answers:
                break
            for own, answer in zip(found, answers, strict=True):
                rows = own.setdefault(answer["name"], [])
                if turn:
                    rows.append(answer["ms"])
    return [{name: medians_of(rows) for name, rows in own.items()} for own in found]


def medians_of(rows: list[dict[str, float]]) -> dict[str, float]:
    return {kind: median(row[kind] for row in rows) for kind in rows[0]}


def table_of(now: dict[str, dict[str, float]], before: dict[str, dict[str, float]]) -> str:
    has_before = bool(before)
    columns = [*["before"] * has_before, "ms", "empty", "with launches", "ms / with launches"]
    columns += ["one thread: " + column for column in columns[:1]] + columns[1:-1]
    lines = []
    for layer, ms in now.items():
        cells = []
        for prefix in ("", ALONE):
            if has_before:
                cells.append(f"{before[layer][prefix + 'ms']:.3f}")
            cells += [f"{ms[prefix + kind]:.3f}" for kind in KINDS]
            if not prefix:
                cells.append(f"{ms['ms'] / ms['launching']:.1f}")
        lines.append(f"| {' | '.join([layer, *cells])} |")
    return markdown_table(f"| layer | {' | '.join(columns)} |", lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_layers"))
    parser.add_argument("--beside", type=Path, help="a checkout to measure by turns")
    arguments = parser.parse_args()
    paths = [REPOSITORY] if arguments.beside is None else [REPOSITORY, arguments.beside]
    now, *others = times_of([Checkout(path, MODULE) for path in paths])
    before = others[0] if others else {}
    name = torch.cuda.get_device_name(0)
    report = {"device": name, "torch": torch.__version__, "rows": now, "before": before}
    output = arguments.output
    output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    table = table_of(now, before)
    text = paragraph_of(__doc__, 2)
    about = f"{name}; torch {torch.__version__}. {text}"
    output.with_suffix(".md").write_text(f"# Layers on a CUDA device\n\n{about}\n\n{table}\n")
    print(table)


if __name__ == "__main__":
    main()
