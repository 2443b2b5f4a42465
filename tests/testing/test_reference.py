"""The reference against scikit-image, GUDHI, shapes known by hand and the plainest Python."""

import itertools

import gudhi
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import euler as reference
from skimage.measure import euler_number

from ecc_core.testing import known_shapes, strategies


def brute_force_coefficients(image: np.ndarray, cubes: bool) -> np.ndarray:
    """Walk over the doubled grid, where a cell is a point and its dimension a matter of parity."""
    coefficients = np.zeros(image.shape, dtype=np.int8)
    sides = [2 * n + 1 if cubes else 2 * n - 1 for n in image.shape]
    for cell in itertools.product(*(range(n) for n in sides)):
        dimension = sum(c % 2 for c in cell)
        nearest = []
        for c, n in zip(cell, image.shape, strict=True):
            if not cubes:  # vertices are at even coordinates
                axis = [c // 2] if c % 2 == 0 else [c // 2, c // 2 + 1]
            else:  # cubes are at odd coordinates
                axis = [c // 2] if c % 2 == 1 else [c // 2 - 1, c // 2]
            nearest.append([i for i in axis if 0 <= i < n])
        points = sorted(itertools.product(*nearest))  # in C order
        pick = min if cubes else max
        value = pick(image[p] for p in points)
        owner = next(p for p in points if image[p] == value)
        coefficients[owner] += (-1) ** dimension
    return coefficients


def gudhi_curve(image: np.ndarray, thresholds: np.ndarray, cubes: bool) -> np.ndarray:
    """Count the homology classes alive at each threshold."""
    name = "top_dimensional_cells" if cubes else "vertices"
    cubical = gudhi.CubicalComplex(**{name: image.astype(float)})
    curve = np.zeros(len(thresholds), dtype=np.int64)
    for dimension, (birth, death) in cubical.persistence(min_persistence=0.0):
        alive = (birth <= thresholds) & (thresholds < death)
        curve += (-1) ** dimension * alive
    return curve


def all_connectivities(ndim: int) -> tuple[int, ...]:
    return (1,) if ndim == 1 else (1, ndim)


@pytest.mark.parametrize("shape", known_shapes(), ids=lambda s: s.name)
def test_known_shapes(shape):
    assert reference.euler_number(shape.image, 1) == shape.euler_1
    assert reference.euler_number(shape.image, shape.image.ndim) == shape.euler_d


def test_cells_of_a_pair():
    image = np.array([5, 2], dtype=np.uint8)
    v = reference.cell_values(image, False)
    assert sorted(zip(v.values, v.dimensions, strict=True)) == [(2, 0), (5, 0), (5, 1)]
    t = reference.cell_values(image, True)
    assert sorted(zip(t.values, t.dimensions, strict=True)) == [
        *[(2, 0), (2, 0), (2, 1)],
        *[(5, 0), (5, 1)],
    ]


@pytest.mark.parametrize("shape", [(4,), (3, 5), (2, 3, 4), (1, 1, 1)])
def test_number_of_cells(shape):
    image = np.zeros(shape)
    for cubes, sides in (
        (False, [(n, n - 1) for n in shape]),
        (True, [(n + 1, n) for n in shape]),
    ):
        expected = dict.fromkeys(range(len(shape) + 1), 0)
        for extent in itertools.product((0, 1), repeat=len(shape)):
            expected[sum(extent)] += int(
                np.prod([s[e] for s, e in zip(sides, extent, strict=True)])
            )
        found = reference.cell_values(image, cubes)
        assert expected == {d: int(np.sum(found.dimensions == d)) for d in expected}


@given(st.data(), st.sampled_from((2, 3)))
def test_curve_equals_scikit_image(data, ndim):
    image = data.draw(strategies.images(ndim))
    mask = data.draw(st.none() | strategies.masks(image.shape))
    native = image.dtype.newbyteorder("=").name
    thresholds = data.draw(strategies.thresholds(image, dtypes=[native]))
    kept = True if mask is None else mask
    for connectivity, superlevel in itertools.product((1, ndim), (False, True)):
        compare = np.greater_equal if superlevel else np.less_equal
        expected = [euler_number(compare(image, t) & kept, connectivity) for t in thresholds]
        found = reference.euler_curve(
            image,
            thresholds,
            connectivity=connectivity,
            superlevel=superlevel,
            mask=mask,
        )
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)


@given(strategies.images(dtypes=("uint8", "int16", "float16", "float32"), infinities=False))
def test_curve_equals_gudhi(image):
    thresholds = np.unique(image.astype(float))[:100]
    for connectivity in all_connectivities(image.ndim):
        cubes = connectivity != 1
        np.testing.assert_array_equal(
            reference.euler_curve(image, thresholds, connectivity=connectivity),
            gudhi_curve(image, thresholds, cubes),
        )


@given(
    strategies.images(
        dtypes=("bool", "uint8", "float64"),
        shapes=st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple),
    )
)
def test_cells_and_coefficients_equal_plain_python(image):
    for connectivity in all_connectivities(image.ndim):
        cubes = connectivity != 1
        coefficients = reference.euler_coefficients(image, connectivity=connectivity)
        np.testing.assert_array_equal(coefficients, brute_force_coefficients(image, cubes))
        cells = reference.cell_values(image, cubes)
        levels = np.unique(image)
        counted = [np.sum((-1) ** cells.dimensions[cells.values <= t]) for t in levels]
        np.testing.assert_array_equal(
            reference.euler_curve(image, levels, connectivity=connectivity), counted
        )


@given(st.data())
def test_coefficients_add_up_to_the_curve(data):
    image = data.draw(strategies.images(nan=True))
    mask = data.draw(strategies.masks(image.shape))
    for connectivity, superlevel in itertools.product(
        all_connectivities(image.ndim), (False, True)
    ):
        options = {"connectivity": connectivity, "superlevel": superlevel, "mask": mask}
        levels = np.unique(image[~np.isnan(image)])
        coefficients = reference.euler_coefficients(image, **options)
        compare = np.greater_equal if superlevel else np.less_equal
        summed = [coefficients[compare(image, t)].sum() for t in levels]
        np.testing.assert_array_equal(reference.euler_curve(image, levels, **options), summed)
        assert not coefficients[~mask | np.isnan(image)].any()
        jumps = np.diff([0, *summed]) if not superlevel else np.diff([*summed, 0])
        np.testing.assert_array_equal(
            reference.changing_levels(image, **options), levels[jumps != 0]
        )


@given(st.data(), st.sampled_from((2, 3)))
def test_regions_equal_scikit_image(data, ndim):
    image = data.draw(strategies.images(ndim, dtypes=("uint8", "float32")))
    labels = data.draw(strategies.labels(image.shape))
    thresholds = np.unique(image)[:5]
    for connectivity in (1, ndim):
        found, values = reference.region_curves(
            image, labels, thresholds, connectivity=connectivity
        )
        np.testing.assert_array_equal(found, np.setdiff1d(labels, [0]))
        for label, curve in zip(found, values, strict=True):
            expected = [
                euler_number((image <= t) & (labels == label), connectivity) for t in thresholds
            ]
            np.testing.assert_array_equal(curve, expected)


def test_large_integers_are_not_rounded():
    image = np.array([2**53, 2**53 + 1, 2**63 - 1], dtype=np.int64)
    thresholds = np.array([2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1], dtype=np.uint64)
    np.testing.assert_array_equal(reference.euler_curve(image, thresholds), [1, 1, 1, 1])
    coefficients = reference.euler_coefficients(image, connectivity=1)
    np.testing.assert_array_equal(coefficients, [1, 0, 0])
    image = image[[1, 0, 1, 2, 1]]
    np.testing.assert_array_equal(reference.euler_curve(image, thresholds), [1, 2, 2, 1])
    # 2.0**53 + 2 is the next double; 2.0**63 lies above everything
    np.testing.assert_array_equal(
        reference.euler_curve(image, np.array([2.0**53, 2.0**53 + 2, 2.0**63])),
        [1, 2, 1],
    )


def test_ties_belong_to_the_first_point():
    image = np.zeros((2, 2))
    v = [
        [1 - 2 + 1, 1 - 1],
        [1 - 1, 1],
    ]  # the square and two edges, an edge, an edge, none
    np.testing.assert_array_equal(reference.euler_coefficients(image, connectivity=1), v)
    t = [[1 - 4 + 4, 1 - 3 + 2], [1 - 3 + 2, 1 - 2 + 1]]
    np.testing.assert_array_equal(reference.euler_coefficients(image, connectivity=2), t)
