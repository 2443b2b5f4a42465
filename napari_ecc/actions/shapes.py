"""Transforms of surfaces and points."""

import numpy as np
from napari.layers import Points, Surface
from numpy.typing import ArrayLike

from ecc_core import EulerTransform
from napari_ecc._controller.shapes import shape_curves, shape_of
from napari_ecc._model.directions import circle


def shape_transform(
    layer: Surface | Points,
    directions: int | ArrayLike = 64,
    heights: int = 128,
    *,
    elevation: float = 0.0,
) -> EulerTransform:
    """Euler characteristic curves of a surface or of points along directions, in world units.

    Parameters
    ----------
    layer : napari Surface or Points layer
        A layer of 2 or 3 axes. The edges of the triangles of a surface are added, and all its
        vertices are in the complex.
    directions : int or (k, d) array, default 64
        Unit vectors; or how many, evenly spaced, of one elevation.
    heights : int, default 128
        Their number, between the least and the greatest height of any direction, from the middle of
        the box of all points.
    elevation : float, default 0
        See `layer_transform`.

    Returns
    -------
    EulerTransform
        See `ecc_core.simplicial_transform`.

    Raises
    ------
    ValueError
        If the layer has other than 2 or 3 axes, no points, or coordinates that are not finite.

    Examples
    --------
    >>> from napari.layers import Points
    >>> from napari_ecc import actions
    >>> actions.shape_transform(Points([[0, 0], [0, 2]]), [[0.0, 1.0]], 3).values.tolist()
    [[1, 1, 2]]
    """
    shape = shape_of(layer)
    if isinstance(directions, int):
        directions = circle(directions, elevation, shape.points.shape[1])
    return shape_curves(shape, np.asarray(directions, dtype=np.float64), heights)
