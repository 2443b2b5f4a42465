"""Rules by which the kernels of pairs find the code of a value, and the choice among them.

These kernels compare codes instead of values. Codes of different bins differ, and they are in the
order of the bins.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda.guesses import (
    AFFINE,
    CELLS,
    COMPLEMENT,
    PIECES,
    UNIFORM,
    Line,
    Pieces,
    by_pieces,
    guesses,
    is_near,
    line_through,
)

Array = NDArray[Any]
NO_LINE: Line = (np.float32(0),) * 3

PAIR_LEVELS = 4096  # most levels of the kernels of pairs
PAIR_CODES = 4097  # most codes where several may stand for one bin
FEW_LEVELS = 1024  # that pay by any rule
KEY_ENDS = float((1 << 24) + (1 << 16) - 1)  # sum of the least and the largest key of 16 bits
PAIR_CELLS = (256, 512, 1024, 2048, 4096)  # entries of tables of even cells
PIECES_TRIED = (64, 128, 256, 512, 1024, 2048)
DENSE_ENDS = (0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)  # shares of thresholds outside dense ones
DENSE_TRIED = 6  # choices of these, each with more cells than needed by some factors:
DENSE_MORE = (1, 1.1, 1.25, 1.5, 2)


class PairRule(NamedTuple):
    """How the kernels of pairs find the code of a value.

    The guess of a key by a line is ``low + scale * key``, limited to [0, 1], times `last`. CELLS:
    the sum of those by `line` and `dense`, which is for dense thresholds. PIECES: `line` guesses a
    piece, and the last number of `dense` is the largest code.
    """

    rule: int
    codes: int  # their number
    line: Line = NO_LINE
    dense: Line = NO_LINE
    # The threshold of each code: the code of a key that does not reach it is one less.
    table: Array | None = None
    bins: Array | None = None  # CELLS and PIECES: the bin of each code
    pieces: Array | None = None  # PIECES: ``low, scale`` of each piece, whose guess is a code

    def properties(self) -> tuple[int, int, int, int]:
        """Return the rule, the number of codes, and the bytes of the table and of the pieces."""
        table, pieces = (0 if part is None else part.nbytes for part in (self.table, self.pieces))
        return self.rule, self.codes, table, pieces

    def memory(self) -> NDArray[np.uint8] | None:
        """Return what the kernels read from global memory, or None."""
        parts = [part for part in (self.table, self.bins, self.pieces) if part is not None]
        return np.concatenate([part.ravel().view(np.uint8) for part in parts]) if parts else None


@np.errstate(all="ignore")  # what overflows is infinite, and does not fit
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
    finite = ordered[np.isfinite(ordered)].astype(np.float64)
    if finite.size == 0:
        return None
    first, final = finite[0], finite[-1]
    if first == final:
        first -= max(abs(final), 1) * (1 if superlevel else -1)
    step = (final - first) / max(finite.size - 1, 1)
    line = line_through(final - count * step, final, 0, count, count)
    if is_near(ordered, line, 1):
        return PairRule(UNIFORM, count + 1, line, table=np.append(_never(superlevel), ordered))
    even = ((line_through(first, final, 1, n - 2, n - 1), NO_LINE) for n in PAIR_CELLS)
    for line, dense in itertools.chain(_lines_by_density(finite), even):
        if np.diff(found := guesses(ordered, line, dense)).all():
            cells = int(line[2] + dense[2]) + 1
            return _looked_up(PairRule(CELLS, cells, line, dense), ordered, found, superlevel)
    return _by_pieces(ordered, superlevel)


def _by_pieces(ordered: Array, superlevel: bool) -> PairRule | None:
    """Return PIECES with few entries of tables, or None."""
    found: Pieces | None = None
    for count in PIECES_TRIED:
        pieces = by_pieces(ordered, count, PAIR_CODES)
        if found and (pieces is None or pieces.entries >= found.entries):
            break
        found = pieces
    if found is None:
        return None
    ends = (NO_LINE[0], NO_LINE[1], found.last)
    rule = PairRule(PIECES, int(found.last) + 1, found.line, ends, pieces=found.lines)
    return _looked_up(rule, ordered, found.guesses(ordered), superlevel)


def _never(superlevel: bool) -> np.float32:
    """Return a key that enters at no level but itself."""
    return np.float32(-np.inf if superlevel else np.inf)


def _looked_up(
    rule: PairRule, ordered: Array, found: NDArray[np.int64], superlevel: bool
) -> PairRule | None:
    """Return a rule with its table, given the different guesses of the ordered thresholds."""
    never = _never(superlevel)
    if found[0] == 0 and ordered[0] != never:
        return None
    table = np.full(rule.codes, never)
    table[found] = ordered
    reached = np.searchsorted(found, np.arange(rule.codes), side="right")
    bins = (reached if superlevel else ordered.size - reached).astype(np.int32)
    return rule._replace(table=table, bins=bins)


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
            if (first + more) * factor + 5 > PAIR_CODES:
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
    return PairRule(UNIFORM, count + 1, line, table=table)


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
