"""Errors of the persistence pairs of images, and their gradients, on a device.

They are those of :mod:`ecc_core.nn._pairs`, whose chains of operators are single kernels here.
"""

import math
from typing import Any

import cupy
import numpy as np

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda.arrays import on_host
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.kernels import Struct
from ecc_core._backends.cuda.keys import keys_beside
from ecc_core._backends.cuda.pairs import Points, pairs_of_keys
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_SHOWN_MESSAGE

BATCH = Struct("pair_errors.cu", "Batch")
CLASSES = Struct("pair_errors.cu", "Classes")
LINKS = Struct("pair_errors.cu", "Links")
THREADS = 256
MOST_BLOCKS = 128  # The most blocks of an image, whose errors are added up in the end.
CLASS_WORDS = 3  # Words of the kernels' Class.
AMOUNTS = 3  # Numbers that a class adds.
MOST_POINTS = 1 << 26
"""Points of a batch, whose classes and those of its targets are numbered by 31 bits."""


def pair_errors(
    images: Any, targets: Any, mask: Any, filtration: Filtration, least: float
) -> tuple[Any, Any]:
    """Return the error (batch,) of each image (batch, *spatial), and its gradient: float32.

    Images are contiguous and float32, the targets and the mask, if any, booleans of this shape.
    Batches are not empty, and have at most MOST_POINTS points.
    """
    count, *spatial = images.shape
    ndim = len(spatial)
    batch = BATCH(
        images=images.data.ptr,
        targets=targets.data.ptr,
        count=count,
        lines=math.prod(spatial[:-1]),
        side=spatial[-1],
        axes=ndim,
    )
    keys, never, nan = keys_beside(images, targets, mask)
    pairs = pairs_of_keys(keys, never, range(ndim), filtration)
    if on_host(nan)[0]:
        raise ValueError(NAN_SHOWN_MESSAGE)
    size = sum(len(births) for births, _ in pairs)
    heads = cupy.full(images.size, -1, np.int32)
    amounts = cupy.empty((size, AMOUNTS), np.float64)
    following = cupy.empty(2 * size, np.int32)
    links = LINKS(amounts=amounts.data.ptr, next=following.data.ptr, heads=heads.data.ptr)
    if size:
        _link(batch, links, pairs=pairs, groups=count * ndim, least=least)
    return _sums(batch, links, images.shape)


def _link(batch: Any, links: Any, pairs: list[Points], groups: int, least: float) -> None:
    """Link the contributions of classes, given their points for each dimension."""
    sizes = [len(births) for births, _ in pairs]
    size = sum(sizes)
    classes = cupy.empty((size, CLASS_WORDS), np.int32)
    entries = cupy.empty(size, np.uint64)
    numbers = cupy.zeros(groups, np.uint32)
    known = {
        "classes": classes.data.ptr,
        "entries": entries.data.ptr,
        "numbers": numbers.data.ptr,
        "size": size,
    }
    described = CLASSES(**known)
    first = 0
    for dimension, (births, deaths) in enumerate(pairs):
        threads = sizes[dimension]
        if threads:
            where = np.uint32(threads), np.uint32(first), np.int32(dimension)
            _run("describe_classes", threads, batch, described, births, deaths, *where)
        first += threads
    order = cupy.argsort(entries)
    known["order"] = order.data.ptr
    group_of = cupy.empty(size, np.uint32)
    _run("list_groups", size, CLASSES(**known), group_of)
    by_group = cupy.argsort(group_of)
    ranked = CLASSES(**known, by_group=by_group.data.ptr)
    _run("link_amounts", size, batch, ranked, np.float64(least), links)


def _sums(batch: Any, links: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return the sums of what is linked: for each image, and for each point."""
    count = shape[0]
    blocks = min(ceil_div(math.prod(shape[1:]), THREADS), MOST_BLOCKS)
    slopes = cupy.empty(shape, np.float32)
    errors = cupy.empty(count * blocks, np.float64)
    totals = cupy.empty(count, np.float32)
    _run("add_amounts", errors.size * THREADS, batch, links, np.int32(blocks), slopes, errors)
    _run("total_errors", count * THREADS, errors, np.int32(blocks), totals)
    return totals, slopes


def _run(name: str, threads: int, *arguments: Any) -> None:
    """Run a kernel with so many threads, in whole blocks."""
    grid = (ceil_div(threads, THREADS),)
    plan_call(
        "pair_errors", name, macros={}, grid=grid, threads=THREADS, arguments=arguments
    ).launch()
