"""Persistence diagrams by GUDHI, which tests compare with."""

import itertools

import gudhi
import numpy as np

import ecc_core as ecc


def touching(periodic, ndim):
    """Return flags of periodic axes, from one for all axes or from those of three axes."""
    return (periodic,) * ndim if isinstance(periodic, bool) else tuple(periodic)[:ndim]


def boundary_of(periodic, ndim):
    """Return the argument `boundary` for such flags."""
    return tuple("periodic" if touch else "closed" for touch in touching(periodic, ndim))


def intervals(image, connectivity, periodic=False):
    """Return births and deaths by GUDHI for each dimension; infinity if a class never dies.

    `periodic` is one flag for all axes, or one for each.
    """
    wraps = touching(periodic, image.ndim)
    name = "vertices" if connectivity == 1 and image.ndim > 1 else "top_dimensional_cells"
    cells = {name: image.astype(float)}
    if any(wraps):
        cubical = gudhi.PeriodicCubicalComplex(**cells, periodic_dimensions=wraps)
    else:
        cubical = gudhi.CubicalComplex(**cells)
    cubical.compute_persistence(homology_coeff_field=2)
    found = map(cubical.persistence_intervals_in_dimension, range(image.ndim + all(wraps)))
    return [np.reshape(part, (-1, 2)) for part in found]


def alive(parts, at, least=0.0):
    """Return how many intervals of at least this persistence contain each threshold."""
    values = np.zeros((len(parts), len(at)), np.int64)
    for row, part in zip(values, parts, strict=True):
        births, deaths = part[part[:, 1] - part[:, 0] >= least].T
        row[:] = [((births <= t) & (t < deaths)).sum() for t in at]
    return values


def assert_diagrams(found, parts):
    for own, part in zip(found, parts, strict=True):
        np.testing.assert_array_equal(sorted_pairs(*own.T), sorted_pairs(*part.T))


def diagram(image, shown, connectivity, superlevel, dimension, periodic=False):
    """Return births and deaths by GUDHI, sorted, and the births of classes that never die.

    GUDHI computes with float64, which does not hold all integers. So it gets the ranks of the
    values, and for points that are not shown the rank behind all others.
    """
    levels, ranks = np.unique(image[shown], return_inverse=True)
    never = levels.size
    entry = np.full(image.shape, never)
    entry[shown] = never - 1 - ranks if superlevel else ranks
    levels = levels[::-1] if superlevel else levels
    found = intervals(entry, connectivity, periodic)[dimension]
    born, died = np.minimum(found[found[:, 0] < never], never).astype(int).T
    ends = died < never
    return sorted_pairs(levels[born[ends]], levels[died[ends]]), np.sort(levels[born[~ends]])


def sorted_pairs(births, deaths):
    """Return births and deaths as rows, sorted, in their dtype."""
    pairs = np.stack([births, deaths], axis=1)
    return pairs[np.lexsort(pairs.T[::-1])]


def reduced_pairs(order, connectivity, periodic=False):
    """Return the points of birth and death of all classes by reducing the boundary matrix.

    `order` has the places of points in the order in which they enter. A cell of the grid of twice
    the size belongs to the last of its vertices, or to the first of the cubes that contain it.
    Classes that are born and die at one point are left out; those that never die have death -1.
    """
    vertices = connectivity == 1 and order.ndim > 1
    cells = []
    wraps = touching(periodic, order.ndim)
    closed = -1 if vertices else 1
    sides = [2 * n + (0 if touch else closed) for n, touch in zip(order.shape, wraps, strict=True)]
    for cell in itertools.product(*map(range, sides)):
        spans = [(x // 2, (x + 1) // 2) if vertices else ((x - 1) // 2, x // 2) for x in cell]
        inside = []
        for span, n, touch in zip(spans, order.shape, wraps, strict=True):
            around = [i % n for i in span] if touch else span
            inside.append([i for i in around if 0 <= i < n])
        own = [order[point] for point in itertools.product(*inside)]
        cells.append((max(own) if vertices else min(own), sum(x % 2 for x in cell), cell))
    cells.sort()
    numbers = {cell: i for i, (_, _, cell) in enumerate(cells)}
    columns = {}
    births = set()
    pairs = []
    for j, (_, _, cell) in enumerate(cells):
        column = set()
        for axis in (axis for axis, x in enumerate(cell) if x % 2):
            for x in (cell[axis] - 1, (cell[axis] + 1) % sides[axis]):
                column ^= {numbers[(*cell[:axis], x, *cell[axis + 1 :])]}
        while column and max(column) in columns:
            column ^= columns[max(column)]
        if column:
            columns[max(column)] = column
            births.remove(max(column))
            pairs.append((max(column), j))
        else:
            births.add(j)
    points = np.argsort(order, axis=None)
    found = [(cells[i][1], points[cells[i][0]], points[cells[j][0]]) for i, j in pairs]
    found = [pair for pair in found if pair[1] != pair[2]]
    return found + [(cells[i][1], points[cells[i][0]], -1) for i in births]


def numbers_of(points, shape):
    """Return the numbers of points in C order; -1 where there is no point."""
    numbers = np.ravel_multi_index(np.maximum(points.T, 0), shape)
    return np.where(points[:, 0] < 0, -1, numbers)


def check_points(image, shown, connectivity, superlevel, periodic=False):
    """Compare the points of the pairs of all dimensions with those of a reduced matrix."""
    axis = tuple(range(image.ndim))
    boundary = boundary_of(periodic, image.ndim)
    options = {"connectivity": connectivity, "superlevel": superlevel, "mask": shown, "axis": axis}
    pairs = ecc.persistence_pairs(image, boundary=boundary, **options)
    values = np.unique(image, return_inverse=True)[1].reshape(image.shape)
    values = np.where(
        shown, -values if superlevel else values, image.size
    )  # Excluded ones are last.
    order = np.empty(image.size, int)
    order[np.argsort(values, axis=None, kind="stable")] = np.arange(image.size)
    flat = image.ravel()
    never = ~shown.ravel()
    expected = []
    for dim, born, died in reduced_pairs(order.reshape(image.shape), connectivity, periodic):
        end = -1 if died < 0 or never[died] else died
        if not never[born] and (end < 0 or flat[born] != flat[end]):
            expected.append((dim, flat[born], born, end))
    places = [
        numbers_of(points, image.shape) for points in (pairs.birth_points, pairs.death_points)
    ]
    found = zip(pairs.dimensions.tolist(), pairs.births.tolist(), *places, strict=True)
    circles = zip(image.shape, touching(periodic, image.ndim), strict=True)
    if (1, True) in circles:  # A product with a circle has its classes in another order.
        found, expected = ([row[:2] for row in part] for part in (found, expected))
    assert sorted(found) == sorted(expected)
