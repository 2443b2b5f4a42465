"""Directional filtrations: the complex is that of ``image + a * <u, x>``, not of the image."""

import itertools

import numpy as np
import pytest
from oracles import euler as reference
from stored_arrays import reversed_view

import ecc_core as ecc
from ecc_core.testing import assert_curves_equal

SHAPES = [(131,), (19, 67), (5, 18, 67)]
# Of these the unit vectors and all sums with them are exact, so ties and thresholds are too.
EXACT = {1: [(1,), (-2.5,)], 2: [(1, 0), (0, -3)], 3: [(0, 1, 0), (0, 0, -2)]}
GENERAL = {1: [(0.3,)], 2: [(1, 2), (-0.3, 1e-3)], 3: [(1, 2, -3), (-0.1, 0.7, 0.2)]}


def noise(shape, dtype="uint8", top=20, seed=0):
    return (np.random.default_rng(seed).random(shape) * top).astype(dtype)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float16", "float32", ">f8"])
@pytest.mark.parametrize(
    ("shape", "direction"),
    [(shape, direction) for shape in SHAPES for direction in EXACT[len(shape)]],
)
@pytest.mark.parametrize(("cubes", "superlevel"), list(itertools.product((False, True), repeat=2)))
def test_exact_directions(backend, shape, dtype, direction, cubes, superlevel):
    image = noise(shape, dtype)
    connectivity = len(shape) if cubes else 1
    tilted = reference.directional(image, direction, 0.25, 2)
    options = {"connectivity": connectivity, "superlevel": superlevel}
    tilt = {"direction": direction, "direction_scale": 0.25, "spacing": 2}
    levels = np.unique(tilted)
    expected = reference.euler_curve(tilted, levels, **options)
    found = ecc.euler_curve(backend.asarray(image), levels, **options, **tilt)
    assert_curves_equal(found, expected, thresholds=levels, like=backend.asarray(image))
    levels = reference.changing_levels(tilted, **options)
    expected = reference.euler_curve(tilted, levels, **options)
    found = ecc.euler_curve(backend.asarray(image), "exact", **options, **tilt)
    assert_curves_equal(found, expected, thresholds=levels)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize(
    ("shape", "direction"),
    [(shape, direction) for shape in SHAPES for direction in GENERAL[len(shape)]],
)
@pytest.mark.parametrize("scale", [1.0, -0.37, 0.0, 40.0])
@pytest.mark.parametrize("cubes", [False, True])
def test_general_directions(backend, shape, dtype, direction, scale, cubes):
    image = noise(shape, dtype)
    spacing = np.array([0.5, 1.0, 3.0][: len(shape)])
    tilted = reference.directional(image, direction, scale, spacing)
    thresholds = np.linspace(tilted.min() - 0.123, tilted.max() + 0.1, 100)
    tilt = {"direction": direction, "direction_scale": scale, "spacing": spacing}
    options = {"connectivity": len(shape) if cubes else 1}
    found = ecc.euler_curve(backend.asarray(image), thresholds, **options, **tilt)
    expected = reference.euler_curve(tilted, thresholds, **options)
    assert_curves_equal(found, expected, thresholds=thresholds)


@pytest.mark.parametrize("cubes", [False, True])
@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, reversed_view])
@pytest.mark.parametrize("shape", [(1000, 1100), (70, 80, 131), (2, 20_011)])
def test_larger_than_a_block(shape, layout, cubes):
    image = layout(noise(shape, "float32"))
    direction = tuple(range(1, len(shape) + 1))
    tilted = reference.directional(image, direction)
    thresholds = np.linspace(-300.1, 500, 99)
    options = {"connectivity": len(shape) if cubes else 1}
    expected = reference.euler_curve(tilted, thresholds, **options)
    found = ecc.euler_curve(image, thresholds, direction=direction, workers=1, **options)
    assert_curves_equal(found, expected)
    found = ecc.euler_curve(image, thresholds, direction=direction, workers=3, **options)
    assert_curves_equal(found, expected)


def test_batch_axes_masks_and_nan(backend):
    """Components follow the order of the axes."""
    image = noise((19, 3, 67), "float32")
    image[2:4, 1, 5:30] = np.nan
    mask = noise((19, 67), seed=1) > 3
    thresholds = np.linspace(-30.3, 60, 99)
    options = {"axis": (2, 0), "direction": (2, 1), "mask": backend.asarray(mask.T)}
    found = ecc.euler_curve(backend.asarray(image), thresholds, nan="omit", **options)
    expected = [
        reference.euler_curve(reference.directional(image[:, i], (1, 2)), thresholds, mask=mask)
        for i in range(3)
    ]
    assert_curves_equal(found, expected)


@pytest.mark.parametrize("length", [7, 2.0**-1040, 1e300])
def test_length_of_the_direction_does_not_matter(backend, length):
    image = backend.asarray(noise((19, 67)))
    known = ecc.euler_curve(image, [-9.5, 3, 30], direction=(0, 1))
    assert ecc.euler_curve(image, [-9.5, 3, 30], direction=(0, length)) == known
