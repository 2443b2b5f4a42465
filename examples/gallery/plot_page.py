"""
A photographed page: removing a shadow
======================================

A photographed page is darker on one side. With a single threshold for the whole page, letters break
up on one side and merge with the background on the other. The curve shows this without looking at
the result: where letters are separate from the paper, the number of dark objects minus holes hardly
depends on the threshold.
"""

# %%
# The page is from scikit-image. Its letters are three pixels wide, so it is enlarged first. A
# morphological closing removes all narrow dark structures and leaves the brightness of the paper.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter, grey_closing, zoom
from skimage import data

import ecc_core as ecc
from ecc_core.plotting import plot_curve

page = zoom(data.page().astype(np.float32), 3, order=3)
paper = gaussian_filter(grey_closing(page, (61, 61)), 15)
images = {"original": page / np.median(page), "shadow removed": page / paper}

# %%
# The flattest interval of each curve over a tenth of the range, where there are more dark objects
# than holes.
t = np.linspace(0.2, 1.1, 451)
WIDTH = 50
curves = {}
flattest = {}
for name, image in images.items():
    curves[name] = ecc.euler_curve(image, t)
    windows = np.lib.stride_tricks.sliding_window_view(curves[name].values, WIDTH)
    change = np.where(windows.min(axis=1) > 50, np.ptp(windows, axis=1), np.inf)
    start = change.argmin()
    flattest[name] = t[start], t[start + WIDTH - 1]
    print(f"{name}: the curve changes by {change.min():.0f} within its flattest interval")

# %%
figure, axes = plt.subplots(2, 2, figsize=(9.5, 5), layout="constrained", sharex="row")
for (name, curve), (top, bottom) in zip(curves.items(), axes.T, strict=True):
    low, high = flattest[name]
    top.imshow(images[name] > (low + high) / 2, cmap="gray")
    top.set(title=f"{name}: dark below {(low + high) / 2:.2f}", xticks=[], yticks=[])
    plot_curve(curve, bottom, color="#0072B2")
    bottom.axvspan(low, high, color="#E69F00", alpha=0.35, linewidth=0)
    bottom.set(ylim=(-350, 800), xlabel="threshold / brightness of the paper")
plt.show()
