"""`region_curves`: every label as if it were alone."""

import numpy as np
import pytest
from filtrations import EVERY_DTYPE, any_side, name_of, sides
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import euler as reference
from skimage.measure import euler_number

import ecc_core as ecc
from ecc_core.testing import assert_arrays_equal, assert_regions_equal, strategies


def assert_right(backend, image, labels, thresholds, workers=None, **options):
    like = backend.asarray(image)
    given = like, backend.asarray(labels), backend.asarray(thresholds)
    found = ecc.region_curves(*given, workers=workers, **options)
    expected = reference.region_curves(image, labels, thresholds, **options)
    assert_regions_equal(found, *expected, thresholds=thresholds, like=like)


@settings(max_examples=150)
@given(st.data())
def test_equal_the_reference(backend, data):
    dtypes = list(filter(backend.supports, EVERY_DTYPE))
    image = data.draw(strategies.images(dtypes=dtypes))
    labels = data.draw(strategies.labels(image.shape))
    thresholds = data.draw(strategies.thresholds(image))
    before = image.copy(), labels.copy()
    assert_right(backend, image, labels, thresholds, **data.draw(any_side(image.ndim)))
    np.testing.assert_array_equal(image, before[0])
    np.testing.assert_array_equal(labels, before[1])


@pytest.mark.parametrize("cubes", [False, True])
@pytest.mark.parametrize("shape", [(300, 301), (25, 40, 67)])
def test_two_thousand_labels(backend, shape, cubes):
    rng = np.random.default_rng(1)
    grids = np.ogrid[tuple(slice(n) for n in shape)]
    block = 7 if len(shape) == 2 else 3
    blocks = np.broadcast_arrays(*[grid // block for grid in grids])
    labels = np.ravel_multi_index(blocks, [n // block + 1 for n in shape])
    labels = rng.permutation(int(labels.max()) + 1)[labels]
    image = rng.integers(6, size=shape).astype(np.uint8)
    connectivity = len(shape) if cubes else 1
    given = backend.asarray(image), backend.asarray(labels), np.arange(6)
    cells = ecc.region_curves(*given, connectivity=connectivity)
    assert_arrays_equal(cells.labels, np.setdiff1d(labels, [0]))
    rows = rng.choice(cells.labels.size, 25, replace=False)
    options = {"connectivity": connectivity}
    expected = [
        reference.euler_curve(image, np.arange(6), mask=labels == label, **options)
        for label in cells.labels[rows]
    ]
    np.testing.assert_array_equal(cells.values[rows], expected)


@pytest.mark.parametrize("cubes", [False, True])
@pytest.mark.parametrize("shape", [(70, 8400), (9, 70, 140), (1100, 150)])
def test_long_and_short_runs_across_blocks(backend, shape, cubes):
    rng = np.random.default_rng(6)
    rows = np.prod(shape[:-1])
    labels = np.empty((rows, shape[-1]), np.int64)
    # Runs have up to 3 points, or up to 200, or are those of the row above.
    for row in range(rows):
        runs = rng.integers(1, 4 if row % 3 else 200, shape[-1])
        numbers = rng.integers(5, size=shape[-1])
        labels[row] = np.repeat(numbers, runs)[: shape[-1]] if row % 4 != 1 else labels[row - 1]
    ids = np.array([0, 3, 1, 10**12, 2**62])
    labels = ids[labels % 5].reshape(shape)
    image = rng.integers(4, size=shape).astype(np.uint8)
    connectivity = len(shape) if cubes else 1
    assert_right(backend, image, labels, np.arange(4), workers=2, connectivity=connectivity)


def test_more_regions_than_16_bits_count(backend):
    shape = (300, 301)
    labels = np.random.default_rng(7).permutation(np.prod(shape)).reshape(shape) + 1
    image = np.random.default_rng(8).integers(3, size=shape).astype(np.uint8)
    found = ecc.region_curves(backend.asarray(image), backend.asarray(labels), np.arange(3))
    assert_arrays_equal(found.labels, np.arange(1, labels.size + 1))
    values = image.reshape(-1)[np.argsort(labels, axis=None)]
    np.testing.assert_array_equal(found.values, values[:, None] <= np.arange(3))


@pytest.mark.parametrize("options", sides(2), ids=name_of)
@pytest.mark.parametrize(
    "dtype",
    [
        *("bool", "uint8", "uint16", "int32", "int64", ">i4"),
        *(pytest.param(dtype, marks=pytest.mark.slow) for dtype in ("int8", "uint32", "uint64")),
    ],
)
def test_dtypes_of_labels(backend, dtype, options):
    rng = np.random.default_rng(2)
    image = rng.integers(9, size=(17, 67)).astype(np.uint8)
    top = 1 if dtype == "bool" else np.iinfo(dtype).max
    labels = rng.choice(np.array([0, 1, top - 1 if dtype != "bool" else 1, top], dtype), (17, 67))
    assert_right(backend, image, labels, np.arange(9), **options)


@pytest.mark.parametrize("shape", [(9, 67), (0,), (0, 4), (2, 0, 3)])
@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_no_labels(backend, shape, dtype):
    image = backend.asarray(np.zeros(shape, np.uint8))
    found = ecc.region_curves(image, backend.asarray(np.zeros(shape, dtype)), [1, 2])
    assert_regions_equal(found, np.zeros(0, dtype), np.zeros((0, 2)), like=image)


@pytest.mark.parametrize(
    "arrange",
    [np.array, np.asfortranarray, lambda array: array[::-1, ::-1]],
    ids=["C", "F", "reversed"],
)
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_many_sparse_ids_in_any_memory_order(dtype, arrange):
    """More ids than the first table of slots holds, up to the largest of the dtype."""
    rng = np.random.default_rng(11)
    ids = np.unique(rng.integers(1, np.iinfo(dtype).max, 5000, dtype=dtype, endpoint=True))
    ids[-1] = np.iinfo(dtype).max
    labels = np.concatenate([np.zeros(1, dtype), ids])[rng.integers(0, ids.size + 1, (70, 133))]
    labels[0, 0] = 0
    image = rng.integers(0, 5, labels.shape).astype(np.uint8)
    dense = np.searchsorted(np.unique(labels), labels)
    expected = ecc.region_curves(image, dense, np.arange(5))
    found = ecc.region_curves(arrange(image), arrange(labels), np.arange(5))
    np.testing.assert_array_equal(found.labels, np.unique(labels)[1:])
    np.testing.assert_array_equal(found.values, expected.values)


def test_default_thresholds_lie_over_the_labelled_points(backend):
    image = np.array([[90.0, 3, 5, -80], [np.inf, 4, 7, 6]])
    labels = np.array([[0, 1, 1, 0], [1, 1, 2, 2]])
    found = ecc.region_curves(*map(backend.asarray, (image, labels)), 5)
    at = np.arange(3.0, 8)
    assert_regions_equal(found, *reference.region_curves(image, labels, at), thresholds=at)


@pytest.mark.parametrize("connectivity", [1, 2])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_equal_scikit_image(backend, dtype, connectivity):
    rng = np.random.default_rng(0)
    image = (rng.random((33, 70)) * 5).astype(dtype)
    labels = rng.integers(4, size=(33, 70))
    found = ecc.region_curves(
        backend.asarray(image), backend.asarray(labels), [1, 2, 3], connectivity=connectivity
    )
    expected = np.empty((3, 3), int)
    for row, column in np.ndindex(expected.shape):
        inside = (image <= column + 1) & (labels == row + 1)
        expected[row, column] = euler_number(inside, connectivity)
    np.testing.assert_array_equal(found.values, expected)
