"""Sums along a forest of components."""

import numpy as np

from ecc_core._backends.cpu.compiling import kernel, subroutine


@kernel()
def add_to_parents(order, parents, sizes, ends):
    """Add the sizes of nodes to those of their parents, and the bits of `ends`, in this order.

    Each node comes before its parent.
    """
    for node in order:
        parent = parents[node]
        sizes[parent] += sizes[node]
        ends[parent] |= ends[node]


@subroutine()
def _climb(node, parents, turns, total):
    """Return the root of a node, write the turn of the way there, and halve the way."""
    total[:] = 0
    while parents[node] != node:
        parent = parents[node]
        if parents[parent] != parent:
            for axis in range(3):
                turns[node, axis] += turns[parent, axis]
            parents[node] = parents[parent]
        for axis in range(3):
            total[axis] += turns[node, axis]
        node = parents[node]
    return node


@kernel()
def add_ways(ways, parents, turns):
    """Write the turns of the ways from all nodes to the roots of their trees.

    `ways` are the edges of these trees: from a node to another one, and three numbers that are
    added along the way. At first each node is its own parent, and turns are 0.
    """
    ends = np.empty((2, 3), np.int32)
    roots = np.empty(2, np.int32)
    for i in range(ways.shape[0]):
        for k in range(2):
            roots[k] = _climb(ways[i, k], parents, turns, ends[k])
        # From the root of the first node by both nodes to the root of the second one.
        for axis in range(3):
            turns[roots[0], axis] = ways[i, 2 + axis] + ends[1, axis] - ends[0, axis]
        parents[roots[0]] = roots[1]
    for node in range(parents.size):
        root = _climb(node, parents, turns, ends[0])
        parents[node] = root
        if node != root:
            turns[node] = ends[0]
