"""The tasks of a curve: one for each block as it is read, one for its borders, and a chain of sums.

Every block is read once; only planes are kept for its neighbours. All functions
are module-level and names come from tokens, so that equal calls give equal graphs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ecc_core._blocks.blocks import AnySettings, Settings, coefficients_of
from ecc_core._blocks.cells import CellSettings, CellWork, work_of
from ecc_core._blocks.planes import Array, BlockSums, neighbours
from ecc_core._blocks.regions import labels_of, rows_of, values_of
from ecc_core._blocks.tiles import curves_of_tiles
from ecc_core._blocks.work import Index, Work
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


def block_curves(image: Any, mask: Any | None, settings: Settings) -> Any:
    """Return the contribution of each block to the curve, a dask array (*batch, blocks, n).

    `image` is a dask array without empty chunks, its spatial axes last, and `mask` one of the same
    chunks or None. Blocks follow in C order.
    """
    lead = image.ndim - settings.filtration.ndim
    n = settings.size
    meta = _counts_like(image, lead + 2)
    if image.size == 0:
        shape = (*image.shape[:lead], 0, n)
        return da.zeros_like(meta, shape=shape, dtype=np.int64, chunks=-1)
    work = work_of(None, image.chunks, settings)
    emitted, shared = _emitted(work, (image,) if mask is None else (image, mask))
    name = "ecc-block-" + dask.base.tokenize(emitted.name)
    tasks: Graph = {}
    for images in _places(work):
        for row, at in enumerate(itertools.product(*map(range, work.owners[lead:]))):
            block = (*images, *at)
            near = [(emitted.name, *other) for other in work.near(block)]
            tasks[name, *images, row, 0] = (_row, shared.key, block, near)
    graph = graphs.HighLevelGraph.from_collections(name, tasks, dependencies=[emitted, shared])
    rows = (1,) * math.prod(work.owners[lead:])
    return da.Array(graph, name, (*image.chunks[:lead], rows, (n,)), meta=meta)


def _row(work: Work, block: Index, emitted: Sequence[BlockSums]) -> Array:
    return work.share(block, emitted)[..., None, :]


def _places(work: Work) -> Iterator[Index]:
    """Return the indices of blocks along the batch axes."""
    return itertools.product(*map(range, work.owners[: work.lead]))


def _counts_like(image: Any, ndim: int) -> Any:
    """Return an empty int64 array of the library of an image's chunks."""
    return np.empty_like(image._meta, shape=(0,) * ndim, dtype=np.int64)


def _emitted(work: Work, arrays: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return an array with an `BlockSums` object in place of each block, and the shared work."""
    token = dask.base.tokenize(type(work), *arrays, work.settings, work.ndim, work.regions)
    shared = dask.delayed(work, traverse=False, name=f"ecc-work-{token}")
    emitted = da.map_blocks(
        _emit,
        *arrays,
        work=shared,
        dtype=object,
        meta=np.empty((0,) * arrays[0].ndim, object),
        name=f"ecc-emit-{token}",
    )
    return emitted, shared


def _emit(*arrays: Array, work: Work) -> BlockSums:
    return work.emitted(arrays)


def _sum_of_blocks(work: Work, arrays: tuple[Any, ...]) -> tuple[Any, str]:
    """Return a graph, and the name of the keys of its sums, (name, *images, 0).

    The sums are a chain, so that dask works through the blocks in their order; with a tree, it
    would keep the planes of many layers.
    """
    emitted, shared = _emitted(work, arrays)
    name = "ecc-sum-" + dask.base.tokenize(emitted.name)
    cells = isinstance(work, CellWork)
    part = _share if cells else _meeting
    add, total = (Work.sum, Work.sum) if cells else (Work.add_met, Work.total_met)
    tasks: Graph = {}
    for images in _places(work):
        keys: list[Any] = []
        for at in itertools.product(*map(range, work.owners[work.lead :])):
            keys.append((f"{name}-part", *images, *at))
            tasks[keys[-1]] = part(work, shared.key, emitted.name, keys[-1])
        so_far: list[Any] = []
        groups = [keys[i : i + FAN_IN] for i in range(0, len(keys), FAN_IN)]
        for i, group in enumerate(groups[:-1]):
            tasks[f"{name}-so-far", *images, i] = (add, shared.key, so_far + group)
            so_far = [(f"{name}-so-far", *images, i)]
        tasks[name, *images, 0] = (total, shared.key, so_far + groups[-1])
    graph = graphs.HighLevelGraph.from_collections(name, tasks, dependencies=[emitted, shared])
    return graph, name


def _share(work: Work, shared: Any, emitted: str, key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the task of the contribution of a block, of those that it owns."""
    _, *block = key
    near = [(emitted, *other) for other in work.near(tuple(block))]
    return type(work).share, shared, tuple(block), near


def _meeting(work: Work, shared: Any, emitted: str, key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the task that combines a block with its own layer and the previous one.

    So one plane of each block is kept for the next layer.
    """
    name, *block = key
    images, (layer, *at) = block[: work.lead], block[work.lead :]
    across = list(neighbours(at, work.counts[work.lead + 1 :]))
    near = [(emitted, *images, layer, *other) for other in across]
    before = [(name, *images, layer - 1, *other) for other in across if layer]
    return type(work).meet, shared, tuple(block), near, before


def curve_values(image: Any, mask: Any | None, settings: Settings | CellSettings) -> Any:
    """Return the curve, a dask array of shape (*batch, n). Arguments as for `block_curves`."""
    return sums_of_blocks((image,) if mask is None else (image, mask), settings)


def sums_of_blocks(arrays: tuple[Any, ...], settings: AnySettings | CellSettings) -> Any:
    """Return the curve, surface or numbers of cells, a dask array of shape (*batch, n).

    `arrays` are an image, or two for a surface, and perhaps a mask. They are without empty chunks,
    of the same chunks, and their spatial axes come last. Only cells can have a boundary that
    is not closed.
    """
    image = arrays[0]
    work = work_of(None, image.chunks, settings)
    lead = work.lead
    if image.size == 0 or 0 in work.owners:
        meta = _sums_like(image, settings, lead + 1)
        shape = (*image.shape[:lead], settings.size)
        return da.zeros_like(meta, shape=shape, dtype=np.int64, chunks=-1)
    if work.open:
        arrays = tuple(_with_end(array, work) for array in arrays)
    graph, name = _sum_of_blocks(work, arrays)
    meta = _sums_like(image, settings, lead + 1)
    return da.Array(graph, name, (*image.chunks[:lead], (settings.size,)), meta=meta)


def _sums_like(image: Any, settings: Any, ndim: int) -> Any:
    """Return an empty array like the sums of blocks; numbers of cells are in host memory."""
    if isinstance(settings, CellSettings):
        return np.empty((0,) * ndim, np.int64)
    return _counts_like(image, ndim)


def _with_end(array: Any, work: Work) -> Any:
    """Return an array with the points behind its last blocks as blocks of their own."""
    if work.settings.filtration.boundary.wraps:
        for axis in np.arange(work.lead, array.ndim).tolist():
            first = array[(slice(None),) * axis + (slice(0, 1),)]
            array = da.concatenate([array, first], axis=axis)
    return array.rechunk(work.chunks)


def region_table(image: Any, labels: Any, settings: Settings | CellSettings) -> Any:
    """Return the sums of all regions as one table, a dask array of shape (unknown, 1 + n).

    `image` and `labels` have the same chunks, none of them empty.
    """
    columns = 1 + settings.size
    meta = _sums_like(image, settings, 2)
    if image.size == 0:
        return da.zeros_like(meta, shape=(0, columns), dtype=np.int64, chunks=-1)
    work = work_of(None, image.chunks, settings, regions=True)
    sums, name = _sum_of_blocks(work, (image, labels))
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
