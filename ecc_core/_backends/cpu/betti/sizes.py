"""Growths of boxes that touch, joined to that of the whole image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import kind_of
from ecc_core._backends.cpu.betti.basins import find
from ecc_core._backends.cpu.betti.ends import OPEN, span, unite, write_spanning
from ecc_core._backends.cpu.betti.growth import (
    EACH,
    GAIN,
    LEAVE,
    MEET,
    NOWHERE,
    REACH,
    SLICES,
    Ends,
    Growth,
    Side,
    gain,
    grown,
    list_change,
    reach,
    with_room,
)
from ecc_core._backends.cpu.betti.launch import laid_out, rank_plans
from ecc_core._backends.cpu.betti.pieces import edges_across, joined_faces, pack, unpack
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.llvm import bare
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]
Values = NDArray[np.int64]


def piece_of(
    image: Array,
    thresholds: Array,
    filtration: Filtration,
    open_sides: tuple[Side, ...],
    *,
    mask: Array | None = None,
    workers: int | None = None,
    ends: Ends = SLICES,
) -> Growth:
    """Return the growth of a box. Beyond its `open_sides`, (axis, side), the image goes on."""
    plan = rank_plans(image.dtype, thresholds, filtration, masked=mask is not None)[-1]
    sides = [(axis + 3 - image.ndim, side) for axis, side in open_sides]
    return grown(laid_out(image, mask), plan, filtration, sides, ends)


def join_pieces(
    low: Growth,
    high: Growth,
    axis: int,
    dtype: np.dtype[Any],
    thresholds: Array,
    filtration: Filtration,
    *,
    masked: bool,
) -> Growth:
    """Join the growths of two boxes that touch across an axis."""
    extent, (low, high) = _joined_extent(low, high, axis)
    axis += 3 - filtration.ndim
    count = low.nodes
    more = high.changes + np.array([0, count, 0])
    more[:, 2] += count * (more[:, 0] % 4 == MEET)
    moved = {side: ends + count * (ends >= 0) for side, ends in high.ends.items()}
    touch = low.ends[axis, 1], low.faces[axis, 1], moved[axis, 0], high.faces[axis, 0]
    wide = kind_of(filtration, complement=False).connectivity > 1
    edges, entered = edges_across(*touch, wide)
    meetings = np.column_stack([4 * (entered.astype(np.int64) + 1) + MEET, edges])
    faces = joined_faces(low.faces, high.faces, axis)
    ends = joined_faces(low.ends, moved, axis)
    leaves = [_leaves(ends[side], faces[side]) for side in faces]
    changes = np.concatenate([low.changes, more, meetings, *leaves])
    keys = low.found.shape[1] - 1
    changes = changes[changes[:, 0] < 4 * (keys + 1)]  # without points that enter later
    changes = changes[np.argsort(changes[:, 0], kind="stable")]
    found = np.zeros_like(low.found)
    numbers = np.full(count + high.nodes + 1, -1, np.int64)  # the last one for points without
    nodes, changes = _join(changes, numbers, found)
    found[0] = low.found[0] + high.found[0]
    found[1] = np.maximum(found[1], np.maximum(low.found[1], high.found[1]))
    found[2:] += low.found[2:] + high.found[2:]
    numbered = {side: numbers[end] for side, end in ends.items()}
    return Growth(found, nodes, changes, extent, faces, numbered)


def _joined_extent(low: Growth, high: Growth, axis: int) -> tuple[Values, list[Growth]]:
    """Return the extent of two boxes, and their growths with ends that are those of both."""
    moved = high.extent.copy()
    moved[axis, :2] += np.where(moved[axis, :2] == NOWHERE, 0, low.extent[axis, 2])
    whole = low.extent.copy()
    whole[:, 0] = np.minimum(low.extent[:, 0], moved[:, 0])
    whole[:, 1] = np.maximum(low.extent[:, 1], moved[:, 1])
    whole[axis, 2] += high.extent[axis, 2]
    own = (low, low.extent), (high, moved)
    return whole, [_without_inner_ends(piece, extent, whole) for piece, extent in own]


def _without_inner_ends(piece: Growth, extent: Values, whole: Values) -> Growth:
    """Take back what was counted for slices that are the first or last of a box, not of both."""
    inner = extent[:, :2] != whole[:, :2]
    bits = sum(1 << (2 * axis + end) for axis, end in np.argwhere(inner).tolist())
    if not bits:
        return piece
    changes = piece.changes.copy()
    found = piece.found.copy()
    reaches = changes[:, 0] % 4 == REACH
    changes[reaches, 2] &= ~bits
    found[2:][inner.any(axis=1)] = 0
    return piece._replace(found=found, changes=changes[~reaches | (changes[:, 2] != 0)])


def _leaves(ends: Array, keys: Array) -> Values:
    """Return the changes by which the nodes of an open side become nodes of a larger box."""
    nodes = ends.ravel()
    codes = 4 * (keys.ravel().astype(np.int64) + 1) + LEAVE
    order = np.lexsort((codes, nodes))
    first = order[np.flatnonzero(np.diff(nodes[order], prepend=-1))]
    return np.column_stack([codes[first], nodes[first], np.zeros(first.size, np.int64)])


@kernel()
def _join(changes, numbers, found):
    """Apply changes in the order of their keys, and write what there is after each to `found`.

    Writes the new number of each node that is one of the larger box too, and returns how many there
    are, and their changes.
    """
    numbers = bare(numbers)
    size = numbers.size
    tree = np.arange(size)
    sizes = np.zeros(size, np.int64)
    touched = np.zeros(size, np.uint8)
    owners = np.full(size, -1, np.int64)
    recent = np.full(size, -1, np.int64)
    reached = np.zeros(size, np.uint8)
    spanning = np.zeros(found.shape[0] - 2, np.int64)
    listed = np.empty((0, 3), np.int64)
    count = np.int64(0)
    nodes = np.int64(0)
    largest = np.int64(0)
    done = 1
    for i in range(changes.shape[0] + 1):
        code = changes[i, 0] if i < changes.shape[0] else np.int64(4 * found.shape[1])
        key = code >> 2
        change = code & 3
        while done < key:
            found[1, done] = largest
            write_spanning(found, done, spanning)
            done += 1
        if i == changes.shape[0]:
            break
        listed = with_room(listed, count, EACH)
        node = changes[i, 1]
        value = changes[i, 2]
        root = find(tree, node)
        if change == GAIN:
            sizes[root] += value
            if owners[root] >= 0:
                count = gain(listed, count, key, owners[root], value, recent)
        elif change == MEET:
            other = find(tree, value)
            if other == root:
                continue
            if sizes[root] < sizes[other]:
                root, other = other, root
            own = owners[root]
            its = owners[other]
            if own >= 0 and its >= 0:
                count = list_change(listed, count, 4 * key + MEET, own, its)
            elif own >= 0:
                count = gain(listed, count, key, own, sizes[other], recent)
            elif its >= 0:
                count = gain(listed, count, key, its, sizes[root], recent)
            tree[other] = root
            sizes[root] += sizes[other]
            owners[root] = max(own, its)
            span(spanning, touched[other], -1)
            unite(touched, spanning, root, touched[other])
        elif change == REACH:
            unite(touched, spanning, root, np.uint8(value))
        else:
            if owners[root] < 0:
                owners[root] = nodes
                nodes += 1
                unite(touched, spanning, root, np.uint8(OPEN))
                count = gain(listed, count, key, owners[root], sizes[root], recent)
            if numbers[node] < 0:  # it may leave on several sides
                numbers[node] = owners[root]
        if owners[root] >= 0:
            count = reach(listed, count, key, owners[root], touched[root], reached)
        else:
            largest = max(largest, sizes[root])
    return nodes, listed[:count].copy()


def numbers_of(
    piece: Growth,
    dtype: np.dtype[Any],
    thresholds: Array,
    filtration: Filtration,
    *,
    masked: bool,
) -> Values:
    """Return the curves of a growth without open sides, (d + 2, n)."""
    plan = rank_plans(dtype, thresholds, filtration, masked=masked)[-1]
    values: Values = piece.found[:, plan.entered]
    return values


def pack_piece(piece: Growth) -> Values:
    """Return a growth as one array."""
    sides = sorted(piece.faces)
    head = [piece.found, np.array([piece.nodes]), piece.changes, piece.extent]
    at_sides = [part[side] for part in (piece.faces, piece.ends) for side in sides]
    return pack(sides, [*head, *at_sides])


def unpack_piece(values: Values) -> Growth:
    """Return the growth that was packed into an array."""
    sides, (found, nodes, changes, extent, *arrays) = unpack(values)
    faces, ends = (
        dict(zip(sides, part, strict=True)) for part in (arrays[: len(sides)], arrays[len(sides) :])
    )
    return Growth(found, int(nodes[0]), changes, extent, faces, ends)
