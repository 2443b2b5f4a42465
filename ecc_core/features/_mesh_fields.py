"""Gaussian fields on meshes: probabilities that neighbouring points all exceed a level."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends import simplicial_complexes
from ecc_core._optional import import_optional
from ecc_core._request.filtration import as_numbers
from ecc_core._request.simplicial import as_simplices
from ecc_core.features._steps import Floats

NODES = 24
"""Nodes of the quadrature. Its error is below 1e-7 for correlations up to 0.999."""
MOST_CORRELATED = 1 - 1e-9
ROWS_AT_ONCE = 1 << 14
"""Triangles that are computed at once, at all nodes."""


class MeshField(NamedTuple):
    """A standard Gaussian field on a mesh, by the correlations of neighbours."""

    points: int
    edges: NDArray[Any]
    """(m, 2) points."""
    triangles: NDArray[Any]
    """(k, 3) points."""
    sides: NDArray[np.int64]
    """(k, 3) edges of each triangle: opposite to its last, its second and its first point."""

    def correlations(self, maps: Floats) -> Floats:
        """Return the correlation (m,) of the ends of each edge in maps (maps, points)."""
        sizes = np.sqrt(np.einsum("mp,mp->p", maps, maps))
        first, second = self.edges.T
        sums = np.zeros(len(self.edges))
        for values in maps:  # All maps at once would need more memory.
            sums += values[first] * values[second]
        found: Floats = np.minimum(sums / (sizes[first] * sizes[second]), MOST_CORRELATED)
        return found

    def curve(self, levels: Floats, correlations: Floats) -> Floats:
        """Return the expected Euler characteristic of the points above each level."""
        pairs = _nodes_of_pairs(correlations)
        triples = correlations[self.sides]
        found = np.empty(levels.size)
        for i, level in enumerate(levels):
            alone = _above(level)
            edges = _both_above(level, alone, pairs)
            triangles = _all_above(level, alone, triples)
            found[i] = self.points * alone - edges + triangles
        return found


def mesh_field(simplices: Any, points: int) -> MeshField:
    """Return the field on a mesh, which must have no simplices of more than three points."""
    given, alone = as_simplices(simplices, np.asarray)
    rows = simplicial_complexes("cpu").make_complex(given, points, alone)
    if len(rows) > 2:
        raise ValueError(
            f"`simplices` must have at most 3 points each, got some of {len(rows) + 1}"
        )
    edges = rows[0].astype(np.int64) if rows else np.empty((0, 2), np.int64)
    triangles = rows[1].astype(np.int64) if len(rows) > 1 else np.empty((0, 3), np.int64)
    keys = edges[:, 0] * points + edges[:, 1]
    order = np.argsort(keys)
    ends = triangles[:, [[0, 1], [0, 2], [1, 2]]]
    wanted = ends[..., 0] * points + ends[..., 1]
    sides = order[np.searchsorted(keys[order], wanted)] if len(triangles) else triangles
    return MeshField(points, edges, triangles, sides)


def maps_on(residuals: Any, points: int | None) -> Floats:
    """Return the checked maps (maps, points): finite, and at no point 0 in all maps."""
    maps = as_numbers(residuals, "residuals").astype(np.float64)
    wanted = "n" if points is None else str(points)
    if maps.ndim != 2 or (points is not None and maps.shape[1] != points):
        raise ValueError(f"`residuals` must have shape (m, {wanted}), got {maps.shape}")
    if len(maps) == 0:
        raise ValueError(f"`residuals` must have one map or more, got shape {maps.shape}")
    if not np.isfinite(maps).all():
        raise ValueError(f"`residuals` must be finite, got {maps[~np.isfinite(maps)][0]}")
    zeros = np.flatnonzero(~maps.any(axis=0))
    if zeros.size:
        raise ValueError(f"`residuals` must not be 0 in all maps, got 0 at the point {zeros[0]}")
    return maps


def _above(level: float) -> float:
    return 0.5 * math.erfc(level / math.sqrt(2))


def _upper_tail(values: Floats) -> Floats:
    special: Any = import_optional("scipy.special", extra="features", purpose="expected curves")
    found: Floats = special.ndtr(-values)
    return found


def _quadrature() -> tuple[Floats, Floats]:
    """Return nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, weights / 2


def _nodes_of_pairs(correlations: Floats) -> tuple[Floats, Floats]:
    """Return ``1 / (1 + sin a)`` at angles from 0 to that of each correlation, and weights."""
    nodes, weights = _quadrature()
    angles = np.arcsin(correlations)
    rates = 1 / (1 + np.sin(angles[:, None] * nodes))
    return rates, angles[:, None] * weights / (2 * math.pi)


def _both_above(level: float, alone: float, pairs: tuple[Floats, Floats]) -> float:
    """Return the sum of P(both > level) over pairs.

    The derivative by the correlation is the density at (level, level) [Plackett 1954]. It is
    integrated over the angle whose sine is the correlation, for which it is smooth.
    """
    rates, weights = pairs
    integrand = np.exp(-(level**2) * rates)
    return len(rates) * alone**2 + float((weights * integrand).sum())


def _all_above(level: float, alone: float, triples: Floats) -> float:
    """Return the sum of P(all three > level) over triples of correlations (k, 3).

    All correlations are multiplied by s, and the derivative by s is integrated from 0 to 1. It is,
    for each pair, its correlation times its density at (level, level) times the probability that
    the third is above, given that both are at the level.
    """
    nodes, weights = _quadrature()
    # With s = sin(a), the integrand is smooth also for nearly equal points.
    scales = np.sin(math.pi / 2 * nodes)
    steps = math.pi / 2 * np.cos(math.pi / 2 * nodes) * weights
    total = len(triples) * alone**3
    for start in range(0, len(triples), ROWS_AT_ONCE):
        part = triples[start : start + ROWS_AT_ONCE, :, None] * scales
        for k in range(3):
            pair = part[:, k]
            first = part[:, (k + 1) % 3]
            second = part[:, (k + 2) % 3]
            free = 1 - pair**2
            density = np.exp(-(level**2) / (1 + pair)) / (2 * math.pi * np.sqrt(free))
            mean = level * (first + second) / (1 + pair)
            variance = 1 - (first**2 + second**2 - 2 * pair * first * second) / free
            spread = np.sqrt(np.maximum(variance, 1e-12))
            beyond = _upper_tail((level - mean) / spread)
            own = triples[start : start + ROWS_AT_ONCE, k, None]
            total += float((own * density * beyond * steps).sum())
    return total
