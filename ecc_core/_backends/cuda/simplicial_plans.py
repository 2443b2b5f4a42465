"""Transforms of complexes of one layout: the arguments of their launches are laid out once.

The simplices are checked by kernels while the transform is computed (`CheckedTransform`), or are
compared with copies of those of an earlier call, which have been checked (`KnownTransform`). A call
whose arguments are not as they should be is left to the functions in full, which say what is wrong.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import address_of
from ecc_core._backends.cuda.calls import Call, Reply, plan_call, take_reply
from ecc_core._backends.cuda.complexes import plan_rows, table_entries
from ecc_core._backends.cuda.kernels import ELEMENTS
from ecc_core._backends.cuda.simplicial_layout import (
    BEGUN,
    COPIES,
    ENCODING_THREADS,
    HISTOGRAM,
    MOST_BLOCKS,
    SIMPLICES,
    SIZES,
    THREADS,
    Layout,
    counting,
    layout_of,
    sampling_of,
    shares,
    side_by_side,
)
from ecc_core._backends.cuda.stars import STARS, Stars, make_stars
from ecc_core._backends.cuda.transform_sampling import accumulate

Floats = NDArray[np.float64]
Found = tuple[Any, Any, Any] | None

ROWS = SIMPLICES.word("rows")
VALUES = HISTOGRAM.word("values")
CLEARED, COPIED = map(BEGUN.word, ("cleared", "copied"))
GIVEN = COPIES.word("given")
LINE = 16
"""Bytes to which parts of memory are aligned."""
ALL_BITS = 2**64 - 1
EMPTY_BYTE = 0xFF  # The bytes of empty tables, and of the word that tells what is wrong.


class _Transform:
    """The launches of transforms of points and of so many simplices of each size.

    Simplices are given by `stars`, if there are any. `copies` are the simplices that given ones are
    compared with. `right` is what the word that tells what is wrong contains if nothing is wrong.
    """

    def __init__(
        self,
        points: Any,
        counts: dict[int, int],
        directions: Floats,
        heights: Floats,
        copies: Any,
        right: int,
        stars: Stars | None = None,
    ) -> None:
        self._device = points.device.id
        count, axes = points.shape
        layout = layout_of(len(directions), heights.size)
        groups = layout.groups(len(directions))
        self._shape = len(directions), heights.size
        self._directions = directions.shape
        facts = np.concatenate([directions.ravel(), heights])
        self._facts = programs.upload(facts)
        self._vectors = programs.upload(side_by_side(directions, layout))

        blocks = min(ceil_div(count * layout.lanes, ENCODING_THREADS), MOST_BLOCKS)
        sampling = sampling_of(heights, self._facts[directions.size :])
        begun = BEGUN(
            facts=self._facts.data.ptr,
            facts_count=facts.size,
            cleared_count=len(directions) * heights.size,
        )
        mark = int(not right)
        given = 0, count, np.int32(axes), self._vectors, *sampling, 0, 0, mark, begun, copies
        macros = layout.macros(ELEMENTS[points.dtype.name])
        self._encode = plan_call(
            "simplicial", "encode_heights", macros, (blocks, groups), ENCODING_THREADS, given
        )
        if stars is None:
            self._count = self._plan_count(count, counts, layout, right)
        else:
            self._count = stars.plan_count(layout, *self._shape, right)
        kind = SIMPLICES if stars is None else STARS
        first = self._count.places[0]
        self._changing = [first + kind.word(name) for name in ("codes", "wrong", "reply")]
        self._sum = accumulate(0, *self._shape)
        self._codes_bytes = 4 * groups * count * layout.lanes

    def _plan_count(self, points: int, counts: dict[int, int], layout: Layout, right: int) -> Call:
        """Return the launch that adds the signs of so many simplices of each size."""
        orders, levels = self._shape
        device = self._device
        groups = layout.groups(orders)
        macros, shared = counting(layout, 1, levels, device)
        grid, taken = shares(max([points, *counts.values()]), groups, layout, device)
        missing = [0] * (SIZES - len(counts))
        struct = SIMPLICES(
            counts=[*counts.values(), *missing],
            sizes=[*counts, *missing],
            kinds=len(counts),
            with_points=1,
            taken=taken,
            points=points,
            first_scale=1.0,
            second_scale=1.0,
            right=right,
        )
        histogram = HISTOGRAM(orders=orders, bins=levels)
        return plan_call(
            "simplicial", "count_simplices", macros, grid, THREADS, (struct, histogram), shared
        )

    def _compute(
        self,
        points: Any,
        wrong: int,
        codes: int,
        rows: Iterable[int],
        compared: Iterable[int],
        reply: Reply,
        stream: int,
    ) -> Found:
        """Compute the transform of rows at these addresses; None if anything is wrong."""
        orders, levels = self._shape
        size = 8 * orders * levels
        results = cupy.cuda.alloc(size + self._facts.nbytes)  # Values come first, then facts.
        values = results.ptr
        own, *_, codes_at, wrong_at, _, begun, copies = self._encode.places
        words = [
            (own, address_of(points)),
            (codes_at, codes),
            (wrong_at, wrong),
            (begun + CLEARED, values),
            (begun + COPIED, values + size),
            *enumerate(compared, copies + GIVEN),
        ]
        self._encode.launch(words, stream)
        simplices, *_, histogram = self._count.places
        words = [
            *enumerate(rows, simplices + ROWS),
            *zip(self._changing, (codes, wrong, reply.address), strict=True),
            (histogram + VALUES, values),
        ]
        self._count.launch(words, stream)
        self._sum.launch([(self._sum.places[0], values)], stream)
        found = self._arrays(results, size)
        (is_wrong,) = reply.wait(1)
        reply.release()
        return None if is_wrong else found

    def _arrays(self, memory: Any, size: int) -> tuple[Any, Any, Any]:
        """Return directions, heights and values in memory, in which `size` bytes are values."""
        directions = cupy.ndarray(self._directions, np.float64, memory + size)
        behind = memory + (size + directions.nbytes)
        heights = cupy.ndarray(self._shape[1:], np.float64, behind)
        return directions, heights, cupy.ndarray(self._shape, np.int64, memory)


class CheckedTransform(_Transform):
    """The transform of listed simplices, of one array for each number of points from 2 on.

    The memory of a call has tables, rows, and codes behind the word that tells what is wrong. All
    bits of this word are set if nothing is.
    """

    def __init__(
        self, points: Any, index: str, counts: list[int], directions: Floats, heights: Floats
    ) -> None:
        sizes = range(2, 2 + len(counts))
        by_size = dict(zip(sizes, counts, strict=True))
        super().__init__(points, by_size, directions, heights, COPIES(), ALL_BITS)
        device = self._device
        self._entries = [table_entries(number) for number in counts]
        self._enter = [
            plan_rows("enter_rows", size, number, 7, index, device)
            for size, number in by_size.items()
        ]
        self._find = [
            plan_rows("find_faces", size, number * (size + 1), 6, index, device)
            for size, number in zip(sizes, counts[1:], strict=False)
        ]
        self._points = len(points)
        self._counts = counts
        place = LINE
        self._tables = []
        for entries in self._entries:
            self._tables.append(place)
            place += 4 * entries
        self._empty_bytes = place
        self._rows = []
        for size, number in by_size.items():
            self._rows.append(place)
            place += ceil_div(4 * size * number, LINE) * LINE
        self._codes = place

    def __call__(self, points: Any, simplices: Sequence[Any], stream: int) -> Found:
        memory = cupy.cuda.alloc(self._codes + self._codes_bytes)
        start = memory.ptr
        cupy.cuda.runtime.memsetAsync(start, EMPTY_BYTE, self._empty_bytes, stream)
        rows = [start + place for place in self._rows]
        self._check(start, [address_of(part) for part in simplices], rows, stream)
        reply = take_reply(self._device)
        return self._compute(points, start, start + self._codes, rows, (), reply, stream)

    def _check(self, memory: int, simplices: list[int], rows: list[int], stream: int) -> None:
        """Write simplices with increasing points, and tell if they are no complex."""
        tables = [memory + place for place in self._tables]
        for k, enter in enumerate(self._enter):
            given = simplices[k], self._counts[k], self._points, rows[k], tables[k]
            words = *given, self._entries[k] - 1, memory
            enter.launch(zip(enter.places, words, strict=True), stream)
        for k, find in enumerate(self._find):
            larger = rows[k + 1], self._counts[k + 1]
            faces = rows[k], tables[k], self._entries[k] - 1
            find.launch(zip(find.places, (*larger, *faces, memory), strict=True), stream)


class KnownTransform(_Transform):
    """The transform of simplices that were checked, whose complex and copies are kept."""

    def __init__(
        self,
        points: Any,
        simplices: Sequence[Any],
        complex_: Sequence[Any],
        directions: Floats,
        heights: Floats,
    ) -> None:
        copies = [programs.lasting(part.copy()) for part in simplices]
        layout = layout_of(len(directions), heights.size)
        stars = make_stars(complex_, len(points), layout, heights.size)
        rows = []
        if not stars:
            rows = [programs.lasting(part.copy()) for part in complex_]
        missing = [0] * (SIZES - len(copies))
        expected = COPIES(
            kept=[*(part.data.ptr for part in copies), *missing],
            words=[*(part.nbytes // 4 for part in copies), *missing],
            kinds=len(copies),
        )
        by_size = {part.shape[1]: len(part) for part in rows}
        super().__init__(points, by_size, directions, heights, expected, 0, stars)
        self._kept = copies, rows, stars
        self._addresses = [part.data.ptr for part in rows]

    def __call__(self, points: Any, simplices: Sequence[Any], stream: int) -> Found:
        codes = cupy.cuda.alloc(self._codes_bytes)
        reply = take_reply(self._device)
        wrong = reply.memory.data.ptr
        compared = map(address_of, simplices)
        return self._compute(points, wrong, codes.ptr, self._addresses, compared, reply, stream)
