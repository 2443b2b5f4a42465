"""Coefficients of every point, and the curves of labelled regions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from ecc_core._backends.cuda.arrays import Adopted
from ecc_core._backends.cuda.bins import BINS, Prepared, Rules
from ecc_core._backends.cuda.calls import Call
from ecc_core._backends.cuda.compile import processors
from ecc_core._backends.cuda.labels import NARROW, Ranked, label_call
from ecc_core._backends.cuda.replies import take_reply
from ecc_core._backends.cuda.samples import (
    BLOCKS,
    DATA,
    THREADS,
    Samples,
    kernel,
    plain_samples,
    samples_of,
)
from ecc_core._backends.cuda.variants import ELEMENTS, NAN_REPORT, Variant

__all__ = ["point_coefficients", "region_counts"]

# As in points.cu.
POINTS = np.dtype(
    [(name, "i8") for name in ("coefficients", "counts", "nan", "labels", "regions")]
    + [("most", "u8"), ("label_strides", "i8", 3), ("steps", "i4"), ("rows", "i4")]
)
OUT, COUNTS, NAN, LABELS, REGIONS, MOST = range(6)  # its words
TILE = {True: (1, 256), False: (8, 32)}  # rows and columns, in images of one slice and others
RESIDENT = 3  # blocks that must fit on a multiprocessor
STEPS = (16, 128)  # slices of a block: at least, and where there are enough blocks
ROWS_BYTES, MOST_ROWS = 40 << 10, 64  # of a block's counts of labels in shared memory
FEW = 1 << 17  # bins of all regions, up to which additions to global memory wait for each other


def point_coefficients(
    adopted: Adopted, mask: Any, variant: Variant, direction: Any = None
) -> tuple[Any, Any]:
    """Return int8 coefficients of the image's shape, and a flag on the device, set for a NaN."""
    out = cupy.empty(adopted.array.shape, np.int8)
    flag = cupy.zeros(1, np.int64)
    if out.size:
        samples = samples_of(adopted, mask, variant, None, direction, vector=False)
        call = _plan(samples, {"OUTPUT": 0})
        first = call.places[1]
        words = (first + OUT, out.data.ptr), (first + NAN, flag.data.ptr)
        call.launch(cupy.cuda.get_current_stream().ptr, words)
    return out, flag


def region_counts(
    adopted: Adopted, ranked: Ranked, variant: Variant, prepared: Prepared, direction: Any
) -> tuple[Any, bool]:
    """Return curves of the regions of one image at the levels, and whether there was a NaN.

    Waits for the device where NaN is not allowed.
    """
    array, (labels, ids, ranks) = adopted.array, ranked
    device, stream = array.device.id, cupy.cuda.get_current_stream()
    count, bins = ids.size, prepared.rules.levels + 1
    sums = "int32" if labels.size < NARROW else "int64"
    kinds = labels.dtype.name, sums
    rows = _rows(bins) if count * bins <= FEW else 0
    if direction is None:
        layout = array.shape, array.strides, variant, prepared.rules
        call = _plain_plan(*layout, rows, *kinds, device)
        memory, image = None, [(DATA, array.data.ptr)]
    else:
        samples = samples_of(adopted, None, variant, prepared, direction, vector=False)
        call, memory = _plan(samples, _macros(*kinds), rows, bins), samples.memory
        image = list(enumerate(samples.image.tolist()))
    size = 8 + count * bins * np.dtype(sums).itemsize
    counts = cupy.cuda.alloc(size)  # behind the flag
    cupy.cuda.runtime.memsetAsync(counts.ptr, 0, size, stream.ptr)
    first, second, third = call.places
    given = (COUNTS, counts.ptr + 8), (NAN, counts.ptr), (LABELS, labels.data.ptr)
    table = (REGIONS, ranks.data.ptr), (MOST, ranks.size - 1)
    words = [(first + word, value) for word, value in image]
    words += [(second + word, value) for word, value in (*given, *table)]
    words += enumerate(prepared.bins.view(np.int64).tolist(), third)
    call.launch(stream.ptr, words)
    del memory  # until the kernel has been launched
    values = cupy.empty((count, bins - 1), np.int64)
    reply = take_reply(device) if variant.nan == NAN_REPORT else None
    blocks = -(-count // (THREADS // 32))
    call = label_call("sum_bins", *kinds, variant.superlevel, device, blocks, 6)
    answer = 0 if reply is None else reply.address
    call(stream, (counts.ptr + 8, count, bins, values.data.ptr, counts.ptr, answer))
    if reply is None:
        return values, False
    (flagged,) = reply.wait(1, stream)
    reply.release()
    return values, bool(flagged)


def _macros(label: str, count: str) -> dict[str, Any]:
    return {"OUTPUT": 1, "LABEL": ELEMENTS[label], "COUNT": ELEMENTS[count]}


@lru_cache(maxsize=256)
def _plain_plan(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    variant: Variant,
    rules: Rules,
    rows: int,
    label: str,
    count: str,
    device: int,
) -> Call:
    """Return a launch that counts regions of an image without a direction."""
    samples = plain_samples(shape, strides, variant, device)
    samples.options["BINS"] = rules.single
    return _plan(samples, _macros(label, count), rows, rules.levels + 1)


def _plan(samples: Samples, macros: dict[str, Any], rows: int = 0, bins: int = 0) -> Call:
    """Return a launch without addresses and Bins.

    `rows` are the labels that a block counts in shared memory, `bins` those of each region.
    """
    images, depth, height, width = samples.shape
    flat = depth == 1
    tile_rows, columns = TILE[flat]
    tiles = images * -(-width // columns) * (1 if flat else -(-height // tile_rows))
    slices = height if flat else depth
    wanted = -(-slices * tiles // (4 * BLOCKS * processors(samples.device)))
    steps = min(max(wanted, STEPS[0]), STEPS[1], slices)
    macros |= {"FLAT": int(flat), "BLOCKS": RESIDENT}
    found = kernel("points", "points", samples.device, samples.options, macros).kernel
    strides = (height * width, width, 1)
    points = np.array([(0, 0, 0, 0, 0, 0, strides, steps, rows)], POINTS)
    grid, shared = (tiles * -(-slices // steps),), 16 * -(-rows * bins // 4)
    return Call(found, grid, THREADS, shared, (samples.image, points, np.zeros(1, BINS)))


def _rows(bins: int) -> int:
    """Return how many labels a block counts in shared memory: a power of two, or 0."""
    rows = min(ROWS_BYTES // (4 * bins), MOST_ROWS)
    return 0 if rows < 2 else 1 << (rows.bit_length() - 1)
