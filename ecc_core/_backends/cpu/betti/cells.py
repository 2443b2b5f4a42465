"""Rows and columns of tunnels, from the loops of both forests of a volume."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.forest import Loops
from ecc_core._backends.cpu.betti.halo import index_type
from ecc_core._backends.cpu.betti.stars import cycles_around, ends_at
from ecc_core._backends.cpu.betti.trees import write_unstaged
from ecc_core._backends.cpu.betti.tunnels import Cells, numbered_rows, ordered_columns, reduced
from ecc_core._backends.cpu.betti.volume import Volume
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.pool import share
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.sources import Block, Source

Array = NDArray[Any]

AT_ONCE = 1 << 16
"""Cells for which arrays of indices are made at once."""


def tunnel_pairs(
    values: Array,
    shown: Array | None,
    volume: Volume,
    loops: dict[int, Loops],
    plan: Plan,
    cubes: bool,
    workers: int,
) -> tuple[Array, Array]:
    """Return where tunnels begin and end, from the loops of both forests by their connectivity.

    Loops are removed from the dictionary, to free their memory early. The keys of the `plan` are in
    the order in which points enter; points are closed `cubes` if they are adjacent along diagonals.
    Rows and columns are those of points adjacent along axes: the image is flipped if these belong
    to the complement.
    """
    last = values.size - 1
    if cubes:
        values = np.flip(values)
        shown = None if shown is None else np.flip(shown)
    given = values, shown, volume, plan, cubes
    prepared: dict[str, Any] = {}

    def prepare(queue: Iterator[str]) -> None:
        for cells in queue:
            if cells == "rows":
                prepared[cells] = numbered_rows(volume, row_cells(loops.pop(1), *given))
            else:
                prepared[cells] = ordered_columns(volume, column_cells(loops.pop(3), *given))

    share(["rows", "columns"], prepare, workers)
    found = reduced(volume, prepared["rows"], prepared["columns"], workers)
    lives = found.rows != found.columns
    located = [np.empty(0, np.int64), np.empty(0, np.int64)]

    def locate(queue: Iterator[int]) -> None:
        for end in queue:
            places = (found.rows, found.columns)[end]
            located[end] = _in_image(places[lives], values.shape, volume)

    share(range(2), locate, workers)
    births, deaths = located
    if cubes:
        return last - deaths, last - births
    return births, deaths


def row_cells(loops: Loops, values: Array, *given: Any) -> Cells:
    """Return the rows with the edges that close loops; arguments are those of :func:`_located`."""
    places, keys = _located(loops.places, values, *given)
    return Cells(places, keys, ends_at(loops.members))


def column_cells(loops: Loops, values: Array, *given: Any) -> Cells:
    """Return the columns with the loops of the complement, whose image is flipped.

    Other arguments are those of :func:`_located`.
    """
    places, keys = _located(values.size - 1 - loops.places, values, *given)
    return Cells(places, keys, cycles_of(loops))


def cycles_of(loops: Loops) -> Array:
    """Return the squares around holes, as sets of bits, for loops of the complement."""
    cycles = np.empty(loops.places.size, np.uint16)
    for part in _parts(cycles.size):
        links = _flipped(loops.lower_links[part])
        cycles[part] = cycles_around(links, np.uint8(25) - loops.members[part])
    return cycles


def _parts(count: int) -> Iterator[slice]:
    for first in range(0, count, AT_ONCE):
        yield slice(first, first + AT_ONCE)


def _flipped(links: Array) -> Array:
    """Return the sets of the 26 neighbours that are opposite to those of other sets."""
    found = np.zeros_like(links)
    for bit in range(26):
        found |= (links >> np.uint32(bit) & np.uint32(1)) << np.uint32(25 - bit)
    return found


def _located(
    points: Array, values: Array, shown: Array | None, volume: Volume, plan: Plan, cubes: bool
) -> tuple[Array, Array]:
    """Return the places of points in a volume with layers, and their keys.

    These are in the order in which points adjacent along axes enter.
    """
    places = np.empty(points.size, index_type(volume.width))
    keys = np.empty(points.size, plan.key_dtype)
    for part in _parts(points.size):
        index = np.unravel_index(points[part], values.shape)
        places[part] = np.ravel_multi_index([along + 1 for along in index], volume.shape)
        mask = None if shown is None else Source(shown[index][None, None], "mask")
        box = Block((0, 0, 0), (1, 1, index[0].size))
        load_box(plan, Source(values[index][None, None]), mask, box, keys[part], 0, (0, 0))
    return places, (plan.key_dtype.type(plan.top) - keys if cubes else keys)


def _in_image(places: Array, shape: tuple[int, ...], volume: Volume) -> Array:
    """Convert places in a volume with layers to those in the image."""
    found = np.empty(places.size, np.int64)
    write_unstaged(places.astype(np.int64, copy=False), shape, volume.steps[:2], found)
    return found
