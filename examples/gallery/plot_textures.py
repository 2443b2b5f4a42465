"""
Comparing textures: mean curves, bands and a test
=================================================

Images of grass and gravel with the same brightness and contrast still differ in their structure,
and so do their curves. From many patches of each, this example computes mean curves, confidence
bands, and a test of whether the textures differ.
"""

# %%
# Standardised patches of photographs from scikit-image.
import matplotlib.pyplot as plt
import numpy as np
from skimage import data
from skimage.util import view_as_blocks

import ecc_core as ecc
from ecc_core.features import mean_band, permutation_test

SIDE = 64
thresholds = np.linspace(-3, 3, 121)
photographs = {"grass": data.grass(), "gravel": data.gravel(), "brick": data.brick()}
patches = {}
curves = {}
for name, photograph in photographs.items():
    cut = view_as_blocks(photograph.astype(np.float32), (SIDE, SIDE)).reshape(-1, SIDE, SIDE)
    cut = cut - cut.mean(axis=(1, 2), keepdims=True)
    patches[name] = cut / cut.std(axis=(1, 2), keepdims=True)
    curves[name] = ecc.euler_curve(patches[name], thresholds, axis=(1, 2))

# %%
# One call computes the curves of all 64 patches. :func:`~ecc_core.features.mean_band` resamples
# them: with a confidence of 95 %, the band contains the whole mean curve of the texture.
colours = {"grass": "#009E73", "gravel": "#0072B2", "brick": "#D55E00"}
figure = plt.figure(figsize=(9, 4), layout="constrained")
grid = figure.add_gridspec(3, 2, width_ratios=[1, 4])
ax = figure.add_subplot(grid[:, 1])
for i, (name, colour) in enumerate(colours.items()):
    picture = figure.add_subplot(grid[i, 0])
    picture.imshow(patches[name][20], cmap="gray")
    picture.set(xticks=[], yticks=[], ylabel=name)
    picture.spines[:].set(color=colour, linewidth=2)
    band = mean_band(curves[name], rng=0)
    ax.fill_between(band.thresholds, band.lower, band.upper, color=colour, alpha=0.3, linewidth=0)
    ax.plot(band.thresholds, band.mean, color=colour, label=name)
ax.axhline(0, color="0.7", linewidth=0.6, zorder=0)
ax.set(xlabel="threshold, in standard deviations", ylabel="Euler characteristic of a patch")
ax.legend(frameon=False)
plt.show()

# %%
# A permutation test of whether two groups of curves come from the same population. Two halves of
# the grass do; grass and gravel do not. (Patches of one photograph are not fully independent: in a
# real study, use one patch, or the mean, of each of many photographs.)
order = np.random.default_rng(1).permutation(64)
half, rest = ((thresholds, curves["grass"].values[part]) for part in np.split(order, 2))
for label, pair in {
    "grass, two halves": (half, rest),
    "grass and gravel": (curves["grass"], curves["gravel"]),
}.items():
    test = permutation_test(*pair, rng=2)
    print(f"{label}: distance of the means {test.statistic:.1f}, p = {test.pvalue:.4f}")
