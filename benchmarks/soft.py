"""Soft curves and transforms, forward and backward, against plain PyTorch.

    python -m benchmarks.soft [--device cuda] [--output benchmarks/results/soft-cuda]

Plain PyTorch is the sigmoid of broadcast differences and autograd, over the cells of the image
(maxima by pooling), or over its points with coefficients that are given and cost nothing. The
transform is measured against the way of DECT: a sigmoid for each cell, direction and height. On a
CUDA device the floor is the time to read the image twice and to write its gradient at the rate at
which 4 GiB are reduced.

Calls from Python are timed by the clock on CUDA devices, until the device has finished, and when
they follow each other. Beside them is a function that only allocates the same tensors and launches
one kernel each way: the time that torch takes for any step with a function written in Python.
Writes OUTPUT.json and OUTPUT.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.soft_tables import table
from ecc_core._torch.cells import coefficients_of
from ecc_core.nn import EulerCurveLayer, EulerCurveLoss, EulerCurveMap, EulerTransformLayer
from ecc_core.nn.functional import soft_euler_curve, soft_euler_transform
from tests.oracles import soft as reference

CASES: dict[str, list[tuple[tuple[int, ...], int, float]]] = {
    "cuda": [
        ((32, 512, 512), 64, 60.0),
        ((32, 512, 512), 64, 252.0),  # A layer has this sharpness by default.
        ((32, 512, 512), 64, 1000.0),
        ((8, 128, 128, 128), 64, 60.0),
        ((4, 256, 256, 256), 256, 60.0),
    ],
    "cpu": [((8, 256, 256), 64, 60.0)],
}
# Shape, thresholds, and the seconds that a call from Python may take.
CALLS = [((4, 64, 64), 32), ((32, 512, 512), 64)]
TRANSFORMS = {"cuda": ((8, 128, 128), 32, 64, 1.0), "cpu": ((2, 64, 64), 16, 32, 1.0)}
# Images, side, directions, heights of layers of transforms.
LAYERS = [(16, 28, 16, 16), (64, 28, 64, 16), (8, 64, 16, 32), (8, 256, 16, 32)]
Step = Callable[[], Any]


def smooth(noise: Tensor, sigma: int = 3) -> Tensor:
    """Return periodic noise smoothed by a Gaussian and scaled to 0 to 1."""
    for axis in range(1, noise.dim()):
        places = torch.arange(noise.shape[axis], device=noise.device)
        distance = torch.minimum(places, noise.shape[axis] - places)
        kernel = torch.fft.rfft(torch.exp(-0.5 * (distance / sigma) ** 2))
        shape = [-1 if a == axis else 1 for a in range(noise.dim())]
        spectrum = torch.fft.rfft(noise, dim=axis) * kernel.reshape(shape)
        noise = torch.fft.irfft(spectrum, n=noise.shape[axis], dim=axis)
    return (noise - noise.min()) / (noise.max() - noise.min())


def over_points(image: Tensor, coefficients: Tensor, levels: Tensor, sharpness: Tensor) -> Tensor:
    z = sharpness * (levels - image.flatten(1)[:, :, None])
    return (coefficients[:, :, None] * torch.sigmoid(z)).sum(1)


def over_cells(image: Tensor, levels: Tensor, sharpness: Tensor) -> Tensor:
    options = {"direction_terms": None, "mask": None, "superlevel": False, "ties": "raster"}
    return reference.soft_curve(image, levels, sharpness, connectivity=1, **options)


def over_heights(
    images: Tensor, directions: Tensor, heights: Tensor, sharpness: Tensor | float
) -> Tensor:
    """Return transforms as DECT does (arXiv:2310.07630): a sigmoid for each cell and direction.

    The weight of a cell is the least of its vertices.
    """
    axes = [torch.arange(n, device=images.device) - (n - 1) / 2 for n in images.shape[1:]]
    tops = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1) @ directions.T

    def part(tops: Tensor, weights: Tensor) -> Tensor:
        entered = torch.sigmoid(sharpness * (heights[:, None, None] - tops.flatten(0, 1)))
        return torch.einsum("bc,nck->bkn", weights.flatten(1), entered)

    def pairs(tops: Tensor, weights: Tensor, axis: int) -> tuple[Tensor, Tensor]:
        n = tops.shape[axis] - 1
        return (
            torch.maximum(tops.narrow(axis, 0, n), tops.narrow(axis, 1, n)),
            torch.minimum(weights.narrow(axis + 1, 0, n), weights.narrow(axis + 1, 1, n)),
        )

    rows = pairs(tops, images, 0)
    columns = pairs(tops, images, 1)
    return part(tops, images) - part(*rows) - part(*columns) + part(*pairs(*rows, 1))


def seconds(step: Step, device: str) -> float:
    """Return the seconds of a step: on a device the median of nine, on the CPU those of one."""
    if device == "cpu":
        begin = time.perf_counter()
        step()
        return time.perf_counter() - begin
    times = []
    for _ in range(9):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        step()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return sorted(times)[4]


def interleaved(steps: dict[str, Step], device: str) -> dict[str, float]:
    """Return the least time of each step, in nine turns, or three where a turn is nine calls."""
    for step in steps.values():
        step()
    turns = 3 if device == "cuda" else 9
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(turns):
        for name, step in steps.items():
            times[name].append(seconds(step, device))
    return {name: min(of_turns) for name, of_turns in times.items()}


def captured(step: Step) -> Step:
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def peak(step: Step) -> int:
    """Return the most bytes of device memory that a step needs, its results included."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = step()
    torch.cuda.synchronize()
    found = torch.cuda.max_memory_allocated() - before
    del result
    return found


def training_step(compute: Callable[..., Tensor], numbers: list[Tensor]) -> Step:
    upstream = torch.randn_like(compute(*numbers).detach())
    return lambda: torch.autograd.grad(compute(*numbers), numbers, upstream)


def measure_curve(
    shape: tuple[int, ...], count: int, sharpness: float, kind: str, device: str, rate: float
) -> dict[str, Any]:
    torch.manual_seed(0)
    noise = torch.rand(shape, device=device)
    image = (noise if kind == "noise" else smooth(noise)).requires_grad_()
    levels = torch.linspace(0, 1, count, device=device).requires_grad_()
    numbers = [image, levels, torch.tensor(sharpness, device=device, requires_grad=True)]

    def fused(image: Tensor, levels: Tensor, sharpness: Tensor) -> Tensor:
        return soft_euler_curve(
            image, levels, sharpness=sharpness, connectivity=1, n_spatial=len(shape) - 1
        )

    step = training_step(fused, numbers)
    steps: dict[str, Step] = {"fused": step}
    row: dict[str, Any] = {
        "case": "x".join(map(str, shape)),
        "thresholds": count,
        "sharpness": sharpness,
        "values": kind,
    }
    size = image.numel() * image.itemsize
    if device == "cuda":
        step()
        row["peak"] = peak(step) / size
        steps["fused, graph"] = captured(step)
        row["floor"] = 3 * size / rate
    weights = coefficients_of(image.detach(), 1, "split").flatten(1)
    plains = {
        "plain, points": lambda *numbers: over_points(numbers[0], weights, *numbers[1:]),
        "plain, cells": over_cells,
    }
    if device == "cpu":
        del plains["plain, cells"]  # It is several times slower.
    for name, compute in plains.items():
        if sharpness > 100:
            break
        try:
            plain = training_step(compute, numbers)
            if device == "cuda":
                row[f"peak of {name}"] = peak(plain) / size
            steps[name] = plain
        except torch.OutOfMemoryError:
            row[f"peak of {name}"] = None
            torch.cuda.empty_cache()
    row["seconds"] = interleaved(steps, device)
    return row


class Least(torch.autograd.Function):
    """Allocates what a curve and its gradients need, with one kernel each way."""

    @staticmethod
    def forward(ctx: Any, image: Tensor, levels: Tensor, sharpness: Tensor) -> Tensor:
        ctx.save_for_backward(image, levels, sharpness)
        return levels.new_zeros((len(image), len(levels)))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        image, *others = ctx.saved_tensors
        return gradient.new_empty(image.shape).zero_(), *map(torch.empty_like, others)


def by_clock(step: Step, count: int) -> tuple[float, float]:
    """Return the median time of a call and its wait for the device, and of successive calls."""
    times = []
    torch.cuda.synchronize()
    for _ in range(count):
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    for _ in range(count):
        step()
    torch.cuda.synchronize()
    return sorted(times)[count // 2], (time.perf_counter() - begin) / count


def measure_calls(shape: tuple[int, ...], count: int) -> dict[str, Any]:
    """Return the least times of three kinds of steps of curves and of `Least`, in turns."""
    image = torch.rand(shape, device="cuda").requires_grad_()
    levels = torch.linspace(0, 1, count, device="cuda").requires_grad_()
    numbers = [image, levels, torch.tensor(60.0, device="cuda", requires_grad=True)]
    upstream = torch.rand((shape[0], count), device="cuda")
    functions = {
        "curve": lambda: soft_euler_curve(image, levels, sharpness=numbers[2]),
        "least": lambda: Least.apply(*numbers),
    }

    def backward(compute: Step, loss: Callable[[Tensor], Tensor]) -> None:
        for tensor in numbers:
            tensor.grad = None
        loss(compute()).backward()

    def sum_of_squares(curve: Tensor) -> Tensor:
        return curve.square().sum()

    steps = {}
    for name, compute in functions.items():
        steps[f"{name}, gradient given"] = lambda f=compute: torch.autograd.grad(
            f(), numbers, upstream
        )
        steps[f"{name}, sum"] = lambda f=compute: backward(f, torch.sum)
        steps[f"{name}, sum of squares"] = lambda f=compute: backward(f, sum_of_squares)
    found = [{name: by_clock(step, 40) for name, step in steps.items()} for _ in range(8)]
    seconds = {}
    for name in steps:
        turns = [turn[name] for turn in found]
        seconds[name] = [min(both) for both in zip(*turns, strict=True)]
    return {"case": "x".join(map(str, shape)), "thresholds": count, "seconds": seconds}


def measure_layers() -> list[dict[str, Any]]:
    """Return the times of layers in training, with gradients of images and parameters."""

    def training(layer: torch.nn.Module, image: Tensor, *others: Tensor) -> Step:
        numbers = [image, *layer.parameters()]

        def step() -> None:
            for number in numbers:
                number.grad = None
            total = layer(image, *others).square().sum()
            total.backward()

        return step

    rows = []

    def add(name: str, image: Tensor, steps: dict[str, Step]) -> None:
        found: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(5):
            for step_name, step in steps.items():
                found[step_name].append(by_clock(step, 40)[0])
        seconds = {step_name: min(turns) for step_name, turns in found.items()}
        case = " x ".join(map(str, image.shape))
        rows.append({"layer": name, "case": case, "seconds": seconds})

    for shape in ((4, 64, 64), (32, 512, 512)):
        image = torch.rand(shape, device="cuda").requires_grad_()
        layer = EulerCurveLayer(64, range=(0, 1), device="cuda")

        class Function(EulerCurveLayer):
            def forward(self, image: Tensor) -> Tensor:
                return soft_euler_curve(image, self.free_thresholds, sharpness=252.0)

        function = Function(64, range=(0, 1), device="cuda")
        steps = {"layer": training(layer, image), "plain": training(function, image)}
        add("EulerCurveLayer(64)", image, steps)
    for count, side, directions, heights in LAYERS:
        weights = torch.rand((count, side, side), device="cuda").requires_grad_()
        options = {"range": (-0.75 * side, 0.75 * side), "extension": "min", "connectivity": 1}
        transform = EulerTransformLayer(directions, heights, **options, device="cuda")

        class Plain(EulerTransformLayer):
            def forward(self, weights: Tensor) -> Tensor:
                return over_heights(weights, self.directions, self.heights, self.sharpness)

        plain = Plain(directions, heights, **options, device="cuda")
        steps = {"layer": training(transform, weights), "plain": training(plain, weights)}
        add(f"EulerTransformLayer({directions}, {heights})", weights, steps)
    image = torch.rand((4, 1, 256, 256), device="cuda").requires_grad_()
    target = torch.rand((4, 1, 256, 256), device="cuda") < 0.5
    curves = EulerCurveMap(range=(0, 1), device="cuda")
    add("EulerCurveMap()", image, {"layer": training(curves, image)})
    loss = EulerCurveLoss().to("cuda")
    add("EulerCurveLoss()", image, {"layer": training(loss, image, target)})
    return rows


def measure_transform(device: str) -> dict[str, Any]:
    shape, k, count, sharpness = TRANSFORMS[device]
    torch.manual_seed(0)
    weights = (torch.rand(shape, device=device) + 0.1).requires_grad_()
    angles = torch.arange(k, device=device) * (2 * torch.pi / k) + 0.1
    directions = torch.stack([angles.cos(), angles.sin()], 1).requires_grad_()
    reach = shape[-1] * 0.8
    levels = torch.linspace(-reach, reach, count, device=device).requires_grad_()
    numbers = [weights, directions, levels]
    numbers.append(torch.tensor(sharpness, device=device, requires_grad=True))

    def fused(weights: Tensor, directions: Tensor, levels: Tensor, sharpness: Tensor) -> Tensor:
        return soft_euler_transform(
            weights, directions, levels, sharpness=sharpness, connectivity=1, extension="min"
        )

    plain = over_heights(*numbers)
    difference = (fused(*numbers) - plain).norm() / plain.norm()
    steps = {
        "fused": training_step(fused, numbers),
        "plain": training_step(over_heights, numbers),
    }
    row: dict[str, Any] = {
        "case": "x".join(map(str, shape)),
        "directions": k,
        "heights": count,
        "sharpness": sharpness,
        "difference": difference.item(),
    }
    if device == "cuda":
        size = weights.numel() * weights.itemsize
        row |= {f"peak of {name}": peak(step) / size for name, step in steps.items()}
    row["seconds"] = interleaved(steps, device)
    return row


def read_rate() -> float:
    """Return the bytes a second at which 4 GiB are reduced."""
    large = torch.rand(1 << 30, device="cuda")
    return large.numel() * large.itemsize / seconds(large.max, "cuda")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    device = arguments.device
    output = arguments.output or Path(__file__).parent / "results" / f"soft-{device}"
    machine = f"{platform.machine()}, {torch.get_num_threads()} threads"
    if device == "cuda":
        machine = torch.cuda.get_device_name()
        # Graphs cannot be captured on the default stream, nor follow work on it.
        torch.cuda.set_stream(torch.cuda.Stream())
    rate = read_rate() if device == "cuda" else 0.0
    results = {"machine": machine, "torch": torch.__version__, "rate": rate}
    kinds = ("noise", "smooth") if device == "cuda" else ("noise",)
    results["curves"] = [
        measure_curve(*case, kind, device, rate) for case in CASES[device] for kind in kinds
    ]
    on_device = device == "cuda"
    results["calls"] = [measure_calls(*case) for case in CALLS if on_device]
    results["layers"] = measure_layers() if on_device else []
    results["transform"] = measure_transform(device)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    output.with_suffix(".md").write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()
