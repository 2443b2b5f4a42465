"""Betti and component curves of dask arrays: tasks for blocks, and for pairs of joined boxes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import Request
from ecc_core._blocks.betti import Betti, Box, Components, LastingBetti, halves, open_sides
from ecc_core._blocks.planes import Array
from ecc_core._dask.arguments import lazy_request
from ecc_core._dask.graph import Graph, da, dask, graphs
from ecc_core._request.filtration import Filtration, check_spacing
from ecc_core.results import BettiCurves, ComponentCurves, curve_facts


def whole_betti_curves(
    image: Any, thresholds: ArrayLike, least: float, **options: Any
) -> BettiCurves:
    """Return the result of :func:`ecc_core.betti_curves` for a dask array, not yet computed."""
    request = lazy_request(image, thresholds, **options)
    at = request.thresholds()
    given = _given(request, at)
    values = _values(request, LastingBetti(*given, least=least) if least else Betti(*given))
    return BettiCurves(at, values, **curve_facts(request.filtration))


def whole_component_curves(
    image: Any, thresholds: ArrayLike, spacing: ArrayLike | None, **options: Any
) -> ComponentCurves:
    """Return the result of :func:`ecc_core.component_curves` for a dask array."""
    request = lazy_request(image, thresholds, **options)
    at = request.thresholds()
    values = _values(request, Components(*_given(request, at)))
    ndim, facts = request.filtration.ndim, curve_facts(request.filtration)
    steps = tuple(check_spacing(1.0 if spacing is None else spacing, ndim).tolist())
    return ComponentCurves(at, values, kept=_kept(request), spacing=steps, **facts)


def _kept(request: Request) -> tuple[Any, ...]:
    """Return the number of points of each image that are kept; 0-d arrays if it is not known."""
    images, shown, spatial = request.images, request.mask, request.geometry.spatial
    count = math.prod(request.geometry.batch)
    if images.dtype.kind == "f" and request.filtration.nan == "omit":
        shown = ~np.isnan(images) if shown is None else shown & ~np.isnan(images)
    if shown is None:
        return (math.prod(spatial),) * count
    axes = tuple(range(shown.ndim - len(spatial), shown.ndim))
    return tuple(shown.sum(axis=axes).reshape(count))


def _given(request: Request, at: Array) -> tuple[Array, Filtration, np.dtype[Any], bool]:
    """Return what quantities are made of."""
    dtype = request.images.dtype.newbyteorder("=")
    return at, request.filtration, dtype, request.mask is not None


def _values(request: Request, quantity: Betti) -> Any:
    """Return the numbers as a dask array of shape batch + (rows, n)."""
    image, mask, at = request.images, request.mask, quantity.thresholds
    rows, lead = request.geometry.ndim + quantity.more, len(request.geometry.batch)
    getattr(origin_of(image._meta).betti_numbers(), quantity.name)  # raises for CuPy arrays
    batch, meta = image.chunks[:lead], np.empty((0,) * (lead + 2), np.int64)
    if image.size == 0:
        return da.zeros((*image.shape[:lead], rows, at.size), np.int64, chunks=-1)
    betti = dask.delayed(quantity, traverse=False, pure=True)
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
    return da.Array(graph, name, (*batch, (rows,), (at.size,)), meta=meta)
