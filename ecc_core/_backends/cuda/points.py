"""Coefficients and curves point by point: slower, and free of the marching kernels' conditions."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ecc_core._backends.cuda import recipe
from ecc_core._backends.cuda.arrays import Adopted, arrange
from ecc_core._backends.cuda.bins import BINS, Prepared
from ecc_core._backends.cuda.compile import kernel, processors
from ecc_core._backends.cuda.recipe import Filtration, image_struct

__all__ = ["point_coefficients", "point_curves"]

POINTS = np.dtype([("coefficients", "i8"), ("regions", "i8"), ("total", "i8")])
COEFFICIENTS, BINS_OF_ROWS = range(2)
THREADS = 256


def point_coefficients(adopted: Adopted, mask: Any, kind: Filtration) -> tuple[Any, Any]:
    """Coefficients, int8 of the image's shape, and a flag that is set where NaN was seen."""
    out = cupy.empty(adopted.array.shape, np.int8)
    flag = cupy.zeros(1, np.int64)
    result = recipe.pack(recipe.RESULT, 0, 0, 0, flag.data.ptr, 1, 1, 1, 0)
    if out.size:
        _launch(adopted, mask, kind, None, result, None, out)
    return out, flag


def point_curves(
    adopted: Adopted, mask: Any, kind: Filtration, prepared: Prepared, regions: Any, rows: int
) -> tuple[Any, Any]:
    """Curves at the levels, of each image, or of each region where `regions` are given, and a flag.

    `regions` holds for every point of the only image the row of its region plus one, or zero.
    """
    counts = cupy.zeros((rows, prepared.rules.levels + 1), np.int64)
    flag = cupy.zeros(1, np.int64)
    result = recipe.pack(recipe.RESULT, 0, counts.data.ptr, 0, flag.data.ptr, 1, 1, 1, 0)
    _launch(adopted, mask, kind, prepared, result, regions, None)
    return running_sums(counts, kind.superlevel), flag


def running_sums(counts: Any, superlevel: bool) -> Any:
    """Curves from bins: a level has the bins up to its own, or for superlevels those above."""
    if superlevel:
        return cupy.cumsum(counts[:, :0:-1], axis=1)[:, ::-1]
    return cupy.cumsum(counts[:, :-1], axis=1)


def _launch(
    adopted: Adopted,
    mask: Any,
    kind: Filtration,
    prepared: Prepared | None,
    result: Any,
    regions: Any,
    out: Any,
) -> None:
    array = adopted.array
    hidden = None if mask is None else cupy.broadcast_to(mask, array.shape)
    layout = _arranged(array, hidden)
    if layout is None:
        array = cupy.ascontiguousarray(array)
        hidden = None if hidden is None else cupy.ascontiguousarray(hidden)
        layout = _arranged(array, hidden)
    image = image_struct(layout)
    image[recipe.DATA] = array.data.ptr
    image[recipe.MASK] = 0 if hidden is None else hidden.data.ptr
    device = array.device.id
    options = {
        **kind.options(prepared),
        "OUTPUT": BINS_OF_ROWS if out is None else COEFFICIENTS,
        "REGIONS": int(regions is not None),
    }
    function = kernel("points", device, tuple(options.items()))
    address = 0 if regions is None else regions.data.ptr
    target = 0 if out is None else out.data.ptr
    place = recipe.pack(POINTS, target, address, array.size)
    bins = np.zeros(1, f"V{BINS.itemsize}") if prepared is None else prepared.bins
    blocks = min(-(-array.size // THREADS), 64 * processors(device))
    function(
        (blocks,),
        (THREADS,),
        (recipe.by_value(image), recipe.by_value(place), bins, recipe.by_value(result)),
    )


def _arranged(array: Any, hidden: Any) -> Any:
    mask_strides = None if hidden is None else hidden.strides
    return arrange(array.shape, array.strides, array.itemsize, 0, mask_strides, True)
