"""Simplicial complexes on a device: sorted simplices, without repetitions, that hold all faces."""

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import on_host
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.kernels import ELEMENTS
from ecc_core._request.simplicial import open_error, outside_error, repeated_error
from ecc_core.errors import BackendError

THREADS = 256
MOST_BLOCKS = 1 << 14  # Threads take several simplices each if there are more.
MOST_ROWS = 2**30  # The numbers of rows, and of the entries of a table of them, have 32 bits.
MOST_REPEATED = 2**22  # Repetitions among so many rows take less time than waiting for the device.
ENTRIES_OF_A_POINT = 8  # So many entries lie together in a table, `kNear` in simplices.cu.
EMPTY_BYTE = 0xFF  # Each byte of the number -1.
NOTHING_WRONG = 2**64 - 1
# The words of a dimension: a row that is no simplex, one that lacks a face, and the number of
# simplices.
WRONG = 0
MISSING = 1
KEPT = 2
WORDS = 3


class Problems:
    """Words of the device that tell what is wrong with simplices, read once for a complex."""

    def __init__(self, kinds: int) -> None:
        self._words = cupy.full((kinds, WORDS), NOTHING_WRONG, np.uint64)
        self._words[:, KEPT] = 0

    def word(self, kind: int, which: int) -> Any:
        """Return one word of the simplices of one dimension, as an array."""
        return self._words[kind, which:]

    def read(self) -> list[list[int]]:
        """Return all words; waits for the device."""
        found: list[list[int]] = on_host(self._words).tolist()
        return found


class Table:
    """Distinct simplices of one dimension, and a hash table of their rows.

    Their number is added to the word `number`.
    """

    def __init__(self, rows: Any, number: Any) -> None:
        self.candidates = rows
        count, self._size = rows.shape
        if count > MOST_ROWS:
            raise BackendError(
                f"`simplices` must be at most {MOST_ROWS} of a dimension on a device, got {count}"
            )
        entries = table_entries(count)
        self._mask = entries - 1
        self._entries = cupy.empty(entries, np.int32)
        stream = cupy.cuda.get_current_stream().ptr
        address = self._entries.data.ptr
        cupy.cuda.runtime.memsetAsync(address, EMPTY_BYTE, self._entries.nbytes, stream)
        self.kept = cupy.empty_like(rows)
        given = rows, count, self._entries, self._mask, self.kept, number
        _launch("keep_distinct", self._size, count, *given)

    def find_faces_of(self, larger: Any, missing: Any) -> None:
        """Write which simplices with one more point have faces that are missing here."""
        count = len(larger)
        given = larger, count, self.candidates, self._entries, self._mask, missing
        _launch("find_faces", self._size, count * (self._size + 1), *given)


def _launch(name: str, size: int, items: int, *arguments: Any) -> None:
    """Launch a kernel for simplices of `size` points with a thread for each item."""
    if items == 0:
        return
    call = plan_rows(name, size, items, len(arguments), "int64", cupy.cuda.runtime.getDevice())
    given = [a.data.ptr if isinstance(a, cupy.ndarray) else int(a) for a in arguments]
    call.launch(zip(call.places, given, strict=True))


@programs.plan
def plan_rows(name: str, size: int, items: int, count: int, index: str, _device: int) -> Call:
    """Return the launch of a kernel that takes `count` addresses and numbers, as `_launch` does.

    `index` is the type in which simplices are given.
    """
    grid = (min(ceil_div(items, THREADS), MOST_BLOCKS),)
    macros = {"SIZE": size, "NUMBER": ELEMENTS[index]}
    return plan_call("simplices", name, macros, grid, THREADS, [0] * count)


def table_entries(count: int) -> int:
    """Return the entries of a hash table of so many rows, a power of two."""
    return 1 << (2 * count + ENTRIES_OF_A_POINT).bit_length()


def _ordered(given: Any, points: int, wrong: Any) -> Any:
    """Return int64 simplices with increasing points, as int32; write what is wrong with them."""
    count, size = given.shape
    rows = cupy.empty((count, size), np.int32)
    _launch("order_points", size, count, given, count, points, rows, wrong)
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
    if not given:
        return []
    sizes = range(2, given[-1].shape[1] + 1)
    problems = Problems(len(sizes))
    by_size = {}
    for rows in given:
        size = rows.shape[1]
        by_size[size] = _ordered(rows, points, problems.word(size - 2, WRONG))
    tables: list[Table] = []
    for size in reversed(sizes):
        candidates = [by_size[size]] if size in by_size else []
        if complete and tables:
            candidates.append(_faces(_fewer(tables[-1], size - 1, problems)))
        table = Table(_joined(candidates, size), problems.word(size - 2, KEPT))
        if not complete and tables:
            table.find_faces_of(tables[-1].candidates, problems.word(size - 2, MISSING))
        tables.append(table)
    tables.reverse()
    words = problems.read()
    _raise_for(words, {rows.shape[1]: rows for rows in given}, tables, points)
    return [table.kept[: own[KEPT]] for table, own in zip(tables, words, strict=True)]


def _fewer(table: Table, kind: int, problems: Problems) -> Any:
    """Return rows of a table: only the distinct ones if their number is worth waiting for."""
    if len(table.candidates) <= MOST_REPEATED:
        return table.candidates
    return table.kept[: problems.read()[kind][KEPT]]


def _raise_for(
    words: list[list[int]], given: dict[int, Any], tables: list[Table], points: int
) -> None:
    """Raise an error for what is wrong with simplices."""
    for size, own in enumerate(words, start=2):
        if own[WRONG] != NOTHING_WRONG:
            i, repeated = divmod(own[WRONG], 2)
            row = on_host(given[size][i])
            raise repeated_error(row) if repeated else outside_error(row, points)
    for size, own in reversed(list(enumerate(words, start=2))):
        if own[MISSING] != NOTHING_WRONG:
            i, left_out = divmod(own[MISSING], size + 1)
            raise open_error(on_host(tables[size - 1].candidates[i]), left_out)


def _joined(parts: list[Any], size: int) -> Any:
    if not parts:
        return cupy.empty((0, size), np.int32)
    return parts[0] if len(parts) == 1 else cupy.concatenate(parts)
