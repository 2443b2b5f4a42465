"""
A statistical map: which points are significant?
================================================

A map of z-scores has thousands of points, and noise exceeds the usual 1.64 in many of them. The
threshold should be exceeded *anywhere* in a map of noise in 5 % of the maps only. Above a high
level the Euler characteristic is the number of clusters, so that its expectation is nearly that
probability (Worsley, 1995).
"""

# %%
# Twelve subjects with smooth noise, and an effect at two places within a round mask.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.stats import norm

from ecc_core.features import gaussian_threshold

SIDE = 128
SUBJECTS = 12
rng = np.random.default_rng(4)
y, x = np.indices((SIDE, SIDE))
mask = np.hypot(y - 63.5, x - 63.5) < 58
effect = sum(np.exp(-((y - a) ** 2 + (x - b) ** 2) / 50) for a, b in [(45, 50), (85, 80)])
noise = gaussian_filter(rng.standard_normal((SUBJECTS, SIDE, SIDE)), (0, 3, 3))
noise /= noise.std()
subjects = noise + 1.6 * effect

# %%
# The noise has variance 1 here, so that the sum divided by the root of the number of subjects is a
# map of z-scores. What is left after the mean is taken away tells how smooth the noise is.
z = subjects.sum(axis=0) / np.sqrt(SUBJECTS)
residuals = subjects - subjects.mean(axis=0)
level, error = gaussian_threshold(z.shape, residuals=residuals, mask=mask, rng=0)
bonferroni = norm.isf(0.05 / mask.sum())
print(f"threshold {level:.2f} ± {error:.2f}; with the correction of Bonferroni {bonferroni:.2f}")

# %%
# Points above the threshold are significant at a family-wise error rate of 5 %.
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
for ax, (title, least) in zip(
    axes,
    [
        ("z > 1.64", 1.64),
        (f"z > {level:.2f}", level),
        (f"Bonferroni: {bonferroni:.2f}", bonferroni),
    ],
    strict=True,
):
    ax.imshow(np.where(mask, z, np.nan), cmap="gray")
    ax.contour((z > least) & mask, [0.5], colors="#D55E00", linewidths=1.2)
    ax.set(title=title, xticks=[], yticks=[])
plt.show()
