"""
A Boolean model: densities without the border
=============================================

Discs around random points, which may overlap, are a Boolean model. Its densities of area, boundary
length and Euler characteristic are known for every radius. An image is a window of such a model,
and the border of the window cuts discs: counted as their boundary, it biases the densities.
"""

# %%
# The distance to the nearest of the points: its sublevel set at r is the Boolean model of discs of
# radius r, so one image contains the models of all radii. There are also points around the window.
import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import cKDTree

import ecc_core as ecc

rng = np.random.default_rng(0)
SIZE = 160
WINDOWS = 100
INTENSITY = 0.0005
radii = np.linspace(6, 40, 35)
pixels = np.stack(np.meshgrid(np.arange(SIZE), np.arange(SIZE), indexing="ij"), axis=-1)


def window():
    """Distances of the pixels of a window to the nearest point."""
    margin = radii[-1] + 1
    width = SIZE + 2 * margin
    points = rng.uniform(-margin, SIZE + margin, (rng.poisson(INTENSITY * width**2), 2))
    return cKDTree(points).query(pixels)[0]


images = np.stack([window() for _ in range(WINDOWS)])

# %%
# The functionals of all windows at all radii, with the border of the window as part of the set, and
# with half-open windows. Crofton's formula estimates those of the discs rather than of the pixels.
options = {"axis": (1, 2), "connectivity": 1, "estimator": "crofton-4"}
closed = ecc.minkowski_curves(images, radii, **options).densities()
half_open = ecc.minkowski_curves(images, radii, boundary="half-open", **options).densities()

# %%
# Theory (Miles 1976; Schneider and Weil 2008): `uncovered` is the probability that no disc covers
# a given point.
uncovered = np.exp(-INTENSITY * np.pi * radii**2)
theory = {
    "area": 1 - uncovered,
    "perimeter": 2 * np.pi * radii * INTENSITY * uncovered,
    "euler": (INTENSITY - INTENSITY**2 * np.pi * radii**2) * uncovered,
}
errors = {}
for k, (name, expected) in enumerate(theory.items()):
    means = [curves.values[:, k].mean(axis=0) for curves in (closed, half_open)]
    errors[name] = [np.abs(mean - expected).max() / expected.max() for mean in means]
    print(f"{name}: largest error {errors[name][0]:.1%} closed, {errors[name][1]:.1%} half-open")

# %%
figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.2), layout="constrained")
for k, (ax, (name, expected)) in enumerate(zip(axes, theory.items(), strict=True)):
    ax.plot(radii, closed.values[:, k].mean(axis=0), color="#D55E00", label="closed")
    ax.plot(radii, half_open.values[:, k].mean(axis=0), color="#0072B2", label="half-open")
    ax.plot(radii, expected, "k:", label="theory")
    ax.set(xlabel="radius (pixels)", title=f"{name} per pixel")
axes[0].legend(frameon=False)
plt.show()
