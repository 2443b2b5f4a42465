"""Every function at every width of codes, against sets that are counted one by one."""

import functools
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threshold_cases import (
    COUNTS,
    DTYPES,
    KINDS,
    Case,
    at_thresholds,
    betti_numbers,
    case_of,
    component_numbers,
    euler_numbers,
    functionals,
)

import ecc_core as ecc

SHAPES = ((6, 7), (3, 4, 5))
MANY = COUNTS.index(4095)
SIDES = [*itertools.product(SHAPES, (1, None), (False, True))]


def of_image(function):
    """Values of the image."""

    def values(case, thresholds, **options):
        return function(case.image, thresholds, mask=case.mask, nan="omit", **options).values

    return values


def of_first_region(function):
    """Values of region 1 of two, which is the part of the image that the case shows."""

    def values(case, thresholds, **options):
        labels = np.where(case.shown, 1, 2)
        found = function(np.nan_to_num(case.image), labels, thresholds, **options)
        return found.values[found.labels == 1][0]

    return values


FUNCTIONS = {
    "euler_curve": (of_image(ecc.euler_curve), euler_numbers),
    "region_curves": (of_first_region(ecc.region_curves), euler_numbers),
    "betti_curves": (of_image(ecc.betti_curves), betti_numbers),
    "component_curves": (of_image(ecc.component_curves), component_numbers),
    "region_betti_curves": (of_first_region(ecc.region_betti_curves), betti_numbers),
    "minkowski_curves": (of_image(ecc.minkowski_curves), functionals),
    "region_minkowski": (of_first_region(ecc.region_minkowski), functionals),
}


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_number_of_thresholds(name, dtype):
    function, count_sets = FUNCTIONS[name]
    first = DTYPES.index(dtype)
    for number, kind in enumerate(KINDS):
        # Over all dtypes, every kind comes with every side and with many thresholds.
        shape, connectivity, superlevel = SIDES[(number + first) % len(SIDES)]
        many = (number - first) % 3 == 0
        case = case_of(kind, dtype, shape)
        options = {"connectivity": connectivity, "superlevel": superlevel}
        known = count_sets(case, connectivity or len(shape), superlevel)
        for count in COUNTS if many else COUNTS[:MANY]:
            found = function(case, case.thresholds(count), **options)
            expected = at_thresholds(known, case, count, superlevel)
            message = f"{kind}, {count} thresholds, {options}"
            assert_allclose(found, expected, rtol=1e-13, atol=1e-12, err_msg=message)


@pytest.mark.parametrize("dtype", DTYPES)
def test_surfaces(dtype):
    """The second image admits all points at its last threshold, and none at its first."""
    for number, kind in enumerate(KINDS):
        shape, connectivity, superlevel = SIDES[number]
        case = case_of(kind, dtype, shape)
        other = np.zeros(shape, np.int16)
        admitted = [1, 0] if superlevel else [0, 1]
        known = euler_numbers(case, connectivity or len(shape), superlevel)
        options = {"connectivity": connectivity, "superlevel": superlevel, "nan": "omit"}
        options["mask"] = case.mask
        for count in COUNTS if number in (4, 7) else COUNTS[:MANY]:
            thresholds = case.thresholds(count)
            steps = np.array([-1, 1])
            expected = np.outer(at_thresholds(known, case, count, superlevel), admitted)
            found = ecc.euler_surface(case.image, other, thresholds, steps, **options)
            assert_array_equal(found.values, expected)
            found = ecc.euler_surface(other, case.image, steps, thresholds, **options)
            assert_array_equal(found.values, expected.T)


@functools.cache
def with_many_points(dtype, superlevel):
    """A large image, most points of which are equal, and the Euler numbers of its sets."""
    small = case_of("both", dtype, (6, 7))
    image = np.pad(small.image, ((0, 394), (0, 343)), constant_values=small.image.max())
    case = Case(image, None, small.range)
    return case, euler_numbers(case, 2, superlevel)


@pytest.mark.parametrize("count", [255, 256, 257, 4097, 65_536])
@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("dtype", ["u2", "i2", "f2", "f4", "f8"])
def test_images_of_many_points(dtype, superlevel, count):
    """Large images of 16 bits are counted by value, by several threads."""
    case, known = with_many_points(dtype, superlevel)
    thresholds = case.thresholds(count)
    expected = at_thresholds(known, case, count, superlevel)
    found = ecc.euler_curve(case.image, thresholds, superlevel=superlevel)
    assert_array_equal(found.values, expected)
    found = ecc.minkowski_curves(case.image, thresholds, superlevel=superlevel)
    assert_array_equal(found.euler, expected)


@pytest.mark.parametrize("function", [ecc.betti_curves, ecc.component_curves, ecc.minkowski_curves])
def test_the_default_number_of_thresholds(function):
    assert function(np.eye(9)).thresholds.shape == (256,)
