"""Pairs of dask arrays are those of the image in memory, with their points, for all chunks."""

import itertools
import tracemalloc

import dask.array as da
import numpy as np
import pytest
from filtrations import omitting
from hypothesis import given
from hypothesis import strategies as st
from topology_helpers import assert_diagrams, intervals

import ecc_core as ecc
from ecc_core._backends.components import Kind
from ecc_core._backends.cpu.betti import forest, launch, pair_pieces, tunnel_pieces
from ecc_core._backends.cpu.betti.blocks import grid_of
from ecc_core._backends.pair_options import PairOptions
from ecc_core._request.filtration import filtration_of
from ecc_core.testing import strategies


def assert_alike(image, chunks, dimension, **options):
    lazy = ecc.persistence_pairs(da.from_array(image, chunks=chunks), dimension, **options)
    assert lazy.to_numpy() == ecc.persistence_pairs(image, dimension, **options)


@given(st.data())
def test_any_chunks_masks_and_boundaries(data):
    dtypes = "uint8", "float32"
    image = data.draw(strategies.images(data.draw(st.integers(1, 3)), dtypes=dtypes, nan=True))
    options = data.draw(omitting(image))
    words = st.sampled_from(["closed", "periodic"])
    options["boundary"] = tuple(data.draw(words) for _ in range(image.ndim))
    options["min_persistence"] = data.draw(st.sampled_from([0, 0, 2, 50]))
    chunks = data.draw(strategies.chunkings(image.shape))
    for dimension in range(image.ndim):
        assert_alike(image, chunks, dimension, **options)


@pytest.mark.sweep
@pytest.mark.parametrize("connectivity", [1, 3])
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("boundary", ["closed", "periodic", ("closed", "periodic", "closed")])
@pytest.mark.parametrize("levels", [2, 4, 200])
def test_chunks_of_several_blocks(connectivity, superlevel, boundary, levels, monkeypatch):
    """With few levels, the places of points decide which class is older."""
    monkeypatch.setattr(launch, "BLOCK", (2, 3, 4))
    image = np.random.default_rng(levels).integers(0, levels, (11, 12, 13), np.uint8)
    options = {"connectivity": connectivity, "superlevel": superlevel, "boundary": boundary}
    assert_alike(image, (6, (1, 4, 7), 5), 0, **options)
    assert_alike(image, (6, (1, 4, 7), 5), 1, **options)
    assert_alike(image, (6, (1, 4, 7), 5), 2, **options)


@pytest.mark.parametrize("connectivity", [1, 2])
def test_diagrams_are_those_of_gudhi(connectivity):
    image = np.random.default_rng(5).integers(0, 9, (14, 17), np.uint8)
    lazy = da.from_array(image, chunks=(5, 6))
    found = [
        ecc.persistence_pairs(lazy, dimension, connectivity=connectivity).to_gudhi()
        for dimension in (0, 1)
    ]
    assert_diagrams(found, intervals(image, connectivity))


@pytest.mark.parametrize("connectivity", [1, 3])
def test_tunnels_are_those_of_gudhi(connectivity):
    """The volume has few values, so that the order of equal ones decides about classes."""
    image = np.random.default_rng(6).integers(0, 5, (7, 8, 9), np.uint8)
    lazy = da.from_array(image, chunks=(3, (1, 5, 2), 4))
    found = ecc.persistence_pairs(lazy, 1, connectivity=connectivity).to_gudhi()
    assert_diagrams([found], intervals(image, connectivity)[1:2])


def test_masked_axes_and_batch_axes():
    rng = np.random.default_rng(3)
    image = rng.integers(0, 9, (1, 10, 11), np.uint8)
    shown = rng.random((10, 11)) < 0.8
    assert_alike(image, (1, 4, 5), 0, axis=(1, 2), mask=shown)
    assert_alike(image, (1, 4, 5), 0, axis=(2, 1), mask=shown[None])
    lazy = da.from_array(image, chunks=4)
    masked = da.ma.masked_array(lazy, mask=lazy > 6)
    found = ecc.persistence_pairs(masked, 0, axis=(1, 2)).to_numpy()
    assert found == ecc.persistence_pairs(np.ma.masked_greater(image, 6), 0, axis=(1, 2))
    with pytest.raises(ValueError, match="axes of length 1 only"):
        ecc.persistence_pairs(da.zeros((2, 4, 5)), 0, axis=(1, 2))


def test_nothing_is_read_before_it_is_computed():
    def read(block):
        raise OSError("damaged")

    image = da.zeros((8, 9), chunks=4).map_blocks(read, meta=np.empty((0, 0)))
    pairs = ecc.persistence_pairs(image, 1)
    assert pairs.dimension == 1
    assert pairs.birth_points.shape[1] == 2
    with pytest.raises(OSError, match="damaged"):
        pairs.to_numpy()


def test_chunks_are_read_once():
    reads = []

    def read(block):
        reads.append(block.shape)
        return block

    image = np.random.default_rng(4).integers(0, 9, (12, 13), np.uint8)
    lazy = da.from_array(image, chunks=5).map_blocks(read, meta=np.empty((0, 0), np.uint8))
    pairs = ecc.persistence_pairs(lazy, 1)
    known = ecc.persistence_pairs(image, 1)
    for convert in (lambda p: p.to_numpy().births, lambda p: p.persistence, lambda p: p.to_gudhi()):
        reads.clear()
        np.testing.assert_array_equal(convert(pairs), convert(known))
        assert len(reads) == 9
    assert pairs.to_pandas().equals(known.to_pandas())
    np.testing.assert_array_equal(pairs.dimensions, known.dimensions)


def test_invalid_input():
    image = da.zeros((3, 4, 5), chunks=2)
    with pytest.raises(ValueError, match="NaN"):
        ecc.persistence_pairs(image * np.nan, 0).to_numpy()
    with pytest.raises(ValueError, match="masked int64 must be in memory"):
        ecc.persistence_pairs(image.astype(int), 0, mask=np.ones((3, 4, 5), bool))
    with pytest.raises(ValueError, match="half-open"):
        ecc.persistence_pairs(image, 0, boundary="half-open")
    empty = ecc.persistence_pairs(da.zeros((0, 4)), 0)
    assert len(empty.to_numpy().births) == 0


@pytest.mark.parametrize("dimension", [None, 3, True, np.array([0, 2])], ids=str)
def test_invalid_dimensions(dimension):
    with pytest.raises(ValueError, match=r"`dimension` must be 0, 1 or 2 for a 3-D dask array"):
        ecc.persistence_pairs(da.zeros((3, 4, 5), chunks=2), dimension)


def test_pieces_are_as_large_as_their_surface():
    """A piece of noise keeps only classes that last, and what meets its surface."""
    image = np.random.default_rng(0).integers(0, 256, (40, 40, 40), np.uint8)
    options = PairOptions(image.dtype, filtration_of(3), 0, False, 200.0)
    corners = itertools.product((0, 40), repeat=3)
    pieces = {at: pair_pieces.piece_of(image, options, at, (80, 80, 80)) for at in corners}
    for piece in pieces.values():
        surface = sum(face.size for face in piece.faces.values())
        assert piece.graph.births.size <= surface // 3
        assert piece.graph.keys.size < piece.graph.births.size
        assert piece.pairs.births.size < 20


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_nodes_of_a_side_are_copied_without_those_of_the_box(axis):
    side = 32
    sides = [(axis, 0), (axis, 1)]
    grid = grid_of((side,) * 3, (side,) * 3, tuple(sides))
    found = forest.Forest(grid, Kind(connectivity=1, complement=False))
    tracemalloc.start()
    try:
        of_sides = [found.nodes_of(one) for one in sides]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    planes = sum(nodes.nbytes for nodes in of_sides)
    assert [nodes.shape for nodes in of_sides] == [(side, side)] * 2
    assert peak < 2 * planes


@pytest.mark.parametrize("depth", [20, 40])
def test_tunnels_of_pieces_grow_with_their_surface(depth):
    """Boxes of 20 and 40 slices of noise, with one more slice behind them."""
    image = np.random.default_rng(0).integers(0, 256, (41, 20, 20), np.uint8)
    options = PairOptions(image.dtype, filtration_of(3), 1, False, 0.0)
    part = image[: depth + 1]
    stop = (depth, 20, 20)
    piece = tunnel_pieces.piece_of(part, options, (0, 0, 0), stop, part.shape)
    assert piece.pairs.births.size > 50 * depth
    assert piece.matrix.rows.keys.size < 2 * 20 * 20
