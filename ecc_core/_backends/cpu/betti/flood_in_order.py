"""Regions of components that last, by a flooding of points in the order in which they enter.

A component is *settled* once it has a minimum that is known to last. Until then all its points get
one label in the end, whichever it is, so that each of them has the label of any of its minima. When
it is joined to another component at a fork, one of three things happens. Where neither is settled
and the younger one does not last, their minima are listed together. Where the younger one lasts,
both are settled, and all their points get the labels of their oldest minima. Where a settled one
meets one that does not last, all points of the latter get the label of the fork. This is the least
label of its neighbours: a minimum that has lasted until a fork is older than one that has not.

Every other point gets the least label of the neighbours that entered before it: these are in the
same component, so that their labels are final if it is settled. Minima are numbered from 1 in the
order in which they enter, and labels are numbers of minima.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.basins import find
from ecc_core._backends.cpu.betti.entering import Entering
from ecc_core._backends.cpu.betti.label_rows import (
    LANES,
    Rows,
    least_label,
    prefetch_rows,
    rows_of,
)
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import ONE, bare, count_trailing_zeros
from ecc_core._backends.cpu.sources import scratch

Array = NDArray[Any]

AHEAD = 12
"""Neighbours are prefetched so many points before the point is reached."""
MOST_MET = 32
"""The most components that meet at a fork."""


class Minima(NamedTuple):
    """Arrays with an element for each minimum, by its number from 1 on; elements 0 are not used."""

    parents: Any
    """Parents in the tree of joined components, whose root is the oldest minimum."""
    settled: Any
    """For each root, whether the component is settled."""
    following: Any
    """The next minimum of a component that is not settled, or 0."""
    last: Any
    """For each root of a component that is not settled, its last minimum."""
    deaths: Any
    """The number of the fork at which its component dies, or -1."""
    merged_into: Any
    """The oldest minimum of the component that this one joins there, or 0."""
    first_points: Any
    """The place that got its label last, at which the list of its points begins; -1 for none."""


class Labelled(NamedTuple):
    """The labels of points so far, and what is needed to replace them."""

    labels: Any
    """The number of the minimum of each point, by place."""
    twins: Any
    """The next place that stands for the same point of a periodic image, or -1; else empty."""
    origins: Any
    """The first label of each point whose label was replaced, or 0; empty if it is not wanted."""
    earlier: Any
    """The point that got the same label before each point."""
    minima: Any
    """The :class:`Minima`."""


class Flooded(NamedTuple):
    """The labels of points, and arrays of minima."""

    labels: Array
    """Numbers of minima, by place; larger ones for points that never enter."""
    origins: Array
    """The first label of each point whose label was replaced, and 0 for other points. It is empty
    if it is not wanted."""
    minima: Minima
    """A minimum lasts if it is settled."""


def flood_in_order(
    points: Entering, births: Array, deaths: Array, least: Any, *, origins: bool
) -> Flooded:
    """Flood an image, and label its points with those minima that last for at least `least`.

    `births` and `deaths` are the values of all minima and forks, of a dtype in which differences
    are exact or rounded as they are to be.
    """
    size = points.staged.size
    index = points.order.dtype
    labels = scratch.take("labels of points", size + LANES, index)
    never = int(np.iinfo(index).max)
    labels[:] = never
    mark_points(points.minima, points.forks, never, labels, points.twins)
    count = points.minima.size + 1
    minima = Minima(
        parents=np.arange(count, dtype=index),
        settled=np.zeros(count, np.bool_),
        following=np.zeros(count, index),
        last=np.arange(count, dtype=index),
        deaths=np.full(count, -1, index),
        merged_into=np.zeros(count, index),
        first_points=np.full(count, -1, index),
    )
    first = np.zeros(size if origins else 0, index)
    flood(
        order=points.order,
        rows=rows_of(points.link, points.staged.steps, labels.dtype),
        forks=(points.links, points.offsets),
        values=(births, deaths),
        least=births.dtype.type(least),
        never=never,
        labelled=Labelled(
            labels=labels,
            twins=points.twins,
            origins=first,
            earlier=scratch.take("earlier points", size, index),
            minima=minima,
        ),
    )
    return Flooded(labels, first, minima)


def joined_within(
    flooded: Flooded, points: Entering, inside: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which points are joined to the minimum of their label within the points `inside`.

    A component that does not last, and dies in another one that does not, is joined to a region
    where the last of these dies.
    """
    minima = flooded.minima
    count = minima.settled.size
    own = np.arange(count)
    short = ~minima.settled
    short[0] = False
    above = np.where(short & short[minima.merged_into], minima.merged_into, own)
    while True:
        further = above[above]
        if (further == above).all():
            break
        above = further
    forks = points.staged.in_image(points.forks[minima.deaths[above[short]]])
    joined = np.ones(count, np.bool_)
    joined[short] = inside.reshape(-1)[forks]
    first = np.empty(inside.shape, flooded.labels.dtype)
    labels = np.where(flooded.origins > 0, flooded.origins, flooded.labels[: flooded.origins.size])
    write_labels(labels, points.staged.layout, own.astype(first.dtype), first.reshape(-1))
    return joined[first]


@subroutine(forceinline=True)
def set_label(place, label, labels, twins):
    """Write the label of a point, also where it is beyond the other end of a periodic image."""
    labels[np.uint64(place)] = label
    if twins.size:
        other = twins[np.uint64(place)]
        while other >= 0:
            labels[np.uint64(other)] = label
            other = twins[np.uint64(other)]


@kernel()
def mark_points(minima, forks, never, labels, twins):
    """Label minima, and write the numbers of forks in place of the labels that they get later.

    Fork k has ``never - 1 - k``, which is larger than all labels of points. The neighbours of a
    minimum enter after it, so that minima may be labelled before they enter.
    """
    labels = bare(labels)
    twins = bare(twins)
    minima = bare(minima)
    forks = bare(forks)
    for i in range(minima.size):
        set_label(minima[i], i + 1, labels, twins)
    for i in range(forks.size):
        labels[np.uint64(forks[i])] = never - 1 - i


@subroutine(forceinline=True)
def label_point(place, label, points):
    """Label a point that enters, and list it among those that have its label, if it may change.

    Place 0 lies in the border around the image: what is not to be listed is written there, which
    takes less time than a branch.
    """
    minima = points.minima
    set_label(place, label, points.labels, points.twins)
    listed = np.uint64(0 if minima.settled[np.uint64(label)] else place)
    points.earlier[listed] = minima.first_points[np.uint64(label)]
    minima.first_points[np.uint64(label)] = place


@subroutine(forceinline=True)
def label_component(root, label, points):
    """Give all points of a component that is not settled a label."""
    minima = points.minima
    minimum = np.int64(root)
    while minimum:
        if minimum != label:
            place = np.int64(minima.first_points[np.uint64(minimum)])
            while place >= 0:
                set_label(place, label, points.labels, points.twins)
                if points.origins.size:
                    points.origins[np.uint64(place)] = minimum
                place = np.int64(points.earlier[np.uint64(place)])
        minimum = np.int64(minima.following[np.uint64(minimum)])


@subroutine(forceinline=True)
def settle(root, points):
    """Settle a component whose oldest minimum lasts, if it is not settled."""
    settled = points.minima.settled
    if not settled[np.uint64(root)]:
        label_component(root, root, points)
        settled[np.uint64(root)] = True


@subroutine(forceinline=True)
def meet(place, link, offsets, labels, minima, met):
    """List the components of the ends of a link; return how many ends there are, and the oldest.

    Of components that are all the same the oldest is -1.
    """
    count = 0
    oldest = np.int64(np.iinfo(np.int64).max)
    youngest = np.int64(0)
    while link:
        beside = np.uint64(place + offsets[np.uint64(count_trailing_zeros(link))])
        link &= link - ONE
        root = np.int64(find(minima.parents, labels[beside]))
        met[count] = root
        count += 1
        oldest = min(oldest, root)
        youngest = max(youngest, root)
    return count, oldest if oldest != youngest else np.int64(-1)


@subroutine(forceinline=True)
def end_components(fork, met, count, oldest, values, least, minima):
    """End all components that meet at a fork but the oldest one; `count` of them are listed.

    They are listed once each then, those that last first. Returns how many last, and how many
    ended.
    """
    lasting = 0
    ended = 0
    death = values[1][np.uint64(fork)]
    for i in range(count):
        root = met[i]
        if root == oldest or minima.deaths[np.uint64(root)] == fork:
            continue
        minima.deaths[np.uint64(root)] = fork
        minima.merged_into[np.uint64(root)] = oldest
        minima.parents[np.uint64(root)] = oldest
        met[ended] = root
        birth = values[0][np.uint64(root - 1)]
        # The least persistence may be 0, for which values must differ too.
        if minima.settled[np.uint64(root)] or (death - birth >= least and death != birth):
            met[ended] = met[lasting]
            met[lasting] = root
            lasting += 1
        ended += 1
    return lasting, ended


@subroutine(forceinline=True)
def join_at_fork(place, rows, oldest, joined, points):
    """Label the components that meet at a fork if one of them is settled; return the fork's label.

    `joined` are the components that end, how many of these last, and how many there are.
    """
    met, lasting, ended = joined
    labels = points.labels
    minima = points.minima
    if lasting == 0 and not minima.settled[np.uint64(oldest)]:
        for i in range(ended):
            minima.following[np.uint64(minima.last[np.uint64(oldest)])] = met[i]
            minima.last[np.uint64(oldest)] = minima.last[np.uint64(met[i])]
        return least_label(labels, place, rows.firsts, rows.hidden)
    settle(oldest, points)
    for i in range(lasting):
        settle(met[i], points)
    label = least_label(labels, place, rows.firsts, rows.hidden)
    for i in range(lasting, ended):
        label_component(met[i], label, points)
    return label


@kernel()
def flood(order, rows, forks, values, least, never, labelled):
    """Label points in the order in which they enter.

    A point that has yet to enter has the label `never`, except minima and forks, see
    :func:`mark_points`. `forks` are the links of forks, and the distances of their members.
    `values` are those of minima and forks.
    """
    order = bare(order)
    links = bare(forks[0])
    offsets = bare(forks[1])
    values = bare(values[0]), bare(values[1])
    rows = Rows(bare(rows.firsts), bare(rows.hidden))
    known = labelled.minima
    minima = Minima(
        bare(known.parents),
        bare(known.settled),
        bare(known.following),
        bare(known.last),
        bare(known.deaths),
        bare(known.merged_into),
        bare(known.first_points),
    )
    labels = bare(labelled.labels)
    points = Labelled(
        labels, bare(labelled.twins), bare(labelled.origins), bare(labelled.earlier), minima
    )
    room = np.empty(MOST_MET, np.int64)  # This array owns the memory of the view.
    met = bare(room)
    for i in range(order.size):
        prefetch_rows(labels, np.int64(order[min(i + AHEAD, order.size - 1)]), rows.firsts)
        place = np.int64(order[i])
        fork = never - 1 - np.int64(labels[np.uint64(place)])  # It is -1 if the point is no fork.
        oldest = np.int64(-1)
        if 0 <= fork < links.size:
            link = np.uint64(links[np.uint64(fork)])
            count, oldest = meet(place, link, offsets, labels, minima, met)
        if oldest >= 0:
            lasting, ended = end_components(fork, met, count, oldest, values, least, minima)
            joined = met, lasting, ended
            label = join_at_fork(place, rows, oldest, joined, points)
        else:  # The least label around a minimum is its own, which it has already.
            label = least_label(labels, place, rows.firsts, rows.hidden)
        label_point(place, label, points)
    for root in range(1, minima.parents.size):
        if minima.parents[root] == root:
            settle(root, points)


@kernel()
def write_labels(labels, layout, numbers, written):
    """Write the numbers of the labels of an image, or 0 for points that never enter."""
    slices, rows, columns, slice_step, row_step = layout
    labels = bare(labels)
    numbers = bare(numbers)
    written = bare(written)
    point = np.uint64(0)
    for z, y in np.ndindex(slices, rows):
        start = (z + 1) * slice_step + (y + 1) * row_step + 1
        for place in range(start, start + columns):
            label = np.uint64(labels[np.uint64(place)])
            written[point] = numbers[label] if label < numbers.size else 0
            point += ONE
