#!/usr/bin/env bash
# The status of a napari Labels layer with features is an error in three dimensions until the mouse has moved
# there: Labels.get_status turns its default view_direction=None into an array, which is then taken for a direction.
# A viewer shows "len() of unsized object" when such a layer is added while the pointer rests on the canvas.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "napari==0.9.2" "numpy==2.4.6"
NAPARI_CONFIG="$folder/settings.yaml" "$folder/env/bin/python" - <<'PYTHON'
import napari
import numpy as np
from napari.components import ViewerModel
from napari.layers import Labels

print("napari", napari.__version__)
labels = np.zeros((8, 8, 8), np.uint8)
labels[2:6, 2:6, 2:6] = 1
sizes = {"index": [1], "size": [64]}


def error_of(call):
    try:
        call()
    except TypeError as error:
        return str(error)
    return None


for features in (None, sizes):
    layer = Labels(labels, features=features)
    error = error_of(lambda: layer.get_status((4, 4, 4), dims_displayed=[0, 1, 2], world=True))
    print("status of Labels with features", features, "-", error)
    assert error == (features and "len() of unsized object")

for features in (None, sizes):
    viewer = ViewerModel(ndisplay=3)
    viewer.mouse_over_canvas = True  # as the canvas sets when the pointer enters it
    error = error_of(lambda: viewer.add_labels(labels, features=features))
    print("viewer to which Labels with features", features, "are added -", error)
    assert error == (features and "len() of unsized object")
PYTHON
