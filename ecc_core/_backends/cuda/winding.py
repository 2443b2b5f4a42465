"""When components wind around the axes of a torus, on a device.

A component winds around an axis if a closed path in it crosses the side between the last and the
first point more often in one direction than in the other. Edges that join components make up a
spanning tree of each of them, and paths in the tree tell how often a way from one node to another
crosses each side (as in ``cpu/betti/winding.py``, with nodes in place of points). Every other edge
closes a loop, whose crossings follow.
"""

from typing import Any

import cupy
import numpy as np

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.forests import THREADS, Forests

AXES = {1: (2,), 2: (0, 2), 3: (0, 1, 2)}
"""The axes of a volume that are those of an image: rows of a 2-D image count as planes."""
WAY_WORDS = 5
"""The numbers that `list_ways` writes for each way."""


def winding_keys(forests: Forests, macros: dict[str, Any], until: Any) -> list[Any]:
    """Return for each axis of a torus the keys at which the components of nodes first wind around.

    They belong to the roots of components at these keys, and are the number of levels for the
    others, (nodes,) int32. There are so many edges `until` the end of each key.
    """
    tree = forests.tree(0)
    nodes = tree.minima.size
    listed = len(tree.edges)
    levels = forests.levels
    found = cupy.full((3, nodes), levels, np.int32)
    where = forests.volume(1), forests.labels[0], tree.edges

    def run(name: str, count: int, *arguments: Any) -> None:
        if count:
            grid = (ceil_div(count, THREADS),)
            plan_call(
                "components", name, macros=macros, grid=grid, threads=THREADS, arguments=arguments
            ).launch()

    spanning = cupy.sort(tree.links[tree.links < listed])
    ways = cupy.empty((spanning.size, WAY_WORDS), np.int32)
    run("list_ways", spanning.size, *where, spanning, np.uint32(spanning.size), ways)
    turns = _turns_along(ways, nodes)
    run("find_windings", listed, *where, np.uint32(listed), turns, np.uint32(nodes), found)
    of_roots = []
    for axis in AXES[forests.codes.ndim]:
        keys = cupy.full(nodes, levels, np.int32)
        wound = cupy.flatnonzero(found[axis] < levels)
        given = wound, np.uint32(wound.size), found[axis], keys
        run("lower_roots", wound.size, tree.joined, until, *given)
        of_roots.append(keys)
    return of_roots


def _turns_along(ways: Any, nodes: int) -> Any:
    """Return how often the way from each node to the root of its tree crosses sides, (nodes, 3).

    The root is the first node. In each round a tree is joined to one that begins with an earlier
    node, if a way leads to one, so that there are half as many trees, or fewer.
    """
    roots = cupy.arange(nodes, dtype=np.int32)
    turns = cupy.zeros((nodes, 3), np.int32)
    while True:
        firsts = roots[ways[:, 0]]
        seconds = roots[ways[:, 1]]
        apart = cupy.flatnonzero(firsts != seconds)
        if not apart.size:
            return turns
        ways = ways[apart]
        firsts = firsts[apart]
        seconds = seconds[apart]
        # From the root of the first node by both nodes to the root of the second one.
        across = ways[:, 2:] + turns[ways[:, 1]] - turns[ways[:, 0]]
        chosen = cupy.full(nodes, -1, np.int32)
        chosen[cupy.maximum(firsts, seconds)] = cupy.arange(apart.size, dtype=np.int32)
        joined = cupy.flatnonzero(chosen >= 0)
        by = chosen[joined]
        forward = firsts[by] == joined
        parents = cupy.arange(nodes, dtype=np.int32)
        parents[joined] = cupy.where(forward, seconds[by], firsts[by])
        steps = cupy.zeros((nodes, 3), np.int32)
        steps[joined] = cupy.where(forward[:, None], across[by], -across[by])
        parents, steps = _to_roots(parents, steps)
        turns = turns + steps[roots]
        roots = parents[roots]


def _to_roots(parents: Any, steps: Any) -> tuple[Any, Any]:
    """Return the root of each node, and the sum of the steps on the way there."""
    while True:
        above = parents[parents]
        if (above == parents).all():
            return parents, steps
        steps = steps + steps[parents]
        parents = above
