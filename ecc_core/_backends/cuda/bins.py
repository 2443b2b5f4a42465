"""Thresholds for the kernels: rounded to the image's values, on the device, with a rule."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._request.levels import Levels, round_to_levels

__all__ = ["BINS", "Prepared", "Rules", "keep_captured", "prepare"]

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
        ("span", "i4"),
    ],
    align=True,
)
UNIFORM, SEARCH, CONSECUTIVE, TABLE, AFFINE, CELLS = range(6)
CODES = 1024  # that the kernels of pairs tell apart, besides 0
CELLS_TRIED = (256, 512, 1024, 2048, 4096)
MOST_SPAN = 8
CODE_ZERO = 0x6400  # as in pairs.cuh
MAGIC = np.float32(1 << 23)  # added to a guess, to round it


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
    cells : int
        Entries of the table of guesses; 0 without one.
    """

    single: int
    pair: int | None
    levels: int
    codes: int
    key_size: int
    cells: int


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
        keep_captured(prepared)
    return prepared


def keep_captured(prepared: Prepared) -> None:
    """Keep what a captured call needs, since its graph may be replayed at any time."""
    _captured.append(prepared)


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

    def upload(field: str, values: Array, target: Array) -> None:
        memory.append(cupy.asarray(values))
        target[field] = memory[-1].data.ptr

    rule, cells = _rule(levels.values, keys, bins)
    if own.itemsize == 1:
        rule, cells = TABLE, None
        upload("table", _table(levels.values, superlevel, element), bins)
    else:
        upload("thresholds", keys, bins)
    pair_bins = bins.copy()
    if cells is not None:
        upload("table", cells, bins)
    pair_rule, codes = _pair_rule(rule, levels.values, thresholds, keys, superlevel, pair_bins)
    if pair_rule == CELLS:
        assert cells is not None
        upload("table", _pair_cells(cells, keys, superlevel), pair_bins)
    pick = _pick(levels)
    # Other streams may use it next, and kernels on any stream what the cache drops in its favour.
    cupy.cuda.Device().synchronize()
    return Prepared(
        Rules(rule, pair_rule, count, codes, keys.itemsize, 0 if cells is None else cells.size),
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


def _rule(values: Array, keys: Array, bins: Array) -> tuple[int, Array | None]:
    """The cheapest rule that fits, with its numbers written to `bins`, and the table of CELLS."""
    if not 0 < keys.size < 1 << 22:
        return SEARCH, None
    if values.dtype.kind in "iu" and values.dtype.itemsize <= 4:
        whole = values.astype(np.int64)
        if whole[-1] - whole[0] == whole.size - 1:
            small = values.dtype.itemsize <= 2
            bins["first"] = whole[0] - np.iinfo(values.dtype).min if small else keys[0]
            return CONSECUTIVE, None
    with np.errstate(all="ignore"):
        rounded = keys.astype(np.float32)
        unit, last = _units(rounded, rounded, keys.size, 0, bins)
        if np.abs(unit.astype(np.float64) * last - np.arange(keys.size)).max() < 0.25:
            return UNIFORM, None
        finite = rounded[np.isfinite(rounded)]
        for count in CELLS_TRIED if finite.size else ():
            unit, last = _units(rounded, finite, count, 1, bins)
            found = (multiply_add(unit, last, MAGIC) - MAGIC).astype(np.int64)
            most = int(np.bincount(found).max())
            span = 1 << (most.bit_length() - 1)
            if span == 1 or (span <= MOST_SPAN and count == CELLS_TRIED[-1]):
                bins["span"] = span
                before = np.searchsorted(found, np.arange(count))
                return CELLS, np.minimum(before, keys.size - 1).astype(np.int32)
    return SEARCH, None


def _units(
    keys: Array, ends: Array, count: int, margin: int, bins: Array
) -> tuple[NDArray[np.float32], np.float32]:
    """Where `guess` in bins.cuh has keys between 0 and 1, and the guess of 1.

    The numbers that it takes are written to `bins`. There are `count` guesses, of which `margin`
    are free below the first of `ends` and above the last.
    """
    low, high = np.float64(ends[0]), np.float64(ends[-1])
    last = np.float32(count - 1)
    span = (high - low) * last / max(count - 1 - 2 * margin, 1)
    scale = np.float32(1 / span if span > 0 else 0)
    offset = np.float32(margin / max(count - 1, 1) - low * np.float64(scale))
    bins["low"], bins["scale"], bins["last"] = offset, scale, last
    if not (np.isfinite(scale) and np.isfinite(offset)):
        return np.zeros(keys.size, np.float32), last
    unit = multiply_add(keys, scale, offset)
    return np.where(unit > 0, np.minimum(unit, np.float32(1)), np.float32(0)), last  # NaN to 0


def multiply_add(a: Array, b: np.float32, c: np.float32) -> NDArray[np.float32]:
    """a * b + c, rounded once, as the device does it."""
    product, term = a.astype(np.float64) * np.float64(b), np.float64(c)  # the product is exact
    total = product + term
    back = total - product
    error = (product - (total - back)) + (term - back)
    # Rounded to odd, 53 bits round on to 24 as the exact sum would.
    inexact = (error != 0) & np.isfinite(error) & (total.view(np.int64) & 1 == 0)
    away = np.where(error > 0, np.inf, -np.inf)
    return np.where(inexact, np.nextafter(total, away), total).astype(np.float32)


def _pair_rule(
    rule: int, values: Array, thresholds: Array, keys: Array, superlevel: bool, bins: Array
) -> tuple[int | None, int]:
    """The rule of the kernels of pairs, with its numbers written to `bins`, and its codes."""
    if rule == TABLE:
        return TABLE, 256
    if keys.dtype != np.float32 or not 0 < keys.size <= CODES:
        return None, 0
    span = 1 << int(keys.size - 1).bit_length()
    fit = _affine_fit(values, thresholds, keys, superlevel, span)
    if fit is not None:
        bins["low"], bins["scale"], bins["last"] = *fit, span
        return AFFINE, span + 1
    alone = rule == UNIFORM or (rule == CELLS and bins["span"][0] == 1)
    return (rule, keys.size + 1) if alone else (None, 0)


def _affine_fit(
    values: Array, thresholds: Array, keys: Array, superlevel: bool, span: int
) -> tuple[np.float32, np.float32] | None:
    """Float32 `low` and `scale` such that floor(span * (low + scale * key)) is the exact code.

    The code never moves against the key, so it is enough to look at each threshold and at the
    next sample beyond it. A product of two float32 numbers is exact in float64, and so is the
    difference that it is compared with. The slope is that of the thresholds before they were
    rounded to the image's values.
    """
    side = -1.0 if superlevel else 1.0
    if values.dtype.kind == "f":
        beyond = np.nextafter(values, values.dtype.type(side * np.inf)).astype(np.float32)
    else:
        beyond = keys + np.float32(side)
    wide, past = keys.astype(np.float64), beyond.astype(np.float64)
    if not (np.isfinite(past).all() and np.isfinite(wide).all()):
        return None
    count = keys.size
    codes = (np.arange(count) + 1.0 if superlevel else count - np.arange(float(count))) / span
    slopes = [(wide[-1] - wide[0]) / (count - 1)] if count > 1 else [1.0]
    if thresholds.size == count > 1:
        slopes.insert(0, (float(thresholds[-1]) - float(thresholds[0])) / (count - 1))
    for slope in slopes:
        with np.errstate(all="ignore"):
            near = np.float32(-side / (slope * span))
        if not 1e-30 < abs(near) < 1e30:
            continue
        for scale in (near, np.nextafter(near, np.float32(0)), np.nextafter(near, 2 * near)):
            # codes <= low + scale * key, and less than that for the next sample beyond.
            least = (codes - wide * np.float64(scale)).max()
            most = (codes - past * np.float64(scale)).min()
            low = np.float32((least + most) / 2)
            reached = codes - np.float64(low)
            fits = np.all(wide * scale >= reached) and np.all(past * scale < reached)
            if abs(low) < 1 << 30 and fits:
                return low, scale
    return None


def _pair_cells(cells: Array, keys: Array, superlevel: bool) -> Array:
    """The threshold of each cell, and the code of samples that have not passed it (pairs.cuh)."""
    codes = CODE_ZERO + (cells + 1 if superlevel else keys.size - cells)
    table = np.empty((cells.size, 2), np.int32)
    table[:, 0], table[:, 1] = keys[cells].view(np.int32), codes
    return table


def _table(values: Array, superlevel: bool, element: str) -> NDArray[np.int32]:
    """The bin of each of the 256 values of an 8-bit type; of booleans all but 0 are true."""
    every = np.arange(256) + np.iinfo(values.dtype).min
    if element == "bool":
        every = np.minimum(every, 1)
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
