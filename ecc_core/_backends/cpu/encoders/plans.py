"""How the values of an image become keys, and how the histogram of the keys becomes a curve.

A point's *rank* counts the levels that it enters after: 0 enters first, ``levels`` never. The key
of the V-construction is the rank, that of the T-construction ``top - rank``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.encoders import kernels
from ecc_core._backends.cpu.encoders.loaders import (
    EvenScale,
    Loader,
    cell_loader,
    entry_keys,
    even_loader,
    even_scale,
)
from ecc_core._backends.cpu.encoders.order import bits_to_invert, ordered_keys, unsigned
from ecc_core._request.levels import Levels, round_to_levels

Array = NDArray[Any]

KEPT_BYTES = 1 << 20  # Plans are kept for thresholds up to this size.
HASHED_BYTES = 1 << 12
DIRECT_16_BIT = 1 << 17  # From so many points on, a histogram of all 16-bit values pays.


class Plan(NamedTuple):
    """One way to stage an image as keys."""

    loader: Loader
    key_dtype: np.dtype[Any]
    top: int
    """Largest key; the histogram has ``top + 1`` bins."""
    entered: NDArray[np.int64]
    """For each threshold, the number of keys that have entered."""
    never: int
    """Key of a point that never enters."""
    least: int = 0
    """Rank of the points that enter first. A plan from rank 1 on is for images without values at or
    before the first level."""
    bound: int | None = None
    """If there is one level, and histograms of two bins will do: the largest key of those on one
    side of it."""

    @property
    def streams(self) -> bool:
        """Whether a scan can make the keys: those of integers, but for signs and direction."""
        return self.loader[0] is kernels.copy_keys and self.bound is None

    def load(self, box: Any, keys: Array, place: Any) -> tuple[bool, bool]:
        """Stage a box. Return whether there was a NaN, and whether a key did not fit."""
        kernel, settings = self.loader
        return kernel(box, keys, place, *settings)


def curve_plans(
    dtype: np.dtype[Any],
    thresholds: Array,
    superlevel: bool,
    cubes: bool,
    *,
    masked: bool,
    points: int,
    counts: bool = False,
) -> Sequence[Plan]:
    """Return plans for a curve at sorted thresholds, to be tried in turn until all keys fit.

    `counts`: the caller counts the set of a single level.
    """
    data = thresholds.tobytes()
    make = _plans if len(data) <= KEPT_BYTES else _plans.__wrapped__
    return make(
        thresholds.dtype,
        data if len(data) <= HASHED_BYTES else _Bytes(data),
        dtype,
        superlevel,
        cubes,
        masked,
        points >= DIRECT_16_BIT,
        counts,
    )


class _WhenNeeded(Sequence[Plan]):
    """Plans that are made when they are first asked for: most images fit the first one."""

    def __init__(self, *makers: Callable[[], Plan]) -> None:
        self._makers = makers
        self._made: dict[int, Plan] = {}

    def __len__(self) -> int:
        return len(self._makers)

    @overload
    def __getitem__(self, index: int) -> Plan: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Plan]: ...
    def __getitem__(self, index: Any) -> Any:
        places = range(len(self))[index]
        if isinstance(index, slice):
            return [self._plan(place) for place in places]
        return self._plan(places)

    def __iter__(self) -> Iterator[Plan]:  # The base class takes three times as long.
        return map(self._plan, range(len(self._makers)))

    def _plan(self, place: int) -> Plan:
        made = self._made.get(place)
        if made is None:
            made = self._made[place] = self._makers[place]()
        return made


class _Bytes:
    """Bytes with a hash of a sample, since hashing all takes longer than a comparison."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __hash__(self) -> int:
        return hash(self.data[:: len(self.data) // HASHED_BYTES])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Bytes) and self.data == other.data

    def __bytes__(self) -> bytes:
        return self.data


@lru_cache(maxsize=16)
def _plans(
    kind: np.dtype[Any],
    data: bytes | _Bytes,
    dtype: np.dtype[Any],
    superlevel: bool,
    cubes: bool,
    masked: bool,
    large: bool,
    counts: bool,
) -> Sequence[Plan]:
    """Return plans, which are kept: small images often come one by one with equal thresholds."""
    thresholds = np.frombuffer(bytes(data), kind)
    levels = round_to_levels(thresholds, dtype, superlevel)
    count = levels.values.size
    if dtype.itemsize <= 2:
        direct = dtype.kind in "biu" and not masked and (dtype.itemsize == 1 or large)
        made = (_direct if direct else _table)(dtype, levels, cubes)
        return [_with_bound(made, cubes) if count == 1 and counts else made]
    binned = partial(_binned, levels, cubes, even_scale(levels, thresholds))
    if count == 1 and counts:
        return [_with_bound(binned(top=count), cubes)]
    if count != 256:
        return [binned(top=count)]
    # There are 257 ranks, one more than a byte holds. Often no point has the last rank, or none has
    # the first, so plans without these are tried first.
    makers = [partial(binned, top=count - 1, least=1), partial(binned, top=count)]
    if not masked:
        makers.insert(0, partial(binned, top=count - 1))
    return _WhenNeeded(*makers)


def _with_bound(plan: Plan, cubes: bool) -> Plan:
    """Return a plan of one level with one bin for the points on each side of it, where possible.

    It is possible if there are keys on both sides, since points around the image need one of them.
    """
    reached = int(plan.entered.max(initial=0))
    bound = plan.top - reached if cubes else reached - 1
    if not 0 <= bound < plan.top:
        return plan
    return plan._replace(top=1, entered=np.minimum(plan.entered, 1), bound=bound)


def _never(cubes: bool, top: int) -> int:
    return top if not cubes else 0


def _direct(dtype: np.dtype[Any], levels: Levels, cubes: bool) -> Plan:
    """Return a plan that stages small integers as they are: every value is a level."""
    kind = unsigned(dtype)
    top = int(np.iinfo(kind).max)
    ordinals = ordered_keys(levels.values).astype(np.int64)
    # Entry k is the number of values that have entered once k levels are reached.
    reached = np.append(0, top + 1 - ordinals[::-1] if levels.superlevel else ordinals + 1)
    descending = levels.superlevel != cubes
    flip = bits_to_invert(dtype)[0] ^ kind.type(top if descending else 0)
    loader = kernels.copy_keys, (np.empty(0, kind), flip, kind.type(0))
    return Plan(
        loader=loader,
        key_dtype=kind,
        top=top,
        entered=reached[levels.entered],
        never=_never(cubes, top),
    )


@lru_cache(maxsize=8)
def _places(dtype: np.dtype[Any]) -> Array:
    """Return the position of every value of 8 or 16 bits in sorted order, indexed by its bits."""
    every = np.arange(1 << (8 * dtype.itemsize), dtype=np.uint32).astype(unsigned(dtype))
    return ordered_keys(every.view(dtype)).astype(np.intp)


def _table(dtype: np.dtype[Any], levels: Levels, cubes: bool) -> Plan:
    """Return a plan with a table of the keys of all 8- or 16-bit values; booleans are bytes."""
    dtype = np.dtype(np.uint8) if dtype.kind == "b" else dtype
    top = levels.values.size
    places = _places(dtype)
    at = entry_keys(levels).astype(np.int64)
    keys = np.arange(top + 1, dtype=np.min_scalar_type(top))
    if levels.superlevel != cubes:
        keys = keys[::-1]
    before = 0 if levels.superlevel else -1
    keys = np.repeat(keys, np.diff(at, prepend=before, append=places.size + before))[places]
    kind = unsigned(dtype)
    infinity = kind.type(np.iinfo(kind).max)
    if dtype.kind == "f":
        infinity = np.float16(np.inf).view(np.uint16)
        for first in (0, 0x8000):
            keys[first + int(infinity) + 1 : first + 0x8000] = _never(cubes, top)
    loader = kernels.look_up_keys, (np.empty(0, kind), keys, infinity)
    return Plan(
        loader=loader,
        key_dtype=keys.dtype,
        top=top,
        entered=levels.entered,
        never=_never(cubes, top),
    )


def _binned(levels: Levels, cubes: bool, scale: EvenScale | None, top: int, least: int = 0) -> Plan:
    """Return a plan that ranks 32- and 64-bit values among the levels."""
    if scale is not None:
        loader = even_loader(levels, cubes, scale=scale, top=top, least=least)
    else:
        loader = cell_loader(levels, cubes, top, least)
    entered = np.maximum(levels.entered - least, 0) if least else levels.entered
    return Plan(
        loader=loader,
        key_dtype=np.min_scalar_type(top),
        top=top,
        entered=entered,
        never=_never(cubes, top),
        least=least,
    )


def coefficient_plan(dtype: np.dtype[Any], superlevel: bool, cubes: bool, masked: bool) -> Plan:
    """Return a plan that keeps the order of all values, for coefficients instead of a curve."""
    kind = unsigned(dtype)
    full = int(np.iinfo(kind).max)
    descending = superlevel != cubes
    nothing = np.empty(0, np.int64)
    token = np.empty(0, kind)
    sign = bits_to_invert(dtype)[0]
    flip = kind.type(full if descending else 0)
    if dtype.kind == "f":
        # NaN must never enter, whichever end of the order that is.
        infinity = np.array(np.inf, dtype).view(kind)[()]
        never = _never(cubes, full)
        settings = token, flip, sign, infinity, kind.type(never)
        return Plan(
            loader=(kernels.order_floats, settings),
            key_dtype=kind,
            top=full,
            entered=nothing,
            never=never,
        )
    wide = np.dtype(f"u{2 * dtype.itemsize}") if masked else kind
    shift = wide.type(1 if masked and cubes else 0)
    top = int(np.iinfo(wide).max)
    loader = kernels.copy_keys, (token, flip ^ sign, shift)
    return Plan(loader=loader, key_dtype=wide, top=top, entered=nothing, never=_never(cubes, top))
