"""Directional curves and transforms of one set or image, also for scripts without a window."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import ecc_core as ecc
from napari_ecc._controller.fields import Field
from napari_ecc._controller.layers import Part, Selection, fitting_level, selection_of, values_of
from napari_ecc._controller.loading import load, prepared
from napari_ecc._workers import Step

Floats = NDArray[np.float64]
POINTS_A_CALL = 2**30
"""Largest product of points and directions in one call: a job can be cancelled between calls."""


class Sweep(NamedTuple):
    """Everything that a curve or a transform depends on, except for the directions."""

    version: int
    """The version of the data."""
    selection: Selection
    level: Selection
    """The resolution that is swept."""
    heights: int
    """Their number."""
    threshold: float | None
    """The threshold of the set; None: a plane is added to the image instead."""
    slope: float | None
    """The slope of that plane."""
    superlevel: bool
    connectivity: int | None

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `napari_ecc.actions.layer_transform` besides layer, part and directions."""
        return dict(zip(self._fields[3:], self[3:], strict=True))

    @property
    def source(self) -> tuple[Any, ...]:
        """Return a key that is equal for sweeps of equal images."""
        where = tuple(at for at in self.selection.where if not isinstance(at, slice))
        array = self.level.full
        spacing = self.level.spacing
        return (self.version, self.selection.axes, where, *array.shape, *spacing)

    @property
    def key(self) -> tuple[Any, ...]:
        """Return a key that is equal for sweeps with equal results."""
        return (*self.source, *self[3:])


def sweep_of(layer: Any, part: Part, version: int = 0, **options: Any) -> Sweep:
    """Return the sweep of a part of a layer in its current state, with `Sweep.options`."""
    selection = values_of(layer, selection_of(layer, part))
    selection.check_lengths()
    return Sweep(version, selection, fitting_level(selection, layer.name), **options)


class Swept:
    """An image in memory, and what is reused for its next curve; used by one thread at a time."""

    def __init__(self, image: NDArray[Any]) -> None:
        self.field = Field(image, None)
        self.set_at = lru_cache(maxsize=1)(self.field.inside)


Cache = dict[tuple[Any, ...], Swept]
"""The image of the last sweep, by its source."""


def curves_along(sweep: Sweep, swept: Swept, directions: Floats) -> ecc.EulerTransform:
    """Return the exact curves of directions."""
    spacing = sweep.level.spacing
    connectivity = sweep.connectivity
    if sweep.threshold is not None:
        return ecc.euler_transform(
            swept.set_at(sweep.threshold, sweep.superlevel),
            directions,
            sweep.heights,
            connectivity=connectivity,
            spacing=spacing,
        )
    image = swept.field.data
    low, high = swept.field.range
    slope = sweep.slope or 0.0
    extent = np.array(image.shape) * spacing
    radius = float(np.linalg.norm(extent / 2))
    reach = abs(slope) * radius
    curves = [
        ecc.euler_curve(
            image,
            sweep.heights,
            range=(low - reach, high + reach),
            connectivity=connectivity,
            superlevel=sweep.superlevel,
            nan="omit",
            axis=range(image.ndim),
            direction=direction,
            direction_scale=slope,
            spacing=spacing,
        )
        for direction in directions
    ]
    return ecc.EulerTransform(
        directions, curves[0].thresholds, np.stack([curve.values for curve in curves])
    )


def compute_sweep(
    sweep: Sweep, cache: Cache, direction: Floats, circle: Floats, rows: Floats
) -> Iterator[Step]:
    """Compute the curve of a direction first, then the missing rows of the transform.

    The value of a step is a pair: the curve, and the rows, which are None unless there are new
    ones.
    """
    yield from prepared("sweep", sweep.level.full)
    source = sweep.source
    if source not in cache:
        cache.clear()
        cache[source] = Swept((yield from load(sweep.level.full)))
    swept = cache[source]
    _, levels, (values,) = curves_along(sweep, swept, direction[None])
    curve = ecc.EulerCurve(levels, values, superlevel=sweep.threshold is None and sweep.superlevel)
    missing = np.flatnonzero(np.isnan(rows).any(axis=1))
    known = rows.copy() if 0 < missing.size < len(rows) else None
    yield Step((curve, known), 0, missing.size)
    points = max(swept.field.data.size, 1)
    at_once = 1 if sweep.threshold is None else max(1, POINTS_A_CALL // points)
    for start in range(0, missing.size, at_once):
        part = missing[start : start + at_once]
        rows[part] = curves_along(sweep, swept, circle[part]).values
        yield Step((curve, rows.copy()), start + part.size, missing.size)
