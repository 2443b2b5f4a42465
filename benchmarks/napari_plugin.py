"""Times of the napari plugin in a real window, as its user feels them.

    xvfb-run -a -s "-screen 0 1600x1000x24" python benchmarks/napari_plugin.py [--quick] [GROUP ...]

A frame of a drag is over when the plot and the canvas have been drawn. The heartbeat is a timer of
the GUI thread that is due every 5 ms; its longest gap is the longest time that the window did not
react. Without a graphics card (Mesa's llvmpipe) the drawing itself is most of a frame, in threads
of its own: the processor time of the GUI thread in a gap is that of napari's and the plugin's code,
whatever else the machine does, and has the bar.
Kernels are warm, but for the group "first", whose windows begin with an empty cache. Needs an idle
machine, for about 5 minutes. Writes benchmarks/results/napari.json
and .md; `--quick` takes small images and writes none.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import napari
import numpy as np
from napari_drags import drag, drag_least, drag_volume, lasso
from napari_window import BEAT, Row, Window, smooth, summary
from report import machine

import ecc_core as ecc
from napari_ecc._controller.loading import warm

RESULTS = Path(__file__).parent / "results" / "napari"
RUNS = 3
"""The number of runs, of which that with the shortest gap between heartbeats is reported."""


FIRST_USE = """
import sys, time
start = time.perf_counter()
import napari
from qtpy.QtWidgets import QApplication

def until(condition):
    QApplication.processEvents()
    while not condition():
        QApplication.processEvents()
        time.sleep(0.002)
    print(time.perf_counter() - start, flush=True)

viewer = napari.Viewer(show=True)
viewer.open_sample("napari-ecc", "labelled_coins")
until(lambda: True)
start = time.perf_counter()
_, panel = viewer.window.add_plugin_dock_widget("napari-ecc", sys.argv[1])
model = panel.model
if sys.argv[1] == "Objects":
    panel.controller.request()
    until(lambda: model.regions is not None)
else:
    until(lambda: model.curve is not None)
    until(lambda: model.betti is not None)
    until(lambda: model.classes is not None)
viewer.close()
"""


def first_use() -> list[Row]:
    """Return times since a dock was opened on the coins, with an empty cache of kernels."""
    found = {}
    for dock in ("Threshold", "Objects"):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-c", FIRST_USE, dock],
                env={**os.environ, "NUMBA_CACHE_DIR": folder},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        found[dock] = [1000 * float(line) for line in done.stdout.split()]
    napari_alone, curve, counts, births = found["Threshold"]
    _, measured = found["Objects"]
    return [
        summary("start of napari itself, with the coins", [napari_alone], None),
        summary("first use, empty cache: curve of the coins", [curve], 4000),
        summary("first use, empty cache: their counts", [counts], 8000),
        summary("first use, empty cache: births and deaths", [births], None),
        summary("first use, empty cache: 24 coins measured", [measured], 10_000),
    ]


def bare(side: int) -> Row:
    """Return the time to draw the window again without a change, for comparison."""
    window = Window("Threshold")
    window.viewer.add_image(smooth((side, side), np.uint16), name="image")
    window.settle()

    def both() -> None:
        window.panel.plot.viewport().update()
        window.canvas.update()

    times = [window.frame(both) for _ in range(40)]
    window.close()
    return summary(f"the same window drawn anew, nothing changed, {side}^2 uint16", times, None)


def note_curves(model: Any, times: list[float]) -> None:
    """Add the time to a list whenever the model has a new curve."""

    def note(curve: Any) -> None:
        if curve:
            times.append(time.perf_counter())

    model.events.curve.connect(note)


def first_curve(side: int, bar: float | None) -> Row:
    window = Window("Threshold")
    model = window.panel.model
    window.viewer.add_image(np.zeros((8, 8), np.uint8), name="small")
    window.viewer.add_image(smooth((side, side), np.uint16), name="large")
    window.settle()
    shown: list[float] = []
    # The model calls the panel before, which draws the plot before it returns.
    note_curves(model, shown)
    times = []
    for _ in range(9):
        window.panel.form["image"].value = "small"
        window.settle()
        shown.clear()
        start = time.perf_counter()
        window.panel.form["image"].value = "large"
        window.until(lambda: bool(shown))
        times.append(1000 * (shown[0] - start))
    window.close()
    return summary(f"first curve after selecting the layer, {side}^2 uint16", times, bar)


def openings(side: int, count: int, bar: float | None) -> list[Row]:
    """Return times after a large image is chosen until its coarse and its exact curve are shown."""
    window = Window("Threshold")
    model = window.panel.model
    tile = smooth((side // 4, side // 4), np.uint16)
    image = np.tile(tile, (4, 4))
    window.viewer.add_image(np.zeros((8, 8), np.uint8), name="small")
    window.viewer.add_image(image, name="large")
    shown: list[float] = []
    note_curves(model, shown)
    coarse = []
    complete = []
    wrong = 0
    expected = None
    for _ in range(count):
        window.panel.form["image"].value = "small"
        window.settle()
        shown.clear()
        start = time.perf_counter()
        window.panel.form["image"].value = "large"
        window.until(lambda: model.curve is not None and model.curve.complete)
        coarse.append(1000 * (shown[0] - start))
        complete.append(1000 * (shown[-1] - start))
        window.wait(0.3)
        if expected is None:
            levels = model.curve.thresholds
            expected = ecc.euler_curve(image, levels, superlevel=True).values
        wrong += not (model.curve.complete and np.array_equal(model.curve.values, expected))
    window.close()
    case = f"{side}^2 uint16 in memory"
    return [
        summary(f"coarse curve after selecting the layer, {case}", coarse, bar),
        summary(f"exact curve after selecting the layer, {case}", complete, None),
        summary(f"wrong at the end, of {count} openings of {case}", [float(wrong)], 0),
    ]


def turn(shape: tuple[int, ...], bar: float | None) -> Row:
    window = Window("Directions")
    panel = window.panel
    model = window.panel.model
    model.show_arrow = False
    window.viewer.add_image(smooth(shape, np.uint8, 6), name="image")
    panel.controller.session.explorer.scope = "slice" if len(shape) == 2 else "volume"
    window.settle()
    times = []
    for azimuth in np.linspace(3, 300, 20):
        before = model.curve
        start = time.perf_counter()
        panel.angles["azimuth"].value = float(azimuth)
        window.until(lambda before=before: model.curve is not before)
        times.append(1000 * (time.perf_counter() - start))
        window.settle()
    window.close()
    return summary(f"curve of a new direction, {'x'.join(map(str, shape))}", times, bar)


def heartbeat(data: Any, case: str, bar: float | None) -> list[Row]:
    """Return the longest time without a reaction while the curve of a volume is computed."""
    window = Window("Threshold")
    model = window.panel.model
    model.show_set = False
    window.viewer.add_image(data, name="volume", contrast_limits=(0, 255))
    window.settle()

    def take_volume() -> None:
        model.scope = "volume"

    runs = []
    for _ in range(RUNS):
        runs.append(window.beats(take_volume))
        model.scope = "slice"
        window.settle()
    window.close()
    longest = [processor.max() for _, processor in runs]
    gaps, processor = runs[int(np.argmin(longest))]
    return [
        summary(f"heartbeat, {case}, {gaps.sum() / 1000:.1f} s", gaps.tolist(), None),
        summary(f"GUI thread's processor time between beats, {case}", processor.tolist(), bar),
    ]


def pauses(side: int, bar: float) -> list[Row]:
    """Return the longest time without a reaction while a large image is opened.

    With napari alone, and with the dock.
    """
    image = np.tile(smooth((side // 8, side // 8), np.uint8), (8, 8))
    longest: dict[str, list[float]] = {"": [], "Threshold": []}
    for _ in range(RUNS):
        for dock, times in longest.items():
            window = Window(dock)
            beats = window.beats(lambda: window.viewer.add_image(image))  # noqa: B023
            times.append(float(beats[0].max()))
            window.close()
    alone, both = longest.values()
    case = f"longest pause, {side}^2 uint8 is opened"
    return [
        summary(f"{case}, napari alone", alone, None),
        summary(f"{case}, with the dock", both, None),
        summary(f"ratio of the least, {case}", [min(both) / min(alone)], bar),
    ]


def groups_of(quick: bool) -> dict[str, Callable[[], list[Row]]]:
    """Return the functions that measure each group, by name."""
    side, plane, cube, volume = (256, 256, 32, 64) if quick else (2048, 1024, 128, 512)
    large, count = (9000, 2) if quick else (10_000, 30)

    def heartbeats() -> list[Row]:
        data = smooth((volume,) * 3, np.uint8)
        lazy = da.from_array(data, chunks=max(volume // 4, 32))
        case = f"curve and counts of {volume}^3 uint8"
        return [*heartbeat(data, f"{case} in memory", 50), *heartbeat(lazy, f"{case}, dask", 50)]

    return {
        "curve": lambda: [first_curve(side, 100), bare(side)],
        "drag": lambda: [*drag(side // 4, False, 1.2), *drag(side, False, 1.2)],
        "least": lambda: drag_least(side, 1.2),
        "volume": lambda: [*drag_volume(cube // 2, 1.2), *drag_volume(cube, 1.2)],
        "lasso": lambda: lasso(400 if quick else 10_000, 1.5),
        "first": first_use,
        "changes": lambda: drag(side, True, None),
        "openings": lambda: openings(large, count, 300),
        "turn": lambda: [turn((plane, plane), 30), turn((cube,) * 3, 30)],
        "heartbeat": heartbeats,
        "pauses": lambda: pauses(2000 if quick else 20_000, 1.2),
    }


def write(found: dict[str, list[Row]]) -> None:
    """Replace the rows of the groups that have been measured."""
    here = machine()
    path = RESULTS.with_suffix(".json")
    known = json.loads(path.read_text())["groups"] if path.exists() else {}
    known |= {name: [row._asdict() for row in rows] for name, rows in found.items()}
    groups = {name: known[name] for name in groups_of(False) if name in known}
    facts = f"{here['cpu']}, {here['cores']} cores, napari {napari.__version__}"
    path.write_text(json.dumps({"machine": facts, "groups": groups}, indent=1) + "\n")
    lines = [
        "# Times of the napari plugin",
        "",
        f"{facts}; a window of 1500 x 950 pixels on Xvfb, drawn by the processor (llvmpipe).",
        "",
        "Milliseconds, but for ratios and numbers of openings. The heartbeat is a timer of the GUI",
        f"thread, due every {BEAT} ms, in the best of {RUNS} runs; the processor time of that",
        "thread between two beats is that of napari's and the plugin's code, without the drawing.",
        "Written by `python benchmarks/napari_plugin.py`.",
        "",
        "| case | least | median | greatest | repeats |",
        "|---|---|---|---|---|",
    ]
    for row in (Row(**values) for rows in groups.values() for values in rows):
        digits = 2 if row.case.startswith("ratio") else 1
        times = " | ".join(f"{at:.{digits}f}" for at in (row.least, row.median, row.most))
        lines.append(f"| {row.case} | {times} | {row.repeats} |")
    RESULTS.with_suffix(".md").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(groups_of(False))}; default all")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    groups = groups_of(given.quick)
    warm(("curve", "uint8", 2), ("pairs", "uint8", 2)).wait()
    found = {name: groups[name]() for name in given.groups or groups}
    if not given.quick:
        write(found)


if __name__ == "__main__":
    main()
