"""The tasks of a curve: one for each block as it is read, one for its borders, and a chain of sums.

Every block is read once and forgotten: what its neighbours need of it are planes. All functions
are module-level and names come from tokens, so that equal calls give equal graphs.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ecc_core._dask.blocks import Settings, add, emit, share_of_block, total
from ecc_core._dask.tiles import curves_of_tiles
from ecc_core._optional import import_optional

__all__ = ["block_curves", "sum_of_blocks", "tile_curves", "without_empty_chunks"]

PURPOSE = {"extra": "dask", "purpose": "computing by blocks"}
dask = import_optional("dask", **PURPOSE)
da = import_optional("dask.array", **PURPOSE)
graphs = import_optional("dask.highlevelgraph", **PURPOSE)

FAN_IN = 16  # shares that one task adds

Graph = dict[tuple[Any, ...], Any]


def without_empty_chunks(image: Any) -> Any:
    """The same array without chunks of length zero, which dask itself does not always rechunk."""
    if image.size == 0 or all(all(lengths) for lengths in image.chunks):
        return image
    filled = [[i for i, length in enumerate(c) if length] for c in image.chunks]
    chunks = tuple(tuple(filter(None, lengths)) for lengths in image.chunks)
    name = "ecc-filled-" + dask.base.tokenize(image)
    places = itertools.product(*(range(len(blocks)) for blocks in filled))
    tasks: Graph = {
        (name, *place): (image.name, *block)
        for place, block in zip(places, itertools.product(*filled), strict=True)
    }
    graph = graphs.HighLevelGraph.from_collections(name, tasks, dependencies=[image])
    return da.Array(graph, name, chunks, meta=image._meta)


def block_curves(image: Any, mask: Any | None, settings: Settings, ndim: int) -> Any:
    """Shares of all blocks in the curve, a dask array of shape (*batch, blocks, n).

    `image` is a dask array without empty chunks, its `ndim` spatial axes last, and `mask` one of
    the same chunks or None. Blocks follow in C order.
    """
    lead = image.ndim - ndim
    if image.size == 0:
        return da.zeros(
            (*image.shape[:lead], 0, settings.thresholds.size), dtype=np.int64, chunks=-1
        )
    numblocks = image.numblocks[lead:]
    shared = dask.delayed(settings, traverse=False, pure=True)
    emitted = _emitted(image, mask, shared, ndim)
    name = "ecc-block-" + dask.base.tokenize(emitted.name)
    tasks: Graph = {}
    for images in itertools.product(*map(range, image.numblocks[:lead])):
        for row, place in enumerate(itertools.product(*map(range, numblocks))):
            ends = tuple(int(i + 1 < n) for i, n in zip(place, numblocks, strict=True))
            near = (range(i, i + 1 + end) for i, end in zip(place, ends, strict=True))
            blocks = [(emitted.name, *images, *block) for block in itertools.product(*near)]
            tasks[name, *images, row, 0] = (share_of_block, blocks, ends, shared.key)
    graph = graphs.HighLevelGraph.from_collections(name, tasks, dependencies=[emitted, shared])
    rows = (1,) * math.prod(numblocks)
    chunks = (*image.chunks[:lead], rows, (settings.thresholds.size,))
    return da.Array(graph, name, chunks, dtype=np.int64)


def _emitted(image: Any, mask: Any | None, settings: Any, ndim: int) -> Any:
    """An array of what blocks leave behind, in place of their points."""
    arrays = (image,) if mask is None else (image, mask)
    return da.map_blocks(
        emit,
        *arrays,
        settings=settings,
        ndim=ndim,
        dtype=object,
        meta=np.empty((0,) * image.ndim, object),
        name="ecc-emit-" + dask.base.tokenize(*arrays, settings, ndim),
    )


def sum_of_blocks(shares: Any) -> Any:
    """The curve, of shape (*batch, n).

    The sums are a chain, so that dask works through the blocks in their order and the planes of
    little more than one cross-section wait for their neighbours. In a tree those of many would.
    """
    *batch, count, n = shares.shape
    if count == 0 or 0 in batch:
        return da.zeros((*batch, n), dtype=np.int64, chunks=-1)
    name = "ecc-curve-" + dask.base.tokenize(shares.name)
    numblocks = shares.numblocks[:-2]
    tasks: Graph = {}
    for at in itertools.product(*map(range, numblocks)):
        keys = [(shares.name, *at, row, 0) for row in range(count)]
        before: list[Any] = []
        groups = [keys[i : i + FAN_IN] for i in range(0, len(keys), FAN_IN)]
        for i, group in enumerate(groups[:-1]):
            tasks[f"{name}-so-far", *at, i] = (add, before + group)
            before = [(f"{name}-so-far", *at, i)]
        tasks[name, *at, 0] = (total, before + groups[-1])
    graph = graphs.HighLevelGraph.from_collections(name, tasks, dependencies=[shares])
    return da.Array(graph, name, (*shares.chunks[:-2], (n,)), dtype=np.int64)


def tile_curves(image: Any, mask: Any | None, tile: tuple[int, ...], settings: Settings) -> Any:
    """Curves of the tiles of an image whose chunks hold whole ones."""
    counts = tuple(
        tuple(-(-length // window) for length in lengths)
        for lengths, window in zip(image.chunks, tile, strict=True)
    )
    arrays = (image,) if mask is None else (image, mask)
    return da.map_blocks(
        curves_of_tiles,
        *arrays,
        tile=tile,
        settings=dask.delayed(settings, traverse=False, pure=True),
        chunks=(*counts, (settings.thresholds.size,)),
        new_axis=image.ndim,
        dtype=np.int64,
        meta=np.empty((0,) * (image.ndim + 1), np.int64),
        name="ecc-tiles-" + dask.base.tokenize(*arrays, tile, settings),
    )
