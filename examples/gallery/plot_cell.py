"""
A cell: locating a jump of the curve
====================================

The curve gives the number of objects minus holes at each threshold, but not their positions. The
coefficients do: the coefficient of a pixel is the change of the curve that the pixel causes.
"""

# %%
# An image of a cell from scikit-image, smoothed, and the curve of its bright parts.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from skimage import data

import ecc_core as ecc

image = gaussian_filter(data.cell().astype(np.float32), 3)
t, chi = ecc.euler_curve(image, np.arange(40, 200, 0.5), superlevel=True)

# %%
# The steepest part of the curve: the largest change within five grey values.
WIDTH = 10
steps = chi[:-WIDTH] - chi[WIDTH:]  # The change as the threshold falls.
start = np.abs(steps).argmax()
low = t[start]
high = t[start + WIDTH]
print(f"from {high:g} down to {low:g} the curve changes by {steps[start]:+}")

# %%
# The pixels that enter there and their coefficients: objects appear (+), or objects merge and
# holes appear (-). The coefficients add up to the change. It comes from noise in the background;
# the cell is a single object at most thresholds, where the curve is 1.
c = ecc.euler_coefficients(image, superlevel=True)
entering = (image >= low) & (image < high)
assert c[entering].sum() == steps[start]
one = t[chi == 1]
print(f"a single object at {one.size} of {t.size} thresholds")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.6), layout="constrained")
left.imshow(image, cmap="gray")
for sign, name, colour in (
    (1, "an object appears", "#E69F00"),
    (-1, "objects merge, or a hole appears", "#56B4E9"),
):
    rows, columns = np.nonzero(entering & (np.sign(c) == sign))
    left.scatter(columns, rows, 14, color=colour, label=f"{name}: {rows.size} pixels")
left.set_axis_off()
left.legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncols=1, frameon=False)
right.step(t, chi, where="pre", color="#0072B2")
right.axvspan(low, high, color="#E69F00", alpha=0.35, linewidth=0)
right.set(xlabel="threshold", ylabel="Euler characteristic")
right.spines[["top", "right"]].set_visible(False)
plt.show()
