"""Coefficients of every point, and the curves of labelled regions."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ecc_core._backends.cuda.arrays import Adopted
from ecc_core._backends.cuda.bins import BINS, Prepared
from ecc_core._backends.cuda.compile import function, processors
from ecc_core._backends.cuda.recipe import ELEMENTS, Variant, by_value, pack
from ecc_core._backends.cuda.samples import BLOCKS, THREADS, Samples, kernel, samples_of

__all__ = ["point_coefficients", "rank_labels", "region_counts"]

# As in points.cu.
POINTS = np.dtype(
    [(name, "i8") for name in ("coefficients", "counts", "nan", "labels", "regions")]
    + [("most", "u8"), ("label_strides", "i8", 3), ("steps", "i4"), ("", "i4")]
)
COEFFICIENTS, COUNTS = range(2)
TILE = {True: (1, 256), False: (8, 32)}  # rows and columns, in images of one slice and others
RESIDENT = 3  # blocks that must fit on a multiprocessor
STEPS = (16, 128)  # slices of a block: at least, and where there are enough blocks
NARROW = 1 << 27  # points of which bins are counted in 32 bits
BEYOND = 1 << 30  # as in labels.cu
DENSE = 1 << 16  # labels that a table has at least, and a part of the samples


def point_coefficients(
    adopted: Adopted, mask: Any, variant: Variant, direction: Any = None
) -> tuple[Any, Any]:
    """Return int8 coefficients of the image's shape, and a flag on the device, set for a NaN."""
    out = cupy.empty(adopted.array.shape, np.int8)
    flag = cupy.zeros(1, np.int64)
    if out.size:
        samples = samples_of(adopted, mask, variant, None, direction, vector=False)
        points = (out.data.ptr, 0, flag.data.ptr, 0, 0, 0, (0, 0, 0))
        _launch(samples, points, np.zeros(1, f"V{BINS.itemsize}"), {"OUTPUT": COEFFICIENTS})
    return out, flag


def region_counts(
    adopted: Adopted,
    labels: Any,
    ranks: Any,
    count: int,
    variant: Variant,
    prepared: Prepared,
    direction: Any,
) -> tuple[Any, Any]:
    """Return curves of the regions of one image at the levels, and a flag that is set for a NaN.

    `ranks` has the number of each label's region, from 1 on, or 0.
    """
    bins, device = prepared.rules.levels + 1, labels.device.id
    narrow = labels.size < NARROW
    counts = cupy.zeros((count, bins), np.int32 if narrow else np.int64)
    flag = cupy.zeros(1, np.int64)
    samples = samples_of(adopted, None, variant, prepared, direction, vector=False)
    strides = (*[0] * (3 - labels.ndim), *(stride // labels.itemsize for stride in labels.strides))
    table = (labels.data.ptr, ranks.data.ptr, ranks.size - 1, strides)
    kinds = {"LABEL": ELEMENTS[labels.dtype.name], "COUNT": "int" if narrow else "long long"}
    macros = {"OUTPUT": COUNTS, **kinds}
    _launch(samples, (0, counts.data.ptr, flag.data.ptr, *table), prepared.bins, macros)
    values = cupy.empty((count, bins - 1), np.int64)
    blocks = -(-count // (THREADS // 32))
    arguments = counts, np.int64(count), np.int32(bins), values
    _labels_kernel("sum_bins", device, kinds, variant.superlevel)((blocks,), (THREADS,), arguments)
    return values, flag


def _labels_kernel(name: str, device: int, kinds: dict[str, str], superlevel: bool = False) -> Any:
    """Return a kernel of labels.cu."""
    macros = {"COUNT": "int", **kinds, "SUPER": int(superlevel), "THREADS": THREADS}
    return function("labels", name, device, tuple(macros.items()))


def _launch(samples: Samples, points: tuple[Any, ...], bins: Any, macros: dict[str, Any]) -> None:
    images, depth, height, width = samples.shape
    flat = depth == 1
    rows, columns = TILE[flat]
    tiles = images * -(-width // columns) * (1 if flat else -(-height // rows))
    slices = height if flat else depth
    wanted = -(-slices * tiles // (4 * BLOCKS * processors(samples.device)))
    steps = min(max(wanted, STEPS[0]), STEPS[1], slices)
    macros |= {"FLAT": int(flat), "BLOCKS": RESIDENT}
    found = kernel("points", "points", samples.device, samples.options, macros)
    arguments = by_value(samples.image), by_value(pack(POINTS, *points, steps, 0)), bins
    found((tiles * -(-slices // steps),), (THREADS,), arguments)


def rank_labels(labels: Any) -> tuple[Any, Any, Any]:
    """Return labels as kernels read them, the increasing ids, and each label's region number.

    Another stream may write to the labels at any time: numbers are looked up by labels that are
    compared with the size of the table in the same read. Waits for the device.
    """
    dtype = labels.dtype
    if dtype == np.bool_:
        labels = (labels.view(np.uint8) != 0).astype(np.uint8)
    size = max(labels.size // 16, DENSE)
    table = cupy.zeros(size + 2, np.int32)
    labels = cupy.ascontiguousarray(labels)
    device, kinds = labels.device.id, {"LABEL": ELEMENTS[labels.dtype.name]}
    if labels.size:
        arguments = labels, np.int64(labels.size), np.uint64(size), table
        blocks = (-(-labels.size // THREADS),)
        _labels_kernel("mark_labels", device, kinds)(blocks, (THREADS,), arguments)
    ranks = cupy.cumsum(table, dtype=np.int32)
    last = int(ranks[-1])
    if last >= BEYOND:  # sparse ids of a copy that nobody writes to
        ids, places = cupy.unique(labels.ravel().copy(), return_inverse=True)
        empty = ids.size > 0 and int(ids[0]) == 0
        labels = (places.reshape(labels.shape) + (0 if empty else 1)).astype(np.int32)
        ids = ids[1:] if empty else ids
        return labels, ids, cupy.arange(ids.size + 1, dtype=np.int32)
    ids, ranks = cupy.empty(last, labels.dtype), ranks[:-1]
    listed = table, ranks, np.int64(size + 1), ids
    _labels_kernel("list_labels", device, kinds)((size // THREADS + 1,), (THREADS,), listed)
    return labels, ids.astype(dtype, copy=False), ranks
