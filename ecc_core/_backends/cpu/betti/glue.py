"""Kernels: forests of blocks as parts of the forest of an image."""

from __future__ import annotations

from typing import Any

from ecc_core._backends.cpu.betti.basins import find
from ecc_core._backends.cpu.betti.scan import bare
from ecc_core._backends.cpu.compiling import kernel

__all__ = ["glue", "list_exits", "write_surface"]


@kernel()
def write_surface(faces: Any, rim: Any, numbers: Any, surface: Any) -> None:
    """Write the numbers of the nodes of a block's faces, to which its neighbours may lead."""
    faces, rim, numbers, surface = bare(faces), bare(rim), bare(numbers), bare(surface)
    at = 0
    for k in range(faces.shape[0]):
        for i in range(faces[k, 3]):
            for j in range(faces[k, 4]):
                surface[faces[k, 5] + i * faces[k, 6] + j * faces[k, 7]] = numbers[rim[at]]
                at += 1


@kernel()
def list_exits(
    places: Any,
    first: Any,
    nodes: Any,
    layout: Any,
    sides: Any,
    start: Any,
    shape: Any,
    numbers: Any,
    exits: Any,
) -> None:
    """For nodes outside of the block, from `first` on: their number and place on the surface."""
    for node in range(first, nodes):
        z, y, x = coordinates(places[node], layout)
        place = -1
        for axis in range(3):
            here = z if axis == 0 else y if axis == 1 else x
            side = 0 if here < 0 else 1 if here >= layout[axis] else -1
            if side >= 0:
                index = plane_index(axis, z + start[0], y + start[1], x + start[2], shape)
                place = sides[axis, side, 1] + index
                break
        exits[node - first, 0], exits[node - first, 1] = numbers[node], place


@kernel()
def plane_index(axis: Any, z: Any, y: Any, x: Any, shape: Any) -> Any:
    """Where a point lies in a plane across an axis."""
    if axis == 0:
        return y * shape[2] + x
    if axis == 1:
        return z * shape[2] + x
    return z * shape[1] + y


@kernel()
def coordinates(place: Any, layout: Any) -> Any:
    """(z, y, x) of a place in a staged block, relative to its first own point."""
    _, _, _, slice_step, row_step = layout
    z = 0
    if slice_step:
        z = place // slice_step - 1
        place %= slice_step
    return z, place // row_step - 1, place % row_step - 1


@kernel()
def glue(
    parents: Any,
    births: Any,
    places: Any,
    keys: Any,
    at: Any,
    edges: Any,
    order: Any,
    histogram: Any,
    pairs: Any,
) -> Any:
    """Join the nodes of all blocks along the edges between them, as :func:`join_basins` does."""
    parents, births, places, keys = bare(parents), bare(births), bare(places), bare(keys)
    at, edges, order = bare(at), bare(edges), bare(order)
    histogram, pairs = bare(histogram), bare(pairs)
    lives = 0
    for k in range(order.size):
        i = order[k]
        elder, younger = find(parents, edges[i, 0]), find(parents, edges[i, 1])
        if elder == younger:
            continue
        if births[younger] < births[elder] or (
            births[younger] == births[elder] and places[younger] < places[elder]
        ):
            elder, younger = younger, elder
        if histogram.size:
            histogram[keys[i]] -= 1
        if pairs.size and births[younger] < keys[i]:
            pairs[lives, 0], pairs[lives, 1] = places[younger], at[i]
            lives += 1
        parents[younger] = elder
    return lives
