"""Pack the arrays of a piece into one, to be kept in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
WORD = 8  # bytes


def pack(arrays: Iterable[Array]) -> NDArray[np.int64]:
    """Return arrays as one array."""
    return np.concatenate([_pack(array) for array in arrays])


def pack_sides(sides: Iterable[tuple[int, int]]) -> Array:
    """Return sides as an array."""
    return np.array([*sides], np.int64).reshape(-1, 2)


def unpack_sides(packed: Array) -> list[tuple[int, int]]:
    """Return the sides of such an array."""
    return [(axis, side) for axis, side in packed.tolist()]


def _pack(array: Array) -> NDArray[np.int64]:
    """Return the dtype, number of axes, shape and elements of an array as words."""
    data = np.zeros(-(-array.nbytes // WORD) * WORD, np.uint8)
    data[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    kind = np.frombuffer(array.dtype.str.encode().ljust(WORD), np.int64)
    return np.concatenate([kind, [array.ndim], array.shape, data.view(np.int64)]).astype(np.int64)


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
