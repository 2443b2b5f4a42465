"""
How many objects? Persistence
=============================

At every threshold most components of a photograph are noise. The *persistence* of an object is the
difference between the value at which it appears and the value at which it joins an older one. Real
objects last, noise does not: sorted by persistence, a gap separates the two, and the objects above
it are counted and labelled without a threshold, each up to half of its own height.
"""

# %%
# The photograph of 24 coins is from scikit-image. It is smoothed a little, and nothing else is done
# about its uneven background. ``superlevel=True``, since coins are bright.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import binary_fill_holes, gaussian_filter
from scipy.spatial import cKDTree
from skimage.color import label2rgb
from skimage.data import coins
from skimage.feature import blob_log
from skimage.filters import sobel, threshold_otsu
from skimage.measure import label
from skimage.morphology import h_maxima
from skimage.segmentation import relabel_sequential, watershed

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
objects = ecc.persistent_regions(photograph, least, superlevel=True, rel_height=0.5)
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
# Without ``rel_height`` the regions would cover the image, background included. With 0.5 each is as
# large as at half of its height above what separates it from brighter coins, so that no threshold
# has to suit all of them. How well does that delineate the coins? They are compared with the
# segmentation of scikit-image's tutorial, a watershed of the edges from marked values.


def dice(labels, truth):
    """The best Dice coefficient of any label with each true object."""
    both = np.zeros((labels.max() + 1, truth.max() + 1), int)
    np.add.at(both, (labels.ravel(), truth.ravel()), 1)
    sizes = both.sum(axis=1, keepdims=True) + both.sum(axis=0)
    return (2 * both / np.maximum(sizes, 1))[1:, 1:].max(axis=0)


def describe(name, found):
    """Print how many objects are found, and how well."""
    print(f"{name}: {(found > 0.5).sum()} of {found.size}, ", end="")
    print(f"Dice {found.mean():.2f}, at least {found.min():.2f}")


BACKGROUND = 1
COIN = 2
markers = np.where(coins() < 30, BACKGROUND, 0)
markers[coins() > 150] = COIN
segmented = label(binary_fill_holes(watershed(sobel(coins()), markers) == COIN), connectivity=1)
sizes = np.bincount(segmented.ravel())
segmented[(sizes < 100)[segmented]] = 0  # Specks are no coins.
segmented, _, _ = relabel_sequential(segmented)
describe("half height", dice(objects.labels, segmented))
describe("Otsu", dice(label(binary_fill_holes(photograph > threshold_otsu(photograph))), segmented))

# %%
# The gap, and the regions.
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
# The same in 3-D: nuclei, the dimmest of which have a third of the brightness of others, and photon
# noise. A nucleus is what is nearer to its centre than where it has half of its brightness.
rng = np.random.default_rng(3)
shape = np.array((48, 96, 96))
points = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1)


def nuclei_of(count, apart, dimmest):
    """A volume and its true labels; the centres are at least so far apart."""
    centres = []
    while len(centres) < count:
        centre = rng.uniform(8, shape - 8)
        if not centres or np.linalg.norm(np.array(centres) - centre, axis=1).min() > apart:
            centres.append(centre)
    distance, nearest = cKDTree(centres).query(points)
    light = np.zeros(shape)
    for centre, bright in zip(centres, rng.uniform(dimmest, 1, count), strict=True):
        away = ((points - centre) ** 2).sum(axis=-1)
        light = np.maximum(light, bright * np.exp(-away / 50))
    seen = gaussian_filter(rng.poisson(10 + 100 * light).astype(np.float32), 1)
    return seen, np.where(distance < np.sqrt(50 * np.log(2)), nearest + 1, 0)


volume, truth = nuclei_of(20, 20, 0.33)
sorted_nuclei = persistences(volume, True)
least = middle_of_gap(sorted_nuclei)
nuclei = ecc.persistent_regions(volume, least, superlevel=True, rel_height=0.5)
describe("half height", dice(nuclei.labels, truth))
describe("Otsu", dice(label(volume > threshold_otsu(volume)), truth))

# %%
# Where nuclei touch, the values between them are high, so that half of the height above these is
# less than half of a nucleus. A larger part of the height is better then. Otsu's threshold cannot
# separate them.
crowd, truth = nuclei_of(40, 13, 1)
least = middle_of_gap(persistences(crowd, True))
for part in (0.5, 0.8):
    cut = ecc.persistent_regions(crowd, least, superlevel=True, rel_height=part)
    describe(f"{part:.0%} of the height", dice(cut.labels, truth))
describe("Otsu", dice(label(crowd > threshold_otsu(crowd)), truth))

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
