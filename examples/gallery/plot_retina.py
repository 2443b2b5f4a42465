"""
A retina: masking the background
================================

The eye fills a disk, and the black area around it is not tissue. Its rim and the noise around it
would contribute to the curve. A mask excludes such points, whatever their value.
"""

# %%
# The vessels are dark and narrow, and best visible in the green channel. The difference between a
# morphological closing and the image shows dark structures that are narrower than the closing.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import binary_erosion, binary_fill_holes, gaussian_filter, grey_closing
from skimage import data

import ecc_core as ecc

green = data.retina()[::2, ::2, 1].astype(np.float32)
eye = binary_erosion(binary_fill_holes(green > 20), iterations=20)
smooth = gaussian_filter(green, 2)
vessels = grey_closing(smooth, (15, 15)) - smooth

# %%
# The curve of all points, and that of the points within the eye.
t = np.linspace(0.2, 12, 237)
everything = ecc.euler_curve(vessels, t, superlevel=True)
within = ecc.euler_curve(vessels, t, superlevel=True, mask=eye)

# %%
# At high thresholds the set consists of pieces of vessels; at low thresholds, vessels and noise
# form a network with holes. The curve is 0 where there are as many components as holes.
below = np.flatnonzero(within.values < 0)[-1]
balance = t[below + 1]
print(f"as many pieces as holes at {balance:.2f}")
rim = everything.values - within.values
print(f"outside of the eye: {rim[t >= 2].min()} to {rim[t >= 2].max()} pieces above 2")

# %%
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.7), layout="constrained")
left.imshow(green, cmap="gray")
left.contour(eye, [0.5], colors="#E69F00", linewidths=1)
left.set_title("green channel, and the mask")
middle.imshow((vessels >= 4) & eye, cmap="gray")
middle.set_title("above 4, within the eye")
for axes in (left, middle):
    axes.set_axis_off()
for curve, name, colour in ((everything, "all points", "#D55E00"), (within, "the eye", "#0072B2")):
    right.step(curve.thresholds, curve.values, where="pre", color=colour, label=name)
right.axhline(0, color="0.5", linewidth=0.8)
right.axvline(4, color="0.5", linestyle="--", linewidth=1)
right.set(xlabel="threshold", ylabel="Euler characteristic")
right.spines[["top", "right"]].set_visible(False)
right.legend(frameon=False)
plt.show()
