"""Transforms of triangle meshes on a CUDA device, beside pyECT and a plain read of the heights.

    python -m benchmarks.cuda_simplicial [--output benchmarks/results/cuda_simplicial] [--kernels]

64 directions and 128 heights of a bumpy torus whose arrays are on the device already, by the clock,
from the call until the device has finished; the least of several calls. Values are compared with
those of the CPU first. "Read" is the maximum over an array that holds a float32 height for every
simplex and direction. pyECT is measured where it can be imported, on a complex made before.
`--kernels` prints the time of each kernel of one call. Writes JSON and Markdown.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import torch

import ecc_core as ecc
from benchmarks.cuda_peers import seconds
from benchmarks.cuda_timing import events
from benchmarks.meshes import Mesh, direct_sum, shapes_of, torus
from benchmarks.pages import cuda_device, rule
from ecc_core.nn.functional import soft_simplicial_transform

DIRECTIONS = 64
HEIGHTS = 128
SIZES = [(100, 50), (1000, 500), (3000, 1500)]
REPEATS = 20
SHARPNESS = 8.0
STEPS = 32
"""The number of directions and of heights of soft transforms."""
Call = Callable[[], Any]


def finished(call: Call) -> Call:
    def run() -> Any:
        found = call()
        torch.cuda.synchronize()
        return found

    return run


def by_pyect(mesh: Mesh, directions: np.ndarray) -> Call | None:
    """Return the transform of pyECT in float32, where it can be imported."""
    if find_spec("pyect") is None:
        return None
    from pyect import WECT

    complex_ = [(torch.tensor(part).cuda(), torch.ones(len(part), device="cuda")) for part in mesh]
    module = WECT(torch.tensor(directions, dtype=torch.float32), HEIGHTS).cuda()

    def transform() -> Any:
        with torch.inference_mode():
            return module(complex_)

    return finished(transform)


def print_kernels(call: Call) -> None:
    """Print the time of each kernel of a call on the device."""
    from torch.profiler import ProfilerActivity, profile

    call()
    with profile(activities=[ProfilerActivity.CUDA]) as record:
        call()
        torch.cuda.synchronize()
    print(record.key_averages().table(sort_by="cuda_time_total", row_limit=15))


def measure(rows: int, columns: int, kernels: bool) -> dict[str, Any]:
    mesh = torus(rows, columns)
    directions = ecc.sample_directions(DIRECTIONS, 3)
    reach = float(np.linalg.norm(mesh.points, axis=1).max())
    heights = np.linspace(-reach, reach, HEIGHTS)
    points, edges, triangles = (cupy.asarray(part) for part in mesh)

    def transform(simplices: Any) -> Call:
        return finished(
            lambda: ecc.simplicial_transform(points, simplices, directions, heights).values
        )

    calls = {
        "ours": transform([edges, triangles]),
        "ours, triangles alone": transform(triangles),
    }
    known = ecc.simplicial_transform(mesh.points, list(mesh[1:]), directions, heights).values
    found = {name: call().get() for name, call in calls.items()}
    same = {name: bool((values == known).all()) for name, values in found.items()}
    peer = by_pyect(mesh, directions)
    differ = None
    if peer is not None:
        calls["pyECT"] = peer
        differs = peer().cpu().numpy() != known
        differ = float(differs.mean())
    values = cupy.asarray(np.random.default_rng(0).normal(size=len(mesh.points)))
    calls["one curve"] = finished(
        lambda: ecc.simplicial_curve(values, [edges, triangles], heights).values
    )
    count = sum(map(len, mesh))
    ms = {name: 1e3 * seconds(call, REPEATS) for name, call in calls.items()}
    data = cupy.ones(count * DIRECTIONS, np.float32)
    ms["read"] = 1e3 * events(lambda: cupy.max(data), REPEATS)
    ms["ours, on the device"] = 1e3 * events(calls["ours"], REPEATS)
    if kernels:
        print_kernels(calls["ours"])
        print_kernels(calls["ours, triangles alone"])
        if peer is not None:
            print_kernels(peer)
    return {"triangles": len(mesh.triangles), "ms": ms, "same": same, "pyect_differs": differ}


def soft(name: str) -> dict[str, Any]:
    """Return the times of both passes, with gradients of points and directions."""
    shapes = shapes_of(name)
    points = shapes.points.cuda().requires_grad_()
    simplices = [rows.cuda() for rows in shapes.simplices]
    batch = shapes.batch.cuda()
    unit = torch.tensor(ecc.sample_directions(STEPS, points.shape[1]), dtype=torch.float32).cuda()
    unit.requires_grad_()
    heights = torch.linspace(-1.1, 1.1, STEPS).cuda()
    options = {"batch": batch, "shapes": shapes.count}

    def ours() -> Any:
        given = points, simplices, unit, heights
        return soft_simplicial_transform(*given, sharpness=SHARPNESS, **options)

    def direct() -> Any:
        return direct_sum(points, simplices, unit, heights, batch, shapes.count, SHARPNESS)

    def learned(transform: Call) -> Call:
        def step() -> Any:
            loss = transform().square().sum()
            return torch.autograd.grad(loss, [points, unit])

        return finished(step)

    calls = {"ours": learned(ours), "sum over simplices": learned(direct)}
    ms = {key: 1e3 * seconds(call, REPEATS) for key, call in calls.items()}
    expected = direct().detach()
    off = (ours().detach() - expected).abs()
    difference = float(off.max() / expected.abs().max())
    return {"name": name, "ms": ms, "difference": difference}


def markdown(report: list[dict[str, Any]], learned: list[dict[str, Any]], device: str) -> str:
    names = list(report[0]["ms"])
    lines = ["# Transforms of meshes on a CUDA device", "", (__doc__ or "").splitlines()[0], ""]
    lines += [f"{DIRECTIONS} directions, {HEIGHTS} heights, {device}, milliseconds.", ""]
    lines += ["| triangles | " + " | ".join(names) + " | equal to the CPU | pyECT differs |"]
    lines += [rule(len(names) + 3)]
    for row in report:
        times = " | ".join(f"{row['ms'][name]:.3g}" for name in names)
        equal = "yes" if all(row["same"].values()) else "no"
        lines.append(f"| {row['triangles']:,} | {times} | {equal} | {row['pyect_differs']} |")
    lines += ["", f"Soft, forward and backward, {STEPS} directions and heights, float32.", ""]
    lines += ["| batch | ours | sum over simplices | difference |", "|---|---|---|---|"]
    for row in learned:
        times = " | ".join(f"{ms:.3g}" for ms in row["ms"].values())
        lines.append(f"| {row['name']} | {times} | {row['difference']:.1g} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", default="benchmarks/results/cuda_simplicial")
    parser.add_argument("--kernels", action="store_true")
    arguments = parser.parse_args()
    report = [measure(*size, arguments.kernels) for size in SIZES]
    device = cuda_device()
    learned = [soft("letters"), soft("meshes")]
    text = markdown(report, learned, device)
    print(text)
    output = Path(arguments.output)
    content = {"device": device, "exact": report, "soft": learned}
    output.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")
    output.with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
