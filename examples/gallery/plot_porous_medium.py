"""
A porous medium: when do pores connect?
=======================================

Whether a liquid flows through a rock depends on how its pores are connected. In 3-D the Euler
characteristic is the number of components minus tunnels plus cavities: it is positive if pores are
separate, and negative if they form a network. In this draw its zero is close to the radius at
which the pores no longer connect opposite sides, which `component_curves` finds directly.
"""

# %%
# A synthetic rock: a thousand random grains, and the distance of each point to the nearest one. For
# grains of radius r, the pores are the points at a distance of more than r.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import distance_transform_edt, label

import ecc_core as ecc
from ecc_core.features import curve_descriptors

SIDE = 96
rng = np.random.default_rng(0)
centres = rng.integers(0, SIDE, (1000, 3))
empty = np.ones((SIDE,) * 3, dtype=bool)
empty[tuple(centres.T)] = False
distance = distance_transform_edt(empty).astype(np.float32)

# %%
# The curve of the superlevel sets and its descriptors per volume. For superlevel sets, "first"
# means at the largest distances.
curve = ecc.euler_curve(distance, np.linspace(0.5, 14, 136), superlevel=True)
found = curve_descriptors(curve, size=distance.size)
zero = found.first_zero_crossing
print(f"the sign changes at a grain radius of {zero:.1f}")

# %%
# For comparison: the radius at which the pores no longer connect opposite sides.


def connects(pores: np.ndarray) -> bool:
    """Return whether a component meets the first and the last layer."""
    parts, _ = label(pores, np.ones((3, 3, 3)))
    return bool(np.intersect1d(parts[0], parts[-1]).max())


radii = np.arange(4, 12, 0.25)
last = max(radius for radius in radii if connects(distance >= radius))
print(f"the pores connect opposite sides up to a radius of {last:g}")

# %%
# The Betti curves show why the sign changes. Small grains are cavities in the pores. When they
# touch, the pores are one component with many tunnels, which close as the grains grow, until most
# pores are components of their own.
betti = ecc.betti_curves(distance, curve.thresholds, superlevel=True)
pores, throats, _ = betti.values
balance = curve.thresholds[(throats >= pores).nonzero()[0][-1]]
print(f"up to a radius of {balance:.1f} there are more tunnels than components")

# %%
figure = plt.figure(figsize=(10, 3), layout="constrained")
grid = figure.add_gridspec(1, 4, width_ratios=[1, 1, 1, 2.2])
radii_shown = (2, 5, 8)
colours = ("#009E73", "#0072B2", "#D55E00")
ax = figure.add_subplot(grid[3])
ax.step(curve.thresholds, curve.values / distance.size, where="pre", color="#1a1a1a", label="χ")
for number, name, style in ((pores, "components", ":"), (throats, "tunnels", "--")):
    line = {"color": "0.4", "linestyle": style, "linewidth": 1}
    ax.step(curve.thresholds, number / distance.size, where="pre", label=name, **line)
ax.axhline(0, color="0.7", linewidth=0.6, zorder=0)
ax.axvline(last, color="0.4", linewidth=1, label="percolation")
for i, (radius, colour) in enumerate(zip(radii_shown, colours, strict=True)):
    picture = figure.add_subplot(grid[i])
    picture.imshow(distance[SIDE // 2] >= radius, cmap="gray_r", interpolation="nearest")
    picture.set(xticks=[], yticks=[])
    picture.set_title(f"radius {radius}", color=colour)
    ax.axvline(radius, color=colour, linewidth=1)
ax.set(xlabel="radius of the grains", ylabel="number / voxel")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, fontsize=8, loc="upper right")
plt.show()
