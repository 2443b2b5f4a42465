"""The Euler characteristic of two layers together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ecc_core import EulerSurface
from napari_ecc._controller.channels import surface_job
from napari_ecc._controller.layers import Part, checked_part
from napari_ecc._workers import result

if TYPE_CHECKING:
    from napari.layers import Image, Labels


def layer_surface(
    first: Image | Labels,
    second: Image | Labels,
    *,
    part: Part | None = None,
    thresholds: int = 64,
    superlevel: tuple[bool, bool] = (True, True),
    connectivity: int | None = None,
) -> EulerSurface:
    """Euler characteristic of the points in both of two sets, at every pair of thresholds.

    Parameters
    ----------
    first, second : napari Image or Labels layer
        Of the same shape; the objects of a Labels layer are one set.
    part : tuple of (int or slice) or None, default None
        Of the first layer; as in `layer_curve`.
    thresholds : int, default 64
        Of each layer, evenly spaced over the range of its values; integers of integer images, and
        all of them where they are fewer.
    superlevel : (bool, bool), default (True, True)
        Whether the sets are those of values of at least the threshold.
    connectivity : {1, d} or None, default None
        As in `layer_curve`.

    Returns
    -------
    EulerSurface

    Raises
    ------
    ValueError
        If a layer has no curve, or the layers differ in shape.

    Examples
    --------
    >>> import numpy as np
    >>> from napari.layers import Image
    >>> from napari_ecc import actions
    >>> first, second = Image(np.eye(3), name="a"), Image(np.eye(3)[::-1], name="b")
    >>> actions.layer_surface(first, second, thresholds=2, connectivity=1).values.tolist()
    [[1, 3], [3, 1]]
    """
    job = surface_job(
        first,
        second,
        part=checked_part(first, part),
        thresholds=thresholds,
        superlevel=superlevel,
        connectivity=connectivity,
    )
    surface: EulerSurface = result(job()).values
    return surface
