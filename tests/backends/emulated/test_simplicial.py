"""Curves and transforms of simplicial complexes by the CUDA kernels, on the CPU."""

import itertools
from unittest import mock

import numpy as np
import pytest
from fake_cupy import guarded
from numpy.testing import assert_array_equal
from simplicial_helpers import random_simplices

import ecc_core as ecc
from ecc_core._backends.cpu.simplicial.launch import make_complex, value_curves
from ecc_core._request.levels import round_to_levels

RNG = np.random.default_rng(5)
POINTS = 75
SIMPLICES = [random_simplices(RNG, POINTS, *sizes) for sizes in ((2, 40), (3, 70), (5, 3))]


@pytest.fixture
def part(emulator):
    """The backend, with blocks of few threads."""
    with mock.patch.object(emulator.backend.simplicial, "THREADS", 64):
        yield emulator.backend.simplicial


def as_sets(rows):
    return {tuple(row) for row in np.asarray(rows).tolist()}


SLOW = pytest.mark.slow  # Each case compiles kernels of its own.


def complex_of(part, given=SIMPLICES[:2], complete=True):
    arrays = [guarded(np.ascontiguousarray(rows, np.int64)) for rows in given]
    return part.make_complex(arrays, POINTS, complete)


@pytest.mark.parametrize("largest", [2, pytest.param(3, marks=SLOW)])
def test_complexes_are_those_of_the_cpu(part, largest):
    # Some are repeated.
    given = [np.concatenate([rows, rows[:9, ::-1]]) for rows in SIMPLICES[:largest]]
    found = complex_of(part, given)
    known = make_complex([rows.astype(np.int64) for rows in given], POINTS, True)
    assert len(found) == len(known)
    assert list(map(len, found)) == list(map(len, known))
    assert list(map(as_sets, found)) == list(map(as_sets, known))
    again = complex_of(part, found, complete=False)
    assert [as_sets(rows) for rows in again] == [as_sets(rows) for rows in found]


WRONG = {
    "outside": ([[[0, 1], [3, POINTS]]], r"from 0 to 74, got the edge \(3, 75\)"),
    "negative": ([[[0, 1, -1]]], r"got the triangle \(0, 1, -1\)"),
    "repeated": ([[[2, 0, 2]]], r"repeat a point .* triangle \(2, 0, 2\)"),
    "open": (
        [[[0, 1], [2, 1]], [[2, 1, 0]]],
        r"the triangle \(0, 1, 2\) without its edge \(0, 2\)",
    ),
    "no edges": ([[[0, 1, 2]]], r"the triangle \(0, 1, 2\) without its edge \(1, 2\)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_simplices(part, case):
    given, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        complex_of(part, given, complete=False)


def planned(part, given, points=None, directions=5):
    """The transform by a plan, and the points and what it was computed from."""
    points = RNG.normal(size=(POINTS, 3)) if points is None else points
    vectors, heights = ecc.sample_directions(directions, 3), np.linspace(-2, 2, 40)
    arrays = [guarded(np.ascontiguousarray(rows)) for rows in given]
    run = part.plan_transform(guarded(points), arrays, vectors, heights, False)
    return run(guarded(points), arrays), points, vectors, heights


@pytest.mark.parametrize("dtype", ["f8", pytest.param("f4", marks=SLOW)])
def test_planned_transforms(part, dtype):
    edges, triangles = complex_of(part)
    rows = [np.asarray(edges)[:, ::-1].astype(np.int64), np.asarray(triangles).astype(np.int64)]
    points = RNG.normal(size=(POINTS, 3)).astype(dtype)
    (own, at, values), points, vectors, heights = planned(part, rows, points)
    assert_array_equal(own, vectors)
    assert_array_equal(at, heights)
    known = ecc.simplicial_transform(points, rows, vectors, heights)
    assert_array_equal(values, known.values)


@pytest.mark.parametrize("case", [*WRONG, "twice", "infinite"])
def test_plans_leave_what_is_wrong_to_others(part, case):
    rows = [np.array([[0, 1], [2, 1], [0, 2]]), np.array([[2, 1, 0]])]
    if case == "twice":
        rows[0] = np.concatenate([rows[0], rows[0][:1, ::-1]])
    elif case != "infinite":
        for given in map(np.array, WRONG[case][0]):
            size = given.shape[1] - 2
            rows[size] = given if case == "open" else np.concatenate([rows[size], given])
    points = RNG.normal(size=(POINTS, 3))
    if case == "infinite":
        points[7, 2] = -np.inf
    if case == "no edges":
        rows[1] = np.array([[0, 1, 3]])
    assert planned(part, rows, points)[0] is None


@pytest.mark.parametrize(
    ("alone", "hub", "directions"), [(False, False, 5), (True, False, 70), (False, True, 5)]
)
def test_plans_remember_complexes(part, emulator, alone, hub, directions):
    """Simplices that come again are compared with copies; others are checked, or refused.

    They are counted by the stars of points, unless one has too many neighbours.
    """
    wanted = SIMPLICES[:2]
    if hub:
        wanted = [np.concatenate([wanted[0], [[0, other] for other in range(1, 20)]]), wanted[1]]
    edges, triangles = map(np.asarray, complex_of(part, wanted))
    given = [triangles] if alone else [edges, triangles]
    arrays = [guarded(rows.astype(np.int64)) for rows in given]
    points = guarded(RNG.normal(size=(POINTS, 3)).round(1))  # Some points have equal heights.
    spread = ecc.sample_directions(directions, 3), np.linspace(-2, 2, 40)
    run = part.plan_transform(points, arrays, *spread, alone)
    assert (run(points, arrays) is None) == alone  # The first call of triangles is made in full.

    def assert_equal():
        rows = [np.asarray(part).copy() for part in arrays]
        known = ecc.simplicial_transform(np.asarray(points), rows[0] if alone else rows, *spread)
        np.testing.assert_equal(list(run(points, arrays)), list(known))

    assert_equal()  # The complex is kept now.
    points[:] = np.asarray(points)[::-1].copy()
    memory = emulator.backend.simplicial_memory
    with mock.patch.object(memory.CheckedTransform, "__call__", side_effect=AssertionError):
        assert_equal()
    assert (run._known._kept[-1] is None) == hub
    arrays[-1][0] = np.asarray(arrays[-1][0])[::-1].copy()  # The triangle is the same.
    assert_equal()
    arrays[-1][3] = -1
    assert run(points, arrays) is None
    assert run(points, arrays) is None


# Directions and levels: one lane, several simplices at a time, packed codes, bins in global memory.
TRANSFORMS = {
    "one": (1, np.linspace(-3, 3, 9)),
    "few": (5, np.linspace(-3, 3, 25)),
    "lanes": (32, np.array([-1.0, 0.0, 0.1, 2.0])),
    "packed": (70, np.linspace(-3, 3, 128)),
    "many levels": (2, np.linspace(-3, 3, 70_000)),
}


KINDS = (None, np.int64, np.float64)
"""Types of weights."""
USUAL = ("few", None), ("packed", np.float64)
MORE = [pair for pair in itertools.product(TRANSFORMS, KINDS) if pair not in USUAL]


@pytest.mark.parametrize(
    ("case", "kind"), [*USUAL, *(pytest.param(*pair, marks=SLOW) for pair in MORE)]
)
def test_transforms_equal_those_of_the_cpu(part, case, kind):
    number, heights = TRANSFORMS[case]
    axes = 2 if case == "few" else 3
    points = RNG.normal(size=(POINTS, axes)).round(1)
    directions = ecc.sample_directions(number, axes)
    weights = None if kind is None else RNG.integers(-4, 9, POINTS).astype(kind) / 4
    weights = weights if weights is None else weights.astype(kind)
    own = None if weights is None else guarded(weights)
    found = part.simplicial_transform(guarded(points), complex_of(part), own, directions, heights)
    known = ecc.simplicial_transform(
        points, SIMPLICES[:2], directions, heights, weights=weights, complete=True
    ).values
    assert_array_equal(found, known)
    assert found.dtype == known.dtype


DTYPES = (bool, np.int64, np.uint64, np.float16, np.float64)


@pytest.mark.parametrize("dtype", [np.uint8, *(pytest.param(d, marks=SLOW) for d in DTYPES)])
@pytest.mark.parametrize("superlevel", [False, True])
def test_curves_of_values(part, dtype, superlevel):
    values = RNG.integers(0, 7, (3, POINTS)).astype(dtype)
    levels = round_to_levels(np.array([-1, 0, 0.5, 1, 3, 300]), np.dtype(dtype), superlevel)
    complex_ = complex_of(part)
    found = part.value_curves(guarded(values), levels, complex_)
    host = make_complex([np.array(rows) for rows in complex_], POINTS, False)
    assert_array_equal(found, value_curves(values, levels, host))


def test_sums_of_floats_do_not_depend_on_their_order(part):
    """Weights of very different sizes, which a sum of floats would lose."""
    weights = np.array([2.0**60, 1.0, -(2.0**60)])
    points = np.zeros((3, 1))
    found = part.simplicial_transform(
        guarded(points), [], guarded(weights), np.ones((1, 1)), np.zeros(1)
    )
    assert_array_equal(found, [[1.0]])
