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
from ecc_core._backends.cpu.betti.matching_classes import (
    NO_MASK,
    Classes,
    Matched,
    match_components,
    match_holes,
)
from ecc_core._backends.cpu.betti.matching_images import NEVER, Image, Images, images_of
from ecc_core._backends.cpu.betti.memory import check_memory
from ecc_core._backends.cpu.betti.planar_trees import (
    extrema,
    forks_of,
    trees_above,
    trees_below,
)
from ecc_core._backends.cpu.betti.trees import (
    EntryOrder,
    Joined,
    Trees,
    VolumeBasins,
    loops_of,
    trees_of,
    volume_basins,
)
from ecc_core._backends.cpu.betti.union_loops import edges_that_close, squares_that_close
from ecc_core._backends.cpu.betti.volume import Volume
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.llvm import bare
from ecc_core._backends.cpu.order import sort_keys
from ecc_core._backends.cpu.pool import share, thread_count
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]
Points = NDArray[np.int64]


class _Grown(NamedTuple):
    """Trees of components, and of those of the complement if these are classes, too."""

    below: list[Joined]
    """The joined trees of both images."""
    union: Trees
    """The trees of the union, with the nodes of the minima of both images."""
    maxima: Points
    """The maxima of the union, the eldest first."""
    above: list[Joined]
    """The joined trees of the complements of both images, with the nodes of the maxima of the
    union."""
    tunnels: list[Tunnels]
    """The tunnels of both images, if these are volumes."""
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
    closed, tells in which order they enter. With `sets`, images are booleans, and points of the
    value that enters second join no components.
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
    found = [match_components(images, grown.below, grown.union)]
    if ndim == 3:
        assert grown.union_loops is not None
        found.append(_tunnels(images, grown.tunnels, grown.union_loops))
    if ndim > 1:
        found.append(match_holes(images, grown.maxima, grown.above))
    return found


def _grow_planes(images: Images) -> _Grown:
    """Return the trees of planes or lines; each scan finds those of both sides."""
    maxima = np.empty(0, np.int64)
    of_union = images.scan(images.union)
    of_union.keep()
    if images.filtration.ndim > 1:
        maxima = extrema(of_union, 1)
    below = []
    above = []
    for name, image in zip(("prediction", "target"), images[:2], strict=True):
        scan = images.scan(image)
        forks = forks_of(scan)
        own = trees_below(scan, forks, [], name=f"below {name}").joined()
        below.append(own)
        if images.filtration.ndim > 1:
            above.append(trees_above(scan, forks, own, [maxima], name=f"above {name}").joined())
    minima = [joined.trees.starts for joined in below]
    union = trees_below(of_union, forks_of(of_union), minima, name="below union", by_age=False)
    return _Grown(below, union, maxima, above, [], None)


def _grow_volumes(images: Images) -> _Grown:
    """Return the trees of volumes, and their tunnels."""
    cubes = images.filtration.cubes
    own, around = (kind_of(images.filtration, complement=over) for over in (False, True))
    above_union = _basins(images, images.union, around)
    maxima = trees_of(above_union, [], "above union").starts
    if cubes:
        union_loops = edges_that_close(loops_of(above_union))
        union_order = _kept(above_union.order)
    else:
        union_loops = squares_that_close(above_union)
    below: list[Joined] = []
    above: list[Joined] = []
    tunnels = []
    for name, image in zip(("prediction", "target"), images[:2], strict=True):
        loops = {}
        for side, kind, trees, others in (
            ("below", own, below, []),
            ("above", around, above, [maxima]),
        ):
            found = _basins(images, image, kind)
            trees.append(trees_of(found, others, f"{side} {name}").joined())
            loops[kind.connectivity] = loops_of(found, trees[-1])
            if kind.connectivity == 1:
                order = _kept(found.order)
                volume = found.volume
        tunnels.append(_tunnels_of(images, image, order, loops, volume))
    below_union = _basins(images, images.union, own)
    minima = [joined.trees.starts for joined in below]
    union_trees = trees_of(below_union, minima, "below union")
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
        all_of_image = ImagePairs(births, found.deaths, np.arange(births.size))
        by_length = _by_birth_and_length(images, image, all_of_image)
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


def _by_birth_and_length(images: Images, image: Image, pairs: ImagePairs) -> Points:
    """Return the order of classes by points of birth, and from the last death in an image.

    The killers decide if both are equal.
    """
    shown = images.union.levels.shown
    places = images.union.levels.levels.size
    order = sort_keys(pairs.births.astype(np.uint64), places.bit_length())
    shown = NO_MASK if shown is None else shown
    order_by_death(order, *pairs, image.keys, shown)
    return order.astype(np.int64)


@kernel()
def order_by_death(order, births, deaths, killers, keys, shown):
    """Order classes that are born at one point, of which there are few, from the last death on."""
    order = bare(order)
    births = bare(births)
    deaths = bare(deaths)
    killers = bare(killers)
    keys = bare(keys)
    shown = bare(shown)
    for k in range(1, order.size):
        i = k
        while i > 0 and births[order[i - 1]] == births[order[i]]:
            one = order[i - 1]
            other = order[i]
            death = deaths[one]
            later = deaths[other]
            if shown.size > 0 and shown[death] != shown[later]:
                swapped = shown[death]
            elif keys[death] != keys[later]:
                swapped = keys[death] < keys[later]
            elif death != later:
                swapped = death < later
            else:
                swapped = killers[one] < killers[other]
            if not swapped:
                break
            order[i - 1] = other
            order[i] = one
            i -= 1
