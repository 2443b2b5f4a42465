"""
Galaxies: counting objects above the noise
==========================================

A survey counts the objects above a threshold. If the threshold is too low, noise is counted as
well. The negative image shows how much: noise is as often dark as bright, but galaxies are only
bright.
"""

# %%
# A part of the Hubble deep field from scikit-image, with its median subtracted and in units of the
# noise.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from skimage import data
from skimage.color import rgb2gray

import ecc_core as ecc

gray = rgb2gray(data.hubble_deep_field())[100:600, 100:700]
image = gaussian_filter(gray, 1)
image -= np.median(image)
noise = -np.quantile(image, 0.16)  # One standard deviation below the median.
image = (image / noise).astype(np.float32)

# %%
# At high thresholds the sets are small and have no holes, so the curve counts objects.
t = np.linspace(1, 12, 221)
bright = ecc.euler_curve(image, t, superlevel=True)
dark = ecc.euler_curve(-image, t, superlevel=True)
last = np.flatnonzero(dark.values)[-1]
quiet = t[last]
objects = bright.values[last]
print(f"no dark objects above {quiet:.1f} noise levels, but {objects} bright ones")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.9), layout="constrained")
left.imshow(np.arcsinh(image), cmap="gray", vmin=0)
left.contour(image >= quiet, [0.5], colors="#E69F00", linewidths=0.6)
left.set_title(f"{objects} objects above {quiet:.1f}")
left.set_axis_off()
for curve, name, colour in ((bright, "bright", "#0072B2"), (dark, "dark: noise", "#D55E00")):
    right.step(curve.thresholds, curve.values, where="pre", color=colour, label=name)
right.axvline(quiet, color="0.5", linestyle="--", linewidth=1)
right.set(xlabel="threshold / noise", ylabel="Euler characteristic")
right.set_yscale("symlog", linthresh=10)
right.set_ylim(0, None)
right.spines[["top", "right"]].set_visible(False)
right.legend(frameon=False)
plt.show()
