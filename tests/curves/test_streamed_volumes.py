"""Volumes of integers that the scan stages itself, a few slices at a time, and their edges."""

import numpy as np
import pytest
from oracles import euler as reference

import ecc_core as ecc
from ecc_core.testing import assert_arrays_equal, assert_curves_equal

SMALL_TYPES = ["bool", "uint8", "int8"]
SIDES = [(1, False), (1, True), (3, False), (3, True)]


def every_value(shape, dtype, seed=0):
    """Return noise with both ends of a dtype at both ends of the volume."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        image = rng.random(shape) < 0.5
        ends = False, True
    else:
        ends = np.iinfo(dtype).min, np.iinfo(dtype).max
        image = rng.integers(*ends, shape, dtype, endpoint=True)
    image.flat[: image.size // 2 : 7] = ends[0]
    image.flat[image.size // 2 :: 7] = ends[1]
    image.flat[0], image.flat[-1] = ends
    return image


def levels_of(dtype):
    """Return thresholds at, beside and between both ends of a dtype."""
    low, high = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return np.unique([low - 1, low, low + 1, (low + high) // 2, high - 1, high, high + 1])


def check(image, connectivity, superlevel, **options):
    """Compare curves and coefficients with the definitions."""
    at = levels_of(image.dtype.name)
    sides = {"connectivity": connectivity, "superlevel": superlevel}
    expected = reference.euler_curve(image, at, **sides)
    assert_curves_equal(ecc.euler_curve(image, at, **sides, **options), expected)
    assert_arrays_equal(
        ecc.euler_coefficients(image, **sides), reference.euler_coefficients(image, **sides)
    )


@pytest.mark.parametrize("columns", range(1, 71))
@pytest.mark.parametrize("connectivity", [1, 3])
def test_rows_of_every_length(connectivity, columns):
    image = every_value((3, 5, columns), "uint8", columns)
    check(image, connectivity, superlevel=columns % 2 == 0)


@pytest.mark.parametrize("slices", range(1, 20))
@pytest.mark.parametrize("connectivity", [1, 3])
def test_more_slices_than_are_kept(connectivity, slices):
    """Coefficients are added before the keys of a later slice take the place of theirs."""
    image = every_value((slices, 17, 50), "uint8", slices)
    check(image, connectivity, superlevel=slices % 2 == 1)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", SMALL_TYPES)
@pytest.mark.parametrize("side", SIDES, ids=str)
def test_ends_of_small_types(side, dtype):
    check(every_value((9, 10, 67), dtype), *side)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["uint16", "int16"])
@pytest.mark.parametrize("side", SIDES, ids=str)
def test_ends_of_types_of_16_bits(side, dtype):
    """Values are keys from 2**17 points on."""
    check(every_value((11, 109, 110), dtype), *side)


@pytest.mark.sweep
@pytest.mark.parametrize("shape", [(3, 300, 70), (9, 9, 8300), (300, 3, 50)], ids=str)
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("connectivity", [1, 3])
def test_several_blocks(connectivity, workers, shape):
    """Blocks begin within rows, columns and slices, whose neighbours are points of the image."""
    check(every_value(shape, "uint8"), connectivity, superlevel=False, workers=workers)
