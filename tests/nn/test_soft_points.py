"""Sums of soft steps point by point: their cells, and their values by the definition."""

import numpy as np
import pytest

from ecc_core._backends.cpu.soft import points, step_tables
from ecc_core._backends.cpu.soft.sums import Sums

pytest.importorskip("scipy")
from scipy.special import expit

TINY = {np.float32: np.log(np.finfo(np.float32).tiny), np.float64: np.log(np.finfo(float).tiny)}
"""Exponents below which exponentials are subnormal."""
LEVELS = {
    "even": np.linspace(0, 1, 33),
    "many": np.linspace(-1, 1, 1024),
    "one": np.array([0.25]),
    "equal": np.array([0.5, 0.5, 0.5]),
    "uneven": np.array([-3.0, 0.0, 0.001, 0.002, 5.0]),
    "far apart": np.array([-1e9, 0.1, 0.2, 1e9]),
}
SHARPNESS = (1e-3, 4.0, 124.0, 1e5, 1e20)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sharpness", SHARPNESS)
@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS)
def test_sums_follow_the_definition(levels, sharpness, dtype):
    """The sum of c * s(l * (t - v)) over the points, and its derivatives, in double precision."""
    rng = np.random.default_rng(0)
    values = rng.uniform(-1.2, 1.2, (2, 5000)).astype(dtype)
    values[:, :4] = np.inf, -np.inf, levels[0], levels[-1]
    weights = rng.integers(-3, 2, values.shape).astype(np.int8)
    weights[:, 0] = 0
    upstream = rng.normal(size=(2, levels.size))
    sums = Sums(values, weights, levels, sharpness, 1)
    curve, slope, spread = sums.curves()
    with np.errstate(over="ignore", invalid="ignore"):
        apart = levels[:, None, None] - values.astype(float)
        step = expit(sharpness * apart)
        change = step * expit(-sharpness * apart)
        spreads = np.where(change == 0, 0, change * apart)
    scale = np.abs(weights).sum(1)[:, None]
    bound = 3e-7 if dtype == np.float32 else 1e-13
    known = (weights * step).sum(2).T
    assert np.all(np.abs(curve - known) <= bound * scale)
    known = (weights * change).sum(2).T
    assert np.all(np.abs(slope / sharpness - known) <= bound * scale)
    known = (weights * spreads).sum(2).T
    errors = np.abs(spread - known) * sharpness
    assert np.all(errors <= 20 * bound * scale)
    found = sums.gradients(upstream, double=True)
    wanted = weights * np.einsum("in,nip->ip", upstream, change) * sharpness
    most = sharpness * np.abs(upstream).sum(1)[:, None]
    assert np.all(np.abs(found - wanted) <= 8 * bound * most)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sharpness", SHARPNESS[:-1])
@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS)
def test_no_odds_near_a_level_are_subnormal(levels, sharpness, dtype):
    """Exponents of the odds of any value in a cell, for all levels near the cell."""
    edges, _, ranges, *_ = points.prepare(levels, sharpness, np.empty(points.BUFFER, dtype))
    largest = 0
    for cell in range(1, edges.size):
        near = levels[slice(*ranges[cell])]
        exponents = sharpness * np.abs(near[:, None] - edges[cell - 1 : cell + 1])
        largest = exponents.max(initial=largest)
    assert largest < -TINY[dtype]


@pytest.mark.parametrize(
    ("dtype", "span", "margin"),
    [
        (np.float32, step_tables.SINGLE_SPAN, step_tables.SINGLE_MARGIN),
        (np.float64, step_tables.DOUBLE_SPAN, step_tables.DOUBLE_MARGIN),
    ],
)
def test_no_odds_of_transforms_are_subnormal(dtype, span, margin):
    """A height is at most span + margin from a level, in units of 1 / sharpness."""
    assert span + margin < -TINY[dtype]
