"""Curves of dask arrays, computed block by block: lazy, exact for any chunks, in bounded memory.

:func:`ecc_core.euler_curve` accepts dask arrays too; this module has the functions specific to
blocks.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._arrays import is_lazy
from ecc_core._arrays.request import Request
from ecc_core._blocks.boxes import differences
from ecc_core._dask import graph
from ecc_core._dask.arguments import (
    Axes,
    check_dask_image,
    given_thresholds,
    lazy_request,
)
from ecc_core._dask.graph import da, dask
from ecc_core._dask.whole import whole_regions
from ecc_core._partition import Partition
from ecc_core._request.image import check_window
from ecc_core._request.options import ImageOptions
from ecc_core._request.spatial_axes import all_axes, geometry_of
from ecc_core.quantities._base import NoOptions
from ecc_core.quantities.euler import EULER, CurveValues
from ecc_core.results import LocalCurves, RegionCurves, curve_facts

__all__ = ["LocalCurves", "euler_curve_blocks", "local_curves", "region_curves"]

Array = NDArray[Any]


def euler_curve_blocks(
    image: Any,
    thresholds: ArrayLike,
    *,
    range: tuple[float, float] | None = None,
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: Any | None = None,
    nan: Literal["raise", "omit"] = "raise",
    axis: Axes = None,
) -> Any:
    """Signed histograms of the blocks of a dask array, which add up to that of the image.

    Parameters
    ----------
    image : dask array of 1 to 3 spatial axes
        Chunks must have known sizes. Each is read once.
    thresholds : int or array
        As for :func:`ecc_core.euler_curve`. An int requires `range`, because the image is not read
        to find it.
    range, connectivity, superlevel, nan, axis
        As for :func:`ecc_core.euler_curve`.
    mask : bool array or dask array, optional
        False at points to exclude. Must have the image's shape, or its spatial shape.

    Returns
    -------
    dask array of int64, of shape batch + (blocks, n)
        One row per non-empty block, in C order. Entry i is the contribution of the block's cells
        that enter at threshold i, so that the curve is ``blocks.sum(-2).cumsum(-1)`` (for
        superlevel sets, summed from the last threshold). With connectivity 1 a block owns the cells
        whose lowest corner it contains. Otherwise, a block of the points a to b - 1 along an axis
        owns the closed cubes a to b - 1 and the faces above each of them; the first block also owns
        the lowest face.

    Raises
    ------
    TypeError
        If the image is not a dask array of NumPy or CuPy arrays of real numbers of at most 64 bits.
    ValueError
        If chunks have unknown sizes, `range` is missing, and as for :func:`ecc_core.euler_curve`.
        When computed: if the image contains NaN, unless omitted.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from ecc_core.dask import euler_curve_blocks
    >>> image = da.from_array(np.array([[0, 1, 0, 1, 0]]), chunks=(1, 3))
    >>> blocks = euler_curve_blocks(image, [0, 1])
    >>> blocks.compute()
    array([[ 2, -1],
           [ 1, -1]])
    >>> blocks.sum(axis=0).cumsum(axis=0).compute()
    array([3, 1])
    """
    options = ImageOptions(
        range=range,
        connectivity=connectivity,
        superlevel=superlevel,
        mask=mask,
        nan=nan,
        axis=axis,
    )
    request = lazy_request(image, thresholds, options)
    curve = CurveValues(request.thresholds(), request.filtration)
    shares = graph.sums_of_blocks(curve, request.images, request.mask, each_block=True)
    order = request.filtration.superlevel
    return shares.map_blocks(differences, superlevel=order, dtype=np.int64, meta=shares._meta)


def region_curves(
    image: Any,
    labels: Any,
    thresholds: ArrayLike,
    *,
    ids: ArrayLike | None = None,
    range: tuple[float, float] | None = None,
    connectivity: int | None = None,
    superlevel: bool = False,
) -> RegionCurves:
    """Curves of all labelled regions of a dask array, which may extend over several chunks.

    Parameters
    ----------
    image : dask array of 1 to 3 axes
        Chunks must have known sizes. Each is read once.
    labels : integer array or dask array of the image's shape
        0 is background. It is rechunked to the chunks of the image.
    thresholds : int or array
        All regions have the same thresholds. An int requires `range`.
    ids : sequence of int, optional
        Labels whose curves to compute, in this order; labels without points have zero curves.
        Default: all labels that occur. These are found in the same pass over the image, so the
        lengths of the results are unknown (NaN) until they are computed, as for
        :func:`dask.array.unique`.
    range, connectivity, superlevel
        As for :func:`ecc_core.region_curves`.

    Returns
    -------
    RegionCurves
        ``labels`` of shape (k,) in the dtype of `labels`, ``thresholds`` of shape (n,), and
        ``values``, an int64 dask array of shape (k, n). ``dask.compute(result)`` computes labels
        and values in one pass.

    Raises
    ------
    TypeError, ValueError
        As for :func:`euler_curve_blocks`, if labels are not integers or have another shape than the
        image, and if `ids` are not positive or contain duplicates. When computed: if labels are
        negative, or a labelled point is NaN.

    Notes
    -----
    Each task needs memory for n integers per label in its block, and the sum for n integers per
    label.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from ecc_core.dask import region_curves
    >>> labels = da.from_array(np.array([[1, 1, 1, 7], [1, 0, 1, 7], [1, 1, 1, 7]]), chunks=2)
    >>> region_curves(da.zeros((3, 4), chunks=2), labels, [0], ids=[7, 1, 4]).values.compute()
    array([[1],
           [0],
           [0]])
    """
    options = ImageOptions(range=range, connectivity=connectivity, superlevel=superlevel)
    found: RegionCurves = whole_regions(
        EULER,
        image,
        labels=labels,
        thresholds=thresholds,
        options=options,
        own=NoOptions(),
        ids=ids,
    )
    return found


def local_curves(
    image: Any,
    window: int | Sequence[int],
    thresholds: ArrayLike,
    *,
    range: tuple[float, float] | None = None,
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: Any | None = None,
    nan: Literal["raise", "omit"] = "raise",
) -> LocalCurves:
    """Curves of the tiles of an image.

    Parameters
    ----------
    image : (n,), (m, n) or (p, m, n) array or dask array
        As for :func:`ecc_core.euler_curve`. A dask array is rechunked to whole tiles.
    window : int or sequence of int
        Number of points of a tile along each axis. The last tiles may be smaller.
    thresholds : int or array
        An int requires `range`, so that all tiles have the same thresholds.
    range, connectivity, superlevel, mask, nan
        As for :func:`ecc_core.euler_curve`.

    Returns
    -------
    LocalCurves
        ``thresholds`` of shape (n,), and ``values``, int64 of shape (tiles along each axis) + (n,):
        ``values[i, j]`` is the curve of tile (i, j) on its own. For a dask array, ``values`` is a
        dask array.

    Raises
    ------
    TypeError, ValueError
        As for :func:`euler_curve_blocks`, and if a window is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.dask import local_curves
    >>> image = np.zeros((4, 6))
    >>> image[1, 1] = 1
    >>> local_curves(image, 3, [0]).values[..., 0]
    array([[0, 1],
           [1, 1]])
    """
    options = ImageOptions(
        connectivity=connectivity,
        superlevel=superlevel,
        mask=mask,
        nan=nan,
        axis=all_axes(image),
    )
    lazy = is_lazy(image)
    if lazy:
        image = check_dask_image(image)
        tile = check_window(window, geometry_of(image.shape).ndim)
        image = image.rechunk(_tile_chunks(image.chunks, tile))
        request = lazy_request(image, given_thresholds(thresholds, range), options)
    else:
        request = Request.of(image, given_thresholds(thresholds, range), options)
        tile = check_window(window, request.geometry.ndim)
    curve = CurveValues(request.thresholds(), request.filtration)
    facts = curve_facts(request.filtration)
    image = request.images
    mask = request.mask
    if not lazy:
        masks = () if mask is None else (mask[0, ...],)
        values = _curves_of_tiles(image[0, ...], *masks, tile=tile, computed=curve)
        return LocalCurves(curve.thresholds, request.origin.wrap(values), **facts)
    arrays = (image,) if mask is None else (image, mask)
    tiles_of_chunks = []
    for lengths, side in zip(image.chunks, tile, strict=True):
        tiles = [ceil_div(length, side) for length in lengths]
        tiles_of_chunks.append(tuple(tiles))
    values = da.map_blocks(
        _curves_of_tiles,
        *arrays,
        tile=tile,
        computed=dask.delayed(curve, traverse=False, pure=True),
        chunks=(*tiles_of_chunks, (curve.size,)),
        new_axis=image.ndim,
        dtype=np.int64,
        meta=graph.counts_like(image, image.ndim + 1),
        name="ecc-tiles-" + dask.base.tokenize(*arrays, tile, curve),
    )
    return LocalCurves(curve.thresholds, values, **facts)


def _tile_chunks(
    chunks: tuple[tuple[int, ...], ...], tile: tuple[int, ...]
) -> tuple[tuple[int, ...], ...]:
    """Return chunks of about the given sizes that hold whole tiles."""
    aligned = []
    for lengths, window in zip(chunks, tile, strict=True):
        total = sum(lengths)
        step = ceil_div(max(lengths, default=1), window) * window or window
        whole = tuple(min(step, total - at) for at in range(0, total, step))
        aligned.append(whole or (0,))
    return tuple(aligned)


def _curves_of_tiles(
    image: Array, *mask: Array, tile: tuple[int, ...], computed: CurveValues
) -> NDArray[np.int64]:
    """Return the curve of each tile on its own, of shape (tiles along each axis, n).

    Tiles of one shape are computed as a batch: the complete ones, and for each set of axes those
    that the end of the image cuts off along them.
    """
    shape = Partition.of_chunks(image.shape, tile).counts
    values = np.zeros_like(image, shape=(*shape, computed.size), dtype=np.int64)
    spans = [_spans(n, window) for n, window in zip(image.shape, tile, strict=True)]
    for parts in itertools.product(*spans):
        region = tuple(slice(start, stop) for start, stop, _ in parts)
        sizes = [size for _, _, size in parts]
        counts = [(stop - start) // size for start, stop, size in parts]
        box = tuple(_batch(array[region], counts, sizes) for array in (image, *mask))
        at = []
        for (start, _, _), window, count in zip(parts, tile, counts, strict=True):
            first = start // window
            at.append(slice(first, first + count))
        values[tuple(at)] = computed.of_box(*box).reshape((*counts, -1))
    return values


def _spans(length: int, window: int) -> list[tuple[int, int, int]]:
    """Return start, stop and size of tile for the whole tiles along an axis, and for the rest."""
    whole = length - length % window
    spans = [(0, whole, window), (whole, length, length - whole)]
    return [span for span in spans if span[0] < span[1]]


def _batch(part: Array, counts: list[int], sizes: list[int]) -> Array:
    """Return the tiles of a part of an image as a batch, (tiles, *size)."""
    ndim = part.ndim
    split = part.reshape([n for pair in zip(counts, sizes, strict=True) for n in pair])
    ordered = split.transpose([*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2)])
    return ordered.reshape((-1, *sizes))
