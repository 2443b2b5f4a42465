"""
A retina: keep the rim of the picture out
=========================================

The eye fills a disk, and the black around it is no tissue. Its rim and the grain around it would
count as well. A mask keeps such points out: they never enter, whatever their value.
"""

# %%
# The green channel shows the vessels best: dark, and narrow. What a closing fills is what is dark
# and narrower than the closing.
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
# The curve of all points, and of those within the eye.
t = np.linspace(0.2, 12, 237)
everything = ecc.euler_curve(vessels, t, superlevel=True)
within = ecc.euler_curve(vessels, t, superlevel=True, mask=eye)

# %%
# High thresholds leave pieces of vessels, low ones join vessels and grain to a net with holes. The
# curve is 0 where there are as many pieces as holes.
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
