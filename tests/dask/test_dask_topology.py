"""Betti and component curves of dask arrays are those of arrays in memory, for all chunks."""

import itertools

import dask.array as da
import numpy as np
import pytest
from dask.order import diagnostics
from filtrations import name_of, omitting, sides
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from oracles.components import betti_numbers, component_numbers
from scipy import ndimage

import ecc_core as ecc
from ecc_core._backends.cpu.betti import launch
from ecc_core.testing import strategies


@pytest.mark.sweep
@pytest.mark.parametrize("connectivity", [1, 3])
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("levels", [1, 2, 256])
def test_chunks_of_several_blocks(connectivity, superlevel, levels, monkeypatch):
    monkeypatch.setattr(launch, "BLOCK", (2, 3, 4))
    image = np.random.default_rng(1).integers(0, levels, (11, 12, 13), np.uint8)
    options = {"connectivity": connectivity, "superlevel": superlevel}
    at = np.unique(np.linspace(0, levels - 1, 9).astype(int))
    lazy = ecc.betti_curves(da.from_array(image, chunks=(6, (1, 4, 7), 5)), at, **options)
    assert lazy.to_numpy() == ecc.betti_curves(image, at, **options)


@pytest.mark.sweep
@pytest.mark.parametrize("count", [255, 256, 257])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u8"])
def test_values_on_both_sides_of_all_thresholds(dtype, count):
    """Some blocks hold no value before the first threshold, and some none behind the last."""
    rng = np.random.default_rng(6)
    for shape in ((9, 20), (4, 6, 8)):
        image = rng.normal(1000, 300, shape).astype(dtype)
        for connectivity, superlevel in itertools.product((1, len(shape)), (False, True)):
            options = {"connectivity": connectivity, "superlevel": superlevel}
            lazy = da.from_array(image, chunks=4)
            found = ecc.betti_curves(lazy, count, range=(400, 1300), **options).to_numpy()
            for numbers, t in list(zip(found.values.T, found.thresholds, strict=True))[::17]:
                assert_array_equal(
                    numbers, betti_numbers(image >= t if superlevel else image <= t, connectivity)
                )


def test_batches_and_nan():
    rng = np.random.default_rng(2)
    image = rng.integers(0, 9, (3, 10, 11)).astype(np.float32)
    shown = rng.random((10, 11)) < 0.8
    lazy = da.from_array(image, chunks=(2, 4, 5))
    of_mask = {"mask": shown, "axis": (1, 2)}
    known = ecc.betti_curves(image, [1, 4, 7], **of_mask)
    assert ecc.betti_curves(lazy, [1, 4, 7], **of_mask).to_numpy() == known
    known = ecc.betti_curves(image, [1, 4, 7], axis=(2, 0))
    assert ecc.betti_curves(lazy, [1, 4, 7], axis=(2, 0)).to_numpy() == known
    holed = np.where(shown, image, np.nan)
    with pytest.raises(ValueError, match="NaN"):
        ecc.betti_curves(da.from_array(holed, chunks=4), [1, 4]).values.compute()
    empty = ecc.betti_curves(da.zeros((0, 4)), [1.0])
    assert empty.values.compute().tolist() == [[0], [0]]


def test_numbers_of_a_set():
    image = da.from_array(np.pad(np.zeros((3, 3), bool), 2, constant_values=True), chunks=2)
    assert [number.compute() for number in ecc.betti_numbers(image)] == [1, 1]


def test_little_waits():
    """Pieces are joined as soon as they are there: some at each of the levels of the tree."""
    image = da.zeros((32, 32, 32), chunks=2, dtype=np.uint8)
    graph = ecc.betti_curves(image, [0, 1]).values.__dask_graph__()
    _, pressure = diagnostics(dict(graph))
    assert max(pressure) < 50  # There are 4096 blocks.


@given(st.data())
def test_classes_that_last(data):
    dtypes = "bool", "uint8", "int64", "float32", "float64"
    image = data.draw(strategies.images(data.draw(st.integers(1, 2)), dtypes=dtypes, nan=True))
    chunks = data.draw(strategies.chunkings(image.shape))
    options = data.draw(omitting(image))
    assume(options["mask"] is None or image.dtype.kind not in "iu" or image.itemsize < 8)
    options["min_persistence"] = data.draw(st.sampled_from([1e-30, 1, 2, 50, 1e4]))
    at = data.draw(strategies.thresholds(image))
    lazy = ecc.betti_curves(da.from_array(image, chunks=chunks), at, **options)
    assert lazy.to_numpy() == ecc.betti_curves(image, at, **options)


@pytest.mark.parametrize("side", sides(2), ids=name_of)
def test_classes_that_last_in_many_blocks(side):
    image = np.random.default_rng(7).random((90, 110)).astype(np.float32)
    options = {**side, "min_persistence": 0.4}
    at = np.linspace(0, 1, 30)
    lazy = ecc.betti_curves(da.from_array(image, chunks=17), at, **options)
    assert lazy.to_numpy() == ecc.betti_curves(image, at, **options)


def test_classes_that_last_of_masked_integers():
    mask = np.ones((3, 4), bool)
    with pytest.raises(ValueError, match="by blocks for masked int64"):
        ecc.betti_curves(da.zeros((3, 4), dtype=int), [1], min_persistence=1, mask=mask)


def test_classes_of_a_batch_of_volumes_that_last():
    """The numbers of all three dimensions differ from those of all classes."""
    images = np.random.default_rng(9).integers(0, 256, (2, 9, 10, 11), np.uint8)
    at = np.arange(0, 256, 15)
    options = {"axis": (1, 2, 3), "min_persistence": 60}
    known = ecc.betti_curves(images, at, **options)
    assert (
        (known.values < ecc.betti_curves(images, at, axis=(1, 2, 3)).values).any(axis=(0, 2)).all()
    )
    lazy = ecc.betti_curves(da.from_array(images, chunks=(1, 5, 5, 6)), at, **options)
    assert lazy.values.shape == (2, 3, at.size)
    assert lazy.to_numpy() == known
    masked = {"mask": images[1] % 3 > 0, "superlevel": True, "connectivity": 1}
    options = {"min_persistence": 60, **masked}
    lazy = ecc.betti_curves(da.from_array(images[0], chunks=(9, 5, 6)), at, **options)
    assert lazy.to_numpy() == ecc.betti_curves(images[0], at, **options)
    none = ecc.betti_curves(da.zeros((0, 4, 5), dtype=np.uint8), [1], min_persistence=1)
    assert none.to_numpy().values.tolist() == [[0], [0], [0]]


@pytest.mark.parametrize("least", [0, 1])
def test_numbers_without_points_are_integers(least):
    """dask's `zeros` ignores a dtype that is its second argument."""
    image = np.zeros((0, 4, 5), np.float32)
    lazy = da.from_array(image, chunks=2)
    known = ecc.betti_curves(image, [0, 1], min_persistence=least).values
    found = ecc.betti_curves(lazy, [0, 1], min_persistence=least).values
    assert found.dtype == known.dtype
    assert_array_equal(found.compute(), known, strict=True)


def test_labels_without_points_are_integers():
    image = np.zeros((0, 4, 5), np.float32)
    lazy = da.from_array(image, chunks=2)
    labels = ecc.persistent_regions(lazy, 0).labels
    assert labels.dtype == np.int32
    assert_array_equal(labels.compute(), ecc.persistent_regions(image, 0).labels, strict=True)


@pytest.mark.sweep
@pytest.mark.parametrize("connectivity", [1, 3])
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("sigma", [0, 1, 3])
def test_components_that_grow_across_many_blocks(connectivity, superlevel, sigma):
    """Beside the sets, labelled one by one."""
    image = np.random.default_rng(1).normal(size=(23, 30, 37))
    image = ndimage.gaussian_filter(image, sigma).astype(np.float32)
    at = np.quantile(image, np.linspace(0, 1, 40))
    options = {"connectivity": connectivity, "superlevel": superlevel}
    lazy = da.from_array(image, chunks=(6, (1, 9, 20), 10))
    found = ecc.component_curves(lazy, at, **options).to_numpy()
    sets = (image >= t if superlevel else image <= t for t in at)
    known = [component_numbers(foreground, connectivity) for foreground in sets]
    np.testing.assert_array_equal(found.values.T, known)


def test_batches_and_spacing_of_components():
    image = np.random.default_rng(2).integers(0, 9, (3, 10, 11)).astype(np.float32)
    lazy = da.from_array(image, chunks=(2, 4, 5))
    options = {"axis": (2, 0), "spacing": (0.5, 2)}
    known = ecc.component_curves(image, [1, 4, 7], **options)
    assert ecc.component_curves(lazy, [1, 4, 7], **options).to_numpy() == known
    assert ecc.component_curves(da.zeros((0, 4)), [1.0]).values.compute().shape == (4, 1)
    with pytest.raises(ValueError, match="NaN"):
        ecc.component_curves(lazy * np.nan, [1.0]).values.compute()
    with pytest.raises(ValueError, match="`spacing`"):
        ecc.component_curves(lazy, [1.0], spacing=-1)
