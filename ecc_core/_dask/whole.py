"""The public functions of images for dask arrays."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import Request, shown_in_both
from ecc_core._blocks.boxes import BoxValues
from ecc_core._blocks.glued import BoxPieces
from ecc_core._blocks.work import labels_of, rows_of, values_of
from ecc_core._dask import graph
from ecc_core._dask.arguments import (
    check_dask_image,
    chunked_mask,
    lazy_request,
    paired,
)
from ecc_core._dask.graph import Graph, Task, add_halves, da, dask, graphs
from ecc_core._dask.lasting import lasting_curves
from ecc_core._dask.pairs import VOLUME
from ecc_core._partition import Index, Partition
from ecc_core._request.filtration import check_spacing
from ecc_core._request.labels import check_ids
from ecc_core._request.options import ImageOptions
from ecc_core.quantities._base import CurveQuantity, NoOptions, OwnT
from ecc_core.quantities.betti import BETTI, BettiOptions
from ecc_core.quantities.components import COMPONENTS, ComponentOptions
from ecc_core.quantities.euler import EULER, CurveValues, coefficients_of
from ecc_core.quantities.minkowski import MINKOWSKI, MinkowskiOptions
from ecc_core.quantities.surface import SurfaceValues
from ecc_core.quantities.windows import (
    WindowCurve,
    WindowMeasures,
    closed_filtration,
    joined_tables,
)
from ecc_core.results import (
    BettiCurves,
    ComponentCurves,
    EulerCurve,
    EulerSurface,
    MinkowskiCurves,
    curve_facts,
    surface_facts,
)


def whole_curve(image: Any, thresholds: ArrayLike, options: ImageOptions) -> EulerCurve:
    """Return the lazy result of :func:`ecc_core.euler_curve` for a dask array."""
    request = lazy_request(image, thresholds, options)
    at = request.thresholds()
    facts = curve_facts(request.filtration)
    if request.window is not None:
        return EulerCurve(at, _window_curves(request, at), **facts)
    # The directional term has been added to the image already.
    undirected = replace(request.filtration, direction=None)
    curve = EULER.boxes(at, undirected, NoOptions())
    values = graph.sums_of_blocks(curve, request.images, request.mask)
    return EulerCurve(at, values, **facts)


def whole_surface(
    first: Any,
    second: Any,
    thresholds: tuple[ArrayLike, ArrayLike],
    options: tuple[ImageOptions, ImageOptions],
) -> EulerSurface:
    """Return the lazy result of :func:`ecc_core.euler_surface` if an image is a dask array."""
    first, second = paired(first, second)
    a = lazy_request(first, thresholds[0], options[0], name="first")
    of_second = options[1]._replace(axis=a.geometry.axes)
    b = lazy_request(second, thresholds[1], of_second, name="second")
    at = (a.thresholds(), b.thresholds())
    filtrations = (a.filtration, b.filtration)
    surface = SurfaceValues(at, *filtrations)
    sums = graph.sums_of_blocks(surface, a.images, b.images, shown_in_both(a, b))
    return EulerSurface(*at, _curves(sums, surface), **surface_facts(filtrations))


def whole_regions(
    quantity: CurveQuantity[OwnT],
    image: Any,
    labels: Any,
    thresholds: ArrayLike,
    options: ImageOptions,
    own: OwnT,
    *,
    ids: ArrayLike | None = None,
) -> Any:
    """Return the lazy result of a quantity for the regions of dask arrays."""
    request = lazy_request(image, thresholds, options, labels=labels)
    at = request.thresholds()
    filtration = request.filtration
    boxes = quantity.boxes(at, filtration, own)
    if filtration.boundary.is_window:
        return _regions_as_windows(quantity, request, own, ids)
    dtype = request.labels.dtype.newbyteorder("=")
    wanted = None if ids is None else check_ids(ids, dtype)
    table = graph.sums_of_blocks(boxes, request.images, request.labels, regions=True)
    meta = graph.counts_like(table, 2)
    length, (size,) = table.chunks
    if wanted is not None:
        found = wanted
        chunks = ((wanted.size,), (size - 1,))
        rows = table.map_blocks(rows_of, ids=wanted, chunks=chunks, meta=meta)
    else:
        one_axis = np.empty_like(meta, shape=(0,), dtype=dtype)
        order = {"order": dtype}
        chunks = (length, (size - 1,))
        found = table.map_blocks(labels_of, **order, chunks=(length,), drop_axis=1, meta=one_axis)
        rows = table.map_blocks(values_of, **order, chunks=chunks, meta=meta)
    facts = quantity.facts(filtration, own)
    return quantity.region_result(found, at, _curves(rows, boxes), **facts)


def _regions_as_windows(
    quantity: CurveQuantity[OwnT], request: Request, own: OwnT, ids: Any
) -> Any:
    """Return the lazy result of a quantity for regions that are windows of the image."""
    at = request.thresholds()
    filtration = request.filtration
    curve = WindowCurve(at, closed_filtration(filtration))
    dtype = request.labels.dtype.newbyteorder("=")
    wanted = None if ids is None else check_ids(ids, dtype)
    given = request.images, request.labels, request.mask
    table = graph.sums_of_blocks(curve, *given, regions=True)
    facts = quantity.facts(filtration, own)
    inside = quantity.window_boxes(at, filtration, own)
    if inside is not None:
        cells = graph.sums_of_blocks(inside, *given, regions=True)
        chunks = (table.chunks[0], (1 + curve.size + inside.size,))
        table = da.map_blocks(joined_tables, table, cells, dtype=np.int64, chunks=chunks)
    size = table.shape[1] - 1
    if wanted is not None:
        found = wanted
        length = (wanted.size,)
        rows = table.map_blocks(rows_of, ids=wanted, chunks=(length, (size,)), dtype=np.int64)
    else:
        (length,) = table.chunks[:1]
        order = {"order": dtype}
        none = np.empty(0, dtype)
        found = table.map_blocks(labels_of, **order, chunks=(length,), drop_axis=1, meta=none)
        rows = table.map_blocks(values_of, **order, chunks=(length, (size,)), dtype=np.int64)
    if inside is None:
        return quantity.region_result(found, at, rows, **facts)
    shape = (length, (inside.rows,), (at.size,))
    values = rows.map_blocks(
        _functionals, computed=inside, chunks=shape, new_axis=2, dtype=np.float64
    )
    sizes = rows.map_blocks(inside.sizes, chunks=(length,), drop_axis=1, dtype=np.float64)
    return quantity.region_result(found, at, values, **facts, window=sizes)


def _functionals(rows: Any, computed: WindowMeasures) -> Any:
    """Return functionals (ids, k, n) of a joined table without its ids."""
    n = computed.thresholds.size
    return computed.with_euler(rows[:, n:], rows[:, :n])


def _window_curves(request: Request, at: Any) -> Any:
    """Return the curves of the windows of dask arrays, (*batch, n)."""
    curve = WindowCurve(at, closed_filtration(request.filtration))
    return graph.sums_of_blocks(curve, request.images, request.window, request.mask)


def whole_coefficients(image: Any, options: ImageOptions) -> Any:
    """Return the lazy array of :func:`ecc_core.euler_coefficients` for a dask array."""
    request = lazy_request(image, (), options)
    image = request.images
    mask = request.mask
    if image.size == 0:
        return da.zeros_like(image, dtype=np.int8)
    arrays = [image] if mask is None else [image, mask]
    curve = CurveValues(np.empty(0), request.filtration)
    # A coefficient depends on the nearest neighbours of its point only, so the depth is 1.
    return da.map_overlap(
        coefficients_of,
        *arrays,
        depth=1,
        boundary="none",
        computed=dask.delayed(curve, traverse=False, pure=True),
        dtype=np.int8,
        meta=np.empty_like(image._meta, dtype=np.int8),
    )


def whole_minkowski(
    image: Any, thresholds: Any, options: ImageOptions, own: MinkowskiOptions
) -> MinkowskiCurves:
    """Return the lazy result of :func:`ecc_core.minkowski_curves` for a dask array."""
    request = lazy_request(image, thresholds, options)
    at = request.thresholds()
    filtration = request.filtration
    facts = MINKOWSKI.facts(filtration, own)
    if request.window is not None:
        inside = MINKOWSKI.window_boxes(at, filtration, own)
        sums = graph.sums_of_blocks(inside, request.images, request.window, request.mask)
        sizes = _sizes(sums, inside)
        euler = _window_curves(request, at)[..., None, :].astype(np.float64)
        values = da.concatenate([_curves(sums, inside)[..., :-1, :], euler], axis=-2)
        return MinkowskiCurves(at, values.rechunk({-2: -1}), **facts, window=sizes)
    cells = MINKOWSKI.boxes(at, filtration, own)
    counts = graph.sums_of_blocks(cells, request.images, request.mask)
    window = cells.estimator.size(request.geometry.spatial, filtration)
    return MinkowskiCurves(
        at,
        _curves(counts, cells),
        **facts,
        window=None if request.mask is not None else window,
    )


def _sizes(sums: Any, computed: WindowMeasures) -> Any:
    """Return the sizes of windows (...) from sums (..., size), as dask arrays."""
    return sums.map_blocks(
        computed.sizes,
        drop_axis=sums.ndim - 1,
        dtype=np.float64,
        meta=np.empty((0,) * (sums.ndim - 1)),
    )


def _curves(sums: Any, computed: BoxValues) -> Any:
    """Return curves (..., k, n) or (..., n) from sums (..., size), as dask arrays."""
    like = computed.curves(np.zeros((0,) * (sums.ndim - 1) + (computed.size,), np.int64))
    if like.ndim == sums.ndim:
        return sums
    return sums.map_blocks(
        computed.curves,
        new_axis=sums.ndim,
        chunks=(*sums.chunks[:-1], *((n,) for n in like.shape[-2:])),
        meta=like[..., :0, :0],
    )


def whole_betti_curves(
    image: Any, thresholds: ArrayLike, options: ImageOptions, own: BettiOptions
) -> BettiCurves:
    """Return the lazy result of :func:`ecc_core.betti_curves` for a dask array."""
    request = lazy_request(image, thresholds, options)
    if own.min_persistence and request.filtration.ndim == VOLUME:
        at = request.thresholds()
        values = lasting_curves(request, own.min_persistence)
    else:
        at, values = _joined(BETTI, request, own)
    return BettiCurves(at, values, **curve_facts(request.filtration))


def whole_component_curves(
    image: Any,
    thresholds: ArrayLike,
    options: ImageOptions,
    own: ComponentOptions,
) -> ComponentCurves:
    """Return the lazy result of :func:`ecc_core.component_curves` for a dask array."""
    request = lazy_request(image, thresholds, options)
    geometry = request.geometry
    given = check_dask_image(image)

    def in_chunks(name: str, end: Any) -> Any:
        if end is None:
            return None
        return chunked_mask(end, given, geometry, name).transpose(geometry.order)

    ends = [in_chunks("inlet", own.inlet), in_chunks("outlet", own.outlet)]
    at, values = _joined(COMPONENTS, request, own, ends)
    ndim = request.filtration.ndim
    facts = curve_facts(request.filtration)
    steps = tuple(check_spacing(own.spacing, ndim).tolist())
    return ComponentCurves(at, values, kept=request.kept(), spacing=steps, **facts)


def _joined(
    quantity: CurveQuantity[OwnT], request: Request, own: OwnT, ends: Sequence[Any] = ()
) -> tuple[NDArray[Any], Any]:
    """Return the thresholds and the curves, a dask array (*batch, rows, n), from joined pieces.

    `ends` are the masks of an inlet and of an outlet, or None.
    """
    image = request.images
    mask = request.mask
    at = request.thresholds()
    dtype = image.dtype.newbyteorder("=")
    pieces = quantity.boxes(at, request.filtration, own, dtype=dtype, masked=mask is not None)
    assert isinstance(pieces, BoxPieces)
    rows = pieces.rows
    lead = len(request.geometry.batch)
    pieces.of_backend(origin_of(image._meta).betti_numbers())  # This raises for CuPy arrays.
    batch = image.chunks[:lead]
    meta = np.empty((0,) * (lead + 2), np.int64)
    if image.size == 0:
        return at, da.zeros((*image.shape[:lead], rows, at.size), dtype=np.int64, chunks=-1)
    betti = dask.delayed(pieces, traverse=False, pure=True)
    name = "ecc-betti-" + dask.base.tokenize(image, mask, *ends, betti.key)
    blocks = Partition.of_blocks(image.chunks[lead:])
    tasks: Graph = {}

    def of_block(place: Index, *, images: Index) -> Task:
        block, shown, *own = (
            None if array is None else (array.name, *images, *place)
            for array in (image, mask, *ends)
        )
        return BoxPieces.pieces, betti.key, block, shown, blocks.open_sides(place), *own

    def of_halves(first: Task, second: Task, axis: int) -> Task:
        return BoxPieces.joined, betti.key, first, second, axis

    for images in itertools.product(*map(range, image.numblocks[:lead])):
        lengths = tuple(chunks[i] for chunks, i in zip(batch, images, strict=True))
        boxes = (f"{name}-box", *images)
        whole = add_halves(
            tasks,
            boxes,
            blocks,
            of_block=partial(of_block, images=images),
            of_halves=of_halves,
        )
        tasks[name, *images, 0, 0] = (BoxPieces.numbers, betti.key, whole, lengths)
    inputs = [one for one in (image, mask, *ends, betti) if one is not None]
    layers = graphs.HighLevelGraph.from_collections(name, tasks, dependencies=inputs)
    return at, da.Array(layers, name, (*batch, (rows,), (at.size,)), meta=meta)
