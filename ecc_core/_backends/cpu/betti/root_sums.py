"""Sums along a forest of components."""

from ecc_core._backends.cpu.compiling import kernel


@kernel()
def add_to_parents(order, parents, sizes, ends):
    """Add the sizes of nodes to those of their parents, and the bits of `ends`, in this order.

    Each node comes before its parent.
    """
    for node in order:
        parent = parents[node]
        sizes[parent] += sizes[node]
        ends[parent] |= ends[node]
