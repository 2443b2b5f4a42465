"""Pack a piece into one array, to be kept in a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.pieces import Graph, Piece

Array = NDArray[Any]
WORD = 8  # bytes
GRAPH = 4  # arrays of a graph besides its faces


def pack_piece(piece: Piece) -> NDArray[np.int64]:
    """Return a piece as one array."""
    sides = sorted(piece.faces)
    arrays: list[Array] = [piece.euler, np.array(sides, np.int64).reshape(-1, 2)]
    arrays += [piece.faces[side] for side in sides]
    for graph in piece.graphs:
        arrays += [graph.histogram, graph.births, graph.edges, graph.keys]
        arrays += [graph.faces[side] for side in sides]
    return np.concatenate([_pack(array) for array in arrays])


def unpack_piece(values: NDArray[np.int64]) -> Piece:
    """Return the piece that was packed into an array."""
    arrays = list(_unpack(values))
    euler, listed = arrays[:2]
    sides = [(axis, side) for axis, side in listed.tolist()]
    own = 2 + len(sides)
    graphs = []
    for at in range(own, len(arrays), GRAPH + len(sides)):
        histogram, births, edges, keys = arrays[at : at + GRAPH]
        faces = dict(zip(sides, arrays[at + GRAPH :], strict=False))
        graphs.append(Graph(histogram, births, edges, keys, faces))
    return Piece(euler, dict(zip(sides, arrays[2:own], strict=True)), graphs)


def _pack(array: Array) -> NDArray[np.int64]:
    """Return the dtype, number of axes, shape and elements of an array as words."""
    data = np.zeros(-(-array.nbytes // WORD) * WORD, np.uint8)
    data[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    kind = np.frombuffer(array.dtype.str.encode().ljust(WORD), np.int64)
    return np.concatenate([kind, [array.ndim], array.shape, data.view(np.int64)]).astype(np.int64)


def _unpack(values: NDArray[np.int64]) -> Iterator[Array]:
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
