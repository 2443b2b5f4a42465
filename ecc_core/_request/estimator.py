"""Estimators of Minkowski functionals: the cells that they count, and the weight of each cell.

All are linear in numbers of cells, or of groups of neighbouring points:

- Exact: the intrinsic volumes of the union of the cells. For the k-th of them, an open box of
  dimension m has the weight (-1)^(m-k) times the k-th elementary symmetric function of its sides.
- Crofton: the perimeter is pi times the mean diameter, the surface four times the mean projected
  area, and the mean breadth the mean height, over all directions. Along a few directions of the
  lattice these follow from the Euler characteristics of sections by all parallel lines or planes
  of lattice points, which are numbers of points, pairs, triangles and rectangles in the set.
  Each direction counts for the part of the circle or sphere that is nearest to it.
"""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._request.boundary import check_boundary
from ecc_core._request.filtration import Filtration, check_spacing

Offset = tuple[int, ...]

MEASURES = {
    1: ("length", "euler"),
    2: ("area", "perimeter", "euler"),
    3: ("volume", "surface", "mean_breadth", "euler"),
}
DIRECTIONS = {2: (2, 4), 3: (3, 13)}


@dataclass(frozen=True)
class Cells:
    """Kinds of groups of neighbouring points, which are counted at all places of an image."""

    groups: tuple[tuple[Offset, ...], ...]
    """The points of each kind of group, within a unit cube."""
    every: bool
    """Whether a group enters with the last of its points, rather than with the first."""
    boxes: bool = False
    """Whether the groups are all boxes of one or two points along each axis, in C order. They are
    the cells of V if they enter with the last point, otherwise those of T."""

    @property
    def extents(self) -> list[Offset]:
        """For each kind, the number of steps that it spans along each axis."""
        found = []
        for group in self.groups:
            along_axes = zip(*group, strict=True)
            found.append(tuple(map(max, along_axes)))
        return found


@dataclass(frozen=True)
class Estimator:
    """The weights by which functionals are sums of numbers of cells."""

    name: str
    cells: Cells
    weights: NDArray[np.float64]
    """(measures, kinds), the measures in the order of `MEASURES`. The weights of the Euler
    characteristic are zero if it is not computed from these cells."""
    spacing: tuple[float, ...]

    @property
    def exact(self) -> bool:
        return self.name == "exact"

    def functionals(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return functionals (..., measures, n) from numbers of cells (..., kinds, n)."""
        found: NDArray[np.float64] = np.matmul(self.weights, counts.astype(np.float64))
        return found

    def size(self, shape: tuple[int, ...], filtration: Filtration) -> float:
        """Return the length, area or volume of the image, as a window of a larger one."""
        vertices = self.exact and not filtration.cubes
        lengths = []
        for n, step, border in zip(shape, self.spacing, filtration.boundary.axes, strict=True):
            between_vertices = vertices and border.is_closed
            missing = 1 if between_vertices else border.missing
            lengths.append(max(n - missing, 0) * step)
        return float(math.prod(lengths))


def estimator_of(name: Any, spacing: Any, filtration: Filtration) -> Estimator:
    ndim = filtration.ndim
    check_boundary(filtration.boundary.name)
    steps = tuple(check_spacing(spacing, ndim).tolist())
    allowed = ["exact", *(f"crofton-{count}" for count in DIRECTIONS.get(ndim, ()))]
    if not isinstance(name, str) or name not in allowed:
        shown = repr(allowed[-1])
        if len(allowed) > 1:
            others = ", ".join(map(repr, allowed[:-1]))
            shown = f"{others} or {shown}"
        raise ValueError(f"`estimator` must be {shown} for a {ndim}-D image, got {name!r}")
    if name == "exact":
        return _exact(steps, filtration.cubes)
    return _crofton(steps, int(name.partition("-")[2]))


@lru_cache(maxsize=32)
def _exact(spacing: tuple[float, ...], cubes: bool) -> Estimator:
    ndim = len(spacing)
    # For each axis, a kind has 1 if there are two points along it, and 0 for one.
    kinds = list(itertools.product((0, 1), repeat=ndim))
    groups = []
    for kind in kinds:
        extents = [range(e + 1) for e in kind]
        groups.append(tuple(itertools.product(*extents)))
    weights = np.zeros((ndim + 1, len(kinds)))
    for column, kind in enumerate(kinds):
        sides = [h for h, e in zip(spacing, kind, strict=True) if bool(e) != cubes]
        for k in range(len(sides) + 1):
            symmetric = sum(map(math.prod, itertools.combinations(sides, k)))
            weights[ndim - k, column] = (-1) ** (len(sides) - k) * symmetric
    if ndim > 1:
        weights[1] *= 2  # An intrinsic volume counts one side of a sheet, a surface both.
    if ndim == 3:
        weights[2] /= 2  # The mean breadth of a box is half the sum of its sides.
    weights.flags.writeable = False
    return Estimator("exact", Cells(tuple(groups), not cubes, boxes=True), weights, spacing)


@lru_cache(maxsize=32)
def _crofton(spacing: tuple[float, ...], count: int) -> Estimator:
    ndim = len(spacing)
    cell = math.prod(spacing)
    point = ((0,) * ndim,)
    found: dict[tuple[Offset, ...], NDArray[np.float64]] = {point: np.zeros(ndim + 1)}
    found[point][0] = cell

    def add(group: tuple[Offset, ...], measure: int, weight: float) -> None:
        moved = np.array(group) - np.min(group, axis=0)  # The least offset along each axis is 0.
        points = [tuple(point) for point in moved.tolist()]
        placed = tuple(sorted(points))
        found.setdefault(placed, np.zeros(ndim + 1))[measure] += weight

    steps = _half_of_neighbours(ndim)
    if count <= ndim:  # Only neighbours along the axes count.
        steps = [step for step in steps if _reach(step) == 1]
    vectors = np.array(steps) * spacing
    lengths = np.linalg.norm(vectors, axis=1)
    # The perimeter is pi times the mean diameter, and the surface 4 times the mean projected area.
    factor = math.pi if ndim == 2 else 4.0
    for step, length, share in zip(steps, lengths, _shares(vectors), strict=True):
        weight = factor * share * cell / length
        add(point, 1, weight)
        add((*point, step), 1, -weight)
    if ndim == 3:
        planes = [_lattice_plane(step) for step in steps]
        sides = np.array(planes) * spacing
        normals = np.cross(sides[:, 0], sides[:, 1])
        areas = np.linalg.norm(normals, axis=1)
        for pair, area, share in zip(planes, areas, _shares(normals), strict=True):
            for sign, group in _section(*pair):
                add(group, 2, sign * share * cell / area)
    weights = np.array(list(found.values())).T.copy()
    weights.flags.writeable = False
    return Estimator(f"crofton-{count}", Cells(tuple(found), every=True), weights, spacing)


def _half_of_neighbours(ndim: int) -> list[Offset]:
    """Return the steps to the neighbours of a point, one of each opposite pair."""
    steps = itertools.product((-1, 0, 1), repeat=ndim)
    return [step for step in steps if step > (0,) * ndim]


def _lattice_plane(normal: Offset) -> tuple[Offset, Offset]:
    """Return the two shortest steps within the lattice plane that is normal to a direction.

    They are at right angles, or at 60° or 120°.
    """
    flat = [step for step in _half_of_neighbours(3) if np.dot(step, normal) == 0]
    a, b = sorted(flat, key=_reach)[:2]
    return a, b


def _reach(step: Offset) -> int:
    """Return the number of axes along which a step to a neighbour leads."""
    return sum(map(abs, step))


def _section(a: Offset, b: Offset) -> list[tuple[int, tuple[Offset, ...]]]:
    """Return the groups, with signs, that count the Euler characteristic of a lattice plane."""

    def added(b: Offset) -> Offset:
        return tuple(i + j for i, j in zip(a, b, strict=True))

    zero = (0, 0, 0)
    length = sum(map(abs, (*a, *b)))
    if length == 4 and max(map(abs, added(b))) > 1:
        # At 120° from a, the sum of both is the third side of a triangle.
        b = tuple(-j for j in b)
    both = added(b)
    groups = [(1, (zero,)), (-1, (zero, a)), (-1, (zero, b))]
    if length < 4:
        return [*groups, (1, (zero, a, b, both))]
    return [*groups, (-1, (zero, both)), (1, (zero, a, both)), (1, (zero, b, both))]


def _shares(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the part of the circle or sphere that is nearest to each direction or its opposite."""
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    units = np.concatenate([units, -units])
    if units.shape[1] == 2:
        angles = np.arctan2(units[:, 1], units[:, 0])
        order = np.argsort(angles)
        gaps = np.diff(angles[order], append=angles[order[0]] + 2 * math.pi)
        shares = np.empty(len(units))
        shares[order] = (gaps + np.roll(gaps, 1)) / (4 * math.pi)
    else:
        shares = np.array([_solid_angle(unit, units) for unit in units]) / (4 * math.pi)
    half = len(vectors)
    return shares[:half] + shares[half:]


def _solid_angle(unit: NDArray[np.float64], units: NDArray[np.float64]) -> float:
    """Return the solid angle of the directions that are nearer to `unit` than to the others.

    It is a polygon on the sphere, which is cut into triangles at `unit`. Their solid angles are
    those of van Oosterom and Strackee.
    """
    sides = unit - units[(units != unit).any(axis=1)]
    i, j = np.triu_indices(len(sides), 1)
    corners = np.cross(sides[i], sides[j])
    lengths = np.linalg.norm(corners, axis=1)
    corners = corners[lengths > 1e-9] / lengths[lengths > 1e-9, None]
    corners = np.concatenate([corners, -corners])
    corners = corners[(corners @ sides.T >= -1e-9).all(axis=1) & (corners @ unit > 0)]
    across = np.cross(unit, np.eye(3)[np.argmin(np.abs(unit))])
    angles = np.arctan2(corners @ np.cross(unit, across), corners @ across)
    corners = corners[np.argsort(angles)]
    total = 0.0
    for b, c in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        volume = abs(float(np.dot(unit, np.cross(b, c))))
        cosines = float(unit @ b + b @ c + c @ unit)
        total += 2 * math.atan2(volume, 1 + cosines)
    return total
