"""
Reading a page: before and after its shadow is removed
======================================================

A photographed page is darker on one side. With one threshold for the whole page, letters break on
one side while the other fills with blots. The curve tells without a look at the result: where
letters stand apart from the paper, the number of dark objects less their holes hardly depends on
the threshold.
"""

# %%
# The page comes with scikit-image. Letters are three pixels wide, so it is enlarged first. The
# brightness of the paper alone is what remains when everything narrow and dark is closed.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter, grey_closing, zoom
from skimage import data

import ecc_core as ecc
from ecc_core.plotting import plot_curve

page = zoom(data.page().astype(np.float32), 3, order=3)
paper = gaussian_filter(grey_closing(page, (61, 61)), 15)
images = {"as it is": page / np.median(page), "less its shadow": page / paper}

# %%
# The flattest stretch of each curve, of a tenth of the range, where dark objects outnumber
# holes.
t = np.linspace(0.2, 1.1, 451)
WIDTH = 50
curves, flattest = {}, {}
for name, image in images.items():
    curves[name] = ecc.euler_curve(image, t)
    windows = np.lib.stride_tricks.sliding_window_view(curves[name].values, WIDTH)
    change = np.where(windows.min(axis=1) > 50, np.ptp(windows, axis=1), np.inf)
    start = change.argmin()
    flattest[name] = t[start], t[start + WIDTH - 1]
    print(f"{name}: the count changes by {change.min():.0f} within the flattest stretch")

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
