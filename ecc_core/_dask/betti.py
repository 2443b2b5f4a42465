"""Betti curves of dask arrays: one task for each block, and one for each pair of joined boxes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import Request
from ecc_core._blocks.betti import Betti, Box, halves, open_sides
from ecc_core._blocks.planes import Array
from ecc_core._dask.arguments import lazy_request
from ecc_core._dask.graph import Graph, da, dask, graphs
from ecc_core.results import BettiCurves, curve_facts


def whole_betti_curves(image: Any, thresholds: ArrayLike, **options: Any) -> BettiCurves:
    """Return the result of :func:`ecc_core.betti_curves` for a dask array, not yet computed."""
    request = lazy_request(image, thresholds, **options)
    origin_of(request.images._meta).betti_numbers("piece_of")  # raises for CuPy arrays
    at = request.thresholds()
    return BettiCurves(at, _values(request, at), **curve_facts(request.filtration))


def _values(request: Request, at: Array) -> Any:
    """Return the Betti numbers as a dask array of shape batch + (d, n)."""
    image, mask, filtration = request.images, request.mask, request.filtration
    ndim, lead = request.geometry.ndim, len(request.geometry.batch)
    batch, meta = image.chunks[:lead], np.empty((0,) * (lead + 2), np.int64)
    if image.size == 0:
        return da.zeros((*image.shape[:lead], ndim, at.size), np.int64, chunks=-1)
    dtype = image.dtype.newbyteorder("=")
    betti = dask.delayed(Betti(at, filtration, dtype, mask is not None), traverse=False, pure=True)
    name = "ecc-betti-" + dask.base.tokenize(image, mask, betti.key)
    counts = image.numblocks[lead:]
    edges = [np.cumsum([0, *lengths]).tolist() for lengths in image.chunks[lead:]]
    tasks: Graph = {}

    def join(images: tuple[int, ...], box: Box) -> tuple[Any, ...]:
        """Add the tasks of a box of blocks, and return the key of its pieces."""
        key = (f"{name}-box", *images, *itertools.chain(*box))
        if cut := halves(box, edges):
            axis, low, high = cut
            tasks[key] = (Betti.joined, betti.key, join(images, low), join(images, high), axis)
            return key
        place = tuple(first for first, _ in box)
        block = (image.name, *images, *place)
        shown = None if mask is None else (mask.name, *images, *place)
        tasks[key] = (Betti.pieces, betti.key, block, shown, open_sides(place, counts))
        return key

    for images in itertools.product(*(np.arange(len(n)).tolist() for n in batch)):
        lengths = tuple(chunks[i] for chunks, i in zip(batch, images, strict=True))
        whole = join(images, tuple((0, n) for n in counts))
        tasks[name, *images, 0, 0] = (Betti.numbers, betti.key, whole, lengths)
    inputs = [image, betti] if mask is None else [image, mask, betti]
    graph = graphs.HighLevelGraph.from_collections(name, tasks, dependencies=inputs)
    return da.Array(graph, name, (*batch, (ndim,), (at.size,)), meta=meta)
