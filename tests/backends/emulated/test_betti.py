"""Betti curves by the CUDA kernels against those of the CPU backend."""

from types import SimpleNamespace

import numpy as np
import pytest
from fake_cupy import ndarray
from filtrations import sides

import ecc_core as ecc
from ecc_core._backends import backend
from ecc_core._backends.cpu.betti import launch, regions
from ecc_core._request.boundary import BORDERS, Boundary
from ecc_core._request.filtration import Filtration


@pytest.fixture
def betti(emulator):
    """The function of the backend."""

    def betti_curves(image, at, connectivity, superlevel, mask=None):
        emulator.clear()
        filtration = Filtration(image.ndim, connectivity, superlevel, "omit")
        shown = None if mask is None else mask[None].view(ndarray)
        return emulator.backend.betti.betti_curves(
            image[None].view(ndarray), at, filtration, mask=shown
        )[0]

    return betti_curves


@pytest.mark.parametrize("levels", [1, 2, 200])
@pytest.mark.parametrize(
    ("connectivity", "superlevel", "shape"),
    [(1, True, (9, 35)), (1, False, (5, 7, 20)), (3, True, (5, 7, 20))],
)
def test_equal_to_those_of_the_cpu(betti, connectivity, superlevel, shape, levels):
    """Each order of keys occurs with each connectivity: complements have the other of both."""
    rng = np.random.default_rng(1)
    image = rng.integers(0, levels, shape).astype(np.uint8)
    at = np.unique(np.linspace(0, levels - 1, 5).astype(int))
    options = {"connectivity": connectivity, "superlevel": superlevel}
    known = ecc.betti_curves(image, at, **options).values
    np.testing.assert_array_equal(betti(image, at, **options), known)


def some_sides(ndim):
    """Each connectivity and each order, in other pairs for images than for volumes.

    Of lines, which have one connectivity, it is the first order.
    """
    return sides(ndim)[1:3] if ndim == 3 else sides(ndim)[::3]


def other_sides(ndim):
    return [side for side in sides(ndim) if side not in some_sides(ndim)]


SOME_SIDES = pytest.mark.parametrize(
    "sides_of", [some_sides, pytest.param(other_sides, marks=pytest.mark.slow)]
)
"""Kernels are compiled for each of them."""

PERIODIC = [
    ((9,), "periodic"),
    ((7, 35), "periodic"),
    ((4, 5, 20), "periodic"),
    ((4, 5, 20), ("periodic", "closed", "periodic")),
    ((4, 5, 20), ("closed", "closed", "periodic")),
    ((1, 5, 6), "periodic"),
    ((5, 1, 1), "periodic"),
]
ALL_SIDES = [
    pytest.param(*case, side, passes, marks=pytest.mark.slow)
    for case in PERIODIC
    for side in sides(len(case[0]))
    for passes in (False, True)
]


def use_curves_of_the_cpu(emulator, monkeypatch):
    """Euler curves of periodic images are those of many boxes."""

    def curve(image, at, filtration, mask):
        shown = None if mask is None else np.asarray(mask)
        return backend("cpu").curve(np.asarray(image), at, filtration, mask=shown).view(ndarray)

    monkeypatch.setattr(emulator.backend.torus, "launch", SimpleNamespace(curve=curve))


@pytest.mark.parametrize(
    ("shape", "boundary", "side", "passes"),
    [((7, 35), ("closed", "periodic"), {"connectivity": 1}, False), *ALL_SIDES],
)
@pytest.mark.parametrize("levels", [2, 9, 60])
def test_periodic_images(emulator, monkeypatch, shape, boundary, side, passes, levels):
    """Loops around the torus close and open; Euler curves are those of the CPU."""
    use_curves_of_the_cpu(emulator, monkeypatch)
    if passes:
        monkeypatch.setattr(emulator.backend.forests, "FEW_EDGES", 0)
    rng = np.random.default_rng(8)
    at = np.array([0.5, 3, 8, 30])
    border = border_of(boundary, len(shape))
    filtration = Filtration(len(shape), nan="omit", **side, boundary=border)
    image = rng.integers(0, levels, (2, *shape)).astype(np.float32)
    shown = rng.random(image.shape) < 0.95 if levels == 9 else None
    mask = None if shown is None else shown.view(ndarray)
    found = emulator.backend.betti.betti_curves(image.view(ndarray), at, filtration, mask=mask)
    known = launch.betti_curves(image, at, filtration, mask=shown)
    np.testing.assert_array_equal(found, known)


def border_of(boundary, ndim):
    axes = (boundary,) * ndim if isinstance(boundary, str) else boundary
    return Boundary(tuple(BORDERS[name] for name in axes))


PAIRED = [
    *PERIODIC,
    ((2, 5, 2), "periodic"),
    ((5, 1, 2), ("periodic", "periodic", "closed")),
    ((1, 2, 1), "periodic"),
    ((1, 1, 1), "periodic"),
    ((1, 9), ("periodic", "closed")),
    ((9, 2), ("closed", "periodic")),
]
PAIRED_SIDES = [
    pytest.param(*case, side, marks=pytest.mark.slow)
    for case in PAIRED
    for side in sides(len(case[0]))
]


@pytest.mark.parametrize(
    ("shape", "boundary", "side"),
    [((4, 5, 6), ("closed", "periodic", "periodic"), {"connectivity": 3}), *PAIRED_SIDES],
)
@pytest.mark.parametrize("levels", [1, 2, 3, 9, 300])
def test_pairs_of_periodic_images(emulator, shape, boundary, side, levels):
    """The same points in the same order, on a torus, a cylinder, and along axes of one point."""
    rng = np.random.default_rng(9)
    filtration = Filtration(
        len(shape), nan="omit", **side, boundary=border_of(boundary, len(shape))
    )
    dimensions = range(filtration.classes)
    image = rng.integers(0, levels, shape).astype(np.float32)
    shown = rng.random(shape) < 0.9 if levels in (2, 300) else np.ones(shape, bool)
    given = image[None].view(ndarray), dimensions, filtration
    found = emulator.backend.betti.persistence_pairs(*given, mask=shown[None].view(ndarray))
    known = launch.persistence_pairs(image[None], dimensions, filtration, mask=shown[None])
    np.testing.assert_equal(found, known)


@pytest.mark.parametrize("superlevel", [pytest.param(False, marks=pytest.mark.slow), True])
def test_exact_numbers_equal_those_of_the_cpu(betti, emulator, superlevel):
    image = np.random.default_rng(3).integers(0, 9, (9, 20)).astype(np.float32)
    filtration = Filtration(2, 1, superlevel)
    found = emulator.backend.betti.exact_betti_curves(image[None].view(ndarray), filtration)
    known = ecc.betti_curves(image, "exact", connectivity=1, superlevel=superlevel)
    np.testing.assert_array_equal(found[0], known.thresholds)
    np.testing.assert_array_equal(found[1], known.values)


def test_masks_passes_and_more_edges_than_expected(betti, emulator, monkeypatch):
    for name in ("EDGES_A_POINT", "FEW_EDGES"):
        monkeypatch.setattr(emulator.backend.forests, name, 0)
    rng = np.random.default_rng(2)
    image, shown = rng.random((6, 7, 9)), rng.random((6, 7, 9)) < 0.8
    at = np.linspace(0, 1, 9)
    known = ecc.betti_curves(image, at, mask=shown, superlevel=True).values
    np.testing.assert_array_equal(betti(image, at, 3, True, shown), known)


@pytest.mark.sweep
@pytest.mark.parametrize("passes", [False, True])
@pytest.mark.parametrize("shape", [(40,), (9, 35), (5, 7, 20)])
@SOME_SIDES
def test_pairs_equal_those_of_the_cpu(emulator, monkeypatch, shape, passes, sides_of):
    """The same points in the same order, with ties, and with points that never enter."""
    if passes:
        monkeypatch.setattr(emulator.backend.forests, "FEW_EDGES", 0)
    rng = np.random.default_rng(3)
    dimensions = range(len(shape))
    for levels in (1, 3, 300):
        image = rng.integers(0, levels, shape).astype(np.float32)
        image[rng.random(shape) < 0.1] = np.nan
        shown = rng.random(shape) < 0.9
        for side in sides_of(len(shape)):
            filtration = Filtration(len(shape), nan="omit", **side)
            given = image[None].view(ndarray), dimensions, filtration
            found = emulator.backend.betti.persistence_pairs(*given, mask=shown[None].view(ndarray))
            known = launch.persistence_pairs(image[None], dimensions, filtration, mask=shown[None])
            np.testing.assert_equal(found, known)


SMALL = {"HEAP": 3, "MERGED": 2, "ROWS_A_COLUMN": 4}
SMALL |= {"LARGE_ROOM": 12, "LARGER": 2, "OWN_MEMORY": 1 << 16}


@pytest.mark.parametrize("more", [5, 1 << 16])
@SOME_SIDES
def test_tunnels_that_need_more_memory_than_a_thread_has(emulator, monkeypatch, more, sides_of):
    """With little more room for rows, the host reduces the columns that are left."""
    for name, value in (SMALL | {"MOST_MORE": more}).items():
        monkeypatch.setattr(emulator.backend.tunnels, name, value)
    image = np.random.default_rng(5).random((9, 10, 34), np.float32)
    for side in sides_of(3):
        filtration = Filtration(3, **side)
        found = emulator.backend.betti.persistence_pairs(image[None].view(ndarray), [1], filtration)
        known = launch.persistence_pairs(image[None], [1], filtration)
        np.testing.assert_equal(found, known)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((9, 35), "f4"),
        ((5, 7, 20), "u1"),
        pytest.param((9, 35), "u1", marks=pytest.mark.slow),
        pytest.param((5, 7, 20), "f4", marks=pytest.mark.slow),
    ],
)
@SOME_SIDES
def test_what_lasts_equals_that_of_the_cpu(emulator, shape, dtype, sides_of):
    """Curves at thresholds, at every level, and of regions."""
    rng, at = np.random.default_rng(6), np.array([0.5, 3, 8, 30])
    images, shown = rng.integers(0, 20, (2, *shape)).astype(dtype), rng.random((2, *shape)) < 0.9
    labels, backend = rng.integers(0, 4, shape), emulator.backend.betti
    for side in sides_of(len(shape)):
        emulator.clear()
        given, options = images.view(ndarray), {"mask": shown.view(ndarray), "least": 2.5}
        filtration = Filtration(len(shape), **side)
        found = backend.betti_curves(given, at, filtration, **options)
        known = launch.betti_curves(images, at, filtration, mask=shown, least=2.5)
        np.testing.assert_array_equal(found, known)
        found = backend.exact_betti_curves(given[:1], filtration, least=2.5)
        known = launch.exact_betti_curves(images[:1], filtration, least=2.5)
        np.testing.assert_equal(found, known)
        given = given[0], labels.view(ndarray), at, filtration
        found = emulator.backend.region_betti.region_betti_curves(*given, least=2.5)
        known = regions.region_betti_curves(images[0], labels, at, filtration, least=2.5)
        np.testing.assert_equal(found, known)


@pytest.mark.sweep
@pytest.mark.parametrize("sheet", [(4096, 4096), (8, 16)])
@pytest.mark.parametrize("shape", [(40,), (9, 35), (5, 7, 20)])
@SOME_SIDES
def test_regions_equal_those_of_the_cpu(emulator, monkeypatch, shape, sheet, sides_of):
    """Labels touch and enclose each other; many are scattered."""
    for name in ("SHEET", "SHEET_2D"):
        monkeypatch.setattr(emulator.backend.region_betti, name, sheet)
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 5, shape)
    labels[..., 2:9] = 70
    labels[..., 5] = 0
    at = np.array([0.5, 3, 8, 30])
    for dtype in (np.uint8, np.float32):
        image = rng.integers(0, 20, shape).astype(dtype)
        for side in sides_of(len(shape)):
            emulator.clear()
            filtration = Filtration(len(shape), **side)
            given = image.view(ndarray), labels.view(ndarray), at, filtration
            found = emulator.backend.region_betti.region_betti_curves(*given)
            known = regions.region_betti_curves(image, labels, at, filtration)
            np.testing.assert_equal(found, known)


AROUND = [
    ((5, 20), ("closed", "periodic")),
    ((9,), "periodic"),
    ((9, 20), "periodic"),
    ((4, 5, 9), "periodic"),
    ((4, 5, 9), ("periodic", "closed", "periodic")),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "boundary", "side", "least"),
    [(*case, side, least) for case in AROUND for side in sides(len(case[0])) for least in (0, 2.5)],
)
def test_regions_of_periodic_images(emulator, monkeypatch, shape, boundary, side, least):
    """Some touch opposite sides, and some end."""
    use_curves_of_the_cpu(emulator, monkeypatch)
    rng = np.random.default_rng(5)
    filtration = Filtration(len(shape), **side, boundary=border_of(boundary, len(shape)))
    labels = rng.integers(0, 3, shape)
    labels[..., 2:6] = 70
    at = np.array([0.5, 3, 8, 30])
    image = rng.integers(0, 20, shape).astype(np.float32)
    given = image.view(ndarray), labels.view(ndarray), at, filtration
    found = emulator.backend.region_betti.region_betti_curves(*given, least=least)
    known = regions.region_betti_curves(image, labels, at, filtration, least=least)
    np.testing.assert_equal(found, known)
