"""Random simplices for the tests of complexes on the host and on devices."""

import numpy as np


def random_simplices(rng: np.random.Generator, points: int, size: int, count: int) -> np.ndarray:
    """Return rows of distinct points; simplices may share faces, or be equal."""
    rows = [rng.permutation(points)[:size] for _ in range(count)]
    return np.array(rows)
