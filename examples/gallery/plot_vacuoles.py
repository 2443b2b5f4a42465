"""
Cells: counting the vacuoles of each
====================================

In a sheet of cells that touch, each bright cell has dark vacuoles, which are holes of the set of
its bright pixels. The Betti curves of a labelled region count components and holes apart, and each
region as if it stood alone. This sheet is synthetic, so that the numbers are known.
"""

# %%
# Cells are the neighbourhoods of points on a jittered grid, as a segmentation would find them. Each
# has none to three vacuoles; a microscope blurs the image and adds noise.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import distance_transform_edt, gaussian_filter

import ecc_core as ecc

CELLS = (6, 9)
SIDE = 48
rng = np.random.default_rng(2)
shape = tuple(n * SIDE for n in CELLS)
grid = np.stack(np.indices(CELLS), -1).reshape(-1, 2)
centres = ((grid + 0.5) * SIDE + rng.uniform(-5, 5, grid.shape)).astype(int)
seeds = np.ones(shape, bool)
seeds[tuple(centres.T)] = False
nearest = distance_transform_edt(seeds, return_distances=False, return_indices=True)
labels = np.zeros(shape, int)
labels[tuple(centres.T)] = np.arange(1, len(centres) + 1)
labels = labels[tuple(nearest)]

vacuoles = rng.integers(0, 4, len(centres))
y, x = np.indices(shape)
bright = np.ones(shape, np.float32)
for (row, column), count in zip(centres, vacuoles, strict=True):
    for angle in rng.uniform(0, 6.3) + np.arange(count) * 2 * np.pi / 3:
        away = np.hypot(y - row - 10 * np.sin(angle), x - column - 10 * np.cos(angle))
        bright[away < rng.uniform(3.5, 5)] = 0.2
image = gaussian_filter(bright, 1.5) + rng.normal(0, 0.1, shape).astype(np.float32)
smooth = gaussian_filter(image, 1.5)

# %%
# One call for all cells. ``superlevel=True``: bright cells, dark holes.
curves = ecc.region_betti_curves(smooth, labels, np.linspace(0.3, 1.1, 161), superlevel=True)
components, holes = curves.values.swapaxes(0, 1)

# %%
# As the threshold rises, vacuoles open one by one, until the bright parts fall apart in noise. Over
# a wide range all cells are in one piece, and the number of holes does not change.
whole = (components == 1).all(axis=0)
t = curves.thresholds[whole]
counts, lengths = np.unique(holes[:, whole].sum(axis=0), return_counts=True)
level = t[holes[:, whole].sum(axis=0) == counts[lengths.argmax()]].mean()
found = holes[:, np.searchsorted(curves.thresholds, level)]
right_ones = (found == vacuoles).sum()
print(f"{found.sum()} vacuoles at {level:.2f}, right in {right_ones} of {len(found)} cells")

# %%
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 3.4), layout="constrained", width_ratios=[1.4, 1]
)
left.imshow(smooth, cmap="gray")
left.contour(labels[1:, 1:] != labels[:-1, :-1], [0.5], colors="#56B4E9", linewidths=0.4)
for (row, column), count in zip(centres, found, strict=True):
    left.text(column - 20, row - 14, count, color="#E69F00", fontsize=9)
left.set(title="vacuoles of each cell")
left.set_axis_off()
for cell, colour in zip(
    (vacuoles.argmin(), vacuoles.argmax()), ("#0072B2", "#D55E00"), strict=True
):
    one = curves.select(cell + 1)
    right.step(one.thresholds, one.values[1], where="pre", color=colour, label=f"cell {cell + 1}")
right.axvline(level, color="0.5", linestyle="--", linewidth=1)
right.set(xlabel="threshold", ylabel="holes", ylim=(-0.2, 12))
right.spines[["top", "right"]].set_visible(False)
right.legend(frameon=False)
plt.show()
