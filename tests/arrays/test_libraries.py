"""The public functions on arrays of known libraries, against the reference."""

import numpy as np
import plain
import pytest
from filtrations import any_side, with_connectivities
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from oracles import euler as reference

import ecc_core as ecc
from ecc_core._backends import register, supports
from ecc_core.errors import BackendError
from ecc_core.testing import strategies

RNG = np.random.default_rng(3)
SHAPES = [(9,), (5, 7), (3, 5, 6)]
DTYPES = (*strategies.NATIVE_DTYPES, *strategies.SWAPPED_DTYPES)


def host(library, array):
    """The NumPy array of a result, which must be an array of the library."""
    if library.name == "dask":
        array = array.compute()
    else:
        assert isinstance(array, type(library.asarray(np.zeros(2))))
    return np.asarray(array)


@settings(max_examples=100)
@given(st.data())
def test_curves(library, data):
    dtypes = list(filter(library.supports, DTYPES))
    image = data.draw(strategies.images(dtypes=dtypes))
    thresholds = data.draw(strategies.thresholds(image))
    mask = data.draw(st.none() | strategies.masks(image.shape))
    options = data.draw(any_side(image.ndim))
    before = image.copy()
    kept = {} if mask is None else {"mask": library.asarray(mask)}
    found = ecc.euler_curve(library.asarray(image), thresholds, **options, **kept)
    expected = reference.euler_curve(image, thresholds, mask=mask, **options)
    assert_array_equal(found.thresholds, thresholds)
    values = host(library, found.values)
    assert values.dtype == np.int64
    assert_array_equal(values, expected)
    assert_array_equal(image, before)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32"])
@pytest.mark.parametrize(("shape", "connectivity"), with_connectivities(SHAPES))
def test_coefficients_numbers_and_regions(library, shape, dtype, connectivity):
    image = RNG.integers(0, 5, shape).astype(dtype)
    labels = RNG.integers(0, 4, shape)
    mask = RNG.random(shape) < 0.7
    given = library.asarray(image)
    known = {"connectivity": connectivity}
    counts = ecc.euler_coefficients(given, mask=library.asarray(mask), **known)
    expected = reference.euler_coefficients(image, mask=mask, **known)
    found = host(library, counts)
    assert found.dtype == np.int8
    assert_array_equal(found, expected)
    number = ecc.euler_number(given, connectivity)
    assert int(number) == reference.euler_curve(image > 0, [1], superlevel=True, **known)[0]
    found = ecc.region_curves(given, library.asarray(labels), [0, 1, 2.5], **known)
    ids, rows = reference.region_curves(image, labels, [0, 1, 2.5], **known)
    assert_array_equal(host(library, found.labels), ids)
    assert_array_equal(host(library, found.values), rows)


@pytest.mark.parametrize("shape", SHAPES)
def test_default_and_exact_thresholds(library, shape):
    if library.name == "dask":
        pytest.skip("a dask array is not read to find thresholds")
    image = RNG.normal(size=shape).astype(np.float32)
    found = ecc.euler_curve(library.asarray(image), 17)
    known = ecc.euler_curve(image, 17)
    parts = [host(library, part) for part in found]
    assert [part.dtype for part in parts] == [part.dtype for part in known]
    np.testing.assert_equal(parts, list(known))
    levels, values = ecc.euler_curve(library.asarray(image), "exact")
    at = reference.changing_levels(image, connectivity=None, superlevel=False)
    assert_array_equal(host(library, levels), at)
    assert_array_equal(host(library, values), reference.euler_curve(image, at))


def test_batches_and_directions(library):
    image = RNG.integers(0, 9, (3, 5, 6)).astype(np.int32)
    given = library.asarray(image)
    found = host(library, ecc.euler_curve(given, [2, 6], axis=(2, 0)).values)
    expected = [reference.euler_curve(image[:, i].T, [2, 6]) for i in range(5)]
    assert_array_equal(found, expected)
    options = {"direction": (1, 0, -1), "direction_scale": 0.5, "spacing": (1, 2, 1)}
    found = host(library, ecc.euler_curve(given, [2.25, 6], **options).values)
    assert_array_equal(found, ecc.euler_curve(image, [2.25, 6], **options).values)
    mask = RNG.random((5, 6)) < 0.7
    found = ecc.euler_curve(given, [2, 6], axis=(1, 2), mask=library.asarray(mask)).values
    expected = [reference.euler_curve(part, [2, 6], mask=mask) for part in image]
    assert_array_equal(host(library, found), expected)


def test_nan(library):
    image = RNG.random((5, 7)).astype(np.float32)
    image[2, 3] = np.nan
    given = library.asarray(image)
    with pytest.raises(ValueError, match="must not contain NaN"):
        host(library, ecc.euler_curve(given, [0.5]).values)
    if library.name != "dask":  # dask arrays are not read for a range.
        with pytest.raises(ValueError, match="must not contain NaN"):
            ecc.euler_curve(given, 3)
    found = host(library, ecc.euler_curve(given, [0.5, np.inf], nan="omit").values)
    assert_array_equal(found, reference.euler_curve(image, [0.5, np.inf]))


@pytest.mark.parametrize(
    ("function", "argument"), [(ecc.euler_transform, "image"), (ecc.region_transforms, "labels")]
)
def test_transforms(library, function, argument):
    mask = RNG.random((6, 7)) < 0.5
    if library.name == "plain":
        with pytest.raises(BackendError, match="Transforms are not available on plain:0"):
            function(library.asarray(mask), 4, 9)
        return
    if library.name == "dask":
        with pytest.raises(TypeError, match=f"`{argument}` must be an array in memory, got a da"):
            function(library.asarray(mask), 4, 9)
        return
    found = function(library.asarray(mask), 4, 9)
    known = function(mask, 4, 9)
    np.testing.assert_equal([host(library, part) for part in found], list(known))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("curve", lambda image: ecc.euler_curve(image, [2])),
        ("exact_curve", lambda image: ecc.euler_curve(image, "exact")),
        ("coefficients", ecc.euler_coefficients),
        ("number", ecc.euler_number),
        ("value_range", lambda image: ecc.euler_curve(image, 3)),
        ("surface", lambda image: ecc.euler_surface(image, image, [2], [2])),
    ],
)
def test_a_function_that_a_backend_lacks(name, call, monkeypatch):
    monkeypatch.delattr(plain.curves, name)
    message = f"`{name}` is not available on plain:0: copy the arrays to the host"
    with pytest.raises(BackendError, match=message):
        call(plain.Box(RNG.integers(0, 9, (5, 6))))


def test_a_backend_has_no_other_parts():
    with pytest.raises(TypeError, match=r"parts of a backend are transforms, .* got transform$"):
        register("other", "module", transform="module")
    assert not supports("other:0")
