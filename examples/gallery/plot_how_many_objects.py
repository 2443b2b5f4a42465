"""
How many objects? Persistence
=============================

At every threshold most components of a photograph are noise. The *persistence* of an object is the
difference between the value at which it appears and the value at which it joins an older one. Real
objects last, noise does not: sorted by persistence, a gap separates the two, and the objects above
it are counted and labelled without a threshold.
"""

# %%
# The photograph of 24 coins is from scikit-image. It is smoothed a little, and nothing else is done
# about its uneven background. ``superlevel=True``, since coins are bright.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree
from skimage.color import label2rgb
from skimage.data import coins
from skimage.feature import blob_log
from skimage.filters import threshold_otsu
from skimage.measure import label
from skimage.morphology import h_maxima

import ecc_core as ecc


def persistences(image, superlevel):
    """Persistences of the components, the largest first; the oldest one lasts to the end."""
    found = ecc.persistence_pairs(image, 0, superlevel=superlevel).persistence
    return np.sort(found.clip(max=float(image.max()) - float(image.min())))[::-1]


def middle_of_gap(found, most=100):
    """The middle of the largest gap between persistences, for at most so many objects."""
    gaps = found[1:most] - found[2 : most + 1]
    at = 1 + gaps.argmax()
    return (found[at] + found[at + 1]) / 2


photograph = gaussian_filter(coins().astype(np.float32), 2)
sorted_coins = persistences(photograph, True)
least = middle_of_gap(sorted_coins)
objects = ecc.persistent_regions(photograph, least, superlevel=True)
print(f"{objects.labels.max()} coins of persistence {least:.0f} or more")

# %%
# Other ways to count. Otsu's threshold finds 24 components by chance: two coins are part of the
# bright background, and two components are specks. Maxima of height h need an h, which is the same
# choice as that of a persistence, but without the sorted list that shows it; blobs need sizes and
# a threshold.
components = label(photograph > threshold_otsu(photograph))
separate = len(set(components[tuple(objects.birth_points.T)]))
maxima = {h: int(label(h_maxima(photograph, h)).max()) for h in (10, 30, 60)}
blobs = len(blob_log(photograph / 255, min_sigma=10, max_sigma=25, threshold=0.1))
print(f"Otsu {components.max()}, of which {separate} are coins")
print(f"h-maxima {maxima}; LoG blobs {blobs}")

# %%
# The gap, and the regions. A region reaches as far as its object lasts; ``threshold=`` would limit
# the regions to the coins.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(np.arange(1, 61), sorted_coins[:60], "o", markersize=3, color="#0072B2")
left.axhline(least, color="#D55E00")
left.set(xlabel="objects, sorted", ylabel="persistence (gray values)")
right.imshow(label2rgb(objects.labels, photograph / 255, alpha=0.3, bg_label=0))
right.plot(*objects.birth_points.T[::-1], "w+")
right.set_title(f"{objects.labels.max()} coins")
right.set_axis_off()
plt.show()

# %%
# The same in 3-D: forty nuclei that touch, and photon noise.
rng = np.random.default_rng(3)
shape = np.array((48, 96, 96))
centres = []
while len(centres) < 40:
    centre = rng.uniform(8, shape - 8)
    if not centres or np.linalg.norm(np.array(centres) - centre, axis=1).min() > 13:
        centres.append(centre)
points = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1)
distance = cKDTree(centres).query(points)[0]
volume = rng.poisson(10 + 100 * np.exp(-(distance**2) / 50)).astype(np.float32)
volume = gaussian_filter(volume, 1)
sorted_nuclei = persistences(volume, True)
nuclei = ecc.persistent_regions(volume, middle_of_gap(sorted_nuclei), superlevel=True)
otsu = label(volume > threshold_otsu(volume)).max()
print(f"{nuclei.labels.max()} nuclei of {len(centres)}; Otsu {otsu}")

# %%
# A noisy membrane: its cells are dark, so these are components of sublevel sets. A cell that is as
# narrow as the membrane is not told from noise.
cells = rng.uniform(0, 200, (40, 2))
plane = np.stack(np.meshgrid(np.arange(200), np.arange(200), indexing="ij"), axis=-1)
nearest = cKDTree(cells).query(plane, k=2)[0]
membrane = 100 * np.exp(-(np.diff(nearest)[..., 0] ** 2) / 18) + rng.normal(0, 30, (200, 200))
membrane = gaussian_filter(membrane.astype(np.float32), 2)
sorted_cells = persistences(membrane, False)
basins = ecc.persistent_regions(membrane, middle_of_gap(sorted_cells))
print(f"{basins.labels.max()} cells of {len(cells)}")

# %%
figure, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained")
for (ax, shown), found, image, regions, title in (
    (axes[:2], sorted_nuclei, volume[24], nuclei.labels[24], f"{nuclei.labels.max()} nuclei"),
    (axes[2:], sorted_cells, membrane, basins.labels, f"{basins.labels.max()} cells"),
):
    ax.plot(np.arange(1, 81), found[:80], "o", markersize=3, color="#0072B2")
    ax.axhline(middle_of_gap(found), color="#D55E00")
    ax.set(xlabel="objects, sorted", ylabel="persistence")
    gray = (image - image.min()) / np.ptp(image)
    shown.imshow(label2rgb(regions, gray, alpha=0.3, bg_label=0))
    shown.set_title(title)
    shown.set_axis_off()
plt.show()
