"""Euler characteristic transforms: the shape of an object seen from many directions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._arrays import given_on_host, on_host
from ecc_core._arrays.origin import Origin, origin_of
from ecc_core._request.filtration import check_connectivity, check_flag, check_spacing
from ecc_core._request.image import split_masked
from ecc_core._request.thresholds import as_count
from ecc_core._request.transform import (
    as_label_image,
    as_mask,
    as_weights,
    check_axes,
    check_directions,
    check_even_circle,
    check_metric,
    check_same_sampling,
    half_diagonal,
    parse_heights,
    spread_heights,
)
from ecc_core._types import DeviceT, RegionTransformOptions, TransformOptions
from ecc_core.results import EulerTransform, RegionTransforms, TransformResult, transform_facts

if TYPE_CHECKING:
    from types import ModuleType

__all__ = [
    "EulerTransform",
    "RegionTransforms",
    "euler_transform",
    "region_transforms",
    "sample_directions",
    "smooth_transform",
    "transform_distance",
]

Floats = NDArray[np.float64]


Transform = TypeVar("Transform", bound=TransformResult[Any])


def _descriptors() -> ModuleType:
    from ecc_core._backends.cpu import transform_descriptors

    return transform_descriptors


@overload
def euler_transform(
    image: DeviceT,
    directions: int | ArrayLike = 64,
    heights: int | ArrayLike = 128,
    **options: Unpack[TransformOptions],
) -> EulerTransform[DeviceT]: ...
@overload
def euler_transform(
    image: ArrayLike,
    directions: int | ArrayLike = 64,
    heights: int | ArrayLike = 128,
    **options: Unpack[TransformOptions],
) -> EulerTransform: ...
def euler_transform(
    image: Any,
    directions: int | ArrayLike = 64,
    heights: int | ArrayLike = 128,
    *,
    range: tuple[float, float] | None = None,
    connectivity: int | None = None,
    spacing: ArrayLike | None = None,
    weighted: bool = False,
    workers: int | None = None,
) -> EulerTransform[Any]:
    """Euler characteristic transform (ECT): the Euler characteristic below each height, all round.

    For a direction u, a unit vector, every cell of the object has the height of its highest vertex,
    the largest <u, x> over its vertices x. The value at (u, t) is the Euler characteristic of the
    cells of height at most t.

    Parameters
    ----------
    image : (n,), (m, n) or (p, m, n) array
        The object, boolean or with values 0 and 1; ``labels == 5`` for one region of a label image.
        With `weighted`, weights: integers or real floats, finite. What a ``numpy.ma`` array masks
        is no part of the object.
    directions : int or (k, d) array, default 64
        An int: that many, see :func:`sample_directions`. Vectors need not have unit length; their
        components are along the axes of the image, in this order.
    heights : int or (n,) array, default 128
        An int: that many, evenly spaced over `range`, both ends included. An increasing array is
        used as it is. In units of `spacing`.
    range : (low, high), optional
        Only with an int. The default, the same for all directions, is -r to r, where r is half the
        diagonal of the image, so that rows are comparable and the last height sees all.
    connectivity : {None, 1, d}
        1: points are vertices, and a cell is there if all its vertices are (V-construction). d
        (the default): points are closed cubes, whose corners, edges and faces are cells, too
        (T-construction); a corner lies half a step from its cubes' centres.
    spacing : float or (d,) array, optional
        Distance of neighbouring points along each axis, default 1. Point p has the coordinates
        ``x = (p - (n - 1) / 2) * spacing``, n the image's shape: the origin is its centre.
    weighted : bool, default False
        Sum the weights of the cells instead of counting them (WECT [2]_). The object is the points
        of non-zero weight, and a cell has the weight of the point that owns it when the image is
        swept from low to high: the largest of its vertices (connectivity 1), which is the maximum
        extension of [2]_ and of pyECT's ``weighted_cubical``; or the smallest of the cubes that
        contain it (connectivity d). Weights 0 and 1 give the transform of the mask.
    workers : int, optional
        Threads on the CPU; default as many as there are cores.

    Returns
    -------
    EulerTransform
        ``directions`` (k, d), of unit length, ``heights`` (n,) and ``values`` (k, n). Values are
        int64 and exact; float64 sums for weights that are floats.

    Raises
    ------
    TypeError
        For images, directions, heights and spacings that are not real numbers.
    ValueError
        For an image with other values than 0 and 1 unless `weighted`, weights that are infinite,
        NaN or 2**62 and more, a direction that is zero or not finite or has not d components,
        spacings that are not positive, heights that decrease or are NaN, an int without `range` for
        an image without points, and a wrong connectivity or number of axes.

    Notes
    -----
    Heights are float64, each product and each sum rounded, in the order of the axes:
    ``(u[0] * x[0] + u[1] * x[1]) + u[2] * x[2]``. In any one orthant of directions a cell's highest
    vertex is the same one, so points get a coefficient, which is zero nearly everywhere on smooth
    shapes; the points where it is not are found once for each orthant, and a direction is a
    histogram of their heights [3]_.

    Images on CUDA devices are computed there. Integers are those of the CPU; sums of floats are the
    same in every run, and may differ from those of the CPU by rounding.

    References
    ----------
    .. [1] Turner, Mukherjee, Boyer, "Persistent homology transform for modeling shapes and
       surfaces", Information and Inference 3, 310-344, 2014, arXiv:1310.1030.
    .. [2] Jiang, Kurtek, Needham, "The weighted Euler curve transform for shape and image
       analysis", CVPR Workshops 2020, arXiv:2004.11128.
    .. [3] Lebovici, Oudot, Passe, "Efficient computation of topological integral transforms",
       SEA 2024, arXiv:2405.02256.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> image = np.array([[1, 0, 1], [1, 1, 1]], bool)  # the letter U
    >>> down, up = ecc.euler_transform(image, [[1, 0], [-1, 0]], [-1, 0, 1]).values
    >>> down, up  # from the first row on two parts that join, from the last row on one
    (array([2, 1, 1]), array([1, 1, 1]))
    """
    weights = check_flag(weighted, "weighted")
    origin, given, shown = _unwrap(image, "image")
    threads = origin.workers(workers)
    ndim = len(given.shape)
    closed = check_connectivity(connectivity, ndim) > 1
    steps = check_spacing(given_on_host(spacing), ndim)
    vectors = _directions(directions, ndim)
    at, count = parse_heights(given_on_host(heights), range)
    backend = origin.transforms()
    with backend.numbers(given) as numbers:
        array: NDArray[Any] = (as_weights if weights else as_mask)(numbers, shown)
        reach = half_diagonal(array.shape, steps) if array.size else None
        if at is None:
            at = spread_heights(count, range, reach)
        if array.size == 0:
            values = np.zeros((len(vectors), at.size), array.dtype if weights else np.int64)
        else:
            compute = backend.weighted_transform if weights else backend.mask_transform
            values = compute(array, vectors, at, steps, closed, workers=threads)
        facts = transform_facts(ndim, connectivity, steps)
        rows = origin.wrap(values)
        return EulerTransform(
            origin.wrap(vectors), origin.wrap(at), rows, **facts, weighted=weights
        )


def _unwrap(image: Any, name: str) -> tuple[Origin, Any, NDArray[Any] | None]:
    """The origin of an image, the image, and where it is not masked."""
    image, shown = split_masked(image, None)
    origin = origin_of(image, name)
    array = origin.image(image, name)
    check_axes(tuple(array.shape), name)
    return origin, array, shown


def _directions(directions: int | ArrayLike, ndim: int) -> Floats:
    count = as_count(directions, "directions")
    if count is None:
        return check_directions(given_on_host(directions), ndim)
    vectors: Floats = _descriptors().sample_directions(count, ndim)
    return vectors


def sample_directions(n: int, ndim: int) -> Floats:
    """Unit vectors, evenly spread.

    Parameters
    ----------
    n : int
        How many.
    ndim : {1, 2, 3}
        Number of axes.

    Returns
    -------
    (n, ndim) float64 array
        2-D: the directions ``(cos a, sin a)`` for n angles a from 0 in steps of 2 pi / n, from the
        first axis to the second; reflections and quarter turns of one another are so exactly. 3-D:
        a Fibonacci sphere [1]_ about the first axis. 1-D: +1 and -1 in turns.

    Raises
    ------
    TypeError
        If `n` or `ndim` is no int.
    ValueError
        If `n` is negative or `ndim` not 1, 2 or 3.

    References
    ----------
    .. [1] Gonzalez, "Measurement of areas on a sphere using Fibonacci and latitude-longitude
       lattices", Mathematical Geosciences 42, 49-64, 2010, arXiv:0912.4540.

    Examples
    --------
    >>> import ecc_core as ecc
    >>> ecc.sample_directions(4, 2)
    array([[ 1.,  0.],
           [ 0.,  1.],
           [-1.,  0.],
           [ 0., -1.]])
    """
    count = as_count(n, "n")
    axes = as_count(ndim, "ndim")
    if count is None or axes is None:
        name, given = ("n", n) if count is None else ("ndim", ndim)
        raise TypeError(f"`{name}` must be an int, got {given!r}")
    if axes not in (1, 2, 3):
        raise ValueError(f"`ndim` must be 1, 2 or 3, got {ndim}")
    vectors: Floats = _descriptors().sample_directions(count, axes)
    return vectors


@overload
def region_transforms(
    labels: DeviceT,
    directions: int | ArrayLike = 64,
    heights: int | ArrayLike = 128,
    **options: Unpack[RegionTransformOptions],
) -> RegionTransforms[DeviceT]: ...
@overload
def region_transforms(
    labels: ArrayLike,
    directions: int | ArrayLike = 64,
    heights: int | ArrayLike = 128,
    **options: Unpack[RegionTransformOptions],
) -> RegionTransforms: ...
def region_transforms(
    labels: Any,
    directions: int | ArrayLike = 64,
    heights: int | ArrayLike = 128,
    *,
    range: tuple[float, float] | None = None,
    connectivity: int | None = None,
    spacing: ArrayLike | None = None,
    normalize: Literal["radius"] | None = None,
    workers: int | None = None,
) -> RegionTransforms[Any]:
    """Euler characteristic transform of every labelled region, in one pass over the labels.

    Parameters
    ----------
    labels : integer array of 1 to 3 axes
        0 is background. Regions may touch: each counts as if it stood alone.
    directions, connectivity, spacing, workers
        As for :func:`euler_transform`.
    heights : int or (n,) array, default 128
        As for :func:`euler_transform`, and the same for all regions. Heights are measured from the
        centre of each region's bounding box.
    range : (low, high), optional
        Only with an int. Default -r to r, where r is the largest radius; with `normalize` -1 to 1.
        Give it where several label images are to be compared.
    normalize : {None, "radius"}
        "radius": measure heights in units of the region's radius, which is half the diagonal of its
        bounding box, so that size drops out.

    Returns
    -------
    RegionTransforms
        ``labels``, the ids that occur, increasing, in the dtype of `labels`; ``directions`` (k, d),
        ``heights`` (n,), and ``values``, int64 of shape (labels, k, n). The transform of label i is
        exactly the :func:`euler_transform` of its bounding box, ``labels[box] == i``.

    Raises
    ------
    TypeError
        For labels that are not integers, and as :func:`euler_transform`.
    ValueError
        For negative labels, another `normalize`, and as :func:`euler_transform`.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> labels = np.array([[3, 3, 3, 0], [3, 0, 3, 7], [3, 3, 3, 7]])
    >>> result = ecc.region_transforms(labels, 8, 16)
    >>> result.labels, result.values.shape
    (array([3, 7]), (2, 8, 16))
    >>> result.values[:, :, -1].tolist()  # a ring and a bar
    [[0, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1]]
    """
    origin, given, shown = _unwrap(labels, "labels")
    threads = origin.workers(workers)
    ndim = len(given.shape)
    closed = check_connectivity(connectivity, ndim) > 1
    steps = check_spacing(given_on_host(spacing), ndim)
    half_diagonal(given.shape if 0 not in given.shape else (1,) * ndim, steps)
    vectors = _directions(directions, ndim)
    at, count = parse_heights(given_on_host(heights), range)
    if normalize not in (None, "radius"):
        raise ValueError(f'`normalize` must be None or "radius", got {normalize!r}')
    backend = origin.transforms()
    with backend.numbers(given) as numbers:
        array = as_label_image(numbers, shown)
        regions = backend.find_regions(array, steps, closed)
        reach = 1.0 if normalize else float(regions.radii.max(initial=0.0))
        if at is None:
            at = spread_heights(count, range, reach)
        scales = regions.radii if normalize else None
        values = backend.region_transforms(regions, vectors, at, scales, workers=threads)
        present = regions.labels.astype(numbers.dtype)
        facts = transform_facts(ndim, connectivity, steps)
        facts["normalize"] = normalize
        return RegionTransforms(*map(origin.wrap, (present, vectors, at, values)), **facts)


def smooth_transform(transform: Transform) -> Transform:
    """Smooth Euler characteristic transform (SECT): integrals of the mean-centred curves.

    Parameters
    ----------
    transform : EulerTransform or RegionTransforms
        Curves whose heights are finite.

    Returns
    -------
    EulerTransform or RegionTransforms
        The same with float64 values: at height t the integral from the first height to t of the
        curve minus its mean over all heights [1]_, by the trapezoidal rule. It begins and ends
        at 0.

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
    smoothed = origin_of(transform.values).wrap(_descriptors().smooth(values, heights))
    return dataclasses.replace(transform, values=smoothed, smooth=True)


def transform_distance(
    a: EulerTransform,
    b: EulerTransform,
    *,
    metric: Literal["L1", "L2"] = "L2",
    rotation_invariant: bool = False,
) -> float:
    """Distance of two transforms.

    Parameters
    ----------
    a, b : EulerTransform
        With the same directions and heights; smooth transforms as well.
    metric : {"L2", "L1"}
        "L1": the integral over the heights of ``|a - b|``, by the trapezoidal rule, averaged over
        the directions. "L2": the square root of the same of ``(a - b)**2``. So the distance hardly
        depends on how finely directions and heights are sampled.
    rotation_invariant : bool, default False
        Take the least distance over all rotations by a step of the directions, which must be evenly
        spaced on the circle (2-D).

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the directions or heights differ or do not suit `rotation_invariant`, there are fewer
        than 2 heights or an infinite one, or for another metric.

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
    power = check_metric(metric)
    a, b = _on_host(a), _on_host(b)
    if a.smooth != b.smooth:
        raise ValueError("`a` and `b` must both be smooth transforms or neither, got one of each")
    check_same_sampling(a, b)
    descriptors = _descriptors()
    measure = descriptors.distance
    if check_flag(rotation_invariant, "rotation_invariant"):
        check_even_circle(a.directions)
        measure = descriptors.least_rotated_distance
    result: float = measure(a.values, b.values, a.heights, power)
    return result


def _on_host(transform: Any) -> EulerTransform:
    """A transform, or a tuple of its three arrays, with NumPy arrays."""
    given = transform if isinstance(transform, EulerTransform) else EulerTransform(*transform)
    return given.to_numpy()
