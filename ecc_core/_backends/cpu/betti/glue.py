"""The edges between boxes that touch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel

Array = NDArray[Any]


def edges_across(*faces: Array, wide: bool) -> tuple[Array, Array]:
    """Return the edges between two faces that touch, as pairs of nodes, and their keys.

    Faces are given by the nodes and keys of the points of one, then of the other.
    """
    edges, keys = np.empty((0, 2), faces[0].dtype), np.empty(0, np.uint64)
    size = _list_edges(*faces, wide, edges, keys)
    edges, keys = np.empty((size, 2), edges.dtype), np.empty(size, keys.dtype)
    _list_edges(*faces, wide, edges, keys)
    return edges, keys


@kernel()
def _list_edges(
    nodes: Any, keys: Any, far_nodes: Any, far_keys: Any, wide: Any, edges: Any, edge_keys: Any
) -> Any:
    """List the edges between two faces that touch, as far as there is room; return their number.

    If `wide`, points are neighbours along diagonals too. A diagonal is left out where a point
    opposite to one of its ends has entered before: the edges within the faces and the straight ones
    join its ends. Of successive edges between the same nodes the first to enter is listed.
    """
    rows, columns = nodes.shape
    room = edge_keys.size
    reach = 1 if wide else 0
    count = 0
    last_near, last_far, last_key = np.int64(-1), np.int64(-1), np.uint64(0)
    for y in range(rows):
        for x in range(columns):
            own, straight = np.uint64(keys[y, x]), np.uint64(far_keys[y, x])
            for v in range(max(y - reach, 0), min(y + reach + 1, rows)):
                for u in range(max(x - reach, 0), min(x + reach + 1, columns)):
                    key = max(own, np.uint64(far_keys[v, u]))
                    beside = v != y or u != x
                    if beside and (straight <= key or np.uint64(keys[v, u]) <= key):
                        continue
                    near, far = np.int64(nodes[y, x]), np.int64(far_nodes[v, u])
                    if near == last_near and far == last_far:
                        if key >= last_key:
                            continue
                        count -= 1
                    last_near, last_far, last_key = near, far, key
                    if count < room:
                        edges[count, 0], edges[count, 1] = near, far
                        edge_keys[count] = key
                    count += 1
    return count
