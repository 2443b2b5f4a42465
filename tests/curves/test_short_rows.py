"""Curves of many rows, which are compared with all thresholds, or have a histogram each."""

import numpy as np
import pytest
from oracles import euler as reference

import ecc_core as ecc
from ecc_core.testing import assert_curves_equal

ROWS = 5
SEVERAL_VECTORS = [1, 2, 63, 64, 65, 130, 256, 300]


def rows_of(columns, dtype, seed=0):
    """Return rows of noise, and some that hold a single value, or only the ends of the dtype."""
    rng = np.random.default_rng(seed)
    image = (rng.random((ROWS, columns)) * 255).astype(dtype)
    image[1] = image[1, 0]
    image[2] = np.where(np.arange(columns) % 2, 0, 255)
    return image


def check(image, thresholds, superlevel=False, **options):
    """Compare the curve of each row with the definition."""
    expected = [reference.euler_curve(row, thresholds, superlevel=superlevel) for row in image]
    found = ecc.euler_curve(image, thresholds, axis=1, superlevel=superlevel, **options)
    assert_curves_equal(found, np.array(expected))


@pytest.mark.parametrize("columns", [*range(1, 71), 253, 254, 255, 256])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_rows_of_every_length(dtype, columns):
    thresholds = np.linspace(-1, 256, 16)
    check(rows_of(columns, dtype, columns), thresholds, superlevel=columns % 2 == 0)


@pytest.mark.parametrize("count", SEVERAL_VECTORS)
@pytest.mark.parametrize("columns", [1, 3, 40, 254])
def test_every_number_of_thresholds(columns, count):
    check(rows_of(columns, "float32"), np.linspace(0, 255, count))


@pytest.mark.parametrize("columns", [1, 2, 253, 254, 255])
def test_a_run_in_every_second_point(columns):
    """As many runs as a row can have, of points at both ends of the dtype."""
    image = np.tile(np.where(np.arange(columns) % 2, 255, 0).astype(np.uint8), (3, 1))
    check(image, np.array([0, 254, 255]))
    check(image, np.array([0, 1, 255]), superlevel=True)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "float64"])
@pytest.mark.parametrize("columns", [3, 16, 130])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_types_and_layouts(layout, columns, dtype):
    image = np.asarray(rows_of(columns, dtype), order=layout)
    check(image, np.array([0, 1, 2, 100, 127]))


@pytest.mark.parametrize("columns", [3, 16, 130])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_masked_points_and_nan_end_runs(layout, columns):
    image = np.asarray(rows_of(columns, "float32"), order=layout)
    shown = np.random.default_rng(1).random(image.shape) < 0.7
    thresholds = np.linspace(0, 255, 20)
    hidden = np.where(shown, image, np.inf)
    expected = [reference.euler_curve(row, thresholds) for row in hidden]
    found = ecc.euler_curve(image, thresholds, axis=1, mask=shown)
    assert_curves_equal(found, np.array(expected))
    image[~shown] = np.nan
    found = ecc.euler_curve(image, thresholds, axis=1, nan="omit")
    assert_curves_equal(found, np.array(expected))
