"""
A curve for every object
========================

The coins have different reliefs. :func:`~ecc_core.region_curves` computes the curve of the
intensities within every labelled object in one pass over the image, and
:func:`~ecc_core.features.descriptor_table` turns the curves into a table.
"""

# %%
# Label the coins.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import binary_fill_holes, gaussian_filter
from skimage import data
from skimage.measure import label, regionprops

import ecc_core as ecc
from ecc_core.features import descriptor_table

photograph = data.coins().astype(np.float32)
flat = gaussian_filter(photograph - gaussian_filter(photograph, 40), 3)
parts = label(binary_fill_holes(flat >= 17))
large = np.bincount(parts.ravel()) > 300
coins = label(large[parts] & (parts > 0))

# %%
# One row per coin. Dividing by the area makes small and large coins comparable.
curves = ecc.region_curves(gaussian_filter(photograph, 1), coins, 128)
areas = np.bincount(coins.ravel())[curves.labels]
table = descriptor_table(curves, size=areas)
print(table[["maximum", "minimum", "zero_crossings", "first_zero_crossing"]].head().round(4))

# %%
# A measure of relief: the area under the absolute value of the curve.
relief = table["absolute_area"]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
scores = np.zeros(coins.max() + 1)
scores[table.index] = relief
shown = np.ma.masked_where(coins == 0, scores[coins])
left.imshow(photograph, cmap="gray")
picture = left.imshow(shown, cmap="viridis", alpha=0.65)
for region in regionprops(coins):
    row, column = region.centroid
    left.text(column, row, region.label, color="white", ha="center", va="center", weight="bold")
left.set_axis_off()
figure.colorbar(picture, ax=left, label="relief", shrink=0.8)
picks = relief.idxmax(), relief.idxmin()
for coin, colour in zip(picks, ("#D55E00", "#0072B2"), strict=True):
    row = np.flatnonzero(curves.labels == coin)[0]
    right.step(
        curves.thresholds,
        curves.values[row] / areas[row],
        where="post",
        color=colour,
        label=f"coin {coin}",
    )
right.axhline(0, color="0.7", linewidth=0.6, zorder=0)
right.set(xlabel="threshold", ylabel="Euler characteristic / area")
right.spines[["top", "right"]].set_visible(False)
right.legend(frameon=False)
plt.show()
