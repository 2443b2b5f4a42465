"""
Comparing shapes in any orientation
===================================

The Euler characteristic transform consists of the curves of a shape along all directions, and
determines the shape. The distance between transforms is a distance between shapes, which can be
made independent of their orientation.
"""

# %%
# A horse from scikit-image, the same horse turned by 90 degrees and by a smaller angle, a ring and
# a star. Each is moved so that its centre of mass is the centre of the image.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import binary_fill_holes, center_of_mass, gaussian_filter, shift
from skimage import data
from skimage.transform import resize, rotate

import ecc_core as ecc
from ecc_core.plotting import plot_transform

SIDE = 201
y, x = np.mgrid[:SIDE, :SIDE] - SIDE // 2
radius = np.hypot(x, y)
angle = np.arctan2(y, x)
horse = np.zeros((SIDE, SIDE))
horse[40:160, 33:167] = resize((~data.horse()).astype(float), (120, 134), anti_aliasing=True)
horse = gaussian_filter(binary_fill_holes(horse > 0.5).astype(float), 1.5)
horse = shift(horse, np.subtract(SIDE // 2, center_of_mass(horse)), order=1)
shapes = {
    "horse": horse > 0.5,
    "turned by 90°": rotate(horse, 90) > 0.5,
    "turned by 25°": rotate(horse, 25) > 0.5,
    "ring": (radius > 40) & (radius < 65),
    "star": radius < 50 + 20 * np.cos(5 * angle),
}

# %%
# The smooth transform is better suited for distances: a border made of pixels is a staircase, whose
# steps appear as dark speckles in the transforms below.
transforms = [ecc.euler_transform(shape, 72, 128, range=(-95, 95)) for shape in shapes.values()]
smooth = [ecc.smooth_transform(transform) for transform in transforms]

# %%
figure, axes = plt.subplots(2, len(shapes), figsize=(10, 4.2), layout="constrained")
for i, (name, shape) in enumerate(shapes.items()):
    axes[0, i].imshow(~shape, cmap="gray")
    axes[0, i].set(title=name, xticks=[], yticks=[])
    plot_transform(transforms[i], axes[1, i], colorbar=i == 4, vmin=-3, vmax=3)
    axes[1, i].set(xticks=[0, 180, 360], xlabel="direction")
    if i:
        axes[1, i].set(ylabel="", yticklabels=[])
plt.show()

# %%
# Distances between all pairs, minimised over all rotations of one of them.
distances = np.array(
    [[ecc.transform_distance(a, b, rotation_invariant=True) for b in smooth] for a in smooth]
)
figure, ax = plt.subplots(figsize=(5.6, 4), layout="constrained")
picture = ax.imshow(distances, cmap="cividis")
for (i, j), distance in np.ndenumerate(distances):
    colour = "white" if distance < distances.max() / 2 else "black"
    ax.text(j, i, f"{distance:.0f}", ha="center", va="center", color=colour)
ax.set_xticks(range(len(shapes)), shapes, rotation=30, ha="right")
ax.set_yticks(range(len(shapes)), shapes)
ax.set_title("distance, however turned")
figure.colorbar(picture, ax=ax)
plt.show()
