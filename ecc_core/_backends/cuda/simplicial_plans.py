"""Transforms of complexes of one layout: the arguments of their launches are laid out once.

The simplices are checked by kernels while the transform is computed. A call whose arguments are not
as they should be is left to the functions in full, which say what is wrong.
"""

from collections.abc import Callable, Sequence
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import address_of, adopt, as_cupy, copy_of
from ecc_core._backends.cuda.calls import plan_call, take_reply
from ecc_core._backends.cuda.complexes import MOST_ROWS, plan_rows, table_entries
from ecc_core._backends.cuda.kernels import ELEMENTS
from ecc_core._backends.cuda.simplicial_layout import (
    ENCODING_THREADS,
    HISTOGRAM,
    MOST_BLOCKS,
    SIMPLICES,
    SIZES,
    THREADS,
    counting,
    layout_of,
    sampling_of,
    shares,
    side_by_side,
)
from ecc_core._backends.cuda.transform_sampling import accumulate

Floats = NDArray[np.float64]
Run = Callable[[Any, Sequence[Any]], tuple[Any, Any, Any] | None]

ROWS, CODES, WRONG, REPLY = map(SIMPLICES.word, ("rows", "codes", "wrong", "reply"))
VALUES = HISTOGRAM.word("values")
LINE = 16  # bytes to which parts of memory are aligned
EMPTY_BYTE = 0xFF  # of tables, and of the word that tells what is wrong


def plan_transform(
    points: Any, simplices: Sequence[Any], directions: Floats, heights: Floats
) -> Run | None:
    """Return a function of points and simplices in the layout of these, or None.

    Points (n, d) are floats. Simplices are integers, one array for each number of points from 2 on.
    The function returns directions, heights and the transform, or None.
    """
    with adopt(points) as view:
        own = view.array
        rows = [as_cupy(part) for part in simplices]
        sizes = [part.shape[1] for part in rows]
        counts = [len(part) for part in rows]
        types = {part.dtype.name for part in rows}
        contiguous = all(array.flags.c_contiguous for array in (own, *rows))
        in_order = sizes == list(range(2, 2 + len(sizes)))
        known = view.element in ("float32", "float64") and types in ({"int32"}, {"int64"})
        if 0 in (own.size, *counts, heights.size, len(directions)):
            return None
        if not (contiguous and in_order and known):
            return None
        if len(sizes) > SIZES or max([*counts, len(own)]) > MOST_ROWS:
            return None
        return _Transform(own, types.pop(), counts, directions, heights)


class _Transform:
    """The launches of a transform, and where they find what they read in one block of memory.

    A call returns directions, heights and the transform, or None if it has to be made in full.
    """

    def __init__(
        self, points: Any, index: str, counts: list[int], directions: Floats, heights: Floats
    ) -> None:
        self._device = device = points.device.id
        count, axes = points.shape
        layout = layout_of(len(directions), heights.size)
        groups = layout.groups(len(directions))
        self._shape = len(directions), heights.size
        self._directions = directions.shape
        self._facts = programs.upload(np.concatenate([directions.ravel(), heights]))
        levels = self._facts[directions.size :]
        self._vectors = programs.upload(side_by_side(directions, layout))

        self._entries = [table_entries(number) for number in counts]
        sizes = range(2, 2 + len(counts))
        self._enter = [
            plan_rows("enter_rows", size, number, 7, index, device)
            for size, number in zip(sizes, counts, strict=True)
        ]
        self._find = [
            plan_rows("find_faces", size, number * (size + 1), 6, index, device)
            for size, number in zip(sizes, counts[1:], strict=False)
        ]
        self._points = count
        self._counts = counts

        blocks = min(ceil_div(count * layout.lanes, ENCODING_THREADS), MOST_BLOCKS)
        sampling = sampling_of(heights, levels)
        cleared = 0, len(directions) * heights.size
        given = 0, count, np.int32(axes), self._vectors, sampling, 0, 0, *cleared
        macros = layout.macros(ELEMENTS[points.dtype.name])
        self._encode = plan_call(
            "simplicial", "encode_heights", macros, (blocks, groups), ENCODING_THREADS, given
        )
        macros, shared = counting(layout, 1, heights.size, device)
        grid, taken = shares(max([count, *counts]), groups, layout, device)
        missing = [0] * (SIZES - len(counts))
        struct = SIMPLICES(
            counts=[*counts, *missing],
            sizes=[*sizes, *missing],
            kinds=len(counts),
            with_points=1,
            taken=taken,
            points=count,
            first_scale=1.0,
            second_scale=1.0,
        )
        histogram = HISTOGRAM(orders=len(directions), bins=heights.size)
        self._count = plan_call(
            "simplicial", "count_simplices", macros, grid, THREADS, (struct, histogram), shared
        )
        self._sum = accumulate(0, *self._shape)
        self._lay_out(groups * count * layout.lanes)

    def _lay_out(self, codes: int) -> None:
        """Find the places in memory of what is wrong, tables, rows, and so many codes."""
        place = LINE
        self._tables = []
        for entries in self._entries:
            self._tables.append(place)
            place += 4 * entries
        self._empty_bytes = place
        self._rows = []
        for size, number in enumerate(self._counts, start=2):
            self._rows.append(place)
            place += ceil_div(4 * size * number, LINE) * LINE
        self._codes = place
        self._bytes = place + 4 * codes

    def __call__(self, points: Any, simplices: Sequence[Any]) -> tuple[Any, Any, Any] | None:
        if cupy.cuda.runtime.getDevice() != self._device or programs.is_capturing():
            return None
        with adopt(points) as view:
            stream = cupy.cuda.get_current_stream().ptr
            memory = cupy.cuda.alloc(self._bytes)
            values = cupy.ndarray(self._shape, np.int64)
            cupy.cuda.runtime.memsetAsync(memory.ptr, EMPTY_BYTE, self._empty_bytes, stream)
            reply = take_reply(self._device)
            self._check(memory.ptr, [address_of(rows) for rows in simplices], stream)
            self._launch(memory.ptr, address_of(points), values.data.ptr, reply.address, stream)
            directions, heights = self._copy_facts()
            (is_wrong,) = reply.wait(1)
            reply.release()
            if is_wrong:
                return None
            return view.wrap(directions), view.wrap(heights), view.wrap(values)

    def _copy_facts(self) -> tuple[Any, Any]:
        """Return new arrays of the directions and of the heights."""
        memory = copy_of(self._facts).data
        directions = cupy.ndarray(self._directions, np.float64, memory)
        heights = cupy.ndarray(self._shape[1:], np.float64, memory + directions.nbytes)
        return directions, heights

    def _check(self, memory: int, simplices: list[int], stream: int) -> None:
        """Write simplices with increasing points, and tell if they are no complex."""
        rows = [memory + place for place in self._rows]
        tables = [memory + place for place in self._tables]
        for k, enter in enumerate(self._enter):
            given = simplices[k], self._counts[k], self._points, rows[k], tables[k]
            words = *given, self._entries[k] - 1, memory
            enter.launch(zip(enter.places, words, strict=True), stream)
        for k, find in enumerate(self._find):
            larger = rows[k + 1], self._counts[k + 1]
            faces = rows[k], tables[k], self._entries[k] - 1
            find.launch(zip(find.places, (*larger, *faces, memory), strict=True), stream)

    def _launch(self, memory: int, points: int, values: int, reply: int, stream: int) -> None:
        """Compute the transform of points, and of the rows in memory."""
        codes = memory + self._codes
        own, *_, codes_at, wrong, cleared, _ = self._encode.places
        words = [(own, points), (codes_at, codes), (wrong, memory), (cleared, values)]
        self._encode.launch(words, stream)
        simplices, histogram = self._count.places
        words = [
            *enumerate((memory + place for place in self._rows), simplices + ROWS),
            (simplices + CODES, codes),
            (simplices + WRONG, memory),
            (simplices + REPLY, reply),
            (histogram + VALUES, values),
        ]
        self._count.launch(words, stream)
        self._sum.launch([(self._sum.places[0], values)], stream)
