"""Open napari with a sample image and the Euler explorer.

Drag the line in the plot. With an argument, `vessels` or `drops`, another sample is opened:

    python examples/napari_demo.py vessels
"""

import os
import sys

import napari


def main() -> None:
    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
        sys.exit("napari needs a screen: neither DISPLAY nor WAYLAND_DISPLAY is set")
    viewer = napari.Viewer(title="Euler characteristic")
    viewer.open_sample("napari-ecc", sys.argv[1] if len(sys.argv) > 1 else "coins")
    viewer.window.add_plugin_dock_widget("napari-ecc", "Euler explorer")
    napari.run()


if __name__ == "__main__":
    main()
