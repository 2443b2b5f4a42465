"""What the docks compute, as functions of layers: for scripts, and for napari's commands.

Each takes layers as they are in the viewer and computes at once. *Copy Python* in a dock writes the
call that gives what the dock shows.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ecc_core import BettiCurves, EulerCurve, EulerTransform
from napari_ecc._controller.betti import count_all
from napari_ecc._controller.compare import curve_table, frames_of
from napari_ecc._controller.curves import Request, compute_curve, request_of, result_of
from napari_ecc._controller.direction_sweep import Cache, Sweep, curves_along
from napari_ecc._controller.layers import (
    Part,
    as_indexable,
    contrast_limits,
    levels_of,
    problem_with,
    selection_of,
    values_of,
)
from napari_ecc._controller.loading import can_be_held, fitting_level
from napari_ecc._controller.measuring import measure, measure_of
from napari_ecc._controller.series import Frames, compute_frames
from napari_ecc._model.compare import compare_groups
from napari_ecc._model.directions import circle
from napari_ecc._workers import Step

if TYPE_CHECKING:
    import pandas as pd
    from napari.layers import Image, Labels, Shapes

__all__ = [
    "all_frames",
    "compare_groups",
    "curve_table",
    "frame_curves",
    "layer_betti_curves",
    "layer_curve",
    "layer_curves",
    "layer_transform",
    "region_table",
]


class CurveOptions(TypedDict, total=False):
    """Of the curves of several layers or frames, as in `layer_curve`."""

    thresholds: int
    range: tuple[float, float] | None
    connectivity: int | None
    superlevel: bool
    smoothing: float


def layer_curve(
    layer: Image | Labels,
    *,
    part: Part | None = None,
    region: Shapes | Labels | None = None,
    thresholds: int = 256,
    range: tuple[float, float] | None = None,
    connectivity: int | None = None,
    superlevel: bool = True,
    smoothing: float = 0.0,
) -> EulerCurve:
    """Euler characteristic curve of a layer.

    Parameters
    ----------
    layer : napari Image or Labels layer
        Of a Labels layer all objects together are the set. Data that are not in memory are read
        block by block.
    part : tuple of (int or slice) or None, default None
        Index of the part that is meant, such as ``np.s_[3, :, :]``, where slices keep a whole axis.
        None: the last three axes, at index 0 of those before.
    region : napari Shapes or Labels layer or None, default None
        Points outside are left out.
    thresholds : int, default 256
        Their number. An integer image with fewer values has a threshold at each of its values.
    range : (float, float) or None, default None
        First and last threshold; None: the least and the greatest value, of data that are not in
        memory the range of the layer's contrast limits.
    connectivity : {1, d} or None, default None
        1: 4 or 6 neighbours; d, the default: 8 or 26.
    superlevel : bool, default True
        Sets of values of at least t instead of at most t.
    smoothing : float, default 0
        Standard deviation of a Gaussian filter, in sides of the smallest pixel.

    Returns
    -------
    EulerCurve

    Raises
    ------
    ValueError
        If the layer has no curve (RGB, complex), or the region does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from napari.layers import Image
    >>> from napari_ecc import actions
    >>> t, chi = actions.layer_curve(Image(np.eye(3, dtype=np.uint8)), connectivity=1)
    >>> chi.tolist()
    [1, 3]
    """
    request = _requested(
        layer,
        part,
        region,
        thresholds=thresholds,
        range=range,
        connectivity=connectivity,
        superlevel=superlevel,
        smoothing=smoothing,
    )
    curve, _ = _result(compute_curve(request))
    return result_of(curve, request)


def layer_betti_curves(
    layer: Image | Labels,
    *,
    part: Part | None = None,
    region: Shapes | Labels | None = None,
    **options: Unpack[CurveOptions],
) -> BettiCurves:
    """Numbers of components, holes or tunnels, and cavities of a layer at every threshold.

    Parameters
    ----------
    layer : napari Image or Labels layer
        Data that are not in memory are loaded.
    part, region
        As in `layer_curve`.
    **options
        As in `layer_curves`; the thresholds are those of `layer_curve`.

    Returns
    -------
    BettiCurves

    Raises
    ------
    ValueError
        As in `layer_curve`, or if there are more than 2**28 points that are not in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from napari.layers import Image
    >>> from napari_ecc import actions
    >>> t, betti = actions.layer_betti_curves(Image(np.eye(3, dtype=np.uint8)), connectivity=1)
    >>> betti.tolist()
    [[1, 3], [0, 0]]
    """
    request = _requested(layer, part, region, **options)
    curve, field = _result(compute_curve(request))
    if not can_be_held(field.data):
        raise ValueError(f"“{layer.name}” is too large to be loaded, got {field.data.shape}")
    counted = count_all(
        field,
        curve.thresholds,
        superlevel=request.superlevel,
        connectivity=request.connectivity,
        workers=None,
    )
    found: BettiCurves = _result(counted)
    return found


def layer_curves(
    layers: Sequence[Image | Labels],
    *,
    parts: Sequence[Part | None] | None = None,
    **options: Unpack[CurveOptions],
) -> dict[str, EulerCurve]:
    """Euler characteristic curves of several layers, by name.

    Parameters
    ----------
    layers : sequence of napari Image or Labels layers
    parts : sequence of parts or None, default None
        Of each layer, as in `layer_curve`.
    **options
        `thresholds`, `range`, `connectivity`, `superlevel`, `smoothing`, as in `layer_curve`.

    Returns
    -------
    dict of str to EulerCurve
        For `compare_groups` and `curve_table`.

    Examples
    --------
    >>> import numpy as np
    >>> from napari.layers import Image
    >>> from napari_ecc import actions
    >>> layers = [Image(np.eye(3), name="a"), Image(np.ones((3, 3)), name="b")]
    >>> list(actions.layer_curves(layers))
    ['a', 'b']
    """
    parts = parts or [None] * len(layers)
    pairs = zip(layers, parts, strict=True)
    return {layer.name: layer_curve(layer, part=part, **options) for layer, part in pairs}


def all_frames(
    layer: Image | Labels,
    *,
    axis: int = 0,
    part: Part | None = None,
    **options: Unpack[CurveOptions],
) -> dict[str, EulerCurve]:
    """Euler characteristic curves of all frames of a layer, by name, each over its own range.

    Parameters
    ----------
    layer : napari Image or Labels layer
    axis : int, default 0
        The axis that the frames follow one another along.
    part : tuple of (int or slice) or None, default None
        Any one of the frames, as in `layer_curve`.
    **options
        As in `layer_curves`.

    Returns
    -------
    dict of str to EulerCurve
        For `compare_groups` and `curve_table`.
    """
    frames = frames_of(layer, _checked(layer, part), axis)
    return {name: layer_curve(layer, part=frame, **options) for name, frame in frames.items()}


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

    Raises
    ------
    ValueError
        If the layer has no curve, or unless one of `threshold` and `slope` is given.
    """
    if (threshold is None) == (slope is None):
        raise ValueError(
            f"one of `threshold` and `slope` must be given, got {threshold} and {slope}"
        )
    selection = values_of(layer, selection_of(layer, _checked(layer, part)))
    ndim = len(selection.axes)
    if isinstance(directions, int):
        directions = circle(directions, elevation, ndim)
    sweep = Sweep(
        source=(layer.name,),
        level=fitting_level(selection, layer.name),
        filtration="height" if slope is None else "plane",
        threshold=math.nan if threshold is None else threshold,
        superlevel=superlevel,
        connectivity=connectivity,
        slope=slope or 0.0,
        n_heights=heights,
    )
    image = np.asarray(sweep.level.array)
    return curves_along(sweep, Cache(), image, np.asarray(directions, dtype=np.float64))


def region_table(
    labels: Labels,
    image: Image | None = None,
    *,
    part: Part | None = None,
    thresholds: int = 32,
    directions: int = 8,
    heights: int = 16,
    superlevel: bool = True,
    connectivity: int | None = None,
) -> pd.DataFrame:
    """Curves and transforms of the objects of a Labels layer, each as if it stood alone.

    Parameters
    ----------
    labels : napari Labels layer
    image : napari Image layer or None, default None
        Of the same shape, for the curves; None: transforms only.
    part : tuple of (int or slice) or None, default None
        Of the labels; as in `layer_curve`.
    thresholds : int, default 32
        Columns of the curves.
    directions, heights : int, default 8 and 16
        Rows and columns of each transform; heights in radii of the object.
    superlevel, connectivity
        As in `layer_curve`.

    Returns
    -------
    DataFrame
        A row for each object, with its label in the column ``index``: ``ecc_t<threshold>`` and
        ``ect_d<direction>_h<height>``, and scores on principal components.

    Raises
    ------
    ValueError
        If the layers differ in shape, or there are no objects.
    """
    import pandas as pd

    what = measure_of(
        labels,
        image,
        part=_checked(labels, part),
        thresholds=thresholds,
        directions=directions,
        heights=heights,
        superlevel=superlevel,
        connectivity=connectivity,
    )
    _, table = _result(measure(what, pd.DataFrame()))
    return table


def frame_curves(
    layer: Image,
    *,
    axis: int = 0,
    part: Part | None = None,
    thresholds: int = 128,
    range: tuple[float, float] | None = None,
    superlevel: bool = True,
    connectivity: int | None = None,
) -> EulerCurve:
    """Euler characteristic curves of all frames of a time series, of channels or of slices.

    Parameters
    ----------
    layer : napari Image layer
    axis : int, default 0
        The axis that the frames follow one another along.
    part : tuple of (int or slice) or None, default None
        Any one of the frames, as in `layer_curve`. None: planes of the last two axes.
    thresholds : int, default 128
    range : (float, float) or None, default None
        First and last threshold; None: the layer's contrast limits.
    superlevel, connectivity
        As in `layer_curve`.

    Returns
    -------
    EulerCurve
        With `values` of the shape (frames, thresholds).
    """
    planes = (0,) * (layer.ndim - 2) + (slice(None),) * 2
    part = _checked(layer, part or planes)
    low, high = range or contrast_limits(layer)
    options = {
        "range": (low, high),
        "superlevel": superlevel,
        "connectivity": connectivity,
        "nan": "omit",
    }
    wanted: list[tuple[Any, Any]] = [
        ((), (*part[:axis], frame, *part[axis + 1 :]))
        for frame in builtins.range(layer.data.shape[axis])
    ]
    selection = selection_of(layer, part)
    level = fitting_level(selection, layer.name).number
    data = as_indexable(levels_of(layer)[level])
    found = _result(compute_frames(Frames(data, wanted, thresholds, options)))
    return EulerCurve(
        np.linspace(low, high, thresholds),
        np.stack([chi for _, chi in found]),
        connectivity=connectivity or len(selection.axes),
        superlevel=superlevel,
        ndim=len(selection.axes),
    )


def _requested(
    layer: Any, part: Part | None, region: Any, **options: Unpack[CurveOptions]
) -> Request:
    """What is to be computed of a part of a layer that has a curve."""
    selection = selection_of(layer, _checked(layer, part))
    return request_of(layer, selection, region=region, **options)


def _checked(layer: Any, part: Part | None) -> Part:
    """The part that is meant, of a layer that has a curve."""
    problem = problem_with(layer)
    if problem:
        raise ValueError(problem)
    if part is None:
        leading: Part = (0,) * max(0, layer.ndim - 3)
        return (*leading, *(slice(None),) * min(3, layer.ndim))
    if len(part) != layer.ndim:
        raise ValueError(f"`part` must have {layer.ndim} entries, one for each axis, got {part}")
    return tuple(part)


def _result(job: Iterator[Step]) -> Any:
    """The value of a job's last step."""
    for step in job:
        last = step
    return last.value
