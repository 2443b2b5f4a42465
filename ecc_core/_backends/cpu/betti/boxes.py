"""Boxes that touch: their faces, the edges between them, and arrays packed to be kept in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel

Array = NDArray[Any]
Side = tuple[int, int]

WORD = 8  # bytes


def joined_faces(low: dict[Side, Array], high: dict[Side, Array], axis: int) -> dict[Side, Array]:
    """Return the arrays over the open sides of the union of two boxes."""
    faces = {side: face for side, face in low.items() if side == (axis, 0)}
    faces |= {side: face for side, face in high.items() if side == (axis, 1)}
    for (other, side), face in low.items():
        if other != axis:
            along = axis - (axis > other)  # of the two axes of a face
            faces[other, side] = np.concatenate([face, high[other, side]], axis=along)
    return faces


@kernel()
def edges_across(nodes: Any, keys: Any, far_nodes: Any, far_keys: Any, wide: Any) -> Any:
    """Return the edges between two faces that touch, as pairs of nodes, and their keys.

    If `wide`, points are neighbours along diagonals too. A diagonal is left out where a point
    opposite to one of its ends has entered before: the edges within the faces and the straight ones
    join its ends. Of successive edges between the same nodes the first to enter is listed.
    """
    rows, columns = nodes.shape
    reach = 1 if wide else 0
    count, more = 0, columns * (9 if wide else 1)  # that a row may add
    edges, edge_keys = np.empty((more, 2), nodes.dtype), np.empty(more, np.uint64)
    last_near, last_far, last_key = np.int64(-1), np.int64(-1), np.uint64(0)
    for y in range(rows):
        if count + more > edge_keys.size:
            edges = np.concatenate((edges[:count], np.empty((count + more, 2), edges.dtype)))
            edge_keys = np.concatenate((edge_keys[:count], np.empty(count + more, np.uint64)))
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
                    edges[count, 0], edges[count, 1], edge_keys[count] = near, far, key
                    count += 1
    return edges[:count], edge_keys[:count]


def pack(arrays: Iterable[Array]) -> NDArray[np.int64]:
    """Return arrays as words: of each the dtype, the number of axes, the shape and the elements."""
    words: list[Any] = []
    for array in arrays:
        data = np.zeros(-(-array.nbytes // WORD) * WORD, np.uint8)
        data[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        kind = np.frombuffer(array.dtype.str.encode().ljust(WORD), np.int64)
        words += [kind, [array.ndim], array.shape, data.view(np.int64)]
    return np.concatenate(words)


def unpack(values: NDArray[np.int64]) -> Iterator[Array]:
    """Give the arrays that were packed into one."""
    at = 0
    while at < values.size:
        dtype = np.dtype(values[at : at + 1].tobytes().decode().strip())
        ndim = int(values[at + 1])
        at += 2 + ndim
        shape = values[at - ndim : at].tolist()
        count = int(np.prod(shape, dtype=np.int64))
        words = -(-count * dtype.itemsize // WORD)
        yield values[at : at + words].view(dtype)[:count].reshape(shape)
        at += words


def pack_sides(sides: Iterable[Side]) -> Array:
    """Return sides as an array."""
    return np.array([*sides], np.int64).reshape(-1, 2)


def unpack_sides(packed: Array) -> list[Side]:
    """Return the sides of such an array."""
    return [(axis, side) for axis, side in packed.tolist()]
