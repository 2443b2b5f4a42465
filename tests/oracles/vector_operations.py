"""The operations of the ``vector_`` modules again, as plain loops over single points.

Each function takes the arguments of its namesake there and has the same results, one bit or one
value at a time. They say what an operation means; the tests hold the two equal. The kernels use the
vector ones: numba does not vectorise these loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.kernels import pointer
from ecc_core._backends.cpu.encoders.vector_cells import CELL_LANES
from ecc_core._backends.cpu.encoders.vector_even import BIN_LANES
from ecc_core._backends.cpu.llvm import fused_multiply_add
from ecc_core._backends.cpu.scans.vector_coefficients import (
    COEFFICIENT_PLANES,
    HAS_COMPRESS,
    NONZERO_PLANE,
    ROWS,
)
from ecc_core._backends.cpu.scans.vector_planes import LANES
from ecc_core._backends.cpu.vector_tiles import TILE

__all__ = [
    "append_events",
    "append_region_events",
    "bin_checked_value",
    "bin_checked_vector",
    "bin_value",
    "bin_vector",
    "coefficients_2d",
    "coefficients_3d",
    "count_ones",
    "expand_coefficients",
    "fill_vector",
    "find_cells",
    "label_changes",
    "order_planes",
    "planes_2d",
    "planes_3d",
    "rank_cells",
    "small_keys",
    "transpose_tile",
]

ONE = np.uint64(1)
NONE = np.uint64(0)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel()
def _bit(words: Any, at: Any, x: Any) -> Any:
    """Bit x of the word at `at`: 0 or 1."""
    return np.int64((words[at] >> np.uint64(x)) & ONE)


@kernel()
def _set(words: Any, at: Any, x: Any, bit: Any) -> None:
    place = ONE << np.uint64(x)
    words[at] = words[at] | place if bit else words[at] & ~place


@kernel()
def _signed(words: Any, at: Any, planes: Any, x: Any) -> Any:
    """The number at point x of `planes` planes in two's complement, 8 words apart."""
    number = 0
    for i in range(planes):
        number += _bit(words, at + ROWS * i, x) << i
    return number - (1 << planes) if number >> (planes - 1) else number


@kernel()
def planes_2d(
    keys: Any, start: Any, pitch: Any, rows: Any, planes: Any, out: Any, stride: Any
) -> None:
    for row in range(rows):
        for x in range(LANES):
            here = start + row * pitch + x
            below = here + pitch
            at = out + row
            _set(planes, at, x, keys[here] >= keys[below])
            across = max(keys[here], keys[here + 1])
            _set(planes, at + stride, x, across >= max(keys[below], keys[below + 1]))
            _set(planes, at + 2 * stride, x, keys[here] >= keys[here + 1])


@kernel()
def _largest(keys: Any, at: Any, pitch: Any, down: Any, right: Any) -> Any:
    """The largest key of a point and of its neighbours `down` rows and `right` columns on."""
    largest = keys[at]
    for y in range(down + 1):
        for x in range(right + 1):
            largest = max(largest, keys[at + y * pitch + x])
    return largest


@kernel()
def planes_3d(
    keys: Any,
    start: Any,
    next_start: Any,
    pitch: Any,
    rows: Any,
    planes: Any,
    out: Any,
    stride: Any,
) -> None:
    planes_2d(keys, start, pitch, rows, planes, out, stride)
    for row in range(rows):
        for x in range(LANES):
            here = start + row * pitch + x
            there = next_start + row * pitch + x
            at = out + row + 3 * stride
            for down in range(2):
                for right in range(2):
                    largest = _largest(keys, here, pitch, down, right)
                    next_largest = _largest(keys, there, pitch, down, right)
                    _set(planes, at + (2 * down + right) * stride, x, largest >= next_largest)


@kernel()
def order_planes(
    keys: Any,
    labels: Any,
    here: Any,
    there: Any,
    pitch: Any,
    rows: Any,
    flip: Any,
    planes: Any,
    out: Any,
    back: Any,
) -> None:
    for row in range(rows):
        for x in range(LANES):
            point, neighbour = here + row * pitch + x, there + row * pitch + x
            same = labels[point] == labels[neighbour]
            wins = keys[point] >= keys[neighbour]
            _set(planes, out + row, x, wins if same else flip == ALL)
            _set(planes, back + row, x, not wins if same else flip == ALL)


@kernel()
def _finish(
    along: Any, across: Any, wins: Any, size: Any, carry: Any, at: Any, edge: Any, out: Any
) -> None:
    """One row from the coefficients along the other axes of x (`along`) and of the maxima over x.

    `size` is the number of planes that hold them, `at` and `out` are those of the row.
    """
    incoming = along[0] if edge else _signed(carry, at, size, LANES - 1)
    for x in range(LANES):
        lost = 0 if wins[x] else across[x]
        total = along[x] - (across[x] if wins[x] else 0) - incoming
        for i in range(COEFFICIENT_PLANES):
            _set(out[0], out[1] + ROWS * i, x, (total >> i) & 1)
        _set(out[0], out[1] + ROWS * NONZERO_PLANE, x, total & 15)
        for i in range(size):
            _set(carry, at + ROWS * i, x, (lost >> i) & 1)
        incoming = lost


@kernel()
def _queue(block: Any, into: Any) -> Any:
    """The union of the non-zero planes, and how many rows are queued."""
    queue, queued, valid, rows, at, pitch = into
    some = NONE
    for row in range(ROWS):
        nonzero = block[ROWS * NONZERO_PLANE + row]
        some |= nonzero
        if HAS_COMPRESS and row < rows and nonzero & valid:
            for i in range(COEFFICIENT_PLANES):
                queue[i, queued] = block[ROWS * i + row]
            queue[NONZERO_PLANE, queued] = nonzero & valid
            queue[NONZERO_PLANE + 1, queued] = np.uint64(at + row * pitch)
            queued += 1
    return some, queued


@kernel()
def coefficients_2d(
    planes: Any,
    row: Any,
    stride: Any,
    carry: Any,
    at: Any,
    edge: Any,
    out: Any,
    into: Any,
) -> Any:
    along, across, wins = np.zeros((3, LANES), np.int64)
    for i in range(ROWS):
        here = row + i
        for x in range(LANES):
            along[x] = _bit(planes, here - 1, x) - _bit(planes, here, x)
            pairs = here + stride
            across[x] = _bit(planes, pairs - 1, x) - _bit(planes, pairs, x)
            wins[x] = _bit(planes, here + 2 * stride, x)
        _finish(along, across, wins, 2, carry, at + i, edge, (out, i))
    return _queue(out, into)


@kernel()
def _along_3d(planes: Any, row: Any, between: Any, before: Any, pairs: Any, x: Any) -> Any:
    """Coefficient along z and y at point x; `pairs` leads to the planes maximised over y."""
    wins = _bit(planes, row, x)
    lost = 1 - _bit(planes, row - 1, x)
    here = _bit(planes, before, x) - _bit(planes, between, x)
    y_pair = _bit(planes, before + pairs, x) - _bit(planes, between + pairs, x)
    y_pair_above = _bit(planes, before + pairs - 1, x) - _bit(planes, between + pairs - 1, x)
    return here - wins * y_pair - lost * y_pair_above


@kernel()
def coefficients_3d(
    planes: Any,
    row: Any,
    between: Any,
    before: Any,
    stride: Any,
    carry: Any,
    at: Any,
    edge: Any,
    out: Any,
    into: Any,
) -> Any:
    along, across, wins = np.zeros((3, LANES), np.int64)
    for i in range(ROWS):
        for x in range(LANES):
            along[x] = _along_3d(planes, row + i, between + i, before + i, 2 * stride, x)
            across[x] = _along_3d(
                planes,
                row + i + stride,
                between + i + stride,
                before + i + stride,
                2 * stride,
                x,
            )
            wins[x] = _bit(planes, row + i + 2 * stride, x)
        _finish(along, across, wins, 3, carry, at + i, edge, (out, i))
    return _queue(out, into)


@kernel()
def expand_coefficients(coefficients: Any, row: Any, out: Any, at: Any) -> None:
    for x in range(LANES):
        out[at + x] = _signed(coefficients, row, COEFFICIENT_PLANES, x)


@kernel()
def append_events(
    queue: Any, row: Any, keys: Any, event_keys: Any, coefficients: Any, count: Any
) -> Any:
    at = np.int64(queue[NONZERO_PLANE + 1, row])
    for x in range(LANES):
        if _bit(queue[NONZERO_PLANE], row, x):
            number = 0
            for i in range(COEFFICIENT_PLANES):
                number += _bit(queue[i], row, x) << i
            event_keys[count] = keys[at + x]
            coefficients[count] = number - 16 if number >= 8 else number
            count += 1
    return count


@kernel()
def append_region_events(
    coefficients: Any,
    wanted: Any,
    at: Any,
    keys: Any,
    labels: Any,
    event_keys: Any,
    event_labels: Any,
    event_coefficients: Any,
    count: Any,
) -> Any:
    for x in range(LANES):
        if (wanted >> np.uint64(x)) & ONE and labels[at + x]:
            number = 0
            for i in range(COEFFICIENT_PLANES):
                number += np.int64((coefficients[i] >> np.uint64(x)) & ONE) << i
            event_keys[count], event_labels[count] = keys[at + x], labels[at + x]
            event_coefficients[count] = number - 16 if number >= 8 else number
            count += 1
    return count


@kernel()
def label_changes(row: Any, first: Any) -> Any:
    changes = NONE
    for x in range(LANES):
        if row[first + x] != row[first + x - 1]:
            changes |= ONE << np.uint64(x)
    return changes


@kernel()
def fill_vector(row: Any, first: Any, value: Any) -> None:
    for x in range(LANES):
        row[first + x] = value


@kernel()
def _place(value: Any, scale: Any, bins: Any, checked: Any) -> Any:
    """The place of a value in units of the last digit; whole places around all if not checked."""
    count, digits = bins[5], bins[7]
    half = (1 << digits) // 2 if checked else 0
    place = fused_multiply_add(value, scale[0], scale[1])
    if value != value:
        return np.int64(half)
    return np.int64(min(max(place, np.float64(half)), np.float64((count << digits) + half)))


@kernel()
def _bin_value(
    values: Any, keys: Any, at: Any, levels: Any, scale: Any, bins: Any, checked: Any, near: Any
) -> Any:
    turn = scale[2]
    first, direction, of_nan, turned, downwards, count, unfit, digits, _reach, regular = bins
    value = np.float64(values[at])
    nan = value != value
    place = _place(value, scale, bins, checked)
    rank = place >> digits
    if checked and near:
        before = min((place + (1 << digits) // 2) >> digits, count) - 1
        level = np.float64(before) * scale[4] + scale[3] if regular else np.float64(levels[before])
        rank = before + (value < level if downwards else value > level)
    past = not value > turn if downwards else value > turn
    if past:
        rank = max(rank, turned)
    rank = of_nan if nan else rank
    seen = rank == unfit
    keys[at] = first + (rank ^ direction)
    return np.uint64(seen), np.uint64(nan)


@kernel()
def _is_near(value: Any, scale: Any, bins: Any) -> Any:
    one, reach = 1 << bins[7], bins[8]
    place = _place(np.float64(value), scale, bins, True)
    distance = place % one
    return min(distance, one - distance) <= reach


@kernel()
def _bin_vector(
    values: Any, keys: Any, at: Any, levels: Any, scale: Any, bins: Any, checked: Any
) -> Any:
    above, nan, near = NONE, NONE, False
    for i in range(BIN_LANES):
        near |= _is_near(values[at + i], scale, bins)
    for i in range(BIN_LANES):
        more, bad = _bin_value(values, keys, at + i, levels, scale, bins, checked, near)
        above |= more << np.uint64(i)
        nan |= bad << np.uint64(i)
    return above, nan


@kernel()
def bin_value(values: Any, keys: Any, at: Any, levels: Any, scale: Any, bins: Any) -> Any:
    return _bin_value(values, keys, at, levels, scale, bins, False, False)


@kernel()
def bin_checked_value(values: Any, keys: Any, at: Any, levels: Any, scale: Any, bins: Any) -> Any:
    near = _is_near(values[at], scale, bins)
    return _bin_value(values, keys, at, levels, scale, bins, True, near)


@kernel()
def bin_vector(values: Any, keys: Any, at: Any, levels: Any, scale: Any, bins: Any) -> Any:
    return _bin_vector(values, keys, at, levels, scale, bins, False)


@kernel()
def bin_checked_vector(values: Any, keys: Any, at: Any, levels: Any, scale: Any, bins: Any) -> Any:
    return _bin_vector(values, keys, at, levels, scale, bins, True)


@kernel()
def find_cells(
    values: Any,
    at: Any,
    turns: Any,
    cells: Any,
    keys: Any,
    to: Any,
    grid: Any,
    order: Any,
) -> Any:
    origin, slope, last = grid
    flip, stored, turn, limit = order
    above, nan = NONE, NONE
    for i in range(CELL_LANES * turns):
        lane = np.uint64(i % CELL_LANES)
        value = values[at + i]
        place = (np.float64(value) - np.float64(origin)) * np.float64(slope)
        bad = value != value
        cell = np.int64(last) + 1 if bad else np.int64(min(max(place, 0.0), np.float64(last)))
        key = keys[to + i] ^ flip  # the caller has put the ordered keys there
        above |= np.uint64(key ^ turn > limit and not bad) << lane
        nan |= np.uint64(bad) << lane
        cells[to + i] = cell
        keys[to + i] = key ^ stored
    return above, nan


@kernel()
def rank_cells(
    cells: Any,
    keys: Any,
    at: Any,
    count: Any,
    entries: Any,
    only: Any,
    target: Any,
    first: Any,
) -> Any:
    union = NONE
    for i in range(count):
        entry, key = entries[cells[at + i]], np.uint64(keys[at + i])
        if keys.itemsize == 4:
            rank = entry + key
            union |= rank
            rank >>= np.uint64(32)
        else:
            union |= entry
            rank = entry + np.uint64(key >= only[cells[at + i]])
        target[first + i] = rank
    return union


@kernel()
def small_keys(keys: Any, at: Any, bound: Any) -> Any:
    word = NONE
    for x in range(LANES):
        word |= np.uint64(keys[at + x] <= bound) << np.uint64(x)
    return word


@kernel()
def count_ones(word: Any) -> Any:
    return sum([np.int64((word >> np.uint64(x)) & ONE) for x in range(LANES)])


@kernel()
def transpose_tile(address: Any, step: Any, out: Any, at: Any, out_step: Any) -> None:
    for j in range(TILE):
        row = carray(pointer(address + j * step), TILE, out.dtype)
        for i in range(TILE):
            out[at + i * out_step + j] = row[i]
