"""Betti matching: which classes of two images are matched with the same class of their union.

The sets of the union contain those of both images. The classes of an image that are classes of the
union, too, are its *image* in the union, and have intervals of their own, from a birth in the image
to a death in the union: the persistence of this image. A class of each of two images match if the
intervals of both end with the same class of the union.

Components of the union grow as those of an image do, and know for both images the eldest minimum in
each of them. Where two components meet, the younger of the two eldest minima of each image ends its
interval. Holes of a plane and cavities of a volume are components of the complement, in which the
roles are exchanged: components of the complement of each image know the eldest maximum of the
union.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import Kind, kind_of
from ecc_core._backends.cpu.betti.cells import tunnel_pairs
from ecc_core._backends.cpu.betti.forest import Loops
from ecc_core._backends.cpu.betti.image_tunnels import ImagePairs, Tunnels, Union, image_pairs
from ecc_core._backends.cpu.betti.launch import order_plan
from ecc_core._backends.cpu.betti.matching_images import NEVER, Image, Images, images_of
from ecc_core._backends.cpu.betti.memory import check_memory
from ecc_core._backends.cpu.betti.trees import (
    JOINED,
    NOBODY,
    EntryOrder,
    Trees,
    VolumeBasins,
    loops_of,
    trees_of,
    volume_basins,
)
from ecc_core._backends.cpu.betti.union_loops import edges_that_close, squares_that_close
from ecc_core._backends.cpu.betti.volume import Volume
from ecc_core._backends.cpu.pool import share, thread_count
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]
Points = NDArray[np.int64]

NO_CLASS = -1


class Classes(NamedTuple):
    """Classes of one dimension, by the points at which they are born and die, or `NEVER`."""

    births: Points
    deaths: Points


class Matched(NamedTuple):
    """The classes of one dimension of two images, and the pairs that match, by number, (m, 2)."""

    prediction: Classes
    target: Classes
    matches: Points


class _Grown(NamedTuple):
    """Trees of components, and of those of the complement if these are classes, too."""

    below: list[Trees]
    """Of both images."""
    union: Trees
    """Of the union, with the nodes of the minima of both images."""
    maxima: Points
    """Of the union, the eldest first."""
    above: list[Trees]
    """Of the complements of both images, with the nodes of the maxima of the union."""
    tunnels: list[Tunnels]
    """Of both images, if they are volumes."""
    union_loops: Union | None


def betti_matching(
    predictions: Array,
    targets: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
    sets: bool = False,
) -> list[list[Matched]]:
    """Match the classes of each pair of images of two batches of one dtype, by dimension.

    The `mask` is False at points that never enter; the others are not NaN. The filtration, which is
    closed, tells in which order they enter. Of `sets`, which are booleans, points of the second of
    the two values join no components.
    """
    found: list[list[Matched]] = [[] for _ in predictions]

    def each(queue: Iterator[int]) -> None:
        for i in queue:
            shown = None if mask is None else mask[i]
            found[i] = _matched(images_of(predictions[i], targets[i], shown, filtration, sets))

    share(range(len(found)), each, thread_count(workers, len(found)))
    return found


def _matched(images: Images) -> list[Matched]:
    """Match the classes of two images, by dimension."""
    ndim = images.filtration.ndim
    if ndim == 3:
        values = images.union.values
        check_memory(values.shape, values.dtype, [1], images.filtration, 1)
    grown = _grow_volumes(images) if ndim == 3 else _grow_planes(images)
    found = [_components(images, grown)]
    if ndim == 3:
        assert grown.union_loops is not None
        found.append(_tunnels(images, grown.tunnels, grown.union_loops))
    if ndim > 1:
        found.append(_holes(images, grown))
    return found


def _grow_planes(images: Images) -> _Grown:
    """Return the trees of planes or lines; each scan finds those of both sides."""
    maxima = np.empty(0, np.int64)
    of_union = images.scan(images.union)
    of_union.keep()
    if images.filtration.ndim > 1:
        maxima = of_union.extrema(1)
    below = []
    above = []
    for image in images[:2]:
        scan = images.scan(image)
        below.append(scan.trees(0, []))
        if images.filtration.ndim > 1:
            above.append(scan.trees(1, [maxima]))
    union = of_union.trees(0, [trees.starts for trees in below])
    return _Grown(below, union, maxima, above, [], None)


def _grow_volumes(images: Images) -> _Grown:
    """Return the trees of volumes, and their tunnels."""
    cubes = images.filtration.cubes
    own, around = (kind_of(images.filtration, complement=over) for over in (False, True))
    above_union = _basins(images, images.union, around)
    maxima = trees_of(above_union, []).starts
    if cubes:
        union_loops = edges_that_close(loops_of(above_union))
        union_order = _kept(above_union.order)
    else:
        union_loops = squares_that_close(above_union)
    below: list[Trees] = []
    above: list[Trees] = []
    tunnels = []
    for image in images[:2]:
        loops = {}
        for kind, trees, others in ((own, below, []), (around, above, [maxima])):
            found = _basins(images, image, kind)
            trees.append(trees_of(found, others))
            loops[kind.connectivity] = loops_of(found)
            if kind.connectivity == 1:
                order = _kept(found.order)
                volume = found.volume
        tunnels.append(_tunnels_of(images, image, order, loops, volume))
    below_union = _basins(images, images.union, own)
    union_trees = trees_of(below_union, [trees.starts for trees in below])
    if not cubes:
        union_order = _kept(below_union.order)
    return _Grown(below, union_trees, maxima, above, tunnels, Union(union_order, union_loops))


def _basins(images: Images, image: Image, kind: Kind) -> VolumeBasins:
    return volume_basins(image.values, images.shown, kind)


def _kept(order: EntryOrder) -> EntryOrder:
    """Return an order that does not lie in the thread's memory."""
    return order._replace(keys=order.keys.copy())


def _tunnels_of(
    images: Images, image: Image, order: EntryOrder, loops: dict[int, Loops], volume: Volume
) -> Tunnels:
    """Return where the tunnels of an image begin and end, without those that last for no time."""
    values = image.values
    shown = images.shown
    plan = order_plan(values.dtype, images.filtration, shown is not None)
    births, deaths = tunnel_pairs(
        values, shown, volume, dict(loops), plan, images.filtration.cubes, 1
    )
    lasts = image.levels.lasts(births, image.levels, deaths)
    return Tunnels(births[lasts], deaths[lasts], order, loops)


def _components(images: Images, grown: _Grown) -> Matched:
    """Match components."""
    classes = []
    numbers = []
    eldest = []
    for image, own in zip(images[:2], grown.below, strict=True):
        births, deaths = _components_of(own)
        lasts = image.levels.lasts(births, image.levels, deaths)
        if images.sets:
            lasts &= _is_inside(image, births)
        classes.append(Classes(births[lasts], _dying(images, deaths[lasts])))
        numbers.append(_numbers(lasts))
        eldest.append(births)
    ends, places = _ends_in_union(images, grown.union)
    known = ((ends != JOINED) & (ends != NOBODY)).all(axis=0)
    ends = ends[:, known]
    places = places[known]
    lasts = np.ones(places.size, np.bool_)
    for image, births, ages_of in zip(images[:2], eldest, ends, strict=True):
        lasts &= image.levels.lasts(births[ages_of], images.union.levels, places)
        if images.sets:
            lasts &= _is_inside(image, births[ages_of])
    matches = [own[ages_of[lasts]] for own, ages_of in zip(numbers, ends, strict=True)]
    if images.sets:
        classes = [Classes(own.births, np.full_like(own.deaths, NEVER)) for own in classes]
    return Matched(classes[0], classes[1], np.stack(matches, axis=1))


def _ends_in_union(images: Images, trees: Trees) -> tuple[Array, Points]:
    """Return the ages of the eldest points of both images that end together in the union, (2, n).

    And where they end. Those of a component that never ends are together, too. Components that meet
    at points that never enter, or at those of a mask that join no components, are different ones.
    """
    entering = np.ones(trees.places.size, np.bool_)
    shown = images.union.levels.shown
    if images.sets:
        entering = _is_inside(images.union, trees.places)
    elif shown is not None:
        entering = shown[trees.places]
    places = trees.places[entering]
    ended, ages, roots = trees._replace(ends=trees.ends[entering], places=places).joined()
    lasting = ages[1:, np.unique(roots)]
    if images.sets:
        return lasting, np.full(lasting.shape[1], NEVER)
    never = np.full(lasting.shape[1], NEVER)
    return np.append(ended[1:], lasting, axis=1), np.append(places, never)


def _components_of(trees: Trees) -> tuple[Points, Points]:
    """Return where the components of an image begin and end, oldest first, even at one value."""
    (ended,), _, _ = trees.joined()
    deaths = np.full(trees.starts.size, NEVER)
    ends = ended != JOINED
    deaths[ended[ends]] = trees.places[ends]
    return trees.starts, deaths


def _is_inside(image: Image, points: Points) -> NDArray[np.bool_]:
    """Return whether points of a mask are among those that enter first."""
    levels = image.levels
    inside: NDArray[np.bool_] = levels.levels[points] == 0
    return inside if levels.shown is None else inside & levels.shown[points]


def _numbers(chosen: NDArray[np.bool_]) -> Points:
    """Return the numbers of those that are chosen among them, and `NO_CLASS` for others."""
    return np.where(chosen, np.cumsum(chosen) - 1, NO_CLASS)


def _holes(images: Images, grown: _Grown) -> Matched:
    """Match the components of the complement: holes of a plane, cavities of a volume."""
    union = images.union
    maxima = grown.maxima
    classes = []
    numbers = []
    for image, trees in zip(images[:2], grown.above, strict=True):
        (own, others), _, _ = trees.joined()
        ends = own != JOINED
        births = trees.places[ends]
        own = own[ends]
        others = others[ends]
        deaths = trees.starts[own - 1]
        lasts = image.levels.lasts(births, image.levels, deaths)
        classes.append(Classes(births[lasts], _dying(images, deaths[lasts])))
        number = np.full(maxima.size, NO_CLASS)
        known = others != NOBODY
        of_union = maxima[others[known] - 1]
        image_lasts = image.levels.lasts(births[known], union.levels, of_union)
        number[others[known][image_lasts] - 1] = _numbers(lasts)[known][image_lasts]
        numbers.append(number)
    both = (numbers[0] != NO_CLASS) & (numbers[1] != NO_CLASS)
    return Matched(classes[0], classes[1], np.stack([own[both] for own in numbers], axis=1))


def _dying(images: Images, deaths: Points) -> Points:
    """Return points of death, or `NEVER` for those that never enter."""
    shown = images.union.levels.shown
    return deaths if shown is None else np.where(shown[deaths], deaths, NEVER)


def _tunnels(images: Images, tunnels: list[Tunnels], union: Union) -> Matched:
    """Match tunnels.

    Of those that are born at one point, the longest is matched with the longest of the image.
    """
    classes = []
    numbers = []
    killing = []
    for image, found in zip(images[:2], tunnels, strict=True):
        births = found.births
        own = image_pairs(found, union)
        lasts = image.levels.lasts(own.births, images.union.levels, own.deaths)
        own = ImagePairs(*(part[lasts] for part in own))
        by_length = _by_birth_and_length(images, image, (births, found.deaths))
        of_image = _by_birth_and_length(images, images.union, own)
        begin = own.births[of_image]
        first = np.searchsorted(births[by_length], begin)
        nth = np.arange(begin.size) - np.searchsorted(begin, begin)
        numbers.append(by_length[first + nth])
        killing.append(own.killers[of_image])
        classes.append(Classes(births, _dying(images, found.deaths)))
    one, other = killing
    _, *both = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    matches = [own[chosen] for own, chosen in zip(numbers, both, strict=True)]
    return Matched(classes[0], classes[1], np.stack(matches, axis=1))


def _by_birth_and_length(images: Images, image: Image, pairs: tuple[Points, ...]) -> Points:
    """Return the order of classes by points of birth, and from the last death in an image.

    What is known besides births and deaths decides if both are equal.
    """
    births, deaths, *more = pairs
    last = np.lexsort((*more, deaths, image.keys[deaths], ~_shown_at(images, deaths)))[::-1]
    return last[np.argsort(births[last], kind="stable")]


def _shown_at(images: Images, points: Points) -> NDArray[np.bool_]:
    """Return which points enter at all."""
    shown = images.union.levels.shown
    return np.ones(points.size, np.bool_) if shown is None else shown[points]
