"""Coefficients of every point, and the curves of labelled regions."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ecc_core._backends.cuda.arrays import Adopted
from ecc_core._backends.cuda.bins import BINS, Prepared
from ecc_core._backends.cuda.calls import Call
from ecc_core._backends.cuda.compile import processors
from ecc_core._backends.cuda.labels import NARROW, Ranked, label_call
from ecc_core._backends.cuda.recipe import ELEMENTS, Variant
from ecc_core._backends.cuda.samples import BLOCKS, THREADS, Samples, kernel, samples_of

__all__ = ["RegionPlan", "point_coefficients"]

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


def point_coefficients(
    adopted: Adopted, mask: Any, variant: Variant, direction: Any = None
) -> tuple[Any, Any]:
    """Return int8 coefficients of the image's shape, and a flag on the device, set for a NaN."""
    out = cupy.empty(adopted.array.shape, np.int8)
    flag = cupy.zeros(1, np.int64)
    if out.size:
        samples = samples_of(adopted, mask, variant, None, direction, vector=False)
        call = _plan(samples, np.zeros(1, BINS), {"OUTPUT": 0})
        first = call.places[1]
        words = (first + OUT, out.data.ptr), (first + NAN, flag.data.ptr)
        call.launch(cupy.cuda.get_current_stream().ptr, words)
    return out, flag


class RegionPlan:
    """The curves of the regions of one image, planned before it is known how many there are.

    Parameters
    ----------
    adopted : Adopted
        A batch of one image.
    labels : array
        Contiguous labels of the image's shape.
    variant : Variant
    prepared : Prepared
        The thresholds.
    direction : Direction or None
    """

    def __init__(
        self, adopted: Adopted, labels: Any, variant: Variant, prepared: Prepared, direction: Any
    ) -> None:
        self._samples = samples_of(adopted, None, variant, prepared, direction, vector=False)
        self._prepared, self._bins = prepared, prepared.rules.levels + 1
        self._superlevel = variant.superlevel
        self._count = "int32" if labels.size < NARROW else "int64"
        self._label = labels.dtype.name
        self._call = self._plan()

    def _plan(self) -> Call:
        kinds = {"LABEL": ELEMENTS[self._label], "COUNT": ELEMENTS[self._count]}
        macros = {"OUTPUT": 1, **kinds}
        return _plan(self._samples, self._prepared.bins, macros, self._bins)

    def curves(self, ranked: Ranked) -> tuple[Any, Any]:
        """Return curves at the levels, and a flag that is set for a NaN. Does not wait."""
        labels, ranks, count, bins = ranked.labels, ranked.ranks, ranked.ids.size, self._bins
        if labels.dtype.name != self._label:
            self._label = labels.dtype.name
            self._call = self._plan()
        item = np.dtype(self._count).itemsize
        stream, size = cupy.cuda.get_current_stream().ptr, 8 + count * bins * item
        memory = cupy.cuda.alloc(size)
        cupy.cuda.runtime.memsetAsync(memory.ptr, 0, size, stream)
        flag, counts = memory.ptr, memory.ptr + 8
        given = (COUNTS, counts), (NAN, flag), (LABELS, labels.data.ptr)
        table = (REGIONS, ranks.data.ptr), (MOST, ranks.size - 1)
        first = self._call.places[1]
        self._call.launch(stream, ((first + word, value) for word, value in (*given, *table)))
        values = cupy.empty((count, bins - 1), np.int64)
        blocks = -(-count // (THREADS // 32))
        names = self._label, self._count, self._superlevel
        call = label_call("sum_bins", *names, labels.device.id, blocks, 4)
        call((counts, count, bins, values.data.ptr))
        return values, cupy.ndarray((1,), np.int64, memory)


def _plan(samples: Samples, bins: Any, macros: dict[str, Any], counted: int = 0) -> Call:
    """Return a launch without the addresses of Points; `counted` are the bins of each region."""
    images, depth, height, width = samples.shape
    flat = depth == 1
    tile_rows, columns = TILE[flat]
    tiles = images * -(-width // columns) * (1 if flat else -(-height // tile_rows))
    slices = height if flat else depth
    wanted = -(-slices * tiles // (4 * BLOCKS * processors(samples.device)))
    steps = min(max(wanted, STEPS[0]), STEPS[1], slices)
    rows = _rows(counted) if counted else 0
    macros |= {"FLAT": int(flat), "BLOCKS": RESIDENT}
    found = kernel("points", "points", samples.device, samples.options, macros).kernel
    strides = (height * width, width, 1)
    points = np.array([(0, 0, 0, 0, 0, 0, strides, steps, rows)], POINTS)
    grid, shared = (tiles * -(-slices // steps),), 16 * -(-rows * counted // 4)
    return Call(found, grid, THREADS, shared, (samples.image, points, bins))


def _rows(bins: int) -> int:
    """Return how many labels a block counts in shared memory: a power of two, or 0."""
    rows = min(ROWS_BYTES // (4 * bins), MOST_ROWS)
    return 0 if rows < 2 else 1 << (rows.bit_length() - 1)
