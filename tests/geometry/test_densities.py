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


def test_connectivity_density_of_a_frame_is_that_of_bonej():
    """The edges of a box: 5 loops in the volume of all points, in BoneJ's own test."""
    frame = np.zeros((192, 128, 96), bool)
    across = [(slice(31, 31 + n), (31, 30 + n)) for n in (128, 64, 32)]
    for axis in range(3):
        along = [across[other][1] for other in range(3)]
        along[axis] = [across[axis][0]]
        for place in itertools.product(*along):
            frame[place] = True
    curves = ecc.minkowski_curves(frame, [True], superlevel=True, spacing=0.2)
    density = (1 - curves.euler[0]) / curves.window
    np.testing.assert_allclose(density, 5 / (96 * 128 * 192 * 0.2**3))


@pytest.mark.parametrize(("share", "bonej"), [(0.1, 10.5), (0.3, -96.5), (0.7, 42.625)])
def test_mean_over_mirror_images_is_bonejs_correction_at_the_border(share, bonej):
    mask = np.random.default_rng(0).random((9, 10, 11)) < share
    mirrored = [
        np.flip(mask, axes) for n in range(4) for axes in itertools.combinations((0, 1, 2), n)
    ]
    found = [ecc.euler_number(one, boundary="half-open") for one in mirrored]
    assert np.mean(found) == bonej
