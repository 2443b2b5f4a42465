"""The transform of weights: against counting every cell, and pyECT's definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import transform as reference

import ecc_core as ecc

SHAPES = [(7,), (1,), (9, 6), (1, 5), (5, 1), (17, 40), (3, 4, 5), (2, 3, 66), (1, 1, 4)]


def some_directions(ndim, seed):
    rng = np.random.default_rng(seed)
    nearly_along_rows = np.eye(ndim)[0] + 1e-9
    special = np.concatenate([np.eye(ndim), -np.eye(ndim), [np.ones(ndim), nearly_along_rows]])
    return np.concatenate([rng.standard_normal((6, ndim)), special])


def some_heights(reach):
    """Levels wider and details than the points, that hit points, and uneven ones."""
    return [
        np.linspace(-reach, reach, 9),
        np.linspace(-reach, reach, 400),
        np.arange(-6, 6.5, 0.5),
        np.arange(-6, 7, 2) - 1e-9,  # just below points
        np.arange(-6, 7, 2) + 1e-9,
        np.array([-np.inf, -1.0, 0.0, 0.1, 3.0, np.inf]),
    ]


def check(weights, directions, heights, connectivity, spacing=1.0):
    result = ecc.euler_transform(
        weights, directions, heights, connectivity=connectivity, spacing=spacing, weighted=True
    )
    steps = np.broadcast_to(np.asarray(spacing, dtype=float), (weights.ndim,))
    truth = reference.euler_transform(
        weights, result.directions, result.heights, connectivity, steps
    )
    assert result.values.dtype == (np.int64 if weights.dtype.kind in "iu" else np.float64)
    np.testing.assert_array_equal(result.values, truth)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_equals_counting_of_cells(shape, dtype):
    seed = len(shape) * 100 + shape[-1]
    # Eighths add up without rounding, in any order.
    weights = np.random.default_rng(seed).integers(-3, 9, shape)
    weights = weights.astype(dtype) if dtype is np.int64 else weights / 8
    for connectivity in {1, weights.ndim}:
        for heights in some_heights(np.linalg.norm(shape) / 2):
            check(weights, some_directions(weights.ndim, seed), heights, connectivity)


@given(st.integers(1, 3), st.integers(0, 2**16), st.booleans())
def test_equals_counting_of_cells_with_spacing(ndim, seed, dual):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, [12, 9, 7][ndim - 1], ndim))
    spacing = rng.choice([0.25, 0.5, 1.0, 1.7, 3.0], ndim)
    weights = rng.integers(-2, 4, shape)
    heights = some_heights(np.linalg.norm(shape * spacing) / 2)[seed % 6]
    check(weights, some_directions(ndim, seed), heights, ndim if dual else 1, spacing)


def test_agrees_with_pyect():
    """Values of pyECT 1.0.1: ``WECT(directions, 9)`` of ``weighted_cubical(weights)``.

    Its heights run from minus to plus the largest norm of a vertex, here 2.5; its coordinates are
    (column - centre, centre - row).
    """
    weights = np.array([[0, 3, 1, 4, 2], [5, 2, 6, 0, 1], [3, 0, 5, 8, 9], [7, 9, 3, 2, 3]])
    pyect_directions = np.array([[0.6, 0.8], [-0.28, 0.96], [-0.8, -0.6], [0.352, -0.936]])
    expected = [
        [0, 7, 3, -3, -7, -13, -15, -23, -27],
        [0, 3, 2, 0, -8, -12, -21, -27, -27],
        [2, 1, 1, -8, -9, -19, -16, -16, -27],
        [0, 0, 1, -2, -4, -6, -15, -27, -27],
    ]
    directions = np.stack([-pyect_directions[:, 1], pyect_directions[:, 0]], axis=1)
    result = ecc.euler_transform(
        weights, directions, np.linspace(-2.5, 2.5, 9), connectivity=1, weighted=True
    )
    np.testing.assert_array_equal(result.values, expected)


@pytest.mark.parametrize("connectivity", [1, 2, 3])
def test_weights_0_and_1_are_the_mask(connectivity):
    shape = (20, 33) if connectivity == 2 else (9, 8, 11)
    mask = np.random.default_rng(0).random(shape) < 0.6
    binary = ecc.euler_transform(mask, 16, 64, connectivity=connectivity)
    for dtype in (bool, np.uint8, np.float32):
        weighted = ecc.euler_transform(
            mask.astype(dtype), 16, 64, connectivity=connectivity, weighted=True
        )
        np.testing.assert_array_equal(weighted.values, binary.values)


@pytest.mark.parametrize("connectivity", [1, 2])
def test_weights_are_layers_of_masks(connectivity):
    """V: cells with all vertices present and one above a level; by inclusion and exclusion."""
    weights = np.random.default_rng(1).integers(1, 6, (12, 14))
    total = ecc.euler_transform(weights, 8, 32, connectivity=connectivity, weighted=True)
    whole = ecc.euler_transform(weights > 0, *total[:2], connectivity=connectivity).values
    layers = np.zeros_like(whole)
    for level in range(1, 6):
        # The cells of weight below `level` are those of the sublevel set (V and T).
        below = ecc.euler_transform(weights < level, *total[:2], connectivity=connectivity).values
        layers += whole - below
    np.testing.assert_array_equal(total.values, layers)


def test_sums_of_floats_are_close():
    weights = np.random.default_rng(2).standard_normal((40, 50))
    result = ecc.euler_transform(weights, 16, 40, weighted=True)
    truth = reference.euler_transform(weights, *result[:2], 2, np.ones(2))
    np.testing.assert_allclose(result.values, truth, rtol=0, atol=1e-11)


def test_threads_change_nothing():
    weights = np.random.default_rng(3).integers(0, 99, (70, 80))
    one = ecc.euler_transform(weights, 11, 64, weighted=True, workers=1).values
    three = ecc.euler_transform(weights, 11, 64, weighted=True, workers=3).values
    np.testing.assert_array_equal(three, one)
