"""The tasks of a sum: one for each block as it is read, one for its borders, and a chain of sums.

Every block is read once; only planes are kept for its neighbours. All functions
are module-level and names come from tokens, so that equal calls give equal graphs.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ecc_core._blocks.planes import Array, BlockSums
from ecc_core._blocks.quantities import CellCounts, Curve, Quantity, coefficients_of
from ecc_core._blocks.regions import labels_of, rows_of, values_of
from ecc_core._blocks.tiles import curves_of_tiles
from ecc_core._blocks.work import Index, Work
from ecc_core._optional import import_optional

__all__ = [
    "block_curves",
    "coefficient_map",
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
    for axis, lengths in enumerate(image.chunks):
        filled = [i for i, length in enumerate(lengths) if length]
        image = image.blocks[(slice(None),) * axis + (filled,)]
    return image


def block_curves(image: Any, mask: Any | None, quantity: Curve) -> Any:
    """Return the contribution of each block to the curve, a dask array (*batch, blocks, n).

    `image` is a dask array without empty chunks, its spatial axes last, and `mask` one of the same
    chunks or None. Blocks follow in C order.
    """
    lead, n = image.ndim - quantity.filtration.ndim, quantity.size
    meta = _values_like(image, quantity, lead + 2)
    if image.size == 0:
        shape = (*image.shape[:lead], 0, n)
        return da.zeros_like(meta, shape=shape, dtype=np.int64, chunks=-1)
    work = Work(None, image.chunks, quantity)
    tasks, inputs, token = _shares(work, (image,) if mask is None else (image, mask))
    name = f"ecc-block-{token}"
    for images, shares in _by_images(work, tasks).items():
        for row, share in enumerate(shares):
            tasks[name, *images, row, 0] = (_row, share)
    graph = graphs.HighLevelGraph.from_collections(name, tasks, dependencies=inputs)
    rows = (1,) * math.prod(work.owners[lead:])
    return da.Array(graph, name, (*image.chunks[:lead], rows, (n,)), meta=meta)


def _row(share: Array) -> Array:
    return share[..., None, :]


def _values_like(image: Any, quantity: Quantity, ndim: int) -> Any:
    """Return an empty array like the sums of blocks; numbers of cells are in host memory."""
    if isinstance(quantity, CellCounts):
        return np.empty((0,) * ndim, np.int64)
    return _counts_like(image, ndim)


def _counts_like(image: Any, ndim: int) -> Any:
    """Return an empty int64 array of the library of an image's chunks."""
    return np.empty_like(image._meta, shape=(0,) * ndim, dtype=np.int64)


def _shares(work: Work, arrays: tuple[Any, ...]) -> tuple[Graph, list[Any], str]:
    """Return the tasks of the shares of all blocks, what they depend on, and a token."""
    if work.open:
        arrays = tuple(_with_end(array, work) for array in arrays)
    token = dask.base.tokenize(*arrays, work.quantity, work.regions)
    shared = dask.delayed(work, traverse=False, name=f"ecc-work-{token}")
    emitted = da.map_blocks(
        _emit,
        *arrays,
        work=shared,
        dtype=object,
        meta=np.empty((0,) * arrays[0].ndim, object),
        name=f"ecc-emit-{token}",
    )
    tasks: Graph = {}
    for block in itertools.product(*map(range, work.owners)):
        near = [(emitted.name, *other) for other in work.near(block)]
        tasks[f"ecc-share-{token}", *block] = (Work.share, shared.key, block, near)
    return tasks, [emitted, shared], token


def _emit(*arrays: Array, work: Work) -> BlockSums:
    return work.emitted(arrays)


def _by_images(work: Work, tasks: Graph) -> dict[Index, list[Any]]:
    """Return the keys of shares for each place on the batch axes."""
    keys: dict[Index, list[Any]] = {}
    for key in tasks:
        keys.setdefault(key[1 : 1 + work.lead], []).append(key)
    return keys


def _sum_of_blocks(work: Work, arrays: tuple[Any, ...]) -> tuple[Any, str]:
    """Return a graph, and the name of the keys of its sums, (name, *images, 0).

    The sums are a chain, so that dask works through the blocks in their order; with a tree, it
    would keep the planes of many layers.
    """
    tasks, inputs, token = _shares(work, arrays)
    name, shared = f"ecc-sum-{token}", inputs[-1].key
    for images, shares in _by_images(work, tasks).items():
        so_far: list[Any] = []
        groups = [shares[i : i + FAN_IN] for i in range(0, len(shares), FAN_IN)]
        for i, group in enumerate(groups[:-1]):
            tasks[f"{name}-so-far", *images, i] = (Work.sum, shared, so_far + group)
            so_far = [(f"{name}-so-far", *images, i)]
        tasks[name, *images, 0] = (Work.sum, shared, so_far + groups[-1])
    return graphs.HighLevelGraph.from_collections(name, tasks, dependencies=inputs), name


def sums_of_blocks(quantity: Quantity, image: Any, *others: Any | None) -> Any:
    """Return the values of an image, a dask array of shape (*batch, size).

    `others` are the second image of a surface, and perhaps a mask or None. All are without empty
    chunks, of the same chunks, and their spatial axes come last.
    """
    arrays = (image, *(array for array in others if array is not None))
    work = Work(None, image.chunks, quantity)
    lead = work.lead
    meta = _values_like(image, quantity, lead + 1)
    if image.size == 0 or 0 in work.owners:
        shape = (*image.shape[:lead], quantity.size)
        return da.zeros_like(meta, shape=shape, dtype=np.int64, chunks=-1)
    graph, name = _sum_of_blocks(work, arrays)
    return da.Array(graph, name, (*image.chunks[:lead], (quantity.size,)), meta=meta)


def _with_end(array: Any, work: Work) -> Any:
    """Return an array with the points behind its last blocks as blocks of their own."""
    if work.quantity.filtration.boundary.wraps:
        for axis in np.arange(work.lead, array.ndim).tolist():
            first = array[(slice(None),) * axis + (slice(0, 1),)]
            array = da.concatenate([array, first], axis=axis)
    return array.rechunk(work.chunks)


def region_table(image: Any, labels: Any, quantity: Quantity) -> Any:
    """Return the sums of all regions as one table, a dask array of shape (unknown, 1 + n).

    `image` and `labels` have the same chunks, none of them empty.
    """
    columns = 1 + quantity.size
    meta = _values_like(image, quantity, 2)
    if image.size == 0:
        return da.zeros_like(meta, shape=(0, columns), dtype=np.int64, chunks=-1)
    work = Work(None, image.chunks, quantity, regions=True)
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


def coefficient_map(image: Any, mask: Any | None, quantity: Curve) -> Any:
    """Return the coefficients of all points, which depend on the nearest neighbours only."""
    meta = np.empty_like(image._meta, dtype=np.int8)
    if image.size == 0:
        return da.zeros_like(image, dtype=np.int8)
    return da.map_overlap(
        coefficients_of,
        *((image,) if mask is None else (image, mask)),
        depth=1,
        boundary="none",
        quantity=dask.delayed(quantity, traverse=False, pure=True),
        dtype=np.int8,
        meta=meta,
    )


def tile_curves(image: Any, mask: Any | None, tile: tuple[int, ...], quantity: Curve) -> Any:
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
        quantity=dask.delayed(quantity, traverse=False, pure=True),
        chunks=(*counts, (quantity.size,)),
        new_axis=image.ndim,
        dtype=np.int64,
        meta=_counts_like(image, image.ndim + 1),
        name="ecc-tiles-" + dask.base.tokenize(*arrays, tile, quantity),
    )
