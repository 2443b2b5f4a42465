"""`euler_coefficients`: which point owns which cells. Other sizes: `test_curves.py`."""

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
    given = {} if mask is None else {"mask": backend.asarray(mask)}
    options = data.draw(any_side(image.ndim))
    before = image.copy()
    found = ecc.euler_coefficients(backend.asarray(image), nan="omit", **given, **options)
    expected = reference.euler_coefficients(image, mask=mask, **options)
    assert_arrays_equal(found, expected, like=backend.asarray(image))
    np.testing.assert_array_equal(image, before)


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
