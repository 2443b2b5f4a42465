"""Kernels: a forest over the basins of a block, whose trees are the components that grow together.

Every point that is not a minimum points to its lowest neighbour, so following these steps leads to
a minimum, to whose *basin* the point belongs. The *nodes* of the forest are the minima and the
points at which such paths leave the block. For each node there are

- ``places``: the place of its point,
- ``births``: the key at which it begins,
- ``opens``: the key at which other blocks can reach its component,
- ``closed``: whether they never can, which no key can say, as points may have the last one,
- ``tree``: its parent in the tree of joined components,
- ``merged``: its parent by those joins that no other block can change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ecc_core._backends.cpu.betti.scan import ALL, ONE, OUTSIDE, bare
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import count_trailing_zeros


@subroutine()
def find(parents: Any, node: Any) -> Any:
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
def relabel(labels: Any, ways: Any, here: Any, end: Any) -> None:
    """Give the points of a path the label of its end, unless it ends outside the block."""
    label = labels[end]
    if label == OUTSIDE:
        return
    step = labels[here]
    while step < 0:
        labels[here] = label
        here += np.uint64(ways[np.uint64(-step)])
        step = labels[here]


@subroutine()
def end_of(labels: Any, ways: Any, here: Any) -> Any:
    """Return where the path from a point ends: at a labelled point, or outside the block.

    A point with a negative label -i leads to the point ``ways[i]`` further on.
    """
    label = labels[here]
    while label < 0:
        here += np.uint64(ways[np.uint64(-label)])
        label = labels[here]
    return here


@subroutine()
def ends_of(labels: Any, ways: Any, first: Any, second: Any) -> Any:
    """Return where two paths end. They are followed at once, so that their cache misses overlap."""
    label, other = labels[first], labels[second]
    while (label & other) < 0:
        first += np.uint64(ways[np.uint64(-label)])
        second += np.uint64(ways[np.uint64(-other)])
        label, other = labels[first], labels[second]
    return end_of(labels, ways, first), end_of(labels, ways, second)


@subroutine()
def basin(labels: Any, ways: Any, place: Any, end: Any, places: Any, nodes: Any) -> Any:
    """Return the node of a point and the number of nodes; a path out of the block adds a node.

    The points on the path, which leads to `end`, are labelled.
    """
    if labels[end] == OUTSIDE:
        labels[end] = np.int32(nodes)
        places[nodes] = end
        nodes += 1
    relabel(labels, ways, place, end)
    return labels[end], nodes


@kernel()
def list_edges(
    labels: Any,
    ways: Any,
    offsets: Any,
    forks: Any,
    links: Any,
    count: Any,
    places: Any,
    nodes: Any,
    edges: Any,
) -> Any:
    """List the basins that meet at forks as edges, (place, node, node).

    Returns the numbers of nodes and edges.
    """
    labels, ways, places = bare(labels), bare(ways), bare(places)
    forks, links, offsets, edges = bare(forks), bare(links), bare(offsets), bare(edges)
    found = 0
    for i in range(count):
        place, link = forks[i], np.uint64(links[i])
        here = np.uint64(place + offsets[np.uint64(count_trailing_zeros(link))])
        link &= link - ONE
        second = np.uint64(place + offsets[np.uint64(count_trailing_zeros(link))])
        link &= link - ONE
        end, second_end = ends_of(labels, ways, here, second)
        first, nodes = basin(labels, ways, here, end, places, nodes)
        node, nodes = basin(labels, ways, second, second_end, places, nodes)
        while True:
            if node != first:
                edges[found, 0], edges[found, 1], edges[found, 2] = place, first, node
                found += 1
            if not link:
                break
            here = np.uint64(place + offsets[np.uint64(count_trailing_zeros(link))])
            link &= link - ONE
            node, nodes = basin(labels, ways, here, end_of(labels, ways, here), places, nodes)
    return nodes, found


@kernel()
def label_faces(labels: Any, ways: Any, faces: Any, places: Any, nodes: Any, rim: Any) -> Any:
    """Write the nodes of the points on all faces to `rim`; return the number of nodes.

    The rows of `faces` are those of :meth:`Grid.faces`.
    """
    labels, ways, places = bare(labels), bare(ways), bare(places)
    faces, rim = bare(faces), bare(rim)
    at = 0
    for k in range(faces.shape[0]):
        for i in range(faces[k, 3]):
            for j in range(faces[k, 4]):
                place = np.uint64(faces[k, 0] + i * faces[k, 1] + j * faces[k, 2])
                end = end_of(labels, ways, place)
                rim[at], nodes = basin(labels, ways, place, end, places, nodes)
                at += 1
    return nodes


@kernel()
def make_trees(
    keys: Any,
    minima: Any,
    nodes: Any,
    frame: Any,
    faces: Any,
    rim: Any,
    places: Any,
    births: Any,
    opens: Any,
    closed: Any,
    tree: Any,
    merged: Any,
    histogram: Any,
) -> None:
    """Make each node a tree of its own, and count the minima in the histogram."""
    keys, faces, rim, places = bare(keys), bare(faces), bare(rim), bare(places)
    births, opens, closed = bare(births), bare(opens), bare(closed)
    tree, merged, histogram = bare(tree), bare(merged), bare(histogram)
    last = opens.dtype.type(ALL)
    for node in range(nodes):
        tree[node], merged[node] = node, node
        opens[node], closed[node] = last, node < minima
    for node in range(1 if frame else 0, nodes):
        births[node] = keys[places[node]]
        if node >= minima:
            opens[node] = births[node]
        elif histogram.size:
            histogram[births[node]] += 1
    if frame:
        places[0], births[0], opens[0], closed[0] = -1, 0, 0, False
    at = 0
    for k in range(faces.shape[0]):
        for i in range(faces[k, 3]):
            for j in range(faces[k, 4]):
                key = keys[faces[k, 0] + i * faces[k, 1] + j * faces[k, 2]]
                if key < opens[rim[at]]:
                    opens[rim[at]] = key
                closed[rim[at]] = False
                at += 1


@kernel()
def sort_edges(keys: Any, edges: Any, count: Any, starts: Any, order: Any) -> None:
    """Write the order of the edges by key to `order`; edges of equal keys keep their order."""
    keys, edges, starts, order = bare(keys), bare(edges), bare(starts), bare(order)
    starts[:] = 0
    for i in range(count):
        starts[np.uint64(keys[np.uint64(edges[i, 0])])] += 1
    total = 0
    for key in range(starts.size):
        total, starts[key] = total + starts[key], total
    for i in range(count):
        slot = np.uint64(keys[np.uint64(edges[i, 0])])
        order[np.uint64(starts[slot])] = i
        starts[slot] += 1


@kernel()
def join_basins(
    keys: Any,
    edges: Any,
    order: Any,
    count: Any,
    places: Any,
    births: Any,
    opens: Any,
    closed: Any,
    tree: Any,
    merged: Any,
    histogram: Any,
    kept: Any,
    pairs: Any,
) -> Any:
    """Join basins along edges, in the given order.

    Where two components meet, the younger one ends. If no other block can have reached it before,
    this is final: its end is counted in the histogram and listed in `pairs` as (place of birth,
    place of death). Otherwise the number of the edge is listed in `kept`. Returns the numbers of
    edges kept and of pairs.
    """
    keys, edges, order, kept = bare(keys), bare(edges), bare(order), bare(kept)
    places, births, opens, closed = bare(places), bare(births), bare(opens), bare(closed)
    tree, merged, histogram, pairs = bare(tree), bare(merged), bare(histogram), bare(pairs)
    edges_kept, lives = 0, 0
    for k in range(count):
        i = np.uint64(order[k])
        first, second = edges[i, 1], edges[i, 2]
        elder, younger = find(tree, first), find(tree, second)
        if elder == younger:
            continue
        place = edges[i, 0]
        way = first
        if births[younger] < births[elder] or (
            births[younger] == births[elder] and places[younger] < places[elder]
        ):
            elder, younger, way = younger, elder, second
        key = keys[np.uint64(place)]
        if opens[younger] > key or closed[younger]:
            if histogram.size:
                histogram[key] -= 1
            if pairs.size:
                pairs[lives, 0], pairs[lives, 1] = places[younger], place
                lives += 1
            merged[younger] = way  # the younger component is one class, with this root
        else:
            kept[edges_kept] = i
            edges_kept += 1
        tree[younger] = elder
        if opens[younger] < opens[elder]:
            opens[elder] = opens[younger]
        closed[elder] &= closed[younger]
    return edges_kept, lives


@kernel()
def number_nodes(merged: Any, nodes: Any, numbers: Any, roots: Any) -> Any:
    """Number and list the roots of `merged`; other nodes get the number of their root."""
    merged, numbers, roots = bare(merged), bare(numbers), bare(roots)
    count = 0
    for node in range(nodes):
        if merged[node] == node:
            numbers[node], roots[count] = count, node
            count += 1
    for node in range(nodes):
        numbers[node] = numbers[find(merged, node)]
    return count
