"""Guesses of bins and codes by straight lines, rounded as the device rounds them.

With these the host proves that a rule by which kernels find bins is exact. As guesses are
monotonic, it is enough to examine the thresholds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Line = tuple[np.float32, np.float32, np.float32]

# Rules, as in options.cuh.
UNIFORM, SEARCH, CONSECUTIVE, TABLE, AFFINE, CELLS, COMPLEMENT, PIECES = range(8)
MAGIC = np.float32(1 << 23)  # added to a guess, to round it


def line_through(first: float, final: float, from_guess: int, to_guess: int, last: int) -> Line:
    """Return the line by which two keys have two guesses, of which `last` is the greatest.

    If there is none, all keys have the guess 0. Other flat lines would not be monotonic: zero times
    an infinite key is NaN, whose guess is 0.
    """
    with np.errstate(all="ignore"):
        low, span = np.float64(first), np.float64(final) - np.float64(first)
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
    return bool(np.abs(places - first - np.arange(keys.size)).max() < 0.25)


def multiply_add(a: Array, b: np.float32 | Array, c: np.float32 | Array) -> NDArray[np.float32]:
    """Return a * b + c, rounded once, as the device does it."""
    with np.errstate(all="ignore"):
        product = a.astype(np.float64) * np.asarray(b, np.float64)  # exact
        term = np.asarray(c, np.float64)
        total = product + term
        back = total - product
        error = (product - (total - back)) + (term - back)
        # Rounded to odd, 53 bits round on to 24 as the exact sum would.
        inexact = (error != 0) & np.isfinite(error) & (total.view(np.int64) & 1 == 0)
        away = np.where(error > 0, np.inf, -np.inf)
        return np.where(inexact, np.nextafter(total, away), total).astype(np.float32)


MOST_INSIDE = 24  # thresholds of a piece
FINEST = 256  # codes of a piece, at most
SLACK = 1e-3  # of a piece beyond its ends, which rounding may add


class Pieces(NamedTuple):
    """Guesses of codes by pieces."""

    line: Line  # whose guess is a piece
    # (pieces, 2) ``low, scale`` of each piece: the guess of a code is ``low + scale * key``,
    # limited to [0, 1], times `last`.
    lines: NDArray[np.float32]
    last: np.float32  # the largest code

    @property
    def entries(self) -> int:
        """Words of the tables that the kernels read; a code has copies of its count as well."""
        return 3 * (int(self.last) + 1) + self.lines.size

    def guesses(self, keys: Array) -> NDArray[np.int64]:
        """Return the codes that the device guesses."""
        lines = self.lines[guesses(keys, self.line)]
        units = _limited(multiply_add(keys, lines[:, 1], lines[:, 0]))
        return (multiply_add(units, self.last, MAGIC) - MAGIC).astype(np.int64)


def by_pieces(ordered: Array, pieces: int, most: int) -> Pieces | None:
    """Return guesses that differ for all of the ordered thresholds, or None.

    Codes are given piece by piece, as few as separate its thresholds and `most` in all. Keys of a
    piece without thresholds have the last code of the piece before. Keys beyond the last finite
    threshold have its code or the last one of all, which is also that of infinity.
    """
    finite = ordered[np.isfinite(ordered)].astype(np.float64)
    line = line_through(finite[0], finite[-1], 1, pieces - 2, pieces - 1)
    low, slope = (np.float64(number) * np.float64(line[2]) for number in line[:2])
    if not (np.isfinite(low) and np.isfinite(slope) and slope):
        return None
    piece_of = guesses(finite.astype(np.float32), line)
    begins = np.arange(pieces) - 0.5
    places = low + slope * finite - begins[piece_of]
    sizes = np.bincount(piece_of, minlength=pieces)
    if sizes.max() > MOST_INSIDE:
        return None
    starts, steps, codes = np.zeros(pieces), np.full(pieces, np.inf), sizes.astype(float)
    for size in np.unique(sizes[sizes > 1]):
        alike = np.flatnonzero(sizes == size)
        inside = places[np.isin(piece_of, alike)].reshape(-1, size)
        starts[alike], steps[alike], codes[alike] = _separate(inside, most)
    if codes.sum() >= most - 1:
        return None
    before = np.cumsum(codes) - codes
    found = np.stack(  # the key whose place is the third number, and places for a key
        [(starts + begins - low) / slope, slope / steps, before + np.where(sizes > 1, 0.5, codes)]
    ).T
    last = int(codes.sum())
    found[-1] = (begins[-1] - low) / slope, slope, last
    last += 1
    with np.errstate(over="ignore"):
        scales = (found[:, 1] / last).astype(np.float32)
        lows = (found[:, 2] / last - scales * found[:, 0]).astype(np.float32)
    rule = Pieces(line, np.stack([lows, scales], 1), np.float32(last))
    return rule if _is_exact(rule, ordered) else None


def _separate(inside: Array, most: int) -> tuple[Array, Array, Array]:
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
    good &= margin > 8 * most * 2.0**-24
    number = np.where(good, np.floor((1 + SLACK - starts) / steps) + 1, np.inf)
    best = np.argmin((number - margin).reshape(len(inside), -1), axis=1)
    steps = np.broadcast_to(steps, number.shape)
    starts, steps, number = (
        part.reshape(len(inside), -1)[np.arange(len(inside)), best]
        for part in (starts, steps, number)
    )
    return starts, steps, number


def _is_exact(rule: Pieces, ordered: Array) -> bool:
    """Return whether guesses of codes never decrease, and differ for all thresholds."""
    if not np.isfinite(rule.lines).all() or (np.diff(rule.guesses(ordered)) <= 0).any():
        return False
    sign = -1 if rule.line[1] < 0 else 1
    if (sign * rule.lines[:, 1] < 0).any():
        return False
    first = _first_keys(rule.line, sign)
    before, at = rule.guesses(_key(sign * (first - 1))), rule.guesses(_key(sign * first))
    return bool((before <= at).all())


def _key(rank: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the float32 number of a rank: 0 has 0, -0 has -1, and infinities are the ends."""
    bits = np.where(rank < 0, (-1 - rank) | (1 << 31), rank)
    return bits.astype(np.uint32).view(np.float32)


def _first_keys(line: Line, sign: int) -> NDArray[np.int64]:
    """Return `sign` times the rank of the first key of each piece but the first one."""
    pieces = np.arange(1, int(line[2]) + 1)
    top = int(np.float32(np.inf).view(np.uint32))
    low, high = np.full(pieces.size, -top), np.full(pieces.size, top)
    while (low < high).any():
        middle = (low + high) >> 1
        reached = guesses(_key(sign * middle), line) >= pieces
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return low
