"""Transforms of triangle meshes, exact and soft, beside ect, pyECT and DECT's method.

    pip install ect==1.3.0 pyect==1.0.1
    OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/simplicial.py

Writes benchmarks/results/simplicial.{json,md}. Times are processor times of one thread, the least
of several turns of three calls, which all libraries take by turns, after a call that compiles;
calls of seconds are measured once. Peers start from complexes of their own types.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import torch
from evidence.outcome import machine
from meshes import Mesh, Shapes, direct_sum, shapes_of, torus

import ecc_core as ecc
from ecc_core.nn import SimplicialTransformLayer
from ecc_core.nn.functional import soft_simplicial_transform

RESULTS = Path(__file__).parent / "results"
DIRECTIONS = 64
HEIGHTS = 128
LONG = 3000
"""Milliseconds; longer calls are measured once."""
REPEATS = 3
"""The calls of a turn; the first one fills the caches, which other libraries have used."""
SHARPNESS = 8.0
STEPS = 32
Call = Callable[[], Any]


def of_ect(mesh: Mesh, directions: np.ndarray, reach: float) -> tuple[Call, Call]:
    """Return calls of the transform of ect, and of its conversion of the complex, a part of it."""
    from ect import ECT, Directions, EmbeddedComplex

    graph = EmbeddedComplex()
    count = len(mesh.points)
    # Adding points one by one copies all coordinates each time.
    nx.Graph.add_nodes_from(graph, range(count))
    graph._node_list = list(range(count))
    graph._node_to_index = {i: i for i in range(count)}
    graph._coord_matrix = mesh.points
    nx.Graph.add_edges_from(graph, mesh.edges.tolist())
    graph.cells[2] = [tuple(row) for row in mesh.triangles.tolist()]
    transform = ECT(Directions.from_vectors(directions), num_thresh=HEIGHTS, bound_radius=reach)
    return lambda: np.asarray(transform.calculate(graph)), graph._build_incidence_csr


def of_pyect(mesh: Mesh, directions: np.ndarray) -> Call:
    from pyect import WECT

    complex_ = [(torch.tensor(part), torch.ones(len(part))) for part in mesh]
    transform = WECT(torch.tensor(directions, dtype=torch.float32), HEIGHTS)
    return lambda: transform(complex_).numpy()


def least_times(calls: dict[str, Call], turns: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the least processor time of each call in milliseconds, and the results."""
    best = dict.fromkeys(calls, np.inf)
    results = {name: call() for name, call in calls.items()}  # This compiles kernels.
    for _ in range(turns):
        for name, call in calls.items():
            if LONG < best[name] < np.inf:
                continue
            for _ in range(REPEATS):
                start = time.process_time()
                results[name] = call()
                best[name] = min(best[name], 1e3 * (time.process_time() - start))
                if best[name] > LONG:
                    break
    return best, results


def exact(rows: int, columns: int, turns: int) -> dict[str, Any]:
    mesh = torus(rows, columns)
    directions = ecc.sample_directions(DIRECTIONS, 3)
    reach = np.linalg.norm(mesh.points, axis=1).max()
    given = mesh.points, [mesh.edges, mesh.triangles], directions
    heights = np.linspace(-reach, reach, HEIGHTS)
    whole, conversion = of_ect(mesh, directions, reach)
    calls = {
        "ours": lambda: ecc.simplicial_transform(*given, heights, workers=1).values,
        "pyect": of_pyect(mesh, directions),
        "ect": whole,
        "conversion": conversion,
    }
    best, results = least_times(calls, turns)
    differ = {}
    for name in ("ect", "pyect"):
        is_other = results[name] != results["ours"]
        differ[name] = float(is_other.mean())
    return {"triangles": len(mesh.triangles), "ms": best, "differ": differ}


def soft(name: str, turns: int) -> dict[str, Any]:
    """Return the times of both passes, with gradients of points and directions."""
    points, simplices, batch, shapes = shapes_of(name)
    points.requires_grad_()
    unit = torch.tensor(ecc.sample_directions(STEPS, points.shape[1]), dtype=torch.float32)
    unit.requires_grad_()
    heights = torch.linspace(-1.1, 1.1, STEPS)

    def ours() -> torch.Tensor:
        return soft_simplicial_transform(
            points, simplices, unit, heights, sharpness=SHARPNESS, batch=batch, shapes=shapes
        )

    def direct() -> torch.Tensor:
        return direct_sum(points, simplices, unit, heights, batch, shapes, SHARPNESS)

    def learned(transform: Call) -> Call:
        def step() -> Any:
            total = transform().square().sum()
            return torch.autograd.grad(total, [points, unit])

        return step

    best, _ = least_times({"ours": learned(ours), "direct": learned(direct)}, turns)
    found = ours().detach()
    expected = direct().detach()
    difference = float((found - expected).abs().max() / expected.abs().max())
    return {
        "name": name,
        "shapes": shapes,
        "points": len(points) // shapes,
        "ms": best,
        "difference": difference,
    }


class DirectLayer(torch.nn.Module):
    """DECT's layer: directions are learned, heights are not."""

    def __init__(self, unit: torch.Tensor, heights: torch.Tensor) -> None:
        super().__init__()
        self.directions = torch.nn.Parameter(unit)
        self.heights = heights

    def forward(self, given: Shapes) -> torch.Tensor:
        points, simplices, batch, shapes = given
        return direct_sum(
            points, simplices, self.directions, self.heights, batch, shapes, SHARPNESS
        )


def layers(name: str, turns: int) -> dict[str, Any]:
    """Return times of both passes of layers, with gradients of points and parameters."""
    given = shapes_of(name)
    points, simplices, batch, shapes = given
    points.requires_grad_()
    ndim = points.shape[1]
    unit = torch.tensor(ecc.sample_directions(STEPS, ndim), dtype=torch.float32)
    direct = DirectLayer(unit, torch.linspace(-1.1, 1.1, STEPS))
    upstream = torch.randn(shapes, STEPS, STEPS, generator=torch.Generator().manual_seed(1))
    options = {"range": (-1.1, 1.1), "sharpness": SHARPNESS, "n_spatial": ndim}
    same = SimplicialTransformLayer(STEPS, STEPS, learn_thresholds=False, **options)
    heights_too = SimplicialTransformLayer(STEPS, STEPS, **options)

    def learned(layer: torch.nn.Module, transform: Call) -> Call:
        wanted = [points, *(part for part in layer.parameters() if part.requires_grad)]
        return lambda: torch.autograd.grad(transform(), wanted, upstream)

    def of(layer: torch.nn.Module) -> Call:
        return lambda: layer(points, simplices, batch=batch, shapes=shapes)

    calls = {
        "ours": learned(same, of(same)),
        "heights too": learned(heights_too, of(heights_too)),
        "direct": learned(direct, lambda: direct(given)),
        "ours, forward": of(same),
        "direct, forward": lambda: direct(given),
    }
    best, results = least_times(calls, turns)
    found = results["ours, forward"].detach()
    expected = results["direct, forward"].detach()
    difference = float((found - expected).abs().max() / expected.abs().max())
    return {"name": name, "ms": best, "difference": difference}


def markdown(report: dict[str, Any]) -> str:
    lines = ["# Transforms of meshes and graphs", "", f"{(__doc__ or '').splitlines()[0]}", ""]
    lines += [f"{DIRECTIONS} directions, {HEIGHTS} heights, a bumpy torus, one thread.", ""]
    lines += [
        "| triangles | ms | pyECT, ms | ratio | values that differ | ect, ms | ratio "
        "| of which its conversion, ms | values that differ |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in report["exact"]:
        ms = row["ms"]
        differ = row["differ"]
        lines.append(
            f"| {row['triangles']:,} | {ms['ours']:.3g} | {ms['pyect']:.3g} "
            f"| {ms['pyect'] / ms['ours']:.3g} | {differ['pyect']:.2g} | {ms['ect']:.3g} "
            f"| {ms['ect'] / ms['ours']:.3g} | {ms['conversion']:.3g} | {differ['ect']:.2g} |"
        )
    lines += [
        "",
        "pyECT's heights are float32. ect converts the complex in each call.",
        "",
        f"Soft, forward and backward, {STEPS} directions and heights, float32, one thread. The sum "
        "over all simplices is DECT's published method in operators of torch. Of meshes its "
        "float32 sums of thousands of terms are what differs: in float64 both agree to 1e-7.",
        "",
        "| batch | shapes | points of each | ms | sum over simplices, ms | ratio | difference |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in report["soft"]:
        ms = row["ms"]
        lines.append(
            f"| {row['name']} | {row['shapes']} | {row['points']} | {ms['ours']:.3g} "
            f"| {ms['direct']:.3g} | {ms['direct'] / ms['ours']:.3g} | {row['difference']:.1g} |"
        )
    lines += [
        "",
        "Layers, forward and backward from a given upstream gradient. DECT's layer learns "
        "directions; ours learns these, or heights as well.",
        "",
        "| batch | ms | with heights, ms | DECT's, ms | ratio | with heights | forward, ms "
        "| DECT's, ms | ratio | difference |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in report["layers"]:
        ms = row["ms"]
        forward = ms["ours, forward"]
        lines.append(
            f"| {row['name']} | {ms['ours']:.3g} | {ms['heights too']:.3g} | {ms['direct']:.3g} "
            f"| {ms['direct'] / ms['ours']:.3g} | {ms['direct'] / ms['heights too']:.3g} "
            f"| {forward:.3g} | {ms['direct, forward']:.3g} "
            f"| {ms['direct, forward'] / forward:.3g} | {row['difference']:.1g} |"
        )
    about = ", ".join(f"{name} {value}" for name, value in report["machine"].items())
    return "\n".join([*lines, "", f"On: {about}."]) + "\n"


if __name__ == "__main__":
    torch.set_num_threads(1)
    report = {
        "machine": machine(),
        "exact": [exact(100, 50, 12), exact(1000, 500, 4)],
        "soft": [soft("letters", 150), soft("meshes", 3)],
        "layers": [layers("letters", 150), layers("meshes", 3)],
    }
    (RESULTS / "simplicial.json").write_text(json.dumps(report, indent=1) + "\n")
    (RESULTS / "simplicial.md").write_text(markdown(report))
    print(markdown(report))
