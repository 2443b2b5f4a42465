"""
A cell: where does a jump of the curve come from?
=================================================

The curve says how many objects less holes there are at each threshold, not where they are. The
coefficients do: each pixel has the number by which it changes the count when it enters.
"""

# %%
# A cell that comes with scikit-image, less its noise, and the curve of its bright parts.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from skimage import data

import ecc_core as ecc

image = gaussian_filter(data.cell().astype(np.float32), 3)
t, chi = ecc.euler_curve(image, np.arange(40, 200, 0.5), superlevel=True)

# %%
# The steepest stretch: within five grey values the count changes most.
WIDTH = 10
steps = chi[:-WIDTH] - chi[WIDTH:]  # what enters as the threshold falls
start = np.abs(steps).argmax()
low, high = t[start], t[start + WIDTH]
print(f"from {high:g} down to {low:g} the count changes by {steps[start]:+}")

# %%
# The pixels that enter there, and what they add: objects appear (+), or objects merge and holes
# open (-). Together they are the step. All of it is grain of the background; the cell itself is a
# single object over most of the thresholds, where the curve is 1.
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
    (-1, "a merger, or a hole", "#56B4E9"),
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
