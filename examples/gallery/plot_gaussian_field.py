"""
Gaussian random fields: measured curves and theory
==================================================

The expected curve of stationary Gaussian noise is known: on a grid as a sum of probabilities of
cells, and for smooth noise in closed form, by the Gaussian kinematic formula (Adler, Taylor,
*Random fields and geometry*, 2007). It is used in cosmology and brain imaging to tell how many
peaks are due to noise. Here both are compared with the curves of single realisations.
"""

# %%
# Smoothed white noise, without the border in which the filter lacks neighbours.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

import ecc_core as ecc
from ecc_core.features import expected_gaussian_curve

SIGMA = 1.5
CUT = 6


def field(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Return a field of mean 0 and variance 1."""
    noise = np.random.default_rng(seed).standard_normal([n + 2 * CUT for n in shape])
    smooth = gaussian_filter(noise, SIGMA)[(slice(CUT, -CUT),) * len(shape)]
    return smooth * (2 * np.sqrt(np.pi) * SIGMA) ** (len(shape) / 2)


# %%
# On the grid, the expected curve follows from the covariance of neighbouring points. For the
# kinematic formula, the variance of the slope is enough, which is 1 / (2 sigma²). The band, from
# simulated fields, contains the curve of a realisation with a probability of 95 % at each
# threshold.


def covariance(lags: np.ndarray) -> np.ndarray:
    """Return the covariance of points that are so far apart."""
    return np.exp(-(lags**2).sum(axis=-1) / (4 * SIGMA**2))


# %%
# In 2-D the curve is dominated first by components (positive), then by holes (negative); in 3-D by
# components, then tunnels, then cavities. The field varies over a few points only, so that the
# kinematic formula is off by several percent. The expectation on the grid is not.
t = np.linspace(-4, 4, 81)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for ax, shape in zip(axes, [(256, 256), (48, 48, 48)], strict=True):
    for seed in range(6):
        curve = ecc.euler_curve(field(shape, seed), t)
        name = "six realisations" if seed == 0 else None
        ax.step(*curve, where="post", color="#56B4E9", linewidth=0.9, label=name)
    grid = expected_gaussian_curve(shape, t, covariance=covariance, replicas=12, rng=0)
    grid.plot(ax, color="#1a1a1a", linewidth=1.4, label="expected on the grid")
    smooth = expected_gaussian_curve(shape, t, spectral_moments=1 / (2 * SIGMA**2))
    smooth.plot(ax, color="#D55E00", linestyle="--", linewidth=1.2, label="kinematic formula")
    ax.axhline(0, color="0.7", linewidth=0.6, zorder=0)
    ax.set(xlabel="threshold", title=" x ".join(map(str, shape)))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("Euler characteristic")
axes[0].legend(frameon=False)
plt.show()
