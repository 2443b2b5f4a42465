"""Curves and transforms of simplicial complexes, against GUDHI's simplex trees and brute force."""

import itertools

import gudhi
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import ecc_core as ecc
from ecc_core.errors import BackendError

RNG = np.random.default_rng(11)
SEEDS = range(4)


def random_complex(seed, points=12, largest=4):
    """Numbers of points of some simplices of each size up to `largest`, whose faces may lack."""
    rng = np.random.default_rng(seed)
    sizes = range(2, largest + 1)
    return [
        np.array([rng.permutation(points)[:size] for _ in range(14 - 2 * size)]) for size in sizes
    ]


def closed(simplices):
    """All faces of simplices with at least two points, as a set of sorted tuples."""
    found = set()
    for row in itertools.chain.from_iterable(simplices):
        for size in range(2, len(row) + 1):
            found |= set(itertools.combinations(sorted(map(int, row)), size))
    return found


def by_size(faces):
    """Arrays of simplices, one for each number of points."""
    sizes = sorted({len(face) for face in faces})
    return [np.array([face for face in faces if len(face) == size]) for size in sizes]


def count(values, simplices, thresholds, weights=None):
    """The sums of signed weights of the simplices whose last point has entered."""
    rows = [(point,) for point in range(len(values))] + sorted(closed(simplices))
    entered = np.array([max(values[list(row)]) for row in rows])
    sign = np.array([(-1) ** (len(row) - 1) for row in rows])
    if weights is not None:
        sign = sign * np.array([max(weights[list(row)]) for row in rows])
    return np.array([sign[entered <= t].sum() for t in thresholds])


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
    for row, _ in tree.get_filtration():  # simplices were inserted at 0
        tree.assign_filtration(row, max(float(values[point]) for point in row))
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
    values = np.random.default_rng(seed).integers(0, 6, 12).astype(float)  # with ties
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
    for row, curve in zip(values.astype(float), found.values, strict=True):
        sign = -1 if superlevel else 1
        assert_array_equal(curve, count(sign * row, simplices, sign * thresholds))


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
    every = ecc.simplicial_curve(
        values, [[0, 1], [2, 3]], np.arange(5), superlevel=superlevel
    ).values
    steps = np.searchsorted(found.thresholds, np.arange(5), side="left" if superlevel else "right")
    padded = [*found.values, 0] if superlevel else [0, *found.values]
    assert_array_equal(np.array(padded)[steps], every)


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
    directions = RNG.normal(size=(35, ndim))  # more than are computed at once
    thresholds = {
        "even": np.linspace(-3, 3, 25),
        "uneven": np.sort(RNG.normal(size=9)),
        "many": np.linspace(-3, 3, 70_000),
    }[levels]
    found = ecc.simplicial_transform(points, simplices, directions, thresholds, complete=True)
    some = slice(None, None, 5000 if levels == "many" else 1)
    assert found.values.dtype == np.int64
    for vector, curve in zip(found.directions, found.values, strict=True):
        heights = points[:, 0] * vector[0]
        for axis in range(1, ndim):
            heights = heights + points[:, axis] * vector[axis]
        assert_array_equal(curve[some], count(heights, simplices, thresholds[some]))


def test_heights_that_are_thresholds_enter_there():
    """Points of a lattice, whose heights along the axes are the thresholds themselves."""
    grid = np.stack(np.meshgrid(*2 * [np.arange(-5, 6)], indexing="ij"), -1).reshape(-1, 2) * 0.1
    edges = [[11 * i + j, 11 * i + j + 1] for i in range(11) for j in range(10)]
    thresholds = np.arange(-5, 6) * 0.1
    found = ecc.simplicial_transform(grid, [edges], [[1, 0], [0, 1]], thresholds).values
    for row, axis in zip(found, (0, 1), strict=True):
        assert_array_equal(row, count(grid[:, axis], [np.array(edges)], thresholds))


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
    for vector, curve in zip(found.directions, found.values, strict=True):
        heights = (points * vector).sum(axis=1)
        assert_array_equal(curve, count(heights, simplices, thresholds, weights))


def test_the_curve_of_a_hub_with_many_edges():
    """More edges than 16-bit sums can count, and a point that is the first one of all."""
    points = 70_000
    edges = np.stack([np.zeros(points - 1, int), np.arange(1, points)], axis=1)
    values = np.arange(points)[::-1]
    found = ecc.simplicial_curve(values, edges, [0, points - 2, points - 1])
    assert_array_equal(found.values, [1, points - 1, 1])


def test_a_simplex_that_is_listed_twice_counts_once():
    edges = [[0, 1], [1, 0], [1, 2], [2, 1], [0, 1]]  # a graph as PyTorch Geometric lists it
    assert_array_equal(ecc.simplicial_curve([0, 0, 0], edges, [0]).values, [1])


def test_centred_and_normalised_points():
    points = RNG.normal(size=(12, 2)) + 4
    thresholds = np.linspace(-1, 1, 9)
    low = points.min(axis=0)
    high = points.max(axis=0)
    centres = {"mean": points.mean(axis=0), "box": low + (high - low) / 2}
    for center, middle in centres.items():
        moved = points - middle
        unit = moved / np.sqrt((moved**2).sum(axis=1).max())
        found = ecc.simplicial_transform(
            points, [], 4, thresholds, center=center, normalize="radius"
        )
        assert_array_equal(found.values[:, -1], 12)
        expected = ecc.simplicial_transform(unit, [], 4, thresholds)
        assert_array_equal(found.values, expected.values)
    default = ecc.simplicial_transform(points, [], 4, 9)
    assert default.heights[-1] == pytest.approx(np.sqrt((points**2).sum(axis=1).max()))
    assert_array_equal(default.values[:, -1], 12)


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


class OnDevice:
    """An array on a CUDA device, as far as its origin is concerned."""

    shape = (3,)
    ndim = 1
    dtype = np.dtype(float)

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **options):
        raise AssertionError


@pytest.mark.parametrize("function", [ecc.simplicial_curve, ecc.simplicial_transform])
def test_arrays_on_devices_are_refused(function):
    with pytest.raises(BackendError, match="must be in host memory"):
        function(OnDevice(), [], [1])


@pytest.mark.parametrize("function", [ecc.simplicial_curve, ecc.simplicial_transform])
def test_no_points(function):
    nothing = np.empty(0) if function is ecc.simplicial_curve else np.empty((0, 2))
    more = {"directions": 3} if function is ecc.simplicial_transform else {}
    found = function(nothing, [], thresholds=[0, 1], **more)
    assert not found.values.any()
    with pytest.raises(ValueError, match="`range` must be given"):
        function(nothing, [], thresholds=3, **more)


TRIANGLE = [np.array([[0, 1], [1, 2], [0, 2]]), np.array([[0, 1, 2]])]
WRONG_SIMPLICES = {
    "outside": (np.array([[0, 5]]), ValueError, r"from 0 to 3, got the edge \(0, 5\)"),
    "negative": (np.array([[0, 1, -1]]), ValueError, r"from 0 to 3, got the triangle \(0, 1, -1\)"),
    "repeated": (np.array([[2, 0, 2]]), ValueError, r"repeat a point .* triangle \(2, 0, 2\)"),
    "open": (
        [TRIANGLE[0][:2], TRIANGLE[1]],
        ValueError,
        r"`complete` is True, got the triangle \(0, 1, 2\) without its edge \(0, 2\)",
    ),
    "no edges": (
        [np.array([[0, 1, 2]]), np.array([[0, 1, 2, 3]])],
        ValueError,
        r"the tetrahedron \(0, 1, 2, 3\) without its triangle \(1, 2, 3\)",
    ),
    "floats": (np.array([[0.0, 1.0]]), TypeError, "must hold integers, got float64"),
    "booleans": (np.array([[True, False]]), TypeError, "must hold integers, got bool"),
    "mixed": ([[0, 1], [0, 1, 2]], ValueError, "rows of different lengths"),
    "same size": ([[[0, 1]], [[1, 2]]], ValueError, "one array for each number of points"),
    "points": (np.array([[0], [1]]), ValueError, "at least 2 points"),
    "numbers": ([0, 1, 2], ValueError, "sequence of .* got the number 0 for an array"),
    "number": (3, TypeError, "sequence of such arrays"),
}


@pytest.mark.parametrize("case", WRONG_SIMPLICES)
@pytest.mark.parametrize("function", [ecc.simplicial_curve, ecc.simplicial_transform])
def test_wrong_simplices(function, case):
    simplices, error, message = WRONG_SIMPLICES[case]
    values = np.zeros(4) if function is ecc.simplicial_curve else np.zeros((4, 2))
    with pytest.raises(error, match=message) as raised:
        function(values, simplices)
    assert str(raised.value).startswith("`simplices` must")


POINTS = np.arange(8.0).reshape(4, 2)
WRONG_TRANSFORMS = {
    "NaN": ({"points": [[0, np.nan]]}, "`points` must be finite, got .* in row 0"),
    "one axis": ({"points": [0.0, 1.0]}, r"`points` must have shape \(n, d\)"),
    "large": ({"points": [[1e200, 0]]}, "`points` must be below"),
    "five axes": ({"points": np.zeros((2, 5))}, "`directions` must be vectors for points of 5"),
    "components": ({"directions": [[1, 0, 0]]}, r"`directions` must have shape \(k, 2\)"),
    "zero": ({"directions": [[0, 0]]}, "`directions` must be finite and not zero"),
    "decreasing": ({"thresholds": [1, 0]}, "`thresholds` must be increasing"),
    "both": ({"thresholds": [0, 1], "range": (0, 1)}, "`range` must be None"),
    "weights": ({"weights": [1, 2]}, r"`weights` must have shape \(4,\)"),
    "infinite": ({"weights": [1, 2, np.inf, 0]}, "`weights` must be finite, got inf at point 2"),
    "overflow": ({"weights": [2**62, 0, 0, 0]}, "`weights` must be integers whose sums"),
    "center": ({"center": "median"}, "`center` must be None"),
    "normalize": ({"normalize": True}, "`normalize` must be None"),
    "no radius": ({"points": np.zeros((3, 2)), "normalize": "radius"}, "`normalize` must be None"),
}


@pytest.mark.parametrize("case", WRONG_TRANSFORMS)
def test_wrong_transforms(case):
    changed, message = WRONG_TRANSFORMS[case]
    with pytest.raises(ValueError, match=message):
        ecc.simplicial_transform(**{"points": POINTS, "simplices": [], **changed})


WRONG_CURVES = {
    "NaN": ({"values": [0, np.nan]}, ValueError, "`values` must not contain NaN"),
    "complex": ({"values": [1j]}, TypeError, "`values` must have"),
    "number": ({"values": 3.0}, ValueError, r"`values` must have shape \(\.\.\., n\)"),
    "decreasing": ({"thresholds": [1, 0]}, ValueError, "`thresholds` must be increasing"),
    "superlevel": ({"superlevel": "yes"}, TypeError, "`superlevel` must be"),
    "complete": ({"complete": None}, TypeError, "`complete` must be"),
    "exact batch": (
        {"values": np.zeros((2, 3)), "thresholds": "exact"},
        ValueError,
        '`thresholds` must not be "exact"',
    ),
}


@pytest.mark.parametrize("case", WRONG_CURVES)
def test_wrong_curves(case):
    changed, error, message = WRONG_CURVES[case]
    with pytest.raises(error, match=message):
        ecc.simplicial_curve(**{"values": [0, 1], "simplices": [], **changed})


def gudhi_pairs(values, edges):
    """Births and deaths of components of positive persistence, sorted."""
    tree = gudhi.SimplexTree()
    for point, value in enumerate(values):
        tree.insert([point], filtration=float(value))
    for edge in edges:
        tree.insert(edge.tolist(), filtration=float(max(values[edge])))
    tree.compute_persistence(min_persistence=0, persistence_dim_max=True)
    return sorted(map(tuple, tree.persistence_intervals_in_dimension(0)))


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
    alive = [sum(b <= t < d for b, d in expected) for t in sign * thresholds]
    assert_array_equal(curve, alive)


def test_pairs_of_a_mesh_and_without_noise():
    values = np.array([0.0, 3.0, 1.0, 3.0])
    pairs = ecc.simplicial_pairs(values, [[0, 1, 3], [1, 2, 3]])
    assert_array_equal(pairs.to_gudhi(), [[0, np.inf], [1, 3]])
    assert_array_equal(pairs.death_points, [[-1], [1]])
    assert len(ecc.simplicial_pairs(values, [[0, 1, 3], [1, 2, 3]], min_persistence=3).births) == 1
    assert len(ecc.simplicial_pairs(values, []).births) == 4
    assert len(ecc.simplicial_pairs([], []).births) == 0


WRONG_PAIRS = {
    "NaN": ({"values": [0, np.nan]}, ValueError, "`values` must not contain NaN"),
    "axes": ({"values": np.zeros((2, 2))}, ValueError, r"`values` must have shape \(n,\)"),
    "persistence": ({"min_persistence": -1}, ValueError, "`min_persistence` must not be negative"),
    "device": ({"values": OnDevice()}, BackendError, "must be in host memory"),
}


@pytest.mark.parametrize("case", WRONG_PAIRS)
def test_wrong_pairs(case):
    changed, error, message = WRONG_PAIRS[case]
    with pytest.raises(error, match=message):
        ecc.simplicial_pairs(**{"values": [0, 1], "simplices": [], **changed})
