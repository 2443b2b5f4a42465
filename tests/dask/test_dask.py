"""Curves of dask arrays are those of arrays in memory, for all chunks; nothing is read early."""

import dask
import dask.array as da
import numpy as np
import pytest
from dask.order import diagnostics
from dask_helpers import noise
from filtrations import ESTIMATORS, omitting
from hypothesis import given
from hypothesis import strategies as st
from oracles import euler as reference

import ecc_core as ecc
from ecc_core.dask import euler_curve_blocks, local_curves
from ecc_core.testing import in_chunks, strategies

LEVELS = np.arange(-1, 7)
FUNCTIONS = (ecc.euler_curve, ecc.betti_curves, ecc.component_curves)


def assert_same(lazy, known) -> None:
    assert isinstance(lazy.values, da.Array)
    assert lazy.values.shape == known.values.shape
    assert lazy.values.dtype == known.values.dtype
    assert lazy.to_numpy() == known


@pytest.mark.parametrize("function", [*FUNCTIONS, ecc.minkowski_curves])
@given(st.data())
def test_any_chunks(function, data):
    image = data.draw(strategies.images(nan=True))
    array = in_chunks(image, data.draw(strategies.chunkings(image.shape)))
    at = data.draw(strategies.thresholds(image))
    options = data.draw(omitting(image))
    if function is ecc.minkowski_curves:
        words = st.sampled_from(["closed", "periodic", "half-open"])
        options["boundary"] = data.draw(words)
        if options["mask"] is None:
            options["boundary"] = data.draw(st.tuples(*[words] * image.ndim))
        options["estimator"] = data.draw(st.sampled_from(ESTIMATORS[image.ndim]))
    known = function(image, at, **options)
    if options["mask"] is not None and data.draw(st.booleans()):
        options["mask"] = in_chunks(options["mask"], data.draw(strategies.chunkings(image.shape)))
    assert_same(function(array, at, **options), known)


@given(st.data())
def test_any_batch_axes(data):
    shape = data.draw(strategies.image_shapes(data.draw(st.integers(2, 3))))
    shape = tuple(min(n, 9) for n in shape)
    image = noise(*shape)
    chunks = data.draw(strategies.chunkings(shape))
    order = data.draw(st.permutations(range(len(shape))))
    count = data.draw(st.integers(1, len(shape) - 1))
    axis = tuple(order[:count])
    of_mask = tuple(shape[a] for a in axis)
    mask = data.draw(strategies.masks(of_mask))
    expected = ecc.euler_curve(image, LEVELS, axis=axis, mask=mask)
    assert_same(ecc.euler_curve(in_chunks(image, chunks), LEVELS, axis=axis, mask=mask), expected)


TILT = {"direction": (1.0, -0.3), "direction_scale": 0.7, "spacing": (1, 2.5)}
MASKED = np.ma.masked_equal(noise(9, 8, 7), 3)


@pytest.mark.parametrize(
    ("image", "thresholds", "options"),
    [
        *[(noise(7, 6, 5), LEVELS, {"axis": axis, **TILT}) for axis in ((0, 1), (1, 0), (2, 1))],
        (noise(5, 6), 7, {"range": (0, 5)}),
        (MASKED, LEVELS, {}),
        (MASKED, LEVELS, {"mask": noise(9, 8, 7, seed=1) > 0}),
        *[(np.zeros(shape, np.uint8), LEVELS, {}) for shape in ((0,), (0, 4), (3, 0, 2))],
        (np.zeros((0, 4, 5), np.uint8), LEVELS, {"axis": (1, 2)}),
        (np.zeros((4, 4)), [], {}),
    ],
)
def test_as_in_memory(image, thresholds, options):
    """Directions, ranges, masked chunks, and images and thresholds of which there are none."""
    lazy = ecc.euler_curve(da.from_array(image, chunks=3), thresholds, **options)
    assert_same(lazy, ecc.euler_curve(image, thresholds, **options))


def test_masked_float16_without_a_warning():
    """NumPy's default fill value, which is kept once it was asked for, overflows in float16."""
    values = noise(5, 6).astype(np.float16)
    image = np.ma.masked_array(values, mask=values == 3)
    assert image.fill_value > np.finfo(np.float16).max
    lazy = ecc.euler_curve(da.from_array(image, chunks=4), LEVELS)
    assert_same(lazy, ecc.euler_curve(image, LEVELS))


class Counted:
    """An array that counts how often each point is read."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.reads = array, np.zeros(array.shape, int)
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __getitem__(self, index):
        self.reads[index] += 1
        return self.array[index]


@pytest.mark.parametrize("connectivity", [1, 3])
def test_every_point_is_read_once_and_none_before_computing(connectivity):
    source = Counted(noise(9, 8, 7))
    array = da.from_array(source, chunks=4, meta=np.empty((0, 0, 0), np.uint8))
    lazy = ecc.euler_curve(array, LEVELS, connectivity=connectivity, mask=da.ones_like(array, bool))
    blocks = euler_curve_blocks(array, LEVELS, connectivity=connectivity)
    local_curves(array, 3, LEVELS)
    assert not source.reads.any()
    assert_same(lazy, ecc.euler_curve(source.array, LEVELS, connectivity=connectivity))
    assert (source.reads == 1).all()
    blocks.compute()
    assert (source.reads == 2).all()


def test_two_tasks_a_block():
    array = da.zeros((64, 64, 64), chunks=8, dtype=np.uint8)
    curve = ecc.euler_curve(array, LEVELS).values
    (optimized,) = dask.optimize(curve)
    assert len(optimized.__dask_graph__()) < 2.2 * array.npartitions


def test_the_planes_of_one_cross_section_wait():
    """The number of live blocks grows with the cross-section, and not with the volume."""
    array = da.zeros((32, 6, 6), chunks=1, dtype=np.uint8)
    (optimized,) = dask.optimize(ecc.euler_curve(array, LEVELS).values)
    _, alive = diagnostics(dict(optimized.__dask_graph__()))
    assert max(alive) < 2.5 * 36


@pytest.mark.parametrize("function", FUNCTIONS)
def test_equal_calls_have_equal_names(function):
    def name(**options):
        array = da.from_array(noise(4, 4), chunks=2)
        return function(array, LEVELS, **options).values.name

    assert name() == name()
    assert len({name(), name(connectivity=1), name(superlevel=True), name(axis=0)}) == 4


# Blocks


def counted_rows(image, chunks, thresholds, cubes, superlevel):
    """Signed numbers of the cells by their lowest points' blocks, that enter by each threshold."""
    sign = -1 if superlevel else 1
    owners = [np.repeat(range(len(c)), c) for c in chunks]
    counts = np.zeros((*map(len, chunks), len(thresholds)), np.int64)
    for extent, values in reference.cell_ranks(sign * image.astype(int), cubes, never=1000):
        # A face of cubes lies before the one of its number.
        blocks_along_axes = []
        for own, length, is_between in zip(owners, values.shape, extent, strict=True):
            before = 1 if cubes and not is_between else 0
            lowest_points = np.maximum(np.arange(length) - before, 0)
            blocks_along_axes.append(own[lowest_points])
        entered = values[..., None] <= sign * thresholds
        np.add.at(counts, np.ix_(*blocks_along_axes), (-1) ** sum(extent) * entered)
    with_points = [np.array(lengths) > 0 for lengths in chunks]
    return counts[np.ix_(*with_points)].reshape((-1, len(thresholds)))


@pytest.mark.parametrize(
    "chunks", [((3, 0, 4), (1, 2, 3), (5,)), ((1, 2), (4,), (2, 1, 2)), ((1, 2, 3), (4, 3))]
)
@pytest.mark.parametrize("cubes", [False, True])
@pytest.mark.parametrize("superlevel", [False, True])
def test_a_block_counts_the_cells_that_it_owns(chunks, cubes, superlevel):
    image = noise(*map(sum, chunks))
    options = {"connectivity": len(chunks) if cubes else 1, "superlevel": superlevel}
    blocks = euler_curve_blocks(in_chunks(image, chunks), LEVELS, **options).compute()
    assert blocks.dtype == np.int64
    order = slice(None, None, -1 if superlevel else 1)
    curves = blocks[:, order].cumsum(axis=1)[:, order]
    expected = counted_rows(image, chunks, LEVELS, cubes, superlevel)
    np.testing.assert_array_equal(curves, expected)


def test_blocks_of_a_batch():
    image = noise(3, 6, 5)
    blocks = euler_curve_blocks(da.from_array(image, chunks=(2, 4, 4)), LEVELS, axis=(1, 2))
    assert blocks.shape == (3, 4, LEVELS.size)
    curve = blocks.sum(axis=-2).cumsum(axis=-1).compute()
    np.testing.assert_array_equal(curve, ecc.euler_curve(image, LEVELS, axis=(1, 2)).values)


# Tiles


@given(st.data())
def test_local_curves(data):
    image = data.draw(strategies.images(nan=False))
    image = image[(slice(12),) * image.ndim]
    window = tuple(data.draw(st.integers(1, 7)) for _ in image.shape)
    mask = data.draw(st.none() | strategies.masks(image.shape))
    options = {"connectivity": data.draw(st.sampled_from([1, image.ndim])), "mask": mask}
    at, values = local_curves(image, window, LEVELS, **options)
    lazy = local_curves(
        in_chunks(image, data.draw(strategies.chunkings(image.shape))), window, LEVELS, **options
    )
    assert isinstance(lazy.values, da.Array)
    assert lazy.values.shape == values.shape
    np.testing.assert_array_equal(lazy.values.compute(), values)
    assert values.dtype == np.int64
    assert values.shape[:-1] == tuple(-(-n // w) for n, w in zip(image.shape, window, strict=True))
    for place in np.ndindex(values.shape[:-1]):
        tile = tuple(slice(i * w, (i + 1) * w) for i, w in zip(place, window, strict=True))
        options["mask"] = None if mask is None else mask[tile]
        np.testing.assert_array_equal(
            values[place], ecc.euler_curve(image[tile], at, **options).values
        )


# Bad input


class OtherChunk:
    """What stands for the chunks of an array library that is not NumPy."""

    shape = (0, 0)
    ndim = 2
    dtype = np.dtype(float)
    __array_function__ = __array_ufunc__ = None

    def __getitem__(self, index):
        return self


ZEROS = da.zeros((4, 4), chunks=2)


@pytest.mark.parametrize(
    ("image", "thresholds", "options", "error", "message"),
    [
        (ZEROS, 5, {}, ValueError, "`range` must be given with `thresholds` 5 for a dask array"),
        (ZEROS, "exact", {}, ValueError, "`thresholds` must be an int or an array for a dask"),
        (ZEROS, [1], {"range": (0, 1)}, ValueError, "`range` must be None where"),
        (ZEROS, [1], {"workers": 2}, ValueError, "`workers` must be None for a dask array"),
        (ZEROS, [1], {"connectivity": 3}, ValueError, "`connectivity` must be 1 or 2"),
        (ZEROS, [1], {"direction_scale": 1.0}, ValueError, "`direction_scale` must be None"),
        (ZEROS, [1], {"devices": [0]}, ValueError, "`devices` must be None for an image"),
        (ZEROS, [1], {"mask": np.ones(3, bool)}, ValueError, "`mask` must have the image's shape"),
        (ZEROS, [1], {"mask": np.ones((4, 4))}, TypeError, "`mask` must be boolean"),
        (ZEROS[ZEROS[:, 0] > 0], [1], {}, ValueError, "call image.compute_chunk_sizes"),
        (ZEROS.astype(complex), [1], {}, TypeError, "`image` must have a boolean, integer"),
        (da.zeros((2, 2, 2, 2)), [1], {}, ValueError, "`image` must have 1 to 3 axes"),
        (da.zeros(()), [1], {}, ValueError, "`image` must have 1 to 3 axes"),
    ],
)
def test_bad_input(image, thresholds, options, error, message):
    with pytest.raises(error, match=message):
        ecc.euler_curve(image, thresholds, **options)


def test_bad_windows_and_blocks():
    with pytest.raises(ValueError, match="`window` must be a positive int or 2 of them, got 0"):
        local_curves(ZEROS, 0, LEVELS)
    with pytest.raises(ValueError, match="`window` must be a positive int or 2 of them, got"):
        local_curves(ZEROS, (3,), LEVELS)
    with pytest.raises(TypeError, match="`window` must be an int or 2 ints, got"):
        local_curves(ZEROS, 2.5, LEVELS)
    with pytest.raises(TypeError, match="`image` must be a dask array, got ndarray"):
        euler_curve_blocks(noise(3, 3), LEVELS)


def test_chunks_of_other_libraries():
    image = da.Array(ZEROS.dask, ZEROS.name, ZEROS.chunks, meta=OtherChunk())
    with pytest.raises(TypeError, match="`image` must have chunks of NumPy or CuPy arrays, got"):
        ecc.euler_curve(image, LEVELS)
