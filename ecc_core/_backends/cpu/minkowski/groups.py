"""Count groups of neighbouring points of labelled regions."""

from __future__ import annotations

from typing import Any

from ecc_core._backends.cpu.compiling import kernel

__all__ = ["count_groups"]


@kernel()
def _index(i: Any, length: Any, wraps: Any) -> Any:
    """Return an index modulo the length, or -1 outside of an image that is not periodic."""
    if 0 <= i < length:
        return i
    return i % length if wraps else -1


@kernel()
def _gather(shape: Any, strides: Any, wraps: Any, group: Any, at: Any, places: Any) -> Any:
    """Write the places of the points of a group, and return how many are inside the image."""
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
    """Add the groups whose lowest corners are in some slices to (regions, kinds, bins) histograms.

    Keys are ranks, and the smallest enter first. `labels` are the numbers of the regions, from 1,
    or 0 for points in no region. `groups` (kinds, points, 4) contains offsets along z, y and x, and
    the number of points, and `spans` (kinds, 3, 2) the ranges of the lowest corners. If `every`, a
    group enters with the last of its points, if all are in one region. Otherwise it enters with its
    first point in each region.
    """
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
                        region = labels[place]
                        key = keys[place]
                        found = region > 0
                        for other in range(count):
                            if other == first:
                                continue
                            same = labels[places[other]] == region
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
