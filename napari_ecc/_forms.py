"""The actions as commands with forms that ask for layers, options and a file."""

from pathlib import Path
from typing import Annotated

import numpy as np
from magicgui import magic_factory
from napari import Viewer
from napari.layers import Image, Labels
from napari.utils.notifications import show_info

from napari_ecc import actions
from napari_ecc._controller.direction_output import transform_columns
from napari_ecc._controller.history import change_features
from napari_ecc._controller.output import write_columns
from napari_ecc._controller.region_features import merged
from napari_ecc._controller.session import session_of

__all__ = [
    "compare_layers",
    "measure_regions",
    "save_curve",
    "save_frames",
    "save_layer_table",
    "save_transform",
]

FILE = {"mode": "w", "filter": "*.csv *.parquet", "label": "save as"}
COUNT = {"min": 2, "max": 65536}
DIRECTIONS = {"min": 1, "max": 4096}
REAL = {"min": -1e300, "max": 1e300}
NEIGHBOURS = [("Diagonals", None), ("Sides only", 1)]
Connectivity = Annotated[int | None, {"choices": NEIGHBOURS, "nullable": True}]


@magic_factory(call_button="Save", path=FILE, thresholds=COUNT)
def save_curve(
    layer: Image,
    path: Path,
    thresholds: int = 256,
    superlevel: bool = True,
    connectivity: Connectivity = None,
    smoothing: float = 0.0,
) -> None:
    """Save the Euler characteristic curve of a layer, of its last three axes.

    Parameters
    ----------
    layer : napari Image layer
    path : Path
        A file of the suffix .csv or .parquet.
    thresholds, superlevel, connectivity, smoothing
        As in `napari_ecc.actions.layer_curve`.
    """
    t, chi = actions.layer_curve(
        layer,
        thresholds=thresholds,
        superlevel=superlevel,
        connectivity=connectivity,
        smoothing=smoothing,
    )
    write_columns(str(path), {"threshold": t, "euler_characteristic": chi}, {"layer": layer.name})
    show_info(f"Saved {path}")


@magic_factory(call_button="Save", path=FILE, thresholds=COUNT)
def save_layer_table(
    viewer: Viewer,
    path: Path,
    thresholds: int = 256,
    superlevel: bool = True,
    connectivity: Connectivity = None,
    smoothing: float = 0.0,
) -> None:
    """Save a table with a row for each selected layer: descriptors and values of its curve.

    Parameters
    ----------
    viewer : napari.Viewer
    path : Path
        A file of the suffix .csv or .parquet.
    thresholds, superlevel, connectivity, smoothing
        As in `save_curve`.

    Raises
    ------
    ValueError
        If no Image layer is selected.
    """
    curves = actions.layer_curves(
        _selected_images(viewer),
        thresholds=thresholds,
        superlevel=superlevel,
        connectivity=connectivity,
        smoothing=smoothing,
    )
    table = actions.curve_table(curves)
    write_columns(str(path), {str(name): table[name].to_numpy() for name in table})
    show_info(f"Saved {path}")


@magic_factory(call_button="Save", path=FILE, thresholds=COUNT)
def save_frames(
    layer: Image,
    path: Path,
    axis: int = 0,
    thresholds: int = 128,
    superlevel: bool = True,
    connectivity: Connectivity = None,
) -> None:
    """Save the Euler characteristic curve of every frame of a layer.

    Parameters
    ----------
    layer : napari Image layer
        Its frames are planes of the last two axes.
    path : Path
        A file of the suffix .csv or .parquet.
    axis : int, default 0
        The axis that the frames follow one another along.
    thresholds, superlevel, connectivity
        As in `save_curve`.
    """
    t, chi = actions.frame_curves(
        layer,
        axis=axis,
        thresholds=thresholds,
        superlevel=superlevel,
        connectivity=connectivity,
    )
    columns = {
        "frame": np.repeat(np.arange(len(chi)), t.size),
        "threshold": np.tile(t, len(chi)),
        "euler_characteristic": chi.ravel(),
    }
    write_columns(str(path), columns, {"layer": layer.name})
    show_info(f"Saved {path}")


@magic_factory(call_button="Save", path=FILE, directions=DIRECTIONS, heights=COUNT, threshold=REAL)
def save_transform(
    layer: Image,
    path: Path,
    threshold: float,
    directions: int = 64,
    heights: int = 128,
    superlevel: bool = True,
    connectivity: Connectivity = None,
) -> None:
    """Save the directional curves of the set at a threshold, of the last three axes of a layer.

    Parameters
    ----------
    layer : napari Image layer
    path : Path
        A file of the suffix .csv or .parquet.
    threshold : float
        Of the set.
    directions, heights
        As in `napari_ecc.actions.layer_transform`.
    superlevel, connectivity
        As in `save_curve`.
    """
    transform = actions.layer_transform(
        layer,
        directions,
        heights,
        threshold=threshold,
        superlevel=superlevel,
        connectivity=connectivity,
    )
    unit = transform.units or ""
    facts = {"layer": layer.name, "threshold": f"{threshold:g}", "unit of lengths": unit}
    write_columns(str(path), transform_columns(transform, "height"), facts)
    show_info(f"Saved {path}")


@magic_factory(call_button="Compare", path=FILE, thresholds=COUNT)
def compare_layers(
    viewer: Viewer,
    path: Path,
    groups: str = "control|drug",
    thresholds: int = 256,
    superlevel: bool = True,
    connectivity: Connectivity = None,
    smoothing: float = 0.0,
) -> None:
    """Compare groups of the selected layers, and save the mean and band of each.

    Parameters
    ----------
    viewer : napari.Viewer
    path : Path
        A file of the suffix .csv or .parquet.
    groups : str
        A regular expression for the names of layers.
    thresholds, superlevel, connectivity, smoothing
        As in `save_curve`.

    Raises
    ------
    ValueError
        If no Image layer is selected.
    """
    curves = actions.layer_curves(
        _selected_images(viewer),
        thresholds=thresholds,
        superlevel=superlevel,
        connectivity=connectivity,
        smoothing=smoothing,
    )
    found = actions.compare_groups(curves, groups)
    sizes = [len(band.thresholds) for band in found.bands.values()]
    columns = {"group": np.repeat(list(found.bands), sizes)}
    for k, name in enumerate(("threshold", "mean", "lower", "upper")):
        columns[name] = np.concatenate([band[k] for band in found.bands.values()])
    write_columns(str(path), columns, {"groups": groups, "result": found.in_words()})
    show_info(f"{found.in_words()}. Saved {path}")


@magic_factory(call_button="Measure", thresholds=COUNT)
def measure_regions(
    viewer: Viewer,
    labels: Labels,
    image: Image,
    thresholds: int = 32,
    directions: int = 8,
    heights: int = 16,
    superlevel: bool = True,
    connectivity: Connectivity = None,
) -> None:
    """Add curves and transforms of the objects of a Labels layer to its features.

    Parameters
    ----------
    viewer : napari.Viewer
    labels : napari Labels layer
    image : napari Image layer
        Of the same shape.
    thresholds, directions, heights
        As in `napari_ecc.actions.region_table`.
    superlevel, connectivity
        As in `save_curve`.
    """
    table = actions.region_table(
        labels,
        image,
        thresholds=thresholds,
        directions=directions,
        heights=heights,
        superlevel=superlevel,
        connectivity=connectivity,
    )
    columns = {str(name): table[name].to_numpy() for name in table if name != "index"}
    features = merged(labels.features, table["index"], columns)
    change_features(session_of(viewer).history, labels, features)


def _selected_images(viewer: Viewer) -> list[Image]:
    layers = [at for at in viewer.layers if at in viewer.layers.selection and isinstance(at, Image)]
    if not layers:
        raise ValueError("Select one or more Image layers.")
    return layers
