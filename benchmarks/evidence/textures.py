"""Patches of real textures, and texture features to compare."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import gudhi
import numpy as np
from gudhi.sklearn.cubical_persistence import CubicalPersistence
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, laplace
from skimage import data
from skimage.color import rgb2gray
from skimage.feature import graycomatrix, graycoprops, hog, local_binary_pattern
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import ecc_core as ecc

Array = NDArray[np.float32]
Features = Callable[[Array], NDArray[np.float64]]

CROP = 512
REGION = 128
CLIP = 2.5
THRESHOLDS = np.linspace(-CLIP, CLIP, 32)
PIXELS = 12
"""Side of a persistence image."""
WIDTH = 2 * CLIP / PIXELS
"""The standard deviation of its Gaussians."""


def textures() -> dict[str, NDArray[np.uint8]]:
    """Return square pieces of images whose files come with scikit-image."""

    def gray(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return (255 * rgb2gray(image)).round().astype(np.uint8)

    images = {
        "brick": data.brick(),
        "grass": data.grass(),
        "gravel": data.gravel(),
        "tissue": gray(data.immunohistochemistry()),
        "moon": data.moon(),
        "galaxies": gray(data.hubble_deep_field()),
        "retina": gray(data.retina()),
    }
    return {name: centre(image) for name, image in images.items()}


def centre(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    top, left = ((n - CROP) // 2 for n in image.shape)
    return image[top : top + CROP, left : left + CROP]


def patches(side: int) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Return all patches, the texture of each, and the region of its image that each is in."""
    cut = []
    kinds = []
    regions = []
    for kind, image in enumerate(textures().values()):
        for top in range(0, CROP, side):
            for left in range(0, CROP, side):
                cut.append(image[top : top + side, left : left + side])
                kinds.append(kind)
                regions.append(top // REGION * (CROP // REGION) + left // REGION)
    return np.stack(cut), np.array(kinds), np.array(regions)


def standardised(patch: NDArray[np.generic]) -> Array:
    """Return a patch of mean 0 and variance 1: no feature sees brightness and contrast."""
    values = patch.astype(np.float32)
    return (values - values.mean()) / max(float(values.std()), 1e-6)


def bands(patch: Array, width: float = 1.0) -> list[Array]:
    """Return the patch, its finest detail, and the next coarser one."""
    fine = gaussian_filter(patch, width)
    coarse = gaussian_filter(patch, 2 * width)
    return [patch, standardised(patch - fine), standardised(fine - coarse)]


def in_bands(features: Features, width: float = 1.0) -> Features:
    """Return a function that computes the features of each band."""

    def describe(patch: Array) -> NDArray[np.float64]:
        return np.concatenate([features(band) for band in bands(patch, width)])

    return describe


def smoothed(features: Features, sigma: float) -> Features:
    """Return a function that computes the features after smoothing."""
    return lambda patch: features(standardised(gaussian_filter(patch, sigma)))


def signed_root(counts: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return roots of counts, whose spread hardly depends on their size."""
    return np.asarray(np.sign(counts) * np.sqrt(np.abs(counts)))


def euler_curve(patch: Array) -> NDArray[np.float64]:
    return signed_root(ecc.euler_curve(patch, THRESHOLDS, workers=1).values)


def level_lines(patch: Array) -> NDArray[np.float64]:
    """Return the lengths of the borders of the same sets, which know nothing of topology."""
    return np.sqrt(ecc.minkowski_curves(patch, THRESHOLDS, workers=1).values[1])


def local_patterns(patch: Array) -> NDArray[np.float64]:
    gray = eight_bits(patch, 256)
    found = []
    for radius, points in ((1, 8), (2, 16), (3, 24)):
        codes = local_binary_pattern(gray, points, radius, "uniform")
        counts = np.bincount(codes.astype(int).ravel(), minlength=points + 2)
        found.append(counts / codes.size)
    return np.concatenate(found)


def eight_bits(patch: Array, levels: int) -> NDArray[np.uint8]:
    scaled = (patch + CLIP) / (2 * CLIP) * levels
    return np.clip(scaled, 0, levels - 1).astype(np.uint8)


def cooccurrence(patch: Array) -> NDArray[np.float64]:
    angles = np.arange(4) * np.pi / 4
    matrix = graycomatrix(
        eight_bits(patch, 16), [1, 2, 4], angles, levels=16, symmetric=True, normed=True
    )
    names = "contrast", "dissimilarity", "homogeneity", "energy", "correlation", "ASM", "entropy"
    found = [graycoprops(matrix, name) for name in names]
    # Means and ranges over the angles are invariant to quarter turns.
    return np.concatenate([part for f in found for part in (f.mean(axis=1), np.ptp(f, axis=1))])


def gradients(patch: Array, cells: int = 4) -> NDArray[np.float64]:
    cell = len(patch) // cells
    return np.asarray(hog(patch, 9, pixels_per_cell=(cell, cell), cells_per_block=(2, 2)))


def five_numbers(patch: Array) -> NDArray[np.float64]:
    """Return skewness, kurtosis, slope, roughness, and the correlation at two points."""
    steps = []
    for axis, n in enumerate(patch.shape):
        first = np.take(patch, range(n - 2), axis)
        second = np.take(patch, range(2, n), axis)
        steps.append(np.mean(first * second))
    slope = np.sqrt(np.sum(np.square(np.gradient(patch)), axis=0))
    rough = laplace(patch)
    numbers = [np.mean(patch**3), np.mean(patch**4), np.log(slope.mean()), np.log(rough.std())]
    return np.array([*numbers, np.mean(steps)])


def histogram(patch: Array) -> NDArray[np.float64]:
    edges = np.append(THRESHOLDS, np.inf)
    return np.sqrt(np.histogram(np.maximum(patch, -CLIP), edges)[0] / patch.size)


def betti_curves(patch: Array) -> NDArray[np.float64]:
    return signed_root(ecc.betti_curves(patch, THRESHOLDS, workers=1).values.ravel())


def diagrams(image: Array) -> list[NDArray[np.float64]]:
    """Return births and deaths of the components, loops and so on of the sublevel sets."""
    if image.ndim == 2:  # GUDHI has a fast path for images in 2-D.
        pairs = CubicalPersistence([0, 1], input_type="top_dimensional_cells", n_jobs=1)
        return [np.asarray(found) for found in pairs.fit_transform([image])[0]]
    cubical = gudhi.CubicalComplex(top_dimensional_cells=image)
    cubical.persistence(homology_coeff_field=2, min_persistence=0)
    return [cubical.persistence_intervals_in_dimension(d) for d in range(image.ndim)]


def persistence_image(diagram: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Gaussians at (birth, persistence), weighted by persistence (Adams et al., 2017)."""
    if not len(diagram):
        return np.zeros(PIXELS**2)
    birth, death = np.clip(diagram, -CLIP, CLIP).T
    life = death - birth
    at = np.linspace(-CLIP, CLIP, PIXELS)
    across = np.exp(-0.5 * ((birth[:, None] - at) / WIDTH) ** 2)
    up = np.exp(-0.5 * ((life[:, None] - (at + CLIP)) / WIDTH) ** 2)
    return ((across * life[:, None]).T @ up).ravel()


def persistence(patch: Array) -> NDArray[np.float64]:
    images = [persistence_image(diagram) for diagram in diagrams(patch)]
    return signed_root(np.concatenate(images))


FEATURES: dict[str, Features] = {
    "ECC": euler_curve,
    "ECC, 3 bands": in_bands(euler_curve),
    "LBP": local_patterns,
    "GLCM": cooccurrence,
    "HOG": gradients,
    "persistence images": persistence,
}
"""Features of the study of noise, without anything to choose."""


def tuned(features: Features) -> dict[str, Features]:
    """Return settings for validation: the patch alone or in three bands, each at two scales."""
    return {
        "alone": features,
        "smoothed": smoothed(features, 1.0),
        **{f"bands, width {width:g}": in_bands(features, width) for width in (1.0, 2.0)},
    }


METHODS: dict[str, dict[str, Features]] = {
    "ECC": tuned(euler_curve),
    "ECC, patch alone": {"": euler_curve},
    "Betti curves": tuned(betti_curves),
    "persistence images": tuned(persistence),
    "level-line lengths": tuned(level_lines),
    "histograms": tuned(histogram),
    "LBP": tuned(local_patterns),
    "GLCM": tuned(cooccurrence),
    "HOG": tuned(gradients) | {"8 x 8 cells": partial(gradients, cells=8)},
    "five numbers": tuned(five_numbers),
}
"""Every method with the settings between which the validation set chooses."""


def compute(features: Features, images: NDArray[np.generic]) -> NDArray[np.float64]:
    scaled = map(standardised, images)
    return np.stack([features(image) for image in scaled])


def splits(
    kinds: NDArray[np.int64], regions: NDArray[np.int64], count: int, seed: int
) -> list[NDArray[np.bool_]]:
    """Return the training patches of each split: a random half of the regions of each image."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        training = np.zeros((kinds.max() + 1, regions.max() + 1), bool)
        for row in training:
            row[rng.permutation(row.size)[: row.size // 2]] = True
        found.append(training[kinds, regions])
    return found


def classifier() -> GridSearchCV:
    """Return a support vector machine, set up by cross-validation within the training set."""
    choices = {"standardscaler": [StandardScaler(), "passthrough"], "svc__C": [1, 10, 100]}
    return GridSearchCV(make_pipeline(StandardScaler(), SVC()), choices, cv=3)
