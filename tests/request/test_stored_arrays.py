"""Arrays as other libraries make them: every public function gives what the plain array gives.

More cases: `pytest tests/request/test_stored_arrays.py --hypothesis-profile=many`.
"""

import numpy as np
import pytest
from filtrations import any_side, with_connectivities
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from oracles import euler as reference
from oracles import transform as transform_reference
from stored_arrays import WAYS, odd_bytes

import ecc_core as ecc
from ecc_core.testing import strategies

RNG = np.random.default_rng(5)
SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)
DTYPES = (*strategies.NATIVE_DTYPES, *strategies.SWAPPED_DTYPES)


@st.composite
def stored(draw, array):
    """The same values in another kind of array."""
    first = draw(st.sampled_from(list(WAYS)))
    second = draw(st.sampled_from(list(WAYS)))
    return WAYS[second](np.asarray(WAYS[first](array)))


@st.composite
def images(draw):
    """A plain image and one that holds the same values, with repeated rows in 0-strides."""
    image = draw(strategies.images(dtypes=DTYPES, shapes=SHAPES))
    if draw(st.integers(0, 5)) == 0:
        axis = draw(st.integers(0, image.ndim - 1))
        row = image[(slice(None),) * axis + (slice(0, 1),)]
        return np.broadcast_to(row, image.shape).copy(), np.broadcast_to(row, image.shape)
    return image, draw(stored(image))


def curve(data, plain, image, options):
    thresholds = data.draw(strategies.thresholds(plain))
    mask = data.draw(st.none() | strategies.masks(plain.shape))
    kept = {} if mask is None else {"mask": data.draw(stored(mask))}
    found = ecc.euler_curve(image, data.draw(stored(thresholds)), **options, **kept)
    expected = reference.euler_curve(plain, thresholds, mask=mask, **options)
    assert_array_equal(found.values, expected)


def masked(data, plain, image, options):
    hidden = data.draw(strategies.masks(plain.shape))
    image = np.ma.array(image, mask=data.draw(stored(hidden)))
    thresholds = data.draw(strategies.thresholds(plain))
    found = ecc.euler_curve(image, thresholds, **options)
    expected = reference.euler_curve(plain, thresholds, mask=~hidden, **options)
    assert_array_equal(found.values, expected)


def exact(data, plain, image, options):
    levels, values = ecc.euler_curve(image, "exact", **options)
    expected = reference.changing_levels(plain, **options)
    assert_array_equal(levels, expected)
    assert_array_equal(values, reference.euler_curve(plain, expected, **options))


def even(data, plain, image, options):
    known = plain.astype(plain.dtype.newbyteorder("="))
    if not np.isfinite(known).any():
        return
    levels, values = ecc.euler_curve(image, data.draw(st.integers(1, 9)), **options)
    finite = known[np.isfinite(known)]
    assert levels[0] == finite.min()
    assert levels.size == 1 or levels[-1] == finite.max()
    assert_array_equal(values, reference.euler_curve(plain, levels, **options))


def coefficients(data, plain, image, options):
    found = ecc.euler_coefficients(image, **options)
    assert_array_equal(found, reference.euler_coefficients(plain, **options))
    number = ecc.euler_number(image, options["connectivity"])
    assert number == reference.euler_number(plain > 0, options["connectivity"])


def regions(data, plain, image, options):
    labels = data.draw(strategies.labels(plain.shape))
    thresholds = data.draw(strategies.thresholds(plain))
    found = ecc.region_curves(image, data.draw(stored(labels)), thresholds, **options)
    ids, rows = reference.region_curves(plain, labels, thresholds, **options)
    assert_array_equal(found.labels, ids)
    assert_array_equal(found.values, rows)


def shards(data, plain, image, options):
    thresholds = data.draw(strategies.thresholds(plain))
    if isinstance(image, np.ma.MaskedArray):
        image = image.data
    cut = data.draw(st.integers(0, len(plain)))
    found = ecc.euler_curve_shards([image[:cut], image[cut:]], thresholds, **options)
    assert_array_equal(found.values, reference.euler_curve(plain, thresholds, **options))


def blocks(data, plain, image, options):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    from ecc_core.dask import euler_curve_blocks, local_curves, region_curves

    thresholds = data.draw(strategies.thresholds(plain))
    labels = data.draw(strategies.labels(plain.shape))
    chunks = data.draw(strategies.chunkings(plain.shape))
    lazy = da.from_array(image, chunks=chunks)
    expected = reference.euler_curve(plain, thresholds, **options)
    assert_array_equal(ecc.euler_curve(lazy, thresholds, **options).values.compute(), expected)
    order = slice(None, None, -1 if options["superlevel"] else 1)
    rows = euler_curve_blocks(lazy, thresholds, **options).compute().sum(axis=0)
    assert_array_equal(rows[order].cumsum()[order], expected)
    counts = ecc.euler_coefficients(lazy, **options).compute()
    assert_array_equal(counts, reference.euler_coefficients(plain, **options))
    found = region_curves(lazy, labels, thresholds, **options)
    ids, rows = reference.region_curves(plain, labels, thresholds, **options)
    assert_array_equal(found.labels.compute(), ids)
    assert_array_equal(found.values.compute(), rows)
    found = local_curves(image, max(plain.shape), thresholds, **options)
    assert_array_equal(found.values.reshape(-1), expected)


def transforms(data, plain, image, options):
    mask = (plain > 0) & (plain == plain)
    connectivity = options["connectivity"] or plain.ndim
    given = data.draw(stored(mask))
    found = ecc.euler_transform(given, 3, 5, connectivity=connectivity)
    spacing = np.ones(plain.ndim)
    expected = transform_reference.euler_transform(
        mask.astype(np.int64), found.directions, found.heights, connectivity, spacing
    )
    assert_array_equal(found.values, expected)
    labelled = data.draw(strategies.labels(plain.shape))
    options = {"heights": 5, "range": (-4, 4), "connectivity": connectivity}
    found = ecc.region_transforms(data.draw(stored(labelled)), 3, **options)
    known = ecc.region_transforms(labelled.copy(), 3, **options)
    assert_array_equal(found.labels, known.labels)
    assert_array_equal(found.values, known.values)


CHECKS = [curve, masked, exact, even, coefficients, regions, shards, blocks, transforms]


@pytest.mark.parametrize("check", CHECKS)
@settings(max_examples=settings().max_examples // 5)  # The profile sets how many there are.
@given(st.data())
def test_stored_arrays(check, data):
    plain, image = data.draw(images())
    before = np.array(plain)
    options = data.draw(any_side(plain.ndim))
    check(data, plain, image, options)
    assert_array_equal(np.asarray(image), before)


@pytest.mark.parametrize(
    ("shape", "connectivity"), with_connectivities([(140_000,), (9, 70_000), (5, 9, 46_000)])
)
def test_booleans_of_any_byte_in_many_blocks(shape, connectivity):
    mask, shown = RNG.random((2, *shape)) < 0.5
    options = {"connectivity": connectivity}
    every = [0, 1], [-1, 0.5, 2], np.array([False, True]), 3, "exact"
    known = [ecc.euler_curve(mask, thresholds, **options) for thresholds in every]
    assert [
        ecc.euler_curve(odd_bytes(mask), thresholds, **options) for thresholds in every
    ] == known
    known = ecc.euler_curve(mask, [0, 1], superlevel=True, **options)
    levels = odd_bytes(np.array([False, True]))
    found = ecc.euler_curve(mask, levels, superlevel=True, **options)
    assert_array_equal(found.values, known.values)
    options["mask"] = shown
    known = ecc.euler_curve(mask, [0, 1], **options)
    coefficients = ecc.euler_coefficients(mask, **options)
    options["mask"] = odd_bytes(shown)
    assert ecc.euler_curve(odd_bytes(mask), [0, 1], **options) == known
    assert_array_equal(ecc.euler_coefficients(odd_bytes(mask), **options), coefficients)


def test_booleans_of_any_byte_as_weights_tensors_and_tiles():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("dask", reason="dask is not installed")
    from ecc_core.dask import local_curves

    mask, hidden = RNG.random((2, 9, 11)) < 0.5
    odd = odd_bytes(mask)
    at = [0, 1]
    known = ecc.euler_transform(mask, 4, 9, weighted=True)
    assert ecc.euler_transform(odd, 4, 9, weighted=True) == known
    found = ecc.euler_curve(torch.from_numpy(odd), at).values
    assert_array_equal(found.numpy(), ecc.euler_curve(mask, at).values)
    tiles = local_curves(odd, 3, at, mask=odd_bytes(hidden))
    assert_array_equal(tiles.values, local_curves(mask, 3, at, mask=hidden).values)
