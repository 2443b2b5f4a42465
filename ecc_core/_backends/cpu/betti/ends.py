"""Which ends of an image the components touch: two bits of their roots for each pair of ends."""

from ecc_core._backends.cpu.compiling import subroutine

OPEN = 1 << 6
"""A bit beside these, for components that touch an open side of the box."""


@subroutine()
def span(spanning, sides, change):
    """Add `change` for each pair of ends that a component touches, unless it is on an open side."""
    if sides & OPEN:
        return
    for axis in range(spanning.size):
        if sides >> (2 * axis) & 3 == 3:
            spanning[axis] += change


@subroutine()
def unite(touched, spanning, root, sides):
    """Let the component of a root touch more sides and ends."""
    if sides:
        both = touched[root] | sides
        span(spanning, touched[root], -1)
        span(spanning, both, 1)
        touched[root] = both


@subroutine()
def write_spanning(found, key, spanning):
    """Write the numbers of components that touch both ends to the rows of `found` from 2 on."""
    for axis in range(spanning.size):
        found[2 + axis, key] = spanning[axis]
