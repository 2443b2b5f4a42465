"""Permutations of two groups, and the independent units that are permuted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ecc_core._arrays import on_host
from ecc_core.features._steps import Floats

__all__ = ["Permutations", "blocks", "differences", "regroupings", "sign_flips", "unit_means"]

BLOCK = 2**22  # resampled values held at a time


class Permutations(NamedTuple):
    """Weights of curves, whose weighted sum is the difference of two groups."""

    observed: Floats
    """(n,), of the groups as they are."""
    permuted: Iterator[Floats]
    """Blocks (k, n)."""
    exact: bool
    """Whether the blocks contain all permutations once, and not a random sample of them."""


def blocks(count: int, width: int) -> Iterator[int]:
    """Yield sizes of parts that add up to `count`, each of limited memory."""
    most = max(1, BLOCK // width)
    for begin in range(0, count, most):
        yield min(most, count - begin)


def regroupings(
    first: int, second: int, most: int, width: int, generator: np.random.Generator
) -> Permutations:
    """Divide n = first + second curves into groups of these sizes, in at most `most` ways."""
    total = math.comb(first + second, first)
    observed = np.repeat([1 / first, -1 / second], [first, second])
    sizes = blocks(min(total, most), max(width, observed.size))
    if total > most:
        shuffled = (
            generator.permuted(np.broadcast_to(observed, (size, observed.size)).copy(), axis=1)
            for size in sizes
        )
        return Permutations(observed, shuffled, exact=False)
    return Permutations(observed, _all_regroupings(first, second, sizes), exact=True)


def _all_regroupings(first: int, second: int, sizes: Iterator[int]) -> Iterator[Floats]:
    groups = itertools.combinations(range(first + second), first)
    for size in sizes:
        members = np.array(list(itertools.islice(groups, size)))
        weights = np.full((size, first + second), -1 / second)
        np.put_along_axis(weights, members, 1 / first, axis=1)
        yield weights


def sign_flips(count: int, most: int, width: int, generator: np.random.Generator) -> Permutations:
    """Reverse the signs of differences, in at most `most` ways."""
    total = 2**count
    observed = np.full(count, 1 / count)
    sizes = blocks(min(total, most), max(width, count))
    if total > most:
        flipped = (generator.integers(2, size=(size, count)) for size in sizes)
        return Permutations(observed, ((1 - 2 * bits) / count for bits in flipped), exact=False)
    ends = itertools.accumulate(sizes, initial=0)
    numbers = (np.arange(begin, end) for begin, end in itertools.pairwise(ends))
    flipped = (at[:, None] >> np.arange(count) & 1 for at in numbers)
    return Permutations(observed, ((1 - 2 * bits) / count for bits in flipped), exact=True)


def unit_means(
    groups: tuple[Floats, Floats], units: Any
) -> tuple[dict[Any, Floats], dict[Any, Floats]]:
    """Return the mean curve of each unit in each of the groups `first` and `second`."""
    if not isinstance(units, tuple | list) or len(units) != 2:
        got = f"{len(units)} of them" if isinstance(units, tuple | list) else type(units).__name__
        raise TypeError(
            f"`units` must be two sequences of ids, for `first` and for `second`, got {got}"
        )
    first, second = (
        _means(*given) for given in zip(groups, units, ("first", "second"), strict=True)
    )
    return first, second


def _means(values: Floats, ids: Any, name: str) -> dict[Any, Floats]:
    if isinstance(ids, str) or not hasattr(ids, "__len__"):
        raise TypeError(f"`units` must have a sequence of ids for `{name}`, got {ids!r}")
    known = list(ids) if isinstance(ids, Sequence) else on_host(ids).tolist()
    if len(known) != len(values):
        raise ValueError(
            f"`units` must have an id for each curve of `{name}`, "
            f"got {len(known)} ids for {len(values)} curves"
        )
    rows: dict[Any, list[int]] = {}
    for row, unit in enumerate(known):
        if unit is None or unit != unit:  # NaN
            raise ValueError(f"`units` must have an id for each curve of `{name}`, got {unit!r}")
        rows.setdefault(unit, []).append(row)
    return {unit: values[members].mean(axis=0) for unit, members in rows.items()}


def differences(first: dict[Any, Floats], second: dict[Any, Floats]) -> Floats:
    """Return the difference between the curves of each unit, (n, ...)."""
    for unit in [*first, *second]:
        if unit not in first or unit not in second:
            there, absent = ("first", "second") if unit in first else ("second", "first")
            raise ValueError(
                "`units` must have each unit in both groups if `paired`, "
                f"got {unit!r} in `{there}` only, not in `{absent}`"
            )
    return np.stack([first[unit] - second[unit] for unit in first])
