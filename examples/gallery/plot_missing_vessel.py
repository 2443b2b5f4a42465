"""
Vessels: which one is missing?
==============================

A segmentation of vessels is judged by its topology: the vessels and the meshes between them should
be those of the annotation. The difference of the Betti numbers misses half of the mistakes, since a
gap here cancels a bridge there. Betti matching finds both, and where they are. This network of
vessels is synthetic, so that the mistakes are known.
"""

# %%
# Vessels run along the borders of the neighbourhoods of random points. The prediction lacks a
# piece of two vessels, has a vessel that is not there, and a crumb beside them.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import binary_dilation, distance_transform_edt, label
from scipy.spatial import Voronoi

import ecc_core as ecc

SIDE = 200
rng = np.random.default_rng(4)
grid = np.stack(np.indices((5, 5)), -1).reshape(-1, 2)
points = (grid + 0.5) * SIDE / 5 + rng.uniform(-9, 9, grid.shape)
seeds = np.ones((SIDE, SIDE), bool)
seeds[tuple(points.astype(int).T)] = False
nearest = distance_transform_edt(seeds, return_distances=False, return_indices=True)
area = nearest[0] * SIDE + nearest[1]
target = np.zeros((SIDE, SIDE), bool)
target[:-1] |= area[1:] != area[:-1]
target[:, :-1] |= area[:, 1:] != area[:, :-1]
target = binary_dilation(target, iterations=1)
target[[0, 1, -2, -1]] = target[:, [0, 1, -2, -1]] = False  # Vessels end inside the image.

vessels = Voronoi(points)
inner = ((grid[vessels.ridge_points] > 0) & (grid[vessels.ridge_points] < 4)).all(axis=(1, 2))
ends = vessels.vertices[np.array(vessels.ridge_vertices)[inner]]
# Only long vessels get a gap.
middles = ends.mean(axis=1)[np.hypot(*np.diff(ends, axis=1)[:, 0].T) > 24]
gaps = middles[[0, -1]]
y, x = np.indices((SIDE, SIDE))
prediction = target.copy()
for row, column in gaps:
    prediction[np.hypot(y - row, x - column) < 5] = False
row, column = points[12].astype(int)
prediction[row - 1 : row + 2, column - 24 : column + 24] = True  # A vessel crosses a mesh.
row, column = points[18].astype(int)
prediction[row - 2 : row + 2, column - 2 : column + 2] = True  # A crumb lies in another one.

# %%
# The numbers of components and holes (meshes), and what does not match.
numbers = [ecc.betti_numbers(image) for image in (prediction, target)]
found = ecc.betti_matching(prediction, target)
difference = np.abs(np.subtract(*numbers))
print(f"Betti numbers {numbers[0]} and {numbers[1]}: the difference is {difference.sum()}")
print(f"false or missing at their place: {found.error.sum()}")

# %%
# Each one has a point: a component that at which it begins, and a hole one inside it. So the mesh
# of each hole is known, and a vessel is missing where two meshes became one.
missing = label(~target)[0]
missing = np.isin(missing, missing[tuple(found.unmatched_target.select(1).death_points.T)])
false = label(~prediction)[0]
false = np.isin(false, false[tuple(found.unmatched_prediction.select(1).death_points.T)])
figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
for ax, image, area, title in zip(
    axes,
    (target, prediction),
    (missing, false),
    ("annotation, and meshes that are missing", "prediction, and what is false"),
    strict=True,
):
    ax.imshow(image, cmap="gray_r")
    ax.contourf(area, [0.5, 1.5], colors="#56B4E9", alpha=0.5)
    ax.set_title(title)
    ax.set_axis_off()
crumbs = found.unmatched_prediction.select(0).birth_points
axes[1].plot(*crumbs.T[::-1], "o", color="#D55E00", markersize=16, fillstyle="none")
plt.show()
