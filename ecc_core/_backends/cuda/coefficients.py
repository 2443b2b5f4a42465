"""Coefficients of every point of images without masks, whose rows are contiguous."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from ecc_core._backends.cuda.arrays import Adopted, Placement, arrange
from ecc_core._backends.cuda.calls import Call
from ecc_core._backends.cuda.compile import function, processors
from ecc_core._backends.cuda.recipe import DATA, image_struct
from ecc_core._backends.cuda.replies import take_reply
from ecc_core._backends.cuda.variants import ELEMENTS, ITEM_BYTES, NAN_NONE, NAN_REPORT, Variant

__all__ = ["scanned_coefficients"]

# As in coefficients.cuh.
COEFFICIENTS = np.dtype(
    [(name, "i8") for name in ("out", "not_finite", "ticket")]
    + [(name, "i4") for name in ("across", "down", "chunk", "images")]
)
COLUMNS = 120  # that a warp owns
THREADS = {2: 256, 3: 384}  # of a block, by the axes of an image
RESIDENT = {2: 2, 3: 1}  # blocks that must fit on a multiprocessor
ROWS = {2: 8, 3: 7}  # that a warp takes at a time
START = {2: 4, 3: 2}  # what a unit costs beside its rows or slices
LEAST = (8, 16)  # rows and columns of images that are worth it


def scanned_coefficients(
    adopted: Adopted, variant: Variant, *, for_host: bool
) -> tuple[Any, Any] | None:
    """Return coefficients, int8 of the image's shape, and a flag; or None for other images.

    The flag tells whether floats may contain NaN, which the kernel treats as a number. It is None
    for integers, a Reply if `for_host`, and otherwise an array on the device. Does not wait.
    """
    array = adopted.array
    if variant.masked or not array.size:
        return None
    call = _plan(Placement.of(array), variant, array.device.id)
    if call is None:
        return None
    out = cupy.empty(array.shape, np.int8)
    image, points = call.places
    words = [(image + DATA, array.data.ptr), (points, out.data.ptr)]
    flag: Any = None
    if "float" in variant.element:
        if for_host:
            flag = take_reply(array.device.id)
            words += [(points + 1, flag.address), (points + 2, flag.memory.data.ptr)]
        else:
            flag = cupy.zeros(2, np.int64)
            words += [(points + 1, flag.data.ptr), (points + 2, flag.data.ptr + 8)]
    call.launch(cupy.cuda.get_current_stream().ptr, words)
    return out, flag


@lru_cache(maxsize=256)
def _plan(placement: Placement, variant: Variant, device: int) -> Call | None:
    shape = placement.shape
    ndim, item = len(shape) - 1, ITEM_BYTES[variant.element]
    if ndim == 1 or item > 4 or shape[-2] < LEAST[0] or shape[-1] < LEAST[1]:
        return None
    layout = arrange(placement, item, True)
    if layout is None:
        return None
    _, height, width = layout.shape
    across = -(-width // COLUMNS)
    down = -(-height // ROWS[3]) if ndim == 3 else 1
    warps = THREADS[ndim] // 32
    resident = processors(device) * RESIDENT[ndim] * warps
    steps = shape[1]

    def cost(chunk: int) -> float:
        units = layout.images * across * down * -(-steps // chunk)
        return -(-units // resident) * (chunk + START[ndim])

    chunk = min((8, 16, 32, 64, 128, 256), key=cost)
    units = layout.images * across * down * -(-steps // chunk)
    options = variant.options(None) | {
        "ELEMENT": "Bool" if variant.element == "bool" else ELEMENTS[variant.element],
        "NAN": NAN_REPORT if "float" in variant.element else NAN_NONE,
        "VECTOR": int(layout.vector),
        "THREADS": THREADS[ndim],
        "BLOCKS": RESIDENT[ndim],
    }
    found = function(f"coefficients{ndim}d", "coefficients", device, tuple(options.items()))
    points = np.array([(0, 0, 0, across, down, chunk, layout.images)], COEFFICIENTS)
    grid = (-(-units // warps),)
    return Call(found.kernel, grid, THREADS[ndim], 0, (image_struct(layout), points))
