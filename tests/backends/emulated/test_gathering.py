"""Values and indices of points by the CUDA kernels against those of NumPy."""

import numpy as np
import pytest
from fake_cupy import guarded


@pytest.mark.parametrize("shape", [(12,), (3, 4), (2, 1, 6)])
def test_indices(emulator, shape):
    points = np.array([-1, 0, 11, 5, -1])
    found = emulator.backend.gathering.indices_of(guarded(points), shape)
    expected = np.stack(np.unravel_index(np.maximum(points, 0), shape), axis=1)
    np.testing.assert_array_equal(found, np.where(points[:, None] < 0, -1, expected))
    assert emulator.backend.gathering.indices_of(points[:0], shape).shape == (0, len(shape))


@pytest.mark.parametrize(
    ("dtype", "last"),
    [(np.float64, -np.inf), (np.int16, -(1 << 15)), (bool, True), (np.float32, np.inf)],
)
def test_values(emulator, dtype, last):
    image = np.random.default_rng(0).integers(0, 2, (4, 5)).astype(dtype)
    births = np.array([3, 19, 0])
    deaths = np.array([-1, 7, 18])
    given = image.T, births, deaths
    born, died = emulator.backend.gathering.values_at(*map(guarded, given), dtype(last))
    flat = image.T.ravel()
    assert born.dtype == died.dtype == dtype
    np.testing.assert_array_equal(born, flat[births])
    np.testing.assert_array_equal(died, np.where(deaths < 0, dtype(last), flat[deaths]))
