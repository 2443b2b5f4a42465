"""Euler characteristic curves and transforms of meshes, graphs and point sets."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ecc_core._arrays import given_on_host
from ecc_core._arrays.complex_plans import planned_transform
from ecc_core._arrays.complexes import PointRequest, ValueRequest
from ecc_core._request.levels import changes, last_value, round_to_levels
from ecc_core._request.options import ComplexOptions
from ecc_core._request.persistence import check_persistence, lasting
from ecc_core._types import Thresholds
from ecc_core.results import EulerCurve, EulerTransform, PersistencePairs

__all__ = ["simplicial_curve", "simplicial_pairs", "simplicial_transform"]


def simplicial_curve(
    values: Any,
    simplices: Any,
    thresholds: Thresholds = 256,
    *,
    range: tuple[float, float] | None = None,
    superlevel: bool = False,
    complete: bool = False,
    workers: int | None = None,
) -> EulerCurve[Any]:
    """Euler characteristic of the sublevel sets of values on a mesh, a graph or another complex.

    A simplex enters with its last point (lower star filtration): the value at t is the number of
    points minus edges plus triangles, and so on, all of whose points have values ``<= t``.

    Parameters
    ----------
    values : (..., n) array
        Booleans, integers or real floats of at most 64 bits, one for each point. All axes but the
        last one are batch axes.
    simplices : (m, k) integer array, or sequence of such arrays
        Indices of points, from 0 on. One array holds the largest simplices, such as the triangles
        of a mesh for k = 3 or the edges of a graph for k = 2, whose faces are added. A sequence has
        one array for each k, such as ``[edges, triangles]``. Every point is in the complex. A
        complex is a set: a simplex that is listed twice, in any order of its points, counts once.
        An empty sequence is a set of points.
    thresholds : int, array or "exact", default 256
        Number of thresholds, evenly spaced over `range` including both ends, or an increasing array
        of thresholds. "exact": every level at which the curve changes, in the dtype of the values.
    range : (low, high), optional
        Only if `thresholds` is an int. Default: the smallest and the largest finite value.
    superlevel : bool, default False
        Use the sets ``values >= t`` instead.
    complete : bool, default False
        Add faces that a sequence of arrays lacks. Otherwise they are an error.
    workers : int, optional
        Number of threads. Default: the number of cores.

    Returns
    -------
    EulerCurve
        ``thresholds`` of shape (m,) and ``values`` of shape batch + (m,) and dtype int64. Values
        are exact: numbers of different dtypes are compared without rounding.

    Raises
    ------
    TypeError
        If values are not real numbers or simplices not integers.
    ValueError
        For NaN and masked values, indices of points that do not exist, a point twice in a simplex,
        a simplex without one of its faces unless `complete`, several arrays with the same k, and
        thresholds that decrease or are NaN.
    BackendError
        For arrays on devices other than CUDA.

    See Also
    --------
    simplicial_transform : The same of the heights of points, in many directions.
    euler_curve : Curves of images.

    Examples
    --------
    >>> import ecc_core as ecc
    >>> triangle, square = [[0, 1, 2]], [[0, 1], [1, 2], [2, 3], [3, 0]]
    >>> ecc.simplicial_curve([0, 1, 1], triangle, [0, 1]).values
    array([1, 1])
    >>> ecc.simplicial_curve([0, 1, 0, 2], square, [0, 1, 2]).values
    array([2, 1, 0])
    """
    options = ComplexOptions(
        range=range,
        superlevel=superlevel,
        complete=complete,
        workers=workers,
    )
    with ValueRequest.of(values, simplices, thresholds, options) as request:
        origin = request.origin
        above = request.superlevel
        at = request.thresholds()
        levels = round_to_levels(at, request.values.dtype, above)
        curves = request.backend.value_curves(
            request.values, levels, request.simplices, workers=request.workers
        )
        curves = curves.reshape(*request.batch, at.size)
        if request.levels.exact:
            at, found = changes(at, given_on_host(curves), above)
            return EulerCurve(origin.wrap(at), origin.wrap(found), superlevel=above)
        shown = origin.thresholds(thresholds, at)
        return EulerCurve(shown, origin.wrap(curves), superlevel=above)


def simplicial_pairs(
    values: Any,
    simplices: Any,
    *,
    min_persistence: float = 0,
    superlevel: bool = False,
    complete: bool = False,
) -> PersistencePairs[Any]:
    """Births and deaths of the components of values on a mesh or a graph, as the threshold grows.

    Parameters
    ----------
    values : (n,) array
        Booleans, integers or real floats of at most 64 bits, one for each point.
    simplices, complete
        As for :func:`simplicial_curve`. Only edges matter.
    min_persistence : float, default 0
        Leave out components whose values of birth and death differ by less. Those that never die
        stay.
    superlevel : bool, default False
        Use the sets ``values >= t`` instead, whose components begin at maxima.

    Returns
    -------
    PersistencePairs
        Of dimension 0: ``births`` and ``deaths`` (k,), and the indices of the points that cause
        them, ``birth_points`` and ``death_points`` (k, 1), ordered by birth. Components that die at
        the value at which they are born are left out.

    Raises
    ------
    TypeError, ValueError
        As for :func:`simplicial_curve`; ValueError for values of several axes, and for a
        persistence that is negative or NaN.
    BackendError
        For arrays that are not in host memory.

    See Also
    --------
    persistence_pairs : The same of images.

    Notes
    -----
    When two components meet, the younger one dies: of two that were born at one value, that of the
    larger index. The pairs are those of the join tree of the values, and of GUDHI's simplex tree
    with the lower star filtration.

    Examples
    --------
    >>> import ecc_core as ecc
    >>> path = [[0, 1], [1, 2], [2, 3], [3, 4]]
    >>> pairs = ecc.simplicial_pairs([0.0, 3.0, 1.0, 2.0, 0.5], path)
    >>> pairs.to_gudhi()
    array([[0. , inf],
           [0.5, 3. ],
           [1. , 2. ]])
    >>> pairs.death_points[1:].tolist()  # where they join older ones
    [[1], [3]]
    """
    least = check_persistence(min_persistence)
    options = ComplexOptions(superlevel=superlevel, complete=complete)
    with ValueRequest.of(values, simplices, 0, options, single=True) as request:
        origin = request.origin
        (numbers,) = request.values
        complex_ = request.simplices
        edges = complex_[0] if complex_ else np.empty((0, 2), np.int64)
        births, deaths = request.backend.component_pairs(numbers, edges, request.superlevel)
    essential = deaths < 0
    born = numbers[births]
    died = numbers[deaths] if numbers.size else born
    died[essential] = last_value(numbers.dtype, request.superlevel)
    kept = essential | lasting(born, died, least)
    return PersistencePairs(
        origin.wrap(born[kept]),
        origin.wrap(died[kept]),
        origin.wrap(births[kept, None]),
        origin.wrap(deaths[kept, None]),
        dimension=0,
        superlevel=request.superlevel,
    )


def simplicial_transform(
    points: Any,
    simplices: Any,
    directions: int | ArrayLike = 64,
    thresholds: int | ArrayLike = 128,
    *,
    weights: ArrayLike | None = None,
    range: tuple[float, float] | None = None,
    center: Literal["mean", "box"] | None = None,
    normalize: Literal["radius"] | None = None,
    complete: bool = False,
    workers: int | None = None,
) -> EulerTransform[Any]:
    """Euler characteristic transform (ECT) of a mesh, a graph or a point set [1]_.

    The value at a unit vector u and a height t is the Euler characteristic of the simplices all of
    whose points x have a height ``<u, x>`` of at most t.

    Parameters
    ----------
    points : (n, d) array
        Finite coordinates.
    simplices, complete, workers
        As for :func:`simplicial_curve`.
    directions : int or (k, d) array, default 64
        Number of directions, see :func:`sample_directions`, for up to 3 coordinates, or an array of
        vectors of any length.
    thresholds : int or (m,) array, default 128
        Number of heights, evenly spaced over `range` including both ends, or an increasing array of
        heights.
    weights : (n,) array, optional
        Sum weights instead of counting simplices. A simplex weighs as much as the heaviest of its
        points, as in DECT [2]_. Points of weight 0 are in the complex, unlike those of an image.
    range : (low, high), optional
        Only if `thresholds` is an int. Default: -r to r, where r is the largest distance of a point
        from the origin, so that the last height includes the whole shape.
    center : {None, "mean", "box"}
        Move the mean of the points, or the centre of their bounding box, to the origin.
    normalize : {None, "radius"}
        "radius": divide coordinates, after centring, by the largest distance from the origin.

    Returns
    -------
    EulerTransform
        ``directions`` of shape (k, d) and unit length, ``heights`` of shape (m,), and ``values`` of
        shape (k, m): exact int64 numbers, or float64 sums if the weights are floats.

    Raises
    ------
    TypeError
        If points, directions or heights are not real numbers or simplices not integers.
    ValueError
        For coordinates and weights that are masked or not finite, weights whose sums overflow,
        directions that are zero or have not d components, heights that decrease or are NaN, and
        simplices as for :func:`simplicial_curve`.
    BackendError
        For arrays on devices other than CUDA.

    See Also
    --------
    euler_transform : Transforms of images.

    Notes
    -----
    Heights are computed in float64 as ``(u[0] * x[0] + u[1] * x[1]) + u[2] * x[2]``, where every
    product and sum is rounded. A simplex belongs to its highest point, so that each direction is a
    histogram of the points that have a sum of signs, which is zero almost everywhere on smooth
    meshes. Superlevel sets at (u, t) are the sublevel sets at (-u, -t).

    Arrays on CUDA devices are processed there. Integers are the same as on the CPU, except that the
    mean of the points that `center` removes may be rounded differently; sums of floats are the same
    in every run.

    References
    ----------
    .. [1] Turner, Mukherjee, Boyer, "Persistent homology transform for modeling shapes and
       surfaces", Information and Inference 3, 310-344, 2014, arXiv:1310.1030.
    .. [2] Roell and Rieck, "Differentiable Euler characteristic transforms for shape
       classification", ICLR 2024, arXiv:2310.07630.

    Examples
    --------
    >>> import ecc_core as ecc
    >>> letter = [[0, 1], [0, 0], [1, 0], [1, 1]]  # the letter U
    >>> strokes = [[0, 1], [1, 2], [2, 3]]
    >>> up, down = ecc.simplicial_transform(letter, strokes, [[0, 1], [0, -1]], [-1, 0, 1]).values
    >>> up, down  # downwards two arms that join
    (array([0, 1, 1]), array([2, 1, 1]))
    """
    is_plain = weights is None and center is None and normalize is None
    if is_plain and complete is False and workers is None:
        planned = planned_transform(points, simplices, directions, thresholds, range)
        if planned is not None:
            return EulerTransform(*planned, weighted=False)
    options = ComplexOptions(range=range, complete=complete, workers=workers)
    prepared = PointRequest.of(
        points,
        simplices,
        directions,
        thresholds,
        options,
        weights=weights,
        center=center,
        normalize=normalize,
    )
    with prepared as request:
        origin = request.origin
        values = request.backend.simplicial_transform(
            request.points,
            request.simplices,
            request.weights,
            request.directions,
            request.heights,
            workers=request.workers,
        )
        return EulerTransform(
            origin.wrap(request.directions),
            origin.wrap(request.heights),
            origin.wrap(values),
            weighted=request.weights is not None,
        )
