"""Values that have entered at thresholds, counted one by one."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ecc_core._backends.cpu.scans.values import entered, plan_of
from ecc_core._request.levels import count_entered, round_to_levels

THRESHOLDS = [
    np.array([]),
    np.array([3.0, 3.0, 50.5, 1e9]),
    np.array([-np.inf, 0.0, np.inf]),
    np.arange(-1.0, 256.0),
]
DTYPES = ["?", "u1", "i2", "f2", "f4", "f8", "i8"]


def values_of(dtype, size):
    """Values with ties, among them thresholds."""
    return np.random.default_rng(size).integers(0, 100, size).astype(dtype)


def expected_of(values, weights, thresholds, superlevel):
    numbers = values.astype(np.float64)
    shown = (numbers >= t if superlevel else numbers <= t for t in thresholds.tolist())
    return [int(weights[inside].sum()) for inside in shown]


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [0, 1, 500])
@pytest.mark.parametrize("thresholds", THRESHOLDS, ids=len)
def test_numbers_of_values(dtype, size, thresholds, superlevel):
    values = values_of(dtype, size)
    levels = round_to_levels(thresholds, values.dtype, superlevel)
    found = count_entered(values, levels)
    assert_array_equal(found, expected_of(values, np.ones(size), thresholds, superlevel))


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("thresholds", THRESHOLDS[1:], ids=len)
def test_sums_of_weights(dtype, thresholds, superlevel):
    """The backend sums weights by the keys of images."""
    values = values_of(dtype, 500)
    weights = np.random.default_rng(1).integers(-5, 8, 500).astype(np.int8)
    plan = plan_of(values.dtype, thresholds, superlevel)
    found = entered(values, plan, weights)
    assert_array_equal(found, expected_of(values, weights, thresholds, superlevel))
