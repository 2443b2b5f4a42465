"""Draw the figures of the page of benchmarks from the committed results.

    python benchmarks/figures.py FOLDER

The documentation runs this when it is built, so that the figures show the tables beside them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

RESULTS = Path(__file__).parent / "results"
BLUE = "#0072B2"
GRAY = "#9a9a9a"
VERMILION = "#D55E00"
STYLE = {"axes.spines.top": False, "axes.spines.right": False, "font.size": 10}
TIMES = "\N{MULTIPLICATION SIGN}"
MORE = {
    "GUDHI": "complete persistence diagrams",
    "GUDHI, 2-D": "complete persistence diagrams",
    "gudhi.sklearn": "complete persistence diagrams",
    "cripser": "complete persistence diagrams",
    "scikit-image": "one threshold at a time",
    "cucim": "one threshold at a time",
    "quantimpy": "one threshold at a time",
    "the same in NumPy": "one threshold at a time",
    "clDice": "compares skeletons",
    "TopoLoss": "compares persistence diagrams",
    "3 x scipy.ndimage.label": "labels of three sets",
    "pyECT": "connectivity 1 only",
    "eucalc": "an exact function of the height",
    "eucalc, directions only": "after its preparation",
}
"""What a peer computes beyond our curves, or in another way."""
NAMES = {
    "256 x quantimpy 0.2.6": "quantimpy",
    "256 x configurations in NumPy": "the same in NumPy",
}
"""Names of peers that are measured once for each threshold."""


class Bar(NamedTuple):
    name: str
    ratio: float
    note: str = ""


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def bars_of(rows: Iterable[dict[str, Any]], connectivity: int) -> list[Bar]:
    """Return the peers of a table, the fastest first."""
    found = []
    for row in rows:
        name, slash, _ = row["ratio_of"].partition(" / time")
        name = NAMES.get(name, name.partition(" (")[0])
        if slash and row["connectivity"] == connectivity and name != "one worker":
            found.append(Bar(name, row["ratio"], MORE.get(name, "")))
    return sorted(found, key=lambda bar: bar.ratio)


def rounded(ratio: float) -> str:
    """Return a ratio as text, with two significant digits."""
    return f"{float(f'{ratio:.2g}'):,g}{TIMES}"


def draw_bars(ax: Axes, title: str, bars: list[Bar], widest: float) -> None:
    """Draw times as multiples of ours, on a logarithmic axis that begins at 1."""
    names = ["ecc_core", *(bar.name for bar in bars)]
    ax.barh(names, [1.08, *(bar.ratio for bar in bars)], 0.62, color=[BLUE] + [GRAY] * len(bars))
    for place, bar in enumerate(bars, start=1):
        text = rounded(bar.ratio) + (f"  {bar.note}" if bar.note else "")
        ax.text(bar.ratio * 1.15, place, text, va="center", fontsize=9)
    ax.set_title(title, loc="left", fontsize=10.5, fontweight="bold")
    ax.set(xscale="log", xlim=(1, widest * 300))
    ax.set_xticks([10**k for k in range(6) if 10**k <= widest * 3])
    ax.set_xticks([], minor=True)
    ax.invert_yaxis()


def draw_panels(panels: list[tuple[str, list[Bar]]]) -> Figure:
    """Draw one panel below another, with bars of one thickness and one axis."""
    panels = [(title, bars) for title, bars in panels if bars]
    heights = [len(bars) + 2.2 for _, bars in panels]
    widest = max(bar.ratio for _, bars in panels for bar in bars)
    figure = Figure(figsize=(9, 0.3 * sum(heights)), layout="constrained")
    axes = figure.subplots(len(panels), 1, height_ratios=heights, squeeze=False)[:, 0]
    for ax, (title, bars) in zip(axes, panels, strict=True):
        draw_bars(ax, title, bars, widest)
    axes[-1].set_xlabel("time as a multiple of that of ecc_core")
    return figure


def peers_on_the_cpu() -> Figure:
    """Draw times of other libraries on one core, for curves, Betti curves and transforms."""
    curves = read("libraries")["sections"]
    betti = read("betti")["sections"]
    minkowski = read("minkowski")["sections"]
    functionals = minkowski["quantimpy"] + minkowski["published"]
    transform = read("transform-cpu")["sections"]["peers"]
    panels = []
    for rows, what, connectivity in (
        (curves["images"], "Euler curve of an image", 2),
        (curves["volumes"], "Euler curve of a volume", 3),
        (read("cpu")["sections"]["peers"], "Euler curve of a larger volume", 1),
        (betti["images"], "Betti curves of an image", 2),
        (betti["volumes"], "Betti curves of a volume", 3),
        (functionals, "Minkowski functionals of a volume", 3),
        (curves["transforms"], "Euler transform of closed squares, 64 directions", 2),
        (transform, "Euler transform of vertices, 64 directions", 1),
        (read("losses")["sections"]["losses"][3:], "Gradients of losses", 2),
    ):
        case = next((row["case"] for row in rows if "sigma 2" in row["case"]), rows[0]["case"])
        some = [row for row in rows if row["case"] == case]
        panels.append((f"{what}, {case}", bars_of(some, connectivity)))
    return draw_panels(panels)


def peers_on_a_device() -> Figure:
    """Draw times of other libraries for curves of images that are on the device."""
    panels = []
    report = read("cuda_peers")
    for shape in ([8192, 8192], [128, 128, 128]):
        row = next(
            row
            for row in report["rows"]
            if (row["shape"], row["image"], row["from"], row["connectivity"])
            == (shape, "sigma 2", "device", 1)
        )
        bars = [
            Bar(name, ms / row["ms"]["ecc_core"], MORE.get(name, ""))
            for name, ms in row["ms"].items()
            if not name.startswith("ecc_core")
        ]
        panels.append((f"Euler curve, {TIMES.join(map(str, shape))} uint8", bars))
    return draw_panels(panels)


def floor_on_a_device() -> Figure:
    """Draw times of the kernels as multiples of the time to read the image once."""
    kernels = [
        row
        for row in read("cuda")["kernels"]
        if row["connectivity"] == 1 and row["sigma"] in (0, 2) and row["floor_ms"] > 0.03
    ]
    cases: dict[str, dict[int, float]] = {}
    for row in kernels:
        side = row["shape"][0]
        count = row["images"]
        name = f"{side}{'²³'[len(row['shape']) - 2]} {row['dtype']}"
        name = f"{count} {TIMES} {name}" if count > 1 else name
        cases.setdefault(name, {})[row["sigma"]] = row["ratio"]
    figure = Figure(figsize=(9, 0.42 * len(cases) + 1.2), layout="constrained")
    ax = figure.subplots()
    for sigma, colour, shift in ((0, VERMILION, -0.18), (2, BLUE, 0.18)):
        places = [place + shift for place in range(len(cases))]
        ratios = [found[sigma] for found in cases.values()]
        ax.barh(places, ratios, 0.34, color=colour, label="smooth" if sigma else "noise")
        for place, ratio in zip(places, ratios, strict=True):
            ax.text(ratio + 0.05, place, f"{ratio:.2g}{TIMES}", va="center", fontsize=9)
    ax.axvline(1, color="black", linewidth=1)
    ax.set_yticks(range(len(cases)), list(cases))
    ax.invert_yaxis()
    ax.set_xlabel("time as a multiple of reading the image once")
    ax.legend(frameon=False)
    return figure


FIGURES = {
    "peers-cpu": peers_on_the_cpu,
    "peers-device": peers_on_a_device,
    "floor-device": floor_on_a_device,
}


def draw_all(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with rc_context(STYLE):
        for name, draw in FIGURES.items():
            draw().savefig(folder / f"{name}.svg")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    draw_all(parser.parse_args().folder)
