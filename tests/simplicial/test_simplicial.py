"""Curves and transforms of simplicial complexes, against GUDHI's simplex trees and brute force."""

import itertools

import gudhi
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import ecc_core as ecc

RNG = np.random.default_rng(11)
SEEDS = range(4)


def random_complex(seed, points=12, largest=4):
    """Numbers of points of some simplices of each size up to `largest`, whose faces may lack."""
    rng = np.random.default_rng(seed)
    simplices = []
    for size in range(2, largest + 1):
        rows = [rng.permutation(points)[:size] for _ in range(14 - 2 * size)]
        simplices.append(np.array(rows))
    return simplices


def closed(simplices):
    """All faces of simplices with at least two points, as a set of sorted tuples."""
    found = set()
    for row in itertools.chain.from_iterable(simplices):
        points = sorted(map(int, row))
        for size in range(2, len(points) + 1):
            found |= set(itertools.combinations(points, size))
    return found


def by_size(faces):
    """Arrays of simplices, one for each number of points."""
    ordered = sorted(faces, key=len)
    return [np.array(list(group)) for _, group in itertools.groupby(ordered, key=len)]


def count(values, simplices, thresholds, weights=None):
    """The sums of signed weights of the simplices whose last point has entered."""
    rows = [(point,) for point in range(len(values))] + sorted(closed(simplices))
    entered = largest_of_each(rows, values)
    dimensions = np.array([len(row) - 1 for row in rows])
    signed = 1 - 2 * (dimensions % 2)
    if weights is not None:
        signed = signed * largest_of_each(rows, weights)
    sums = [signed[entered <= t].sum() for t in thresholds]
    return np.array(sums)


def largest_of_each(simplices, values):
    """The largest value of the points of each simplex."""
    largest = [max(values[list(row)]) for row in simplices]
    return np.array(largest)


def gudhi_curve(values, simplices, thresholds):
    """The Euler characteristic from the persistence pairs of a lower star filtration."""
    tree = gudhi.SimplexTree()
    for point in range(len(values)):
        tree.insert([point])
    for row in itertools.chain.from_iterable(simplices):
        tree.insert(list(map(int, row)))
    for point, value in enumerate(values):
        tree.assign_filtration([point], float(value))
    tree.make_filtration_non_decreasing()
    for row, _ in tree.get_filtration():  # The simplices were inserted at 0.
        tree.assign_filtration(row, float(max(values[row])))
    tree.compute_persistence(min_persistence=-1, persistence_dim_max=True)
    curve = np.zeros(len(thresholds), np.int64)
    for dimension in range(tree.dimension() + 1):
        pairs = tree.persistence_intervals_in_dimension(dimension).reshape(-1, 2)
        for birth, death in pairs:
            curve += (-1) ** dimension * ((birth <= thresholds) & (thresholds < death))
    return curve


@pytest.mark.parametrize("largest", [2, 3, 4, 6])
@pytest.mark.parametrize("seed", SEEDS)
def test_curves_are_those_of_gudhi(seed, largest):
    simplices = random_complex(seed, largest=largest)
    values = np.random.default_rng(seed).integers(0, 6, 12).astype(float)  # Some are equal.
    thresholds = np.arange(-1, 7)
    found = ecc.simplicial_curve(values, simplices, thresholds, complete=True)
    assert found.values.dtype == np.int64
    assert_array_equal(found.values, gudhi_curve(values, simplices, thresholds))
    again = ecc.simplicial_curve(values, by_size(closed(simplices)), thresholds)
    assert_array_equal(again.values, found.values)


DTYPES = [bool, np.uint8, np.int16, np.int64, np.uint64, np.float16, np.float32, np.float64, ">f8"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("superlevel", [False, True])
def test_curves_of_every_dtype(dtype, superlevel):
    simplices = random_complex(7)
    values = RNG.integers(0, 7, (2, 12)).astype(dtype)
    thresholds = np.array([-1, 0, 0.5, 1, 3, 300])
    found = ecc.simplicial_curve(
        values, simplices, thresholds, superlevel=superlevel, complete=True
    )
    assert found.superlevel is superlevel
    sign = -1 if superlevel else 1
    expected = [count(sign * row, simplices, sign * thresholds) for row in values.astype(float)]
    assert_array_equal(found.values, expected)


def test_neighbouring_large_integers_are_told_apart():
    values = np.array([2**53, 2**53 + 1, 2**62 + 1])
    found = ecc.simplicial_curve(values, [[0, 1], [1, 2]], values)
    assert_array_equal(found.values, [1, 1, 1])
    below = ecc.simplicial_curve(values, [[0, 2], [1, 2]], values)
    assert_array_equal(below.values, [1, 2, 1])


@pytest.mark.parametrize("superlevel", [False, True])
def test_exact_thresholds_are_all_changes(superlevel):
    values = np.array([3, 1, 2, 1], np.uint8)
    found = ecc.simplicial_curve(values, [[0, 1], [2, 3]], "exact", superlevel=superlevel)
    assert found.thresholds.dtype == np.uint8
    every = ecc.simplicial_curve(values, [[0, 1], [2, 3]], np.arange(5), superlevel=superlevel)
    side = "left" if superlevel else "right"
    steps = np.searchsorted(found.thresholds, every.thresholds, side)
    padded = [*found.values, 0] if superlevel else [0, *found.values]
    assert_array_equal(np.array(padded)[steps], every.values)


def test_infinite_values_enter_first_and_last():
    values = np.array([-np.inf, 0, np.inf])
    found = ecc.simplicial_curve(values, [[0, 1], [1, 2]], [-np.inf, -1, 0, 1, np.inf])
    assert_array_equal(found.values, [1, 1, 1, 1, 1])
    assert ecc.simplicial_curve(values, [], 3).thresholds.tolist() == [0, 0, 0]


@pytest.mark.parametrize("ndim", [1, 2, 3, 5])
@pytest.mark.parametrize("levels", ["even", "uneven", "many"])
def test_transforms_count_simplices(ndim, levels):
    points = RNG.normal(size=(12, ndim)).round(1)
    simplices = random_complex(ndim)
    directions = RNG.normal(size=(35, ndim))  # There are more than are computed at once.
    thresholds = {
        "even": np.linspace(-3, 3, 25),
        "uneven": np.sort(RNG.normal(size=9)),
        "many": np.linspace(-3, 3, 70_000),
    }[levels]
    found = ecc.simplicial_transform(points, simplices, directions, thresholds, complete=True)
    some = slice(None, None, 5000 if levels == "many" else 1)
    assert found.values.dtype == np.int64
    expected = []
    for vector in found.directions:
        heights = points[:, 0] * vector[0]
        for axis in range(1, ndim):
            heights = heights + points[:, axis] * vector[axis]
        expected.append(count(heights, simplices, thresholds[some]))
    assert_array_equal(found.values[:, some], expected)


def test_heights_that_are_thresholds_enter_there():
    """Points of a lattice, whose heights along the axes are the thresholds themselves."""
    thresholds = np.arange(-5, 6) * 0.1
    grid = np.array(list(itertools.product(thresholds, repeat=2)))
    numbers = np.arange(11 * 11).reshape(11, 11)
    edges = np.stack([numbers[:, :-1].ravel(), numbers[:, 1:].ravel()], axis=1)
    along_axes = ecc.simplicial_transform(grid, [edges], [[1, 0], [0, 1]], thresholds).values
    assert_array_equal(along_axes[0], count(grid[:, 0], [edges], thresholds))
    assert_array_equal(along_axes[1], count(grid[:, 1], [edges], thresholds))


@pytest.mark.parametrize(
    ("size", "levels"),
    [
        (1e30, [0, 0.1, 0.5]),
        (1e30, [0, 1e29, 5e29]),
        (1, [0, 1e-30, 3e-30]),
        (1, [0, 1e-300, 3e-300]),
        (1e-310, [-1e-310, 0, 1e-310]),
    ],
)
def test_points_and_levels_of_very_different_size(size, levels):
    """Numbers of the size of points in units of levels, or the reverse, would overflow."""
    points = np.random.default_rng(0).normal(size=(12, 2)) * size
    simplices = random_complex(0, largest=3)
    vectors = np.array([[1.0, 0.0], [0.0, -1.0]])
    found = ecc.simplicial_transform(points, simplices, vectors, levels, complete=True)
    expected = [count(values, simplices, levels) for values in (points @ vectors.T).T]
    assert_array_equal(found.values, expected)


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_a_simplex_weighs_as_much_as_its_heaviest_point(dtype):
    points = RNG.normal(size=(12, 3))
    simplices = random_complex(1)
    weights = RNG.integers(-3, 9, 12).astype(dtype)
    thresholds = np.linspace(-3, 3, 21)
    found = ecc.simplicial_transform(
        points, simplices, 5, thresholds, weights=weights, complete=True
    )
    assert found.weighted
    assert found.values.dtype == (np.int64 if dtype == np.int32 else np.float64)
    heights = [(points * vector).sum(axis=1) for vector in found.directions]
    expected = [count(row, simplices, thresholds, weights) for row in heights]
    assert_array_equal(found.values, expected)


def test_the_curve_of_a_hub_with_many_edges():
    """More edges than 16-bit sums can count, and a point that is the first one of all."""
    points = 70_000
    edges = np.stack([np.zeros(points - 1, int), np.arange(1, points)], axis=1)
    values = np.arange(points)[::-1]
    found = ecc.simplicial_curve(values, edges, [0, points - 2, points - 1])
    assert_array_equal(found.values, [1, points - 1, 1])


def test_a_simplex_that_is_listed_twice_counts_once():
    edges = [[0, 1], [1, 0], [1, 2], [2, 1], [0, 1]]  # PyTorch Geometric lists graphs so.
    assert_array_equal(ecc.simplicial_curve([0, 0, 0], edges, [0]).values, [1])


CENTRES = {
    "mean": lambda points: points.mean(axis=0),
    "box": lambda points: points.min(axis=0) + np.ptp(points, axis=0) / 2,
}


def radius_of(points):
    """The largest distance of a point from the origin."""
    return np.linalg.norm(points, axis=1).max()


@pytest.mark.parametrize("center", CENTRES)
def test_centred_and_normalised_points(center):
    points = RNG.normal(size=(12, 2)) + 4
    thresholds = np.linspace(-1, 1, 9)
    moved = points - CENTRES[center](points)
    expected = ecc.simplicial_transform(moved / radius_of(moved), [], 4, thresholds)
    found = ecc.simplicial_transform(points, [], 4, thresholds, center=center, normalize="radius")
    assert_array_equal(found.values, expected.values)
    assert_array_equal(found.values[:, -1], 12)


def test_heights_reach_the_farthest_point():
    points = RNG.normal(size=(12, 2)) + 4
    found = ecc.simplicial_transform(points, [], 4, 9)
    assert found.heights[-1] == pytest.approx(radius_of(points))
    assert_array_equal(found.values[:, -1], 12)


@pytest.mark.parametrize("workers", [1, 3])
def test_results_do_not_depend_on_threads(workers):
    points = RNG.normal(size=(12, 3))
    simplices = random_complex(3)
    weights = RNG.normal(size=12)
    given = points, simplices, 70, 17
    options = {"weights": weights, "complete": True}
    first = ecc.simplicial_transform(*given, **options, workers=1)
    assert first == ecc.simplicial_transform(*given, **options, workers=workers)


def test_tensors_give_tensors():
    torch = pytest.importorskip("torch")
    points = torch.randn(12, 3)
    edges = torch.tensor([[0, 1], [2, 5]])
    found = ecc.simplicial_transform(points, [edges], 4, 5)
    assert isinstance(found.values, torch.Tensor)
    expected = ecc.simplicial_transform(points.numpy(), [edges.numpy()], 4, 5)
    assert_array_equal(found.values.numpy(), expected.values)


def gudhi_pairs(values, edges):
    """Births and deaths of components of positive persistence, sorted."""
    tree = gudhi.SimplexTree()
    for point, value in enumerate(values):
        tree.insert([point], filtration=float(value))
    for edge in edges:
        tree.insert(edge.tolist(), filtration=float(max(values[edge])))
    tree.compute_persistence(min_persistence=0, persistence_dim_max=True)
    return sorted(map(tuple, tree.persistence_intervals_in_dimension(0)))


def count_alive(intervals, thresholds):
    """The numbers of half-open intervals that hold each threshold."""
    births, deaths = np.array(intervals).T
    return [np.count_nonzero((births <= t) & (t < deaths)) for t in thresholds]


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("levels", [3, 50])
@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_are_those_of_gudhi(seed, levels, superlevel):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, levels, 40)
    edges = rng.integers(0, 40, (45, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    pairs = ecc.simplicial_pairs(values, edges, superlevel=superlevel)
    sign = -1 if superlevel else 1
    expected = gudhi_pairs(sign * values, edges)
    deaths = np.where(pairs.essential, np.inf, sign * pairs.deaths.astype(float))
    assert sorted(zip(sign * pairs.births.astype(float), deaths, strict=True)) == expected
    assert_array_equal(values[pairs.birth_points[:, 0]], pairs.births)
    dying = ~pairs.essential
    assert_array_equal(values[pairs.death_points[dying, 0]], pairs.deaths[dying])
    assert (np.diff(sign * pairs.births) >= 0).all()
    thresholds = np.arange(levels)
    curve = pairs.betti_curves(thresholds).values[0]
    assert_array_equal(curve, count_alive(expected, sign * thresholds))


def test_pairs_of_a_mesh_and_without_noise():
    values = np.array([0.0, 3.0, 1.0, 3.0])
    triangles = [[0, 1, 3], [1, 2, 3]]
    pairs = ecc.simplicial_pairs(values, triangles)
    assert_array_equal(pairs.to_gudhi(), [[0, np.inf], [1, 3]])
    assert_array_equal(pairs.death_points, [[-1], [1]])
    lasting = ecc.simplicial_pairs(values, triangles, min_persistence=3)
    assert_array_equal(lasting.to_gudhi(), [[0, np.inf]])


def test_points_without_edges_never_die():
    pairs = ecc.simplicial_pairs([0.0, 3.0, 1.0, 3.0], [])
    assert_array_equal(np.sort(pairs.births), [0, 1, 3, 3])
    assert pairs.essential.all()
    assert len(ecc.simplicial_pairs([], []).births) == 0
