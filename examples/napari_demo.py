"""Open napari with a sample image and the dock for thresholds.

Drag the line in the plot. The 24 coins are counted without the noise. With an argument, `vessels`
or `drops`, another sample is opened:

    python examples/napari_demo.py vessels
"""

import os
import sys
from typing import Any

import napari


def open_demo(sample: str = "coins") -> Any:
    """Open a viewer, and leave out what does not last once it is known; return the dock."""
    viewer = napari.Viewer(title="Euler characteristic")
    viewer.open_sample("napari-ecc", sample)
    _, panel = viewer.window.add_plugin_dock_widget("napari-ecc", "Threshold")
    model = panel.model

    def leave_noise_out(classes: Any) -> None:
        if classes is not None:
            model.events.classes.disconnect(leave_noise_out)
            model.min_persistence = classes.offer() or 0.0

    model.events.classes.connect(leave_noise_out)
    return panel


def main() -> None:
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
        sys.exit("napari needs a screen: neither DISPLAY nor WAYLAND_DISPLAY is set")
    open_demo(*sys.argv[1:2])
    napari.run()


if __name__ == "__main__":
    main()
