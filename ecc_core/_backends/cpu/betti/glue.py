"""Kernels that join the forests of blocks, and those of boxes that touch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ecc_core._backends.cpu.betti.basins import find
from ecc_core._backends.cpu.betti.scan import bare
from ecc_core._backends.cpu.compiling import kernel, subroutine


@kernel()
def write_surface(faces: Any, rim: Any, numbers: Any, surface: Any) -> None:
    """Write the numbers of the nodes on a block's faces to the surface, for its neighbours."""
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
    """List the number and the place on the surface of each node outside the block.

    These are the nodes from `first` on.
    """
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
def follow_exits(exits: Any, surface: Any, tree: Any) -> None:
    """Make each exit a child of the node that its own block has at its place."""
    exits, surface, tree = bare(exits), bare(surface), bare(tree)
    for i in range(exits.shape[0]):
        tree[np.uint64(exits[i, 0])] = surface[np.uint64(exits[i, 1])]


@subroutine()
def plane_index(axis: Any, z: Any, y: Any, x: Any, shape: Any) -> Any:
    """Return the index of a point in the plane across an axis."""
    if axis == 0:
        return y * shape[2] + x
    if axis == 1:
        return z * shape[2] + x
    return z * shape[1] + y


@subroutine()
def coordinates(place: Any, layout: Any) -> Any:
    """Return (z, y, x) of a place in a staged block, relative to its first own point."""
    _, _, _, slice_step, row_step = layout
    z = 0
    if slice_step:
        z = place // slice_step - 1
        place %= slice_step
    return z, place // row_step - 1, place % row_step - 1


@kernel()
def open_face(opens: Any, closed: Any, tree: Any, nodes: Any, keys: Any) -> None:
    """Open the components on an open face at the keys of its points."""
    opens, closed, tree = bare(opens), bare(closed), bare(tree)
    for i in range(nodes.shape[0]):
        for j in range(nodes.shape[1]):
            root = find(tree, nodes[i, j])
            if keys[i, j] < opens[root]:
                opens[root] = keys[i, j]
            closed[root] = False


@kernel()
def cross_edges(
    nodes: Any, keys: Any, far_nodes: Any, far_keys: Any, wide: Any, edges: Any, edge_keys: Any
) -> Any:
    """List the edges between two faces that touch, as far as there is room; return their number.

    If `wide`, points are neighbours along diagonals too. A diagonal is left out where a point
    opposite to one of its ends has entered before: the edges within the faces and the straight ones
    join its ends. Of successive edges between the same nodes the first to enter is listed.
    """
    rows, columns = nodes.shape
    room = edge_keys.size
    reach = 1 if wide else 0
    count = 0
    last_near, last_far, last_key = np.int64(-1), np.int64(-1), np.uint64(0)
    for y in range(rows):
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
                    if count < room:
                        edges[count, 0], edges[count, 1] = near, far
                        edge_keys[count] = key
                    count += 1
    return count
