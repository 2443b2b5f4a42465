"""Surfaces: each value is the Euler number of an intersection, whatever the arrays.

Every number of thresholds: `tests/curves/test_threshold_counts.py`.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from oracles import euler as reference
from skimage import measure

import ecc_core as ecc

ORDERS = list(itertools.product((False, True), repeat=2))


def known(first, second, a, b, connectivity, superlevel=(False, False), mask=True):
    """Euler numbers of all intersections, by counting the cells of each."""
    of_first = level_sets(first, a, superlevel[0])
    of_second = level_sets(second, b, superlevel[1])
    numbers = np.empty((len(a), len(b)), np.int64)
    for i, j in np.ndindex(numbers.shape):
        both = of_first[i] & of_second[j] & mask
        numbers[i, j] = reference.euler_number(both, connectivity)
    return numbers


def level_sets(image, thresholds, superlevel):
    return [image >= t if superlevel else image <= t for t in thresholds]


def fields(shape, dtypes=("uint8", "float32"), top=5, seed=0):
    """Two images with many ties."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, top, shape).astype(dtype) for dtype in dtypes]


@pytest.mark.parametrize("shape", [(6, 9), (4, 5, 6)])
@pytest.mark.parametrize("wide", [False, True])
def test_equals_skimage(shape, wide):
    rng = np.random.default_rng(3)
    first = rng.normal(size=shape)
    second = rng.integers(0, 6, shape)
    connectivity = len(shape) if wide else 1
    a, b, values = ecc.euler_surface(first, second, 5, 4, connectivity=connectivity)
    assert (values.dtype, values.shape) == (np.int64, (5, 4))
    expected = np.empty((5, 4), int)
    for i, j in np.ndindex(expected.shape):
        both = (first <= a[i]) & (second <= b[j])
        expected[i, j] = measure.euler_number(both, connectivity)
    assert_array_equal(values, expected)


@given(st.data())
def test_equals_the_definition(data):
    ndim = data.draw(st.integers(1, 3))
    shape = data.draw(st.tuples(*[st.integers(1, 5)] * ndim))
    first, second = fields(shape, top=4, seed=data.draw(st.integers(0, 1000)))
    connectivity = data.draw(st.sampled_from([1, ndim]))
    superlevel = data.draw(st.sampled_from(ORDERS))
    a = [-1, 0, 1, 1.5, 3]
    b = [0.0, 2.0, 3.0]
    found = ecc.euler_surface(
        first, second, a, b, connectivity=connectivity, superlevel=superlevel
    ).values
    assert_array_equal(found, known(first, second, a, b, connectivity, superlevel))


@pytest.mark.parametrize("shape", [(3, 5000), (5000, 3), (200, 1000), (3, 4, 5000), (70, 70, 70)])
@pytest.mark.parametrize("wide", [False, True])
def test_blocks_add_up(shape, wide):
    first, second = fields(shape, ("float32", "float32"))
    connectivity = len(shape) if wide else 1
    a = [0, 2, 3]
    b = [0, 3]
    expected = known(first, second, a, b, connectivity)
    found = ecc.euler_surface(first, second, a, b, connectivity=connectivity, workers=1)
    assert_array_equal(found.values, expected)
    found = ecc.euler_surface(first, second, a, b, connectivity=connectivity, workers=3)
    assert_array_equal(found.values, expected)


LAYOUTS = {
    "C": np.array,
    "F": np.asfortranarray,
    "reversed": lambda x: x[::-1, :, ::-1],
    "swapped bytes": lambda x: x.astype(">f4"),
}


@pytest.mark.parametrize(
    ("turned", "other"),
    [("F", "F"), ("reversed", "reversed"), ("swapped bytes", "swapped bytes"), ("F", "C")],
)
def test_layouts(turned, other):
    first, second = fields((5, 6, 70), ("float32", "float32"))
    expected = ecc.euler_surface(first, second, [1, 3], [0, 2]).values
    arrays = LAYOUTS[turned](first), LAYOUTS[other](second)
    for array in arrays:
        array.flags.writeable = False
    assert_array_equal(ecc.euler_surface(*arrays, [1, 3], [0, 2]).values, expected)


@pytest.mark.parametrize("dtypes", [("bool", "uint8"), ("int64", "uint64"), ("float16", "int8")])
def test_dtypes_are_compared_exactly(library, dtypes):
    if not all(map(library.supports, dtypes)):
        pytest.skip("no such dtype")
    first, second = fields((5, 6), dtypes)
    if "int64" in dtypes:
        first += np.int64(2**53)
        second += np.uint64(2**64 - 6)
    a = np.unique(first)[:3]
    b = np.unique(second)[-3:]
    found = ecc.euler_surface(library.asarray(first), library.asarray(second), a, b)
    assert_array_equal(np.asarray(found.values), known(first, second, a, b, 2))


def test_libraries(library):
    first, second = fields((3, 7, 6), ("float32", "int32"))
    a = [0.5, 2.5, 4]
    b = [0, 2, 3]
    mask = np.random.default_rng(5).random((7, 6)) < 0.8
    options = {"axis": (1, 2), "mask": library.asarray(mask), "superlevel": (True, False)}
    found = ecc.euler_surface(*map(library.asarray, (first, second)), a, b, **options)
    assert type(found.values) is type(library.asarray(np.zeros((1, 1, 1), np.int64)))
    expected = [
        known(*pair, a, b, 2, (True, False), mask) for pair in zip(first, second, strict=True)
    ]
    assert_array_equal(np.asarray(found.values), expected)


@pytest.mark.parametrize("wide", [False, True])
def test_nan_and_masks(wide):
    first, second = fields((4, 6, 5), ("float32", "float64"))
    rng = np.random.default_rng(2)
    first[rng.random(first.shape) < 0.1] = np.nan
    second[rng.random(first.shape) < 0.1] = np.nan
    mask = rng.random(first.shape) < 0.9
    options = {"connectivity": 3 if wide else 1, "superlevel": (False, True)}
    a = [0, 2, np.inf]
    b = [-np.inf, 1, 3]
    found = ecc.euler_surface(first, second, a, b, mask=mask, nan="omit", **options)
    shown = mask & ~np.isnan(first) & ~np.isnan(second)
    expected = known(first, second, a, b, options["connectivity"], (False, True), shown)
    assert_array_equal(found.values, expected)
    hidden = [np.ma.array(image, mask=np.isnan(image)) for image in (first, second)]
    found = ecc.euler_surface(*hidden, a, b, mask=mask, **options)
    assert_array_equal(found.values, expected)


@pytest.mark.parametrize("name", ["first", "second"])
@pytest.mark.parametrize("thresholds", [([0, 2], [1, 3]), (3, 3)], ids=["given", "range"])
def test_nan_is_found_by_the_surface_and_by_the_range(thresholds, name):
    images = {image: np.ones((4, 6, 5), np.float32) for image in ("first", "second")}
    images[name][2, 3, 4] = np.nan
    with pytest.raises(ValueError, match=f"`{name}` must not contain NaN"):
        ecc.euler_surface(*images.values(), *thresholds, superlevel=(False, True))


@pytest.mark.parametrize("chunks", [(2, 3), (1, 1), (5, 2), ((3, 1, 1), (4, 2))])
@pytest.mark.parametrize("connectivity", [1, 2])
def test_chunks_add_up(chunks, connectivity):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    first, second = fields((5, 6))
    mask = np.random.default_rng(7).random((5, 6)) < 0.9
    a = [0, 2, 3]
    b = [1.0, 2.0]
    lazy = da.from_array(first, chunks=chunks), da.from_array(second, chunks=(2, 2))
    found = ecc.euler_surface(*lazy, a, b, connectivity=connectivity, mask=mask)
    assert (found.values.shape, found.values.dtype) == ((3, 2), np.int64)
    expected = known(first, second, a, b, connectivity, mask=mask)
    assert_array_equal(found.values.compute(), expected)
    mixed = ecc.euler_surface(first, lazy[1], a, b, connectivity=connectivity, mask=mask)
    assert_array_equal(mixed.values.compute(), expected)


@pytest.mark.parametrize("axis", [(0, 1, 2), (2, 0)])
def test_chunks_of_volumes_and_batches(axis):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    first, second = fields((4, 3, 5, 2))
    lazy = [da.from_array(image, chunks=(3, 2, 2, 1)) for image in (first, second)]
    found = ecc.euler_surface(*lazy, 4, [1, 2], range_first=(0, 3), axis=axis)
    expected = ecc.euler_surface(first, second, 4, [1, 2], range_first=(0, 3), axis=axis)
    assert_array_equal(found.values.compute(), expected.values)


def test_empty():
    empty = np.zeros((0, 4), np.float32)
    assert_array_equal(ecc.euler_surface(empty, empty, [0, 1], [2]).values, np.zeros((2, 1)))
    image = np.ones((2, 3))
    assert ecc.euler_surface(image, image, [], [1]).values.shape == (0, 1)
    with pytest.raises(ValueError, match="`range_second` must be given for an image without"):
        ecc.euler_surface(empty, empty, [1], 3)


ONES = np.ones((3, 4))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((ONES, np.ones((3, 5))), {}, ValueError, r"`first` and `second` must have the same shape"),
        ((ONES, ONES.astype(complex)), {}, TypeError, "`second` must have a boolean"),
        ((ONES, ONES, "exact"), {}, ValueError, "`thresholds_first` must be an int or an array"),
        ((ONES, ONES, 3, [1]), {"range_second": (0, 1)}, ValueError, "`range_second` must be None"),
        ((ONES, ONES), {"superlevel": (True,)}, ValueError, "`superlevel` must be one flag or two"),
        ((ONES, ONES), {"superlevel": (1, "a")}, TypeError, "`superlevel` must be True or False"),
        ((np.ones(()), np.ones(())), {}, ValueError, r"`first` must have 1 to 3 axes \(or name"),
    ],
)
def test_wrong_arguments(arguments, options, error, message):
    with pytest.raises(error, match=message):
        ecc.euler_surface(*arguments, **options)


def test_wrong_dask_arguments():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    lazy = da.ones((3, 4), chunks=2)
    with pytest.raises(ValueError, match="`range_first` must be given with `thresholds_first` 64"):
        ecc.euler_surface(lazy, ONES)
    same = r"`first` and `second` .* same shape, got"
    with pytest.raises(ValueError, match=rf"{same} \(3, 5\) and \(3, 4\)"):
        ecc.euler_surface(np.ones((3, 5)), lazy, [1], [1])
    with pytest.raises(ValueError, match=rf"{same} \(3, 4\) and \(3, 5\)"):
        ecc.euler_surface(lazy, np.ones((3, 5)), [1], [1])
    with pytest.raises(ValueError, match="`workers` must be None for a dask array"):
        ecc.euler_surface(lazy, lazy, [1], [1], workers=2)


def test_plot():
    surface = ecc.euler_surface(*fields((8, 9)), 5, 6)
    ax = surface.plot(contours=3)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("first threshold", "second threshold")
    mesh, contours = ax.collections
    assert_array_equal(mesh.get_array(), surface.values.T)
    assert len(contours.levels) > 1
    stack = ecc.euler_surface(*fields((2, 8, 9)), 5, 6, axis=(1, 2))
    with pytest.raises(ValueError, match="`surface` must be that of one pair"):
        stack.plot()
