"""Thresholds that are not even, or only nearly: every way of finding ranks against the oracle."""

import itertools

import numpy as np
import pytest
from filtrations import sides
from oracles import euler as reference

import ecc_core as ecc
from ecc_core.testing import assert_curves_equal

SHAPES = [(1,), (131,), (9, 65), (17, 130), (3, 9, 67)]  # around words of 64 and vectors of 16


def ulps(value, count, dtype):
    """`count` neighbouring values of a dtype."""
    integers = f"i{np.dtype(dtype).itemsize}"
    first = np.array(value, dtype).view(integers)
    return (first + np.arange(count, dtype=integers)).view(dtype)


def uneven(dtype):
    rng = np.random.default_rng(1)
    dtype = np.dtype(dtype)
    yield "random", np.sort(rng.random(300) * 200 - 100)
    yield "two scales", np.r_[50 + np.arange(20) * 1e-5, 99.0]
    yield "geometric", np.geomspace(1e-6, 100, 256)
    yield "signed zero", np.array([-0.0])
    yield "subnormal", np.array([-5e-324, 0, 5e-324, 1e-320])
    yield "infinite", np.array([-np.inf, 0, np.inf])
    if dtype.kind == "f":
        yield "one ulp apart", ulps(3.7, 10, dtype)
        yield "smallest", ulps(0, 4, dtype)
    else:
        info = np.iinfo(dtype)
        yield "ends", np.array([info.min, info.min + 1, 5, info.max - 1, info.max], dtype)
        yield "last", np.array([info.max], dtype)


def images(shape, dtype, thresholds):
    rng = np.random.default_rng(2)
    dtype = np.dtype(dtype)
    image = (rng.random(shape) * 200 - (100 if dtype.kind != "u" else 0)).astype(dtype)
    image[rng.random(shape) < 0.3] = 0
    yield image
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            near = thresholds.astype(dtype)
        special = np.array([np.inf, -np.inf, -0.0, 0.0], dtype)
        near = np.concatenate([near, np.nextafter(near, dtype.type(9)), special])
    else:
        near = np.array([np.iinfo(dtype).min, 0, 4, 5, 6, np.iinfo(dtype).max], dtype)
    yield rng.choice(near, shape)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32", "int64", "uint64"])
def test_uneven_thresholds(dtype):
    for (_, thresholds), shape in itertools.product(uneven(dtype), SHAPES):
        for image in images(shape, dtype, thresholds):
            for options in sides(len(shape)):
                found = ecc.euler_curve(image, thresholds, **options)
                assert_curves_equal(found, reference.euler_curve(image, thresholds, **options))
            holes = image.copy()
            never = np.random.default_rng(3).random(shape) < 0.2
            shown = {"mask": ~never}
            if holes.dtype.kind == "f":
                holes[never] = np.nan
                found = ecc.euler_curve(holes, thresholds, nan="omit", **options)
            else:
                found = ecc.euler_curve(holes, thresholds, **options, **shown)
            assert_curves_equal(found, reference.euler_curve(image, thresholds, **options, **shown))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("even", [True, False])
def test_as_many_levels_as_a_byte_has_values(dtype, even):
    """There are 257 ranks: keys of a byte leave out the first or the last, or are widened."""
    rng = np.random.default_rng(6)
    at = np.linspace(0, 1, 256) if even else np.sort(rng.random(254))
    at = at if even else np.r_[0, at, 1]
    shape = (6, 130, 60)  # of several blocks
    for low, high in itertools.product((-0.1, 0.1), (0.9, 1.1)):
        image = (low + rng.random(shape) * (high - low)).astype(dtype)
        inside = np.clip(image, 0.01, 0.99)
        lone = inside.copy()
        lone[3, 7, 9], lone[3, 120, 50] = -1, 2  # in two blocks
        holes = lone.copy()
        holes[rng.random(shape) < 0.1] = np.nan
        mask = rng.random(shape) < 0.9
        for superlevel, connectivity in ((False, 3), (True, 1)):
            options = {"superlevel": superlevel, "connectivity": connectivity}
            for given, shown in ((image, None), (inside, mask), (lone, mask)):
                found = ecc.euler_curve(given, at, mask=shown, **options)
                expected = reference.euler_curve(given, at, mask=shown, **options)
                assert_curves_equal(found, expected)
            found = ecc.euler_curve(holes, at, nan="omit", **options)
            expected = reference.euler_curve(lone, at, mask=~np.isnan(holes), **options)
            assert_curves_equal(found, expected)
