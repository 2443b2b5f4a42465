"""The components and holes of two images, and those that match, from trees that are joined."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.matching_images import NEVER, Images, enters_later
from ecc_core._backends.cpu.betti.trees import JOINED, Joined, Trees, nobody
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import bare

Array = NDArray[Any]
Points = NDArray[np.int64]

NO_CLASS = -1
NO_MASK = np.empty(0, np.bool_)
"""Stands for a mask where all points enter."""


class Classes(NamedTuple):
    """Classes of one dimension, by the points at which they are born and die, or `NEVER`."""

    births: Points
    deaths: Points


class Matched(NamedTuple):
    """The classes of one dimension of two images, and the pairs that match, by number, (m, 2)."""

    prediction: Classes
    target: Classes
    matches: Points


def match_components(images: Images, below: list[Joined], union: Trees) -> Matched:
    """Match components; the nodes of the union know those of the minima of both images."""
    shown = _mask_of(images)
    classes = []
    numbers = []
    for image, joined in zip(images[:2], below, strict=True):
        trees = joined.trees
        levels = image.levels.levels
        deaths = np.full(trees.starts.size, NEVER)
        found = Classes(np.empty_like(trees.starts), np.empty_like(trees.starts))
        number = np.empty_like(trees.starts)
        end_components(joined.younger, trees.places, deaths)
        count = list_components(
            trees.starts, deaths, levels, shown, images.sets, found.births, found.deaths, number
        )
        classes.append(Classes(found.births[:count], found.deaths[:count]))
        numbers.append(number)
    of_union = _entering(images, union).joined()
    lasting = of_union.lasting()
    lasting = lasting[np.argsort(lasting[:, 0])]
    births = tuple(joined.trees.starts for joined in below)
    all_levels = tuple(image.levels.levels for image in images[:3])
    matches = np.empty((of_union.younger.size + len(lasting), 2), np.int64)
    count = 0
    ends = [(lasting, np.full(len(lasting), NEVER))]
    if not images.sets:
        ends.insert(0, (of_union.ended, of_union.trees.places))
    for ages, deaths in ends:
        count = list_matches(
            ages,
            nobody(ages.dtype),
            deaths,
            births,
            all_levels,
            shown,
            images.sets,
            (numbers[0], numbers[1]),
            matches,
            count,
        )
    return Matched(classes[0], classes[1], matches[:count])


def match_holes(images: Images, maxima: Points, above: list[Joined]) -> Matched:
    """Match the components of the complement: holes of a plane, cavities of a volume.

    The nodes of the complements of both images know those of the maxima of the union.
    """
    shown = _mask_of(images)
    of_union = images.union.levels.levels
    classes = []
    numbers = []
    for image, joined in zip(images[:2], above, strict=True):
        most = joined.trees.starts.size + 1  # The kernel writes one entry behind the last.
        found = Classes(np.empty(most, np.int64), np.empty(most, np.int64))
        number = np.full(maxima.size, NO_CLASS)
        count = list_holes(
            joined.younger,
            joined.ended.reshape(-1),
            nobody(joined.ended.dtype),
            joined.trees.places,
            joined.trees.starts,
            maxima,
            (image.levels.levels, of_union),
            shown,
            found.births,
            found.deaths,
            number,
        )
        classes.append(Classes(found.births[:count], found.deaths[:count]))
        numbers.append(number)
    both = (numbers[0] != NO_CLASS) & (numbers[1] != NO_CLASS)
    return Matched(classes[0], classes[1], np.stack([own[both] for own in numbers], axis=1))


def _mask_of(images: Images) -> Array:
    shown = images.union.levels.shown
    return NO_MASK if shown is None else shown


def _entering(images: Images, trees: Trees) -> Trees:
    """Return trees of the union without the edges that join no components.

    Components that meet at points that never enter, or at those of a mask that are in neither
    image, are different ones.
    """
    union = images.union.levels
    if images.sets:
        joins = union.levels[trees.places] == 0
        if union.shown is not None:
            joins &= union.shown[trees.places]
    elif union.shown is not None:
        joins = union.shown[trees.places]
    else:
        return trees
    return trees._replace(ends=trees.ends[joins], places=trees.places[joins])


@kernel()
def end_components(younger, places, deaths):
    """Write the points at which components end, by the node at which they begin."""
    younger = bare(younger)
    places = bare(places)
    deaths = bare(deaths)
    for k in range(younger.size):
        if younger[k] != JOINED:
            deaths[younger[k]] = places[k]


@subroutine()
def shown_or_never(death, shown):
    """Return a point at which a class dies, or `NEVER` if it does not enter."""
    if shown.size == 0 or death == NEVER:
        return death
    return death if shown[death] else NEVER


@kernel()
def list_components(starts, ends, levels, shown, sets, births, deaths, numbers):
    """List the components that last, and write the number of each among them, or `NO_CLASS`.

    Those of sets begin where a point is in one, and never end. Returns how many there are.
    """
    starts = bare(starts)
    ends = bare(ends)
    levels = bare(levels)
    shown = bare(shown)
    births = bare(births)
    deaths = bare(deaths)
    numbers = bare(numbers)
    count = 0
    for i in range(starts.size):
        birth = starts[i]
        death = ends[i]
        lasts = enters_later(levels, birth, levels, death, shown)
        if sets:
            lasts &= levels[birth] == 0
        births[count] = birth
        deaths[count] = NEVER if sets else shown_or_never(death, shown)
        numbers[i] = count if lasts else NO_CLASS
        count += lasts
    return count


@kernel()
def list_matches(ages, absent, deaths, births, levels, shown, sets, numbers, matches, count):
    """List the components of both images whose eldest points end together in the union.

    `ages` are those of the eldest points, (n, 2), or `absent`, and `levels` those of both images
    and the union. Writes to `matches` behind the first `count`; returns how many there are then.
    """
    ages = bare(ages)
    deaths = bare(deaths)
    shown = bare(shown)
    matches = bare(matches)
    starts = bare(births[0])
    other_starts = bare(births[1])
    own = bare(levels[0])
    others = bare(levels[1])
    of_union = bare(levels[2])
    own_numbers = bare(numbers[0])
    other_numbers = bare(numbers[1])
    for k in range(deaths.size):
        one = ages[k, 0]
        two = ages[k, 1]
        matched = (one != JOINED) & (one != absent) & (two != absent)
        one = np.uint64(one) if matched else np.uint64(0)
        two = np.uint64(two) if matched else np.uint64(0)
        first = starts[one]
        second = other_starts[two]
        matched &= enters_later(own, first, of_union, deaths[k], shown)
        matched &= enters_later(others, second, of_union, deaths[k], shown)
        if sets:
            matched &= (own[first] == 0) & (others[second] == 0)
        matches[count, 0] = own_numbers[one]
        matches[count, 1] = other_numbers[two]
        count += matched
    return count


@kernel()
def list_holes(
    younger, ended, absent, places, starts, maxima, levels, shown, births, deaths, numbers
):
    """List the holes that last, and write the number of each at the maximum of the union.

    It is that at which the hole ends there, if it lasts there; numbers of others are left. `levels`
    are those of the image and of the union. Returns how many holes there are.
    """
    younger = bare(younger)
    ended = bare(ended)
    places = bare(places)
    starts = bare(starts)
    maxima = bare(maxima)
    shown = bare(shown)
    births = bare(births)
    deaths = bare(deaths)
    numbers = bare(numbers)
    own = bare(levels[0])
    of_union = bare(levels[1])
    count = 0
    for k in range(younger.size):
        if younger[k] == JOINED:
            continue
        birth = places[k]
        death = starts[np.uint64(younger[k] - 1)]
        lasts = enters_later(own, birth, own, death, shown)
        births[count] = birth
        deaths[count] = shown_or_never(death, shown)
        number = count if lasts else NO_CLASS
        count += lasts
        if ended[k] == absent:
            continue
        maximum = np.uint64(ended[k] - 1)
        matched = enters_later(own, birth, of_union, maxima[maximum], shown)
        numbers[maximum] = number if matched else NO_CLASS
    return count
