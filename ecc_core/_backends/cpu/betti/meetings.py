"""Pairs of components that meet, sorted by the keys at which they do so."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.llvm import bare
from ecc_core._backends.cpu.order import counts_to_starts

Array = NDArray[Any]
Values = NDArray[np.int64]


class Meetings(NamedTuple):
    """Pairs of nodes that are joined, in the order of keys."""

    ends: Values
    """The number of pairs at the first k keys, at index k."""
    nodes: Array
    """(m, 2)."""


def meetings_of(keys: Array, nodes: Array, count: int) -> Meetings:
    """Return the meetings at the first `count` keys, in their order."""
    met = Meetings(np.zeros(count + 1, np.int64), np.empty_like(nodes))
    sort_meetings(keys, nodes, met.ends, met.nodes)
    return met


@kernel()
def sort_meetings(keys, nodes, ends, sorted_nodes):
    """Sort pairs of nodes by counting their keys, of which the last are left out."""
    keys = bare(keys)
    nodes = bare(nodes)
    sorted_nodes = bare(sorted_nodes)
    for i in range(keys.size):
        slot = np.int64(keys[i]) + 1
        if slot < ends.size:
            ends[slot] += 1
    counts_to_starts(ends)
    for i in range(keys.size):
        slot = np.int64(keys[i]) + 1
        if slot < ends.size:
            at = np.uint64(ends[slot])
            sorted_nodes[at, 0] = nodes[i, 0]
            sorted_nodes[at, 1] = nodes[i, 1]
            ends[slot] += 1
