"""Euler characteristic transforms of shapes."""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core import _directions
from ecc_core._arrays.shapes import ShapeRequest
from ecc_core._arrays.xarray import call_unlabelled, is_labelled, with_facts
from ecc_core._request.boundary import Domain
from ecc_core._request.filtration import check_flag
from ecc_core._request.options import ShapeOptions
from ecc_core._request.thresholds import as_count
from ecc_core._request.transform import (
    as_label_image,
    as_mask,
    as_weights,
    half_diagonal,
)
from ecc_core._transform_results import smooth_transform, transform_distance
from ecc_core._types import DeviceT, RegionTransformOptions, TransformOptions
from ecc_core.results import EulerTransform, RegionTransforms

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
TRANSFORMS = Domain(reason="for transforms, whose heights are measured from the centre of an image")
REGION_TRANSFORMS = Domain(reason="for regions, each of which stands alone")


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
    boundary: Literal["closed"] = "closed",
) -> EulerTransform[Any]:
    """Euler characteristic transform (ECT) of a shape [1]_.

    For a unit vector u, the height of a cell is that of its highest vertex, the largest <u, x> over
    its vertices x. The value at (u, t) is the Euler characteristic of the cells whose height is at
    most t.

    Parameters
    ----------
    image : (n,), (m, n) or (p, m, n) array
        The object: boolean, or 0 and one other value such as 1 or 255, for example ``labels == 5``
        for one region of a label image. With `weighted`, finite integer or floating weights. Masked
        elements of a ``numpy.ma`` array are not part of the object.
    directions : int or (k, d) array, default 64
        Number of directions, see :func:`sample_directions`, or an array of vectors of any length.
        Components are in the order of the axes of the image.
    heights : int or (n,) array, default 128
        Number of heights, evenly spaced over `range` including both ends, or an increasing array of
        heights. In units of `spacing`.
    range : (low, high), optional
        Only if `heights` is an int. Default: -r to r, where r is half the diagonal of the image.
        This is the same for all directions, and the last height includes the whole object.
    connectivity : {None, 1, d}
        1: points are vertices, and a cell belongs to the object if all its vertices do
        (V-construction). d (the default): points are closed cubes, whose corners, edges and faces
        are cells (T-construction); corners lie half a step from the centres of their cubes.
    spacing : float or (d,) array, optional
        Distance between neighbouring points along each axis. Default: that of the coordinates of a
        DataArray of xarray, from which it must not differ, otherwise 1. Point p has the coordinates
        ``x = (p - (n - 1) / 2) * spacing``, where n is the shape of the image: the origin is the
        centre of the image.
    weighted : bool, default False
        Sum the weights of the cells instead of counting the cells (WECT [2]_). The object consists
        of the points with non-zero weight. The weight of a cell is the maximum over its vertices
        (connectivity 1), which is the maximum extension of [2]_ and of pyECT's
        ``weighted_cubical``, or the minimum over the cubes that contain it (connectivity d).
        Weights 0 and 1 give the transform of the mask.
    workers : int, optional
        Number of threads on the CPU. Default: the number of cores.
    boundary : {"closed"}
        No other boundary is defined. A periodic image has no heights, because they would differ on
        the sides that touch. Transforms of half-open windows would not add up, because heights are
        measured from the centre of each window.

    Returns
    -------
    EulerTransform
        ``directions`` of shape (k, d) and unit length, ``heights`` of shape (n,), and ``values`` of
        shape (k, n): exact int64 numbers, or float64 sums if the weights are floats.

    Raises
    ------
    TypeError
        If images, directions, heights or spacings are not real numbers.
    ValueError
        For an image with more values than 0 and another one unless `weighted`, weights that are
        infinite or NaN, integers of 2**62 and more as weights, a direction that is zero or not
        finite or has not d components, spacings that are not positive, heights that decrease or
        are NaN, an int without `range` for an image without points, and a wrong connectivity or
        number of axes.

    Warns
    -----
    UserWarning
        If an image of three axes has at most four points along the first or last one, and neither
        directions nor `spacing` say that it is a volume.

    Notes
    -----
    Heights are computed in float64 as ``(u[0] * x[0] + u[1] * x[1]) + u[2] * x[2]``, where every
    product and sum is rounded. Within an orthant of directions the highest vertex of a cell does
    not change, so every point has a coefficient, which is zero almost everywhere on smooth shapes.
    The points where it is not zero are found once per orthant, and each direction is a histogram of
    their heights [3]_.

    Images on CUDA devices are processed there. Integers are the same as on the CPU; sums of floats
    are the same in every run, and may differ from those of the CPU by rounding.

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
    >>> down, up  # downwards two components that join, upwards one
    (array([2, 1, 1]), array([1, 1, 1]))
    """
    options = ShapeOptions(
        range=range,
        connectivity=connectivity,
        spacing=spacing,
        workers=workers,
        boundary=boundary,
    )
    if is_labelled(image):
        return call_unlabelled(
            euler_transform,
            image,
            directions,
            heights,
            whole=True,
            lengths="heights",
            weighted=weighted,
            **options.given(),
        )
    weights = check_flag(weighted, "weighted")
    request = ShapeRequest.of(image, directions, heights, options, TRANSFORMS)
    request.warn_of_thin_volume(directions, spacing)
    backend = request.origin.transforms()
    with backend.numbers(request.given) as numbers:
        array: NDArray[Any] = (as_weights if weights else as_mask)(numbers, request.shown)
        steps = request.spacing
        vectors = request.directions
        at = request.at(half_diagonal(array.shape, steps) if array.size else None)
        if array.size == 0:
            values = np.zeros((len(vectors), at.size), array.dtype if weights else np.int64)
        else:
            compute = backend.weighted_transform if weights else backend.mask_transform
            values = compute(
                array, vectors, at, steps, request.connectivity, workers=request.workers
            )
        wrap = request.origin.wrap
        return EulerTransform(
            wrap(vectors),
            wrap(at),
            wrap(values),
            connectivity=request.connectivity,
            spacing=tuple(steps.tolist()),
            weighted=weights,
        )


def sample_directions(n: int, ndim: int) -> Floats:
    """Evenly spread unit vectors.

    Parameters
    ----------
    n : int
        Number of vectors.
    ndim : {1, 2, 3}
        Number of axes.

    Returns
    -------
    (n, ndim) float64 array
        2-D: ``(cos a, sin a)`` for n angles a from 0 in steps of 2 pi / n, where directions that
        are reflections or quarter turns of one another match exactly. 3-D: a Fibonacci sphere [1]_
        about the first axis. 1-D: +1 and -1 alternately.

    Raises
    ------
    TypeError
        If `n` or `ndim` is not an int.
    ValueError
        If `n` is negative, or `ndim` is not 1, 2 or 3.

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
    return _directions.sample_directions(count, axes)


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
    boundary: Literal["closed"] = "closed",
) -> RegionTransforms[Any]:
    """Euler characteristic transforms of all labelled regions, in one pass over the labels.

    Parameters
    ----------
    labels : integer array of 1 to 3 axes
        0 is background. Every region is treated as if it stood alone, even if it touches others.
    directions, connectivity, spacing, workers
        As for :func:`euler_transform`.
    heights : int or (n,) array, default 128
        As for :func:`euler_transform`. All regions have the same heights, which are measured from
        the centre of each region's bounding box.
    range : (low, high), optional
        Only if `heights` is an int. Default: -r to r, where r is the largest radius, or -1 to 1
        with `normalize`. Use the same range to compare several label images.
    normalize : {None, "radius"}
        "radius": measure heights in units of the radius of each region, which is half the diagonal
        of its bounding box, to remove the size of the regions.
    boundary : {"closed"}
        Regions stand alone, so that no other boundary is defined.

    Returns
    -------
    RegionTransforms
        ``labels`` of shape (m,), the ids that occur, increasing and in the dtype of `labels`,
        ``directions`` of shape (k, d), ``heights`` of shape (n,), and ``values`` of shape (m, k, n)
        and dtype int64. The transform of label i is exactly the :func:`euler_transform` of its
        bounding box, ``labels[box] == i``.

    Raises
    ------
    TypeError
        If labels are not integers, and as for :func:`euler_transform`.
    ValueError
        If labels are negative, `normalize` is unknown, and as for :func:`euler_transform`.

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
    options = ShapeOptions(
        range=range,
        connectivity=connectivity,
        spacing=spacing,
        workers=workers,
        boundary=boundary,
    )
    if is_labelled(labels):
        found = call_unlabelled(
            region_transforms,
            labels,
            directions,
            heights,
            whole=True,
            lengths="heights",
            normalize=normalize,
            **options.given(),
        )
        return with_facts(found, units=None) if normalize else found
    name = "labels"
    request = ShapeRequest.of(labels, directions, heights, options, REGION_TRANSFORMS, name=name)
    shape = request.shape if 0 not in request.shape else (1,) * len(request.shape)
    steps = request.spacing
    # It refuses images whose heights overflow, and no region is larger than the image.
    half_diagonal(shape, steps)
    if normalize not in (None, "radius"):
        raise ValueError(f'`normalize` must be None or "radius", got {normalize!r}')
    backend = request.origin.transforms()
    with backend.numbers(request.given) as numbers:
        stored = getattr(labels, "dtype", None)
        on_host = request.origin.on_host
        array = as_label_image(numbers, request.shown, stored, on_host=on_host)
        regions = backend.find_regions(array, steps, request.connectivity)
        reach = 1.0 if normalize else float(regions.radii.max(initial=0.0))
        at = request.at(reach)
        scales = regions.radii if normalize else None
        vectors = request.directions
        values = backend.region_transforms(regions, vectors, at, scales, workers=request.workers)
        present = regions.labels.astype(numbers.dtype)
        wrap = request.origin.wrap
        facts: Any = {"connectivity": request.connectivity, "spacing": steps}
        facts["normalize"] = normalize
        return RegionTransforms(wrap(present), wrap(vectors), wrap(at), wrap(values), **facts)
