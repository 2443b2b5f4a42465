"""Sizes of components of images that are periodic along some axes, and which of them wind around.

An image is cut into boxes as any other one, and its sides along periodic axes stay open until these
are joined. So the nodes that are left are the components that touch such a side, and only edges
across the sides lead around the image.

A component winds around an axis if a closed path in it crosses the side between the last and the
first point more often in one direction than in the other. Each node of a tree knows how often the
path to its parent crosses the sides, so that every edge within a tree tells of a closed path
(Newman, Ziff, "Fast Monte Carlo algorithm for site or bond percolation", 2001).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import kind_of
from ecc_core._backends.cpu.betti.ends import span, unite, write_spanning
from ecc_core._backends.cpu.betti.growth import GAIN, KINDS, MEET, Growth, Side, Values
from ecc_core._backends.cpu.betti.pieces import edges_across
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import bare
from ecc_core._backends.cpu.order import sort_keys
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]


class _Seam(NamedTuple):
    """Edges across opposite sides of an image that touch."""

    nodes: Array
    """Pairs of nodes, (n, 2)."""
    keys: Array
    crossed: tuple[int, int, int]
    """How often the path from the first node of a pair to the second one crosses each side."""


class _Trees(NamedTuple):
    """Nodes while they are joined."""

    parents: NDArray[np.int32]
    turns: NDArray[np.int32]
    """How often the paths to parents cross the sides, (n, 3)."""
    sizes: Values
    """The number of points of the component of each root."""
    touched: NDArray[np.uint8]
    """The ends that the component of each root touches."""


def wrapping_axes(filtration: Filtration) -> list[int]:
    """Return the periodic ones of slices, rows and columns."""
    lead = 3 - filtration.ndim
    return [axis + lead for axis, touch in enumerate(filtration.boundary.wraps) if touch]


def wrapping_sides(filtration: Filtration) -> tuple[Side, ...]:
    """Return the sides of an image that touch each other."""
    return tuple(itertools.product(wrapping_axes(filtration), (0, 1)))


def joined_around(piece: Growth, filtration: Filtration, *, by_axis: bool) -> Values:
    """Join opposite sides of an image; return what there is after each key, see :class:`Growth`.

    If there is a pair of ends for each axis (`by_axis`), a component touches both ends of a
    periodic one if it winds around it.
    """
    axes = wrapping_axes(filtration)
    wide = kind_of(filtration, complement=False).connectivity > 1
    seams = list(_seams(piece, axes, wide=wide))
    last = piece.found.shape[1] - 1
    keys = np.concatenate([seam.keys for seam in seams])
    nodes = np.concatenate([seam.nodes for seam in seams])
    crossed = [np.full((seam.keys.size, 3), seam.crossed, np.int8) for seam in seams]
    order = sort_keys(keys)
    ends = np.searchsorted(keys[order], np.arange(last + 1, dtype=keys.dtype))
    order = order[: ends[-1]]
    winding = np.zeros(3, np.uint8)
    if by_axis:
        for axis in axes:
            winding[axis] = 3 << 2 * (axis - 3 + filtration.ndim)
    trees = _Trees(
        parents=np.arange(piece.nodes, dtype=np.int32),
        turns=np.zeros((piece.nodes, 3), np.int32),
        sizes=np.zeros(piece.nodes, np.int64),
        touched=np.zeros(piece.nodes, np.uint8),
    )
    found = np.zeros_like(piece.found)
    edges = nodes[order], np.concatenate(crossed)[order], ends
    _join(edges, piece.changes, winding, trees, found)
    found[0] = piece.found[0]
    found[1] = np.maximum(found[1], piece.found[1])
    found[2:] += piece.found[2:]
    return found


def _seams(piece: Growth, axes: list[int], *, wide: bool) -> Iterator[_Seam]:
    """Yield the edges across the sides along each of some axes, and also across those after it.

    Only diagonals cross two sides or three.
    """
    for number, axis in enumerate(axes):
        later = axes[number + 1 :]
        near = piece.ends[axis, 1], piece.faces[axis, 1]
        far = piece.ends[axis, 0], piece.faces[axis, 0]
        for steps in itertools.product((-1, 0, 1) if wide else (0,), repeat=len(later)):
            crossed = [0, 0, 0]
            crossed[axis] = 1
            here = [slice(None)] * 2
            there = [slice(None)] * 2
            for other, step in zip(later, steps, strict=True):
                crossed[other] = step
                if step:
                    ends = slice(-1, None), slice(0, 1)
                    along = other - 1  # A face has the two other axes.
                    here[along], there[along] = ends if step > 0 else ends[::-1]
            own = (np.ascontiguousarray(part[tuple(here)]) for part in near)
            opposite = (np.ascontiguousarray(part[tuple(there)]) for part in far)
            nodes, keys = edges_across(*own, *opposite, wide)
            yield _Seam(nodes, keys, tuple(crossed))  # type: ignore[arg-type]


@subroutine()
def _root(parents, turns, node, crossed):
    """Return the root of a node, write how often the path to it crosses sides, and halve it."""
    crossed[:] = 0
    parent = np.int64(parents[node])
    while parent != node:
        above = parents[parent]
        if above != parent:
            parents[node] = above
            for axis in range(3):
                turns[node, axis] += turns[parent, axis]
        for axis in range(3):
            crossed[axis] += turns[node, axis]
        node = np.int64(parents[node])
        parent = np.int64(parents[node])
    return node


@subroutine()
def _meet(one, two, crossed, winding, trees, spanning, paths):
    """Join two nodes between which the way crosses sides; return the root of both.

    The `paths` are memory for what the paths from both to their roots cross.
    """
    root = _root(trees.parents, trees.turns, one, paths[0])
    other = _root(trees.parents, trees.turns, two, paths[1])
    around = paths[1]
    for axis in range(3):
        around[axis] += crossed[axis] - paths[0, axis]  # From one root to the other.
    if root == other:
        ends = np.uint8(0)
        for axis in range(3):
            if around[axis]:
                ends |= winding[axis]
        unite(trees.touched, spanning, root, ends)
        return root
    sign = 1
    younger = root
    elder = other
    if trees.sizes[root] > trees.sizes[other]:
        sign = -1
        younger = other
        elder = root
    for axis in range(3):
        trees.turns[younger, axis] = sign * around[axis]
    trees.parents[younger] = elder
    trees.sizes[elder] += trees.sizes[younger]
    if trees.touched[younger]:
        span(spanning, trees.touched[younger], -1)
        unite(trees.touched, spanning, elder, trees.touched[younger])
    return elder


@kernel()
def _join(edges, changes, winding, trees, found):
    """Join nodes along edges, and by the changes of a growth; write the rest of `found`.

    `edges` are pairs of nodes in the order of keys, what they cross, and how many of them have the
    first k keys. `winding` are the ends that a component touches that winds around each axis.
    """
    nodes, crossings, ends = edges
    trees = _Trees(bare(trees.parents), bare(trees.turns), bare(trees.sizes), bare(trees.touched))
    spanning = np.zeros(found.shape[0] - 2, np.int64)
    nowhere = np.zeros(3, np.int8)
    paths = np.zeros((2, 3), np.int64)
    largest = np.int64(0)
    done = 0
    for key in range(1, found.shape[1]):
        for at in range(ends[key - 1], ends[key]):
            one = np.int64(nodes[at, 0])
            two = np.int64(nodes[at, 1])
            root = _meet(one, two, crossings[at], winding, trees, spanning, paths)
            largest = max(largest, trees.sizes[root])
        while done < changes.shape[0] and changes[done, 0] < KINDS * (key + 1):
            change = changes[done, 0] % KINDS
            node = changes[done, 1]
            value = changes[done, 2]
            done += 1
            if change == MEET:
                root = _meet(node, value, nowhere, winding, trees, spanning, paths)
            else:
                root = _root(trees.parents, trees.turns, node, paths[0])
                if change == GAIN:
                    trees.sizes[root] += value
                else:
                    unite(trees.touched, spanning, root, np.uint8(value))
            largest = max(largest, trees.sizes[root])
        found[1, key] = largest
        write_spanning(found, key, spanning)
