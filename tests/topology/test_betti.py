"""Betti curves: counted components, the Euler characteristic, known shapes.

Every dtype, mask and number of thresholds: `tests/curves/test_threshold_counts.py`.
"""

import itertools

import numpy as np
import pytest
from filtrations import connectivities
from numpy.testing import assert_array_equal
from oracles.components import betti_numbers

import ecc_core as ecc

SHAPES = [(41,), (1,), (13, 17), (1, 9), (6, 1), (3, 70), (7, 8, 9), (1, 6, 5), (5, 1, 1)]


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_labelled_sets(shape, superlevel):
    """One by one, and with the Euler characteristic."""
    rng = np.random.default_rng(3)
    for levels, connectivity in itertools.product((1, 2, 5, 256), connectivities(len(shape))):
        image = rng.integers(0, levels, shape, np.uint8)
        at = np.unique(np.linspace(0, levels - 1, 5).astype(int))
        options = {"connectivity": connectivity, "superlevel": superlevel}
        curves = ecc.betti_curves(image, at, **options)
        sets = [image >= t if superlevel else image <= t for t in at]
        assert curves.values.dtype == np.int64
        assert_array_equal(curves.values.T, [betti_numbers(one, connectivity) for one in sets])
        assert_array_equal(curves.euler, ecc.euler_curve(image, at, **options).values)


def test_infinite_values_and_large_integers():
    infinite = np.array([-np.inf, 3, np.inf, 2, -np.inf])
    assert_array_equal(ecc.betti_curves(infinite, [-np.inf, 2, 3, np.inf]).values, [[2, 2, 2, 1]])
    image = np.array([[2**53 + 1, 2**53 + 3, 2**53]])
    assert_array_equal(ecc.betti_curves(image, [2**53, 2**53 + 1]).values[0], [1, 2])


def test_layouts_and_batches():
    rng = np.random.default_rng(10)
    image = rng.integers(0, 256, (70, 9, 8), np.uint8)
    curves = ecc.betti_curves(image, 16, range=(0, 255))
    for laid in (np.asfortranarray(image), image[::-1].transpose(2, 0, 1), np.flip(image)):
        kept = laid.copy()
        assert_array_equal(ecc.betti_curves(laid, 16, range=(0, 255)).values, curves.values)
        assert_array_equal(laid, kept)
    batch = ecc.betti_curves(image, 16, axis=(0, 2), workers=2)
    assert batch.values.shape == (9, 2, 16)
    for i in range(9):
        assert_array_equal(batch.values[i], ecc.betti_curves(image[:, i], batch.thresholds).values)
    shown = rng.random((70, 8)) < 0.5
    batch = ecc.betti_curves(image, 16, range=(0, 255), axis=(0, 2), mask=shown)
    alone = ecc.betti_curves(image[:, 3], 16, range=(0, 255), mask=shown)
    assert_array_equal(batch.values[3], alone.values)


def test_numbers_of_known_shapes():
    z, y, x = np.indices((21, 21, 21)) - 10
    radius = np.hypot(np.hypot(z, y), x)
    torus = (np.hypot(y, x) - 6) ** 2 + z**2 <= 9
    shell = (radius <= 9) & (radius >= 6)
    assert ecc.betti_numbers(torus) == (1, 1, 0)
    assert ecc.betti_numbers(shell) == (1, 0, 1)
    assert ecc.betti_numbers(shell.astype(np.float32)) == (1, 0, 1)
    assert ecc.betti_numbers(np.eye(3), connectivity=1) == (3, 0)
    assert ecc.betti_numbers(np.eye(3)) == (1, 0)
    assert ecc.betti_numbers([0, 1, 0, 1, 1]) == (2,)
    assert ecc.betti_numbers(np.zeros((3, 0))) == (0, 0)


def test_tables_and_plots():
    curves = ecc.betti_curves(np.eye(3), [0, 1], superlevel=True, connectivity=1)
    assert_array_equal(curves.values, [[1, 3], [0, 0]])
    table = curves.to_pandas()
    assert list(table.columns) == ["dimension", "threshold", "betti_number"]
    assert table.betti_number.tolist() == [1, 3, 0, 0]
    assert [line.get_label() for line in curves.plot().get_lines()[1:]] == ["$b_0$", "$b_1$"]
