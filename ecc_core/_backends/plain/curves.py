"""The functions of a backend by the definitions: cells of each kind, and who owns them.

Only functions of the array API standard are called, and nothing is written to, so that arrays stay
on their device, and may be immutable.
"""

import itertools
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.plain.cells import framed, kinds, values_of
from ecc_core._backends.plain.namespaces import dtype_of, like, standard_of
from ecc_core._request.boundary import CLOSED, Boundary
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import excluding, round_to_levels
from ecc_core._request.thresholds import LEAST_POSITIVE
from ecc_core.errors import NAN_MESSAGE

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
NOBODY = -1
"""The key of no point."""
Array = Any
"""An array of the library of the images, on their device."""


def _exactly(function: FunctionT) -> FunctionT:
    """Let a function whose first argument is an array have integers of 64 bits."""

    @wraps(function)
    def run(array: Array, *arguments: Any, **options: Any) -> Any:
        with standard_of(array).exact():
            return function(array, *arguments, **options)

    return run  # type: ignore[return-value]


@_exactly
def curve(
    images: Array,
    thresholds: NDArray[Any],
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> Array:
    """Return the Euler characteristic of every image at every threshold, (images, n) int64."""
    xp = standard_of(images).namespace
    ranks, entered, count = _ranked(images, thresholds, filtration, mask)
    nothing = like(np.zeros((images.shape[0], 1), np.int64), images)
    rows = xp.concat([nothing, _curves_of_ranks(ranks, count, filtration)], axis=1)
    return xp.take(rows, like(entered, images), axis=1)


@_exactly
def exact_curve(
    images: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> tuple[Array, Array]:
    """Return the levels at which the curve of the only image changes, and the curve there."""
    xp = standard_of(images).namespace
    values, absent = _values(images, filtration, mask)
    levels = xp.sort(xp.unique_values(values[~absent]))
    ranks = _ranks(values, absent, levels, superlevel=filtration.superlevel)
    sums = _curves_of_ranks(ranks, levels.shape[0], filtration)[0, ...]
    nothing = like(np.zeros(1, np.int64), images)
    before = xp.concat([nothing, sums], axis=0)[: sums.shape[0]]
    at = xp.flip(levels, axis=0) if filtration.superlevel else levels  # In the order of entry.
    changed = sums != before
    at = at[changed]
    sums = sums[changed]
    if filtration.superlevel:
        at = xp.flip(at, axis=0)
        sums = xp.flip(sums, axis=0)
    if filtration.direction is None:
        at = xp.astype(at, getattr(xp, dtype_of(images).name))
    return at, sums


@_exactly
def coefficients(
    images: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> Array:
    """Return the coefficient of every point, int8 of the images' shape."""
    xp = standard_of(images).namespace
    values, absent = _values(images, filtration, mask)
    # Any value will do: these points never enter.
    values = xp.where(absent, xp.zeros_like(values), values)
    found = [
        _coefficients_of_image(values[i, ...], absent[i, ...], filtration)
        for i in range(images.shape[0])
    ]
    return xp.stack(found) if found else xp.astype(values, xp.int8)


def _coefficients_of_image(values: Array, absent: Array, filtration: Filtration) -> Array:
    """Return the signed number of the cells that each point owns."""
    xp = standard_of(values).namespace
    shape = tuple(values.shape)
    cubes = filtration.cubes
    keys, never = _keys(values, absent, filtration)
    closed = Boundary.alike(CLOSED, len(shape))
    counts = xp.astype(xp.zeros_like(values), xp.int64)
    for kind in kinds(len(shape), cubes):
        cells = values_of(xp, keys, kind=kind, cubes=cubes, never=never, boundary=closed)
        for axis in itertools.compress(range(len(shape)), kind.pairs):
            if not cubes:  # Cells of cubes reach beyond both ends of the axis already.
                cells = framed(xp, cells, axis, NOBODY)
        steps = ((0, 1) if paired else (0,) for paired in kind.pairs)
        for ends in itertools.product(*steps):
            part = tuple(slice(end, end + n) for end, n in zip(ends, shape, strict=True))
            counts = counts + kind.sign * xp.astype(cells[part] == keys, xp.int64)
    return xp.astype(xp.where(absent, xp.zeros_like(counts), counts), xp.int8)


def _keys(values: Array, absent: Array, filtration: Filtration) -> tuple[Array, int]:
    """Return a number for each point, in the order of entry, and that of points that never enter.

    Of equal points the first one owns a cell, whether it is their largest or their smallest.
    """
    xp = standard_of(values).namespace
    flat = xp.reshape(values, (-1,))
    size = flat.shape[0]
    before = excluding(xp.sort(flat), flat, filtration.superlevel, xp.searchsorted)
    index = np.arange(size)
    place = like(index if filtration.cubes else size - 1 - index, values)
    keys = xp.reshape(xp.astype(before, xp.int64) * size + place, tuple(values.shape))
    never = size * size
    return xp.where(absent, xp.zeros_like(keys) + never, keys), never


@_exactly
def region_curves(
    image: Array,
    labels: Array,
    thresholds: NDArray[Any],
    filtration: Filtration,
    *,
    workers: int | None = None,
) -> tuple[Array, Array]:
    """Return the ids (k,) of regions, increasing, and their curves (k, n) int64."""
    xp = standard_of(image).namespace
    if dtype_of(labels).kind == "i" and bool(xp.any(labels < 0)):
        raise ValueError(f"`labels` must not be negative, got {int(xp.min(labels))}")
    ids = xp.sort(xp.unique_values(labels[labels != 0]))
    rows = []
    for i in range(ids.shape[0]):
        region = labels == ids[i]
        curves = curve(image[None, ...], thresholds, filtration, mask=region[None, ...])
        rows.append(curves[0, ...])
    if not rows:
        return ids, like(np.zeros((0, thresholds.size), np.int64), image)
    return ids, xp.stack(rows)


@_exactly
def number(
    images: Array,
    level: NDArray[Any],
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> int:
    """Return the Euler characteristic of the only image at one level, (1,)."""
    if level[0] == LEAST_POSITIVE[0] and filtration.superlevel and dtype_of(images).kind != "b":
        images = images > 0  # Some devices flush subnormal numbers to zero.
    return int(curve(images, level, filtration, mask=mask)[0, 0])


@_exactly
def value_range(
    images: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> tuple[Any, Any]:
    """Return the smallest and the largest finite value; (None, None) if there is none."""
    xp = standard_of(images).namespace
    values, absent = _values(images, filtration, mask)
    finite = values[~absent & xp.isfinite(values)]
    if finite.shape[0] == 0:
        return None, None
    dtype = np.dtype(np.float64) if filtration.direction is not None else dtype_of(images)
    number = float if dtype.kind == "f" else int
    return dtype.type(number(xp.min(finite))), dtype.type(number(xp.max(finite)))


def after_range(filtration: Filtration) -> Filtration:
    """Return the filtration unchanged, so that NaN is still an error if it was one before."""
    return filtration


@_exactly
def surface(
    first: Array,
    second: Array,
    thresholds: tuple[NDArray[Any], NDArray[Any]],
    filtrations: tuple[Filtration, Filtration],
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> Array:
    """Return the Euler characteristics of intersections, (images, n, m) int64."""
    xp = standard_of(first).namespace
    ranks, entered, count = _ranked(first, thresholds[0], filtrations[0], mask)
    _values(second, filtrations[1], mask)  # NaN is refused even where `first` never enters.
    rows = [like(np.zeros((first.shape[0], thresholds[1].size), np.int64), first)]
    for level in range(count):
        shown = ranks <= level if mask is None else (ranks <= level) & mask
        rows.append(curve(second, thresholds[1], filtrations[1], mask=shown))
    return xp.take(xp.stack(rows, axis=1), like(entered, first), axis=1)


def _ranked(
    images: Array, thresholds: NDArray[Any], filtration: Filtration, mask: Array | None
) -> tuple[Array, NDArray[np.int64], int]:
    """Return ranks, the number of levels entered at each threshold, and the number of levels.

    The rank of a point is the number of levels that exclude it.
    """
    values, absent = _values(images, filtration, mask)
    dtype = np.dtype(np.float64) if filtration.direction is not None else dtype_of(images)
    levels = round_to_levels(thresholds, dtype, filtration.superlevel)
    at = like(levels.values.astype(_computed(dtype)), images)
    ranks = _ranks(values, absent, at, superlevel=filtration.superlevel)
    return ranks, levels.entered, levels.values.size


def _ranks(values: Array, absent: Array, levels: Array, *, superlevel: bool) -> Array:
    """Return the number of levels that exclude each point; all exclude one that is absent."""
    xp = standard_of(values).namespace
    never = levels.shape[0]
    flat = xp.reshape(values, (-1,))
    ranks = excluding(levels, flat, superlevel, xp.searchsorted)
    ranks = xp.reshape(xp.astype(ranks, xp.int64), tuple(values.shape))
    return xp.where(absent, xp.zeros_like(ranks) + never, ranks)


def _curves_of_ranks(ranks: Array, count: int, filtration: Filtration) -> Array:
    """Return the Euler characteristic of each image after each level, (images, levels) int64."""
    xp = standard_of(ranks).namespace
    levels = like(np.arange(count), ranks)
    total = like(np.zeros((ranks.shape[0], count), np.int64), ranks)
    for kind in kinds(filtration.ndim, filtration.cubes):
        rows = []
        for i in range(ranks.shape[0]):
            points = ranks[i, ...]
            cells = values_of(
                xp,
                points,
                kind=kind,
                cubes=filtration.cubes,
                never=count,
                boundary=filtration.boundary,
            )
            ordered = xp.sort(xp.reshape(cells, (-1,)))
            entered = xp.searchsorted(ordered, levels, side="right")
            rows.append(xp.astype(entered, xp.int64))
        if rows:
            total = total + kind.sign * xp.stack(rows)
    return total


def _values(images: Array, filtration: Filtration, mask: Array | None) -> tuple[Array, Array]:
    """Return values in the dtype of computation, with the direction, and which never enter."""
    xp = standard_of(images).namespace
    dtype = dtype_of(images)
    if filtration.direction is not None:
        nothing = np.zeros(tuple(images.shape)[1:])
        heights = filtration.direction.add(nothing, (0,) * filtration.ndim)
        values = xp.astype(images, xp.float64) + like(heights, images)
    else:
        values = xp.astype(images, getattr(xp, _computed(dtype).name))
    absent = xp.isnan(values) if dtype.kind == "f" else xp.astype(values * 0, xp.bool)
    shown_nan = absent if mask is None else absent & mask
    if filtration.nan == "raise" and bool(xp.any(shown_nan)):
        raise ValueError(NAN_MESSAGE)
    return values, absent if mask is None else absent | ~mask


def _computed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which values are compared: few libraries sort unsigned integers."""
    small = dtype.kind == "b" or (dtype.kind == "u" and dtype.itemsize < 8)
    return np.dtype(np.int64) if small else dtype
