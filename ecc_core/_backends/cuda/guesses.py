"""Rules by which the kernels find the bin of a value, and the host's proof that they are exact.

A guess never decreases as the code increases, so it is enough to examine the thresholds. The
roundings of the device are reproduced here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AFFINE",
    "CELLS",
    "COMPLEMENT",
    "CONSECUTIVE",
    "FEW_LEVELS",
    "SEARCH",
    "TABLE",
    "UNIFORM",
    "PairRule",
    "guesses",
    "is_near",
    "line_through",
    "pair_rule",
]

Array = NDArray[Any]
Line = tuple[np.float32, np.float32, np.float32]
NO_LINE: Line = (np.float32(0),) * 3

UNIFORM, SEARCH, CONSECUTIVE, TABLE, AFFINE, CELLS, COMPLEMENT = range(7)  # as in options.cuh
MAGIC = np.float32(1 << 23)  # added to a guess, to round it

# As in pairs.cuh.
PAIR_LEVELS = 4096  # most levels of the kernels of pairs
FEW_LEVELS = 1024  # that pay by any rule
CODE_ZERO = 0x6400
KEY_ENDS = float((1 << 24) + (1 << 16) - 1)  # sum of the least and the largest key of 16 bits
PAIR_CELLS = (256, 512, 1024, 2048, 4096)  # entries of tables of even cells
DENSE_ENDS = (0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)  # shares of thresholds outside dense ones
DENSE_TRIED = 6  # choices of these, each with more cells than needed by some factors:
DENSE_MORE = (1, 1.1, 1.25, 1.5, 2)
MOST_CROWD = 3  # thresholds of a cell besides the first
CROWD_BIT = 30  # of a code in the table, where their number begins


class PairRule(NamedTuple):
    """How the kernels of pairs find the code of a value.

    Attributes
    ----------
    rule : int
    codes : int
        Number of codes.
    line, dense : (low, scale, last)
        The guess of a key is ``low + scale * key``, limited to [0, 1], times `last`. CELLS: the
        sum of two of these, the second where thresholds are dense.
    table : array, optional
        UNIFORM: the threshold of each code. CELLS: the first threshold of each cell, and the code
        of samples that reach all of its thresholds.
    ordered : array, optional
        Thresholds in the order of their codes.
    crowd : int
        Most thresholds that a cell has besides the first.
    """

    rule: int
    codes: int
    line: Line = NO_LINE
    dense: Line = NO_LINE
    table: Array | None = None
    ordered: Array | None = None
    crowd: int = 0

    def properties(self) -> tuple[int, int, int, int]:
        """Return the rule, the number of codes, the bytes of the table, and `crowd`."""
        return self.rule, self.codes, 0 if self.table is None else self.table.nbytes, self.crowd


def line_through(first: float, final: float, from_guess: int, to_guess: int, last: int) -> Line:
    """Return the line by which two keys have two guesses, of which `last` is the greatest."""
    low, span = np.float64(first), np.float64(final) - np.float64(first)
    with np.errstate(all="ignore"):
        scale = np.float32((to_guess - from_guess) / last / span if span else 0)
        offset = np.float32(from_guess / max(last, 1) - low * np.float64(scale))
    return offset, scale, np.float32(last)


def _units(keys: Array, line: Line) -> NDArray[np.float32]:
    """Return guesses between 0 and 1, as the device computes them."""
    offset, scale, _ = line
    if not (np.isfinite(scale) and np.isfinite(offset)):
        return np.zeros(keys.size, np.float32)
    unit = multiply_add(keys, scale, offset)
    return np.where(unit > 0, np.minimum(unit, np.float32(1)), np.float32(0))  # NaN to 0


def guesses(keys: Array, *lines: Line) -> NDArray[np.int64]:
    """Return the guesses of keys, which are the sums of those by each line."""
    total = np.full(keys.size, MAGIC)
    for line in lines:
        total = multiply_add(_units(keys, line), line[2], total)
    return (total - MAGIC).astype(np.int64)


def is_near(keys: Array, line: Line, first: int = 0) -> bool:
    """Return whether the guesses of keys are `first` and so on, by a good margin."""
    places = _units(keys, line).astype(np.float64) * line[2]
    return bool(np.abs(places - first - np.arange(keys.size)).max() < 0.25)


def multiply_add(a: Array, b: np.float32, c: np.float32 | Array) -> NDArray[np.float32]:
    """Return a * b + c, rounded once, as the device does it."""
    with np.errstate(all="ignore"):
        product = a.astype(np.float64) * np.float64(b)  # exact
        term = np.asarray(c, np.float64)
        total = product + term
        back = total - product
        error = (product - (total - back)) + (term - back)
        # Rounded to odd, 53 bits round on to 24 as the exact sum would.
        inexact = (error != 0) & np.isfinite(error) & (total.view(np.int64) & 1 == 0)
        away = np.where(error > 0, np.inf, -np.inf)
        return np.where(inexact, np.nextafter(total, away), total).astype(np.float32)


def pair_rule(values: Array, thresholds: Array, keys: Array, superlevel: bool) -> PairRule | None:
    """Return the cheapest rule of the kernels of pairs for levels `values`, or None.

    Code k is for samples that reach k levels in the order of codes (superlevel: from the lowest
    level on, sublevel: from the highest on). Samples that reach none, and NaN, have the guess 0,
    which is free otherwise.
    """
    count = keys.size
    if not 0 < count <= PAIR_LEVELS:
        return None
    if keys.dtype != np.float32:
        return _wide_rule(keys, superlevel)
    span = 1 << int(count - 1).bit_length()
    # Lines through the least integer are often exact; complements make it the largest one.
    for rule in (AFFINE,) if values.dtype.kind == "f" else (AFFINE, COMPLEMENT):
        fit = _affine_fit(values, thresholds, keys, superlevel, span, rule == COMPLEMENT)
        if fit is not None:
            return PairRule(rule, span + 1, (*fit, np.float32(span)))
    ordered = np.ascontiguousarray(keys if superlevel else keys[::-1])
    never = np.float32(-np.inf if superlevel else np.inf)
    finite = ordered[np.isfinite(ordered)].astype(np.float64)
    if finite.size == 0:
        return None
    first, final = finite[0], finite[-1]
    if first == final:
        first -= max(abs(final), 1) * (1 if superlevel else -1)
    step = (final - first) / max(finite.size - 1, 1)
    line = line_through(final - count * step, final, 0, count, count)
    if is_near(ordered, line, 1):
        table = np.append(never, ordered)
        return PairRule(UNIFORM, count + 1, line, table=table, ordered=ordered)
    best = None
    even = ((line_through(first, final, 1, n - 2, n - 1), NO_LINE) for n in PAIR_CELLS)
    for lines in itertools.chain(_lines_by_density(finite), even):
        cells = int(lines[0][2] + lines[1][2]) + 1
        sizes = np.bincount(guesses(ordered, *lines), minlength=cells)
        crowd = int(sizes.max()) - 1
        if crowd <= MOST_CROWD and (best is None or crowd < best.crowd):
            table = _cells(ordered, sizes, never)
            best = PairRule(CELLS, count + 1, *lines, table, ordered, crowd)
        if crowd == 0:
            break
    return best


def _lines_by_density(ordered: Array) -> Iterator[tuple[Line, Line]]:
    """Yield pairs of lines whose cells might have one threshold each, those with few cells first.

    The first line spans all thresholds, the second one those between two ends.
    """
    count = ordered.size
    place = np.abs(ordered - ordered[0])
    gaps = np.abs(np.diff(ordered))
    found = []
    for low, high in itertools.product(DENSE_ENDS, DENSE_ENDS):
        begin, end = int(low * count), count - 1 - int(high * count)
        if end - begin < 2:
            continue
        outside = min(gaps[:begin].min(initial=np.inf), gaps[end:].min(initial=np.inf))
        first = place[-1] / min(outside, place[-1])
        more = (place[end] - place[begin]) * (1 / gaps[begin:end].min() - 1 / outside)
        found.append((first + max(more, 0), first, max(more, 0), begin, end))
    for _, first, more, begin, end in sorted(found)[:DENSE_TRIED]:
        for factor in DENSE_MORE:
            if (first + more) * factor + 5 > PAIR_CELLS[-1]:
                break
            last, dense = int(np.ceil(first * factor)) + 3, int(np.ceil(more * factor))
            line = line_through(ordered[0], ordered[-1], 1, last - 1, last)
            if dense:
                yield line, line_through(ordered[begin], ordered[end], 0, dense, dense)
            else:
                yield line, NO_LINE


def _wide_rule(keys: Array, superlevel: bool) -> PairRule | None:
    """Return UNIFORM for keys of 64 bits or integers of 32 bits if it fits, or None.

    Their guesses are those of the keys rounded to float32, which never changes their order.
    """
    ordered = np.ascontiguousarray(keys if superlevel else keys[::-1])
    rounded = ordered.astype(np.float32)
    if not np.isfinite(rounded).all() or rounded[0] == rounded[-1]:
        return None
    first, final, count = np.float64(rounded[0]), np.float64(rounded[-1]), keys.size
    line = line_through(final - count * (final - first) / (count - 1), final, 0, count, count)
    if not is_near(rounded, line, 1):
        return None
    if keys.dtype.kind == "f":
        never = np.inf * (-1 if superlevel else 1)
    else:
        never = np.iinfo(keys.dtype).min if superlevel else np.iinfo(keys.dtype).max
    table = np.append(keys.dtype.type(never), ordered)
    return PairRule(UNIFORM, count + 1, line, table=table, ordered=ordered)


def _cells(ordered: Array, sizes: Array, never: np.float32) -> NDArray[np.uint32]:
    """Return the table of CELLS, given the number of thresholds in each cell."""
    count = ordered.size
    before = np.cumsum(sizes) - sizes
    codes = np.minimum(before + np.maximum(sizes, 1), count)
    first = ordered[np.minimum(before, count - 1)]
    if not sizes[0]:
        codes[0], first[0] = 0, never
    table = np.empty((sizes.size, 2), np.uint32)
    table[:, 0] = first.view(np.uint32)
    table[:, 1] = CODE_ZERO + codes + (np.maximum(sizes - 1, 0) << CROWD_BIT)
    return table


def _affine_fit(
    values: Array, thresholds: Array, keys: Array, superlevel: bool, span: int, complement: bool
) -> tuple[np.float32, np.float32] | None:
    """Float32 `low` and `scale` such that floor(span * (low + scale * key)) is the exact code.

    The code never moves against the key, so it is enough to look at each threshold and at the
    next sample beyond it. A product of two float32 numbers is exact in float64, and so is the
    difference that it is compared with. The slope is that of the thresholds before they were
    rounded to the image's values. Keys are those of the `complement` of integers.
    """
    side = -1.0 if superlevel else 1.0
    wide = keys.astype(np.float64)
    if values.dtype.kind == "f":
        past = np.nextafter(values, values.dtype.type(side * np.inf)).astype(np.float64)
    else:
        past = wide + side
    if complement:
        wide, past, side = KEY_ENDS - wide, KEY_ENDS - past, -side
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
