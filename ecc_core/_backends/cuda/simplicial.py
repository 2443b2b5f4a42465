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
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct, processors, shared_limit
from ecc_core._backends.cuda.transform_sampling import SAMPLING, accumulate, evenness
from ecc_core._backends.cuda.wide_sums import Scales, join_parts, scales_of
from ecc_core._request.levels import Levels

Floats = NDArray[np.float64]

SIMPLICES = Struct("simplicial.cu", "Simplices")
HISTOGRAM = Struct("simplicial.cu", "Histogram")
THREADS = 1024  # that share a histogram
ENCODING_THREADS = 256
WARP = 32
RESIDENT = 2  # blocks on a multiprocessor
SIZES = 8  # of simplices that a launch counts
LARGEST_HALF = 2**16 - 1  # of codes that share a word
MOST_BLOCKS = 1 << 16


class Layout(NamedTuple):
    """How orders of points lie side by side."""

    lanes: int
    """That share a simplex: a power of two."""
    packed: bool
    """Whether a word holds two codes."""

    @property
    def orders(self) -> int:
        """Orders in a group."""
        return self.lanes * (1 + self.packed)

    @property
    def columns(self) -> int:
        """Columns of a histogram, of which every lane has its own."""
        return WARP * (1 + self.packed)

    def groups(self, orders: int) -> int:
        return ceil_div(orders, self.orders)

    def macros(self, value: str, **others: Any) -> dict[str, Any]:
        usual = {"SHARED": 0, "PARTS": 1, "WEIGHTED": 0, "VALUE": value, "WEIGHT": "long long"}
        return {"LANES": self.lanes, "PACKED": int(self.packed)} | usual | others


def _layout(orders: int, levels: int) -> Layout:
    """Return the layout for so many orders: as many lanes as there are, rounded up."""
    packed = orders > WARP and levels <= LARGEST_HALF
    lanes = WARP if orders > WARP // 2 else 1 << (orders - 1).bit_length()
    return Layout(lanes, packed)


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
    layout = _layout(len(directions), heights.size)
    groups = layout.groups(len(directions))
    chosen = np.minimum(np.arange(groups * layout.orders), len(directions) - 1)
    vectors = on_device(np.ascontiguousarray(directions[chosen].T))
    levels = on_device(heights)
    # Heights beyond all levels need no guess.
    origin, scale, _ = evenness(heights, float(np.abs(heights).max()))
    sampling = SAMPLING(levels=levels.data.ptr, count=heights.size, origin=origin, scale=scale)
    codes = cupy.empty((groups, count, layout.lanes), np.uint32)
    macros = layout.macros("double")
    given = points, count, np.int32(axes), vectors, sampling, codes
    _encode("encode_heights", macros, codes, given)
    scaled = None if weights is None else _scaled(weights, count + sum(map(len, simplices)))
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
    layout = _layout(orders, number)
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
    own = 4 if weights is None else 8
    shared = own * parts * levels * layout.columns
    if shared > shared_limit(device):
        shared = 0
    macros = layout.macros(
        "double",
        SHARED=int(shared > 0),
        PARTS=parts,
        WEIGHTED=int(weights is not None),
        WEIGHT="double" if parts == 2 else "long long",
    )
    histogram = HISTOGRAM(values=values.data.ptr, orders=orders, bins=levels)
    groups, points, _ = codes.shape
    units = ceil_div(max([points, *map(len, simplices)]), THREADS)
    resident = RESIDENT * processors(device)
    grid = max(1, min(units, ceil_div(resident, groups))), groups
    for start in range(0, max(len(simplices), 1), SIZES):
        some = simplices[start : start + SIZES]
        given = _arguments(some, codes, weights, with_points=start == 0)
        arguments = given, histogram
        plan_call(
            "simplicial", "count_simplices", macros, grid, THREADS, arguments, shared
        ).launch()
    accumulate(values, parts * orders, levels).launch()
    if weights is None or weights.scales is None:
        return values[0]
    return join_parts(values[0], values[1], weights.scales)


def _arguments(
    simplices: Sequence[Any], codes: Any, weights: Weights | None, *, with_points: bool
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
        points=codes.shape[1],
        codes=codes.data.ptr,
        weights=0 if weights is None else weights.points.data.ptr,
        first_scale=1.0 if scales is None else scales.first,
        second_scale=1.0 if scales is None else scales.second,
    )
