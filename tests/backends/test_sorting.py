"""Sorting by digits, compared with NumPy's stable sort."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ecc_core._backends.cpu.order import MOST_TIES, SAMPLES, sort_keys

COUNTS = [0, 1, SAMPLES - 1, SAMPLES + 1, 3000]


def ties(rng, count):
    """Higher halves of a few values, so that the lower ones decide."""
    return rng.integers(0, 5, count) << 32 | rng.integers(0, 5, count)


def short_ties(rng, count):
    return rng.integers(0, count // 3 + 1, count) << 32 | rng.integers(0, 3, count)


def long_run(rng, count):
    """Ties that samples miss: more keys than are sorted one by one have one higher half."""
    keys = rng.integers(0, 1 << 62, count)
    keys[: 2 * MOST_TIES] = rng.permutation(2 * MOST_TIES)[:count]
    return keys


def small(rng, count):
    return rng.integers(0, 1 << 31, count)


def any_bits(rng, count):
    return rng.integers(0, 1 << 64, count, np.uint64)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("draw", [ties, short_ties, long_run, small, any_bits])
def test_order_of_keys_of_64_bits(draw, count):
    keys = draw(np.random.default_rng(count), count).astype(np.uint64)
    assert_array_equal(sort_keys(keys), np.argsort(keys, kind="stable"))
