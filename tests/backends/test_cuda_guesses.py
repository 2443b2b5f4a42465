"""The rules that the CUDA backend takes codes from, with the arithmetic of its kernels in NumPy."""

from fractions import Fraction

import numpy as np
import pytest

from ecc_core._backends.cuda import guesses, pair_rules
from ecc_core._request.levels import round_to_levels

RANDOM = np.random.default_rng(2)
TINY = np.float32(1e-45)
RULES = {
    "even": (np.linspace(-2, 2, 64), guesses.AFFINE),
    "many": (np.linspace(-2, 2, 4096), guesses.AFFINE),
    "float32": (np.linspace(0.03, 0.97, 256, dtype=np.float32), guesses.UNIFORM),
    "many float32": (np.linspace(-0.7, 0.9, 4096, dtype=np.float32), guesses.UNIFORM),
    "one": (np.array([0.1]), None),
    "one that is huge": (np.array([3e38]), None),
    "percentiles": (
        np.percentile(RANDOM.normal(size=9999), np.linspace(0, 100, 90)),
        guesses.CELLS,
    ),
    "dense on one side": (np.geomspace(1e-3, 1, 100), guesses.CELLS),
    "clustered": (np.sort(RANDOM.normal(size=300)), guesses.PIECES),
    "many clustered": (np.sort(RANDOM.uniform(-3, 5, 1100)), guesses.PIECES),
    "clustered and infinite": (
        np.concatenate([[-np.inf], np.sort(RANDOM.normal(size=200)), [np.inf]]),
        guesses.PIECES,
    ),
    "clustered far from zero": (1000 + np.sort(RANDOM.normal(size=100)), guesses.PIECES),
    "subnormal": (np.arange(-9, 10) * 1.1e-39, None),
    "infinite": (np.array([-np.inf, -1, 0.3, np.inf]), guesses.CELLS),
}


def codes_of(rule, keys, superlevel):
    """What `Encoder` of pairs.cuh computes."""
    low, scale, last = rule.line
    if rule.rule == guesses.AFFINE:
        units = [Fraction(float(low)) + Fraction(float(scale)) * Fraction(float(k)) for k in keys]
        return np.array([int(min(max(unit, 0), 1) * Fraction(float(last))) for unit in units])
    if rule.rule == guesses.PIECES:
        lines = rule.pieces[guesses.guesses(keys, rule.line)]
        guess = guesses.guesses_by_lines(keys, lines, rule.dense[2])
    else:
        guess = guesses.guesses(keys, rule.line, rule.dense)
    threshold = rule.table[guess]
    return guess - (keys < threshold if superlevel else threshold < keys)


def bins_of(rule, codes, count, superlevel):
    """What `Histogram` of histogram.cuh counts."""
    if rule.bins is not None:
        return rule.bins[codes]
    return np.minimum(codes, count) if superlevel else np.maximum(count - codes, 0)


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("case", RULES)
def test_codes_are_exact(case, superlevel):
    thresholds, expected = RULES[case]
    values = round_to_levels(thresholds, np.dtype(np.float32), superlevel).values
    levels = np.where(values == 0, np.float32(-0.0 if superlevel else 0.0), values)
    rule = pair_rules.pair_rule(values, thresholds, levels, superlevel)
    assert expected is None or rule.rule == expected
    beside = [np.nextafter(values, np.float32(side)) for side in (-np.inf, np.inf)]
    keys = np.concatenate([values, *beside, RANDOM.normal(size=500).astype(np.float32)])
    if rule.rule != guesses.AFFINE:
        keys = np.concatenate([keys, np.float32([-np.inf, np.inf, -3.4e38, 3.4e38])])
    if rule.rule == guesses.PIECES:  # many in each piece
        finite = values[np.isfinite(values)]
        keys = np.concatenate([keys, np.linspace(finite[0], finite[-1], 10**5, dtype=np.float32)])
    known = np.searchsorted(values, keys, side="right" if superlevel else "left")
    codes = codes_of(rule, keys, superlevel)
    assert codes.min() >= 0
    assert codes.max() < rule.codes
    order = np.argsort(keys if superlevel else -keys, kind="stable")
    assert (np.diff(codes[order]) >= 0).all()
    np.testing.assert_array_equal(bins_of(rule, codes, values.size, superlevel), known)
    if rule.rule != guesses.AFFINE and np.isfinite(values).all():
        assert codes_of(rule, np.float32([np.nan]), superlevel) == 0


def test_clusters_that_no_table_tells_apart_have_no_rule():
    thresholds = np.geomspace(1e-6, 3, 100).astype(np.float32)
    assert pair_rules.pair_rule(thresholds, thresholds, thresholds, False) is None
    thresholds = np.array([-TINY, 0, TINY, 1], np.float32)
    assert pair_rules.pair_rule(thresholds, thresholds, thresholds, False) is None
    thresholds = np.arange(-9, 10, dtype=np.float32) * TINY  # whose slope is beyond float32
    assert pair_rules.pair_rule(thresholds, thresholds, thresholds, False) is None
    assert pair_rules.pair_rule(*(np.linspace(0, 1, 5000, dtype=np.float32),) * 3, False) is None
