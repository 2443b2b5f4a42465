"""Smooth transforms and distances between transforms."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, TypeVar

import numpy as np

from ecc_core import _transform_distances
from ecc_core._arrays import on_host
from ecc_core._arrays.origin import origin_of
from ecc_core._request.filtration import check_flag
from ecc_core._request.transform import check_even_circle
from ecc_core.results import EulerTransform, RegionTransforms, TransformResult

Transform = TypeVar("Transform", bound=TransformResult[Any])


def smooth_transform(transform: Transform) -> Transform:
    """Smooth Euler characteristic transform (SECT) [1]_.

    Parameters
    ----------
    transform : EulerTransform or RegionTransforms
        A transform with finite heights.

    Returns
    -------
    EulerTransform or RegionTransforms
        A transform with float64 values: each curve minus its mean over all heights, integrated from
        the first height to t by the trapezoidal rule. Values begin and end at 0.

    Raises
    ------
    TypeError
        If `transform` is an array instead of a result with heights.
    ValueError
        If a height is infinite.

    References
    ----------
    .. [1] Crawford, Monod, Chen, Mukherjee, Rabadan, "Predicting clinical outcomes in glioblastoma:
       an application of topological and functional data analysis", JASA 115, 1139-1150, 2020,
       arXiv:1611.06818.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> image = np.ones((2, 2), bool)
    >>> ect = ecc.euler_transform(image, [[1, 0]], [-2, -1, 0, 1, 2])
    >>> ect.values, ecc.smooth_transform(ect).values
    (array([[0, 1, 1, 1, 1]]), array([[ 0.   , -0.375, -0.25 , -0.125,  0.   ]]))
    """
    if not isinstance(transform, (EulerTransform, RegionTransforms)):
        kind = type(transform).__name__
        raise TypeError(f"`transform` must be an EulerTransform or RegionTransforms, got {kind}")
    values, heights = (on_host(a) for a in (transform.values, transform.heights))
    if not np.isfinite(heights).all():
        raise ValueError("`transform` must have finite heights, got infinite ones")
    smoothed = origin_of(transform.values).wrap(_transform_distances.smooth(values, heights))
    return dataclasses.replace(transform, values=smoothed, smooth=True)


def transform_distance(
    a: EulerTransform,
    b: EulerTransform,
    *,
    metric: Literal["L1", "L2"] = "L2",
    rotation_invariant: bool = False,
) -> float:
    """Distance between two transforms.

    Parameters
    ----------
    a, b : EulerTransform
        Transforms with the same directions and heights. Both or neither may be smooth.
    metric : {"L2", "L1"}
        "L1": the integral of ``|a - b|`` over the heights, by the trapezoidal rule, averaged over
        the directions. "L2": the square root of the same for ``(a - b)**2``. The distance hardly
        depends on the numbers of directions and heights.
    rotation_invariant : bool, default False
        Minimise the distance over all rotations by multiples of the step between directions, which
        must be evenly spaced on the circle (2-D).

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If directions or heights differ, or do not support `rotation_invariant`, there are fewer
        than 2 heights or infinite ones, only one transform is smooth, or the metric is unknown.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> bar = np.zeros((9, 9), bool)
    >>> bar[4, 1:8] = True
    >>> a, b = ecc.euler_transform(bar), ecc.euler_transform(bar.T)
    >>> ecc.transform_distance(a, b) > 0.5
    True
    >>> ecc.transform_distance(a, b, rotation_invariant=True)
    0.0
    """
    if metric not in ("L1", "L2"):
        raise ValueError(f'`metric` must be "L1" or "L2", got {metric!r}')
    a = _on_host(a)
    b = _on_host(b)
    if a.smooth != b.smooth:
        raise ValueError("`a` and `b` must both be smooth transforms or neither, got one of each")
    for name in ("directions", "heights"):
        if not np.array_equal(getattr(a, name), getattr(b, name)):
            raise ValueError(f"`a` and `b` must have the same {name}, got different ones")
    if a.values.shape != b.values.shape or a.values.ndim != 2:
        raise ValueError(
            f"`a` and `b` must be transforms of one object each, got values of shapes "
            f"{a.values.shape} and {b.values.shape}"
        )
    if len(a.heights) < 2 or not np.isfinite(a.heights).all() or len(a.directions) == 0:
        raise ValueError("`a` and `b` must have directions and at least 2 finite heights, got less")
    measure = _transform_distances.distance
    if check_flag(rotation_invariant, "rotation_invariant"):
        check_even_circle(a.directions)
        measure = _transform_distances.least_rotated_distance
    return measure(a.values, b.values, a.heights, power=int(metric[1]))


def _on_host(transform: Any) -> EulerTransform:
    """Return a transform with NumPy arrays, given a transform or a tuple of its three arrays."""
    given = transform if isinstance(transform, EulerTransform) else EulerTransform(*transform)
    return given.to_numpy()
