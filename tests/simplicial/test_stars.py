"""Complexes by the stars of their points, and those that are not made of them."""

import numpy as np
import pytest

import ecc_core as ecc
from ecc_core._backends.cpu.simplicial.stars import MOST_NEIGHBOURS, make_stars


def shuffled(rows, rng):
    """The same simplices in another order, and their points, too."""
    return rng.permuted(rng.permutation(rows), axis=1)


def grid_of_triangles(side):
    """A square of 2 * side**2 triangles."""
    i, j = np.indices((side, side)).reshape(2, -1)
    here = i * (side + 1) + j
    below = here + side + 1
    lower = np.stack([here, below, below + 1], axis=1)
    return np.concatenate([lower, np.stack([here, here + 1, below + 1], axis=1)])


def fan(points):
    """A hub with so many neighbours, between which there are triangles."""
    others = np.arange(1, points + 1)
    return np.stack([np.zeros_like(others), others, np.roll(others, 1)], axis=1)


def sides_of(triangles):
    return np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [0, 2]]])


def counted(values, edges, triangles, thresholds):
    """Points, distinct edges and distinct triangles of which all points have entered."""
    sets = [np.unique(np.sort(rows, axis=1), axis=0) for rows in (edges, triangles)]
    of_edges, of_triangles = (values[rows].max(axis=1) for rows in sets)
    found = []
    for t in thresholds:
        entered = [np.count_nonzero(entry <= t) for entry in (values, of_edges, of_triangles)]
        found.append(entered[0] - entered[1] + entered[2])
    return found


CONE = np.array([[0, i, j] for i in range(1, 8) for j in range(1, i)])
"""Over all edges between seven points."""
SHAPES = {
    "square": grid_of_triangles(9),
    "fan of 16": fan(16),
    "fan of 17": fan(17),
    "fan of 95": fan(95),  # It has 127 triangles with those that are repeated.
    "more triangles than neighbours": CONE,
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("complete", [False, True])
def test_curves_count_each_simplex_once(name, complete):
    rng = np.random.default_rng(0)
    triangles = np.concatenate([SHAPES[name], SHAPES[name][::3]])
    edges = sides_of(triangles)
    given = shuffled(edges[:5] if complete else edges, rng), shuffled(triangles, rng)
    points = triangles.max() + 2  # The last one has no neighbours.
    assert make_stars(given, int(points), complete) is not None
    values = rng.integers(0, 9, points)
    found = ecc.simplicial_curve(values, list(given), range(9), complete=complete)
    np.testing.assert_array_equal(found.values, counted(values, edges, triangles, range(9)))


@pytest.mark.parametrize("hub", [0, 200])
def test_the_largest_hub_of_a_star(hub):
    """The sums of its signs are the largest that there are, of one kind or the other."""
    triangles = fan(MOST_NEIGHBOURS)
    points = MOST_NEIGHBOURS + 1
    assert make_stars([triangles], points, True) is not None
    values = np.arange(points)
    values[0] = hub
    found = ecc.simplicial_curve(values, triangles, range(201)).values
    np.testing.assert_array_equal(
        found, counted(values, sides_of(triangles), triangles, range(201))
    )


@pytest.mark.parametrize("orders", [5, 64, 70])
@pytest.mark.parametrize("levels", [16, 70_000])
def test_transforms_are_those_of_sums_over_simplices(levels, orders):
    """Codes of 16 bits, and of 32, in 32 directions at once, and in twice as many."""
    rng = np.random.default_rng(1)
    triangles = shuffled(grid_of_triangles(12), rng)
    points = rng.normal(size=(169, 2))
    directions = ecc.sample_directions(orders, 2)
    heights = np.linspace(-2, 2, levels)
    found = ecc.simplicial_transform(points, triangles, directions, heights)
    assert make_stars([triangles], 169, True) is not None
    weights = np.ones(169, int)  # With weights, simplices are added one by one.
    known = ecc.simplicial_transform(points, triangles, directions, heights, weights=weights)
    np.testing.assert_array_equal(found.values, known.values)


NOT_OF_STARS = {
    "a larger hub": ([fan(MOST_NEIGHBOURS + 1)], True),
    "tetrahedra": ([np.array([[0, 1, 2, 3], [1, 2, 3, 4]])], True),
}


@pytest.mark.parametrize("name", NOT_OF_STARS)
def test_other_complexes(name):
    rows, complete = NOT_OF_STARS[name]
    points = int(rows[-1].max()) + 1
    assert make_stars(rows, points, complete) is None
    values = np.arange(points)
    found = ecc.simplicial_curve(values, rows, range(points), complete=complete).values
    assert (found == 1).all()  # What has entered can be contracted to the first point.


@pytest.mark.parametrize(
    ("edges", "triangles", "words"),
    [
        ([[0, 1], [1, 2]], [[2, 1, 0]], r"triangle \(0, 1, 2\) without its edge \(0, 2\)"),
        ([[0, 1], [1, 1]], [], r"edge \(1, 1\)"),
        ([[0, 1], [1, 9]], [], r"edge \(1, 9\)"),
        ([[0, 1], [-1, 1]], [], r"edge \(-1, 1\)"),
        ([[0, 1], [0, 2], [1, 2]], [[0, 1, 4]], r"triangle \(0, 1, 4\)"),
        ([[0, 1], [0, 2], [1, 2]], [[2, 1, 2]], r"triangle \(2, 1, 2\)"),
        ([[0, 1], [0, 2], [1, 2]], [[-4, 1, 2]], r"triangle \(-4, 1, 2\)"),
    ],
)
def test_what_is_no_complex(edges, triangles, words):
    parts = [np.array(edges), np.array(triangles, dtype=int).reshape(-1, 3)]
    with pytest.raises(ValueError, match=words):
        ecc.simplicial_curve(np.zeros(4), parts, [0])
    with pytest.raises(ValueError, match=words):
        ecc.simplicial_transform(np.zeros((4, 2)), parts, 3, [0, 1])


def test_equal_values_of_neighbours():
    """However ties are broken, the sum of a flat part is its Euler characteristic."""
    triangles = grid_of_triangles(6)
    values = np.zeros(49, np.uint8)
    values[24] = 1
    found = ecc.simplicial_curve(values, triangles, [0, 1]).values
    # First a ring around the middle has entered, then all.
    np.testing.assert_array_equal(found, [0, 1])


@pytest.mark.parametrize("first", [0, 3000])
@pytest.mark.parametrize("distance", [1e-9, 1e-6])
def test_heights_close_to_thresholds(first, distance):
    """Closer than single precision tells, whose guesses are settled by the heights themselves."""
    rng = np.random.default_rng(3)
    thresholds = np.linspace(first - 1, first + 1.3, 120)
    wanted = rng.choice(thresholds, 3000) + distance * rng.choice([-1, 0, 1], 3000)
    along = np.array([0.6, 0.8])
    points = wanted[:, None] * along + rng.normal(size=(3000, 1)) * [-0.8, 0.6]
    found = ecc.simplicial_transform(points, [], [along], thresholds)
    (u,) = found.directions
    heights = u[0] * points[:, 0] + u[1] * points[:, 1]
    np.testing.assert_array_equal(found.values[0], (heights[:, None] <= thresholds).sum(axis=0))


@pytest.mark.parametrize("exponent", [-300, -60, 60, 140])
def test_coordinates_of_any_magnitude(exponent):
    rng = np.random.default_rng(4)
    points = rng.normal(size=(200, 3)) * 2.0**exponent
    found = ecc.simplicial_transform(points, [], 7, 20)
    u = found.directions
    along = [u[:, axis, None] * points[:, axis] for axis in range(3)]
    heights = (along[0] + along[1]) + along[2]
    expected = (heights[:, :, None] <= found.heights).sum(axis=1)
    np.testing.assert_array_equal(found.values, expected)


@pytest.mark.parametrize("name", ["points", "weights", "values"])
def test_masked_entries_are_refused(name):
    masked = np.ma.masked_array(np.ones((4, 2)), [[False, False]] * 3 + [[True, True]])
    column = masked[:, 0]
    edges = [[0, 1], [2, 3]]
    calls = {
        "points": lambda: ecc.simplicial_transform(masked, edges),
        "weights": lambda: ecc.simplicial_transform(masked.data, edges, weights=column),
        "values": lambda: ecc.simplicial_curve(column, edges),
    }
    with pytest.raises(ValueError, match=f"`{name}` must have no masked entries, got"):
        calls[name]()


def test_edges_of_shape_2_m():
    with pytest.raises(ValueError, match=r"got 13 \(edges of shape \(2, m\) are to be transposed"):
        ecc.simplicial_curve(np.zeros(26), np.arange(26).reshape(2, 13))
