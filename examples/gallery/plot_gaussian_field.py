"""
Gaussian random fields: measured curves and theory
==================================================

The expected curve of smooth Gaussian noise has a closed form in any dimension, the Gaussian
kinematic formula (Adler, Taylor, *Random fields and geometry*, 2007). It is used in cosmology and
brain imaging to estimate how many peaks are due to noise. Here it is compared with the curves of
single realisations.
"""

# %%
# Smoothed white noise, without the border in which the filter lacks neighbours.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.special import eval_hermitenorm, ndtr

import ecc_core as ecc

SIGMA, CUT = 4.0, 16


def field(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Return a field of mean 0 and variance 1."""
    noise = np.random.default_rng(seed).standard_normal([n + 2 * CUT for n in shape])
    smooth = gaussian_filter(noise, SIGMA)[(slice(CUT, -CUT),) * len(shape)]
    return smooth * (2 * np.sqrt(np.pi) * SIGMA) ** (len(shape) / 2)


# %%
# The expected Euler characteristic is a sum over the dimensions j of the faces of the box: their
# total size in units of the correlation length, times a density that depends only on t. The
# correlation length follows from the variance of the slope, which is 1 / (2 sigma²).


def expected(t: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the expected curve."""
    sizes = np.poly1d([1.0])
    for n in shape:
        sizes *= np.poly1d([(n - 1) / (np.sqrt(2) * SIGMA), 1.0])
    curve = ndtr(t)
    for j in range(1, len(shape) + 1):
        density = (2 * np.pi) ** (-(j + 1) / 2) * np.exp(-(t**2) / 2)
        curve = curve + sizes.coeffs[::-1][j] * density * eval_hermitenorm(j - 1, -t)
    return curve


# %%
# In 2-D the curve is dominated first by components (positive), then by holes (negative); in 3-D by
# components, then tunnels, then cavities.
t = np.linspace(-4, 4, 161)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for ax, shape in zip(axes, [(320, 320), (96, 96, 96)], strict=True):
    for seed in range(6):
        curve = ecc.euler_curve(field(shape, seed), t)
        name = "six realisations" if seed == 0 else None
        ax.step(*curve, where="post", color="#56B4E9", linewidth=0.9, label=name)
    ax.plot(t, expected(t, shape), color="#1a1a1a", linewidth=1.6, label="theory")
    ax.axhline(0, color="0.7", linewidth=0.6, zorder=0)
    ax.set(xlabel="threshold", title=" x ".join(map(str, shape)))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("Euler characteristic")
axes[0].legend(frameon=False)
plt.show()
