"""Curves of the frames of a layer, and components that are followed through them."""

from dataclasses import replace
from typing import Any

import numpy as np
from napari.layers import Image, Labels
from numpy.typing import NDArray

from ecc_core import BettiCurves, EulerCurve
from ecc_core.features import RegionTracks
from napari_ecc._controller.curves import frames_of, request_of
from napari_ecc._controller.frames import check_followed, follow_frames
from napari_ecc._controller.layers import Part, checked_part, contrast_limits
from napari_ecc._workers import result
from napari_ecc.actions.layers import all_frames, layer_betti_curves


def frame_curves(
    layer: Image,
    *,
    axis: int = 0,
    part: Part | None = None,
    thresholds: int = 128,
    range: tuple[float, float] | None = None,
    superlevel: bool = True,
    connectivity: int | None = None,
    smoothing: float = 0.0,
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
        See `layer_curve`.
    range : (float, float) or None, default None
        First and last threshold; None: the layer's contrast limits.
    superlevel, connectivity, smoothing
        See `layer_curve`.

    Returns
    -------
    EulerCurve
        The curves, whose `values` have the shape (frames, thresholds).
    """
    part = _frame_of(layer, part)  # It is checked before its contrast limits are asked for.
    found = all_frames(
        layer,
        axis=axis,
        part=part,
        thresholds=thresholds,
        range=range or contrast_limits(layer),
        superlevel=superlevel,
        connectivity=connectivity,
        smoothing=smoothing,
    )
    curves = list(found.values())
    values = np.stack([curve.values for curve in curves])
    return replace(curves[0], values=values)


def frame_betti_curves(
    layer: Image,
    *,
    axis: int = 0,
    part: Part | None = None,
    thresholds: int = 128,
    range: tuple[float, float] | None = None,
    superlevel: bool = True,
    connectivity: int | None = None,
    smoothing: float = 0.0,
    min_persistence: float = 0.0,
) -> BettiCurves:
    """Numbers of components, holes or tunnels, and cavities of all frames, at every threshold.

    Parameters
    ----------
    layer, axis, part, thresholds, range, superlevel, connectivity, smoothing
        See `frame_curves`.
    min_persistence : float, default 0
        Count classes of this persistence only.

    Returns
    -------
    BettiCurves
        The curves, whose `values` have the shape (frames, dimensions, thresholds).
    """
    part = _frame_of(layer, part)
    frames = frames_of(layer, part, axis).values()
    found = [
        layer_betti_curves(
            layer,
            part=frame,
            thresholds=thresholds,
            range=range or contrast_limits(layer),
            superlevel=superlevel,
            connectivity=connectivity,
            smoothing=smoothing,
            min_persistence=min_persistence,
        )
        for frame in frames
    ]
    return replace(found[0], values=np.stack([curves.values for curves in found]))


def follow_components(
    layer: Image | Labels,
    threshold: float,
    *,
    part: Part | None = None,
    min_persistence: float = 0.0,
    min_overlap: float = 0.25,
    superlevel: bool = True,
    connectivity: int | None = None,
    smoothing: float = 0.0,
) -> tuple[NDArray[np.int32], RegionTracks]:
    """Follow the components of the sets at a threshold through the frames along the first axis.

    Parameters
    ----------
    layer : napari Image or Labels layer
    threshold : float
    part : tuple of (int or slice) or None, default None
        Any one of the frames, as in `layer_curve`. None: planes of the last two axes.
    min_persistence : float, default 0
        Components of this persistence count, and are followed as far as they are the same in other
        frames; see `lasting` of `ecc_core.features.track_regions`.
    min_overlap : float, default 0.25
        Share of the smaller component that two have in common to be linked.
    superlevel, connectivity, smoothing
        See `layer_curve`.

    Returns
    -------
    labels : (frames, ...) int32 array
        The track that each point belongs to, or 0.
    tracks : RegionTracks

    Raises
    ------
    ValueError
        If the layer has no curve or fewer than two frames, or all frames together are too large.

    Examples
    --------
    >>> import numpy as np
    >>> from napari.layers import Image
    >>> from napari_ecc import actions
    >>> movie = np.array([[[1, 1, 0, 1, 1]], [[1, 1, 1, 1, 1]]], np.uint8)
    >>> labels, tracks = actions.follow_components(Image(movie), threshold=1)
    >>> labels.tolist(), tracks.parents
    ([[[1, 1, 0, 2, 2]], [[3, 3, 3, 3, 3]]], {3: (1, 2)})
    """
    sets: dict[str, Any] = {"superlevel": superlevel, "connectivity": connectivity}
    frames = frames_of(layer, _frame_of(layer, part)).values()
    requests = [request_of(layer, frame, smoothing=smoothing, **sets) for frame in frames]
    check_followed(requests, layer.name)
    found = result(follow_frames(requests, threshold, min_persistence, min_overlap, **sets))
    return found.labels, found.tracks


def _frame_of(layer: Image | Labels, part: Part | None) -> Part:
    """Return the part of a layer that is one frame, by default a plane of the last two axes."""
    if part is None:
        checked_part(layer, None)  # Layers without axes have no frames.
        part = (0,) * (layer.ndim - 2) + (slice(None),) * 2
    part = checked_part(layer, part)
    if all(isinstance(at, slice) for at in part):
        raise ValueError(
            f"“{layer.name}” must have an axis of frames beside those of one, got {layer.ndim} axes"
        )
    return part
