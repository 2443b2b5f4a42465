"""Directional curves and transforms of one set or image."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import ecc_core as ecc
from ecc_core import EulerCurve, EulerTransform
from napari_ecc._controller.loading import Level, load
from napari_ecc._model.directions import Filtration
from napari_ecc._workers import Step

__all__ = ["Cache", "Sweep", "compute_sweep", "curves_along"]

Floats = NDArray[np.float64]

AT_ONCE = 0.01
"""Seconds below which a curve is computed in the main thread: redrawing takes longer than that."""

POINTS_A_CALL = 2**30
"""Largest product of points and directions in one call: a job can be cancelled between calls."""


class Sweep(NamedTuple):
    """Everything that a curve or a transform depends on, except for the directions."""

    source: tuple[Any, ...]
    level: Level
    filtration: Filtration
    threshold: float
    superlevel: bool
    connectivity: int | None
    slope: float
    n_heights: int

    @property
    def key(self) -> tuple[Any, ...]:
        """Return a key that is equal for sweeps with equal results."""
        of_filtration = self.threshold if self.filtration == "height" else self.slope
        chosen = (self.filtration, of_filtration, self.superlevel, self.connectivity)
        return (*self.source, *chosen, self.n_heights)


class Cache:
    """State that is reused for the next curve; used by one thread at a time."""

    def __init__(self) -> None:
        self._quick: tuple[Any, ...] = ()
        self._source: tuple[Any, ...] = ()
        self._image: NDArray[Any] = np.zeros((0, 0))
        self._range: tuple[float, float] | None = None
        self._set_key: tuple[Any, ...] = ()
        self._set: NDArray[np.bool_] = np.zeros((0, 0), dtype=np.bool_)

    def image(self, sweep: Sweep) -> Generator[Step, None, NDArray[Any]]:
        """Return the image in memory."""
        if self._source != sweep.source:
            self._source, self._range, self._set_key = (), None, ()
            self._image = yield from load(sweep.level.array)
            self._source = sweep.source
        return self._image

    def set_at(self, sweep: Sweep, image: NDArray[Any]) -> NDArray[np.bool_]:
        """Return the set at the threshold."""
        key = (sweep.threshold, sweep.superlevel)
        if self._set_key != key:
            above = sweep.superlevel
            self._set = image >= sweep.threshold if above else image <= sweep.threshold
            self._set_key = key
        return self._set

    def range(self, image: NDArray[Any]) -> tuple[float, float]:
        """Return the smallest and largest finite value."""
        if self._range is None:
            ends = ecc.euler_curve(image, 2, nan="omit", axis=range(image.ndim)).thresholds
            self._range = float(ends[0]), float(ends[1])
        return self._range

    def curve_at_once(self, sweep: Sweep, direction: Floats) -> EulerCurve | None:
        """Return the curve of a direction if the last one was fast, otherwise None."""
        if self._quick != sweep.key or self._source != sweep.source:
            return None
        return self.curve(sweep, self._image, direction)

    def curve(self, sweep: Sweep, image: NDArray[Any], direction: Floats) -> EulerCurve:
        """Return the exact curve of a direction."""
        start = time.perf_counter()
        _, levels, (values,) = curves_along(sweep, self, image, direction[None])
        quick = time.perf_counter() - start < AT_ONCE
        self._quick = sweep.key if quick else ()
        above = sweep.filtration == "plane" and sweep.superlevel
        return EulerCurve(levels, values, superlevel=above)


def curves_along(
    sweep: Sweep, cache: Cache, image: NDArray[Any], directions: Floats
) -> EulerTransform:
    """Return the exact curves of directions."""
    spacing, connectivity = sweep.level.spacing, sweep.connectivity
    if sweep.filtration == "height":
        return ecc.euler_transform(
            cache.set_at(sweep, image),
            directions,
            sweep.n_heights,
            connectivity=connectivity,
            spacing=spacing,
        )
    low, high = cache.range(image)
    reach = abs(sweep.slope) * float(np.linalg.norm(np.array(image.shape) * spacing / 2))
    curves = [
        ecc.euler_curve(
            image,
            sweep.n_heights,
            range=(low - reach, high + reach),
            connectivity=connectivity,
            superlevel=sweep.superlevel,
            nan="omit",
            axis=range(image.ndim),
            direction=direction,
            direction_scale=sweep.slope,
            spacing=spacing,
        )
        for direction in directions
    ]
    return EulerTransform(
        directions, curves[0].thresholds, np.stack([curve.values for curve in curves])
    )


def compute_sweep(
    sweep: Sweep, cache: Cache, direction: Floats, circle: Floats, rows: Floats
) -> Iterator[Step]:
    """Compute the curve of a direction first, then the missing rows of the transform.

    Yields
    ------
    Step
        Its value is a pair: the curve, and the rows, which are None until there are any.
    """
    image = yield from cache.image(sweep)
    curve = cache.curve(sweep, image, direction)
    missing = np.flatnonzero(np.isnan(rows).any(axis=1))
    if missing.size == 0:
        yield Step((curve, rows))
        return
    known = rows.copy() if missing.size < len(rows) else None
    yield Step((curve, known), 0, missing.size)
    at_once = max(1, POINTS_A_CALL // max(image.size, 1)) if sweep.filtration == "height" else 1
    for start in range(0, missing.size, at_once):
        part = missing[start : start + at_once]
        rows[part] = curves_along(sweep, cache, image, circle[part]).values
        yield Step((curve, rows.copy()), start + part.size, missing.size)
