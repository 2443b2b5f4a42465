"""Stars of the points of a complex of edges and triangles, from which it is counted."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import cupy
import numpy as np

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import on_host
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.kernels import Struct, processors
from ecc_core._backends.cuda.simplicial_layout import HISTOGRAM, Layout

STARS = Struct("stars.cu", "Stars")
THREADS = 256
MOST_BLOCKS = 1 << 14
ENTRIES = 16  # Entries of a list, `kEntries` in stars.cu.
MOST_BYTES = 1 << 27  # The most memory of the stars of a complex.
RESIDENT = 4  # Blocks on a multiprocessor.
MOST_TURNS = 8  # The most turns of a block.
MOST_LEVELS = 2**15 - 1  # With more levels, codes are not compared two at a time.


class Stars(NamedTuple):
    """Lists of the neighbours of each point, and of the triangles at it; see stars.cu."""

    neighbours: Any
    triangles: Any

    def plan_count(self, layout: Layout, orders: int, levels: int, right: int) -> Call:
        """Return the launch that adds the signs of all simplices to histograms."""
        points = len(self.neighbours)
        struct = STARS(
            neighbours=self.neighbours.data.ptr,
            triangles=self.triangles.data.ptr,
            points=points,
            right=right,
        )
        histogram = HISTOGRAM(orders=orders, bins=levels)
        together = THREADS // layout.lanes
        turns = points // (together * RESIDENT * processors(cupy.cuda.runtime.getDevice()))
        each = together * max(1, min(turns, MOST_TURNS))
        grid = ceil_div(points, each), layout.groups(orders)
        arguments = struct, np.int32(each), histogram
        return plan_call("stars", "count_stars", _macros(layout), grid, THREADS, arguments)


def make_stars(rows: Sequence[Any], points: int, layout: Layout, levels: int) -> Stars | None:
    """Return the stars of a checked complex of edges and triangles; waits for the device.

    None if it has larger simplices, if a point has too many of them, or for too many levels.
    """
    if layout.packed and levels > MOST_LEVELS:
        return None
    if len(rows) > 2 or 2 * 4 * ENTRIES * points > MOST_BYTES:
        return None
    lists = [cupy.zeros((points, ENTRIES), dtype) for dtype in (np.int32, np.uint32)]
    full = cupy.zeros(1, np.int32)
    given = ("add_neighbours", lists[:1]), ("add_triangles", lists)
    for part, (name, filled) in zip(rows, given, strict=False):
        if len(part) == 0:
            continue
        grid = (min(ceil_div(len(part), THREADS), MOST_BLOCKS),)
        arguments = part, len(part), *filled, full
        plan_call("stars", name, _macros(layout), grid, THREADS, arguments).launch()
    return None if on_host(full)[0] else Stars(*map(programs.lasting, lists))


def _macros(layout: Layout) -> dict[str, Any]:
    return {"LANES": layout.lanes, "PACKED": int(layout.packed)}
