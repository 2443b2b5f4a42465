"""Thresholds for the kernels: rounded to the image's values, on the device, with a rule."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._request.levels import Levels, round_to_levels

__all__ = ["BINS", "Prepared", "Rules", "prepare"]

Array = NDArray[Any]

# As in bins.cuh.
BINS = np.dtype(
    [
        ("thresholds", "u8"),
        ("table", "u8"),
        ("count", "i4"),
        ("low", "f4"),
        ("scale", "f4"),
        ("last", "f4"),
        ("first", "i8"),
    ],
    align=True,
)
UNIFORM, SEARCH, CONSECUTIVE, TABLE, AFFINE = range(5)
CODES = 1024  # that the kernels of pairs tell apart, besides 0


class Rules(NamedTuple):
    """What a kernel is chosen by.

    Attributes
    ----------
    single, pair : int
        How a value finds its bin; in the kernels of pairs, or None where these cannot.
    levels : int
        Number of the distinct thresholds in the image's values.
    codes : int
        Number of codes in the kernels of pairs.
    key_size : int
        Bytes of a level on the device.
    """

    single: int
    pair: int | None
    levels: int
    codes: int
    key_size: int


class Prepared(NamedTuple):
    """What a kernel needs to know of the thresholds.

    Attributes
    ----------
    rules : Rules
    bins, pair_bins : (1,) array
        The kernel's argument, as bytes; that of the kernels of pairs.
    pick : (level, empty), optional
        Device arrays: the level of each threshold, and where none is reached. None if the levels
        are the thresholds.
    reaches_last : bool
        Whether some threshold admits the value at which points that never enter are kept.
    memory : tuple
        Device arrays that `bins` points to.
    """

    rules: Rules
    bins: Array
    pair_bins: Array
    pick: tuple[Any, Any] | None
    reaches_last: bool
    memory: tuple[Any, ...]


def prepare(thresholds: Array, element: str, superlevel: bool, device: int) -> Prepared:
    """Thresholds for images of an element type on the current device, number `device`.

    What was prepared before is used again.
    """
    prepared = _prepare(thresholds.tobytes(), thresholds.dtype.str, element, superlevel, device)
    if cupy.cuda.get_current_stream().is_capturing():
        _captured.append(prepared)  # the graph may be replayed at any time
    return prepared


_captured: list[Prepared] = []


@lru_cache(maxsize=128)
def _prepare(raw: bytes, dtype: str, element: str, superlevel: bool, _device: int) -> Prepared:
    thresholds = np.frombuffer(raw, dtype)
    own = np.dtype(np.float32 if element == "bfloat16" else element)
    levels = round_to_levels(thresholds, own, superlevel)
    keys = to_keys(levels.values)
    if keys.dtype.kind == "f":  # the kernels take -0 as less than 0
        keys = np.where(keys == 0, keys.dtype.type(-0.0 if superlevel else 0.0), keys)
    count = keys.size
    bins = np.zeros(1, BINS)
    bins["count"] = count
    memory: list[Any] = []
    rule = _rule(levels.values, keys, bins)
    if own.itemsize == 1:
        rule = TABLE
        memory.append(cupy.asarray(_table(levels.values, superlevel)))
        bins["table"] = memory[-1].data.ptr
    else:
        memory.append(cupy.asarray(keys))
        bins["thresholds"] = memory[-1].data.ptr
    pair_bins = bins.copy()
    pair_rule, codes = _pair_rule(rule, levels.values, keys, superlevel, pair_bins)
    pick = _pick(levels)
    # Other streams may use it next, and kernels on any stream what the cache drops in its favour.
    cupy.cuda.Device().synchronize()
    return Prepared(
        Rules(rule, pair_rule, count, codes, keys.itemsize),
        bins.view(f"V{bins.nbytes}"),
        pair_bins.view(f"V{bins.nbytes}"),
        pick,
        _reaches_last(levels.values, superlevel),
        tuple(memory),
    )


def to_keys(values: Array) -> Array:
    """What element.cuh compares: numbers in the order of the values."""
    dtype = values.dtype
    if dtype == np.float64:
        return values
    if dtype.kind == "f":
        return values.astype(np.float32)
    if dtype.itemsize <= 2:
        return (values.astype(np.int64) - np.iinfo(dtype).min + (1 << 23)).astype(np.float32)
    if dtype.kind == "i":
        return values
    top = dtype.type(1 << (8 * dtype.itemsize - 1))
    return np.asarray(values ^ top).view(f"i{dtype.itemsize}")


def _rule(values: Array, keys: Array, bins: Array) -> int:
    """The cheapest rule that fits, with its numbers written to `bins`."""
    if not 0 < keys.size < 1 << 22:
        return SEARCH
    if values.dtype.kind in "iu" and values.dtype.itemsize <= 4:
        whole = values.astype(np.int64)
        if whole[-1] - whole[0] == whole.size - 1:
            small = values.dtype.itemsize <= 2
            bins["first"] = whole[0] - np.iinfo(values.dtype).min if small else keys[0]
            return CONSECUTIVE
    last = np.float32(keys.size - 1)
    # The arithmetic of bin_of, step by step, in float32.
    with np.errstate(all="ignore"):
        rounded = keys.astype(np.float32)
        low = rounded[0]
        scale = np.float32(1) / (rounded[-1] - low) if keys.size > 1 else np.float32(0)
        unit = np.clip((rounded - low) * scale, np.float32(0), np.float32(1))
        guess = unit.astype(np.float64) * last
    if not (np.isfinite(scale) and np.abs(guess - np.arange(keys.size)).max() < 0.25):
        return SEARCH
    bins["low"], bins["scale"], bins["last"] = low, scale, last
    return UNIFORM


def _pair_rule(
    rule: int, values: Array, keys: Array, superlevel: bool, bins: Array
) -> tuple[int | None, int]:
    """The rule of the kernels of pairs, with its numbers written to `bins`, and its codes."""
    if rule == TABLE:
        return TABLE, 256
    if keys.dtype != np.float32 or not 0 < keys.size <= CODES:
        return None, 0
    span = 1 << int(keys.size - 1).bit_length()
    for fit in _affine_fits(values, keys, superlevel, span):
        bins["low"], bins["scale"], bins["last"] = *fit, span
        return AFFINE, span + 1
    return (UNIFORM, keys.size + 1) if rule == UNIFORM else (None, 0)


def _affine_fits(
    values: Array, keys: Array, superlevel: bool, span: int
) -> Iterator[tuple[np.float32, np.float32]]:
    """Float32 `low` and `scale` such that floor(span * (low + scale * key)) is the exact code.

    The code never moves against the key, so it is enough to look at each threshold and at the
    next sample beyond it. A product of two float32 numbers is exact in float64, and so is the
    difference that it is compared with.
    """
    side = -1.0 if superlevel else 1.0
    if values.dtype.kind == "f":
        beyond = np.nextafter(values, values.dtype.type(side * np.inf)).astype(np.float32)
    else:
        beyond = keys + np.float32(side)
    wide, past = keys.astype(np.float64), beyond.astype(np.float64)
    if not (np.isfinite(past).all() and np.isfinite(wide).all()):
        return
    slope = (keys.size - 1) / (wide[-1] - wide[0]) if keys.size > 1 else 1.0
    codes = np.arange(keys.size) + 1.0 if superlevel else keys.size - np.arange(float(keys.size))
    for share in (0.0, 0.5):
        start = wide[0] + share * np.abs(past - wide).min() * side
        with np.errstate(over="ignore"):  # then it does not fit
            scale = np.float32(-side * slope / span)
            low = np.float32((side * start * slope + codes[0]) / span)
        if not (abs(low) < 1 << 30 and 1e-30 < abs(scale) < 1e30):
            continue
        least = codes / span - np.float64(low)
        if np.all(wide * scale >= least) and np.all(past * scale < least):
            yield low, scale


def _table(values: Array, superlevel: bool) -> NDArray[np.int32]:
    """The bin of each of the 256 values of an 8-bit type."""
    every = np.arange(256) + np.iinfo(values.dtype).min
    found = np.searchsorted(
        values, every.astype(values.dtype), side="right" if superlevel else "left"
    )
    return np.asarray(found, np.int32)


def _pick(levels: Levels) -> tuple[Any, Any] | None:
    count = levels.values.size
    entered = levels.entered
    index = count - entered if levels.superlevel else entered - 1
    if np.array_equal(index, np.arange(count)):
        return None
    return cupy.asarray(np.clip(index, 0, max(count - 1, 0))), cupy.asarray(entered == 0)


def _reaches_last(values: Array, superlevel: bool) -> bool:
    if values.size == 0 or (values.dtype.kind in "iu" and values.dtype.itemsize <= 2):
        return False
    if values.dtype.kind == "f":
        return bool(np.isinf(values[0]) if superlevel else np.isinf(values[-1]))
    info = np.iinfo(values.dtype)
    return bool(values[0] == info.min if superlevel else values[-1] == info.max)
