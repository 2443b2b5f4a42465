"""Count groups of neighbouring points of labelled regions."""

from __future__ import annotations

from typing import Any

from ecc_core._backends.cpu.compiling import kernel

__all__ = ["count_groups"]


@kernel()
def count_groups(
    keys: Any, labels: Any, groups: Any, sizes: Any, span: Any, every: Any, histograms: Any
) -> None:
    """Add the groups whose lowest corners are in a span of places to (regions, kinds, bins).

    Keys are ranks, and the smallest enter first. `labels` are the numbers of the regions, from 1,
    or 0 for points in no region, which surround the image. `groups` (kinds, points) are the
    distances of the points of a group from its lowest corner, and `sizes` (kinds,) how many there
    are. If `every`, a group enters with the last of its points, if all are in one region. Otherwise
    it enters with its first point in each region.
    """
    for place in range(span[0], span[1]):
        for kind in range(groups.shape[0]):
            size = sizes[kind]
            for first in range(size):
                at = place + groups[kind, first]
                region, key = labels[at], keys[at]
                found = region > 0
                for other in range(size):
                    at = place + groups[kind, other]
                    same = labels[at] == region
                    if every:
                        found = found and same
                        key = max(key, keys[at])
                    elif same:
                        found = found and other >= first  # each region once
                        key = min(key, keys[at])
                    if not found:
                        break
                if found:
                    histograms[region - 1, kind, key] += 1
                if every:
                    break
