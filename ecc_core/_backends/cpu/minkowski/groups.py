"""Count groups of neighbouring points one by one: any kind, any boundary, any regions."""

from __future__ import annotations

from typing import Any

from ecc_core._backends.cpu.compiling import kernel

__all__ = ["MOST_POINTS", "count_groups"]

MOST_POINTS = 8


@kernel()
def _index(i: Any, length: Any, wraps: Any) -> Any:
    """An index modulo the length; -1 outside an image that does not wrap."""
    if 0 <= i < length:
        return i
    return i % length if wraps else -1


@kernel()
def _gather(shape: Any, strides: Any, wraps: Any, group: Any, at: Any, places: Any) -> Any:
    """Write the places of a group's points; how many are inside the image."""
    count = 0
    for point in range(group[0, 3]):
        z = _index(at[0] + group[point, 0], shape[0], wraps)
        y = _index(at[1] + group[point, 1], shape[1], wraps)
        x = _index(at[2] + group[point, 2], shape[2], wraps)
        if z >= 0 and y >= 0 and x >= 0:
            places[count] = z * strides[0] + y * strides[1] + x
            count += 1
    return count


@kernel()
def count_groups(
    keys: Any,
    labels: Any,
    shape: Any,
    strides: Any,
    wraps: Any,
    groups: Any,
    spans: Any,
    slices: Any,
    every: Any,
    places: Any,
    histograms: Any,
) -> None:
    """Add groups whose lowest corner lies in some slices to (regions, kinds, bins) histograms.

    Keys are ranks: the smallest enter first. `labels` are numbers of regions from 1 on, and 0 for
    points of none; without labels all points are of one region. `groups` (kinds, points, 4) holds
    offsets along z, y, x, and the number of points; `spans` (kinds, 3, 2) the ranges of their
    lowest corners. With `every`, a group enters with the last of its points, which must be of one
    region; otherwise with the first point of each region.
    """
    labelled = labels.size > 0
    for z in range(slices[0], slices[1]):
        for kind in range(groups.shape[0]):
            if not spans[kind, 0, 0] <= z < spans[kind, 0, 1]:
                continue
            group = groups[kind]
            for y in range(spans[kind, 1, 0], spans[kind, 1, 1]):
                for x in range(spans[kind, 2, 0], spans[kind, 2, 1]):
                    count = _gather(shape, strides, wraps, group, (z, y, x), places)
                    for first in range(count):
                        place = places[first]
                        region = labels[place] if labelled else 1
                        key = keys[place]
                        found = region > 0
                        for other in range(count):
                            if other == first:
                                continue
                            same = not labelled or labels[places[other]] == region
                            neighbour = keys[places[other]]
                            if every:
                                found = found and same
                                key = max(key, neighbour)
                            elif same:
                                found = found and other > first  # each region once
                                key = min(key, neighbour)
                        if found:
                            histograms[region - 1, kind, key] += 1
                        if every:
                            break
