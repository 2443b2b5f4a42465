"""Persistence of the classes between components and cavities: tunnels of a volume.

A *row* of the boundary matrix is a critical edge that closes a loop when it enters, a *column* a
critical square that closes one of the complement. Both are loops of the forests that give
components and cavities, and as many. A column consists of the rows to which an odd number of paths
of the gradient lead from the cycle around a hole of the link of its point.

Points that are closed cubes (T-construction) are the vertices of the dual complex, in which they
enter in the opposite order, after all that is around the image. Its pairs of a row and a column are
those of the image, with births and deaths exchanged. On a torus some rows and columns have no
partner: the columns of the dual complex are then tunnels of the image.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu.betti.dead_ends import remove_dead_ends
from ecc_core._backends.cpu.betti.paths import number_rows
from ecc_core._backends.cpu.betti.reduction import (
    NONE,
    ROOM,
    ROOM_OF_COLUMN,
    Columns,
    Rows,
    reduce_columns,
)
from ecc_core._backends.cpu.betti.stars import (
    edge_offsets,
    far_offsets,
    path_offsets,
)
from ecc_core._backends.cpu.betti.volume import Volume, empty_volume
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.llvm import LANES, bare
from ecc_core._backends.cpu.order import sort_keys
from ecc_core._backends.cpu.pool import ranges, share

Array = NDArray[Any]

SLABS_A_WORKER = 2
COLUMNS_AT_ONCE = 1 << 17  # So many columns of noise take some tenths of a second.
PLACES_A_COLUMN = 5000  # Removing dead ends of so many places takes as long as a column.
CUBE_POINTS = 32  # The columns of a cube with so many points a side are reduced together.


class Cells(NamedTuple):
    """Rows or columns in any order."""

    places: Array
    """Places of their points in the volume, int32 if all fit, or int64."""
    keys: Array
    """Keys of the points, which enter in the order of keys, equal ones in that of places."""
    parts: Array
    """The root that a row leads to, or the squares of the cycle of a column, as a set of bits."""


class Paired(NamedTuple):
    """The places of rows and columns that are paired, and of those that are left."""

    rows: Array
    columns: Array
    rows_left: Array
    columns_left: Array


class NumberedRows(NamedTuple):
    """Rows by their numbers, which are those of places and axes."""

    places: Array
    """Places of their points in the volume."""
    starts: Array
    """The number of the first row of each group of edges."""
    positions: Array
    """Their positions in the opposite order of entry."""


def reduced(volume: Volume, rows: NumberedRows, columns: Columns, workers: int) -> Paired:
    """Pair the edges that close loops with the squares that close those of the complement."""
    owners = owners_of(volume, *rows[1:], columns, workers)
    paired = owners != NONE
    owners = owners[paired]
    return Paired(
        rows.places[paired],
        columns.places[owners],
        rows.places[~paired],
        np.delete(columns.places, owners),
    )


def owners_of(
    volume: Volume, starts: Array, positions: Array, columns: Columns, workers: int
) -> Array:
    """Return which column each row is the pivot of, or `NONE`; see :class:`Rows`."""
    owners = np.full(positions.size, NONE, np.int32)
    firsts = np.zeros(owners.size, np.int64)
    _shorten_paths(volume, columns, workers)
    _reduce_slabs(volume, Rows(starts, positions, owners, firsts), columns, workers)
    return owners


def _shorten_paths(volume: Volume, columns: Columns, workers: int) -> None:
    """Remove most edges that lead to no row, if there are enough columns that would follow them."""
    if volume.home is None and columns.places.size * PLACES_A_COLUMN > volume.width:
        remove_dead_ends(volume, workers)


def entry_order(cells: Cells, places: int) -> Array:
    """Return the order in which cells enter."""
    in_place = sort_keys(cells.places.astype(np.uint64), places.bit_length())
    order: Array = in_place[sort_keys(cells.keys[in_place])]
    return order


def ordered_columns(volume: Volume, cells: Cells) -> Columns:
    """Return columns in the order in which they enter."""
    order = entry_order(cells, volume.width)
    return Columns(cells.places[order], cells.parts[order])


def numbered_rows(volume: Volume, cells: Cells) -> NumberedRows:
    """Mark rows in the gradient, and number them."""
    starts, numbers, positions = row_numbers(volume, cells)
    by_number = np.empty_like(cells.places)
    by_number[numbers] = cells.places
    return NumberedRows(by_number, starts, positions)


def row_numbers(volume: Volume, cells: Cells) -> tuple[Array, Array, Array]:
    """Mark rows in the gradient.

    Returns the number of the first row of each group of edges, the number of each row, and their
    positions in the opposite order of entry.
    """
    places = volume.width
    count = cells.places.size
    edges = edge_offsets(volume.steps, volume.width)[cells.parts]
    edges += 4 * cells.places.astype(np.int64)
    if volume.home is not None:
        in_layers = (edges >> 2) - (edges & 3) * volume.width
        edges += 4 * (volume.home[in_layers] - in_layers)
    starts = np.zeros(3 * (places // LANES) + 1, np.uint32)
    numbers = np.empty(count, np.uint32)
    number_rows(edges, volume.gradient, starts, numbers)
    positions = np.empty(count, np.uint32)
    positions[numbers[entry_order(cells, places)[::-1]]] = np.arange(count, dtype=np.uint32)
    return starts, numbers, positions


def _tables(volume: Volume) -> tuple[Array, Array, Array]:
    """Return where the edges of squares and the paths from edges lead."""
    given = volume.steps, volume.width
    return far_offsets(*given), path_offsets(*given), edge_offsets(*given)


def reduce_at_once(volume: Volume, rows: Rows, columns: Columns) -> Array:
    """Reduce all columns of a volume in one thread, and return the list of reduced ones."""
    _shorten_paths(volume, columns, 1)
    order, _ = _near_order(columns.places, volume.shape, np.array([0, volume.shape[0]]), 1)
    listed, size, _ = reduce_columns(
        volume=volume,
        tables=_tables(volume),
        rows=rows,
        chosen=order,
        columns=Columns(columns.places[order], columns.cycles[order]),
        within=(0, rows.owners.size),
        given=np.empty(0, np.int64),
        listed=np.empty(ROOM + ROOM_OF_COLUMN * order.size, np.uint32),
        size=0,
        states=np.zeros(volume.gradient.size, np.uint8),
    )
    found: Array = listed[:size]
    return found


def _reduce_slabs(volume: Volume, rows: Rows, columns: Columns, workers: int) -> None:
    """Reduce the columns of slabs of the volume, and then those that leave their slab."""
    ends = _slab_ends(columns.places, volume.shape, workers)
    order, slab_firsts = _near_order(columns.places, volume.shape, ends, workers)
    groups = 3 * (ends * volume.steps[0] // LANES)
    bounds = rows.starts[groups].astype(np.int64)
    bounds[-1] = rows.owners.size
    tables = _tables(volume)
    given = volume, tables, rows
    followed = np.empty(0, np.int64)
    found: list[tuple[int, Array, Array]] = []
    stopped = threading.Event()

    def reduce_slab(slab: int, states: Array) -> None:
        own = order[slab_firsts[slab] : slab_firsts[slab + 1]]
        within = (bounds[slab], bounds[slab + 1])
        listed = np.empty(ROOM + ROOM_OF_COLUMN * own.size, np.uint32)
        size = 0
        lates = [np.empty((0, 2), np.int64)]
        for first in range(0, own.size, COLUMNS_AT_ONCE):  # An interrupt stops it in between.
            if stopped.is_set():
                return
            some = own[first : first + COLUMNS_AT_ONCE]
            near = Columns(columns.places[some], columns.cycles[some])
            listed, size, late = reduce_columns(
                *given, some, near, within, followed, listed, size, states
            )
            lates.append(late.copy())
        found.append((slab, listed[:size], np.concatenate(lates)))

    def work(queue: Iterator[int]) -> None:
        states = np.zeros(volume.gradient.size, np.uint8)
        try:
            for slab in queue:
                reduce_slab(slab, states)
        except BaseException:
            stopped.set()  # The other threads stop, too.
            raise

    share(range(ends.size - 1), work, workers)
    late, listed, size = _joined_lists(rows, bounds, found)
    if late.size:
        chosen = late[:, 0].astype(order.dtype)
        whole = (0, bounds[-1])
        states = np.empty(0, np.uint8)  # No path is followed any more.
        nowhere = Columns(columns.places[:0], columns.cycles[:0])
        reduce_columns(*given, chosen, nowhere, whole, late[:, 1].copy(), listed, size, states)


def reduce_listed(chosen: Array, rows: Array, spans: Array, owners: Array) -> None:
    """Reduce some columns whose rows are listed, until each owns its pivot or has no row left.

    Rows are numbered in the opposite order of entry, and columns in their order. `spans` are where
    the `rows` of each column are listed, (first, end). No path is followed.
    """
    counts = spans[:, 1] - spans[:, 0]
    begins = np.cumsum(counts) - counts
    column_of = np.repeat(np.arange(counts.size), counts)
    own = rows[spans[column_of, 0] + np.arange(column_of.size) - begins[column_of]]
    reduce_sorted(chosen, counts, own[np.lexsort((own, column_of))], owners)


def reduce_sorted(chosen: Array, counts: Array, rows: Array, owners: Array) -> tuple[Array, Array]:
    """Reduce some columns as :func:`reduce_listed` does; the rows of each one are sorted.

    The `rows` of all columns follow each other, `counts` of each column. Returns a list of reduced
    columns, the number of rows of each and then the rows, and where the column that owns each row
    begins in it.
    """
    firsts = np.cumsum(counts + 1) - counts - 1
    column_of = np.repeat(np.arange(counts.size), counts)
    listed = np.empty(counts.size + rows.size, np.uint32)
    listed[firsts] = counts
    listed[np.arange(rows.size) + column_of + 1] = rows
    of_rows = np.zeros(owners.size, np.int64)
    owned = owners != NONE
    of_rows[owned] = firsts[owners[owned]]
    numbers = np.arange(owners.size, dtype=np.uint32)
    volume = empty_volume((1, 1, 1))
    listed, _, _ = reduce_columns(
        volume=volume,
        tables=_tables(volume),
        rows=Rows(np.zeros(1, np.uint32), numbers, owners, of_rows),
        chosen=chosen.astype(np.uint32),
        columns=Columns(np.empty(0, np.int32), np.empty(0, np.uint16)),
        within=(0, owners.size),
        given=firsts[chosen],
        listed=listed,
        size=listed.size,
        states=np.empty(0, np.uint8),
    )
    return listed, of_rows


def _joined_lists(
    rows: Rows, bounds: Array, found: list[tuple[int, Array, Array]]
) -> tuple[Array, Array, int]:
    """Join what was found in slabs: the columns that are left, as they enter, and all lists.

    Returns the list, which has room for more, and its size. Nothing is left in `found`.
    """
    if not any(late.size for *_, late in found):
        return np.empty((0, 2), np.int64), np.empty(0, np.uint32), 0
    total = sum(listed.size for _, listed, _ in found)
    joined = np.empty(total + total // 2, np.uint32)
    size = 0
    parts = []
    while found:  # The memory of each list is returned once it has been copied.
        slab, listed, late = found.pop()
        joined[size : size + listed.size] = listed
        rows.firsts[bounds[slab] : bounds[slab + 1]] += size
        late[:, 1] += size
        parts.append(late)
        size += listed.size
    late = np.concatenate(parts)
    return late[np.argsort(late[:, 0])], joined, size


def _slab_ends(places: Array, shape: tuple[int, int, int], workers: int) -> Array:
    """Return the first slices of slabs with about as many columns each, and the end of the last."""
    depth = shape[0]
    slice_size = shape[1] * shape[2]
    count = 1 if workers == 1 else min(depth, SLABS_A_WORKER * workers)
    before = np.cumsum(np.bincount(places // slice_size, minlength=depth))
    cuts = np.searchsorted(before, places.size * np.arange(1, count) / count)
    return np.unique([0, *cuts, depth])


@kernel()
def number_cubes(places, shape, layers, counts, cubes):
    """Write the number of the cube of each place; `layers` are those of slices.

    There are so many cubes along the other axes as the `counts` say.
    """
    places = bare(places)
    layers = bare(layers)
    cubes = bare(cubes)
    rows = np.uint64(shape[1])
    columns = np.uint64(shape[2])
    for i in range(places.size):
        place = np.uint64(places[i])
        row = place // columns
        x = place - row * columns
        z = row // rows
        y = row - z * rows
        layer = np.uint64(layers[z]) * np.uint64(counts[0]) + y // np.uint64(CUBE_POINTS)
        cubes[i] = layer * np.uint64(counts[1]) + x // np.uint64(CUBE_POINTS)


def _near_order(
    places: Array, shape: tuple[int, int, int], ends: Array, workers: int
) -> tuple[Array, Array]:
    """Order columns by slab and cube, those of a cube as they enter; list the first ones of slabs.

    The memory that a column needs is then in the cache, because columns nearby have used it.
    """
    depths = [
        ceil_div(end - first, CUBE_POINTS) for first, end in itertools.pairwise(ends.tolist())
    ]
    first_layers = np.cumsum([0, *depths])
    slabs = np.repeat(np.arange(len(depths)), np.diff(ends))
    layers = first_layers[slabs] + (np.arange(ends[-1]) - ends[slabs]) // CUBE_POINTS
    height, width = (ceil_div(n, CUBE_POINTS) for n in shape[1:])
    cubes = np.empty(places.size, np.uint64)

    def number(queue: Iterator[tuple[int, int]]) -> None:
        for first, last in queue:
            number_cubes(places[first:last], shape, layers, (height, width), cubes[first:last])

    share(ranges(places.size, workers), number, workers)
    first_cubes = first_layers * (height * width)
    order = sort_keys(cubes, int(first_cubes[-1]).bit_length())
    return order, np.searchsorted(cubes[order], first_cubes.astype(np.uint64))
