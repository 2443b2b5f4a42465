"""Permutations of two groups, and the independent units that are permuted."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ecc_core._arrays import on_host
from ecc_core.features._steps import Floats

RESAMPLED_AT_ONCE = 2**22
"""The most resampled values in memory."""


class Permutations(NamedTuple):
    """Weights of n curves, whose weighted sums are g differences of groups."""

    observed: Floats
    """(g, n) weights for the groups as they are."""
    permuted: Iterator[Floats]
    """Blocks (k, g, n) of weights for k permutations."""
    exact: bool
    """Whether the blocks contain each permutation once, instead of a random sample."""


def blocks(count: int, width: int) -> Iterator[int]:
    """Yield sizes of parts that add up to `count`, each of limited memory."""
    most = max(1, RESAMPLED_AT_ONCE // width)
    for begin in range(0, count, most):
        yield min(most, count - begin)


def regroupings(
    sizes: Sequence[int], most: int, width: int, generator: np.random.Generator
) -> Permutations:
    """Divide curves into groups of these sizes, in at most `most` ways.

    For two groups, the weighted sum is the difference of their means. For more groups there is a
    weighted sum for each: the difference of its mean from that of all curves, which must be 0,
    times the square root of its fraction of the curves.
    """
    count = sum(sizes)
    means = np.repeat(np.diag([1 / size for size in sizes]), sizes, axis=1)
    if len(sizes) == 2:
        weights = means[:1] - means[1:]
    else:
        weights = np.sqrt(np.array(sizes) / count)[:, None] * means
    ways = [math.comb(sum(sizes[i:]), size) for i, size in enumerate(sizes)]
    total = math.prod(ways)
    parts = blocks(min(total, most), max(width, count) * len(weights))
    if total > most:
        each = np.arange(count)
        orders = (generator.permuted(np.tile(each, (size, 1)), axis=1) for size in parts)
    else:
        every = _arrangements(sizes, range(count), 0)
        orders = (np.array([*itertools.islice(every, size)]) for size in parts)
    permuted = (np.moveaxis(weights[:, order], 0, 1) for order in orders)
    return Permutations(weights, permuted, exact=total <= most)


def _arrangements(sizes: Sequence[int], left: Sequence[int], first: int) -> Iterator[list[int]]:
    """Yield all ways to assign the curves `left` to groups of these sizes.

    For each curve it is the number of a curve that is originally in its new group, the first of
    which is `first`.
    """
    if len(sizes) == 1:
        yield [first] * len(left)
        return
    for own in itertools.combinations(range(len(left)), sizes[0]):
        rest = [i for i in range(len(left)) if i not in own]
        for others in _arrangements(sizes[1:], rest, first + sizes[0]):
            found = dict(zip(rest, others, strict=True)) | dict.fromkeys(own, first)
            yield [found[i] for i in range(len(left))]


def sign_flips(count: int, most: int, width: int, generator: np.random.Generator) -> Permutations:
    """Reverse the signs of differences, in at most `most` ways."""
    total = 2**count
    observed = np.full((1, count), 1 / count)
    sizes = blocks(min(total, most), max(width, count))
    if total > most:
        flipped = (generator.integers(2, size=(size, 1, count)) for size in sizes)
        return Permutations(observed, ((1 - 2 * bits) / count for bits in flipped), exact=False)
    ends = itertools.accumulate(sizes, initial=0)
    numbers = (np.arange(begin, end) for begin, end in itertools.pairwise(ends))
    flipped = (at[:, None, None] >> np.arange(count) & 1 for at in numbers)
    return Permutations(observed, ((1 - 2 * bits) / count for bits in flipped), exact=True)


def independent_curves(groups: dict[str, Floats], units: Any, paired: bool) -> list[Floats]:
    """Return the mean curves (k, n) of the units of each group, or the differences of pairs."""
    counts = [len(values) for values in groups.values()]
    got = " and ".join(map(str, counts))
    if not all(counts):
        names = " and ".join(f"`{name}`" for name in groups)
        raise ValueError(f"{names} must hold curves, got {got}")
    if paired and len(groups) > 2:
        raise ValueError(f"`paired` must be False for more than two groups, got {len(groups)}")
    if units is None:
        if not paired:
            return [*groups.values()]
        if len(set(counts)) > 1:
            raise ValueError(
                "`first` and `second` must hold as many curves if `paired` without `units`, "
                f"got {got}"
            )
        units = [list(range(count)) for count in counts]
    means = unit_means(groups, units)
    quoted = [f"`{name}`" for name in groups]
    for number, unit in ((i, unit) for i, own in enumerate(means) for unit in own):
        others = [quoted[i] for i, own in enumerate(means[:number]) if unit in own]
        if not paired and others:
            raise ValueError(
                "`units` must have each unit in one group unless `paired`, "
                f"got {unit!r} in {others[0]} and {quoted[number]}"
            )
        if paired and unit not in means[1 - number]:
            raise ValueError(
                "`units` must have each unit in both groups if `paired`, "
                f"got {unit!r} in {quoted[number]} only, not in {quoted[1 - number]}"
            )
    if paired:
        first, second = means
        return [np.stack([first[unit] - second[unit] for unit in first])]
    return [np.stack([*own.values()]) for own in means]


def unit_means(groups: dict[str, Floats], units: Any) -> list[dict[Any, Floats]]:
    """Return the mean curve of each unit, by id, for each of the groups."""
    if not isinstance(units, tuple | list) or len(units) != len(groups):
        got = f"{len(units)} of them" if isinstance(units, tuple | list) else type(units).__name__
        names = " and for ".join(f"`{name}`" for name in groups)
        count = "two" if len(groups) == 2 else len(groups)
        raise TypeError(f"`units` must be {count} sequences of ids, for {names}, got {got}")
    return [_means(*group, ids) for group, ids in zip(groups.items(), units, strict=True)]


def _means(name: str, values: Floats, ids: Any) -> dict[Any, Floats]:
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
        if unit is None or unit != unit:  # NaN is not equal to itself.
            raise ValueError(f"`units` must have an id for each curve of `{name}`, got {unit!r}")
        rows.setdefault(unit, []).append(row)
    return {unit: values[members].mean(axis=0) for unit, members in rows.items()}
