"""Betti curves by the CUDA kernels against those of the CPU backend."""

import numpy as np
import pytest
from fake_cupy import ndarray

import ecc_core as ecc
from ecc_core._request.filtration import Filtration


@pytest.fixture
def betti(emulator, monkeypatch):
    """The function of the backend, with the Euler characteristics of the CPU: others test those."""

    def euler(images, at, filtration, mask=None):
        options = {"connectivity": filtration.connectivity, "superlevel": filtration.superlevel}
        shown = None if mask is None else mask[0]
        values = ecc.euler_curve(np.asarray(images)[0], at, mask=shown, **options).values
        return values[None].view(ndarray)

    monkeypatch.setattr(emulator.backend.betti.launch, "curve", euler)

    def betti_curves(image, at, connectivity, superlevel, mask=None):
        emulator.clear()
        filtration = Filtration(image.ndim, connectivity, superlevel, "omit")
        shown = None if mask is None else mask[None].view(ndarray)
        return emulator.backend.betti.betti_curves(
            image[None].view(ndarray), at, filtration, mask=shown
        )[0]

    return betti_curves


@pytest.mark.parametrize(
    ("connectivity", "superlevel", "shape"),
    [(1, True, (9, 35)), (1, False, (5, 7, 20)), (3, True, (5, 7, 20))],
)
def test_equal_to_those_of_the_cpu(betti, connectivity, superlevel, shape):
    """Each order of keys occurs with each connectivity: complements have the other of both."""
    rng = np.random.default_rng(1)
    for levels in (1, 2, 200):
        image = rng.integers(0, levels, shape).astype(np.uint8)
        at = np.unique(np.linspace(0, levels - 1, 5).astype(int))
        options = {"connectivity": connectivity, "superlevel": superlevel}
        known = ecc.betti_curves(image, at, **options).values
        np.testing.assert_array_equal(betti(image, at, **options), known)


def test_masks_passes_and_more_edges_than_expected(betti, emulator, monkeypatch):
    for name in ("EDGES_A_POINT", "FEW_EDGES"):
        monkeypatch.setattr(emulator.backend.betti, name, 0)
    rng = np.random.default_rng(2)
    image, shown = rng.random((6, 7, 9)), rng.random((6, 7, 9)) < 0.8
    at = np.linspace(0, 1, 9)
    known = ecc.betti_curves(image, at, mask=shown, superlevel=True).values
    np.testing.assert_array_equal(betti(image, at, 3, True, shown), known)
