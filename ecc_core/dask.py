"""Curves of dask arrays, block by block: lazy, exact for every chunking, in bounded memory.

:func:`ecc_core.euler_curve` takes dask arrays too; here is what is particular to blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core import _checks
from ecc_core._dask import graph
from ecc_core._dask.blocks import Settings, differences
from ecc_core._dask.tiles import curves_of_tiles, tile_chunks
from ecc_core._directions import Tilt
from ecc_core._optional import import_optional
from ecc_core._thresholds import even_thresholds

__all__ = ["LocalCurves", "euler_curve_blocks", "local_curves", "whole_curve"]

da = import_optional("dask.array", extra="dask", purpose="computing by blocks")

Array = NDArray[Any]
Axes = SupportsIndex | Sequence[SupportsIndex] | None


class LocalCurves(NamedTuple):
    """Curves of the tiles of an image.

    Attributes
    ----------
    thresholds : (n,) array
    values : int64 array
        Of shape (tiles along each axis) + (n,).
    """

    thresholds: Array
    values: Any


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
    """Signed histograms of all blocks of a dask array; they add up to that of the image.

    Parameters
    ----------
    image : dask array of 1 to 3 spatial axes
        In any chunks of known sizes. Each is read once.
    thresholds : int or array
        As for :func:`ecc_core.euler_curve`. An int needs `range`: the image is not read to find it.
    range, connectivity, superlevel, nan, axis
        As for :func:`ecc_core.euler_curve`.
    mask : bool array or dask array, optional
        False where a point never enters. Of the image's shape, or of its spatial shape.

    Returns
    -------
    dask array of int64, of shape batch + (blocks, n)
        One row for each block that has points, in C order. Its entry i is what the block adds to
        the Euler characteristic at threshold i, in the order of entry, so that the curve is
        ``blocks.sum(-2).cumsum(-1)`` (superlevel: summed from the last threshold). A block's share
        is that of its own points and of what joins them to later blocks: the curve of the points
        ``[a, b]`` less that of the faces at ``b``, b being the first point of the next block.

    Raises
    ------
    TypeError
        For arrays that are not dask arrays of NumPy arrays of real numbers of at most 64 bits.
    ValueError
        For chunks of unknown sizes, an int without a range, and as :func:`ecc_core.euler_curve`.
        When computed: for NaN, unless omitted.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from ecc_core.dask import euler_curve_blocks
    >>> image = da.from_array(np.array([[0, 1, 0, 1, 0]]), chunks=(1, 3))
    >>> blocks = euler_curve_blocks(image, [0, 1])
    >>> blocks.compute()
    array([[ 2, -2],
           [ 1,  0]])
    >>> blocks.sum(axis=0).cumsum(axis=0).compute()
    array([3, 1])
    """
    _, shares = _shares(image, thresholds, range, connectivity, superlevel, mask, nan, axis)
    return shares.map_blocks(
        differences, superlevel=bool(superlevel), dtype=np.int64, meta=shares._meta
    )


def whole_curve(
    image: Any,
    thresholds: ArrayLike,
    *,
    range: tuple[float, float] | None,
    connectivity: int | None,
    superlevel: bool,
    mask: Any | None,
    nan: Literal["raise", "omit"],
    axis: Axes,
    workers: int | None,
    direction: ArrayLike | None,
    direction_scale: float,
    spacing: ArrayLike | None,
) -> tuple[Array, Any]:
    """Thresholds and lazy values of :func:`ecc_core.euler_curve` for a dask array."""
    if workers is not None:
        raise ValueError(
            "`workers` must be None for a dask array, whose scheduler has the threads, "
            f"got {workers!r}"
        )
    if direction is not None:
        image = _tilted(image, axis, direction, direction_scale, spacing)
    at, shares = _shares(image, thresholds, range, connectivity, superlevel, mask, nan, axis)
    return at, graph.sum_of_blocks(shares)


def _shares(
    image: Any,
    thresholds: ArrayLike,
    bounds: tuple[float, float] | None,
    connectivity: int | None,
    superlevel: bool,
    mask: Any | None,
    nan: str,
    axis: Axes,
) -> tuple[Array, Any]:
    """Checked thresholds, and the shares of all blocks in the curve."""
    image = _check_image(image)
    axes = _checks.spatial_axes(image.shape, axis)
    construction = _checks.check_connectivity(connectivity, len(axes))
    _checks.check_nan(nan)
    at = _threshold_array(thresholds, bounds)
    order = (*(a for a in np.arange(image.ndim).tolist() if a not in axes), *axes)
    image, mask = _split_masked(image, _aligned(mask, image, axes))
    if mask is not None:
        mask = mask.transpose(order)
    settings = Settings(at, construction, bool(superlevel), nan)
    return at, graph.block_curves(image.transpose(order), mask, settings, len(axes))


def _check_image(image: Any) -> Any:
    """A dask array of real numbers in chunks of known sizes, none of them empty."""
    if not isinstance(image, da.Array):
        raise TypeError(f"`image` must be a dask array, got {type(image).__name__}")
    _checks.check_image_dtype(image.dtype)
    if not isinstance(image._meta, np.ndarray):
        library = type(image._meta).__module__.partition(".")[0]
        raise TypeError(f"`image` must have chunks of NumPy arrays, got those of {library}")
    if any(math.isnan(n) for n in image.shape):
        raise ValueError(
            "`image` must have chunks of known sizes (call image.compute_chunk_sizes() first), "
            f"got shape {image.shape}"
        )
    return graph.without_empty_chunks(image)


def _threshold_array(thresholds: ArrayLike, bounds: tuple[float, float] | None) -> Array:
    """The thresholds; none of them may depend on the values of the image."""
    if isinstance(thresholds, str):
        raise ValueError(
            f"`thresholds` must be an int or an array for a dask array, got {thresholds!r}"
        )
    count = _checks.as_count(thresholds, "thresholds")
    if count is None:
        if bounds is not None:
            raise ValueError("`range` must be None where `thresholds` is an array, got both")
        return _checks.check_threshold_array(thresholds)
    if bounds is None:
        raise ValueError(
            f"`range` must be given with `thresholds` {count} for a dask array, which is not read "
            "to find its values, got None"
        )
    return even_thresholds(*_checks.check_range(bounds), count)


def _aligned(mask: Any | None, image: Any, axes: tuple[int, ...]) -> Any | None:
    """A mask of the image's shape and chunks."""
    if mask is None:
        return None
    if not isinstance(mask, da.Array):
        mask = np.asarray(mask)
    spatial = tuple(image.shape[a] for a in axes)
    _checks.check_mask(mask.shape, mask.dtype, image.shape, spatial)
    if mask.shape != image.shape:
        # spatial axes come in the order in which they were named
        mask = mask.transpose(np.argsort(axes).tolist())
        where = tuple(slice(None) if a in axes else None for a in np.arange(image.ndim).tolist())
        mask = da.broadcast_to(da.asarray(mask)[where], image.shape)
    if isinstance(mask, da.Array):
        return graph.without_empty_chunks(mask).rechunk(image.chunks)
    return da.from_array(mask, chunks=image.chunks)


def _split_masked(image: Any, mask: Any | None) -> tuple[Any, Any | None]:
    """An image and its mask; the masks of ``numpy.ma`` chunks are honoured."""
    if not isinstance(image._meta, np.ma.MaskedArray):
        return image, mask
    shown = ~da.ma.getmaskarray(image)
    return da.ma.getdata(image), shown if mask is None else shown & mask


def _tilted(
    image: Any,
    axis: Axes,
    direction: ArrayLike,
    scale: float,
    spacing: ArrayLike | None,
) -> Any:
    """The directional filtration of an image."""
    image = _check_image(image)
    axes = _checks.spatial_axes(image.shape, axis)
    unit = _checks.check_direction(direction, len(axes))
    steps = _checks.check_spacing(spacing, len(axes))
    tilt = Tilt(tuple(image.shape[a] for a in axes), unit, _checks.check_scale(scale), steps)
    height: Any = None
    for along, terms in zip(axes, tilt.terms, strict=True):
        shape = [1] * image.ndim
        shape[along] = terms.size
        chunks = tuple(c if i == along else 1 for i, c in enumerate(image.chunks))
        term = da.from_array(terms.reshape(shape), chunks=chunks)
        height = term if height is None else height + term
    return image.astype(np.float64) + tilt.scale * height


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
    """Curve of every tile of an image: a coarse image of curves.

    Parameters
    ----------
    image : (n,), (m, n) or (p, m, n) array or dask array
        As for :func:`ecc_core.euler_curve`. Chunks of a dask array are aligned with the tiles.
    window : int or sequence of int
        Points of a tile along each axis. The last tiles are what is left.
    thresholds : int or array
        An int needs `range`, so that all tiles have the same.
    range, connectivity, superlevel, mask, nan
        As for :func:`ecc_core.euler_curve`.

    Returns
    -------
    LocalCurves
        ``thresholds`` (n,), and ``values``, int64 of shape (tiles along each axis) + (n,):
        ``values[i, j]`` is the curve of tile (i, j) as an image of its own. A dask array for a
        dask array.

    Raises
    ------
    TypeError, ValueError
        As :func:`euler_curve_blocks`, and for windows that are not positive.

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
    lazy = isinstance(image, da.Array)
    if lazy:
        image = _check_image(image)
    else:
        image, mask = _checks.split_masked(image, mask)
        image = np.asarray(image)
        _checks.check_image_dtype(image.dtype)
    axes = _checks.spatial_axes(image.shape, None)
    construction = _checks.check_connectivity(connectivity, len(axes))
    _checks.check_nan(nan)
    tile = _check_window(window, len(axes))
    settings = Settings(_threshold_array(thresholds, range), construction, bool(superlevel), nan)
    if not lazy:
        if mask is not None:
            mask = np.asarray(mask)
            _checks.check_mask(mask.shape, mask.dtype, image.shape, image.shape)
        masks = () if mask is None else (mask,)
        values = curves_of_tiles(image, *masks, tile=tile, settings=settings)
        return LocalCurves(settings.thresholds, values)
    image = image.rechunk(tile_chunks(image.chunks, tile))
    image, mask = _split_masked(image, _aligned(mask, image, axes))
    return LocalCurves(settings.thresholds, graph.tile_curves(image, mask, tile, settings))


def _check_window(window: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """Points of a tile along each axis."""
    sizes = np.asarray(window)
    if sizes.dtype.kind not in "iu":
        raise TypeError(f"`window` must be an int or {ndim} ints, got {window!r}")
    if sizes.shape not in ((), (ndim,)) or (sizes < 1).any():
        raise ValueError(f"`window` must be a positive int or {ndim} of them, got {window!r}")
    return tuple(np.broadcast_to(sizes, (ndim,)).tolist())
