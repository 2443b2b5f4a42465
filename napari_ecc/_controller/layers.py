"""Parts of layers, the parts of other layers that lie there, and regions of interest."""

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from napari.layers import Image, Labels, Points, Shapes, Surface
from numpy.typing import NDArray

from napari_ecc._controller.places import (
    axis_name,
    check_place,
    data_position,
    distances,
    first_point,
    position_in_view,
)

PLUGIN_KEY = "napari-ecc"
"""Key in the metadata of layers that the plugin made to show something, which no dock offers."""
RESULT_KEY = "napari-ecc result"
"""Key in the metadata of Labels that the plugin made, with the dock: a user may choose them."""
MOST_POINTS = 2**28
"""Largest number of points that are loaded into memory."""
CORNERS = 64
"""Number of corners of the polygon that approximates an ellipse."""
ReadMask = Callable[[], NDArray[np.bool_]]
Part = tuple[int | slice, ...]
"""Indexes a layer's data of full resolution: an integer, or ``slice(None)``, for each axis."""


class Selection(NamedTuple):
    """The selected plane or volume of a layer."""

    levels: tuple[Any, ...]
    """The selected part at each resolution, the coarsest first; lazy where the layer's data are."""
    axes: tuple[int, ...]
    """The axes of the layer that it keeps."""
    where: Part
    """Indexes the layer's data of full resolution."""
    spacing: Any
    """Distance of neighbouring points along `axes` in world units."""
    step: Any
    """The same in points of the layer: 1 at full resolution."""
    problem: str = ""
    """Why lengths across these axes are not known, or ""."""

    @property
    def full(self) -> Any:
        """Return the selected part at the finest resolution that it has."""
        return self.levels[-1]

    def check_lengths(self) -> None:
        """Raise ValueError that says why lengths are not known, if they are not."""
        if self.problem:
            raise ValueError(self.problem)


def names_of(viewer: Any, *kinds: Any) -> list[str]:
    """Return the names of the layers of some classes, except those that only show something."""
    return [
        layer.name
        for layer in viewer.layers
        if isinstance(layer, kinds) and PLUGIN_KEY not in layer.metadata
    ]


def problem_with(layer: Any) -> str:
    """Return why a layer has no Euler characteristic curve, or ""."""
    if not isinstance(layer, Image | Labels):
        kind = type(layer).__name__
        swept = ", which Directions can sweep" if isinstance(layer, Points | Surface) else ""
        return f"`layer` must be an Image or Labels layer, got {kind}{swept}."
    if getattr(layer, "rgb", False):
        return (
            f"“{layer.name}” is an RGB image, whose points have no order. Split its channels "
            "(right-click on the layer: Split RGB) and choose one of them."
        )
    if layer.dtype.kind not in "biuf":
        return (
            f"“{layer.name}” must be of real numbers, got {layer.dtype}. Open one part of it, such "
            "as its absolute value."
        )
    if layer.ndim < 2:
        return f"“{layer.name}” must have 2 or more axes, got {layer.ndim}."
    if not math.prod(levels_of(layer)[0].shape):
        return f"“{layer.name}” has no points. Choose another layer."
    return ""


def levels_of(layer: Any) -> list[Any]:
    """Return a layer's data at each resolution, the finest first."""
    levels = list(layer.data) if getattr(layer, "multiscale", False) else [layer.data]
    return [_without_labels(level) for level in levels]


def _without_labels(array: Any) -> Any:
    """Return the array in one of xarray, of which dask does not know what it is."""
    xarray = sys.modules.get("xarray")
    if xarray is not None and isinstance(array, xarray.DataArray):
        return array.data
    return array


def is_lazy(array: Any) -> bool:
    """Whether an array is not entirely in memory, such as dask, Zarr and HDF5 arrays."""
    return not isinstance(array, np.ndarray) or isinstance(array, np.memmap)


def snapshot(array: Any) -> Any:
    """Return a copy of an array in memory, because the user may paint on the layer.

    A lazy array is returned unchanged: reading from it makes a copy anyway.
    """
    return array if is_lazy(array) else array.copy()


def nearest_point(layer: Any, position: Any) -> list[int]:
    """Return the index of the point of a layer that is nearest to a position in its data."""
    last = np.array(levels_of(layer)[0].shape) - 1
    found: list[int] = np.clip(np.round(position), 0, last).astype(int).tolist()
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
    where = nearest_point(layer, position_in_view(viewer, layer))
    return whole_along(axes, where)


def whole_along(axes: Sequence[int], where: Sequence[int]) -> Part:
    """Return the index of all points along some axes, and of one place along the others."""
    index = [slice(None) if axis in axes else at for axis, at in enumerate(where)]
    return tuple(index)


def checked_part(layer: Any, part: Part | None) -> Part:
    """Return the selected part of a layer, which must have a curve."""
    if problem := problem_with(layer):
        raise ValueError(problem)
    if part is None:
        leading: Part = (0,) * max(0, layer.ndim - 3)
        return (*leading, *(slice(None),) * min(3, layer.ndim))
    if len(part) != layer.ndim:
        raise ValueError(f"`part` must have {layer.ndim} entries, one for each axis, got {part}")
    return tuple(part)


def _as_lazy(array: Any) -> Any:
    """Return an array that is not in memory as a dask array: others are loaded when indexed."""
    from dask import array as da

    if isinstance(array, da.Array):
        return array
    return da.from_array(array, chunks=getattr(array, "chunks", None) or "auto")


def selection_of(layer: Any, part: Part) -> Selection:
    """Return the selection of an index of a layer's data, which has an entry for each axis."""
    levels = levels_of(layer)
    axes = tuple(axis for axis, at in enumerate(part) if isinstance(at, slice))
    full = levels[0].shape
    parts = []
    for level in reversed(levels):
        index = _coarser(part, level.shape, full)
        if not isinstance(level, np.ndarray):
            level = _as_lazy(level)
        parts.append(level[index])
    found = distances(layer, axes)
    return Selection(tuple(parts), axes, part, found.spacing, np.ones(len(axes)), found.problem)


def can_be_held(array: Any) -> bool:
    """Whether an array is in memory, or is small enough to be loaded."""
    return not is_lazy(array) or math.prod(array.shape) <= MOST_POINTS


def fitting_level(selection: Selection, name: str) -> Selection:
    """Return a selection without the resolutions that do not fit in memory.

    A ValueError says, with the name of the layer, that even the coarsest is too large.
    """
    full = np.array(selection.full.shape)
    for count in range(len(selection.levels), 0, -1):
        levels = selection.levels[:count]
        if can_be_held(levels[-1]):
            shape = np.array(levels[-1].shape)
            spacing = selection.spacing * full / shape
            return selection._replace(levels=levels, spacing=spacing, step=full / shape)
    raise ValueError(
        f"“{name}” must have at most {MOST_POINTS:,} points here, as it is not in memory, "
        f"got {describe(selection.full.shape)}. Choose a slice, or crop it."
    )


def describe(shape: tuple[int, ...]) -> str:
    """Format a shape."""
    return " \N{MULTIPLICATION SIGN} ".join(str(n) for n in shape)


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
    """Describe a part of a layer, such as "slice z = 12 / 39", as napari's slider counts."""
    shape = levels_of(layer)[0].shape
    places = [
        f"{axis_name(layer, axis)} = {at} / {shape[axis] - 1}"
        for axis, at in enumerate(part)
        if not isinstance(at, slice)
    ]
    if len(part) - len(places) == 3:
        return ", ".join(["volume", *places])
    return f"slice {', '.join(places)}" if places else "whole image"


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


def region_mask(image: Any, selection: Selection, region: Any) -> ReadMask:
    """Prepare the mask of a region of interest: the inside of shapes, or all labels.

    Shapes go through all planes of a volume. Returns a function that makes the mask of the shape of
    the selection, in any thread; what the user draws afterwards does not change it. A ValueError
    says that a Labels layer has another shape or place than the image, or that there are no shapes.
    """
    shape = tuple(selection.full.shape)
    if not isinstance(region, Shapes | Labels):
        kind = type(region).__name__
        raise ValueError(f"`region` must be a Shapes or Labels layer, got {kind}.")
    if isinstance(region, Shapes):
        polygons = _polygons(image, selection, region)
        if not polygons:
            raise ValueError(f"“{region.name}” has no shapes yet. Draw one.")

        def filled() -> NDArray[np.bool_]:
            from skimage.draw import polygon2mask

            mask = np.zeros(shape[-2:], np.bool_)
            for polygon in polygons:
                mask |= polygon2mask(mask.shape, polygon)
            return np.broadcast_to(mask, shape)

        return filled
    found = corresponding(image, selection, region)
    labels = found.full
    if tuple(labels.shape) != shape:
        raise ValueError(
            f"“{region.name}” must have the shape of “{image.name}” to restrict it, {shape}, "
            f"got {tuple(labels.shape)}."
        )
    check_place(image, selection, region, found, levels_of(region)[0].shape)
    held = snapshot(labels)
    return lambda: np.asarray(held) > 0


def _coarser(part: Part, shape: Sequence[int], full: Sequence[int]) -> Part:
    """Return the index of a part of data of the shape `full` in a coarser level of them."""
    index: list[int | slice] = []
    for at, length, full_length in zip(part, shape, full, strict=True):
        if isinstance(at, slice):
            index.append(at)
        else:
            nearest = round(at * length / full_length)
            index.append(min(nearest, length - 1))
    return tuple(index)


def corresponding(layer: Any, selection: Selection, other: Any) -> Selection:
    """The part of another layer that lies where the selection of a layer does."""
    corner = layer.data_to_world(first_point(selection.where))
    where = nearest_point(other, data_position(other, corner, layer.units))
    missing = layer.ndim - other.ndim  # Layers share their last axes.
    kept = [axis - missing for axis in selection.axes]
    return selection_of(other, whole_along(kept, where))


def matching_level(layer: Any, selection: Selection, level: Selection, other: Any) -> Selection:
    """The part of another layer that lies where the selection of a layer does, at its resolution.

    A ValueError says that it has no curve, another shape, or lies elsewhere.
    """
    if problem := problem_with(other):
        raise ValueError(problem)
    found = values_of(other, corresponding(layer, selection, other))
    shapes = tuple(selection.full.shape), tuple(found.full.shape)
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"“{layer.name}” must have the shape of “{other.name}”, "
            f"{describe(shapes[1])}, got {describe(shapes[0])}."
        )
    check_place(layer, selection, other, found, levels_of(other)[0].shape)
    result = fitting_level(found, other.name)
    if result.full.shape != level.full.shape:
        raise ValueError(f"“{layer.name}” and “{other.name}” must have the same levels.")
    return result


def _polygons(image: Any, selection: Selection, shapes: Any) -> list[NDArray[np.float64]]:
    """Corners of the shapes in points of the last two selected axes."""
    result = []
    for corners, kind in zip(shapes.data, shapes.shape_type, strict=True):
        if kind in ("line", "path") or len(corners) < 3:
            continue
        outline = np.asarray(corners)
        if kind == "ellipse":  # The corners are those of the box around it.
            along = (outline[1] - outline[0]) / 2
            across = (outline[3] - outline[0]) / 2
            angle = np.linspace(0, 2 * np.pi, CORNERS, endpoint=False)[:, None]
            outline = outline.mean(axis=0) + np.cos(angle) * along + np.sin(angle) * across
        world = [shapes.data_to_world(corner) for corner in outline]
        points = np.array([data_position(image, at, shapes.units) for at in world])
        result.append(points[:, list(selection.axes[-2:])])
    return result
