"""
Counting coins: a plateau of the curve
======================================

The bright parts of this photograph are coins, but also glare and dirt, and their number depends on
the threshold. The Euler characteristic curve shows all thresholds at once. Where it is constant,
the number of objects does not depend on the exact threshold and can be trusted.
"""

# %%
# The photograph is from scikit-image. Its background is brighter at the top, so the mean over a
# wide neighbourhood is subtracted first.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from skimage import data

import ecc_core as ecc
from ecc_core.plotting import plot_curve

photograph = data.coins().astype(np.float32)
image = gaussian_filter(photograph - gaussian_filter(photograph, 40), 3)

# %%
# ``superlevel=True`` uses the sets ``image >= t``.
curve = ecc.euler_curve(image, np.linspace(-60, 80, 281), superlevel=True)
t, chi = curve

# %%
# The longest interval over which the curve is constant and greater than one:
starts = np.flatnonzero(np.diff(chi, prepend=chi[0] - 1))
lengths = np.diff(starts, append=len(t))
lengths[chi[starts] <= 1] = 0
best = starts[lengths.argmax()]
level = t[best + lengths.max() // 2]
count = chi[best]
print(f"{count} objects, from {t[best]:g} to {t[best + lengths.max() - 1]:g}")

# %%
# There are 24 coins in the photograph.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.imshow(photograph, cmap="gray")
left.contour(image >= level, [0.5], colors="#D55E00", linewidths=1.5)
left.set_title(f"image ≥ {level:.0f}: {count} objects")
left.set_axis_off()
plot_curve(curve, right, color="#0072B2")
right.axvspan(t[best], t[best + lengths.max() - 1], color="#D55E00", alpha=0.25, linewidth=0)
right.annotate(
    f"constant at {count}",
    (level, count),
    (35, 60),
    arrowprops={"arrowstyle": "-", "color": "#D55E00"},
)
right.set_ylim(-20, 80)
plt.show()
