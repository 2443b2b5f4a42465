"""Transforms of masks and weights: counted cells, scikit-image, pyECT, theory, bad arguments."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from oracles import transform as reference
from scipy.ndimage import find_objects
from skimage.measure import euler_number
from transform_cases import some_directions, some_heights

import ecc_core as ecc
from ecc_core.testing import known_shapes

SHAPES = [(7,), (1,), (9, 6), (1, 5), (5, 1), (3, 130), (40, 64), (3, 4, 5), (2, 3, 66), (1, 1, 4)]
KINDS = [0.2, 0.5, 0.8, 1.0, "int64", "float64"]
"""Density of a mask, or the dtype of weights."""


def object_of(kind, shape, seed):
    rng = np.random.default_rng(seed)
    if isinstance(kind, float):
        return rng.random(shape) < kind
    weights = rng.integers(-3, 9, shape)
    return weights if kind == "int64" else weights / 8  # Eighths add up exactly in any order.


def check(image, directions, heights, connectivity, spacing=1.0):
    weighted = image.dtype != bool
    options = {"connectivity": connectivity, "spacing": spacing, "weighted": weighted}
    result = ecc.euler_transform(image, directions, heights, **options)
    weights = image if weighted else image.astype(np.int64)
    steps = np.broadcast_to(np.asarray(spacing, dtype=float), (image.ndim,))
    truth = reference.euler_transform(
        weights, result.directions, result.heights, connectivity, steps
    )
    assert result.values.dtype == weights.dtype
    np.testing.assert_array_equal(result.values, truth)


@pytest.mark.sweep
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_equals_counting_of_cells(shape, kind):
    seed = len(shape) * 100 + shape[-1]
    image = object_of(kind, shape, seed)
    for connectivity in {1, image.ndim}:
        for at in some_heights(np.linalg.norm(shape) / 2):
            check(image, some_directions(image.ndim, seed), at, connectivity)


@given(st.integers(1, 3), st.integers(0, 2**16), st.sampled_from([0.1, *KINDS[:5]]), st.booleans())
def test_equals_counting_of_cells_with_spacing(ndim, seed, kind, full):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, [12, 9, 7][ndim - 1], ndim))
    spacing = rng.choice([0.25, 0.5, 1.0, 1.7, 3.0], ndim)
    heights = some_heights(np.linalg.norm(shape * spacing) / 2)
    image = object_of(kind, shape, seed)
    at = heights[seed % len(heights)]
    check(image, some_directions(ndim, seed), at, ndim if full else 1, spacing)


@pytest.mark.parametrize("direction", [[1, 0], [-1, 0], [3, 4], [-0.3, 0.7]])
@pytest.mark.parametrize("side", [-np.inf, np.inf])
def test_levels_next_to_the_height_of_a_single_point(direction, side):
    """Alone, so that no other point makes the guess of its bin uncertain."""
    for place in np.ndindex(9, 3):
        mask = np.zeros((9, 3), dtype=bool)
        mask[place] = True
        levels = np.arange(-4, 4.5, 0.5)
        unit = ecc.euler_transform(mask, [direction], 0).directions[0]
        at = reference.vertex_heights(mask.shape, unit, np.ones(2), 1)[place]
        for heights in (np.nextafter(levels, side), at + np.nextafter(levels, side)):
            check(mask, [direction], heights, 1)


@pytest.mark.parametrize(
    ("shape", "connectivity"),
    [((300, 900), 1), ((300, 900), 2), ((9, 200, 130), 1), ((9, 200, 130), 3)],
)
def test_more_points_and_words_than_are_handled_at_once(shape, connectivity):
    mask = object_of(0.6, shape, len(shape))
    directions = ecc.sample_directions(9, mask.ndim)[[1, 6]]
    check(mask, directions, [-20.0, 10.5], connectivity)


@pytest.mark.parametrize(("ndim", "connectivity"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 3)])
def test_every_pattern_of_a_window(ndim, connectivity):
    """Coefficients come from planes of bits for masks, and from a table for regions."""
    window = (2,) * ndim
    signs = np.array(list(itertools.product((1, -1), repeat=ndim)))
    directions = signs * [1.0, 0.01, 0.0001][:ndim]
    heights = reference.vertex_heights(window, directions[0], np.ones(ndim), connectivity)
    heights = np.unique(heights) / np.linalg.norm(directions[0])
    options = {"connectivity": connectivity}
    for pattern in range(1, 2 ** (2**ndim)):
        mask = (pattern >> np.arange(2**ndim) & 1).astype(bool).reshape(window)
        check(mask, directions, heights, connectivity)
        whole = np.where(mask, 1, 2) if not mask.all() else mask.astype(int)
        found = ecc.region_transforms(whole, directions, heights, **options)
        boxes = find_objects(whole)
        for label, values in zip(found.labels, found.values, strict=True):
            region = (whole == label)[boxes[label - 1]]
            alone = ecc.euler_transform(region, directions, heights, **options)
            np.testing.assert_array_equal(values, alone.values)


@pytest.mark.parametrize("connectivity", [1, 2])
def test_sublevel_sets_of_the_height_in_scikit_image(connectivity):
    """For V the cells below a height are those of the vertices below it."""
    mask = object_of(0.7, (17, 23), 5)
    directions, heights, values = ecc.euler_transform(mask, 8, 21, connectivity=connectivity)
    assert_array_equal(values[:, -1], [euler_number(mask, connectivity)] * 8)
    if connectivity == 1:
        places = [
            reference.vertex_heights(mask.shape, direction, np.ones(2), 1)
            for direction in directions
        ]
        below = [[mask & (at <= t) for t in heights] for at in places]
        expected = [[euler_number(one, 1) for one in sets] for sets in below]
        assert_array_equal(values, expected)


WITH_POINTS = [shape for shape in known_shapes() if shape.image.size]


@pytest.mark.parametrize("cubes", [False, True])
@pytest.mark.parametrize("shape", WITH_POINTS, ids=lambda shape: shape.name)
def test_last_height_is_the_euler_number(shape, cubes):
    connectivity = shape.image.ndim if cubes else 1
    expected = shape.euler_d if cubes else shape.euler_1
    result = ecc.euler_transform(shape.image, 16, 3, connectivity=connectivity)
    np.testing.assert_array_equal(result.values[:, -1], expected)
    np.testing.assert_array_equal(result.values[:, 0], 0)


def test_agrees_with_pyect():
    """Values of pyECT 1.0.1: ``WECT(directions, 9)`` of ``weighted_cubical(weights)``.

    Its heights run from minus to plus the largest norm of a vertex, here 2.5; its coordinates are
    (column - centre, centre - row).
    """
    weights = np.array([[0, 3, 1, 4, 2], [5, 2, 6, 0, 1], [3, 0, 5, 8, 9], [7, 9, 3, 2, 3]])
    pyect_directions = np.array([[0.6, 0.8], [-0.28, 0.96], [-0.8, -0.6], [0.352, -0.936]])
    expected = [
        [0, 7, 3, -3, -7, -13, -15, -23, -27],
        [0, 3, 2, 0, -8, -12, -21, -27, -27],
        [2, 1, 1, -8, -9, -19, -16, -16, -27],
        [0, 0, 1, -2, -4, -6, -15, -27, -27],
    ]
    directions = np.stack([-pyect_directions[:, 1], pyect_directions[:, 0]], axis=1)
    result = ecc.euler_transform(
        weights, directions, np.linspace(-2.5, 2.5, 9), connectivity=1, weighted=True
    )
    np.testing.assert_array_equal(result.values, expected)


def test_sums_of_floats_are_close():
    weights = np.random.default_rng(2).standard_normal((40, 50))
    result = ecc.euler_transform(weights, 16, 40, weighted=True)
    truth = reference.euler_transform(weights, *result[:2], 2, np.ones(2))
    np.testing.assert_allclose(result.values, truth, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", ["mask", "weights", "regions"])
@pytest.mark.parametrize("workers", [2, 3, 8])
def test_threads_change_nothing(workers, kind):
    mask = object_of(0.5, (60, 70, 66), 0)
    weights = np.random.default_rng(3).integers(0, 99, (70, 80))
    labels = np.arange(900).reshape(30, 30).repeat(3, axis=0).repeat(3, axis=1)
    compute = {
        "mask": lambda n: ecc.euler_transform(mask, 11, 64, workers=n),
        "weights": lambda n: ecc.euler_transform(weights, 11, 64, weighted=True, workers=n),
        "regions": lambda n: ecc.region_transforms(labels, 11, 20, workers=n),
    }[kind]
    assert compute(workers) == compute(1)


MASK = np.random.default_rng(0).random((12, 15)) < 0.5


@pytest.mark.parametrize(
    "image",
    [
        MASK.astype(np.uint8),
        MASK.astype(">f4"),
        MASK.tolist(),
        np.ma.array(np.ones_like(MASK), mask=~MASK),
        np.ma.array(np.where(MASK, 1, 7), mask=~MASK),
        np.where(MASK, 300, 0).astype(np.uint16),
        np.where(MASK, 300, 0).astype(">i8"),
        np.ma.array(np.full(MASK.shape, 300), mask=~MASK),
        np.ma.array(np.where(MASK, 300, np.nan), mask=~MASK),
        np.asfortranarray(np.where(MASK, 300.0, 0.0).astype(np.float16)),
    ],
)
def test_masks_and_weights_of_all_dtypes(image):
    weight = int(np.max(image))
    expected = ecc.euler_transform(MASK, 6, 20).values
    assert_array_equal(ecc.euler_transform(image, 6, 20).values, expected)
    weighted = ecc.euler_transform(image, 6, 20, weighted=True)
    assert_array_equal(weighted.values, weight * expected)


def test_large_integer_weights_are_exact():
    weights = np.array([[2**53 + 1, 0, 2**62 - 1]])
    values = ecc.euler_transform(weights, [[0, 1]], [-1, 0, 1], connectivity=1, weighted=True)
    assert values.values.tolist() == [[2**53 + 1, 2**53 + 1, 2**53 + 2**62]]


@pytest.mark.parametrize("shape", [(3, 4), (7, 5), (2, 3, 6), (101, 203)])
def test_default_range_holds_the_furthest_corner(shape):
    corner = np.array(shape, dtype=float)
    result = ecc.euler_transform(np.ones(shape, bool), [corner, -corner], 5)
    assert_array_equal(result.values[:, -1], 1)
    assert_array_equal(result.values[:, 0], 0)
    assert result.heights[-1] == pytest.approx(np.linalg.norm(corner) / 2, rel=1e-14)


def test_directions_are_normalised_and_unit_vectors_kept():
    given = np.array([[3, 4], [1e-200, 0], [0, -1.7e308], [5e-324, 5e-324]])
    result = ecc.euler_transform(MASK, given, 3)
    np.testing.assert_allclose(np.linalg.norm(result.directions, axis=1), 1, rtol=1e-15)
    np.testing.assert_allclose(result.directions[3], np.sqrt([0.5, 0.5]))
    again = ecc.euler_transform(MASK, result.directions, 3)
    assert_array_equal(again.directions, result.directions)
    nearly = ecc.euler_transform(MASK, [[1 + 1e-9, 0]], 3)
    assert nearly.directions.tolist() == [[1, 0]]


def test_empty_results():
    assert ecc.euler_transform(MASK, 0, 5).values.shape == (0, 5)
    assert ecc.euler_transform(MASK, np.empty((0, 2)), 5).values.shape == (0, 5)
    assert ecc.euler_transform(MASK, 4, 0).values.shape == (4, 0)
    assert ecc.euler_transform(MASK, 4, []).values.shape == (4, 0)
    assert_array_equal(ecc.euler_transform(np.zeros((4, 5), bool)).values, 0)
    result = ecc.euler_transform(np.zeros((0, 4), bool), 4, 3, range=(-1, 1))
    assert result.heights.tolist() == [-1, 0, 1]


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0, 2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_shapes_without_points(shape, weighted):
    result = ecc.euler_transform(np.zeros(shape, bool), 4, [0.0, 1.0], weighted=weighted)
    assert result.values.tolist() == [[0, 0]] * 4


def test_many_heights():
    result = ecc.euler_transform(MASK, [[0.6, 0.8]], 2**22)
    few = ecc.euler_transform(MASK, [[0.6, 0.8]], result.heights[:: 2**18])
    assert_array_equal(few.values, result.values[:, :: 2**18])


BINARY = "be boolean, or 0 and one other value, unless `weighted` is True, got"
REAL = "have a boolean, integer or real floating dtype of at most 64 bits, got"
FINITE = "be finite where it holds weights, got"
BELOW = "hold weights below 2**62, got"
SHAPE = "have shape (k, 2) for shapes of 2 axes, got"
WEIGHTS = {"weighted": True}
LARGEST = np.array([[2**64 - 1]], np.uint64)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"image": [[0, 2, 1]]}, ValueError, f"{BINARY} more values"),
        ({"image": [[0, np.nan]]}, ValueError, f"{BINARY} more values"),
        ({"image": [[1j]]}, TypeError, f"{REAL} complex128"),
        ({"image": True}, ValueError, "have 1 to 3 axes, got shape ()"),
        ({"image": MASK[None, None]}, ValueError, "have 1 to 3 axes, got shape (1, 1, 12, 15)"),
        ({"image": [[np.nan]], **WEIGHTS}, ValueError, f"{FINITE} NaN"),
        ({"image": [[-np.inf]], **WEIGHTS}, ValueError, f"{FINITE} infinity"),
        ({"image": [[-(2**62)]], **WEIGHTS}, ValueError, f"{BELOW} {2**62}"),
        ({"image": LARGEST, **WEIGHTS}, ValueError, f"{BELOW} {2**64 - 1}"),
        ({"directions": 1.5}, TypeError, "be an int or an array, got 1.5"),
        ({"directions": -1}, ValueError, "not be negative, got -1"),
        ({"directions": [1, 0]}, ValueError, f"{SHAPE} (2,)"),
        ({"directions": [[1, 0, 0]]}, ValueError, f"{SHAPE} (1, 3)"),
        ({"directions": [[1.0, 0], [0, 0]]}, ValueError, "be finite and not zero, got [0. 0.] in"),
        ({"directions": [[np.inf, 0.0]]}, ValueError, "be finite and not zero, got [inf  0.] in"),
        ({"directions": [["a", "b"]]}, TypeError, "be real numbers, got <U1"),
        ({"heights": -3}, ValueError, "not be negative, got -3"),
        ({"heights": [0, np.nan]}, ValueError, "not contain NaN, got NaN"),
        ({"heights": [1, 0]}, ValueError, "be increasing, got 1 before 0"),
        ({"heights": "exact"}, TypeError, "be an int or an array, got 'exact'"),
        ({"range": (0, 1), "heights": [0]}, ValueError, "be None where `heights` is an array, got"),
        ({"range": (1, 0)}, ValueError, "be finite with low <= high, got (1, 0)"),
        ({"range": None, "image": MASK[:0]}, ValueError, "be given for an image without points"),
    ],
)
def test_messages(arguments, error, message):
    """The first of the arguments is the one that is named."""
    with pytest.raises(error) as caught:
        ecc.euler_transform(**({"image": MASK} | arguments))
    assert str(caught.value).startswith(f"`{next(iter(arguments))}` must {message}")


def test_directions_of_a_result_may_be_written_to():
    image = np.ones((3, 4), bool)
    given = np.array([[3.0, 4.0], [0.0, 2.0]])
    expected = ecc.euler_transform(image, given, 4).directions.copy()
    result = ecc.euler_transform(image, given, 4)
    result.directions[:] = 0
    assert_array_equal(ecc.euler_transform(image, given, 4).directions, expected)
