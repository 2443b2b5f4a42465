#!/usr/bin/env bash
# A maximum projection of vispy, with which napari draws volumes, can leave out a bright plane of a volume: with nearest
# interpolation the ray finds the maximum at a place that it has reached by adding steps, and then reads the colour
# at `start + step * number`, which float32 rounds into the voxel before. Came with colour volumes, vispy pull request
# 2758. Needs xvfb-run; drawn by Mesa's llvmpipe.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "vispy==0.17.0" "PyQt6==6.11.0" "PyOpenGL==3.1.10" \
    "numpy==2.4.6"
export LIBGL_ALWAYS_SOFTWARE=1
xvfb-run -a -s "-screen 0 800x600x24" "$folder/env/bin/python" - <<'PYTHON'
import numpy as np
import vispy
from vispy import app, scene

print("vispy", vispy.__version__)
app.use_app("pyqt6")
SIDE = 20
STEPS = 25  # of a ray along an axis: steps of 0.8 voxels


def bright_pixels(volume, method):
    """Number of white pixels of a projection along the second axis."""
    canvas = scene.SceneCanvas(size=(80, 80), show=False, bgcolor="black")
    view = canvas.central_widget.add_view()
    scene.visuals.Volume(
        volume,
        parent=view.scene,
        method=method,
        interpolation="nearest",
        clim=(0, 1),
        cmap="grays",
        relative_step_size=SIDE / STEPS,
    )
    middle = ((SIDE - 1) / 2,) * 3
    view.camera = scene.cameras.ArcballCamera(fov=0, scale_factor=1.2 * SIDE, center=middle)
    picture = canvas.render()[..., 0]
    canvas.close()
    return int(np.count_nonzero(picture > 200))


missing = []
for place in range(SIDE):
    volume = np.zeros((SIDE,) * 3, np.float32)
    volume[:, place] = 1
    counts = {method: bright_pixels(volume, method) for method in ("mip", "attenuated_mip")}
    print(f"plane {place} is 1, all else 0: white pixels {counts}")
    assert counts["attenuated_mip"] > 4000
    if counts["mip"] == 0:
        missing.append(place)
print("planes that the maximum projection leaves out:", missing)
assert missing == [16]

step = np.float32(1) / np.float32(STEPS)
added = np.float32(0)
for _ in range(20):
    added += step
multiplied = step * np.float32(20)
print("after 20 steps, in voxels: added", float(added) * SIDE, "multiplied", float(multiplied) * SIDE)
assert multiplied < added
assert int(added * np.float32(SIDE)) == 16
PYTHON
