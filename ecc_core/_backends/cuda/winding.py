"""When components wind around the axes of a torus, on a device.

A component winds around an axis if a closed path in it crosses the side between the last and the
first point more often in one direction than in the other. Edges that join components span each of
them, so the ways along these say how often the way from one node to another one crosses each side
(as in ``cpu/betti/winding.py``, with nodes in place of points). Every other edge closes a loop,
whose crossings follow. Ways along the spanning edges are summed up on the host, where the forest
has a number for each minimum.
"""

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu.betti.root_sums import add_ways
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
            plan_call("components", name, macros, grid, THREADS, arguments).launch()

    spanning = cupy.sort(tree.links[tree.links < listed])
    ways = cupy.empty((spanning.size, WAY_WORDS), np.int32)
    run("list_ways", spanning.size, *where, spanning, np.uint32(spanning.size), ways)
    turns = cupy.asarray(_turns_along(ways.get(), nodes))
    run("find_windings", listed, *where, np.uint32(listed), turns, np.uint32(nodes), found)
    of_roots = []
    for axis in AXES[forests.codes.ndim]:
        keys = cupy.full(nodes, levels, np.int32)
        wound = cupy.flatnonzero(found[axis] < levels)
        given = wound, np.uint32(wound.size), found[axis], keys
        run("lower_roots", wound.size, tree.joined, until, *given)
        of_roots.append(keys)
    return of_roots


def _turns_along(ways: NDArray[np.int32], nodes: int) -> NDArray[np.int32]:
    """Return how often the way from each node along spanning ways crosses each side, (nodes, 3).

    To a node that is the same for all of a component.
    """
    turns = np.zeros((nodes, 3), np.int32)
    add_ways(ways, np.arange(nodes, dtype=np.int32), turns)
    return turns
