"""Commands for the command palette: of the Euler explorer, and the actions with forms."""

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
from qtpy.QtWidgets import QApplication

from napari_ecc import actions
from napari_ecc._controller.explorer import ExplorerController
from napari_ecc._controller.measuring import merged
from napari_ecc._controller.output import long_columns, transform_columns, write_columns
from napari_ecc._controller.session import session_of

__all__ = [
    "compare_layers",
    "copy_python",
    "make_labels",
    "measure_regions",
    "next_birth",
    "next_merge",
    "save_curve",
    "save_frames",
    "save_layer_table",
    "save_transform",
    "toggle_changes",
    "undo",
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


def _explorer(viewer: Viewer) -> ExplorerController:
    """Return the controller of the Euler explorer, which is opened if necessary."""
    found: ExplorerController | None = session_of(viewer).controllers.get("explorer")
    if found is None:
        _, panel = viewer.window.add_plugin_dock_widget("napari-ecc", "Euler explorer")
        found = panel.controller
    return found


def make_labels(viewer: Viewer) -> None:
    """Add a Labels layer of the components of the set at the threshold."""
    _explorer(viewer).make_labels()


def next_merge(viewer: Viewer) -> None:
    """Move the threshold up to the next one at which components merge."""
    _explorer(viewer).jump("merge", 1)


def next_birth(viewer: Viewer) -> None:
    """Move the threshold up to the next one at which a component is born."""
    _explorer(viewer).jump("birth", 1)


def toggle_changes(viewer: Viewer) -> None:
    """Show or hide the critical points near the threshold."""
    model = _explorer(viewer).model
    model.show_changes = not model.show_changes


def copy_python(viewer: Viewer) -> None:
    """Copy the code of the curve to the clipboard."""
    QApplication.clipboard().setText(_explorer(viewer).python_call())


def undo(viewer: Viewer) -> None:
    """Undo the last change that the plugin made to layers."""
    session_of(viewer).history.undo()


def _form(
    title: str, button: str, **options: tuple[Any, Any]
) -> Callable[[Callable[..., None]], Callable[[Viewer], None]]:
    """Make a command of a function: it opens a dock with a form of the parameters.

    `button` is the text of the button that calls the function. `options`, by type and default, are
    keyword arguments that the function passes on to one of the actions.
    """

    def make(function: Callable[..., None]) -> Callable[[Viewer], None]:
        signature = inspect.signature(function)
        own = [at for at in signature.parameters.values() if at.kind != at.VAR_KEYWORD]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=value)
            for name, (kind, value) in options.items()
        ]
        whole = signature.replace(parameters=[*own, *more])
        function.__signature__ = whole  # type: ignore[attr-defined]
        form = magic_factory(function, call_button=button)

        def open_form(viewer: Viewer) -> None:
            viewer.window.add_dock_widget(form(), name=title)

        return open_form

    return make


@_form("Save an Euler curve", "Save", **CURVE)
def save_curve(layer: Image, path: File, **options: Any) -> None:
    """Save the Euler characteristic curve of a layer, of its last three axes."""
    t, chi = actions.layer_curve(layer, **options)
    _save(path, {"threshold": t, "euler_characteristic": chi}, layer=layer.name)


@_form("Save a table of layers", "Save", **CURVE)
def save_layer_table(viewer: Viewer, path: File, **options: Any) -> None:
    """Save a table with a row for each selected layer: descriptors and values of its curve."""
    table = actions.curve_table(actions.layer_curves(_selected_images(viewer), **options))
    _save(path, {str(name): table[name].to_numpy() for name in table})


@_form("Save the curves of frames", "Save", axis=(Axis, 0), thresholds=(Count, 128), **SETS)
def save_frames(layer: Image, path: File, **options: Any) -> None:
    """Save the Euler characteristic curve of every frame of a layer, planes of its last axes."""
    t, chi = actions.frame_curves(layer, **options)
    _save(path, long_columns({"frame": np.arange(len(chi))}, "threshold", t, chi), layer=layer.name)


@_form(
    "Save directional Euler curves",
    "Save",
    directions=(Directions, 64),
    heights=(Count, 128),
    **SETS,
)
def save_transform(layer: Image, path: File, threshold: Real, **options: Any) -> None:
    """Save the directional curves of the set at a threshold, of the last three axes of a layer."""
    transform = actions.layer_transform(layer, threshold=threshold, **options)
    facts = {"threshold": f"{threshold:g}", "unit of lengths": transform.units or ""}
    _save(path, transform_columns(transform, "height"), layer=layer.name, **facts)


@_form("Compare layers", "Compare", **CURVE)
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


@_form(
    "Measure regions",
    "Measure",
    thresholds=(Count, 32),
    directions=(int, 8),
    heights=(int, 16),
    **SETS,
)
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
