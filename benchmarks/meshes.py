"""Triangle meshes of any size."""

from typing import NamedTuple

import numpy as np


class Mesh(NamedTuple):
    points: np.ndarray
    edges: np.ndarray
    triangles: np.ndarray


def torus(rows: int, columns: int) -> Mesh:
    """A bumpy torus of 2 * rows * columns triangles."""
    long, short = (np.arange(n) * 2 * np.pi / n for n in (rows, columns))
    a, b = np.meshgrid(long, short, indexing="ij")
    radius = 1 + 0.1 * np.sin(5 * a) * np.cos(7 * b)
    far = 3 + radius * np.cos(b)
    points = np.stack([far * np.cos(a), far * np.sin(a), radius * np.sin(b)], -1).reshape(-1, 3)
    i, j = np.indices((rows, columns))

    def corner(down: int, right: int) -> np.ndarray:
        return ((i + down) % rows * columns + (j + right) % columns).ravel()

    here, below, right, across = corner(0, 0), corner(1, 0), corner(0, 1), corner(1, 1)
    edges = [(here, below), (here, right), (here, across)]
    triangles = [(here, below, across), (here, across, right)]
    return Mesh(points, *(np.hstack(rows).T for rows in (edges, triangles)))
