"""Region curves, coefficients and numbers of dask arrays are those of arrays in memory."""

import dask.array as da
import numpy as np
import pytest
from dask_helpers import noise
from filtrations import any_side, omitting
from hypothesis import given
from hypothesis import strategies as st
from oracles import euler as reference

import ecc_core as ecc
from ecc_core.dask import region_curves
from ecc_core.testing import in_chunks, strategies

LEVELS = np.arange(-1, 7)


def assert_same_regions(lazy: ecc.RegionCurves, expected: ecc.RegionCurves) -> None:
    assert isinstance(lazy.values, da.Array)
    assert lazy.labels.dtype == expected.labels.dtype
    assert np.isnan(lazy.labels.shape[0])
    assert lazy.to_numpy() == expected


@given(st.data())
def test_regions_that_cross_chunks(data):
    image = data.draw(strategies.images(nan=False))
    labels = data.draw(strategies.labels(image.shape))
    at = data.draw(strategies.thresholds(image))
    options = data.draw(any_side(image.ndim))
    expected = ecc.region_curves(image, labels, at, **options)
    array = in_chunks(image, data.draw(strategies.chunkings(image.shape)))
    if data.draw(st.booleans()):
        labels = in_chunks(labels, data.draw(strategies.chunkings(image.shape)))
    assert_same_regions(ecc.region_curves(array, labels, at, **options), expected)


@given(st.data())
def test_given_labels(data):
    image = noise(6, 7, 8)
    labels = noise(6, 7, 8, levels=5, seed=1).astype(data.draw(st.sampled_from(["u1", ">i4"])))
    array = in_chunks(image, data.draw(strategies.chunkings(image.shape)))
    ids = data.draw(st.lists(st.integers(1, 9), unique=True))
    found = region_curves(array, labels, LEVELS, ids=ids)
    assert found.labels.tolist() == ids
    assert found.values.shape == (len(ids), LEVELS.size)
    values = found.values.compute()
    assert values.dtype == np.int64
    every = ecc.region_curves(image, labels, LEVELS)
    known = dict(zip(every.labels.tolist(), every.values, strict=True))
    none = np.zeros(LEVELS.size)
    expected = [known.get(label, none) for label in ids]
    np.testing.assert_array_equal(values, np.reshape(expected, values.shape))


@pytest.mark.parametrize("dtype", ["bool", "uint64", "int64"])
def test_the_largest_labels(dtype):
    top = 1 if dtype == "bool" else np.iinfo(dtype).max
    labels = np.array([0, 1, top], dtype)[noise(7, 8, levels=3)]
    image = noise(7, 8, seed=1)
    lazy = ecc.region_curves(da.from_array(image, chunks=3), da.from_array(labels), LEVELS)
    assert_same_regions(lazy, ecc.region_curves(image, labels, LEVELS))


@pytest.mark.parametrize("shape", [(0, 4), (5, 4)])
def test_nothing_is_labelled(shape):
    image = np.zeros(shape, np.uint8)
    labels = np.zeros(shape, np.int32)
    chunks = tuple((n,) for n in shape)
    lazy = ecc.region_curves(in_chunks(image, chunks), labels, LEVELS)
    assert lazy.to_numpy() == ecc.region_curves(image, labels, LEVELS)
    coefficients = ecc.euler_coefficients(in_chunks(image, chunks)).compute()
    np.testing.assert_array_equal(coefficients, ecc.euler_coefficients(image))
    some = region_curves(in_chunks(image, chunks), labels, LEVELS, ids=[3]).values
    np.testing.assert_array_equal(some.compute(), np.zeros((1, LEVELS.size)))


def test_masked_points_are_in_no_region():
    image = np.ma.masked_equal(noise(9, 8, 7), 3)
    labels = noise(9, 8, 7, levels=3, seed=1)
    lazy = ecc.region_curves(da.from_array(image, chunks=4), labels, LEVELS)
    assert_same_regions(lazy, ecc.region_curves(image, labels, LEVELS))


def test_nothing_is_computed_early():
    def fail(block: np.ndarray) -> np.ndarray:
        raise AssertionError("computed")

    image = da.zeros((4, 4), chunks=2, dtype=np.uint8).map_blocks(fail, meta=np.empty((0, 0), "u1"))
    ecc.region_curves(image, image, LEVELS)
    ecc.euler_coefficients(image)
    lazy = ecc.euler_number(image)
    assert lazy.shape == ()
    with pytest.raises(AssertionError, match="computed"):
        lazy.compute()


@given(st.data())
def test_coefficients(data):
    image = data.draw(strategies.images(nan=True))
    options = data.draw(omitting(image))
    chunks = data.draw(strategies.chunkings(image.shape))
    lazy = ecc.euler_coefficients(in_chunks(image, chunks), **options)
    assert isinstance(lazy, da.Array)
    found = lazy.compute()
    assert found.dtype == lazy.dtype == np.int8
    np.testing.assert_array_equal(found, ecc.euler_coefficients(image, **options))
    number = ecc.euler_number(in_chunks(image, chunks), options["connectivity"])
    assert number.compute() == reference.euler_number(image > 0, options["connectivity"])


# Bad input

ZEROS = da.zeros((4, 4), chunks=2, dtype=np.uint8)


@pytest.mark.parametrize(
    ("labels", "options", "error", "message"),
    [
        (ZEROS[:3], {}, ValueError, r"`labels` must have the image's shape \(4, 4\), got"),
        (ZEROS.astype(float), {}, TypeError, "`labels` must have an integer dtype, got float64"),
        (ZEROS, {"ids": [1, 1]}, ValueError, "`ids` must be a list of different positive"),
        (ZEROS, {"ids": [0]}, ValueError, "`ids` must be a list of different positive"),
        (ZEROS, {"ids": [1.5]}, TypeError, "`ids` must be integers, got float64"),
        (ZEROS, {"ids": [300]}, ValueError, r"`ids` must be labels of uint8, got \[300\]"),
    ],
)
def test_bad_regions(labels, options, error, message):
    with pytest.raises(error, match=message):
        region_curves(ZEROS, labels, LEVELS, **options)


def test_bad_arguments():
    with pytest.raises(ValueError, match="`workers` must be None for a dask array"):
        ecc.region_curves(ZEROS, ZEROS, LEVELS, workers=2)
    with pytest.raises(ValueError, match="`range` must be given"):
        ecc.region_curves(ZEROS, ZEROS)
    with pytest.raises(TypeError, match="`image` must be a dask array, got ndarray"):
        ecc.region_curves(np.zeros((4, 4)), ZEROS, LEVELS)


def test_what_is_found_when_computing():
    labels = da.from_array(np.full((4, 4), -1), chunks=2)
    with pytest.raises(ValueError, match="`labels` must not be negative, got -1"):
        ecc.region_curves(ZEROS, labels, LEVELS).values.compute()
    hidden = da.full((4, 4), np.nan, chunks=2)
    with pytest.raises(ValueError, match="`image` must not contain NaN"):
        ecc.euler_coefficients(hidden).compute()
    with pytest.raises(ValueError, match="`image` must not contain NaN"):
        ecc.euler_curve(hidden, LEVELS).values.compute()
    with pytest.raises(ValueError, match="`image` must not contain NaN"):
        ecc.minkowski_curves(hidden, LEVELS).values.compute()


def test_minkowski_functionals_of_no_regions_are_empty():
    image = da.zeros((4, 6), chunks=3)
    labels = da.zeros((4, 6), dtype=int, chunks=3)
    found = ecc.region_minkowski(image, labels, [0.0, 1.0])
    assert found.values.compute().shape == (0, 3, 2)
