"""Densities from half-open windows are unbiased: Boolean models, whose densities are known exactly.

Those of Gaussian fields are compared in ``tests/features/test_expected_curves.py``.
"""

import itertools

import numpy as np
import pytest

import ecc_core as ecc

COUNT, SIDE = 500, {2: 12, 3: 6}


def crosses(ndim):
    """Offsets of the points of a grain, a point and its nearest neighbours."""
    return [
        (0,) * ndim,
        *map(tuple, np.eye(ndim, dtype=int)),
        *map(tuple, -np.eye(ndim, dtype=int)),
    ]


def boolean_model(ndim, rate):
    """Windows of a model with so many grains a point: 0 in a grain, otherwise 1."""
    width = SIDE[ndim] + 2
    germs = np.random.default_rng(ndim).poisson(rate, (COUNT,) + (width,) * ndim) > 0
    inside = [slice(1 + step, width - 1 + step) for step in (-1, 0, 1)]
    covered = [germs[(slice(None), *(inside[1 + i] for i in grain))] for grain in crosses(ndim)]
    return (~np.any(covered, axis=0)).astype(np.uint8)


def cell_densities(ndim, rate):
    """Probability that a cell belongs to the union of cubes, by the axes across which it is thin.

    It does unless all cubes that contain it are free, so that no germ lies in the reflected grains
    at any of them.
    """
    found = {}
    for thin in itertools.product((0, 1), repeat=ndim):
        cubes = itertools.product(*(range(1 + t) for t in thin))
        reached = {tuple(np.subtract(c, g)) for c in cubes for g in crosses(ndim)}
        found[thin] = 1 - np.exp(-rate * len(reached))
    return found


@pytest.mark.parametrize("ndim", [2, 3])
def test_boolean_models(ndim):
    rate = 0.06
    cells = cell_densities(ndim, rate)
    volume = cells[(0,) * ndim]
    faces = sum(density for thin, density in cells.items() if sum(thin) == 1)
    expected = [
        volume,
        2 * faces - 2 * ndim * volume,  # faces of one cube, not of two
        sum((-1) ** (ndim - sum(thin)) * density for thin, density in cells.items()),
    ]
    images, axis = boolean_model(ndim, rate), tuple(range(1, ndim + 1))
    for boundary in ("half-open", "closed"):
        curves = ecc.minkowski_curves(images, [0], axis=axis, boundary=boundary).densities()
        found = curves.values[:, [0, 1, -1], 0]
        errors = found.std(axis=0) / np.sqrt(COUNT)
        off = np.abs(found.mean(axis=0) - expected) / errors
        if boundary == "half-open":
            assert (off < 4).all()
        else:
            assert (off[1:] > 6).all()
