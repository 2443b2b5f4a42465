"""Fields, numbers of cells and probabilities for :mod:`ecc_core.features.gaussian`."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._optional import import_optional
from ecc_core._request.boundary import Boundary, Domain, check_boundary
from ecc_core._request.filtration import as_numbers, check_spacing
from ecc_core._request.masks import as_booleans, check_mask
from ecc_core._request.resources import check_unused
from ecc_core.features._steps import Floats

Mask = NDArray[np.bool_]
Counts = dict[tuple[int, ...], int]

MASKED = Domain(reason="with `mask`")
PRIMES = (2, 3, 5, 7, 11, 13, 17)
"""Numbers whose square roots generate the Richtmyer lattice."""
POINTS = 1 << 15
SHIFTS = 8
"""The points of the lattice of the quasi-Monte Carlo rule, and the number of its random shifts."""
BINS = 1 << 15
"""The bins of the distribution of differences."""
LARGEST_DIFFERENCE = 9.0
"""The end of the last bin, in standard deviations. Larger differences are counted there."""
LEAST_EIGENVALUE = 1e-12
"""The number that is added to the eigenvalues of a correlation matrix, which may be singular."""
MOST_LOST_VARIANCE = 1e-3
"""The largest fraction of the variance that simulation on a torus may lose."""


class Field:
    """A stationary Gaussian field of mean 0 on a grid.

    The attribute `correlation` is the correlation matrix of the corners of a cell.
    """

    def __init__(
        self, covariance: Any, shape: tuple[int, ...], spacing: Any, boundary: Boundary
    ) -> None:
        self.shape = shape
        self.boundary = boundary
        self._function = covariance if callable(covariance) else None
        if self._function is None:
            check_unused("with an array of covariances", spacing=spacing)
            self._torus = as_numbers(covariance, "covariance").astype(np.float64)
            got = self._torus.shape
            if not _fits(got, shape, boundary.wraps):
                what = "the shape" if all(boundary.wraps) else "at least the shape"
                if any(boundary.wraps) and not all(boundary.wraps):
                    what += ", and along periodic axes the length, of"
                raise ValueError(f"`covariance` must have {what} {shape}, got {got}")
        else:
            self._steps = check_spacing(spacing, len(shape))
        corners = np.array(list(product([0, 1], repeat=len(shape))))
        lags = corners[:, None] - corners
        found = self._covariances(lags)
        self.variance = check_positive(found[0, 0], "the variance in `covariance`")
        self.correlation = found / self.variance
        if not np.isfinite(found).all() or np.linalg.eigvalsh(self.correlation)[0] < -1e-9:
            raise ValueError("`covariance` must be positive semi-definite and finite, got another")

    def _covariances(self, lags: Any) -> Floats:
        """Return the covariances (...) of points at lags (..., d), in points."""
        if self._function is None:
            along = np.moveaxis(lags, -1, 0)
            index = tuple(lag % n for lag, n in zip(along, self._torus.shape, strict=True))
            result: Floats = self._torus[index]
            return result
        lags = np.asarray(lags * self._steps, np.float64)
        found = np.asarray(self._function(lags), np.float64)
        if found.shape != lags.shape[:-1]:
            raise ValueError(
                f"`covariance` must return shape {lags.shape[:-1]} for lags of shape {lags.shape}, "
                f"got {found.shape}"
            )
        return found

    def simulate(self, count: int, rng: np.random.Generator) -> Iterator[Floats]:
        """Yield independent samples of the field."""
        if self._function is None:
            torus = self._torus
        else:
            pairs = zip(self.shape, self.boundary.wraps, strict=True)
            sizes = [n if touch else 2 * n for n, touch in pairs]
            along = [_lags_around(n) for n in sizes]
            torus = self._covariances(np.stack(np.meshgrid(*along, indexing="ij"), axis=-1))
        spectrum = np.fft.fftn(torus).real
        half = torus.shape[-1] // 2 + 1
        lost = -spectrum[spectrum < 0].sum() / spectrum[spectrum > 0].sum()
        if lost > MOST_LOST_VARIANCE:
            raise ValueError(
                "`covariance` must be that of a field on a torus to simulate `replicas`: it should "
                f"decay within the image, got a negative part of {lost:.2g} of the variance"
            )
        amplitude = np.sqrt(np.clip(spectrum[..., :half], 0, None))
        axes = range(torus.ndim)
        window = tuple(map(slice, self.shape))
        for _ in range(count):
            noise = np.fft.rfftn(rng.standard_normal(torus.shape))
            yield np.fft.irfftn(noise * amplitude, torus.shape, axes)[window]


def _fits(got: tuple[int, ...], shape: tuple[int, ...], wraps: tuple[bool, ...]) -> bool:
    """Whether the shape `got` of a torus is large enough for a field of a shape."""
    if len(got) != len(shape):
        return False
    axes = zip(got, shape, wraps, strict=True)
    fits = [m == n if touch else m >= n for m, n, touch in axes]
    return all(fits)


def _lags_around(n: int) -> NDArray[np.int64]:
    """Return the lags 0, 1, ... and then ..., -2, -1 along an axis of a torus."""
    lags: NDArray[np.int64] = np.rint(np.fft.fftfreq(n) * n).astype(int)
    return lags


def lattice_curve(
    u: Floats, correlation: Floats, counts: Counts, cubes: bool, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return the expected curve of sublevel sets at standardised thresholds, and its error."""
    special = import_optional("scipy.special", extra="features", purpose="expected curves")
    corners = np.array(list(counts))
    # The variance of the weighted mean of the corners. It is independent of their differences.
    regular = correlation + LEAST_EIGENVALUE * np.eye(len(corners))
    common = 1 / np.linalg.inv(regular).sum()
    values, vectors = np.linalg.eigh(correlation - common)
    # The lattice is most uniform in its first coordinates, which get the largest eigenvalues.
    order = np.argsort(-values)[: len(corners) - 1]
    factor = vectors[:, order] * np.sqrt(np.clip(values[order], 0, None))
    centres = np.linspace(-LARGEST_DIFFERENCE, LARGEST_DIFFERENCE, BINS)
    # The distribution of the largest difference, added over the kinds of cells.
    weights = np.zeros((SHIFTS, BINS))
    steps = np.arange(1, POINTS + 1)[:, None] * np.sqrt(PRIMES[: len(corners) - 1])
    for row in weights:
        shift = rng.random(len(corners) - 1)
        points = np.abs(2 * ((steps + shift) % 1) - 1)  # The shifted lattice, folded.
        normal = special.ndtri(np.clip(points, 1e-12, 1 - 1e-12))
        differences = normal @ factor.T
        for axes, count in counts.items():
            fixed = corners[:, np.array(axes) == 0]
            faces = list(product([0, 1], repeat=fixed.shape[1]))
            for face in faces:
                largest = differences[:, (fixed == face).all(axis=1)].max(axis=1)
                row += count / len(faces) * _distribution(largest)
    found = weights.any(axis=0)  # Few bins have a weight if neighbours are nearly equal.
    weights = weights[:, found]
    centres = centres[found]
    total = np.empty((SHIFTS, u.size))
    for i, threshold in enumerate(-u if cubes else u):
        total[:, i] = weights @ special.ndtr((threshold - centres) / math.sqrt(common))
    if cubes:  # A face is absent if all cubes that contain it are above the threshold.
        total = sum(counts.values()) - total
    return total.mean(axis=0), total.std(axis=0, ddof=1) / math.sqrt(SHIFTS)


def _distribution(values: Floats) -> Floats:
    """Return the fraction of values in each bin.

    A value between the centres of two bins is divided among them, by linear interpolation.
    """
    clipped = np.clip(values, -LARGEST_DIFFERENCE, LARGEST_DIFFERENCE)
    places = (clipped + LARGEST_DIFFERENCE) * ((BINS - 1) / (2 * LARGEST_DIFFERENCE))
    lower = np.minimum(places.astype(np.int64), BINS - 2)
    above = places - lower
    counts = np.bincount(lower, 1 - above, BINS) + np.bincount(lower + 1, above, BINS)
    return counts / values.size


def count_cells(
    shape: tuple[int, ...], boundary: Boundary, cubes: bool, mask: Mask | None = None
) -> Counts:
    """Return signed numbers of cells, by the axes along which they have two points or cubes.

    With a mask, only cells whose points are all in the mask count.
    """
    kinds = product([0, 1], repeat=len(shape))
    if mask is not None:
        return {axes: (-1) ** sum(axes) * _cells_within(mask, axes) for axes in kinds}
    check_boundary(boundary.name)
    sign = -1 if cubes else 1
    one = []  # The signed number of cells with one point or cube, along each axis.
    two = []  # The signed number of cells with two.
    for n, border in zip(shape, boundary.axes, strict=True):
        # Faces between two cubes count, and outer ones if the border is closed.
        closed = border.is_closed
        pairs = n - 1 if closed else n - border.missing
        one.append(sign * pairs + closed)
        two.append(-sign * pairs)
    along = np.array([one, two], dtype=object)  # Python integers do not overflow.
    numbers = np.arange(len(shape))
    return {axes: math.prod(along[list(axes), numbers]) for axes in kinds}


def _cells_within(mask: Mask, axes: tuple[int, ...]) -> int:
    for axis in np.flatnonzero(axes):
        pairs = mask.shape[axis] - 1
        low = np.take(mask, range(pairs), axis)
        high = np.take(mask, range(1, pairs + 1), axis)
        mask = low & high
    return int(mask.sum())


def kinematic_curve(u: Floats, counts: Counts, spacing: Floats, moments: Floats) -> Floats:
    """Return the expected curve of superlevel sets of a smooth field of mean 0 and variance 1.

    `counts` are the numbers of cells between points.
    """
    special = import_optional("scipy.special", extra="features", purpose="expected curves")
    expected = np.zeros(u.size)
    for chosen in counts:
        axes = np.flatnonzero(chosen)
        j = axes.size
        with_these = [n for cell, n in counts.items() if np.all(np.take(cell, axes))]
        boxes = (-1) ** j * sum(with_these)
        if j == 0:
            expected += boxes * special.ndtr(-u)
            continue
        determinant = np.linalg.det(moments[np.ix_(axes, axes)])
        stretch = math.sqrt(max(determinant, 0))
        volume = boxes * np.prod(spacing[axes]) * stretch
        hermite = special.eval_hermitenorm(j - 1, u)
        density = (2 * np.pi) ** (-(j + 1) / 2) * np.exp(-(u**2) / 2)
        expected += volume * hermite * density
    return expected


def check_region(mask: Any, shape: tuple[int, ...], boundary: Boundary) -> Mask | None:
    """Return the checked mask of the points to use. It requires a closed boundary."""
    if mask is None:
        return None
    array = np.asarray(mask)
    check_mask(array.shape, array.dtype, shape, shape)
    check_boundary(boundary.name, MASKED)
    return as_booleans(array)


def check_real(number: Any, name: str) -> float:
    array = as_numbers(number, name)
    if array.ndim or not np.isfinite(array):
        raise ValueError(f"`{name}` must be a finite number, got {number!r}")
    return float(array)


def check_positive(number: Any, name: str) -> float:
    real = check_real(number, name)
    if real <= 0:
        raise ValueError(f"`{name}` must be positive, got {number!r}")
    return real


def check_moments(moments: Any, ndim: int) -> Floats:
    array = as_numbers(moments, "spectral_moments").astype(np.float64)
    if array.ndim < 2 and array.shape in ((), (1,), (ndim,)):
        array = np.diag(np.broadcast_to(array, (ndim,)))
    if array.shape != (ndim, ndim):
        raise ValueError(
            f"`spectral_moments` must be a number, or of shape ({ndim},) or ({ndim}, {ndim}), "
            f"got {array.shape}"
        )
    symmetric = np.isfinite(array).all() and np.allclose(array, array.T)
    if not symmetric or np.linalg.eigvalsh(array)[0] < 0:
        raise ValueError("`spectral_moments` must be symmetric, finite and positive semi-definite")
    return array
