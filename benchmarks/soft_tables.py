"""The tables that `soft.py` writes of its results."""

from __future__ import annotations

from typing import Any

CURVES = """\

| curve | t | sharpness | values | fused | graph | / floor | peak \
| points | ratio | peak | cells | ratio | peak |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"""
CALLS = """\

Calls from Python by the clock, ms: one call until the device has finished, and calls
that follow each other, with the same of a function that only allocates the tensors
and launches one kernel each way. Forward and backward with a given gradient, with
the sum of the curves as loss, and with the sum of their squares.

| curve | t | step | one call | least | successive | least |
|---|---|---|---|---|---|---|"""
LAYERS = """\

Layers with learned parameters from Python by the clock, forward and backward, ms.
`plain` is the same transform in plain PyTorch, and for curves the function alone.

| layer | images | layer | plain | ratio |
|---|---|---|---|---|"""
TRANSFORM = """\

| transform | k | t | fused | plain | ratio | difference | peak | peak of plain |
|---|---|---|---|---|---|---|---|---|"""


def table(results: dict[str, Any]) -> str:
    """Return the page on all results."""
    floor = f"; floor at {results['rate'] / 1e12:.2f} TB/s." if results["rate"] else "."
    lines = [
        f"# Soft curves and transforms on {results['machine']}",
        "",
        "Forward and backward, gradients of image, thresholds and sharpness (transform: weights,",
        "directions, heights, sharpness), V-construction, float32; ms. `fused` is called from",
        "Python, `graph` is the replay of a CUDA graph; ratios are to the graph if there is one.",
        "Peaks are in images, the gradient included. Written by `python -m benchmarks.soft`, which",
        "says what the columns are.",
        "",
        f"torch {results['torch']}{floor}",
        CURVES,
        *map(_curve_row, results["curves"]),
    ]
    if results["calls"]:
        lines.append(CALLS)
    for row in results["calls"]:
        lines += _call_rows(row)
    if results["layers"]:
        lines.append(LAYERS)
    lines += map(_layer_row, results["layers"])
    lines += [TRANSFORM, _transform_row(results["transform"])]
    return "\n".join(lines) + "\n"


def _row(cells: list[Any]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def _in_ms(number: float | None) -> str:
    return "" if number is None else f"{1e3 * number:.4g}"


def _curve_row(row: dict[str, Any]) -> str:
    found = row["seconds"]
    best = found.get("fused, graph", found["fused"])
    cells = [
        row["case"],
        row["thresholds"],
        f"{row['sharpness']:g}",
        row["values"],
        _in_ms(found["fused"]),
        _in_ms(found.get("fused, graph")),
        f"{best / row['floor']:.2f}" if "floor" in row else "",
        f"{row['peak']:.2f}" if "peak" in row else "",
    ]
    for name in ("plain, points", "plain, cells"):
        used = row.get(f"peak of {name}", 0)
        if name in found:
            cells += [_in_ms(found[name]), f"{found[name] / best:.0f}"]
            cells.append(f"{used:.0f}" if used else "")
        else:
            cells += ["out of memory" if used is None else "", "", ""]
    return _row(cells)


def _call_rows(row: dict[str, Any]) -> list[str]:
    rows = []
    for kind in ("gradient given", "sum", "sum of squares"):
        own = row["seconds"][f"curve, {kind}"]
        least = row["seconds"][f"least, {kind}"]
        times = [own[0], least[0], own[1], least[1]]
        rows.append(_row([row["case"], row["thresholds"], kind, *map(_in_ms, times)]))
    return rows


def _layer_row(row: dict[str, Any]) -> str:
    own = row["seconds"].get("layer")
    plain = row["seconds"].get("plain")
    ratio = f"{plain / own:.1f}" if plain else ""
    return _row([row["layer"], row["case"], _in_ms(own), _in_ms(plain), ratio])


def _transform_row(row: dict[str, Any]) -> str:
    fused = row["seconds"]["fused"]
    plain = row["seconds"]["plain"]
    return _row(
        [
            row["case"],
            row["directions"],
            row["heights"],
            _in_ms(fused),
            _in_ms(plain),
            f"{plain / fused:.1f}",
            f"{row['difference']:.1e}",
            f"{row.get('peak of fused', 0):.0f}",
            f"{row.get('peak of plain', 0):.0f}",
        ]
    )
