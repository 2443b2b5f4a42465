"""Sizes of components and regions by the CUDA kernels against those of the CPU backend."""

import numpy as np
import pytest
from fake_cupy import ndarray
from filtrations import sides

from ecc_core._backends.cpu.betti import component_curves, flood
from ecc_core._request.boundary import BORDERS, Boundary
from ecc_core._request.filtration import Filtration

SHAPES = [(40,), (9, 35), (5, 7, 20)]
SIDES = range(4)
SOME = {((9, 35), 1), ((5, 7, 20), 2)}
"""Cases for which few kernels are compiled."""
CASES = pytest.mark.parametrize(
    ("shape", "number"),
    [
        pytest.param(shape, number, marks=[] if (shape, number) in SOME else pytest.mark.slow)
        for shape in SHAPES
        for number in SIDES
    ],
)
RNG = np.random.default_rng(8)


def numbered_side(number, shape):
    """Options of a filtration: connectivity, and sublevel or superlevel sets."""
    given = sides(len(shape))
    return given[number % len(given)]


def on_device(array):
    return None if array is None else array.view(ndarray)


def assert_curves_of_the_cpu(emulator, image, filtration, *, mask, ends):
    """Compare the component curves of the kernels with those of the CPU."""
    at = np.array([-1, 0.5, 3, 8, 11])
    there = {"mask": on_device(mask), "ends": tuple(map(on_device, ends))}
    curves = emulator.backend.component_sizes.component_curves
    found = curves(on_device(image), at, filtration, **there)
    known = component_curves(image, at, filtration, mask=mask, ends=ends)
    np.testing.assert_array_equal(found, known)


@pytest.mark.parametrize("between", ["faces", "an inlet", "both"])
@pytest.mark.parametrize("masked", [False, True])
@CASES
def test_component_curves(emulator, shape, number, masked, between):
    """They equal those of the CPU, with masks, NaN, and inlets and outlets of any form."""
    side = numbered_side(number, shape)
    image = RNG.integers(0, 12, (1, *shape)).astype(np.float32)
    image[RNG.random(image.shape) < 0.1] = np.nan
    filtration = Filtration(len(shape), nan="omit", **side)
    shown = RNG.random(image.shape) < 0.7 if masked else None
    some = RNG.random((2, *image.shape)) < 0.1
    ends = {"faces": (None, None), "an inlet": (some[0], None), "both": tuple(some)}[between]
    assert_curves_of_the_cpu(emulator, image, filtration, mask=shown, ends=ends)


@pytest.mark.parametrize(("height", "level"), [(None, None), (0.4, None), (None, 17), (0.7, 23)])
@pytest.mark.parametrize("least", [0, 9])
@CASES
@pytest.mark.parametrize("dtype", ["u1", pytest.param("f4", marks=pytest.mark.slow)])
def test_persistent_regions(emulator, shape, dtype, number, least, height, level):
    image = RNG.integers(0, 40, shape).astype(dtype)
    filtration = Filtration(len(shape), nan="omit", **numbered_side(number, shape))
    shown = RNG.random(shape) < 0.8
    found = emulator.backend.flooding.persistent_regions(
        on_device(image), on_device(shown), least, level, filtration, rel_height=height
    )
    known = flood.persistent_regions(image, shown, least, level, filtration, rel_height=height)
    np.testing.assert_equal(found, known)


PERIODIC = [
    ((9, 35), ("periodic", "closed")),
    ((9,), ("periodic",)),
    ((2, 9), ("periodic", "periodic")),
    ((5, 7, 20), ("periodic", "periodic", "periodic")),
    ((5, 7, 20), ("closed", "periodic", "closed")),
    ((2, 5, 3), ("periodic", "periodic", "closed")),
    ((1, 6, 5), ("periodic", "periodic", "closed")),
    ((4, 1, 1), ("closed", "periodic", "periodic")),
]
EVERY_PERIODIC = [(*case, number) for case in PERIODIC for number in SIDES]
NOT_SLOW = (*PERIODIC[0], 1)
AROUND = pytest.mark.parametrize(
    ("shape", "boundary", "number"),
    [NOT_SLOW]
    + [pytest.param(*case, marks=pytest.mark.slow) for case in EVERY_PERIODIC if case != NOT_SLOW],
)


def periodic_filtration(shape, boundary, number):
    border = Boundary(tuple(BORDERS[name] for name in boundary))
    return Filtration(len(shape), nan="omit", **numbered_side(number, shape), boundary=border)


@pytest.mark.parametrize(("height", "until"), [(None, None), (0.4, None), (0.7, 1 / 2)])
@pytest.mark.parametrize("share", [0, 1 / 4])
@pytest.mark.parametrize("levels", [4, 40])
@AROUND
def test_persistent_regions_of_periodic_images(
    emulator, shape, boundary, number, levels, share, height, until
):
    """Labels spread across sides, with ties there."""
    filtration = periodic_filtration(shape, boundary, number)
    image = RNG.integers(0, levels, shape).astype(np.uint8)
    shown = RNG.random(shape) < 0.8
    level = None if until is None else int(until * levels)
    given = share * levels, level, filtration
    options = {"rel_height": height}
    images = on_device(image), on_device(shown)
    found = emulator.backend.flooding.persistent_regions(*images, *given, **options)
    known = flood.persistent_regions(image, shown, *given, **options)
    np.testing.assert_equal(found, known)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("levels", [2, 12])
@AROUND
def test_component_curves_of_periodic_images(emulator, shape, boundary, number, levels, given):
    """Components wind around axes, once or twice before they close; also between given ends."""
    filtration = periodic_filtration(shape, boundary, number)
    image = RNG.integers(0, levels, (1, *shape)).astype(np.float32)
    shown = RNG.random(image.shape) < 0.9
    some = tuple(RNG.random((2, *image.shape)) < 0.1)
    ends = some if given else (None, None)
    assert_curves_of_the_cpu(emulator, image, filtration, mask=shown, ends=ends)


@pytest.mark.slow
def test_a_tube_that_winds_twice(emulator):
    """A tube that closes after two turns crosses the side twice in the same direction."""
    image = np.full((1, 3, 5, 8), 9, np.float32)
    low = image[0, 0]
    high = image[0, 2]
    low[1, :4] = low[1:4, 3] = low[3, 3:] = 0
    low[3, :2] = low[1, 5:] = 0
    high[3, 1:6] = high[1:4, 5] = 0
    image[0, 1, 3, 1] = image[0, 1, 1, 5] = 0
    boundary = ("closed", "closed", "periodic")
    filtration = periodic_filtration(image.shape[1:], boundary, 0)
    found = emulator.backend.component_sizes.component_curves(
        on_device(image), np.array([0]), filtration
    )
    assert found[0, 2:, 0].tolist() == [1, 0, 1]  # It also reaches the first and the last slice.
