"""Which part of a layer is meant, and layers derived from it that lie where it lies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "PLUGIN_KEY",
    "Selection",
    "as_indexable",
    "index_code",
    "is_lazy",
    "layer_named",
    "levels_of",
    "names_of",
    "placement",
    "problem_with",
    "select",
    "snapshot",
]

PLUGIN_KEY = "napari-ecc"
"""Key in the metadata of layers that the plugin made."""


class Selection(NamedTuple):
    """The plane or volume of a layer that is meant.

    Attributes
    ----------
    levels : tuple of arrays
        The selected part at each resolution, the coarsest first; lazy where the layer's data are.
    axes : tuple of int
        The layer's axes that it keeps.
    where : tuple of (int or slice)
        Indexes the layer's data of full resolution.
    spacing : (d,) float array
        Distance of neighbouring points along `axes` in world units.
    """

    levels: tuple[Any, ...]
    axes: tuple[int, ...]
    where: tuple[Any, ...]
    spacing: Any

    @property
    def full(self) -> Any:
        """The selected part at full resolution."""
        return self.levels[-1]


def layer_named(viewer: Any, name: str) -> Any | None:
    """The layer of this name, or None."""
    return viewer.layers[name] if name and name in viewer.layers else None


def names_of(viewer: Any, *kinds: Any) -> list[str]:
    """Names of the layers of these classes, those that the plugin made left out."""
    return [
        layer.name
        for layer in viewer.layers
        if isinstance(layer, kinds) and PLUGIN_KEY not in layer.metadata
    ]


def problem_with(layer: Any) -> str:
    """Why a layer has no Euler characteristic curve, or ""."""
    if getattr(layer, "rgb", False):
        return (
            f"“{layer.name}” is an RGB image, whose points have no order. Split its channels "
            "(right-click on the layer: Split RGB) and choose one of them."
        )
    if layer.dtype.kind not in "biuf":
        return f"“{layer.name}” must be of real numbers, got {layer.dtype}."
    if layer.ndim < 2:
        return f"“{layer.name}” must have 2 or more axes, got {layer.ndim}."
    return ""


def levels_of(layer: Any) -> list[Any]:
    """A layer's data at each resolution, the finest first."""
    return list(layer.data) if getattr(layer, "multiscale", False) else [layer.data]


def is_lazy(array: Any) -> bool:
    """Whether an array is not in memory as a whole: dask, zarr, HDF5 and the like."""
    return not isinstance(array, np.ndarray) or isinstance(array, np.memmap)


def as_indexable(array: Any) -> Any:
    """The array itself, or a dask array over a store that would load what it is indexed with."""
    if isinstance(array, np.ndarray) or type(array).__module__.startswith("dask"):
        return array
    from dask import array as da

    return da.from_array(array, chunks=getattr(array, "chunks", None) or "auto")


def snapshot(array: Any) -> Any:
    """A copy of an array in memory, for a worker to read while the user paints on the layer.

    A lazy array is returned as it is: what a worker reads of it is a copy.
    """
    return array if is_lazy(array) else array.copy()


def select(viewer: Any, layer: Any, scope: str) -> Selection:
    """The displayed plane of a layer, or its volume.

    Parameters
    ----------
    viewer : napari.viewer.Viewer
    layer : napari Image or Labels layer
        With 2 or more axes, not RGB.
    scope : {"slice", "volume"}
        "slice": the two axes that are displayed, the others at the viewer's current step. "volume":
        the last three axes, or all of a 2-D layer.

    Returns
    -------
    Selection
    """
    levels = levels_of(layer)
    ndim = len(levels[0].shape)
    offset = viewer.dims.ndim - ndim  # layers are aligned at their last axes
    if scope == "slice" and ndim > 2:
        shown = [axis - offset for axis in viewer.dims.displayed[-2:]]
        axes = tuple(sorted(axis for axis in shown if axis >= 0))
        axes = axes if len(axes) == 2 else (ndim - 2, ndim - 1)
    else:
        axes = tuple(range(max(0, ndim - 3), ndim))
    point = layer.world_to_data(viewer.dims.point)
    full_shape = np.array(levels[0].shape)
    parts = []
    for level in reversed(levels):
        factor = np.array(level.shape) / full_shape
        where = np.clip(np.round(np.asarray(point) * factor), 0, np.array(level.shape) - 1)
        index = tuple(slice(None) if axis in axes else int(where[axis]) for axis in range(ndim))
        parts.append(as_indexable(level)[index])
    spacing = np.abs(np.asarray(layer.scale, dtype=float))[list(axes)]
    return Selection(tuple(parts), axes, index, spacing)


def index_code(selection: Selection) -> str:
    """What indexes the layer's data to give the selection, as Python; "" for all of them.

    Examples
    --------
    >>> from napari_ecc._controller.layers import Selection, index_code
    >>> index_code(Selection((), (1, 2), (3, slice(None), slice(None)), None))
    '[3, :, :]'
    """
    parts = [":" if isinstance(at, slice) else str(at) for at in selection.where]
    return "" if set(parts) == {":"} else f"[{', '.join(parts)}]"


def placement(layer: Any) -> dict[str, Any]:
    """Arguments that put a new layer with the axes of `layer` where `layer` is.

    Parameters
    ----------
    layer : napari layer

    Returns
    -------
    dict
        For ``viewer.add_labels`` and the like.
    """
    return {
        "scale": layer.scale,
        "translate": layer.translate,
        "rotate": layer.rotate,
        "shear": layer.shear,
        "affine": layer.affine.affine_matrix,
        "units": layer.units,
        "axis_labels": layer.axis_labels,
    }
