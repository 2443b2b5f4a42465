"""The computations of the docks as functions of layers, for scripts and napari's commands.

Each takes layers as they are in the viewer and computes at once. *Copy Python* in a dock writes the
call that gives what the dock shows.
"""

from napari_ecc._controller.curves import curve_table
from napari_ecc._model.compare import compare_groups
from napari_ecc.actions.frames import follow_components, frame_betti_curves, frame_curves
from napari_ecc.actions.layer_pairs import (
    layer_surface,
    match_labels,
    object_curves,
    region_table,
)
from napari_ecc.actions.layers import (
    all_frames,
    folder_curves,
    layer_betti_curves,
    layer_curve,
    layer_curves,
    layer_transform,
)
from napari_ecc.actions.shapes import shape_transform

__all__ = [
    "all_frames",
    "compare_groups",
    "curve_table",
    "folder_curves",
    "follow_components",
    "frame_betti_curves",
    "frame_curves",
    "layer_betti_curves",
    "layer_curve",
    "layer_curves",
    "layer_surface",
    "layer_transform",
    "match_labels",
    "object_curves",
    "region_table",
    "shape_transform",
]
