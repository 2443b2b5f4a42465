"""Rules by which kernels find the bin or the code of a value, and the choice among them.

A guess is the value of a straight line. The host rounds it as the device does, so it can check that
a rule is exact. Guesses are monotonic: it is enough to check the thresholds.

The kernels of pairs compare codes instead of values. Codes of different bins differ, and they are
in the order of the bins.
"""

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.even_lines import next_values, widths

Array = NDArray[Any]
Line = tuple[np.float32, np.float32, np.float32]

# Rules, as in options.cuh.
UNIFORM, SEARCH, CONSECUTIVE, TABLE, AFFINE, CELLS, COMPLEMENT, PIECES = range(8)
MAGIC = np.float32(1 << 23)  # Adding it to a guess rounds the guess.
NO_LINE: Line = (np.float32(0),) * 3
NOTHING = np.empty(0, np.float32)

PAIR_LEVELS = 4096  # The most levels of the kernels of pairs.
PAIR_CODES = 4097  # The most codes where several may stand for one bin.
FEW_LEVELS = 1024  # Up to this number of levels any rule pays.
KEY_ENDS = float((1 << 24) + (1 << 16) - 1)  # The sum of the ends of the keys of 16 bits.
PAIR_CELLS = (256, 512, 1024, 2048, 4096)  # Entries of tables of even cells.
PIECES_TRIED = (64, 128, 256, 512, 1024, 2048)
# Fractions of the thresholds that may be trimmed from either end, where they are less dense.
DENSE_ENDS = (0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
DENSE_TRIED = 6  # Pairs of trimmed ends that are tried, the densest ones.
DENSE_MORE = (1, 1.1, 1.25, 1.5, 2)  # Factors of the number of cells that are tried for each pair.
MOST_INSIDE = 24  # The most thresholds inside a piece.
FINEST = 256  # The most codes of a piece.
SLACK = 1e-3  # Part of a piece that rounding may add beyond its ends.


def line_through(first: float, final: float, from_guess: int, to_guess: int, last: int) -> Line:
    """Return the line by which two keys have two guesses, of which `last` is the greatest.

    If there is none, all keys have the guess 0. Other flat lines would not be monotonic: zero times
    an infinite key is NaN, whose guess is 0.
    """
    with np.errstate(all="ignore"):
        low = np.float64(first)
        span = np.float64(final) - np.float64(first)
        scale = np.float32(np.float64(to_guess - from_guess) / last / span)
        offset = np.float32(np.float64(from_guess) / last - low * np.float64(scale))
    if not (np.isfinite(scale) and np.isfinite(offset) and scale):
        offset = scale = np.float32(0)
    return offset, scale, np.float32(last)


def _limited(unit: Array) -> NDArray[np.float32]:
    """Return guesses limited to [0, 1]; NaN becomes 0."""
    return np.where(unit > 0, np.minimum(unit, np.float32(1)), np.float32(0))


def _units(keys: Array, line: Line) -> NDArray[np.float32]:
    """Return guesses between 0 and 1, as the device computes them."""
    offset, scale, _ = line
    return _limited(multiply_add(keys, scale, offset))


def guesses(keys: Array, *lines: Line) -> NDArray[np.int64]:
    """Return the guesses of keys, which are the sums of those by each line."""
    total = np.full(keys.size, MAGIC)
    for line in lines:
        total = multiply_add(_units(keys, line), line[2], total)
    return (total - MAGIC).astype(np.int64)


def is_near(keys: Array, line: Line, first: int = 0) -> bool:
    """Return whether the guesses of keys are `first` and so on, by a good margin."""
    places = _units(keys, line).astype(np.float64) * line[2]
    errors = places - first - np.arange(keys.size)
    return bool(np.abs(errors).max() < 0.25)


def multiply_add(a: Array, b: np.float32 | Array, c: np.float32 | Array) -> NDArray[np.float32]:
    """Return a * b + c, rounded once, as the device does it."""
    with np.errstate(all="ignore"):
        product = a.astype(np.float64) * np.asarray(b, np.float64)  # 64 bits hold it exactly.
        term = np.asarray(c, np.float64)
        total = product + term
        back = total - product
        error = (product - (total - back)) + (term - back)
        # A sum that is rounded to odd in 53 bits rounds to 24 bits as the exact sum does.
        inexact = (error != 0) & np.isfinite(error) & (total.view(np.int64) & 1 == 0)
        away = np.where(error > 0, np.inf, -np.inf)
        return np.where(inexact, np.nextafter(total, away), total).astype(np.float32)


class PairRule(NamedTuple):
    """How the kernels of pairs find the code of a value.

    The guess of a key by a line is ``low + scale * key``, limited to [0, 1], times `last`. CELLS:
    the sum of those by `line` and `dense`, which is for dense thresholds. PIECES: `line` guesses a
    piece, and the last number of `dense` is the largest code.
    """

    rule: int
    codes: int  # The number of codes.
    line: Line = NO_LINE
    dense: Line = NO_LINE
    # The threshold of each code: the code of a key that does not reach it is one less.
    table: Array = NOTHING
    bins: Array = NOTHING  # The bin of each code, for CELLS and PIECES.
    pieces: Array = NOTHING  # ``low, scale`` of each piece, whose guess is a code.

    def memory(self) -> NDArray[np.uint8]:
        """Return what the kernels read from global memory."""
        parts = self.table, self.bins, self.pieces
        as_bytes = [part.ravel().view(np.uint8) for part in parts]
        return np.concatenate(as_bytes)

    def guesses(self, keys: Array) -> NDArray[np.int64]:
        """Return the codes that the device guesses."""
        if self.rule != PIECES:
            return guesses(keys, self.line, self.dense)
        lines = self.pieces[guesses(keys, self.line)]
        last = self.dense[2]
        units = _limited(multiply_add(keys, lines[:, 1], lines[:, 0]))
        return (multiply_add(units, last, MAGIC) - MAGIC).astype(np.int64)


@np.errstate(all="ignore")  # Numbers that overflow are infinite, and do not fit.
def pair_rule(values: Array, thresholds: Array, keys: Array, superlevel: bool) -> PairRule | None:
    """Return the cheapest rule of the kernels of pairs for levels `values`, or None.

    Code k is for samples that reach k levels in the order of codes (superlevel: from the lowest
    level on, sublevel: from the highest on). Samples that reach none, and NaN, have the guess 0,
    which is free otherwise.
    """
    count = keys.size
    if not 0 < count <= PAIR_LEVELS:
        return None
    wide = keys.dtype != np.float32  # Float32 cannot hold these keys.
    span = 1 << int(count - 1).bit_length()
    # Lines through the least integer are often exact; complements make it the largest one.
    tried = (AFFINE,) if values.dtype.kind == "f" else (AFFINE, COMPLEMENT)
    for rule in () if wide else tried:
        fit = _affine_fit(
            values,
            thresholds,
            keys=keys,
            superlevel=superlevel,
            span=span,
            complement=rule == COMPLEMENT,
        )
        if fit is not None:
            return PairRule(rule, span + 1, (*fit, np.float32(span)))
    ordered = np.ascontiguousarray(keys if superlevel else keys[::-1])
    # Guesses of wide keys are those of the rounded keys, which are in the same order.
    rounded = ordered.astype(np.float32)
    finite = rounded[np.isfinite(rounded)].astype(np.float64)
    if finite.size == 0 or (wide and (finite.size < count or finite[0] == finite[-1])):
        return None
    first = finite[0]
    final = finite[-1]
    if first == final:
        first -= max(abs(final), 1) * (1 if superlevel else -1)
    step = (final - first) / max(finite.size - 1, 1)
    line = line_through(final - count * step, final, from_guess=0, to_guess=count, last=count)
    if is_near(rounded, line, 1):
        table = np.append(_never(keys.dtype, superlevel), ordered)
        return PairRule(UNIFORM, count + 1, line, table=table)
    if wide:
        return None
    even = (
        (line_through(first, final, from_guess=1, to_guess=n - 2, last=n - 1), NO_LINE)
        for n in PAIR_CELLS
    )
    for line, dense in itertools.chain(_lines_by_density(finite), even):
        if np.diff(guesses(ordered, line, dense)).all():
            cells = int(line[2] + dense[2]) + 1
            return _looked_up(PairRule(CELLS, cells, line, dense), ordered, superlevel)
    return _by_pieces(ordered, superlevel)


def _by_pieces(ordered: Array, superlevel: bool) -> PairRule | None:
    """Return PIECES with few entries of tables, or None."""
    found = None
    fewest = math.inf
    for count in PIECES_TRIED:
        rule = pieces_rule(ordered, count)
        # Words of the tables that the kernels read; a code has copies of its count as well.
        entries = math.inf if rule is None else 3 * rule.codes + rule.pieces.size
        if found and entries >= fewest:
            break
        found = rule
        fewest = entries
    return found and _looked_up(found, ordered, superlevel)


def _never(dtype: np.dtype[Any], superlevel: bool) -> Any:
    """Return a key that enters at no level but itself."""
    if dtype.kind == "f":
        return dtype.type(-np.inf if superlevel else np.inf)
    return dtype.type(np.iinfo(dtype).min if superlevel else np.iinfo(dtype).max)


def _looked_up(rule: PairRule, ordered: Array, superlevel: bool) -> PairRule | None:
    """Return a rule with its table, whose guesses of the ordered thresholds are different."""
    found = rule.guesses(ordered)
    never = _never(ordered.dtype, superlevel)
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
        begin = int(low * count)
        end = count - 1 - int(high * count)
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
            last = int(np.ceil(first * factor)) + 3
            dense = int(np.ceil(more * factor))
            line = line_through(ordered[0], ordered[-1], from_guess=1, to_guess=last - 1, last=last)
            if dense:
                yield (
                    line,
                    line_through(
                        ordered[begin], ordered[end], from_guess=0, to_guess=dense, last=dense
                    ),
                )
            else:
                yield line, NO_LINE


def _affine_fit(
    values: Array, thresholds: Array, keys: Array, superlevel: bool, span: int, complement: bool
) -> tuple[np.float32, np.float32] | None:
    """Return float32 `low` and `scale` for which floor(span * (low + scale * key)) is the code.

    Codes are verified at each threshold and at the next sample beyond it (`even_lines`). A product
    of two float32 numbers is exact in float64, and so is the difference that it is compared with.
    Keys are those of the `complement` of integers.
    """
    side = -1.0 if superlevel else 1.0
    wide = keys.astype(np.float64)
    if values.dtype.kind == "f":
        past = next_values(values, up=not superlevel).astype(np.float64)
    else:
        past = wide + side
    if complement:
        wide = KEY_ENDS - wide
        past = KEY_ENDS - past
        side = -side
    if not (np.isfinite(past).all() and np.isfinite(wide).all()):
        return None
    count = keys.size
    places = np.arange(float(count))
    codes = (places + 1 if superlevel else count - places) / span
    steps = [1.0]
    if count > 1:
        steps = [width / (count - 1) for width in widths(values, thresholds)]
    for step in steps:
        near = np.float32(-side / (np.float64(step) * span))
        if not 1e-30 < abs(near) < 1e30:
            continue
        for scale in (near, np.nextafter(near, np.float32(0)), np.nextafter(near, 2 * near)):
            # Codes must be at most low + scale * key, and greater than that for the next sample.
            least = (codes - wide * np.float64(scale)).max()
            most = (codes - past * np.float64(scale)).min()
            low = np.float32((least + most) / 2)
            reached = codes - np.float64(low)
            fits = np.all(wide * scale >= reached) and np.all(past * scale < reached)
            if abs(low) < 1 << 30 and fits:
                return low, scale
    return None


def pieces_rule(ordered: Array, pieces: int) -> PairRule | None:
    """Return PIECES, without a table, whose guesses differ for all ordered thresholds, or None.

    Codes are given piece by piece, as few as separate its thresholds. Keys of a piece without
    thresholds have the last code of the piece before. Keys beyond the last finite threshold have
    its code or the last one of all, which is also that of infinity.
    """
    finite = ordered[np.isfinite(ordered)].astype(np.float64)
    line = line_through(finite[0], finite[-1], from_guess=1, to_guess=pieces - 2, last=pieces - 1)
    low, slope = (np.float64(number) * np.float64(line[2]) for number in line[:2])
    if not (np.isfinite(low) and np.isfinite(slope) and slope):
        return None
    piece_of = guesses(finite.astype(np.float32), line)
    begins = np.arange(pieces) - 0.5
    places = low + slope * finite - begins[piece_of]
    sizes = np.bincount(piece_of, minlength=pieces)
    if sizes.max() > MOST_INSIDE:
        return None
    starts = np.zeros(pieces)
    steps = np.full(pieces, np.inf)
    codes = sizes.astype(float)
    for size in np.unique(sizes[sizes > 1]):
        alike = np.flatnonzero(sizes == size)
        inside = places[np.isin(piece_of, alike)].reshape(-1, size)
        starts[alike], steps[alike], codes[alike] = _separate(inside)
    if codes.sum() >= PAIR_CODES - 1:
        return None
    before = np.cumsum(codes) - codes
    # Columns: an anchor key, the codes for each key, and the code at the anchor.
    found = np.stack(
        [(starts + begins - low) / slope, slope / steps, before + np.where(sizes > 1, 0.5, codes)]
    ).T
    last = int(codes.sum())
    found[-1] = (begins[-1] - low) / slope, slope, last
    last += 1
    with np.errstate(over="ignore"):
        scales = (found[:, 1] / last).astype(np.float32)
        lows = (found[:, 2] / last - scales * found[:, 0]).astype(np.float32)
    ends = NO_LINE[0], NO_LINE[1], np.float32(last)
    rule = PairRule(PIECES, last + 1, line, ends, pieces=np.stack([lows, scales], 1))
    return rule if _is_exact(rule, ordered) else None


def _separate(inside: Array) -> tuple[Array, Array, Array]:
    """Return where codes begin to change in each piece, how far apart, and their number.

    `inside` has the thresholds of a piece in each row, as places from 0 to 1. They get different
    codes, none of which is that of the piece before. The number is infinite if that fails.
    """
    gaps = (inside[:, 1:] + inside[:, :-1]) / 2
    i, j = np.triu_indices(gaps.shape[1], 1)
    between = (gaps[:, j] - gaps[:, i]) / (j - i)
    even = np.tile(0.5 ** np.arange(FINEST.bit_length()), (len(inside), 1))
    steps = np.maximum(np.concatenate([even, between], axis=1), 1 / FINEST)[:, :, None]
    starts = gaps[:, None] % steps
    starts = np.where(starts > inside[:, :1, None], starts - steps, starts)
    places = (inside[:, None, None] - starts[..., None]) / steps[..., None]
    codes = np.floor(places)
    margin = np.minimum(places - codes, codes + 1 - places).min(-1)
    good = (np.diff(codes) > 0).all(-1) & (codes[..., 0] >= 0) & (starts < steps - SLACK)
    good &= margin > 8 * PAIR_CODES * 2.0**-24
    number = np.where(good, np.floor((1 + SLACK - starts) / steps) + 1, np.inf)
    best = np.argmin((number - margin).reshape(len(inside), -1), axis=1)
    steps = np.broadcast_to(steps, number.shape)
    starts, steps, number = (
        part.reshape(len(inside), -1)[np.arange(len(inside)), best]
        for part in (starts, steps, number)
    )
    return starts, steps, number


def _is_exact(rule: PairRule, ordered: Array) -> bool:
    """Return whether guesses of codes never decrease, and differ for all thresholds."""
    line = rule.line
    lines = rule.pieces
    if not np.isfinite(lines).all() or (np.diff(rule.guesses(ordered)) <= 0).any():
        return False
    sign = -1 if line[1] < 0 else 1
    if (sign * lines[:, 1] < 0).any():
        return False
    # Bisection finds `sign` times the rank of the first key of each piece but the first one.
    pieces = np.arange(1, len(lines))
    top = int(np.float32(np.inf).view(np.uint32))
    first = np.full(pieces.size, -top)
    high = np.full(pieces.size, top)
    while (first < high).any():
        middle = (first + high) >> 1
        reached = guesses(_key(sign * middle), line) >= pieces
        first = np.where(reached, first, middle + 1)
        high = np.where(reached, middle, high)
    before = rule.guesses(_key(sign * (first - 1)))
    at = rule.guesses(_key(sign * first))
    return bool((before <= at).all())


def _key(rank: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the float32 number of a rank: 0 has 0, -0 has -1, and infinities are the ends."""
    bits = np.where(rank < 0, (-1 - rank) | (1 << 31), rank)
    return bits.astype(np.uint32).view(np.float32)
