"""Gaussian fields: covariances, and simulated maps."""

import numpy as np
from scipy.ndimage import gaussian_filter


def white(lags):
    return (lags == 0).all(axis=-1).astype(float)


def bell(sigma):
    """Return the covariance of smoothed white noise; for width 1 its moment is 1 / 2."""
    return lambda lags: np.exp(-(lags**2).sum(axis=-1) / (4 * sigma**2))


BELL = bell(1)


def noise(shape, sigma, count, seed):
    """Yield maps of smoothed white noise of variance 1, without the border of the filter."""
    cut = int(4 * sigma + 1)
    rng = np.random.default_rng(seed)
    for _ in range(count):
        field = gaussian_filter(rng.standard_normal([n + 2 * cut for n in shape]), sigma)
        inner = field[(slice(cut, -cut),) * len(shape)]
        yield inner * (2 * np.sqrt(np.pi) * sigma) ** (len(shape) / 2)


def ball(shape):
    """Return a ball without one quarter and with a hole."""
    along = (np.linspace(-1, 1, n) for n in shape)
    grid = np.stack(np.meshgrid(*along, indexing="ij"))
    far = np.linalg.norm(grid, axis=0)
    return (far < 0.95) & (far > 0.3) & ~((grid[0] > 0) & (grid[-1] > 0))
