"""Count groups of neighbouring points of labelled regions."""

from __future__ import annotations

from typing import Any

from ecc_core._backends.cpu.compiling import kernel


@kernel()
def count_groups(
    keys: Any,
    labels: Any,
    groups: Any,
    sizes: Any,
    span: Any,
    every: Any,
    latest: Any,
    kept: Any,
    histograms: Any,
) -> None:
    """Add the groups whose lowest corners are in a span of places to (regions, kinds, bins).

    Keys are ranks, and the smallest enter first. `labels` are the numbers of the regions, from 1,
    or 0 for points in no region, which surround the image. `groups` (kinds, points) are the
    distances of the points of a group from its lowest corner, and `sizes` (kinds,) how many there
    are. If `every`, a group enters with the last of its points, if all are in one region. Otherwise
    it enters with its first point in each region, which counts for the first of these points.
    `latest` and `kept` are scratch memory for keys and numbers of regions, 0 where none is counted.
    """
    count = span[1] - span[0]
    for kind in range(groups.shape[0]):
        for first in range(1 if every else sizes[kind]):
            start = span[0] + groups[kind, first]
            own, key = labels[start : start + count], keys[start : start + count]
            for i in range(count):
                latest[i], kept[i] = key[i], own[i]
            for other in range(sizes[kind]):
                start = span[0] + groups[kind, other]
                region, key = labels[start : start + count], keys[start : start + count]
                if every:
                    for i in range(count):
                        kept[i] = kept[i] if region[i] == own[i] else kept.dtype.type(0)
                        latest[i] = max(latest[i], key[i])
                else:
                    for i in range(count):
                        same = region[i] == own[i]
                        kept[i] = kept.dtype.type(0) if same and other < first else kept[i]
                        latest[i] = min(latest[i], key[i]) if same else latest[i]
            for i in range(count):
                if kept[i]:
                    histograms[kept[i] - 1, kind, latest[i]] += 1
