"""Betti curves and persistence pairs on the CPU, from forests over the minima of an image."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import Kind, complete, kind_of, kinds_of
from ecc_core._backends.cpu import curves
from ecc_core._backends.cpu.betti.blocks import Field, Staged, grid_of
from ecc_core._backends.cpu.betti.cells import tunnel_pairs
from ecc_core._backends.cpu.betti.forest import Forest, Loops, grow_block
from ecc_core._backends.cpu.betti.memory import check_memory
from ecc_core._backends.cpu.betti.pair_choice import (
    absent,
    in_order,
    pairs_of_interest,
    pairs_that_last,
)
from ecc_core._backends.cpu.betti.planar import planar_pairs
from ecc_core._backends.cpu.betti.torus import periodic_pairs
from ecc_core._backends.cpu.betti.volume import Volume, empty_volume
from ecc_core._backends.cpu.encoders.plans import Plan, coefficient_plan, curve_plans
from ecc_core._backends.cpu.order import distinct, narrowed
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.scans import stacks
from ecc_core._backends.cpu.scans.values import entered
from ecc_core._backends.cpu.sources import Block, Source, memory_order
from ecc_core._request.filtration import Filtration
from ecc_core._request.masks import as_booleans
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]
Values = NDArray[np.int64]

BLOCK = (64, 96, 192)
"""Points along each axis; a few slices of a block fit in the second-level cache."""
BLOCK_2D = (1, 256, 1024)
SHORT = 64  # Rows of fewer points do not fill vectors.


def betti_curves(
    image: Array,
    thresholds: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
    least: float = 0,
) -> Values:
    """Return the Betti numbers of each image at sorted thresholds, (batch, d, n) int64.

    They are (batch, d + 1, n) for images that are periodic along all axes. Only classes that last
    for at least `least` count.
    """
    count = image.shape[0]
    classes = filtration.classes
    masked = mask is not None
    result = np.zeros((count, classes, thresholds.size), np.int64)
    if result.size == 0 or image.size == 0:
        return result
    periodic = any(filtration.boundary.wraps)
    paired = least > 0 or periodic  # Classes are then counted by births and deaths.
    known = [k for k in range(classes) if least > 0 or k != 1]
    kinds = kinds_of(filtration)
    plans = rank_plans(
        image.dtype, thresholds, filtration, masked=masked and not paired, points=image[0].size
    )
    bins = 1 if paired else plans[-1].top + 1
    if least == 0:  # One of the Betti numbers follows from the Euler characteristic.
        euler = curves.curve(image, thresholds, filtration, mask=mask, workers=workers)

    def join(queue: Iterator[tuple[Forest, Values]]) -> None:
        for forest, histogram in queue:
            forest.join(histogram)

    def count_pairs(i: int) -> None:
        own = slice(i, i + 1)
        shown = None if mask is None else mask[own]
        flat = image[i].reshape(-1)
        found = lasting_points(image[own], known, filtration, least, mask=shown, workers=alone)
        for k, (births, deaths) in zip(known, found, strict=True):
            result[i, k] = entered(flat[births], plans[-1]) - entered(flat[deaths], plans[-1])
        if least == 0:
            result[i, 1] = (-1) ** np.arange(classes) @ result[i] - euler[i]

    def each(queue: Iterator[int]) -> None:
        for i in queue:
            if paired:
                count_pairs(i)
                continue
            order = _order_of_axes(image[i])
            shown = None if mask is None else mask[i].transpose(order)
            field = laid_out(image[i].transpose(order), shown)
            forests, histograms = grow(
                field, kinds, plans=plans, bins=bins, nan=filtration.nan, workers=alone
            )
            grown = list(zip(forests, histograms, strict=True))
            share(grown, join, worker_count(alone, image[i].size, 1))
            ends = [cumulate(h, plans[-1], k) for h, k in zip(histograms, kinds, strict=True)]
            result[i] = complete(ends, kinds, euler[i], filtration.ndim)

    together = 1 if count == 1 else worker_count(workers, image.size, bins)
    alone = workers if together == 1 else 1
    share(range(count), each, together)
    return result


def _order_of_axes(image: Array) -> list[int]:
    """Return the axes in the order in memory, or by length if rows would be short.

    The order of axes does not change Betti numbers.
    """
    order, _ = memory_order(image)
    if image.shape[order[-1]] < SHORT:
        order.sort(key=lambda axis: image.shape[axis])
    return order


def rank_plans(
    dtype: np.dtype[Any],
    thresholds: Array,
    filtration: Filtration,
    *,
    masked: bool,
    points: int = 0,
) -> list[Plan]:
    """Return the plans whose keys are ranks, which are comparable whatever plan a block fits."""
    plans = curve_plans(
        dtype.newbyteorder("="),
        thresholds,
        filtration.superlevel,
        False,
        masked=masked,
        points=points,
    )
    return [plan for plan in plans if plan.least == 0]


def laid_out(image: Array, mask: Array | None) -> Field:
    lead = (None,) * (3 - image.ndim)
    shown = None if mask is None else Source(mask[lead], "mask")
    return Field(Source(image[lead]), shown, image.ndim)


def grow(
    field: Field,
    kinds: list[Kind],
    plans: list[Plan],
    bins: int,
    nan: str,
    workers: int | None,
    open_sides: Sequence[tuple[int, int]] = (),
    *,
    volume: Volume | None = None,
    framed: bool | None = None,
) -> tuple[list[Forest], list[Values]]:
    """Return the forests of an image, not yet joined, and their histograms.

    `volume` and `framed` are those of :class:`Forest`.
    """
    shape = field.source.shape
    slices, rows, columns = BLOCK if field.ndim == 3 else BLOCK_2D
    depth = min(slices, shape[0])
    height = min(rows, shape[1])
    step = depth, height, slices * rows * columns // (depth * height)
    grid = grid_of(shape, step, tuple(open_sides))
    forests = [Forest(grid, kind, volume, framed) for kind in kinds]

    def work(queue: Iterator[Block]) -> list[Values]:
        histograms = [np.zeros(bins, np.int64) for _ in kinds]
        for block in queue:
            staged = Staged(block, field)
            for plan in plans:
                keys, _, unfit = staged.load(plan, nan)
                if not unfit:
                    break
            reverse = False
            for forest, histogram in zip(forests, histograms, strict=True):
                if forest.kind.complement != reverse:
                    np.subtract(plan.key_dtype.type(plan.top), keys, out=keys)
                    reverse = not reverse
                # Reversed keys of all blocks are counted from the top of the last plan.
                shift = plans[-1].top - plan.top if reverse else 0
                forest.parts.append(
                    grow_block(forest, histogram[shift:], shift=shift, keys=keys, staged=staged)
                )
        return histograms

    counted = share(grid.blocks, work, worker_count(workers, math.prod(shape), max(bins, 1)))
    return forests, [np.sum(parts, axis=0) for parts in zip(*counted, strict=True)]


def cumulate(histogram: Values, plan: Plan, kind: Kind | None = None) -> Values:
    """Count what has entered at each threshold; for the complement, the frame is left out."""
    complement = kind is not None and kind.complement
    counts = np.zeros((1, plan.entered.size), np.int64)
    stacks.cumulate(
        histogram[None], None, complement, -1 if complement else 1, plan.entered, counts
    )
    values: Values = counts[0]
    return values


def lasting_points(
    image: Array, dimensions: Sequence[int], filtration: Filtration, least: float, **options: Any
) -> Iterator[tuple[Array, Array]]:
    """Yield the points at which classes that last are born and die, for each dimension."""
    options |= {"least": least, "ordered": False}
    for births, deaths in persistence_pairs(image, dimensions, filtration, **options):
        yield births, deaths[deaths >= 0]


def exact_betti_curves(
    image: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
    least: float = 0,
) -> tuple[Array, Values]:
    """Return the levels at which Betti numbers of an image (batch of 1) change, and the numbers."""
    image = as_booleans(image) if image.dtype.kind == "b" else image
    options: dict[str, Any] = {"mask": mask, "workers": workers}
    levels = []
    dimensions = list(range(filtration.classes))
    if least == 0:  # One number changes only where the Euler characteristic or another one does.
        levels.append(curves.exact_curve(image, filtration, **options)[0])
        dimensions = [k for k in dimensions if k != 1 or filtration.ndim == 2]
    for points in lasting_points(image, dimensions, filtration, least, **options):
        levels += [image.reshape(-1)[own] for own in points]
    found, _ = distinct(np.concatenate(levels).astype(image.dtype.newbyteorder("=")))
    numbers = betti_curves(image, found, filtration, **options, least=least)[0]
    of_entry = slice(None, None, -1 if filtration.superlevel else 1)
    changed = np.diff(numbers[:, of_entry], prepend=0, axis=1)[:, of_entry].any(axis=0)
    return found[changed], numbers[:, changed]


def persistence_pairs(
    image: Array,
    dimensions: Sequence[int],
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
    least: float = 0,
    short: bool = False,
    ordered: bool = True,
) -> list[tuple[Values, Values]]:
    """Return the points at which classes of an image (batch of 1) are born and die.

    There is a pair of arrays for each dimension, by birth unless the order is of no interest.
    Points are numbered in C order; the death of a class that does not die is -1. Classes that die
    at the value at which they are born are among them only if `short`, and those that last for less
    than `least` are not.
    """
    values = image[0]
    shown = None if mask is None else mask[0]
    if values.size == 0:
        return [(np.empty(0, np.int64), np.empty(0, np.int64))] * len(dimensions)
    threads = worker_count(workers, values.size, 1)
    check_memory(
        values.shape, values.dtype, dimensions=dimensions, filtration=filtration, threads=threads
    )
    periodic = any(filtration.boundary.wraps)
    if filtration.ndim < 3 and not periodic:
        field = laid_out(narrowed(values, shown is not None), shown)
        planar = planar_pairs(field, dimensions, filtration, short=short)
        return [pairs_that_last(values.reshape(-1), pairs, least) for pairs in planar]
    flat = values.reshape(-1)
    known = None if shown is None else shown.reshape(-1)
    if periodic:
        listed = all_periodic_pairs(values, known, dimensions, filtration)
    else:
        listed = volume_pairs(
            values, shown, dimensions=dimensions, filtration=filtration, workers=workers
        )
    found = {}
    for k, births, deaths in listed:  # Short pairs are dropped before the next ones are found.
        found[k] = pairs_of_interest(
            flat, known, (births, deaths), threads, short=short, least=least
        )
        del births, deaths

    def order(queue: Iterator[int]) -> None:
        for k in queue:
            found[k] = in_order(flat, found[k], filtration.superlevel)

    if ordered:
        share(list(found), order, threads)
    return [found[k] for k in dimensions]


def all_periodic_pairs(
    values: Array, known: Array | None, dimensions: Sequence[int], filtration: Filtration
) -> Iterator[tuple[int, Array, Array]]:
    """Yield each dimension with where its classes begin and end, in any order."""
    never = absent(values.reshape(-1), known)
    hidden = np.zeros_like(never) if known is None else ~known
    if filtration.nan == "raise" and (never & ~hidden).any():
        raise ValueError(NAN_MESSAGE)
    for k in dimensions:
        yield k, *periodic_pairs(values, never, k, filtration)


def forest_pairs(
    values: Array,
    shown: Array | None,
    kind: Kind,
    filtration: Filtration,
    workers: int | None,
    volume: Volume | None,
) -> tuple[Values, Values, Loops]:
    """Return where components, or those of the complement, begin and end, and loops, in C order.

    Loops of the complement belong to the flipped image: points enter in the opposite order there,
    equal ones too.
    """
    if kind.complement:
        values = np.flip(values)
        shown = None if shown is None else np.flip(shown)
    plan = order_plan(values.dtype, filtration, shown is not None)
    field = laid_out(values, shown)
    (forest,), (histogram,) = grow(
        field, [kind], plans=[plan], bins=0, nan=filtration.nan, workers=workers, volume=volume
    )
    pairs, roots, loops = forest.join(histogram)
    if kind.complement:
        deaths, births = values.size - 1 - pairs.T
        return births, deaths, loops
    births = np.concatenate([pairs[:, 0], roots])
    return births, np.concatenate([pairs[:, 1], np.full(roots.size, -1)]), loops


def order_plan(dtype: np.dtype[Any], filtration: Filtration, masked: bool) -> Plan:
    """Return a plan for keys in the order in which points enter."""
    return coefficient_plan(dtype.newbyteorder("="), filtration.superlevel, False, masked)


def volume_pairs(
    values: Array,
    shown: Array | None,
    dimensions: Sequence[int],
    filtration: Filtration,
    workers: int | None,
) -> Iterator[tuple[int, Array, Array]]:
    """Yield each dimension with where the classes of a volume begin and end, in any order."""
    values = narrowed(values, shown is not None)
    volume = empty_volume(values.shape) if 1 in dimensions else None
    loops: dict[int, Loops] = {}
    for k in (0, 2):
        if k not in dimensions and volume is None:
            continue
        kind = kind_of(filtration, complement=k > 0)
        births, deaths, loops[kind.connectivity] = forest_pairs(
            values, shown, kind=kind, filtration=filtration, workers=workers, volume=volume
        )
        if k in dimensions:
            yield k, births, deaths
        del births, deaths
    if volume is not None:
        plan = order_plan(values.dtype, filtration, shown is not None)
        threads = worker_count(workers, values.size, 1)
        yield (
            1,
            *tunnel_pairs(
                values,
                shown,
                volume=volume,
                loops=loops,
                plan=plan,
                cubes=filtration.cubes,
                workers=threads,
            ),
        )
