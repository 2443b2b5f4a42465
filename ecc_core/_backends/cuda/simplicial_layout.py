"""How orders of the points of a complex lie side by side, and how blocks share its simplices."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda.kernels import Struct, processors, shared_limit
from ecc_core._backends.cuda.transform_sampling import SAMPLING, evenness

Floats = NDArray[np.float64]

SIMPLICES = Struct("simplicial.cu", "Simplices")
HISTOGRAM = Struct("simplicial.cu", "Histogram")
BEGUN = Struct("simplicial.cu", "Begun")
COPIES = Struct("simplicial.cu", "Copies")
THREADS = 1024  # Threads of a block, which share a histogram.
ENCODING_THREADS = 256
WARP = 32
RESIDENT = 2  # Blocks on a multiprocessor.
LEAST_TAKEN = 8  # The fewest simplices that a warp takes at a time.
SIZES = 8  # A launch counts simplices of up to so many sizes.
LARGEST_HALF = 2**16 - 1  # The largest code of two that share a word.
MOST_BLOCKS = 1 << 11  # So many blocks that compute heights keep a device busy.


class Layout(NamedTuple):
    """How orders of points lie side by side."""

    lanes: int
    """Lanes that share a simplex, a power of two."""
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


def layout_of(orders: int, levels: int) -> Layout:
    """Return the layout for so many orders: as many lanes as there are, rounded up."""
    packed = orders > WARP and levels <= LARGEST_HALF
    lanes = WARP if orders > WARP // 2 else 1 << (orders - 1).bit_length()
    return Layout(lanes, packed)


def side_by_side(directions: Floats, layout: Layout) -> Floats:
    """Return directions as kernels read them, (axes, orders); the last one fills a group."""
    orders = layout.groups(len(directions)) * layout.orders
    chosen = np.minimum(np.arange(orders), len(directions) - 1)
    return np.ascontiguousarray(directions[chosen].T)


def sampling_of(heights: Floats, levels: Any) -> tuple[Any, np.float64]:
    """Return the kernels' Sampling of heights, which are at `levels` on the device.

    Also returns how far heights are from evenly spaced places, in steps.
    """
    origin, scale, error = evenness(heights, float(np.abs(heights).max()))
    sampling = SAMPLING(levels=levels.data.ptr, count=heights.size, origin=origin, scale=scale)
    return sampling, np.float64(error)


def counting(
    layout: Layout, parts: int, levels: int, device: int, *, weighted: bool = False
) -> tuple[dict[str, Any], int]:
    """Return the macros and the shared memory of `count_simplices`; 0 if bins do not fit there."""
    own = 8 if weighted else 4
    shared = own * parts * levels * layout.columns
    if shared > shared_limit(device):
        shared = 0
    weight = "double" if parts == 2 else "long long"
    options = {"SHARED": int(shared > 0), "PARTS": parts, "WEIGHTED": int(weighted)}
    return layout.macros("double", WEIGHT=weight, **options), shared


def shares(most: int, groups: int, layout: Layout, device: int) -> tuple[tuple[int, int], int]:
    """Return the grid of `count_simplices`, and the simplices that a warp takes at a time.

    `most` are the most simplices of a dimension. Warps take fewer simplices at a time, which makes
    more blocks, only as long as there are less than a quarter of the blocks that are resident at
    once: each block ends by adding its bins to those in global memory.
    """
    resident = ceil_div(RESIDENT * processors(device), groups)
    least = max(LEAST_TAKEN, WARP // layout.lanes)
    taken = WARP
    while taken > least and ceil_div(most * WARP, THREADS * taken) * 4 < resident:
        taken //= 2
    blocks = ceil_div(most * WARP, THREADS * taken)
    return (max(1, min(blocks, resident)), groups), taken
