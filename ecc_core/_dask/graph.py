"""The tasks of a curve: one for each block as it is read, one for its borders, and a chain of sums.

Every block is read once; only planes are kept for its neighbours. All functions
are module-level and names come from tokens, so that equal calls give equal graphs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ecc_core._blocks.blocks import (
    AnySettings,
    Settings,
    add_met,
    coefficients_of,
    emit,
    meet,
    share_of_block,
    total_met,
)
from ecc_core._blocks.planes import neighbours, place_of
from ecc_core._blocks.regions import (
    add_met_tables,
    emit_regions,
    labels_of,
    meet_regions,
    rows_of,
    total_table,
    values_of,
)
from ecc_core._blocks.tiles import curves_of_tiles
from ecc_core._optional import import_optional

__all__ = [
    "block_curves",
    "coefficient_map",
    "curve_values",
    "region_rows",
    "region_table",
    "sums_of_blocks",
    "tile_curves",
    "without_empty_chunks",
]

PURPOSE = {"extra": "dask", "purpose": "computing by blocks"}
dask = import_optional("dask", **PURPOSE)
da = import_optional("dask.array", **PURPOSE)
graphs = import_optional("dask.highlevelgraph", **PURPOSE)

FAN_IN = 16  # shares that one task adds

Graph = dict[tuple[Any, ...], Any]


def without_empty_chunks(image: Any) -> Any:
    """Return an array without chunks of length zero, some of which dask cannot rechunk."""
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
    """Return the contribution of each block to the curve, a dask array (*batch, blocks, n).

    `image` is a dask array without empty chunks, its `ndim` spatial axes last, and `mask` one of
    the same chunks or None. Blocks follow in C order.
    """
    lead = image.ndim - ndim
    n = settings.thresholds.size
    meta = _counts_like(image, lead + 2)
    if image.size == 0:
        shape = (*image.shape[:lead], 0, n)
        return da.zeros_like(meta, shape=shape, dtype=np.int64, chunks=-1)
    arrays = (image,) if mask is None else (image, mask)
    emitted = _emitted(emit, arrays, settings, ndim=ndim)
    shared = dask.delayed(settings, traverse=False, pure=True)
    counts = emitted.numblocks[lead:]
    name = "ecc-block-" + dask.base.tokenize(emitted.name)
    tasks: Graph = {}
    for images in itertools.product(*map(range, emitted.numblocks[:lead])):
        for row, at in enumerate(itertools.product(*map(range, counts))):
            blocks = [(emitted.name, *images, *near) for near in neighbours(at, counts)]
            place = place_of(at, counts)
            tasks[name, *images, row, 0] = (share_of_block, blocks, place, shared.key)
    graph = graphs.HighLevelGraph.from_collections(name, tasks, dependencies=[emitted, shared])
    rows = (1,) * math.prod(counts)
    return da.Array(graph, name, (*image.chunks[:lead], rows, (n,)), meta=meta)


def _counts_like(image: Any, ndim: int) -> Any:
    """Return an empty int64 array of the library of an image's chunks."""
    return np.empty_like(image._meta, shape=(0,) * ndim, dtype=np.int64)


def _emitted(
    function: Callable[..., Any], arrays: tuple[Any, ...], settings: AnySettings, **options: Any
) -> Any:
    """Return an array with an `Emitted` object in place of each block."""
    return da.map_blocks(
        function,
        *arrays,
        settings=dask.delayed(settings, traverse=False, pure=True),
        dtype=object,
        meta=np.empty((0,) * arrays[0].ndim, object),
        name="ecc-emit-" + dask.base.tokenize(function, *arrays, settings, options),
        **options,
    )


class _Sum(NamedTuple):
    """The functions that add up the blocks of an image."""

    meet: Callable[..., Any]
    add: Callable[..., Any]
    total: Callable[..., Any]


def _sum_of_blocks(
    functions: _Sum, emitted: Any, settings: AnySettings, lead: int
) -> tuple[Any, str]:
    """Return a graph, and the name of the keys of its sums, (name, *images, 0).

    A block is combined with its own layer and the previous one, so that one plane of each is kept
    for the next layer. The sums are a chain, so that dask works through the blocks in their order;
    with a tree, it would keep the planes of many layers.
    """
    shared = dask.delayed(settings, traverse=False, pure=True)
    counts = emitted.numblocks[lead:]
    name = "ecc-sum-" + dask.base.tokenize(functions, emitted.name)
    tasks: Graph = {}
    for images in itertools.product(*map(range, emitted.numblocks[:lead])):
        keys = []
        for layer, *at in itertools.product(*map(range, counts)):
            near = [(*images, layer, *other) for other in neighbours(at, counts[1:])]
            blocks = [(emitted.name, *other) for other in near]
            before = [
                (f"{name}-met", *images, layer - 1, *other)
                for other in neighbours(at, counts[1:])
                if layer
            ]
            after = place_of((layer, *at), counts).after
            keys.append((f"{name}-met", *images, layer, *at))
            tasks[keys[-1]] = (functions.meet, blocks, before, after, shared.key)
        so_far: list[Any] = []
        groups = [keys[i : i + FAN_IN] for i in range(0, len(keys), FAN_IN)]
        for i, group in enumerate(groups[:-1]):
            tasks[f"{name}-so-far", *images, i] = (functions.add, so_far + group)
            so_far = [(f"{name}-so-far", *images, i)]
        tasks[name, *images, 0] = (functions.total, so_far + groups[-1])
    graph = graphs.HighLevelGraph.from_collections(name, tasks, dependencies=[emitted, shared])
    return graph, name


def curve_values(image: Any, mask: Any | None, settings: Settings, ndim: int) -> Any:
    """Return the curve, a dask array of shape (*batch, n). Arguments as for `block_curves`."""
    return sums_of_blocks((image,) if mask is None else (image, mask), settings, ndim)


def sums_of_blocks(arrays: tuple[Any, ...], settings: AnySettings, ndim: int) -> Any:
    """The curve or surface, a dask array of shape (*batch, n).

    `arrays` are an image, or two for a surface, and perhaps a mask. They are without empty chunks,
    of the same chunks, and their `ndim` spatial axes come last.
    """
    image = arrays[0]
    lead = image.ndim - ndim
    n = settings.size
    meta = _counts_like(image, lead + 1)
    if image.size == 0:
        return da.zeros_like(meta, shape=(*image.shape[:lead], n), dtype=np.int64, chunks=-1)
    emitted = _emitted(emit, arrays, settings, ndim=ndim)
    graph, name = _sum_of_blocks(_Sum(meet, add_met, total_met), emitted, settings, lead)
    return da.Array(graph, name, (*image.chunks[:lead], (n,)), meta=meta)


def region_table(image: Any, labels: Any, settings: Settings) -> Any:
    """Return the curves of all regions as one table, a dask array of shape (unknown, 1 + n).

    `image` and `labels` have the same chunks, none of them empty.
    """
    columns = 1 + settings.thresholds.size
    meta = _counts_like(image, 2)
    if image.size == 0:
        return da.zeros_like(meta, shape=(0, columns), dtype=np.int64, chunks=-1)
    emitted = _emitted(emit_regions, (image, labels), settings)
    functions = _Sum(meet_regions, add_met_tables, total_table)
    sums, name = _sum_of_blocks(functions, emitted, settings, 0)
    table = f"{name}-table"
    graph = graphs.HighLevelGraph(
        {**sums.layers, table: {(table, 0, 0): (name, 0)}}, {**sums.dependencies, table: {name}}
    )
    return da.Array(graph, table, ((math.nan,), (columns,)), meta=meta)


def region_rows(table: Any, dtype: np.dtype[Any], ids: Any | None) -> tuple[Any, Any]:
    """Return the labels and curves of a table: of the given ids, or of all labels."""
    n = table.shape[1] - 1
    meta = _counts_like(table, 2)
    if ids is not None:
        chunks: Any = ((ids.size,), (n,))
        return ids, table.map_blocks(rows_of, ids=ids, chunks=chunks, meta=meta)
    length = table.chunks[0]
    one_axis = np.empty_like(meta, shape=(0,), dtype=dtype)
    labels = table.map_blocks(labels_of, order=dtype, chunks=(length,), drop_axis=1, meta=one_axis)
    return labels, table.map_blocks(values_of, order=dtype, chunks=(length, (n,)), meta=meta)


def coefficient_map(image: Any, mask: Any | None, settings: Settings) -> Any:
    """Return the coefficients of all points, which depend on the nearest neighbours only."""
    meta = np.empty_like(image._meta, dtype=np.int8)
    if image.size == 0:
        return da.zeros_like(image, dtype=np.int8)
    return da.map_overlap(
        coefficients_of,
        *((image,) if mask is None else (image, mask)),
        depth=1,
        boundary="none",
        settings=dask.delayed(settings, traverse=False, pure=True),
        dtype=np.int8,
        meta=meta,
    )


def tile_curves(image: Any, mask: Any | None, tile: tuple[int, ...], settings: Settings) -> Any:
    """Return the curves of the tiles of an image whose chunks consist of complete tiles."""
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
        meta=_counts_like(image, image.ndim + 1),
        name="ecc-tiles-" + dask.base.tokenize(*arrays, tile, settings),
    )
