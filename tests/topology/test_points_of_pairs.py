"""Points of birth and death of pairs of all dimensions, beside those of a reduced matrix."""

import itertools

import numpy as np
import pytest
from filtrations import sides
from topology_helpers import check_points

SHAPES = [(5,), (4, 4), (2, 3), (3, 3, 3), (2, 3, 4), (1, 4, 3), (3, 1, 3), (1, 1, 5)]


def ends(dtype):
    """The first and the last two integers of a dtype, where components that meet last forever."""
    info = np.iinfo(dtype)
    return np.array([info.min, info.min + 1, info.max - 1, info.max], dtype)


VALUES = [
    *map(np.arange, (2, 4, 100)),
    *map(ends, (np.int8, np.uint8, np.int64, np.uint64)),
    np.array([False, True]),
    np.array([-np.inf, 0, 1, np.inf], np.float32),
]


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("values", VALUES, ids=lambda values: f"{values.dtype}-{values.size}")
@pytest.mark.parametrize("shape", SHAPES)
def test_points_of_pairs(shape, values, periodic):
    rng = np.random.default_rng(values.size)
    for options, masked in itertools.product(sides(len(shape)), (False, True)):
        shown = rng.random(shape) < 0.8 if masked else np.ones(shape, bool)
        check_points(rng.choice(values, shape), shown, periodic=periodic, **options)
