"""Do two kinds of shapes differ? Euler characteristic transforms, and a permutation test."""

import numpy as np
from skimage.draw import polygon

import ecc_core as ecc
from ecc_core.features import distance_matrix, permutation_test

rng = np.random.default_rng(0)


def leaf(teeth):
    """A shape with a serrated outline, as one of its kind."""
    angle = np.linspace(0, 2 * np.pi, 360, endpoint=False)
    radius = 20 + 3 * np.sin(teeth * angle + rng.uniform(0, 6)) + rng.normal(0, 1)
    shape = np.zeros((64, 64), bool)
    shape[polygon(32 + radius * np.sin(angle), 32 + radius * np.cos(angle))] = True
    return shape


directions = ecc.sample_directions(32, 2)
few, many = (
    [ecc.euler_transform(leaf(teeth), directions, 64, range=(-32, 32)) for _ in range(8)]
    for teeth in (5, 7)
)
distances = distance_matrix([*few, *many])
within = distances[:8, :8][np.triu_indices(8, 1)].mean()
between = distances[:8, 8:].mean()
test = permutation_test(few, many, rng=0)
print(f"distance within a kind {within:.2f}, between kinds {between:.2f}")
print(f"p = {test.pvalue:.4f} ({len(test.null)} permutations of 8 + 8 shapes)")
