"""`euler_coefficients`: which point owns which cells."""

import itertools

import numpy as np
import pytest
from filtrations import any_side
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import euler as reference

import ecc_core as ecc
from ecc_core.testing import assert_arrays_equal, strategies

EVERY_DTYPE = (*strategies.NATIVE_DTYPES, *strategies.SWAPPED_DTYPES)


@settings(max_examples=150)
@given(st.data())
def test_equal_the_reference(backend, data):
    dtypes = [d for d in EVERY_DTYPE if backend.supports(d)]
    image = data.draw(strategies.images(dtypes=dtypes, nan=data.draw(st.booleans())))
    mask = data.draw(st.none() | strategies.masks(image.shape))
    options = data.draw(any_side(image.ndim))
    before = image.copy()
    found = ecc.euler_coefficients(
        backend.asarray(image),
        mask=None if mask is None else backend.asarray(mask),
        nan="omit",
        **options,
    )
    expected = reference.euler_coefficients(image, mask=mask, **options)
    assert_arrays_equal(found, expected, like=backend.asarray(image))
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize("width", [1, 2, 3, 62, 63, 64, 65, 66, 127, 128, 129])
def test_widths_and_heights_around_words_and_groups(backend, width):
    rng = np.random.default_rng(width)
    shapes = [
        *[(width,)],
        *[(height, width) for height in (1, 2, 7, 8, 9, 15, 16, 17, 65)],
        *[(depth, height, width) for depth in (1, 2, 3) for height in (1, 2, 8, 9, 17)],
    ]
    for shape, top in itertools.product(shapes, (2, 200)):
        image = rng.integers(top, size=shape).astype(np.uint8)
        for connectivity in (1, len(shape)):
            found = ecc.euler_coefficients(backend.asarray(image), connectivity=connectivity)
            expected = reference.euler_coefficients(image, connectivity=connectivity)
            np.testing.assert_array_equal(found, expected, err_msg=f"{shape}")


@pytest.mark.parametrize("shape", [(1000, 1100), (70, 80, 131), (3, 300, 700), (600, 5, 3)])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_larger_than_a_block(backend, shape, dtype):
    image = (np.random.default_rng(1).random(shape) * 9).astype(dtype)
    for connectivity in (1, len(shape)):
        found = ecc.euler_coefficients(backend.asarray(image), connectivity=connectivity)
        expected = reference.euler_coefficients(image, connectivity=connectivity)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("connectivity", "around", "extreme"),
    [
        (1, [5, 0, 9], 1 - 4),
        (2, [5, 9, 0], 1 - 4),
        (1, [5, 0, 9, 9], 1 - 6),
        (1, [5, 0, 0, 9], 1 - 6 + 12),
        (3, [5, 9, 0, 0], -1 + 6),
        (3, [5, 9, 9, 0], -1 + 6 - 12),
    ],
)
def test_the_extremes(backend, connectivity, around, extreme):
    # The value of a point depends on the number of axes along which it is off the centre.
    off = np.indices((3,) * (len(around) - 1)) != 1
    image = np.array(around, np.uint8)[off.sum(axis=0)]
    found = ecc.euler_coefficients(backend.asarray(image), connectivity=connectivity)
    assert found[(1,) * image.ndim] == extreme


def test_masked_arrays():
    image = np.random.default_rng(3).integers(9, size=(9, 67))
    hidden = image == 4
    found = ecc.euler_coefficients(np.ma.array(image, mask=hidden))
    assert_arrays_equal(found, reference.euler_coefficients(image, mask=~hidden))
    assert not np.ma.isMaskedArray(found)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0), (2, 0, 3)])
def test_empty_images(backend, shape):
    image = backend.asarray(np.zeros(shape, np.float32))
    assert_arrays_equal(ecc.euler_coefficients(image), np.zeros(shape, np.int8), like=image)
