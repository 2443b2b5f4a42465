"""Persistent regions of dask arrays are those of the image in memory."""

import dask
import dask.array as da
import numpy as np
import pytest

import ecc_core as ecc
from ecc_core._dask import regions

RNG = np.random.default_rng(11)
CASES = [
    ((40,), (7,), "u1", {}),
    ((17, 20), (5, 20), "u1", {"boundary": ("periodic", "closed"), "rel_height": 0.5}),
    ((17, 20), ((1, 9, 7), 6), "f4", {"connectivity": 1, "superlevel": True, "threshold": 5}),
    ((9, 8, 10), (4, 8, 3), "u1", {"boundary": "periodic"}),
    ((9, 8, 10), (2, 3, 10), "u1", {"connectivity": 1, "rel_height": 0.3, "threshold": 11}),
]
MASK_OPTIONS = [
    {"superlevel": True, "threshold": 1},
    {"superlevel": True, "threshold": 0},
    {"superlevel": True, "threshold": 2},
    {"threshold": 0},
    {"threshold": 1},
]


@pytest.mark.parametrize(("shape", "chunks", "dtype", "options"), CASES)
@pytest.mark.parametrize("least", [0, 4])
def test_any_chunks(shape, chunks, dtype, options, least):
    """Cases are masks and NaN, components that last, and all components."""
    image = RNG.integers(0, 20, shape).astype(dtype)
    if dtype == "f4":
        image[RNG.random(shape) < 0.05] = np.nan
    given = options | {"mask": RNG.random(shape) < 0.9, "nan": "omit"}
    lazy = da.from_array(image, chunks=chunks)
    found = ecc.persistent_regions(lazy, least, **given)
    assert found.labels.chunks == lazy.chunks
    assert found.to_numpy() == ecc.persistent_regions(image, least, **given)


@pytest.mark.parametrize("options", MASK_OPTIONS)
def test_components_of_a_mask(options):
    """The points that a threshold reaches are labelled, and no others."""
    mask = RNG.random((11, 12)) < 0.4
    found = ecc.persistent_regions(da.from_array(mask, chunks=(4, 5)), 0, **options).to_numpy()
    assert found == ecc.persistent_regions(mask, 0, **options)
    superlevel = options.get("superlevel", False)
    inside = mask >= options["threshold"] if superlevel else mask <= options["threshold"]
    np.testing.assert_array_equal(found.labels > 0, inside)


def test_labels_of_a_few_chunks_and_axes(monkeypatch):
    """Few chunks are held, and the spatial axes come in another order."""
    monkeypatch.setattr(regions, "MOST_HELD_BYTES", 0)
    image = RNG.integers(0, 30, (1, 12, 15), np.uint8)
    known = ecc.persistent_regions(image, 6, axis=(2, 1))
    found = ecc.persistent_regions(da.from_array(image, chunks=(1, 5, 4)), 6, axis=(2, 1))
    with dask.config.set(scheduler="synchronous"):
        np.testing.assert_array_equal(found.labels[:, 6:, :3].compute(), known.labels[:, 6:, :3])
    np.testing.assert_array_equal(found.birth_points.compute(), known.birth_points)


def test_nothing_is_read_before_it_is_computed():
    def fail(block):
        raise RuntimeError("read")

    image = da.zeros((6, 6), chunks=3).map_blocks(fail, meta=np.empty((0, 0)))
    found = ecc.persistent_regions(image, 1)
    with pytest.raises(RuntimeError, match="read"):
        found.labels.compute()
    empty = ecc.persistent_regions(da.zeros((0, 4)), 1)
    assert empty.labels.compute().shape == (0, 4)
    assert not empty.births.compute().size


def test_errors():
    image = da.zeros((6, 6), dtype=np.int64, chunks=3)
    with pytest.raises(ValueError, match="masked int64 must be in memory"):
        ecc.persistent_regions(image, 1, mask=np.ones((6, 6), bool))
    with pytest.raises(ValueError, match="`workers` must be None for a dask array"):
        ecc.persistent_regions(image, 1, workers=2)
    holes = da.full((4, 4), np.nan, chunks=2)
    with pytest.raises(ValueError, match="must not contain NaN"):
        dask.compute(*ecc.persistent_regions(holes, 1))
