"""Directions and heights for tests of transforms."""

import numpy as np


def some_directions(ndim: int, seed: int = 4) -> np.ndarray:
    """Return random directions, those with many vertices at one height, and one near an axis."""
    rng = np.random.default_rng(seed)
    special = [np.eye(ndim), -np.eye(ndim), [np.ones(ndim), -np.ones(ndim), np.eye(ndim)[0] + 1e-9]]
    mixed = np.where(rng.random((3, ndim)) < 0.5, 1.0, -1.0)
    return np.concatenate([rng.standard_normal((8, ndim)), *special, mixed])


def some_heights(reach: float) -> list[np.ndarray]:
    """Return heights: even, beyond all points, at vertices or just beside, uneven and infinite."""
    quarters = np.arange(-4, 4.25, 0.25)
    return [
        np.linspace(-reach, reach, 9),
        np.linspace(-reach, reach, 700),
        quarters,
        *(quarters + step for step in (-1e-9, 1e-9)),
        *(np.nextafter(quarters, side) for side in (-np.inf, np.inf)),
        np.sort(np.random.default_rng(0).uniform(-reach, reach, 20)),
        np.geomspace(1e-9, reach, 50),
        np.array([-np.inf, -1.0, -1.0, 0.0, 0.5, 2.0, np.inf]),
        np.array([-5.0, -5e-324, 0.0, 5e-324, 5.0]),
        np.array([-1e308, 0.0, 0.5, 0.5, 1e308]),
        np.array([0.0]),
        np.array([np.inf]),
    ]
