"""Curves and transforms of layers."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from napari.layers import Image, Labels, Shapes
from numpy.typing import ArrayLike

from ecc_core import BettiCurves, EulerCurve, EulerTransform
from napari_ecc._controller.curves import (
    compute_curve,
    compute_file_curves,
    frames_of,
    images_in,
    request_of,
    result_of,
)
from napari_ecc._controller.direction_sweep import Swept, curves_along, sweep_of
from napari_ecc._controller.fields import count_all, find_classes
from napari_ecc._controller.layers import Part, checked_part
from napari_ecc._controller.places import unit_of
from napari_ecc._model.directions import circle
from napari_ecc._workers import result


class CurveOptions(TypedDict, total=False):
    """Options of the curves of several layers or frames, as in `layer_curve`."""

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
        The objects of a Labels layer together are the set. Data that are not in memory are read
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
    request = request_of(
        layer,
        checked_part(layer, part),
        region=region,
        thresholds=thresholds,
        range=range,
        connectivity=connectivity,
        superlevel=superlevel,
        smoothing=smoothing,
    )
    curve, _ = result(compute_curve(request))
    return result_of(curve, request)


def layer_betti_curves(
    layer: Image | Labels,
    *,
    part: Part | None = None,
    region: Shapes | Labels | None = None,
    min_persistence: float = 0.0,
    **options: Unpack[CurveOptions],
) -> BettiCurves:
    """Numbers of components, holes or tunnels, and cavities of a layer at every threshold.

    Parameters
    ----------
    layer : napari Image or Labels layer
        Data that are not in memory are read block by block.
    part, region
        See `layer_curve`.
    min_persistence : float, default 0
        Count classes of this persistence only; then data must be in memory.
    **options
        See `layer_curves`; the thresholds are those of `layer_curve`.

    Returns
    -------
    BettiCurves

    Raises
    ------
    ValueError
        For the reasons of `layer_curve`.

    Examples
    --------
    >>> import numpy as np
    >>> from napari.layers import Image
    >>> from napari_ecc import actions
    >>> t, betti = actions.layer_betti_curves(Image(np.eye(3, dtype=np.uint8)), connectivity=1)
    >>> betti.tolist()
    [[1, 3], [0, 0]]
    """
    request = request_of(layer, checked_part(layer, part), region=region, **options)
    curve, field = result(compute_curve(request))
    sets: Any = {"superlevel": request.superlevel, "connectivity": request.connectivity}
    curves: BettiCurves
    if min_persistence:
        classes = result(find_classes(field, curve.thresholds, **sets))
        curves = classes.betti_curves(min_persistence)
    else:
        curves = result(count_all(field, curve.thresholds, **sets))
    return curves


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
        The part of each layer that is meant; see `layer_curve`.
    **options
        `thresholds`, `range`, `connectivity`, `superlevel`, `smoothing`, as in `layer_curve`.

    Returns
    -------
    dict of str to EulerCurve
        Curves by name, as `compare_groups` and `curve_table` take them.

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
        See `layer_curves`.

    Returns
    -------
    dict of str to EulerCurve
        Curves by name, as `compare_groups` and `curve_table` take them.
    """
    frames = frames_of(layer, checked_part(layer, part), axis)
    return {name: layer_curve(layer, part=frame, **options) for name, frame in frames.items()}


def folder_curves(
    folder: str | PathLike[str], **options: Unpack[CurveOptions]
) -> dict[str, EulerCurve]:
    """Euler characteristic curves of the images in a folder and the folders in it.

    Parameters
    ----------
    folder : path-like
        Each image in it must have the axes Z, Y and X, or some of them, alone.
    **options
        See `layer_curves`; `smoothing` is in units of the shortest distance of points of a file.

    Returns
    -------
    dict of str to EulerCurve
        Curves by paths below the folder, as `compare_groups` and `curve_table` take them.

    Raises
    ------
    ValueError
        If images cannot be read or have no curve; it names them all.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from napari_ecc import actions
    >>> with TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "a.npy", np.eye(3))
    ...     list(actions.folder_curves(folder))
    ['a.npy']
    """
    found: dict[str, EulerCurve] = result(compute_file_curves(images_in(Path(folder)), **options))
    return found


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
        See `layer_curve`.
    elevation : float, default 0
        Degrees from the plane of the last two axes towards the axis before, where `directions` is
        a number and the part is a volume.
    threshold : float or None, default None
        The set at this threshold is swept along each direction.
    slope : float or None, default None
        Instead of that, a plane that rises by this much a world unit is added to the image.
    superlevel, connectivity
        See `layer_curve`.

    Returns
    -------
    EulerTransform
        The transform, whose `units` of heights are those of the layer.

    Raises
    ------
    ValueError
        If the layer has no curve, or unless one of `threshold` and `slope` is given.
    """
    if (threshold is None) == (slope is None):
        raise ValueError(
            f"one of `threshold` and `slope` must be given, got {threshold} and {slope}"
        )
    sweep = sweep_of(
        layer,
        checked_part(layer, part),
        heights=heights,
        threshold=threshold,
        slope=slope,
        superlevel=superlevel,
        connectivity=connectivity,
    )
    if isinstance(directions, int):
        directions = circle(directions, elevation, len(sweep.selection.axes))
    swept = Swept(np.asarray(sweep.level.full))
    found = curves_along(sweep, swept, np.asarray(directions, dtype=np.float64))
    if slope is not None:
        return found
    return replace(found, units=unit_of(layer, sweep.selection.where))
