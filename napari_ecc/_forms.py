"""The actions as commands with forms that ask for layers, options and a file."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from magicgui import magic_factory
from napari import Viewer
from napari.layers import Image, Labels
from napari.utils.notifications import show_info
from numpy.typing import ArrayLike

from napari_ecc import actions
from napari_ecc._controller.output import long_columns, transform_columns, write_columns
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

NEIGHBOURS = [("Diagonals", None), ("Sides only", 1)]
FILE_TIP = "A file of the suffix .csv or .parquet"
SAVED = {"mode": "w", "filter": "*.csv *.parquet", "label": "save as", "tooltip": FILE_TIP}
File = Annotated[Path, SAVED]
Axis = Annotated[int, {"tooltip": "The axis that the frames follow one another along"}]
Pattern = Annotated[str, {"tooltip": "A regular expression for the names of layers"}]
Count = Annotated[int, {"min": 2, "max": 65536}]
Directions = Annotated[int, {"min": 1, "max": 4096}]
Real = Annotated[float, {"min": -1e300, "max": 1e300}]
Connectivity = Annotated[int | None, {"choices": NEIGHBOURS, "nullable": True}]

SETS = {"superlevel": (bool, True), "connectivity": (Connectivity, None)}
CURVE = {"thresholds": (Count, 256), **SETS, "smoothing": (float, 0.0)}


def _form(button: str, **options: tuple[Any, Any]) -> Callable[[Callable[..., None]], Any]:
    """Make a form of a function.

    Parameters
    ----------
    button : str
        Text of the button that calls the function.
    **options : (type, default)
        Keyword arguments that the function passes on to one of the actions.
    """

    def make(function: Callable[..., None]) -> Any:
        signature = inspect.signature(function)
        own = [at for at in signature.parameters.values() if at.kind != at.VAR_KEYWORD]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=value)
            for name, (kind, value) in options.items()
        ]
        whole = signature.replace(parameters=[*own, *more])
        function.__signature__ = whole  # type: ignore[attr-defined]
        return magic_factory(function, call_button=button)

    return make


@_form("Save", **CURVE)
def save_curve(layer: Image, path: File, **options: Any) -> None:
    """Save the Euler characteristic curve of a layer, of its last three axes."""
    t, chi = actions.layer_curve(layer, **options)
    _save(path, {"threshold": t, "euler_characteristic": chi}, layer=layer.name)


@_form("Save", **CURVE)
def save_layer_table(viewer: Viewer, path: File, **options: Any) -> None:
    """Save a table with a row for each selected layer: descriptors and values of its curve."""
    table = actions.curve_table(actions.layer_curves(_selected_images(viewer), **options))
    _save(path, {str(name): table[name].to_numpy() for name in table})


@_form("Save", axis=(Axis, 0), thresholds=(Count, 128), **SETS)
def save_frames(layer: Image, path: File, **options: Any) -> None:
    """Save the Euler characteristic curve of every frame of a layer, planes of its last axes."""
    t, chi = actions.frame_curves(layer, **options)
    _save(path, long_columns({"frame": np.arange(len(chi))}, "threshold", t, chi), layer=layer.name)


@_form("Save", directions=(Directions, 64), heights=(Count, 128), **SETS)
def save_transform(layer: Image, path: File, threshold: Real, **options: Any) -> None:
    """Save the directional curves of the set at a threshold, of the last three axes of a layer."""
    transform = actions.layer_transform(layer, threshold=threshold, **options)
    facts = {"threshold": f"{threshold:g}", "unit of lengths": transform.units or ""}
    _save(path, transform_columns(transform, "height"), layer=layer.name, **facts)


@_form("Compare", **CURVE)
def compare_layers(
    viewer: Viewer, path: File, groups: Pattern = "control|drug", **options: Any
) -> None:
    """Compare groups of the selected layers, and save the mean and band of each."""
    found = actions.compare_groups(
        actions.layer_curves(_selected_images(viewer), **options), groups
    )
    sizes = [len(band.thresholds) for band in found.bands.values()]
    columns = {"group": np.repeat(list(found.bands), sizes)}
    for k, name in enumerate(("threshold", "mean", "lower", "upper")):
        columns[name] = np.concatenate([band[k] for band in found.bands.values()])
    _save(path, columns, groups=groups, result=found.in_words())


@_form("Measure", thresholds=(Count, 32), directions=(int, 8), heights=(int, 16), **SETS)
def measure_regions(viewer: Viewer, labels: Labels, image: Image, **options: Any) -> None:
    """Add curves and transforms of the objects of a Labels layer to its features."""
    table = actions.region_table(labels, image, **options)
    columns = {str(name): table[name].to_numpy() for name in table if name != "index"}
    features = merged(labels.features, table["index"], columns)
    session_of(viewer).history.change_features(labels, features)


def _save(path: Path, columns: Mapping[str, ArrayLike], **facts: str) -> None:
    write_columns(str(path), columns, facts)
    result = f"{facts['result']}. " if "result" in facts else ""
    show_info(f"{result}Saved {path}")


def _selected_images(viewer: Viewer) -> list[Image]:
    layers = [at for at in viewer.layers if at in viewer.layers.selection and isinstance(at, Image)]
    if not layers:
        raise ValueError("Select one or more Image layers.")
    return layers
