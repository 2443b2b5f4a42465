"""Keys of values: unsigned integers in the order in which points enter."""

import math
from typing import Any

import cupy
import numpy as np

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda.arrays import address_of, on_host
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

BESIDE = Struct("keys.cu", "Beside", Value="u4")
THREADS = 256
KEYS_A_THREAD = 8


def keys_of(values: Any, mask: Any, filtration: Filtration) -> tuple[Any, int]:
    """Return keys in the order of the filtration, and that of points that never enter."""
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    if values.dtype.itemsize > 2 and values.dtype != np.float32:
        return _ranks(values, mask, filtration)
    wraps = filtration.boundary.wraps
    partial = mask is not None or (any(wraps) and not all(wraps))
    code, first, never = _key_range(values.dtype, partial=partial)
    is_float = values.dtype.kind == "f"
    values = cupy.ascontiguousarray(values)
    shown = 0 if mask is None else cupy.ascontiguousarray(mask.view(np.uint8))
    keys = cupy.empty(values.shape, code)
    nan = cupy.zeros(1, np.int64)
    macros = {
        "VALUE": "unsigned" if is_float else ELEMENTS[values.dtype.name],
        "CODE": ELEMENTS[code.name],
        "FLOAT": int(is_float),
        "BOOL": int(values.dtype.kind == "b"),
        "SUPER": int(filtration.superlevel),
        "MASK": int(mask is not None),
    }
    blocks = ceil_div(values.size, KEYS_A_THREAD * THREADS)
    numbers = np.int64(values.size), np.int32(first), np.uint32(never)
    arguments = values, shown, keys, *numbers, nan
    plan_call(
        "keys", "list_keys", macros=macros, grid=(blocks,), threads=THREADS, arguments=arguments
    ).launch()
    if is_float and filtration.nan == "raise" and on_host(nan)[0]:
        raise ValueError(NAN_MESSAGE)
    return keys, never


def _key_range(dtype: np.dtype[Any], *, partial: bool) -> tuple[np.dtype[Any], int, int]:
    """Return the type of keys of values, the value whose key is 0, and a key beyond all others.

    If some points never enter, the key beyond all others is one of the type: they may be masked,
    or lie between the ends of an axis of a torus.
    """
    if dtype.kind == "f":
        return np.dtype(np.uint32), 0, (1 << 32) - 1  # The key of infinity is smaller.
    never = 1 << 8 * dtype.itemsize
    first = -never // 2 if dtype.kind == "i" else 0
    fits = dtype.itemsize == 1 or not partial
    return np.dtype(np.uint16 if fits else np.uint32), first, never


def keys_beside(images: Any, targets: Any, mask: Any) -> tuple[Any, int, Any]:
    """Return keys of images and their targets side by side, in the order of superlevel sets.

    Images are contiguous float32 (batch, *spatial); targets and the mask, if any, booleans of this
    shape. Each image is followed by points that never enter. Also returns the key of these, and on
    the device whether any value that is shown is NaN.
    """
    count, *lead, side = images.shape
    code, _, never = _key_range(images.dtype, partial=True)
    keys = cupy.empty((*lead, 2 * count * (side + 1)), code)
    nan = cupy.zeros(1, np.int64)
    batch = BESIDE(
        images=images.data.ptr,
        targets=targets.data.ptr,
        shown=address_of(mask),
        count=count,
        lines=math.prod(lead),
        side=side,
    )
    macros = {
        "VALUE": "unsigned",
        "CODE": ELEMENTS[code.name],
        "FLOAT": 1,
        "BOOL": 0,
        "SUPER": 1,
        "MASK": int(mask is not None),
    }
    blocks = ceil_div(keys.size, KEYS_A_THREAD * THREADS)
    arguments = batch, keys, np.uint32(never), nan
    plan_call(
        "keys",
        "list_keys_beside",
        macros=macros,
        grid=(blocks,),
        threads=THREADS,
        arguments=arguments,
    ).launch()
    return keys, never, nan


def _ranks(values: Any, mask: Any, filtration: Filtration) -> tuple[Any, int]:
    """Return the ranks of values, and that of points that never enter."""
    levels, ranks = cupy.unique(values.ravel(), return_inverse=True)
    ranks = ranks.reshape(values.shape)
    never = levels.size
    if filtration.superlevel:
        ranks = never - 1 - ranks
    ranks = ranks.astype(np.uint32)
    shown = None if mask is None else mask.view(np.uint8) != 0
    if values.dtype.kind == "f":
        absent = cupy.isnan(values)
        if shown is not None:
            absent &= shown
        if filtration.nan == "raise" and absent.any():
            raise ValueError(NAN_MESSAGE)
        ranks[absent] = never
    if shown is not None:
        ranks[~shown] = never
    return ranks, never
