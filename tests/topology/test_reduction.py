"""The reduction of listed columns, against that of a dense matrix over Z/2."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ecc_core._backends.cpu.betti.tunnels import reduce_listed


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


@pytest.mark.parametrize("first", [0, 25])
def test_listed_columns_are_reduced(first):
    rng = np.random.default_rng(first)
    for _ in range(20):
        given = [rng.permutation(30)[: rng.integers(0, 8)] for _ in range(50)]
        check_reduction(rng, given, 30, first)


def test_columns_are_reduced_that_are_longer_than_the_first_lists():
    """So are their sums, which are as long as both columns together."""
    rng = np.random.default_rng(0)
    others = np.arange(1, 9000)
    sizes = (900, 700, 2500, 4000, 10, 3000)
    given = [np.append(0, rng.choice(others, size, replace=False)) for size in sizes]
    check_reduction(rng, given, 9000, 0)
