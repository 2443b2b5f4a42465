"""Surfaces, from the signed histogram of the pairs of codes of two recoded images."""

import math
from typing import Any

import cupy
import numpy as np

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda.arrays import adopt, as_cupy
from ecc_core._backends.cuda.bins import prepare
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.curves import raise_for_nan
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct, processors
from ecc_core._backends.cuda.recode import codes_of
from ecc_core._backends.cuda.samples import Images
from ecc_core._backends.cuda.scan import at_thresholds
from ecc_core._request.filtration import Filtration
from ecc_core._request.image import image_named

PAIRS = Struct("surface.cu", "Surface")
THREADS = 256
COLUMNS_A_THREAD = 4
SLICES_A_THREAD = (4, 64)  # Least and most.
WAVES = 8  # Work is cut such that every thread gets some so often, if there is enough.
RESIDENT = 8  # Blocks on a multiprocessor.
SHARED_BYTES = 48 << 10  # Bytes of bins in shared memory.


def surface(
    first: Any,
    second: Any,
    thresholds: tuple[Any, Any],
    filtrations: tuple[Filtration, Filtration],
    *,
    mask: Any = None,
    workers: int | None = None,
) -> Any:
    with adopt(first) as one, adopt(second) as other:
        mask = as_cupy(mask)
        shape = (len(one.array), *(at.size for at in thresholds))
        if 0 in shape or one.array.size == 0:
            return one.wrap(cupy.zeros(shape, np.int64))
        prepared = []
        variants = []
        codes = []
        kept = []
        given = zip(("first", "second"), (one, other), thresholds, filtrations, strict=True)
        for name, view, at, filtration in given:
            images = Images.of(view, filtration, mask)
            levels = prepare(at, images.variant, one.array.device.id)
            code, flag, memory = codes_of(images, levels, keep=True)
            with image_named(name):
                raise_for_nan(flag, view, mask)
            prepared.append(levels)
            variants.append(images.variant)
            codes.append(code)
            kept.append(memory)
        sizes = tuple(levels.rules.levels for levels in prepared)
        counts = _histogram(codes, sizes, variants, filtrations[0])
        # The last axis is summed up to thresholds, then the other one.
        for levels, variant in zip(prepared[::-1], variants[::-1], strict=True):
            rows = at_thresholds(counts.reshape(-1, counts.shape[-1]), levels, variant.superlevel)
            counts = rows.reshape(*counts.shape[:-1], -1).swapaxes(1, 2)
        counts = -counts if filtrations[0].cubes and filtrations[0].ndim == 3 else counts
        return one.wrap(cupy.ascontiguousarray(counts))


def _histogram(
    codes: list[Any], levels: tuple[int, ...], variants: Any, filtration: Filtration
) -> Any:
    """Return the signed numbers of cells for each pair of ranks, (images, ranks, ranks)."""
    element = max((code.dtype for code in codes), key=lambda dtype: dtype.itemsize)
    codes = [code.astype(element, copy=False) for code in codes]
    images, *spatial = map(int, codes[0].shape)
    depth, height, width = (*[1] * (3 - len(spatial)), *spatial)
    if len(spatial) < 3:  # Threads move from row to row instead of from slice to slice.
        depth = height
        height = 1
    device = codes[0].device.id
    bins = math.prod(n + 1 for n in levels)
    counts = cupy.zeros((images, *(n + 1 for n in levels)), np.int64)
    shared = 4 * bins <= SHARED_BYTES
    first = 0 if filtration.cubes else 1
    across = ceil_div(width + 1, COLUMNS_A_THREAD)
    down = height + 1 - first if len(spatial) == 3 else 1
    resident = RESIDENT * processors(device)
    work = images * across * down * (depth + 1 - first) // (WAVES * THREADS * resident)
    chunk = min(max(SLICES_A_THREAD[0], work), SLICES_A_THREAD[1])
    units = across * down * ceil_div(depth + 1 - first, chunk)
    blocks = max(1, min(ceil_div(units, THREADS), ceil_div(resident, images)))
    macros = {
        "CODE": ELEMENTS[element.name],
        "FLAT": int(filtration.ndim < 3),
        "CUBES": int(filtration.cubes),
        "SHARED": int(shared),
    }
    pairs = PAIRS(
        data=[code.data.ptr for code in codes],
        counts=counts.data.ptr,
        levels=levels,
        reversed=[variant.superlevel for variant in variants],
        depth=depth,
        height=height,
        width=width,
        blocks=blocks,
        chunk=chunk,
        across=across,
    )
    grid = (images * blocks,)
    room = 4 * bins * shared
    plan_call(
        "surface",
        "surface",
        macros=macros,
        grid=grid,
        threads=THREADS,
        arguments=(pairs,),
        shared=room,
    ).launch()
    return counts
