"""Persistence pairs of the sublevel and superlevel sets of an image."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ecc_core._arrays import is_lazy
from ecc_core._arrays.request import Request, indices_of, single_request
from ecc_core._arrays.xarray import call_unlabelled, is_labelled
from ecc_core._request.levels import last_value
from ecc_core._request.masks import as_booleans
from ecc_core._request.options import ImageOptions
from ecc_core._request.persistence import check_dimension, check_persistence, lasting
from ecc_core._types import Axes, ComplexBoundary
from ecc_core.results import PersistencePairs, curve_facts

__all__ = ["PersistencePairs", "persistence_pairs"]


def persistence_pairs(
    image: ArrayLike,
    dimension: int | None = None,
    *,
    min_persistence: float = 0,
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: ArrayLike | None = None,
    nan: Literal["raise", "omit"] = "raise",
    axis: Axes = None,
    workers: int | None = None,
    boundary: ComplexBoundary = "closed",
) -> PersistencePairs:
    """Births and deaths of components, holes or tunnels, and cavities, as the threshold grows.

    Parameters
    ----------
    image : (n,), (m, n) or (p, m, n) array
        As for :func:`betti_curves`. For a dask array, results are dask arrays of unknown length,
        and nothing is read before they are computed.
    dimension : int, optional
        0: components. 1: holes in 2-D, tunnels in 3-D. 2: cavities in 3-D. Default: all of them,
        and d, the torus itself, if the image is periodic along all axes. For a dask array it must
        be given, from 0 to d - 1: each chunk is reduced to its final classes and to what other
        chunks can still change, and these parts are joined in a tree. For tunnels, chunks are read
        with the points around them.
    min_persistence : float, default 0
        Leave out classes whose values of birth and death differ by less. Those that never die are
        kept. Differences are those of :func:`betti_curves`.
    connectivity, superlevel, mask, nan
        As for :func:`betti_curves`.
    axis : int or tuple of int, optional
        The spatial axes; default all. The rest must have length 1: pairs are those of one image.
    workers : int, optional
        Threads; default as many as there are cores. They share a volume; an image in 2-D or a
        periodic image is computed by one.
    boundary : {"closed", "periodic"} or one of them for each spatial axis
        As for :func:`betti_curves`. The classes of a torus or of a cylinder never die.

    Returns
    -------
    PersistencePairs
        ``births``, ``deaths`` (k,), and the indices of the points that cause them,
        ``birth_points``, ``death_points`` (k, d), ordered by dimension and birth; ``dimensions``
        and ``persistence``, the differences, (k,). Classes that die at the value at which they are
        born are left out.

    Raises
    ------
    TypeError, ValueError, BackendError
        As :func:`betti_curves`; ValueError for another dimension, for a persistence that is
        negative or NaN, and for dask arrays of 64-bit integers with a mask; BackendError for
        volumes that are too large for tunnels on a device.
    MemoryError
        If the pairs cannot fit in memory. Beyond the image, tunnels of a volume need 3 bytes a
        voxel and as many for each thread, images in 2-D 6 to 13 bytes a pixel, and periodic ones 30
        bytes a point or 64 with tunnels. The error is raised before the work begins, and says what
        would fit. Classes of noise need up to 30 bytes a voxel in addition.

    See Also
    --------
    persistent_regions : labels of the components that last.

    Notes
    -----
    When two components meet, the younger one dies: of two that were born at one value the one whose
    point comes later in C order. Likewise a tunnel that is filled is the youngest of those that its
    filling could close. The diagrams are those that GUDHI computes for
    ``CubicalComplex(vertices=image)`` (connectivity 1) and
    ``CubicalComplex(top_dimensional_cells=image)``, or ``PeriodicCubicalComplex``, with
    coefficients in Z/2.

    Components and cavities are the trees of two spanning forests, as for :func:`betti_curves`.
    Tunnels are born at edges that close loops of the first forest and filled at squares that close
    those of the second [2]_. A discrete gradient by lower stars [1]_ leads from the latter to the
    former.

    References
    ----------
    .. [1] Robins, Wood, Sheppard, "Theory and algorithms for constructing discrete Morse complexes
       from grayscale digital images", IEEE Transactions on Pattern Analysis and Machine
       Intelligence 33, 2011.
    .. [2] Guillou, Vidal, Tierny, "Discrete Morse Sandwich", IEEE Transactions on Visualization and
       Computer Graphics 30, 2024.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> heights = np.array([0.0, 3.0, 1.0, 2.0, 0.0])
    >>> ecc.persistence_pairs(heights, 0).to_gudhi()  # the second valley is joined at the summit
    array([[ 0., inf],
           [ 0.,  3.],
           [ 1.,  2.]])

    A ring that is filled later, with all of its classes:

    >>> image = np.array([[1, 1, 1], [1, 5, 2], [1, 1, 1]])
    >>> pairs = ecc.persistence_pairs(image, connectivity=1)
    >>> pairs.dimensions, pairs.births
    (array([0, 1]), array([1, 2]))
    >>> pairs.death_points[1]
    array([1, 1])
    >>> len(ecc.persistence_pairs(image, 1, min_persistence=4).births)
    0
    """
    least = check_persistence(min_persistence)
    options = ImageOptions(
        connectivity=connectivity,
        superlevel=superlevel,
        mask=mask,
        nan=nan,
        axis=axis,
        workers=workers,
        boundary=boundary,
    )
    if is_labelled(image):
        return call_unlabelled(
            persistence_pairs, image, dimension, min_persistence=least, **options.given()
        )
    if is_lazy(image):
        from ecc_core._dask.pairs import whole_pairs

        return whole_pairs(image, dimension, options, least)
    request = single_request(image, options)
    filtration = request.filtration
    known = list(range(filtration.classes))
    asked = known
    if dimension is not None:
        wanted = f"{', '.join(map(str, known))} or None for a {filtration.ndim}-D image"
        asked = [check_dimension(dimension, known, wanted)]
    with _found(request, asked, least) as found:
        shape = tuple(request.images.shape[1:])
        indices = (indices_of(points, shape) for points in (found.births, found.deaths))
        wrapped = tuple(map(request.origin.wrap, (found.born, found.died, *indices)))
    facts = curve_facts(filtration)
    if dimension is None:
        facts |= {"dimension": None, "counts": tuple(found.counts)}
    else:
        facts |= {"dimension": asked[0]}
    return PersistencePairs(*wrapped, **facts)


def flat_pairs(
    image: Any, options: ImageOptions, least: float
) -> tuple[ArrayLike, ArrayLike, list[int]]:
    """Return the points at which classes are born and die, and the number of each dimension.

    Points are given by their number in C order, (k,), or -1 for the death of those that never die.
    """
    request = single_request(image, options)
    dimensions = list(range(request.filtration.classes))
    if least > 0:
        with _found(request, dimensions, least) as found:
            births, deaths = map(request.origin.wrap, (found.births, found.deaths))
            return births, deaths, found.counts
    find = request.topology("persistence_pairs")
    with request.origin.transforms().numbers(request.images) as images:
        births, deaths, counts = _points(
            find, request, array=_values(images), dimensions=dimensions, least=least
        )
        return request.origin.wrap(births), request.origin.wrap(deaths), counts


class _Pairs(NamedTuple):
    """Classes of an image: the points at which they are born and die, and the values there.

    `births` and `deaths` (k,) are numbers of points in C order, the latter -1 for classes that
    never die, and `born` and `died` (k,) are values. `counts` has the number of each dimension.
    """

    births: Any
    deaths: Any
    born: Any
    died: Any
    counts: list[int]


@contextmanager
def _found(request: Request, dimensions: list[int], least: float) -> Iterator[_Pairs]:
    """Give the pairs of an image, as arrays of the backend, within its device and stream."""
    origin = request.origin
    superlevel = request.filtration.superlevel
    find = request.topology("persistence_pairs")
    with origin.transforms().numbers(request.images) as images:
        array = _values(images)
        births, deaths, counts = _points(
            find, request, array=array, dimensions=dimensions, least=least
        )
        native = array.dtype.newbyteorder("=")
        last = native.type(last_value(native, superlevel))
        if origin.on_host:
            from ecc_core._backends.cpu.gathering import values_at

            flat = np.asarray(array).reshape(-1)
            born, died = (values_at(flat, points) for points in (births, deaths))
            died[deaths < 0] = last
        else:
            from ecc_core._backends.cuda import gathering

            born, died = gathering.values_at(array, births, deaths, last)
            if least > 0:
                kept = (deaths < 0) | lasting(born, died, least)
                parts = np.split(kept, np.cumsum(counts[:-1], dtype=int).tolist())
                counts = [int(part.sum()) for part in parts]
                births, deaths, born, died = (part[kept] for part in (births, deaths, born, died))
        yield _Pairs(births=births, deaths=deaths, born=born, died=died, counts=counts)


def _values(images: Any) -> Any:
    """Return the only image of a batch; in a boolean one, True is stored as 1."""
    return as_booleans(images[0]) if images.dtype.kind == "b" else images[0]


def _points(
    find: Callable[..., Any], request: Request, array: Any, dimensions: list[int], least: float
) -> tuple[Any, Any, list[int]]:
    """Return the points at which classes are born and die, and the number of each dimension.

    On a device, they include classes that last less than `least`.
    """
    pruned: dict[str, Any] = {"least": least} if request.origin.on_host else {}
    found = find(array[None], dimensions, request.filtration, **pruned, **request.options)
    counts = [len(born) for born, _ in found]
    if len(found) == 1 and not request.origin.on_host:
        return *found[0], counts
    births, deaths = (np.concatenate(points) for points in zip(*found, strict=True))
    return births, deaths, counts
