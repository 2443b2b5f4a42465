"""Hypothesis strategies for images, thresholds, masks and labels.

Values include ties, extremes of the dtype, both zeros, infinities and neighbouring floats. Sides
include those around multiples of 64 columns and of 8 and 16 rows, at which kernels change their
method.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div

__all__ = [
    "FLOAT_DTYPES",
    "INTEGER_DTYPES",
    "NATIVE_DTYPES",
    "SWAPPED_DTYPES",
    "chunkings",
    "image_shapes",
    "images",
    "labels",
    "masks",
    "thresholds",
]

INTEGER_DTYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
FLOAT_DTYPES = ("float16", "float32", "float64")
NATIVE_DTYPES = ("bool", *INTEGER_DTYPES, *FLOAT_DTYPES)
SWAPPED_DTYPES = (">u2", ">i4", ">u8", ">f4", ">f8")

Array = NDArray[Any]
Content = Literal["levels", "noise", "smooth"]

_WIDTHS = (1, 2, 3, 5, 8, 17, 31, 62, 63, 64, 65, 66, 126, 127, 128, 129, 130)
_HEIGHTS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 63, 64, 65, 66)
_DEPTHS = (1, 2, 3, 4, 5)


def image_shapes(ndim: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Draw shapes of 1 to 3 axes of at least one point, the last axis the longest.

    Parameters
    ----------
    ndim : int
        Number of axes, 1, 2 or 3.

    Returns
    -------
    SearchStrategy of tuple of int
    """
    sides = (_DEPTHS, _HEIGHTS[:9] if ndim == 3 else _HEIGHTS, _WIDTHS)[-ndim:]
    return st.tuples(*(st.sampled_from(side) for side in sides))


def _levels(
    draw: st.DrawFn, dtype: np.dtype[Any], ties: int | None, infinities: bool, nan: bool
) -> Array:
    """Return a few values of the dtype."""
    elements = hnp.from_dtype(dtype, allow_nan=False, allow_infinity=infinities)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        corners = {info.min, info.min + 1, info.max - 1, info.max, 0, 1, 2**53, 2**53 + 1}
        elements |= st.sampled_from(sorted(c for c in corners if info.min <= c <= info.max))
    most = 6 if ties is None else ties
    values = draw(st.lists(elements, min_size=1, max_size=most))
    if nan:
        values.append(np.nan)
    return np.array(values, dtype=dtype)


def _noise(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    if dtype.kind == "b":
        return rng.integers(2, size=shape).astype(dtype)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    native = dtype.newbyteorder("=")
    return rng.integers(info.min, info.max, shape, native, endpoint=True).astype(dtype)


def _smooth(rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    field = np.zeros(shape)
    extents = tuple(slice(n) for n in shape)
    for axis, grid in enumerate(np.ogrid[extents]):
        field = field + np.cos(grid * rng.uniform(0.02, 0.4) + axis)
    if dtype.kind == "b":
        return (field > 0).astype(dtype)
    return np.asarray((field + 3) * 20).astype(dtype)  # Values are in the range of int8.


@st.composite
def images(
    draw: st.DrawFn,
    ndim: int | None = None,
    *,
    dtypes: Sequence[str] = NATIVE_DTYPES,
    shapes: st.SearchStrategy[tuple[int, ...]] | None = None,
    content: Sequence[Content] = ("levels", "noise", "smooth"),
    ties: int | None = None,
    infinities: bool = True,
    nan: bool = False,
) -> Array:
    """Draw images.

    Parameters
    ----------
    ndim : int, optional
        Number of axes; 1, 2 or 3 drawn by default.
    dtypes : sequence of str, optional
        Dtypes to draw from.
    shapes : SearchStrategy of tuple of int, optional
        Shapes to draw from; :func:`image_shapes` by default.
    content : sequence of {"levels", "noise", "smooth"}, optional
        "levels" takes a few drawn values, so there are many ties and extremes; "noise" has as
        few ties as the dtype allows; "smooth" has few critical points.
    ties : int, optional
        Most distinct values of the "levels" images. 6 by default.
    infinities : bool, optional
        Whether floating "levels" images may hold infinities.
    nan : bool, optional
        Whether floating images hold a few NaN.

    Returns
    -------
    SearchStrategy of numpy.ndarray
    """
    if ndim is None:
        ndim = draw(st.integers(1, 3))
    shape = draw(image_shapes(ndim) if shapes is None else shapes)
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    kind = draw(st.sampled_from(content))
    nan = nan and dtype.kind == "f"
    if kind == "levels":
        levels = _levels(draw, dtype, ties=ties, infinities=infinities, nan=nan)
        return levels[rng.integers(levels.size, size=shape)]
    image = (_noise if kind == "noise" else _smooth)(rng, dtype, shape)
    if nan:
        image[rng.random(shape) < 0.1] = np.nan
    return image


def _around(draw: st.DrawFn, image: Array) -> list[Any]:
    """Return Python numbers at, just beside and far from some values of the image."""
    values = image[~np.isnan(image)].tolist()
    some: list[Any] = []
    if values:
        some = draw(st.lists(st.sampled_from(values), max_size=5))
    beside: list[Any] = [-1, 0, 300, 0.5, -0.0]
    for value in some:
        beside += [value]
        if isinstance(value, float):
            beside += [np.nextafter(value, -np.inf).item(), np.nextafter(value, np.inf).item()]
        else:
            beside += [int(value) - 1, int(value) + 1, int(value) + 0.5]
    if image.dtype.kind in "iu":
        beside += [np.iinfo(image.dtype).min, np.iinfo(image.dtype).max]
    return beside


@st.composite
def thresholds(draw: st.DrawFn, image: Array, *, dtypes: Sequence[str] | None = None) -> Array:
    """Draw non-decreasing thresholds for an image, with repeats, at and just beside its values.

    Parameters
    ----------
    image : numpy.ndarray
        The image.
    dtypes : sequence of str, optional
        Dtypes to draw from; the image's own, int64, uint64, float32 and float64 by default, so
        that thresholds lie between two of the image's values, beyond its dtype, or coincide.

    Returns
    -------
    SearchStrategy of numpy.ndarray of shape (n,)
    """
    native = image.dtype.newbyteorder("=").name
    choices = [native, "int64", "uint64", "float32", "float64"] if dtypes is None else list(dtypes)
    dtype: np.dtype[Any] = np.dtype(draw(st.sampled_from(choices)))
    pool = _around(draw, image)
    if dtype.kind == "f":
        limit = float(np.finfo(dtype).max)
        pool = [t for t in pool if -limit <= float(t) <= limit]
        pool += [np.inf, -np.inf]
    elif dtype.kind == "b":
        pool = [False, True]
    else:
        info = np.iinfo(dtype)
        whole = [int(t) for t in pool if math.isfinite(t)]
        pool = [t for t in whole if info.min <= t <= info.max]
    drawn = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=12))
    return np.sort(np.array(drawn, dtype=dtype))


@st.composite
def masks(draw: st.DrawFn, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Draw boolean masks of a shape, from all False to all True.

    Parameters
    ----------
    shape : tuple of int
        Shape of the mask.

    Returns
    -------
    SearchStrategy of numpy.ndarray of bool
    """
    kept = draw(st.sampled_from((0.0, 0.5, 0.9, 1.0)))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    return np.asarray(rng.random(shape) < kept)


@st.composite
def labels(
    draw: st.DrawFn,
    shape: tuple[int, ...],
    *,
    dtypes: Sequence[str] = ("uint8", "int32", "int64", "uint16"),
) -> Array:
    """Draw label images: background 0 and a few regions, touching, with unused labels between.

    Parameters
    ----------
    shape : tuple of int
        Shape of the labels.
    dtypes : sequence of str, optional
        Integer dtypes to draw from.

    Returns
    -------
    SearchStrategy of numpy.ndarray
    """
    dtype: np.dtype[Any] = np.dtype(draw(st.sampled_from(dtypes)))
    names = draw(st.lists(st.integers(0, np.iinfo(dtype).max), min_size=1, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    # Blocks of equal label, so that regions have an inside and touch along faces and corners.
    blocks = tuple(ceil_div(n, 4) for n in shape)
    coarse = rng.integers(len(names), size=blocks)
    for axis in range(coarse.ndim):
        coarse = coarse.repeat(4, axis=axis)
    speckle = rng.random(shape) < 0.05
    extent = tuple(slice(n) for n in shape)
    chosen = coarse[extent].copy()
    chosen[speckle] = rng.integers(len(names), size=int(speckle.sum()))
    return np.array(names, dtype=dtype)[chosen]


@st.composite
def chunkings(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Draw irregular divisions of a shape into chunks, some of length 0 and 1.

    Parameters
    ----------
    shape : tuple of int
        Shape of the array.

    Returns
    -------
    SearchStrategy of tuple of tuple of int
    """
    chunks = []
    for length in shape:
        cuts = draw(st.lists(st.integers(0, length), max_size=4))
        edges = [0, *sorted(cuts), length]
        chunks.append(tuple(np.diff(edges).tolist()))
    return tuple(chunks)
