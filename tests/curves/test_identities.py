"""What holds for every image, without a reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ecc_core as ecc
from ecc_core.testing import assert_curves_equal, strategies

INTEGERS = ("uint8", "int16", "int32", "uint16")
PLAIN = (*INTEGERS, "bool", "float32", "float64")


def connectivities(ndim):
    return (1,) if ndim == 1 else (1, ndim)


def curve(backend, image, thresholds, **options):
    image = backend.asarray(np.ascontiguousarray(image))
    return ecc.euler_curve(image, backend.asarray(thresholds), **options)


def noise(shape, top=9, seed=0):
    return np.random.default_rng(seed).integers(top, size=shape).astype(np.uint8)


@given(strategies.images(), st.booleans())
def test_the_curve_ends_at_one(backend, image, superlevel):
    for connectivity in connectivities(image.ndim):
        found = ecc.euler_curve(
            backend.asarray(image), "exact", connectivity=connectivity, superlevel=superlevel
        )
        assert found.values[0 if superlevel else -1] == 1


@given(st.data())
def test_flips_and_transposes_change_nothing(backend, data):
    image = data.draw(strategies.images(dtypes=PLAIN))
    levels = np.unique(image)
    for connectivity in connectivities(image.ndim):
        expected = curve(backend, image, levels, connectivity=connectivity)
        turned = [np.flip(image, axis) for axis in range(image.ndim)]
        turned += [
            np.transpose(image, order)
            for order in ((1, 0), (2, 0, 1), (0, 2, 1))
            if len(order) == image.ndim
        ]
        for other in turned:
            found = curve(backend, other, levels, connectivity=connectivity)
            assert_curves_equal(found, expected.values)


@given(strategies.images(dtypes=("uint8", "int16"), infinities=False), st.booleans())
def test_increasing_maps_change_nothing(backend, image, superlevel):
    levels = np.unique(image)
    for connectivity in connectivities(image.ndim):
        options = {"connectivity": connectivity, "superlevel": superlevel}
        expected = curve(backend, image, levels, **options)
        maps = [
            lambda x: x.astype(np.int64) * 3 - 1,
            lambda x: x.astype(np.float64) ** 3,
            lambda x: x.astype(np.float32) / 7 + 3,
            lambda x: np.searchsorted(levels, x),
        ]
        for increasing in maps:
            found = curve(backend, increasing(image), increasing(levels), **options)
            assert_curves_equal(found, expected.values)


@given(strategies.images(dtypes=("int8", "float32", "float64", "float16")))
def test_superlevel_is_sublevel_of_the_negative(backend, image):
    image = np.where(image == -128, -127, image).astype(image.dtype)  # int8 has no +128
    levels = np.unique(image)
    for connectivity in connectivities(image.ndim):
        expected = curve(backend, -image, -levels[::-1], connectivity=connectivity)
        found = curve(backend, image, levels, connectivity=connectivity, superlevel=True)
        assert_curves_equal(found, expected.values[::-1])


@given(st.data())
def test_images_that_share_a_border_add_up(backend, data):
    image = data.draw(strategies.images(dtypes=PLAIN))
    levels = np.unique(image)
    for axis, n in enumerate(image.shape):
        cut = data.draw(st.integers(0, n - 1))
        low, high, shared = (
            np.split(image, [cut + 1], axis)[0],
            *(np.take(image, range(cut, stop), axis) for stop in (n, cut + 1)),
        )
        parts = [
            curve(backend, part, levels, connectivity=1).values for part in (low, high, shared)
        ]
        whole = curve(backend, image, levels, connectivity=1)
        np.testing.assert_array_equal(whole.values, parts[0] + parts[1] - parts[2])


@given(st.data())
def test_images_apart_add_up(backend, data):
    image = data.draw(strategies.images(dtypes=("uint8",)))
    other = data.draw(strategies.images(image.ndim, dtypes=("uint8",)))
    shape = [max(pair) for pair in zip(image.shape, other.shape, strict=True)]
    both = np.full((2 * shape[0] + 1, *shape[1:]), 255, np.float32)
    both[:] = np.inf
    both[tuple(slice(n) for n in image.shape)] = image
    both[
        tuple(slice(i, i + n) for i, n in zip((shape[0] + 1, 0, 0), other.shape, strict=False))
    ] = other
    levels = np.arange(0, 256, 5)
    for connectivity in connectivities(image.ndim):
        parts = [curve(backend, part, levels, connectivity=connectivity) for part in (image, other)]
        found = curve(backend, both, levels, connectivity=connectivity)
        assert_curves_equal(found, parts[0].values + parts[1].values)


@pytest.mark.parametrize("ndim", [2, 3])
@given(data=st.data())
def test_duality_of_the_two_constructions(backend, ndim, data):
    image = data.draw(strategies.images(ndim, dtypes=("uint8", "int16")))
    levels = np.unique(image).astype(np.int64)
    # In a box padded by one, {X <= t} and {X >= t + 1} are each other's complement.
    inside = np.pad(image.astype(np.int64), 1, constant_values=2**40)
    full = curve(backend, inside, levels, connectivity=ndim).values
    outside = curve(backend, inside, levels + 1, connectivity=1, superlevel=True).values
    np.testing.assert_array_equal(outside, 1 - full if ndim == 2 else 1 + full)
    full = curve(backend, inside, levels + 1, connectivity=ndim, superlevel=True).values
    padded = np.pad(image.astype(np.int64), 1, constant_values=-(2**40))
    full = curve(backend, padded, levels + 1, connectivity=ndim, superlevel=True).values
    outside = curve(backend, padded, levels, connectivity=1).values
    np.testing.assert_array_equal(outside, 1 - full if ndim == 2 else 1 + full)


@given(strategies.images(2, dtypes=PLAIN), st.integers(0, 2))
def test_a_slice_is_an_image_of_one_dimension_less(backend, image, axis):
    levels = np.unique(image)
    for low, high in ((1, 1), (2, 3)):
        expected = curve(backend, image, levels, connectivity=low)
        found = curve(backend, np.expand_dims(image, axis), levels, connectivity=high)
        assert_curves_equal(found, expected.values)


@given(strategies.images(1, dtypes=PLAIN))
def test_a_row_is_an_image_of_one_dimension_less(backend, row):
    levels = np.unique(row)
    expected = curve(backend, row, levels)
    for shape in ((1, -1), (-1, 1), (1, 1, -1), (1, -1, 1), (-1, 1, 1)):
        image = row.reshape(shape)
        for connectivity in (1, image.ndim):
            found = curve(backend, image, levels, connectivity=connectivity)
            assert_curves_equal(found, expected.values)


@given(strategies.images(dtypes=("uint8", "float32"), shapes=strategies.image_shapes(2)))
def test_repeating_every_point_changes_nothing(backend, image):
    levels = np.unique(image)
    for connectivity in (1, 2):
        expected = curve(backend, image, levels, connectivity=connectivity)
        for axis in (0, 1):
            found = curve(backend, image.repeat(2, axis), levels, connectivity=connectivity)
            assert_curves_equal(found, expected.values)


@pytest.mark.parametrize("connectivity", [1, None])
def test_euler_numbers_of_a_product_multiply(backend, connectivity):
    row, plane, levels = noise((13,), seed=1), noise((9, 66), seed=2), np.arange(9)
    # max(x, y) <= t is the product of the sets {x <= t} and {y <= t}
    volume = np.maximum(row[:, None, None], plane)
    factors = [curve(backend, part, levels, connectivity=connectivity) for part in (row, plane)]
    found = curve(backend, volume, levels, connectivity=connectivity)
    assert_curves_equal(found, factors[0].values * factors[1].values)


@pytest.mark.parametrize("superlevel", [False, True])
def test_a_mask_is_an_infinity(backend, superlevel):
    for shape in ((301,), (17, 67), (4, 17, 67)):
        image, mask = noise(shape).astype(np.float32), noise(shape, seed=1) > 2
        never = np.where(mask, image, np.float32(-np.inf if superlevel else np.inf))
        for connectivity in connectivities(len(shape)):
            options = {"connectivity": connectivity, "superlevel": superlevel}
            expected = curve(backend, never, np.arange(9), **options)
            found = curve(backend, image, np.arange(9), mask=backend.asarray(mask), **options)
            assert_curves_equal(found, expected.values)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_full_connectivity_is_the_default(backend, ndim):
    image = backend.asarray(noise((4, 17, 67)[-ndim:]))
    default, full = (ecc.euler_curve(image, "exact", connectivity=c) for c in (None, ndim))
    assert_curves_equal(default, full.values, thresholds=full.thresholds)


def test_known_curve_by_hand(backend):
    # A ring of eight points around a hole: at 1 the corners, at 2 the sides, at 3 the middle.
    image = backend.asarray(np.array([[1, 2, 1], [2, 3, 2], [1, 2, 1]], np.uint8))
    assert_curves_equal(
        ecc.euler_curve(image, [0, 1, 2, 3], connectivity=1), [0, 4, 0, 1], like=image
    )
    # At 2.5 the middle is there too for the diamond of closed squares.
    image = backend.asarray(np.array([[9, 1, 9], [1, 2, 1], [9, 1, 9]], np.uint8))
    found = ecc.euler_curve(image, [0, 1, 2, 9], connectivity=2)
    assert_curves_equal(found, [0, 0, 1, 1], like=image)
    found = ecc.euler_curve(image, [0, 1, 2, 9], connectivity=1)
    assert_curves_equal(found, [0, 4, 1, 1], like=image)
