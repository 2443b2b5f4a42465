"""Simplicial complexes on a device: sorted simplices, without repetitions, that hold all faces."""

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda.arrays import on_host
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._request.simplicial import open_error, outside_error, repeated_error
from ecc_core.errors import BackendError

THREADS = 256
MOST_BLOCKS = 1 << 14  # whose threads take several simplices each, if there are more
MOST_ROWS = 2**30  # whose numbers, and the entries of a table for them, have 32 bits
NOTHING_WRONG = 2**64 - 1


class Table:
    """Distinct simplices of one dimension, and a hash table of their rows."""

    def __init__(self, rows: Any) -> None:
        self._candidates = rows
        count, self._size = rows.shape
        if count > MOST_ROWS:
            raise BackendError(
                f"`simplices` must be at most {MOST_ROWS} of a dimension on a device, got {count}"
            )
        self._entries = cupy.full(1 << (2 * count).bit_length(), -1, np.int32)
        kept = cupy.empty_like(rows)
        number = cupy.zeros(1, np.uint64)
        _launch(
            "keep_distinct", self._size, count, rows, count, self._entries, self._mask, kept, number
        )
        self.rows = kept[: int(on_host(number)[0])]

    @property
    def _mask(self) -> Any:
        return np.uint32(self._entries.size - 1)

    def check_faces_of(self, larger: Any) -> None:
        """Raise an error if simplices with one more point have faces that are missing here."""
        missing = cupy.full(1, NOTHING_WRONG, np.uint64)
        count = len(larger)
        given = larger, count, self._candidates, self._entries, self._mask, missing
        _launch("find_faces", self._size, count * (self._size + 1), *given)
        found = int(on_host(missing)[0])
        if found != NOTHING_WRONG:
            i, left_out = divmod(found, self._size + 1)
            raise open_error(on_host(larger[i]), left_out)


def _launch(name: str, size: int, items: int, *arguments: Any) -> None:
    """Launch a kernel for simplices of `size` points with a thread for each item."""
    if items == 0:
        return
    grid = (min(ceil_div(items, THREADS), MOST_BLOCKS),)
    plan_call("simplices", name, {"SIZE": size}, grid, THREADS, arguments).launch()


def _ordered(given: Any, points: int) -> Any:
    """Return int64 simplices with increasing points, as int32."""
    count, size = given.shape
    rows = cupy.empty((count, size), np.int32)
    wrong = cupy.full(1, NOTHING_WRONG, np.uint64)
    _launch("order_points", size, count, given, count, points, rows, wrong)
    found = int(on_host(wrong)[0])
    if found != NOTHING_WRONG:
        i, repeated = divmod(found, 2)
        row = on_host(given[i])
        raise repeated_error(row) if repeated else outside_error(row, points)
    return rows


def _faces(rows: Any) -> Any:
    count, size = rows.shape
    faces = cupy.empty((count * size, size - 1), np.int32)
    _launch("list_faces", size, count, rows, count, faces)
    return faces


def make_complex(given: Sequence[Any], points: int, complete: bool) -> list[Any]:
    """Return the edges, triangles and so on of a complex, by dimension; waits for the device."""
    if points >= 2**31:
        raise BackendError(f"`points` must be fewer than 2**31 on a device, got {points}")
    most = given[-1].shape[1] if given else 1
    by_size = {rows.shape[1]: _ordered(rows, points) for rows in given}
    larger: Any = None
    found: list[Any] = []
    for size in range(most, 1, -1):
        candidates = [by_size[size]] if size in by_size else []
        if complete and larger is not None:
            candidates.append(_faces(larger))
        table = Table(_joined(candidates, size))
        if not complete and larger is not None:
            table.check_faces_of(larger)
        larger = table.rows
        found.append(larger)
    return found[::-1]


def _joined(parts: list[Any], size: int) -> Any:
    if not parts:
        return cupy.empty((0, size), np.int32)
    return parts[0] if len(parts) == 1 else cupy.concatenate(parts)
