"""Kernels: a forest over the basins of a block, whose trees are the components that grow together.

Every point that is not a minimum points to its lowest neighbour, so following these steps leads to
a minimum, to whose *basin* the point belongs. The *nodes* of the forest are the minima and the
points at which such paths leave the block.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import ALL, NONE, ONE, bare, count_trailing_zeros

OUTSIDE = np.iinfo(np.int32).max
"""The label of points outside of the block."""


class Nodes(NamedTuple):
    """The nodes of a forest."""

    places: Any
    """The places of their points."""
    births: Any
    """The keys at which they begin, unsigned."""
    opens: Any
    """The keys at which other blocks can reach the components with these roots, unsigned."""
    closed: Any
    """True if no other block can reach the root. It is a flag, because every key is valid."""
    tree: Any
    """Their parents in the tree of joined components, int32."""
    merged: Any
    """Their parents by those joins that no other block can change, int32."""


class Edges(NamedTuple):
    """Edges between nodes, each of which enters with a fork."""

    nodes: Any
    """The pairs of nodes, (n, 2)."""
    keys: Any
    """The keys of the forks."""
    places: Any
    """The places of the forks."""
    members: Any = np.empty(0, np.uint8)
    """The member of the lower link that belongs to the second node, uint8. The first node is that
    of the first component of the link. Empty where members are not needed."""
    lower_links: Any = np.empty(0, np.uint32)
    """The lower links of the forks, uint32. Empty where they are not needed."""


@subroutine()
def find(parents, node):
    """Return the root of a node, and halve the path to it."""
    node = np.uint64(node)
    parent = np.uint64(parents[node])
    while parent != node:
        above = parents[parent]
        parents[node] = above
        node = np.uint64(above)
        parent = np.uint64(parents[node])
    return node


@subroutine()
def end_of(labels, ways, here):
    """Return where the path from a point ends: at a labelled point, or outside the block.

    A point with a negative label -i leads to the point ``ways[i]`` further on.
    """
    label = labels[here]
    while label < 0:
        here += np.uint64(ways[np.uint64(-label)])
        label = labels[here]
    return here


@subroutine()
def basin(labels, ways, place, end, places, nodes):
    """Return the node of a point and the number of nodes; a path out of the block adds a node.

    The points on the path, which leads to `end`, are labelled.
    """
    if labels[end] == OUTSIDE:
        labels[end] = np.int32(nodes)
        places[nodes] = end
        nodes += 1
    label = labels[end]
    step = labels[place]
    while step < 0:
        labels[place] = label
        place += np.uint64(ways[np.uint64(-step)])
        step = labels[place]
    return label, nodes


@kernel()
def list_edges(keys, paths, offsets, forks, links, lower_links, places, nodes, edges):
    """List the basins that meet at forks as edges; `paths` are labels and ways of their points.

    Edges within a basin are loops. If the members of links are of interest, loops are written
    to the ends of the arrays. Returns the numbers of nodes, edges and loops.
    """
    labels = bare(paths[0])
    ways = bare(paths[1])
    places = bare(places)
    keys = bare(keys)
    forks = bare(forks)
    links = bare(links)
    offsets = bare(offsets)
    joined = bare(edges.nodes)
    edge_keys = bare(edges.keys)
    at = bare(edges.places)
    members = bare(edges.members)
    lower_links = bare(lower_links)
    links_of_edges = bare(edges.lower_links)
    found = np.uint64(0)
    loop = np.uint64(members.size)
    for i in range(forks.size):
        place = forks[i]
        link = np.uint64(links[i])
        here = np.uint64(place + offsets[np.uint64(count_trailing_zeros(link))])
        link &= link - ONE
        member = np.uint64(count_trailing_zeros(link))
        second = np.uint64(place + offsets[member])
        link &= link - ONE
        # Two paths are followed at once, so that their cache misses overlap.
        end = here
        second_end = second
        label = labels[end]
        other = labels[second_end]
        while (label & other) < 0:
            end += np.uint64(ways[np.uint64(-label)])
            second_end += np.uint64(ways[np.uint64(-other)])
            label = labels[end]
            other = labels[second_end]
        end = end_of(labels, ways, end)
        second_end = end_of(labels, ways, second_end)
        first, nodes = basin(labels, ways, here, end, places, nodes)
        node, nodes = basin(labels, ways, second, second_end, places, nodes)
        while True:
            if node != first:
                at[found] = place
                edge_keys[found] = keys[np.uint64(place)]
                joined[found, 0] = first
                joined[found, 1] = node
                if members.size:
                    members[found] = member
                    links_of_edges[found] = lower_links[i]
                found += ONE
            elif members.size:
                loop -= ONE
                at[loop] = place
                members[loop] = member
                links_of_edges[loop] = lower_links[i]
            if not link:
                break
            member = np.uint64(count_trailing_zeros(link))
            here = np.uint64(place + offsets[member])
            link &= link - ONE
            node, nodes = basin(labels, ways, here, end_of(labels, ways, here), places, nodes)
    return nodes, found, np.uint64(members.size) - loop


@kernel()
def label_box(paths, first, steps, places, nodes, found):
    """Write the nodes of a box of points, of which the first is given; return their number."""
    labels = bare(paths[0])
    ways = bare(paths[1])
    places = bare(places)
    for z, y, x in np.ndindex(found.shape):
        place = np.uint64(first + z * steps[0] + y * steps[1] + x * steps[2])
        end = end_of(labels, ways, place)
        found[z, y, x], nodes = basin(labels, ways, place, end, places, nodes)
    return nodes


@kernel()
def make_trees(keys, places, minima, frame, nodes, histogram):
    """Make each node a tree of its own, and count the minima, which come first."""
    keys = bare(keys)
    places = bare(places)
    histogram = bare(histogram)
    births = bare(nodes.births)
    opens = bare(nodes.opens)
    tree = bare(nodes.tree)
    closed = bare(nodes.closed)
    known = bare(nodes.places)
    for node in range(tree.size):
        is_frame = frame and node == 0
        tree[node] = node
        known[node] = -1 if is_frame else places[node]
        births[node] = NONE
        if not is_frame:
            births[node] = np.uint64(keys[np.uint64(places[node])])
        closed[node] = node < minima and not is_frame
        opens[node] = ALL if closed[node] else births[node]
        if histogram.size and node < minima and not is_frame:
            histogram[births[node]] += 1


@kernel()
def open_points(own, keys, nodes):
    """Open the components of points that other blocks can reach, at the keys of the points."""
    opens = bare(nodes.opens)
    closed = bare(nodes.closed)
    tree = bare(nodes.tree)
    for index, node in np.ndenumerate(own):
        root = find(tree, node)
        if keys[index] < opens[root]:
            opens[root] = keys[index]
        closed[root] = False


@kernel()
def join_basins(edges, order, nodes, histogram, kept, pairs, loops):
    """Join basins along edges in the given order.

    Where two components meet, the younger one ends. If no other block can have reached it before,
    this is final: its end is counted in the histogram and listed in `pairs` as (place of birth,
    place of death). Otherwise the number of the edge is listed in `kept`. The numbers of edges
    within a component are listed in `loops`, if it has room. Returns the numbers of edges kept, of
    pairs and of loops.
    """
    joined = bare(edges.nodes)
    keys = bare(edges.keys)
    at = bare(edges.places)
    order = bare(order)
    kept = bare(kept)
    places = bare(nodes.places)
    births = bare(nodes.births)
    opens = bare(nodes.opens)
    closed = bare(nodes.closed)
    tree = bare(nodes.tree)
    merged = bare(nodes.merged)
    histogram = bare(histogram)
    pairs = bare(pairs)
    loops = bare(loops)
    edges_kept = 0
    lives = 0
    closed_loops = 0
    for k in range(order.size):
        i = np.uint64(order[k])
        first = joined[i, 0]
        second = joined[i, 1]
        elder = find(tree, first)
        younger = find(tree, second)
        if elder == younger:
            if loops.size:
                loops[closed_loops] = i
                closed_loops += 1
            continue
        way = first
        if births[younger] < births[elder] or (
            births[younger] == births[elder] and places[younger] < places[elder]
        ):
            elder, younger, way = younger, elder, second
        key = keys[i]
        if opens[younger] > key or closed[younger]:
            if histogram.size:
                histogram[key] -= 1
            if pairs.size:
                pairs[lives, 0] = places[younger]
                pairs[lives, 1] = at[i]
                lives += 1
            merged[younger] = way  # For other blocks, the younger component is part of this node.
        else:
            kept[edges_kept] = i
            edges_kept += 1
        tree[younger] = elder
        if opens[younger] < opens[elder]:
            opens[elder] = opens[younger]
        closed[elder] &= closed[younger]
    return edges_kept, lives, closed_loops


@kernel()
def number_nodes(merged, numbers, roots):
    """Number and list the roots of `merged`; other nodes get the number of their root."""
    merged = bare(merged)
    numbers = bare(numbers)
    roots = bare(roots)
    count = 0
    for node in range(merged.size):
        if merged[node] == node:
            numbers[node] = count
            roots[count] = node
            count += 1
    for node in range(merged.size):
        numbers[node] = numbers[find(merged, node)]
    return count
