"""
Counting the loops of a vessel network
======================================

Vessels that branch and join again form loops. The Euler characteristic of a connected network is 1
minus the number of its loops. This network is synthetic, so that the number is known; it is
then blurred, and noise is added, to simulate a microscope.
"""

# %%
# Nodes on a jittered grid in two layers. A random walk connects them to a tree, and twelve
# additional vessels between neighbours close one loop each.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import distance_transform_edt, gaussian_filter
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

import ecc_core as ecc
from ecc_core.plotting import plot_curve

LOOPS = 12
STEP = 24
GRID = (2, 5, 7)
rng = np.random.default_rng(0)
index = np.arange(np.prod(GRID)).reshape(GRID)
pairs = np.concatenate(
    [
        np.stack([index.take(range(n - 1), a).ravel(), index.take(range(1, n), a).ravel()], 1)
        for a, n in enumerate(GRID)
    ]
)
nodes = np.stack(np.unravel_index(index.ravel(), GRID), 1) * STEP + STEP / 2
nodes += rng.uniform(-5, 5, nodes.shape)
weights = rng.random(len(pairs)) + 0.1
tree = minimum_spanning_tree(coo_array((weights, pairs.T), shape=(index.size,) * 2)).tocoo()
branches = set(zip(*tree.coords, strict=True))
spare = [pair for pair in map(tuple, pairs) if pair not in branches]
vessels = [*branches, *(spare[i] for i in rng.permutation(len(spare))[:LOOPS])]

# %%
# Draw the centre lines, and compute the distance to them.
free = np.ones(np.array(GRID) * STEP, dtype=bool)
for a, b in vessels:
    line = np.linspace(nodes[a], nodes[b], 200).round().astype(int)
    free[tuple(line.T)] = False
distance = distance_transform_edt(free)
volume = gaussian_filter(np.where(distance <= 2.5, 1.0, 0.0), 1)
volume = (volume + rng.normal(0, 0.25, volume.shape)).astype(np.float32)
smooth = gaussian_filter(volume, 1.5)

# %%
# The raw volume is dominated by noise, with thousands of specks. After smoothing, the curve has a
# plateau at 1 - 12 = -11, the value of the network.
t = np.linspace(0, 1, 201)
curves = {
    "as measured": ecc.euler_curve(volume, t, superlevel=True),
    "smoothed": ecc.euler_curve(smooth, t, superlevel=True),
}
network = ecc.euler_number(distance <= 2.5)
print(f"Euler number of the network: {network}; plateau at {curves['smoothed'].values[90]}")

# %%
# The Betti curves count components and loops separately. The twelve loops exist at every threshold
# at which the network is in one piece, those of the noise only at a few thresholds.
betti = ecc.betti_curves(smooth, t, superlevel=True)
components, loops, cavities = betti.values
lasting = np.bincount(loops[components == 1]).argmax()
print(f"{lasting} loops at most thresholds at which there is one component")

# %%
figure, (left, middle, right) = plt.subplots(
    1, 3, figsize=(12, 3.6), layout="constrained", width_ratios=[1.3, 1, 1]
)
left.imshow(smooth.max(axis=0), cmap="magma")
left.set_title("smoothed volume, brightest along z")
left.set_axis_off()
for (name, curve), colour in zip(curves.items(), ("#56B4E9", "#0072B2"), strict=True):
    plot_curve(curve, middle, label=name, color=colour)
middle.axhline(1 - LOOPS, color="#D55E00", linestyle="--", linewidth=1, label=f"1 - {LOOPS} loops")
middle.set_yscale("symlog", linthresh=20)
middle.legend(frameon=False)
betti.plot(right)
right.axhline(LOOPS, color="#D55E00", linestyle="--", linewidth=1)
plt.show()
