"""Make the pictures of the napari plugin in docs/images from a real window.

    xvfb-run -a -s "-screen 0 1680x1050x24" python examples/napari_screenshots.py

Names as arguments make these pictures alone: explorer changes directions regions series compare
channels film.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import napari
import numpy as np
from PIL import Image, ImageDraw
from qtpy.QtCore import QPoint, Qt
from qtpy.QtWidgets import QApplication
from scipy.ndimage import gaussian_filter

from napari_ecc._controller.loading import warm

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SIZE = (1400, 860)
LEAST_PASSES = 30
"""The fewest passes of the event loop, in which layouts follow one another."""
STILL = 3000
"""Milliseconds that a still of the film is shown."""


def wait(panel: Any, seconds: float = 1.0) -> None:
    """Let the window live for a while after the panel has computed.

    That are some passes at least: on a busy machine, a single one may take as long.
    """
    end = time.monotonic() + seconds
    idle = 0
    while idle < LEAST_PASSES or time.monotonic() < end:
        idle += 1
        if panel.controller.running:
            end = time.monotonic() + seconds
            idle = 0
        QApplication.processEvents()
        time.sleep(0.005)


def open_dock(viewer: napari.Viewer, dock: str) -> Any:
    _, panel = viewer.window.add_plugin_dock_widget("napari-ecc", dock)
    wait(panel)
    return panel


def explorer(viewer: napari.Viewer) -> Any:
    """The vessels, turned, the set at the threshold, and Betti curves."""
    viewer.open_sample("napari-ecc", "vessels")
    panel = open_dock(viewer, "Threshold")
    panel.model.scope = "volume"
    viewer.dims.ndisplay = 3
    viewer.scene.camera.angles = (5, 25, 60)
    viewer.scene.camera.zoom = 2.7
    panel.model.show_betti = True
    wait(panel)
    panel.model.threshold = 120.0
    return panel


def changes(viewer: napari.Viewer) -> Any:
    """The coins, smoothed, where objects split: what the curve does below its maximum."""
    viewer.open_sample("napari-ecc", "coins")
    panel = open_dock(viewer, "Threshold")
    panel.model.sigma = 2.0
    panel.model.window = 3.0
    panel.model.show_changes = True
    wait(panel)
    panel.controller.snap(130.0)
    return panel


def directions(viewer: napari.Viewer) -> Any:
    """One frame of the drops, swept along a direction."""
    viewer.open_sample("napari-ecc", "drops")
    panel = open_dock(viewer, "Directions")
    viewer.dims.set_current_step(0, 6)
    panel.explorer.threshold = 80.0
    panel.model.turn(40)
    return panel


def regions(viewer: napari.Viewer) -> Any:
    """The coins as objects in two classes, three of them chosen."""
    viewer.open_sample("napari-ecc", "labelled_coins")
    viewer.layers["coin labels"].opacity = 0.4
    panel = open_dock(viewer, "Objects")
    panel.controller.request()
    wait(panel)
    found = panel.model.regions
    score = found.components["curves"].scores[:, 0]
    for name, chosen in (("plain", score < -60), ("rich", score > 60)):
        panel.model.class_name = name
        panel.model.selected = tuple(found.labels[chosen].tolist())
        panel.controller.classify()
    panel.model.selected = 9, 16, 6
    return panel


def series(viewer: napari.Viewer) -> Any:
    """The drops over time."""
    viewer.open_sample("napari-ecc", "drops")
    panel = open_dock(viewer, "Series")
    viewer.dims.set_current_step(0, 17)
    return panel


def compare(viewer: napari.Viewer) -> Any:
    """Two groups of textures, that differ in their grain."""
    for name, sigma in (("fine", 2.0), ("coarse", 2.6)):
        for seed in range(5):
            noise = np.random.default_rng([seed, round(10 * sigma)]).standard_normal((200, 200))
            texture = gaussian_filter(noise, sigma)
            values = np.clip(texture / texture.std() * 30 + 128, 0, 255).astype(np.uint8)
            viewer.add_image(values, name=f"{name} {seed + 1}")
    panel = open_dock(viewer, "Compare")
    panel.controller.add_layers()
    panel.model.pattern = "fine|coarse"
    panel.model.view = "bands"
    return panel


def channels(viewer: napari.Viewer) -> Any:
    """Two textures that have half of their structure in common."""
    fields = [
        gaussian_filter(np.random.default_rng(k).standard_normal((256, 256)), 4) for k in (1, 2)
    ]
    for name, field in zip(
        ("nuclei", "membranes"), (fields[0], fields[0] + fields[1]), strict=True
    ):
        values = np.clip(field / field.std() * 40 + 128, 0, 255).astype(np.uint8)
        viewer.add_image(values, name=name)
    panel = open_dock(viewer, "Two channels")
    wait(panel)
    panel.controller.move(150.0, 140.0)
    return panel


def film(viewer: napari.Viewer) -> Iterator[tuple[Any, Any]]:
    """The coins, from opening to a file: the panel, and what is clicked next, or None."""
    viewer.open_sample("napari-ecc", "coins")
    panel = open_dock(viewer, "Threshold")
    yield panel, panel.offer_least["accept"]
    panel.offer_least["accept"].native.click()
    yield panel, panel.actions["make_labels"]
    panel.actions["make_labels"].native.click()
    wait(panel)
    table, _ = viewer.window.add_plugin_dock_widget("napari", "Features table widget")
    viewer.window._qt_window.addDockWidget(Qt.DockWidgetArea.BottomDockWidgetArea, table)
    yield panel, panel.outputs["save"]
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        panel.save("coins.csv")
        yield panel, None


def shoot_film(viewer: napari.Viewer, path: Path) -> None:
    """Save the stills of the film, each with a ring around what is clicked next."""
    stills = []
    window = viewer.window._qt_window
    for panel, button in film(viewer):
        wait(panel, 2)
        still = Image.fromarray(viewer.screenshot(canvas_only=False, flash=False)).convert("RGB")
        if button is not None:
            widget = button.native
            corner = widget.mapTo(window, QPoint(-6, -6))
            end = widget.mapTo(window, QPoint(widget.width() + 6, widget.height() + 6))
            box = corner.x(), corner.y(), end.x(), end.y()
            ImageDraw.Draw(still).rounded_rectangle(box, radius=8, outline="#ff9f43", width=4)
        stills.append(still)
    stills[0].save(
        path, save_all=True, append_images=stills[1:], duration=STILL, loop=0, quality=80
    )


SCENES: dict[str, Callable[[napari.Viewer], Any]] = {
    "explorer": explorer,
    "changes": changes,
    "directions": directions,
    "regions": regions,
    "series": series,
    "compare": compare,
    "channels": channels,
}


def main() -> None:
    warm(("curve", "uint8", 2), ("pairs", "uint8", 2)).wait()
    for name in sys.argv[1:] or [*SCENES, "film"]:
        viewer = napari.Viewer(show=True)
        viewer.window.resize(*SIZE)
        if name == "film":
            path = IMAGES / "napari-film.webp"
            shoot_film(viewer, path)
        else:
            wait(SCENES[name](viewer), 3)
            path = IMAGES / f"napari-{name}.png"
            viewer.screenshot(str(path), canvas_only=False, flash=False)
        viewer.close()
        print(path)


if __name__ == "__main__":
    main()
