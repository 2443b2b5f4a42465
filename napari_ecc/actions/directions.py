"""Directional curves of layers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ecc_core import EulerTransform
from napari_ecc._controller.direction_sweep import Sweep, Swept, curves_along
from napari_ecc._controller.layers import (
    Part,
    checked_part,
    fitting_level,
    selection_of,
    unit_of,
    values_of,
)
from napari_ecc._model.directions import circle

if TYPE_CHECKING:
    from napari.layers import Image, Labels


def layer_transform(
    layer: Image | Labels,
    directions: int | ArrayLike = 64,
    heights: int = 128,
    *,
    part: Part | None = None,
    elevation: float = 0.0,
    threshold: float | None = None,
    slope: float | None = None,
    superlevel: bool = True,
    connectivity: int | None = None,
) -> EulerTransform:
    """Directional Euler characteristic curves of a layer, in world units.

    Parameters
    ----------
    layer : napari Image or Labels layer
    directions : int or (k, d) array, default 64
        Unit vectors; or how many, evenly spaced, of one elevation.
    heights : int, default 128
        Number of heights, or of thresholds with `slope`.
    part : tuple of (int or slice) or None, default None
        As in `layer_curve`.
    elevation : float, default 0
        Degrees from the plane of the last two axes towards the axis before, where `directions` is
        a number and the part is a volume.
    threshold : float or None, default None
        The set at this threshold is swept along each direction.
    slope : float or None, default None
        Instead of that, a plane that rises by this much a world unit is added to the image.
    superlevel, connectivity
        As in `layer_curve`.

    Returns
    -------
    EulerTransform
        With the layer's unit as the `units` of heights.

    Raises
    ------
    ValueError
        If the layer has no curve, or unless one of `threshold` and `slope` is given.
    """
    if (threshold is None) == (slope is None):
        raise ValueError(
            f"one of `threshold` and `slope` must be given, got {threshold} and {slope}"
        )
    selection = values_of(layer, selection_of(layer, checked_part(layer, part)))
    ndim = len(selection.axes)
    if isinstance(directions, int):
        directions = circle(directions, elevation, ndim)
    sweep = Sweep(
        version=0,
        selection=selection,
        level=fitting_level(selection, layer.name),
        threshold=threshold,
        slope=slope,
        superlevel=superlevel,
        connectivity=connectivity,
        n_heights=heights,
    )
    swept = Swept(np.asarray(sweep.level.full))
    found = curves_along(sweep, swept, np.asarray(directions, dtype=np.float64))
    return found if slope is not None else replace(found, units=unit_of(layer, selection.where))
