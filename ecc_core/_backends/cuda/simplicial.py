"""Curves and transforms of simplicial complexes on CUDA, from checked CuPy arrays.

Everything runs on the current device and stream.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda.arrays import as_cupy, comparable, on_device
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.complexes import make_complex as make_complex
from ecc_core._backends.cuda.kernels import ELEMENTS
from ecc_core._backends.cuda.simplicial_layout import (
    BEGUN,
    COPIES,
    ENCODING_THREADS,
    HISTOGRAM,
    MOST_BLOCKS,
    SIMPLICES,
    SIZES,
    THREADS,
    Layout,
    counting,
    layout_of,
    sampling_of,
    shares,
    side_by_side,
)
from ecc_core._backends.cuda.simplicial_memory import plan_transform as plan_transform
from ecc_core._backends.cuda.transform_sampling import accumulate
from ecc_core._backends.cuda.wide_sums import Scales, join_parts, scales_of
from ecc_core._request.levels import Levels

Floats = NDArray[np.float64]


class Weights(NamedTuple):
    """Weights of points, int64 or float64, and what floats are multiplied by to be integers."""

    points: Any
    scales: Scales | None

    @property
    def parts(self) -> int:
        return 1 if self.scales is None else 2


def place(array: Any) -> Any:
    """Return an array as one of CuPy on the current device."""
    return on_device(array) if isinstance(array, np.ndarray) else as_cupy(array)


def simplicial_transform(
    points: Any,
    simplices: Sequence[Any],
    weights: Any | None,
    directions: Floats,
    heights: Floats,
    workers: int | None = None,
) -> Any:
    """Return the transform (directions, heights), int64 or in the dtype of the weights.

    `points` (n, d) are float64 and C-contiguous.
    """
    shape = len(directions), heights.size
    count, axes = points.shape
    if 0 in shape or count == 0:
        return cupy.zeros(shape, np.int64 if weights is None else weights.dtype)
    layout = layout_of(len(directions), heights.size)
    levels = on_device(heights)
    vectors = on_device(side_by_side(directions, layout))
    sampling = sampling_of(heights, levels)
    codes = cupy.empty((layout.groups(len(directions)), count, layout.lanes), np.uint32)
    given = points, count, np.int32(axes), vectors, *sampling, codes, 0, 0, BEGUN(), COPIES()
    _encode("encode_heights", layout.macros("double"), codes, given)
    scaled = None
    if weights is not None:
        cells = count + sum(map(len, simplices))
        scaled = _scaled(weights, cells)
    return _curves(codes, simplices, scaled, shape, layout)


def value_curves(
    values: Any, levels: Levels, simplices: Sequence[Any], workers: int | None = None
) -> Any:
    """Return the curves (orders, thresholds) of values (orders, points) without NaN, int64."""
    orders, count = values.shape
    number = levels.values.size
    entered = levels.entered
    if 0 in (orders, count, number):
        return cupy.zeros((orders, entered.size), np.int64)
    layout = layout_of(orders, number)
    own, bounds = comparable(values, levels.values)
    codes = cupy.empty((layout.groups(orders), count, layout.lanes), np.uint32)
    macros = layout.macros(ELEMENTS[own.dtype.name])
    numbers = np.int32(number), np.int32(levels.superlevel)
    given = cupy.ascontiguousarray(own), count, np.int32(orders), on_device(bounds), *numbers, codes
    _encode("encode_values", macros, codes, given)
    curves = _curves(codes, simplices, None, (orders, number), layout)
    if np.array_equal(entered, np.arange(1, number + 1)):
        return curves
    padded = cupy.concatenate([cupy.zeros((orders, 1), np.int64), curves], axis=1)
    return padded[:, on_device(entered)]


def _encode(name: str, macros: dict[str, Any], codes: Any, arguments: Sequence[Any]) -> None:
    groups, count, lanes = codes.shape
    grid = min(ceil_div(count * lanes, ENCODING_THREADS), MOST_BLOCKS), groups
    plan_call("simplicial", name, macros, grid, ENCODING_THREADS, arguments).launch()


def _scaled(weights: Any, terms: int) -> Weights:
    """Return weights for sums of so many terms."""
    if weights.dtype.kind != "f":
        return Weights(weights, None)
    weights, scales = scales_of(weights, terms)
    return Weights(weights, scales)


def _curves(
    codes: Any,
    simplices: Sequence[Any],
    weights: Weights | None,
    shape: tuple[int, int],
    layout: Layout,
) -> Any:
    """Return the curves (orders, levels) of codes (groups, points, lanes)."""
    orders, levels = shape
    parts = 1 if weights is None else weights.parts
    values = cupy.zeros((parts, orders, levels), np.int64)
    device = cupy.cuda.runtime.getDevice()
    macros, shared = counting(layout, parts, levels, device, weighted=weights is not None)
    histogram = HISTOGRAM(values=values.data.ptr, orders=orders, bins=levels)
    groups, points, _ = codes.shape
    grid, taken = shares(max([points, *map(len, simplices)]), groups, layout, device)
    for start in range(0, max(len(simplices), 1), SIZES):
        some = simplices[start : start + SIZES]
        given = _arguments(some, codes, weights, taken, with_points=start == 0)
        arguments = given, histogram
        plan_call(
            "simplicial", "count_simplices", macros, grid, THREADS, arguments, shared
        ).launch()
    accumulate(values, parts * orders, levels).launch()
    if weights is None or weights.scales is None:
        return values[0]
    return join_parts(values[0], values[1], weights.scales)


def _arguments(
    simplices: Sequence[Any], codes: Any, weights: Weights | None, taken: int, *, with_points: bool
) -> Any:
    """Return the kernel's Simplices."""
    missing = [0] * (SIZES - len(simplices))
    scales = None if weights is None else weights.scales
    return SIMPLICES(
        rows=[*(rows.data.ptr for rows in simplices), *missing],
        counts=[*map(len, simplices), *missing],
        sizes=[*(rows.shape[1] for rows in simplices), *missing],
        kinds=len(simplices),
        with_points=with_points,
        taken=taken,
        points=codes.shape[1],
        codes=codes.data.ptr,
        weights=0 if weights is None else weights.points.data.ptr,
        first_scale=1.0 if scales is None else scales.first,
        second_scale=1.0 if scales is None else scales.second,
    )
