"""Betti matching of two tiny images by reduced boundary matrices of all their cells."""

import itertools

import numpy as np

__all__ = ["betti_matching", "point_orders"]


def point_orders(prediction, target, superlevel=False):
    """Return the orders of points of both images and of their union.

    Equal values are ordered by those of the other image, then by the places of points.
    """
    values = np.concatenate([prediction, target], axis=None)
    _, ranks = np.unique(values, return_inverse=True)
    p, t = ranks.reshape(2, -1)
    if superlevel:
        p = -p
        t = -t
    low = np.minimum(p, t)
    high = np.maximum(p, t)
    return (p, t, low), [np.lexsort(keys) for keys in ((t, p), (p, t), (high, low))]


def cells_of(shape, vertices):
    """Return all cells as (dimension, corner, axis, cell, points), by dimension and place.

    Cells of one lowest corner are ordered by axis: edges along it, squares normal to it.
    """
    closed = -1 if vertices else 1
    found = []
    sides = [2 * n + closed for n in shape]
    for cell in itertools.product(*map(range, sides)):
        spans = [(x // 2, (x + 1) // 2) if vertices else ((x - 1) // 2, x // 2) for x in cell]
        spans = [[i for i in span if 0 <= i < n] for span, n in zip(spans, shape, strict=True)]
        points = [np.ravel_multi_index(p, shape) for p in itertools.product(*spans)]
        dimension = sum(x % 2 for x in cell)
        corner = tuple(x // 2 for x in cell)
        axis = 0
        if 0 < dimension < len(cell):
            axis = [x % 2 for x in cell].index(dimension % 2)
        found.append((dimension, corner, axis, cell, points))
    found.sort()
    return found


def reduced(boundaries, rows, columns):
    """Return pairs of a cell and the one that kills its class, by reducing a boundary matrix."""
    place = np.empty(len(rows), int)
    place[rows] = np.arange(len(rows))
    kept = {}
    pairs = {}
    for j in columns:
        column = {place[i] for i in boundaries[j]}
        while column and max(column) in kept:
            column ^= kept[max(column)]
        if column:
            kept[max(column)] = column
            pairs[rows[max(column)]] = j
    return pairs


def betti_matching(prediction, target, connectivity, superlevel=False):
    """Return matched classes, and those of either image that are not, as (dimension, points).

    A class is (point of birth, point of death), which is -1 if there is none.
    """
    shape = prediction.shape
    vertices = connectivity == 1 and prediction.ndim > 1
    values, orders = point_orders(prediction, target, superlevel)
    cells = cells_of(shape, vertices)
    numbers = {cell[3]: i for i, cell in enumerate(cells)}
    boundaries = []
    for _, _, _, cell, _ in cells:
        faces = [
            (*cell[:axis], x + step, *cell[axis + 1 :])
            for axis, x in enumerate(cell)
            if x % 2
            for step in (-1, 1)
        ]
        boundaries.append([numbers[face] for face in faces])
    owners = []
    by_entry = []
    for order in orders:
        place = np.argsort(order)
        last = max if vertices else min
        own = np.array([last(cell[4], key=place.__getitem__) for cell in cells])
        owners.append(own)
        dims = np.array([cell[0] for cell in cells])
        by_entry.append(np.lexsort((np.arange(len(cells)), dims, place[own])))
    single = [reduced(boundaries, order, order) for order in by_entry[:2]]
    images = [reduced(boundaries, order, by_entry[2]) for order in by_entry[:2]]
    classes = []
    ends = []
    for k in range(2):
        own = owners[k]
        value = values[k]
        paired = set(single[k]) | set(single[k].values())
        found = {}
        for birth, death in single[k].items():
            if value[own[birth]] < value[own[death]]:
                found[birth] = (cells[birth][0], own[birth], own[death])
        for birth in set(range(len(cells))) - paired:
            found[birth] = (cells[birth][0], own[birth], -1)
        classes.append(found)
        union = values[2][owners[2]]
        pairs = images[k].items()
        end = {death: birth for birth, death in pairs if value[own[birth]] < union[death]}
        (last,) = set(range(len(cells))) - set(single[k].values()) - set(images[k])
        end[-1] = last
        ends.append(end)
    cells_matched = [(ends[0][death], ends[1][death]) for death in ends[0].keys() & ends[1].keys()]
    matched = [(classes[0][a], classes[1][b]) for a, b in cells_matched]
    left = []
    for k, found in enumerate(classes):
        others = found.keys() - {pair[k] for pair in cells_matched}
        left.append([found[birth] for birth in others])
    return matched, *left
