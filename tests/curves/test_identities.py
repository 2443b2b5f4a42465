"""What holds without a reference: for every image, for products, and for images known by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ecc_core as ecc
from ecc_core.testing import assert_curves_equal, strategies


@given(strategies.images(), st.booleans())
def test_the_curve_ends_at_one(backend, image, superlevel):
    for connectivity in (1, image.ndim):
        found = ecc.euler_curve(
            backend.asarray(image), "exact", connectivity=connectivity, superlevel=superlevel
        )
        assert found.values[0 if superlevel else -1] == 1


@given(strategies.images(dtypes=("uint8", "int16")))
def test_flips_transposes_and_increasing_maps_change_nothing(backend, image):
    def curve(array, at, **options):
        given_array = backend.asarray(np.ascontiguousarray(array))
        return [
            ecc.euler_curve(given_array, at, connectivity=connectivity, **options).values
            for connectivity in (1, image.ndim)
        ]

    levels = np.unique(image)
    wide, ends = image.astype(np.float64), levels.astype(np.float64)
    expected = curve(image, levels)
    for turned in (image.T, *(np.flip(image, axis) for axis in range(image.ndim))):
        np.testing.assert_array_equal(curve(turned, levels), expected)
    np.testing.assert_array_equal(curve(wide**3 / 7, ends**3 / 7), expected)
    negated = curve(-wide, -ends[::-1], superlevel=True)
    np.testing.assert_array_equal(np.flip(negated, axis=1), expected)


@pytest.mark.parametrize("ndim", [2, 3])
@given(data=st.data())
def test_duality_of_the_two_constructions(backend, ndim, data):
    """In a box padded by one, {X <= t} and {X >= t + 1} are each other's complement."""
    image = data.draw(strategies.images(ndim, dtypes=("uint8", "int16"))).astype(np.int64)
    levels = np.unique(image)
    for border, inside, outside in ((2**40, ndim, 1), (-(2**40), 1, ndim)):
        padded = backend.asarray(np.pad(image, 1, constant_values=border))
        below = ecc.euler_curve(padded, levels, connectivity=inside).values
        above = ecc.euler_curve(padded, levels + 1, connectivity=outside, superlevel=True).values
        bounded, other = (below, above) if border > 0 else (above, below)
        np.testing.assert_array_equal(other, 1 - bounded if ndim == 2 else 1 + bounded)


@pytest.mark.parametrize("connectivity", [1, None])
def test_euler_numbers_of_a_product_multiply(backend, connectivity):
    rng, levels = np.random.default_rng(1), np.arange(9)
    row, plane = (rng.integers(9, size=shape).astype(np.uint8) for shape in ((13,), (9, 66)))
    # max(x, y) <= t is the product of the sets {x <= t} and {y <= t}
    volume = np.maximum(row[:, None, None], plane)
    first, second, whole = (
        ecc.euler_curve(backend.asarray(part), levels, connectivity=connectivity).values
        for part in (row, plane, volume)
    )
    np.testing.assert_array_equal(whole, first * second)


def test_known_curves_by_hand(backend):
    # A ring of eight points around a hole: at 1 the corners, at 2 the sides, at 3 the middle.
    ring = backend.asarray(np.array([[1, 2, 1], [2, 3, 2], [1, 2, 1]], np.uint8))
    found = ecc.euler_curve(ring, [0, 1, 2, 3], connectivity=1)
    assert_curves_equal(found, [0, 4, 0, 1], like=ring)
    # The four sides are a ring of closed squares, and four points apart.
    diamond = backend.asarray(np.array([[9, 1, 9], [1, 2, 1], [9, 1, 9]], np.uint8))
    for connectivity, expected in ((2, [0, 0, 1, 1]), (1, [0, 4, 1, 1])):
        found = ecc.euler_curve(diamond, [0, 1, 2, 9], connectivity=connectivity)
        assert_curves_equal(found, expected, like=diamond)


def test_known_coefficients_by_hand(backend):
    flat = backend.asarray(np.zeros((3, 4), np.uint8))
    last, first = np.zeros((2, 3, 4), np.int8)
    last[-1, -1] = 1  # every other point owns an edge more, or a square and two edges
    first[0, 0] = 1  # each closed square after the first adds as many faces as corners
    for connectivity, expected in ((1, last), (2, first)):
        found = ecc.euler_coefficients(flat, connectivity=connectivity)
        np.testing.assert_array_equal(found, expected)
