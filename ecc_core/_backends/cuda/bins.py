"""Thresholds as the kernels take them.

Thresholds are rounded to values of the image's type, copied to the device, and given a rule by
which a kernel finds the bin of a value (``rules.py``).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.kernels import Struct, Variant
from ecc_core._backends.cuda.rules import (
    CELLS,
    CONSECUTIVE,
    SEARCH,
    TABLE,
    UNIFORM,
    PairRule,
    guesses,
    is_near,
    line_through,
    pair_rule,
)
from ecc_core._request.dtypes import holder_of
from ecc_core._request.levels import Levels, round_to_levels

Array = NDArray[Any]

BINS = Struct("bins.cuh", "Bins")
LINES = ("low", "scale", "last", "dense_low", "dense_scale", "dense_last")
TABLE_BYTES = 16 << 10  # The most bytes of thresholds in shared memory.
CELLS_TRIED = (256, 512, 1024, 2048, 4096)
"""Numbers of cells that a table may have."""
MOST_SPAN = 8  # A cell has fewer than twice as many thresholds.


class Rules(NamedTuple):
    """What the choice of a kernel depends on."""

    single: int
    """The rule by which a value finds its bin."""
    levels: int
    """The number of distinct thresholds after rounding."""
    key_size: int
    """Bytes of a level on the device."""
    cells: int
    """Entries of the table of cells; 0 without one."""
    # The rule by which a value finds its code in the kernels of pairs, or None; the number of
    # codes; bytes of their thresholds and of the lines of PIECES, 0 without them.
    pair: int | None
    codes: int
    table: int
    pieces: int
    # True if a kernel computes the table and appends the coefficients of its line.
    found: bool = False


class Prepared(NamedTuple):
    """The thresholds of a call, for kernels."""

    rules: Rules
    bins: Array
    """The argument `Bins` of the kernels."""
    pair_bins: Array
    """The same argument of the kernels of pairs."""
    # On the device, the index of the level of each threshold, or -1 if it has none (int64). None if
    # the thresholds are the levels.
    pick: Any = None
    # True if a threshold includes infinity, which stands for omitted NaN.
    reaches_last: bool = False
    memory: tuple[Any, ...] = ()
    """Device arrays that `bins` and `pair_bins` point to."""


def prepare(thresholds: Array, variant: Variant, device: int) -> Prepared:
    """Return thresholds for images of a type on the current device, which is number `device`."""
    prepared = _prepare(
        thresholds.tobytes(), thresholds.dtype.str, variant.element, variant.superlevel, device
    )
    if programs.is_capturing():
        programs.captured.append(prepared)
    return prepared


@programs.of_data
def _prepare(raw: bytes, dtype: str, element: str, superlevel: bool, _device: int) -> Prepared:
    thresholds = np.frombuffer(raw, dtype)
    own = holder_of(element)
    levels = round_to_levels(thresholds, own, superlevel)
    values = levels.values
    keys = to_keys(levels.values)
    if keys.dtype.kind == "f":  # The kernels take -0.0 to be less than 0.0.
        keys = np.where(keys == 0, keys.dtype.type(-0.0 if superlevel else 0.0), keys)
    count = keys.size
    bins = np.zeros(1, BINS.dtype)
    bins["count"] = count
    memory: list[Any] = []

    def upload(field: str, values: Array, target: Array) -> None:
        memory.append(programs.upload(values))
        target[field] = memory[-1].data.ptr

    rule, cells = _rule(values, keys, bins)
    if own.itemsize == 1:
        rule = TABLE
        cells = None
        upload("table", _table(values, superlevel, element), bins)
    else:
        upload("thresholds", keys, bins)
    pair_bins = bins.copy()
    cell_count = 0
    if cells is not None:
        cell_count = cells.size
        upload("table", cells, bins)
    if rule == TABLE:
        pairs: PairRule | None = PairRule(TABLE, 256)
    else:
        pairs = pair_rule(values, thresholds, keys, superlevel)
    of_pairs: tuple[int | None, int, int, int] = (None, 0, 0, 0)
    if pairs is not None:
        of_pairs = pairs.rule, pairs.codes, pairs.table.nbytes, pairs.pieces.nbytes
        for name, value in zip(LINES, (*pairs.line, *pairs.dense), strict=True):
            pair_bins[name] = value
        if (tables := pairs.memory()).size:
            upload("table", tables, pair_bins)
    last = values[:1] if superlevel else values[-1:]
    return Prepared(
        rules=Rules(rule, count, keys.itemsize, cell_count, *of_pairs),
        bins=bins.view(np.int64),
        pair_bins=pair_bins.view(np.int64),
        pick=_pick(levels),
        reaches_last=bool(np.isinf(last).any()),
        memory=tuple(memory),
    )


def table_memory(rules: Rules) -> tuple[int, dict[str, int]]:
    """Return bytes of shared memory for thresholds and table, and the macro for where they are."""
    size = rules.levels * rules.key_size + 4 * rules.cells
    shared = size if size <= TABLE_BYTES + 4 * rules.cells else 0
    return 1024 if rules.single == TABLE else shared, {"SHARED_TABLE": int(shared > 0)}


def to_keys(values: Array) -> Array:
    """Return the numbers that kernels compare (image.cuh), which are in the order of the values."""
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
    """Return the cheapest rule that fits, and the table of CELLS: the first threshold of each.

    The other numbers of the rule are written to `bins`.
    """
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
        last = keys.size - 1
        line = line_through(rounded[0], rounded[-1], from_guess=0, to_guess=last, last=last)
        bins["low"], bins["scale"], bins["last"] = line
        if is_near(rounded, line):
            return UNIFORM, None
        finite = rounded[np.isfinite(rounded)]
        for count in CELLS_TRIED if finite.size else ():
            line = line_through(
                finite[0], finite[-1], from_guess=1, to_guess=count - 2, last=count - 1
            )
            bins["low"], bins["scale"], bins["last"] = line
            found = guesses(rounded, line)
            most = int(np.bincount(found).max())
            span = 1 << (most.bit_length() - 1)
            if span == 1 or (span <= MOST_SPAN and count == CELLS_TRIED[-1]):
                bins["span"] = span
                before = np.searchsorted(found, np.arange(count))
                return CELLS, np.minimum(before, keys.size - 1).astype(np.int32)
    return SEARCH, None


def _table(values: Array, superlevel: bool, element: str) -> NDArray[np.int32]:
    """Return the bin of each of the 256 values of an 8-bit type. Booleans are true unless 0."""
    every = np.arange(256) + np.iinfo(values.dtype).min
    if element == "bool":
        every = np.minimum(every, 1)
    found = np.searchsorted(
        values, every.astype(values.dtype), side="right" if superlevel else "left"
    )
    return np.asarray(found, np.int32)


def _pick(levels: Levels) -> Any:
    """Return the index of each threshold's level, or -1 (`Prepared`)."""
    count = levels.values.size
    entered = levels.entered
    index = count - entered if levels.superlevel else entered - 1
    if np.array_equal(index, np.arange(count)):
        return None
    return programs.upload(np.where(entered == 0, -1, index).astype(np.int64))
