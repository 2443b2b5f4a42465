"""Parts of layers, and layers that are aligned with others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from napari.layers import Labels

PLUGIN_KEY = "napari-ecc"
"""Key in the metadata of layers that the plugin made."""


Part = tuple[int | slice, ...]
"""Indexes a layer's data of full resolution: an integer, or ``slice(None)``, for each axis."""


class Selection(NamedTuple):
    """The selected plane or volume of a layer."""

    levels: tuple[Any, ...]
    """The selected part at each resolution, the coarsest first; lazy where the layer's data are."""
    axes: tuple[int, ...]  # the layer's axes that it keeps
    where: Part  # indexes the layer's data of full resolution
    spacing: Any  # distance of neighbouring points along `axes` in world units
    step: Any  # the same in points of the layer: 1 at full resolution

    @property
    def full(self) -> Any:
        """Return the selected part at the finest resolution that it has."""
        return self.levels[-1]


def names_of(viewer: Any, *kinds: Any) -> list[str]:
    """Return the names of the layers of some classes, except those made by the plugin."""
    return [
        layer.name
        for layer in viewer.layers
        if isinstance(layer, kinds) and PLUGIN_KEY not in layer.metadata
    ]


def problem_with(layer: Any) -> str:
    """Return why a layer has no Euler characteristic curve, or ""."""
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
    """Return a layer's data at each resolution, the finest first."""
    return list(layer.data) if getattr(layer, "multiscale", False) else [layer.data]


def is_lazy(array: Any) -> bool:
    """Whether an array is not entirely in memory, such as dask, Zarr and HDF5 arrays."""
    return not isinstance(array, np.ndarray) or isinstance(array, np.memmap)


def as_indexable(array: Any) -> Any:
    """Return the array, or a dask array of a store that loads data when it is indexed."""
    if isinstance(array, np.ndarray):
        return array
    from dask import array as da

    if isinstance(array, da.Array):
        return array
    return da.from_array(array, chunks=getattr(array, "chunks", None) or "auto")


def snapshot(array: Any) -> Any:
    """Return a copy of an array in memory, because the user may paint on the layer.

    A lazy array is returned unchanged: reading from it makes a copy anyway.
    """
    return array if is_lazy(array) else array.copy()


def nearest_point(layer: Any, world: Any) -> list[int]:
    """Return the index of the point of a layer that is nearest to a place in the world."""
    last = np.array(levels_of(layer)[0].shape) - 1
    point = np.round(np.asarray(layer.world_to_data(world), dtype=float))
    found: list[int] = np.clip(point, 0, last).astype(int).tolist()
    return found


def shown_axes(viewer: Any, layer: Any) -> list[int]:
    """Return the displayed axes of the viewer that a layer has; layers share their last axes."""
    missing = layer.ndim - viewer.dims.ndim
    return [axis + missing for axis in viewer.dims.displayed if axis + missing >= 0]


def part_of(viewer: Any, layer: Any, scope: str) -> Part:
    """Return the displayed plane of a layer, or its volume, as an index of the layer's data.

    A `scope` of "slice" means the two axes that are displayed, the others at the viewer's current
    step; "volume" the last three axes, or all of a 2-D layer.
    """
    shape = levels_of(layer)[0].shape
    ndim = len(shape)
    if scope == "slice" and ndim > 2:
        axes = tuple(sorted(shown_axes(viewer, layer)[-2:]))
        axes = axes if len(axes) == 2 else (ndim - 2, ndim - 1)
    else:
        axes = tuple(range(max(0, ndim - 3), ndim))
    where = nearest_point(layer, viewer.dims.point)
    return tuple(slice(None) if axis in axes else where[axis] for axis in range(ndim))


def checked_part(layer: Any, part: Part | None) -> Part:
    """Return the selected part of a layer, which must have a curve."""
    problem = problem_with(layer)
    if problem:
        raise ValueError(problem)
    if part is None:
        leading: Part = (0,) * max(0, layer.ndim - 3)
        return (*leading, *(slice(None),) * min(3, layer.ndim))
    if len(part) != layer.ndim:
        raise ValueError(f"`part` must have {layer.ndim} entries, one for each axis, got {part}")
    return tuple(part)


def selection_of(layer: Any, part: Part) -> Selection:
    """Return the selection of an index of a layer's data, which has an entry for each axis."""
    levels = levels_of(layer)
    axes = tuple(axis for axis, at in enumerate(part) if isinstance(at, slice))
    full = levels[0].shape
    parts = []
    for level in reversed(levels):
        index = tuple(
            at if isinstance(at, slice) else min(round(at * length / of), length - 1)
            for at, length, of in zip(part, level.shape, full, strict=True)
        )
        parts.append(as_indexable(level)[index])
    spacing = np.abs(np.asarray(layer.scale, dtype=float))[list(axes)]
    return Selection(tuple(parts), axes, part, spacing, np.ones(len(axes)))


def unit_of(layer: Any, part: Part) -> str:
    """Return the unit of lengths along the axes of a part; those of several, if they differ."""
    units = [str(unit) for unit, at in zip(layer.units, part, strict=True) if isinstance(at, slice)]
    return ", ".join(dict.fromkeys(units))


def values_of(layer: Any, selection: Selection) -> Selection:
    """Return the selected values of an image; for a Labels layer, whether there is a label."""
    if not isinstance(layer, Labels):
        return selection
    return selection._replace(levels=tuple(level != 0 for level in selection.levels))


def contrast_limits(layer: Any) -> tuple[float, float]:
    """Return the contrast limits of an image, or 0 and 1 for a Labels layer."""
    low, high = (0, 1) if isinstance(layer, Labels) else layer.contrast_limits
    return float(low), float(high)


def part_in_words(layer: Any, part: Part) -> str:
    """Describe a part of a layer, such as "slice z = 12 of 40" or "volume, t = 3 of 20"."""
    shape = levels_of(layer)[0].shape
    places = [
        f"{axis_name(layer, axis)} = {at} of {shape[axis]}"
        for axis, at in enumerate(part)
        if not isinstance(at, slice)
    ]
    if len(part) - len(places) == 3:
        return ", ".join(["volume", *places])
    return f"slice {', '.join(places)}" if places else "whole image"


def axis_name(layer: Any, axis: int) -> str:
    """Return the name of an axis, or its number if it has no name."""
    name = str(layer.axis_labels[axis])
    return name if name[:1].isalpha() else f"axis {axis}"


def placement(layer: Any) -> dict[str, Any]:
    """Return arguments of a new layer, such as its scale, that align it with `layer`."""
    return {
        "scale": layer.scale,
        "translate": layer.translate,
        "rotate": layer.rotate,
        "shear": layer.shear,
        "affine": layer.affine.affine_matrix,
        "units": layer.units,
        "axis_labels": layer.axis_labels,
    }
