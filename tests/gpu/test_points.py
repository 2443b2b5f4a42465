"""Coefficients, exact curves, regions and ranges of device arrays equal those of NumPy arrays."""

import numpy as np
import pytest
from filtrations import with_sides
from gpu_helpers import assert_same, cupy
from threshold_cases import DTYPES

import ecc_core as ecc


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "options"), with_sides([(50,), (13, 17), (6, 7, 9)]))
@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_coefficients_and_curves(draw, dtype, shape, options, few, masked):
    rng = np.random.default_rng(1)
    image = draw(rng, shape, dtype, few)
    labels = rng.integers(0, 5, shape) * 7
    given = np.array([-1.0, 0.5, 1.0, 77.0, 300.0])
    assert_same(ecc.region_curves, (image, labels), 16, **options)
    mask = rng.random(shape) < 0.8 if masked else None
    assert_same(ecc.euler_coefficients, image, mask=mask, **options)
    assert_same(ecc.euler_curve, image, "exact", mask=mask, **options)
    assert_same(ecc.euler_curve, image, 16, mask=mask, **options)
    assert_same(ecc.euler_curve, image, given, mask=mask, **options)


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("levels", [np.linspace(0, 1, 9), np.linspace(0, 1, 7000)])
@pytest.mark.parametrize("shape", [(150, 700), (20, 45, 70)])
def test_many_regions(shape, levels, superlevel):
    """More labels in a block than it counts in shared memory, or too many bins for that."""
    rng = np.random.default_rng(5)
    image = rng.random(shape, np.float32)
    labels = rng.integers(0, 300, [-(-size // 3) for size in shape])
    for axis, size in enumerate(shape):
        labels = labels.repeat(3, axis=axis).take(np.arange(size), axis=axis)
    assert_same(ecc.region_curves, (image, labels), levels, superlevel=superlevel)
    labels[-1, -1] = -3
    with pytest.raises(ValueError, match="`labels` must not be negative, got -3"):
        ecc.region_curves(cupy.asarray(image), cupy.asarray(labels), levels)


@pytest.mark.parametrize("superlevel", [False, True])
def test_exact_curves_of_many_tiles(superlevel):
    rng = np.random.default_rng(6)
    image = rng.normal(size=(700, 300)).astype(np.float32)
    image[:, 100:200] = np.round(image[:, 100:200])  # Runs of equal values span tiles.
    assert_same(ecc.euler_curve, image, "exact", superlevel=superlevel)
    image[30, 40] = np.nan
    with pytest.raises(ValueError, match="nan"):
        ecc.euler_curve(cupy.asarray(image), "exact", superlevel=superlevel)
    assert_same(ecc.euler_curve, image, "exact", superlevel=superlevel, nan="omit")


def test_ranges_of_values_that_are_not_finite():
    image = np.array([[3.0, np.inf, -1.5, 8.0, np.nan]], np.float32)
    assert_same(ecc.euler_curve, image, 3, nan="omit")
    assert_same(ecc.euler_curve, image, 3, mask=image != 8, nan="omit")
    with pytest.raises(ValueError, match="NaN"):
        ecc.euler_curve(cupy.asarray(image), 3)
    with pytest.raises(ValueError, match="`range` must be given"):
        ecc.euler_curve(cupy.asarray(image[:, 1:2]), 3)
