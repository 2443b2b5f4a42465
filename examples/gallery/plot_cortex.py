"""
A cortical surface: where are its sulci deepest?
================================================

The depth of the folds is a value at each point of a cortical surface. The Euler characteristic of
the part that is deeper than t counts its pieces minus their loops. The deepest points of sulci,
*sulcal pits*, are where these pieces begin, unless only a low ridge separates them from a deeper
one (Im et al., Cerebral Cortex 20, 2010).
"""

# %%
# The surface fsaverage5 comes with nilearn: an average of 40 people, with 10,242 points on each
# side. Depth is in the units of FreeSurfer, and negative on gyri.
import matplotlib.pyplot as plt
import numpy as np
from nilearn.datasets import fetch_surf_fsaverage

import ecc_core as ecc
from ecc_core.io import read_mesh, read_point_values

SIDES = ("left", "right")
files = fetch_surf_fsaverage("fsaverage5")
surfaces = {side: read_mesh(files[f"infl_{side}"]) for side in SIDES}
depths = {side: read_point_values(files[f"sulc_{side}"]) for side in SIDES}

# %%
# As t falls, deep parts appear one by one, and join to a network with loops around what is higher:
# the number falls below 0. Then the loops close, up to the whole sphere, whose Euler
# characteristic is 2.
t = np.linspace(-1.6, 1.9, 281)
curves = {
    side: ecc.simplicial_curve(depths[side], surfaces[side].triangles, t, superlevel=True).values
    for side in SIDES
}
print({side: curve[0] for side, curve in curves.items()})

# %%
# Pits are the points from which the depth falls by at least ``RIDGE`` on every way to a deeper one.
RIDGE = 0.3
pits = {
    side: ecc.simplicial_pairs(
        depths[side], surfaces[side].triangles, superlevel=True, min_persistence=RIDGE
    ).birth_points[:, 0]
    for side in SIDES
}
print({side: len(found) for side, found in pits.items()})

# %%
# The left side, inflated so that sulci are seen, from the left. Triangles that face the viewer are
# drawn from back to front.
points = surfaces["left"].points
triangles = surfaces["left"].triangles
corners = points[triangles]
normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
faces_left = normals[:, 0] < 0
order = np.argsort(-corners[faces_left, :, 0].max(axis=1))  # The nearest faces are drawn last.
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.6), width_ratios=(1.35, 1), layout="constrained"
)
shown = left.tripcolor(
    -points[:, 1],
    points[:, 2],
    triangles[faces_left][order],
    depths["left"],
    shading="gouraud",
    cmap="gray_r",
)
visible = np.intersect1d(pits["left"], triangles[faces_left])
left.plot(-points[visible, 1], points[visible, 2], "o", color="#D55E00", markersize=5)
left.set(aspect="equal", title="Depth, and pits")
left.axis("off")
figure.colorbar(shown, ax=left, shrink=0.7, label="depth")
for side, colour in zip(SIDES, ("#0072B2", "#E69F00"), strict=True):
    right.plot(t, curves[side], color=colour, label=side)
right.axhline(0, color="#7f7f7f", linewidth=0.8)
right.set(xlabel="depth t", ylabel="Euler characteristic of depth ≥ t")
right.legend(frameon=False)
plt.show()
