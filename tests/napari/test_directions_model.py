"""Angles, vectors and the state of the direction explorer, without a window."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

import ecc_core as ecc
from napari_ecc._model.directions import (
    DirectionModel,
    angles,
    circle,
    direction_from_ray,
    unit_vector,
)


def test_right_angles_are_exact():
    for azimuth, vector in ((0, (1, 0)), (90, (0, 1)), (180, (-1, 0)), (270, (0, -1))):
        assert_array_equal(unit_vector(azimuth), vector)
        assert_array_equal(unit_vector(azimuth, 0, 3), (0, *vector))
        assert_array_equal(unit_vector(azimuth, 90, 3), (1, 0, 0))
        assert angles(vector) == (azimuth, 0)


def test_angles_of_vectors():
    rng = np.random.default_rng(0)
    for _ in range(50):
        azimuth, elevation = rng.uniform(0, 360), rng.uniform(-90, 90)
        assert_allclose(angles(unit_vector(azimuth)), (azimuth, 0), atol=1e-9)
        vector = unit_vector(azimuth, elevation, 3)
        assert_allclose(np.linalg.norm(vector), 1)
        assert_allclose(angles(7 * vector), (azimuth, elevation), atol=1e-9)
    assert_array_equal(circle(64), ecc.sample_directions(64, 2))
    expected = [unit_vector(30 * k, 30, 3) for k in range(12)]
    assert_allclose(circle(12, 30, 3), expected, atol=1e-12)


def test_mouse_in_space():
    """The near side of the sphere under the mouse, or the sphere's edge beside it."""
    away = (1, 0, 0)
    assert_allclose(direction_from_ray((-110, 3, 0), away, 5), (-0.8, 0.6, 0))
    assert_allclose(direction_from_ray((-110, 0, 0), away, 5), (-1, 0, 0))
    assert_allclose(direction_from_ray((-110, 0, 40), away, 5), (0, 0, 1))


def test_turning():
    model, seen = DirectionModel(ndim=3), []
    model.turned.connect(lambda: seen.append((model.azimuth, model.elevation)))
    model.turn(-90, 120)
    model.turn(270, 90)  # no change
    model.turn(725.5)
    assert seen == [(270, 90), (5.5, 90)]
    model.point((-2, 0, 0))
    assert seen[-1] == (5.5, -90)  # a pole has no azimuth of its own
    model.point((0, 0, 3))
    assert seen[-1] == (90, 0)
    assert_array_equal(model.direction, (0, 0, 1))


def test_a_plane_has_no_elevation():
    model = DirectionModel(elevation=30)
    model.point((0, -1))
    assert (model.azimuth, model.elevation) == (270, 30)
    assert_array_equal(model.direction, (0, -1))
    assert model.directions.shape == (64, 2)
