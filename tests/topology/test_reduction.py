"""The reduction of listed columns, against that of a dense matrix over Z/2."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ecc_core._backends.cpu.betti import dead_ends
from ecc_core._backends.cpu.betti.stars import AXES, ROW, path_index, path_offsets
from ecc_core._backends.cpu.betti.tunnels import reduce_listed
from ecc_core._backends.cpu.betti.volume import empty_volume


def reduced(columns):
    """Add earlier columns with the same pivot, the first row of a column; the columns by pivot."""
    owners = {}
    columns = [set(column) for column in columns]
    for j, column in enumerate(columns):
        while column and min(column) in owners:
            column ^= columns[owners[min(column)]]
        if column:
            owners[min(column)] = j
    return owners, columns


def check_reduction(rng, given, count, first):
    """Reduce the columns behind the first ones, which were reduced before; rows in any order."""
    expected, _ = reduced(given)
    before, changed = reduced(given[:first])
    columns = [rng.permutation(sorted(column)) for column in changed] + given[first:]
    owners = np.full(count, -1, np.int32)
    for row, column in before.items():
        owners[row] = column
    rows = np.concatenate(columns).astype(np.int32)
    ends = np.cumsum([len(column) for column in columns])
    spans = np.stack([ends - [len(column) for column in columns], ends], axis=1)
    reduce_listed(np.arange(first, len(given)), rows, spans, owners)
    assert_array_equal(owners, [expected.get(row, -1) for row in range(count)])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("first", [0, 25])
def test_listed_columns_are_reduced(first, seed):
    rng = np.random.default_rng(seed)
    given = [rng.permutation(30)[: rng.integers(0, 8)] for _ in range(50)]
    check_reduction(rng, given, 30, first)


def test_columns_are_reduced_that_are_longer_than_the_first_lists():
    """Sums of columns may be as long as both together, which is more than the first lists hold."""
    rng = np.random.default_rng(0)
    others = np.arange(1, 9000)
    sizes = (900, 700, 2500, 4000, 10, 3000)
    given = [np.append(0, rng.choice(others, size, replace=False)) for size in sizes]
    check_reduction(rng, given, 9000, 0)


def random_gradient(rng, volume):
    """Edges in a volume, each matched at random with a square, with a point, or a row."""
    gradient = volume.gradient.reshape(3, -1)
    inside = np.zeros(volume.shape, bool)
    inside[1:-1, 1:-1, 1:-1] = True
    for axis in range(3):
        ends = [0, *(end + 1 for end in range(6) if AXES[end] != axis)]
        bytes_ = rng.choice(ends, inside.sum()).astype(np.uint8)
        bytes_[rng.random(bytes_.size) < 0.02] = ROW
        gradient[axis, np.flatnonzero(inside)] = bytes_


def next_addresses(gradient, around, address):
    """Return the addresses of the three other edges of the square that an edge is matched with."""
    axis = address // (gradient.size // 3)
    offsets = [around[path_index(axis, int(gradient[address]), side)] for side in range(3)]
    return [4 * address + axis + offset >> 2 for offset in offsets]


def leading_to_rows(gradient, around):
    """Which edges have a path to a row, by following all of them until nothing changes."""
    leads = gradient == ROW
    before = 0
    while leads.sum() > before:
        before = leads.sum()
        for address in np.flatnonzero((gradient != 0) & ~leads):
            leads[address] = leads[next_addresses(gradient, around, address)].any()
    return leads


@pytest.mark.parametrize("shape", [(8, 9, 10), (7, 6, 70)])
def test_edges_that_are_removed_lead_to_no_row(shape, monkeypatch):
    """Tiles have three slices and four rows, each as long as one word or two."""
    monkeypatch.setattr(dead_ends, "TILE_SLICES", 3)
    monkeypatch.setattr(dead_ends, "TILE_WORDS", 4)
    volume = empty_volume(shape)
    random_gradient(np.random.default_rng(1), volume)
    around = path_offsets(volume.steps, volume.width)
    before = volume.gradient.copy()
    dead_ends.remove_dead_ends(volume, 1)
    removed = before != volume.gradient
    assert removed.sum() > 50
    assert not volume.gradient[removed].any()
    assert not leading_to_rows(before, around)[removed].any()
    for address in np.flatnonzero((before != 0) & (before != ROW) & ~removed):
        assert before[next_addresses(before, around, address)].any()
