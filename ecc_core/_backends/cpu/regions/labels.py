"""Labels of an image as ranks from 1: by a table where they are dense, otherwise by hashing.

Every label is read once, and out of range it is background: what another thread writes meanwhile is
never used as an index.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.kernels import image_row, key_row
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.scans.blocks import cut
from ecc_core._backends.cpu.sources import Block, Source

__all__ = ["DenseRanks", "HashedRanks", "rank_labels"]

Array = NDArray[Any]

LABELS_A_POINT = 8  # ids larger than this many times the points are hashed
LEAST_SLOTS = 1 << 12
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
ONE = np.uint64(1)


@kernel()
def _mark(address: Any, token: Any, strides: Any, extents: Any, present: Any) -> None:
    """Set `present` at every label; unsigned indices spare numba's check for negative ones."""
    slices, rows, columns = extents
    size = np.uint64(present.size)
    for z in range(slices):
        for y in range(rows):
            row = image_row(address, token, strides, z, y, extents)
            for x in range(columns):
                label = np.uint64(row[x])
                if label < size:
                    present[label] = True


@kernel()
def _rank_by_table(
    address: Any, token: Any, strides: Any, extents: Any, out: Any, at: Any, steps: Any, table: Any
) -> None:
    """Stage the ranks of labels."""
    slices, rows, columns = extents
    size = np.uint64(table.size)
    base = out.ctypes.data
    for z in range(slices):
        for y in range(rows):
            row = image_row(address, token, strides, z, y, extents)
            target = key_row(base, out, at, steps, z, y, columns)
            for x in range(columns):
                label = np.uint64(row[x])
                target[x] = table[label] if label < size else 0


@kernel()
def _slot(label: Any, keys: Any, ranks: Any, shift: Any) -> Any:
    """Where a label stands, or has room: a slot of rank 0."""
    last = np.uint64(keys.size - 1)
    slot = (label * GOLDEN) >> shift
    while ranks[slot] != 0 and keys[slot] != label:
        slot = (slot + ONE) & last
    return slot


@kernel()
def _insert(labels: Any, keys: Any, ranks: Any, shift: Any) -> None:
    for i in range(labels.size):
        slot = _slot(labels[i], keys, ranks, shift)
        keys[slot], ranks[slot] = labels[i], i + 1


@kernel()
def _collect(
    address: Any,
    token: Any,
    strides: Any,
    extents: Any,
    limit: Any,
    keys: Any,
    ranks: Any,
    shift: Any,
    found: Any,
) -> Any:
    """Insert the labels of a box up to `limit`; how many there are, or -1 without room."""
    slices, rows, columns = extents
    before = np.uint64(0)
    for z in range(slices):
        for y in range(rows):
            row = image_row(address, token, strides, z, y, extents)
            for x in range(columns):
                label = np.uint64(row[x])
                if label != before and label <= limit:
                    before = label
                    slot = _slot(label, keys, ranks, shift)
                    if label != 0 and ranks[slot] == 0:
                        if 2 * found >= keys.size:
                            return -1
                        found += 1
                        keys[slot], ranks[slot] = label, found
    return found


@kernel()
def _rank_by_hash(
    address: Any,
    token: Any,
    strides: Any,
    extents: Any,
    out: Any,
    at: Any,
    steps: Any,
    keys: Any,
    ranks: Any,
    shift: Any,
) -> None:
    """Stage the ranks of labels; neighbours mostly have the same."""
    slices, rows, columns = extents
    base = out.ctypes.data
    before, rank = np.uint64(0), ranks[0] * np.uint32(0)
    for z in range(slices):
        for y in range(rows):
            row = image_row(address, token, strides, z, y, extents)
            target = key_row(base, out, at, steps, z, y, columns)
            for x in range(columns):
                label = np.uint64(row[x])
                if label != before:
                    before = label
                    rank = ranks[_slot(label, keys, ranks, shift)] if label else ranks[0] * 0
                target[x] = rank


def _rank_dtype(count: int) -> np.dtype[Any]:
    """Narrow ranks compare faster."""
    return np.dtype(np.uint16 if count < 1 << 16 else np.uint32)


class DenseRanks:
    """Ranks by a table of all labels up to the largest."""

    def __init__(self, present: NDArray[np.bool_]) -> None:
        self.table = np.cumsum(present, dtype=_rank_dtype(int(np.count_nonzero(present))))
        self.dtype = self.table.dtype

    def stage(self, source: Source, box: Block, extents: Any, out: Array, *place: Any) -> Array:
        """Write the ranks of a box; its labels."""
        address, strides, labels = source.box(box)
        _rank_by_table(address, source.token, strides, extents, out, *place, self.table)
        return labels


class HashedRanks:
    """Ranks of sparse labels."""

    def __init__(self, ids: NDArray[np.uint64]) -> None:
        self.dtype = _rank_dtype(ids.size)
        self.keys, self.ranks, self.shift = _slots(4 * ids.size, self.dtype)
        _insert(ids, self.keys, self.ranks, self.shift)

    def stage(self, source: Source, box: Block, extents: Any, out: Array, *place: Any) -> Array:
        """Write the ranks of a box; its labels."""
        address, strides, labels = source.box(box)
        hashed = self.keys, self.ranks, self.shift
        _rank_by_hash(address, source.token, strides, extents, out, *place, *hashed)
        return labels


def _slots(least: int, dtype: Any) -> tuple[NDArray[np.uint64], Array, np.uint64]:
    """Empty slots, and the shift that makes a slot of a product with `GOLDEN`."""
    bits = max(least, LEAST_SLOTS).bit_length()
    return np.zeros(1 << bits, np.uint64), np.zeros(1 << bits, dtype), np.uint64(64 - bits)


def rank_labels(source: Source, workers: int | None) -> tuple[Array, DenseRanks | HashedRanks]:
    """The ids present, increasing, and what ranks labels among them."""
    dtype, size = source.token.dtype, source.array.size
    if size == 0:
        return np.empty(0, dtype), DenseRanks(np.zeros(1, np.bool_))
    blocks = cut(source.shape, dtype.itemsize, 2)
    count = worker_count(workers, size, 1)
    largest = max(int(source.array.max()), 0)
    if largest < LABELS_A_POINT * size + 256:
        present = np.zeros(largest + 1, np.bool_)

        def mark(queue: Iterator[Block]) -> None:
            for block in queue:
                address, strides, labels = source.box(block)
                _mark(address, source.token, strides, labels.shape, present)

        share(blocks, mark, count)
        present[0] = False
        return np.flatnonzero(present).astype(dtype), DenseRanks(present)
    limit = np.uint64(np.iinfo(dtype).max)
    parts = share(blocks, lambda queue: _distinct(source, queue, limit), count)
    ids = np.unique(np.concatenate(parts))
    return ids.astype(dtype), HashedRanks(ids)


def _distinct(source: Source, queue: Iterator[Block], limit: np.uint64) -> NDArray[np.uint64]:
    """The labels in blocks that are neither 0 nor beyond the limit."""
    keys, ranks, shift = _slots(0, np.uint32)
    found = 0
    for block in queue:
        while True:
            address, strides, labels = source.box(block)
            extents = labels.shape
            more = _collect(
                address, source.token, strides, extents, limit, keys, ranks, shift, found
            )
            if more >= 0:
                found = more
                break
            seen = keys[ranks != 0]
            keys, ranks, shift = _slots(4 * seen.size, np.uint32)
            _insert(seen, keys, ranks, shift)
            found = seen.size
    return np.asarray(keys[ranks != 0])
