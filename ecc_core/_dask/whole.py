"""What the public functions of arrays give for dask arrays."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._arrays import given_on_host
from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import Request
from ecc_core._blocks.betti import Betti, Box, Components, LastingBetti, halves, open_sides
from ecc_core._blocks.quantities import Curve, Functionals, Quantity, Surface, coefficients_of
from ecc_core._blocks.work import RegionT, labels_of, rows_of, values_of
from ecc_core._dask import graph
from ecc_core._dask.arguments import (
    Axes,
    check_dask_image,
    check_no_workers,
    chunked_mask,
    given_thresholds,
    lazy_request,
    paired,
    split_masked_chunks,
)
from ecc_core._dask.graph import Graph, da, dask, graphs
from ecc_core._request.filtration import check_spacing, filtrations_of
from ecc_core._request.image import all_axes, check_ids, geometry_by_axis
from ecc_core.results import (
    BettiCurves,
    ComponentCurves,
    EulerCurve,
    EulerSurface,
    MinkowskiCurves,
    curve_facts,
    surface_facts,
)


def whole_curve(image: Any, thresholds: ArrayLike, **options: Any) -> EulerCurve:
    """The lazy result of :func:`ecc_core.euler_curve` for a dask array."""
    request = lazy_request(image, thresholds, **options)
    at = request.thresholds()
    curve = Curve(at, replace(request.filtration, direction=None))  # the image has the term
    values = graph.sums_of_blocks(curve, request.images, request.mask)
    return EulerCurve(at, values, **curve_facts(request.filtration))


def whole_surface(
    first: Any,
    second: Any,
    thresholds: tuple[ArrayLike, ArrayLike],
    ranges: tuple[Any, Any],
    *,
    connectivity: int | None,
    superlevel: Any,
    mask: Any | None,
    nan: str,
    axis: Axes,
    workers: int | None,
) -> EulerSurface:
    """Return the lazy result of :func:`ecc_core.euler_surface` if an image is a dask array."""
    check_no_workers(workers)
    first, second = paired(first, second)
    geometry = geometry_by_axis(first.shape, axis, "first")
    filtrations = filtrations_of(geometry.ndim, connectivity, superlevel, nan)
    names = ("thresholds_first", "thresholds_second")
    a, b = map(given_thresholds, thresholds, ranges, names)
    first, mask = split_masked_chunks(first, mask, geometry)
    second, mask = split_masked_chunks(second, mask, geometry)
    arrays = (first, second) if mask is None else (first, second, mask)
    ordered = (array.transpose(geometry.order) for array in arrays)
    values = graph.sums_of_blocks(Surface((a, b), *filtrations), *ordered)
    shape = (*geometry.batch, a.size, b.size)
    return EulerSurface(a, b, values.reshape(shape), **surface_facts(filtrations))


def whole_regions(
    kind: Callable[..., RegionT],
    computed: type[Quantity],
    image: Any,
    labels: Any,
    thresholds: ArrayLike,
    *,
    ids: ArrayLike | None = None,
    spacing: Any = None,
    estimator: str = "exact",
    **options: Any,
) -> RegionT:
    """The lazy result of a quantity for the regions of dask arrays."""
    request = lazy_request(image, thresholds, labels=labels, **options)
    lengths = estimator, given_on_host(spacing)
    quantity = computed.of(request.thresholds(), request.filtration, *lengths)
    dtype = request.labels.dtype.newbyteorder("=")
    wanted = None if ids is None else check_ids(ids, dtype)
    table = graph.sums_of_blocks(quantity, request.images, request.labels, regions=True)
    meta, (length, (size,)) = graph.counts_like(table, 2), table.chunks
    if wanted is not None:
        found, chunks = wanted, ((wanted.size,), (size - 1,))
        rows = table.map_blocks(rows_of, ids=wanted, chunks=chunks, meta=meta)
    else:
        one_axis = np.empty_like(meta, shape=(0,), dtype=dtype)
        order, chunks = {"order": dtype}, (length, (size - 1,))
        found = table.map_blocks(labels_of, **order, chunks=(length,), drop_axis=1, meta=one_axis)
        rows = table.map_blocks(values_of, **order, chunks=chunks, meta=meta)
    return kind(found, quantity.thresholds, _curves(rows, quantity), **quantity.facts)


def whole_coefficients(image: Any, **options: Any) -> Any:
    """The lazy array of :func:`ecc_core.euler_coefficients` for a dask array."""
    request = lazy_request(image, axis=all_axes(image), **options)
    image, mask = request.images, request.mask
    if image.size == 0:
        return da.zeros_like(image, dtype=np.int8)
    return da.map_overlap(  # they depend on the nearest neighbours only
        coefficients_of,
        *((image,) if mask is None else (image, mask)),
        depth=1,
        boundary="none",
        quantity=dask.delayed(Curve(np.empty(0), request.filtration), traverse=False, pure=True),
        dtype=np.int8,
        meta=np.empty_like(image._meta, dtype=np.int8),
    )


def whole_minkowski(
    image: Any, thresholds: Any, *, spacing: Any, estimator: Any, **options: Any
) -> MinkowskiCurves:
    """Return the lazy result of :func:`ecc_core.minkowski_curves` for a dask array."""
    request = lazy_request(image, thresholds, **options)
    lengths = estimator, given_on_host(spacing)
    cells = Functionals.of(request.thresholds(), request.filtration, *lengths)
    counts = graph.sums_of_blocks(cells, request.images, request.mask)
    window = cells.estimator.size(request.geometry.spatial, request.filtration)
    return MinkowskiCurves(
        cells.thresholds,
        _curves(counts, cells),
        **cells.facts,
        window=None if request.mask is not None else window,
    )


def _curves(sums: Any, quantity: Quantity) -> Any:
    """Return values of results (..., k, n) or (..., n) from a dask array of sums (..., size)."""
    like = quantity.curves(np.zeros((0,) * (sums.ndim - 1) + (quantity.size,), np.int64))
    if like.ndim == sums.ndim:
        return sums
    return sums.map_blocks(
        quantity.curves,
        new_axis=sums.ndim,
        chunks=(*sums.chunks[:-1], *((n,) for n in like.shape[-2:])),
        meta=like[..., :0, :0],
    )


def whole_betti_curves(
    image: Any, thresholds: ArrayLike, least: float, **options: Any
) -> BettiCurves:
    """Return the result of :func:`ecc_core.betti_curves` for a dask array, not yet computed."""
    request = lazy_request(image, thresholds, **options)
    at = request.thresholds()
    kind = partial(LastingBetti, least=least) if least else Betti
    return BettiCurves(at, _joined(request, at, kind), **curve_facts(request.filtration))


def whole_component_curves(
    image: Any,
    thresholds: ArrayLike,
    spacing: ArrayLike | None,
    inlet: Any = None,
    outlet: Any = None,
    **options: Any,
) -> ComponentCurves:
    """Return the result of :func:`ecc_core.component_curves` for a dask array."""
    request = lazy_request(image, thresholds, **options)
    at, geometry = request.thresholds(), request.geometry
    given = check_dask_image(image)
    ends = [
        None if end is None else chunked_mask(end, given, geometry, name).transpose(geometry.order)
        for name, end in (("inlet", inlet), ("outlet", outlet))
    ]
    one_pair = inlet is not None and outlet is not None
    values = _joined(request, at, partial(Components, one_pair=one_pair), ends)
    ndim, facts = request.filtration.ndim, curve_facts(request.filtration)
    steps = tuple(check_spacing(1.0 if spacing is None else spacing, ndim).tolist())
    return ComponentCurves(at, values, kept=request.kept(), spacing=steps, **facts)


def _joined(
    request: Request, at: NDArray[Any], kind: Callable[..., Betti], ends: Sequence[Any] = ()
) -> Any:
    """Return the numbers of a kind of curves as a dask array of shape batch + (rows, n)."""
    image, mask = request.images, request.mask
    dtype = image.dtype.newbyteorder("=")
    quantity = kind(at, request.filtration, dtype, mask is not None)
    rows, lead = quantity.rows, len(request.geometry.batch)
    getattr(origin_of(image._meta).betti_numbers(), quantity.name)  # raises for CuPy arrays
    batch, meta = image.chunks[:lead], np.empty((0,) * (lead + 2), np.int64)
    if image.size == 0:
        return da.zeros((*image.shape[:lead], rows, at.size), np.int64, chunks=-1)
    betti = dask.delayed(quantity, traverse=False, pure=True)
    name = "ecc-betti-" + dask.base.tokenize(image, mask, *ends, betti.key)
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
        block, shown, *own = (
            None if array is None else (array.name, *images, *place)
            for array in (image, mask, *ends)
        )
        tasks[key] = (Betti.pieces, betti.key, block, shown, open_sides(place, counts), *own)
        return key

    for images in itertools.product(*(np.arange(len(n)).tolist() for n in batch)):
        lengths = tuple(chunks[i] for chunks, i in zip(batch, images, strict=True))
        whole = join(images, tuple((0, n) for n in counts))
        tasks[name, *images, 0, 0] = (Betti.numbers, betti.key, whole, lengths)
    inputs = [one for one in (image, mask, *ends, betti) if one is not None]
    layers = graphs.HighLevelGraph.from_collections(name, tasks, dependencies=inputs)
    return da.Array(layers, name, (*batch, (rows,), (at.size,)), meta=meta)
