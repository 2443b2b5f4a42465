"""The points of an image in the order in which they enter, with its minima and forks."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import kind_of
from ecc_core._backends.cpu.betti.blocks import SPARE, Staged
from ecc_core._backends.cpu.betti.forest import Ways, ways_of
from ecc_core._backends.cpu.betti.halo import index_type, wrap_halo
from ecc_core._backends.cpu.betti.launch import laid_out, order_plan
from ecc_core._backends.cpu.betti.links import LINKS, MOST_MEMBERS, Link
from ecc_core._backends.cpu.betti.rings import scan_rings, tables_of
from ecc_core._backends.cpu.betti.scan import scan_links
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.order import ordered_keys
from ecc_core._backends.cpu.gathering import values_at
from ecc_core._backends.cpu.llvm import ALL, NONE, bare
from ecc_core._backends.cpu.order import entry_values, narrowed, sort_keys, stable_order
from ecc_core._backends.cpu.sources import Block, scratch
from ecc_core._request.filtration import Filtration
from ecc_core._request.persistence import MOST_GAP

Array = NDArray[Any]
Flags = tuple[bool, bool, bool]

SHORT_KEYS = 2
"""Keys of so many bytes are sorted with one counter for each key."""
PLANE_IN_CACHE = 1 << 19
"""Points of a plane whose labels fit in the second-level cache."""
LARGEST_VOLUME = 1 << 24
"""Points of the largest volume that is flooded in order. Larger ones are flooded by words, which
takes 8 bytes a point less, and no more time where regions are cut."""
POINTS_A_COUNTER = 0.25
"""With more points for each counter, counting keys is faster than sorting them."""


class Entering(NamedTuple):
    """An image whose points have places in an array with a border of one point."""

    staged: Staged
    link: Link
    offsets: Array
    """The distances of the members of the link."""
    keys: Array
    """The keys of points by place, which increase in the order of entry."""
    order: Array
    """The places of the points that enter, in the order of entry."""
    minima: Array
    """The places of the minima that enter, in the order of entry."""
    forks: Array
    """The places of all forks, also of those at points that never enter."""
    links: NDArray[np.uint32]
    """An end of each component of the lower link of each fork, as a set of members."""
    twins: Array
    """For each place the next one that stands for the same point of a periodic image, or -1. It is
    empty if each point has one place."""


def sorting_pays(image: Array, masked: bool, filtration: Filtration) -> bool:
    """Return whether regions are found faster if all points of an image are sorted first.

    Points of periodic images are always sorted, since equal ones are compared by their ranks.
    """
    if image.size == 0:
        return False
    if any(filtration.boundary.wraps):
        return True
    wide = masked and image.dtype.kind in "biu"  # Keys then need one value beyond the dtype.
    short = image.dtype.itemsize * (2 if wide else 1) <= SHORT_KEYS
    most = LARGEST_VOLUME if image.ndim == 3 else PLANE_IN_CACHE
    return short and image.size <= most


def entering_points(image: Array, shown: Array, filtration: Filtration) -> Entering:
    """Return the points of an image that are shown in the order in which they enter."""
    masked = not shown.all()
    field = laid_out(narrowed(image, masked), shown if masked else None)
    staged = Staged(Block((0, 0, 0), field.source.shape), field)
    wraps = _wraps(image.shape, filtration)
    count = int(np.count_nonzero(shown))
    if any(wraps):
        return _periodic_points(image, shown, filtration, staged, wraps)
    plan = order_plan(field.source.array.dtype, filtration, masked)
    keys, _, _ = staged.load(plan, "omit")
    bins = 1 << 8 * image.dtype.itemsize
    if masked:
        bins = min(bins, plan.never)
    order = scratch.take("order", count, _index_of(staged))
    if keys.itemsize <= SHORT_KEYS and image.size >= POINTS_A_COUNTER * bins:
        order_by_counting(keys, staged.layout, np.zeros(bins, np.int64), order)
    else:
        own = np.ascontiguousarray(staged.part(keys, staged.block)).reshape(-1)
        stage_points(sort_keys(own)[:count], staged.layout, order)
    if field.ndim < 3:
        minima, forks, links = _planar_forks(keys, staged, filtration)
    else:
        minima, forks, links = _forks(keys, staged, filtration, wraps)
    minima = _in_order(minima, keys, plan.never if count < image.size else None)
    twins = np.empty(0, order.dtype)
    return Entering(staged, *_link(staged, filtration), keys, order, minima, forks, links, twins)


def _in_order(minima: Array, keys: Array, never: int | None) -> Array:
    """Return minima in the order in which they enter, without those that have the key `never`."""
    own = values_at(keys, minima)
    order = sort_keys(own)
    if never is not None:
        order = order[: np.count_nonzero(own != never)]
    return minima[order]


def exact_values(values: Array, points: Entering, least: float) -> tuple[Array, Array, Any]:
    """Return the values of minima and forks, and a difference, all of one dtype.

    Differences of integers are exact, those of floats are float64. `values` grow in the order of
    entry.
    """
    listed = points.minima, points.forks
    short = values.dtype.itemsize <= SHORT_KEYS and not points.twins.size
    if short and values.dtype.kind != "f":  # Differences of these keys are those of the integers.
        found = [values_at(points.keys, places) for places in listed]
    else:
        flat = values.reshape(-1)
        found = [flat[points.staged.in_image(places)] for places in listed]
        if values.dtype.kind != "f":
            found = [ordered_keys(part) for part in found]
    wide = values.dtype.kind != "f" and values.dtype.itemsize == 8
    births, deaths = (part.astype(np.uint64 if wide else np.float64) for part in found)
    if not wide:
        return births, deaths, float(least)
    if least > MOST_GAP:  # No two values differ by as much: no component lasts.
        return np.zeros_like(births), np.zeros_like(deaths), 1
    return births, deaths, math.ceil(least)


def _periodic_points(
    image: Array, shown: Array, filtration: Filtration, staged: Staged, wraps: Flags
) -> Entering:
    """Return the points of a periodic image.

    Their keys are their places in the order: equal points in the halo would not be in the order of
    their own places.
    """
    points = stable_order(entry_values(image, filtration.superlevel).reshape(-1))
    points = points[shown.reshape(-1)[points]]
    index = _index_of(staged)
    order = scratch.take("order", points.size, index)
    stage_points(points, staged.layout, order)
    keys = scratch.take("ranks", staged.size + SPARE, np.dtype(f"u{index.itemsize}"))
    keys[:] = points.size  # The key of points that never enter.
    keys[order] = np.arange(points.size)
    wrap_halo(keys[: staged.size].reshape(staged.shape), wraps)
    home = np.arange(staged.size, dtype=index).reshape(staged.shape)
    twins = np.full(staged.size, -1, index)
    link_twins(wrap_halo(home, wraps).reshape(-1), twins)
    minima, forks, links = _forks(keys, staged, filtration, wraps)
    minima = _in_order(minima, keys, points.size)
    return Entering(staged, *_link(staged, filtration), keys, order, minima, forks, links, twins)


def _wraps(shape: tuple[int, ...], filtration: Filtration) -> Flags:
    """Return along which of three axes steps lead from one end of an image to the other one.

    Along an axis of one point they would lead to the point itself.
    """
    lead = (False,) * (3 - len(shape))
    touching = zip(filtration.boundary.wraps, shape, strict=True)
    z, y, x = (*lead, *(wraps and length > 1 for wraps, length in touching))
    return z, y, x


def _index_of(staged: Staged) -> np.dtype[Any]:
    """Return a dtype for places, and for the numbers of minima and forks together."""
    return np.dtype(index_type(2 * (staged.size + SPARE)))


def _ways(staged: Staged, filtration: Filtration) -> Ways:
    kind = kind_of(filtration, complement=False)
    return ways_of(staged.field.ndim, kind.connectivity, staged.steps)


def _link(staged: Staged, filtration: Filtration) -> tuple[Link, Array]:
    """Return the link of points, and the distances of its members."""
    kind = kind_of(filtration, complement=False)
    link = LINKS[3 if staged.field.ndim == 3 else 2, kind.connectivity]
    return link, _ways(staged, filtration).offsets


def _forks(
    keys: Array, staged: Staged, filtration: Filtration, wraps: Flags
) -> tuple[Array, Array, Array]:
    """Return the minima and forks of an image, and an end of each component below these."""
    points = math.prod(staged.block.shape)
    ways = _ways(staged, filtration)
    index = _index_of(staged)
    minima, forks = (scratch.take(name, points, index) for name in ("minima", "forks"))
    links = scratch.take("links", points, np.uint32)
    borders = [NONE if touch else ALL for touch in wraps for _ in range(2)]
    nodes, count, _ = scan_links(
        keys=keys,
        labels=scratch.take("labels", keys.size, np.int32),
        layout=staged.layout,
        borders=tuple(borders),
        framed=(NONE,) * 6,
        frame=False,
        link=(ways.ends, ways.end_set, ways.near),
        planes=scratch.take("planes", 2 * MOST_MEMBERS, np.uint64),
        listed=(minima, forks, links),
        lower_links=np.empty(0, np.uint32),
        stars=None,
    )
    return minima[:nodes], forks[:count], links[:count]


def _planar_forks(
    keys: Array, staged: Staged, filtration: Filtration
) -> tuple[Array, Array, Array]:
    """Return what :func:`_forks` does of a plane that is not periodic, in less time."""
    _, rows, columns = staged.block.shape
    index = _index_of(staged)
    rings = scratch.take("rings", keys.size, np.uint8)
    names = "minima", "maxima", "forks"
    minima, maxima, forks = (scratch.take(name, rows * columns, index) for name in names)
    wide_below = staged.field.ndim == 1 or filtration.cubes
    flip = ALL if wide_below else NONE
    lows, _, count = scan_rings(keys, (rows, columns), flip, rings, minima, maxima, forks)
    forks = forks[:count]
    return minima[:lows], forks, _links_of_rings(staged.steps[1], wide_below)[rings[forks]]


@functools.lru_cache(maxsize=8)
def _links_of_rings(step: int, wide_below: bool) -> NDArray[np.uint32]:
    """Return an end of each component of the lower link, for each ring of a point."""
    counts, members, _ = tables_of(step, wide_below)[0]
    link = LINKS[2, 2 if wide_below else 1]
    numbers = {y * step + x: i for i, (_, y, x) in enumerate(link.members)}
    links = np.zeros(256, np.uint32)
    for ring, count in enumerate(counts.tolist()):
        for member in members[ring, :count].tolist():
            links[ring] |= np.uint32(1 << numbers[member])
    return links


@kernel()
def order_by_counting(keys, layout, counts, order):
    """Write the places of points in the order of their keys; those with larger ones never enter."""
    slices, rows, columns, slice_step, row_step = layout
    keys = bare(keys)
    counts = bare(counts)
    order = bare(order)
    for z, y in np.ndindex(slices, rows):
        start = (z + 1) * slice_step + (y + 1) * row_step + 1
        for place in range(start, start + columns):
            key = np.uint64(keys[np.uint64(place)])
            if key < counts.size:
                counts[key] += 1
    before = 0
    for number in range(counts.size):
        count = counts[number]
        counts[number] = before
        before += count
    for z, y in np.ndindex(slices, rows):
        start = (z + 1) * slice_step + (y + 1) * row_step + 1
        for place in range(start, start + columns):
            key = np.uint64(keys[np.uint64(place)])
            if key < counts.size:
                order[np.uint64(counts[key])] = place
                counts[key] += 1


@kernel()
def stage_points(points, layout, places):
    """Write the places of points that are numbered in C order."""
    _, rows, columns, slice_step, row_step = layout
    points = bare(points)
    places = bare(places)
    for i in range(points.size):
        point = np.uint64(points[i])
        line = point // np.uint64(columns)
        z = line // np.uint64(rows)
        x = point - line * np.uint64(columns)
        y = line - z * np.uint64(rows)
        places[i] = (z + 1) * slice_step + (y + 1) * row_step + 1 + x


@kernel()
def link_twins(home, twins):
    """Write for each place the next one that has the same home, beginning with the home."""
    for place in range(home.size):
        own = home[place]
        if own != place:
            twins[place] = twins[own]
            twins[own] = place
