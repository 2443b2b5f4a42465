"""Directional curves and transforms of a layer, as the direction, the set or the slice changes."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pandas import DataFrame
from psygnal import Signal
from superqt.utils import qthrottled

import ecc_core as ecc
from napari_ecc._controller.direction_overlays import DirectionArrow, HeightMarker
from napari_ecc._controller.docks import DockController, call
from napari_ecc._controller.fields import Field
from napari_ecc._controller.layers import (
    Part,
    Selection,
    contrast_limits,
    describe,
    fitting_level,
    levels_of,
    problem_with,
    selection_of,
    values_of,
)
from napari_ecc._controller.loading import load, prepared, warm
from napari_ecc._controller.set_overlay import SetOverlay
from napari_ecc._model.directions import DirectionModel
from napari_ecc._model.levels import stepped
from napari_ecc._workers import Step

Floats = NDArray[np.float64]
ARROW_EVERY = 30
"""Milliseconds between two moves of the arrow, so that the curve is redrawn first."""
POINTS_A_CALL = 2**30
"""Largest product of points and directions in one call: a job can be cancelled between calls."""


class Sweep(NamedTuple):
    """Everything that a curve or a transform depends on, except for the directions."""

    version: int  # of the data
    selection: Selection
    level: Selection  # the resolution of it that is swept
    heights: int  # their number
    threshold: float | None  # of the set; None: a plane is added to the image instead
    slope: float | None  # of that plane
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
        array, spacing = self.level.full, self.level.spacing
        return (self.version, self.selection.axes, where, *array.shape, *spacing)

    @property
    def key(self) -> tuple[Any, ...]:
        """Return a key that is equal for sweeps with equal results."""
        return (*self.source, *self[3:])


def sweep_of(layer: Any, part: Part, version: int = 0, **options: Any) -> Sweep:
    """Return the sweep of a part of a layer in its current state, with `Sweep.options`."""
    selection = values_of(layer, selection_of(layer, part))
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
    spacing, connectivity = sweep.level.spacing, sweep.connectivity
    if sweep.threshold is not None:
        return ecc.euler_transform(
            swept.set_at(sweep.threshold, sweep.superlevel),
            directions,
            sweep.heights,
            connectivity=connectivity,
            spacing=spacing,
        )
    image, (low, high), slope = swept.field.data, swept.field.range, sweep.slope or 0.0
    reach = abs(slope) * float(np.linalg.norm(np.array(image.shape) * spacing / 2))
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


class Limits(NamedTuple):
    """Properties of a layer that the controls need."""

    low: float = 0.0
    high: float = 1.0
    whole: bool = False
    """Its values are integers."""
    diameter: float = 1.0
    """Of the displayed plane, in world units."""
    unit: str = "pixel"


class DirectionController(DockController):
    """Keeps a `DirectionModel` up to date with the viewer.

    A change of the direction alone computes one curve; a change of the set, the slice or the
    elevation computes the transform, too, after the curve. Both are exact.
    """

    limits_changed = Signal()  # another layer, or other data
    model: DirectionModel

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, "directions", "Euler transform")
        warm(("sweep", "uint8", 2))
        self.model = DirectionModel()
        explorer, model = self.session.explorer, self.model
        self.arrow = DirectionArrow(
            viewer, model.point, partial(setattr, model, "show_arrow", False)
        )
        self.marker = HeightMarker(viewer, partial(setattr, model, "height", math.nan))
        self._set = SetOverlay(viewer, partial(setattr, explorer, "show_set", False))
        self._place_arrow = qthrottled(self._draw_arrow, timeout=ARROW_EVERY, leading=False)
        self._links.callback(self._place_arrow.cancel)
        self._cache: Cache = {}
        self._version = 0
        self._layer: Any = None
        self._sweep: Sweep | None = None
        self._rows_key: tuple[Any, ...] = ()
        self._rows: Floats = np.zeros((0, 0))
        self._owned += [self.arrow, self.marker, self._set]
        events = explorer.events
        sets = (events.scope, events.threshold, events.superlevel, events.connectivity)
        settings = ("filtration", "slope", "n_directions", "n_heights", "show_arrow")
        self._links.add(self._change_layer, events.image)
        self._links.add(self.request, events.show_set, events.contour, *sets, model.turned)
        self._links.add(self.request, *(getattr(model.events, name) for name in settings))
        self._links.add(lambda: self._place_arrow(), model.events.height)
        self._change_layer()

    def _start(self) -> None:
        layer, explorer, model = self.checked_layer(), self.session.explorer, self.model
        by_height = model.filtration == "height"
        sweep = sweep_of(
            layer,
            self.part_in_view(layer),
            self._version,
            heights=model.n_heights,
            threshold=explorer.threshold if by_height else None,
            slope=None if by_height else model.slope,
            **explorer.sets,
        )
        selection = sweep.selection
        if math.isnan(explorer.threshold):
            if "explorer" not in self.session.controllers:
                middle = float(np.mean(contrast_limits(layer)))
                explorer.threshold = math.ceil(middle) if layer.dtype.kind in "biu" else middle
            return
        self._sweep, self._part = sweep, selection.where
        model.ndim = len(selection.axes)
        circle = model.directions
        rows_key = (*sweep.key, *circle.ravel().tolist())
        if rows_key != self._rows_key:
            self._rows_key = rows_key
            self._rows = np.full((len(circle), sweep.heights), np.nan)
        if isinstance(selection.full, np.ndarray):  # lazy data are shown once they are read
            self._show_set(selection)
        kind = None if self.runner.running or self._missing() else sweep.key
        rows = self._rows.copy()
        job = partial(compute_sweep, sweep, self._cache, model.direction, circle, rows)
        self.runner.submit(job, partial(self._on_step, circle), kind)
        self._place_arrow()

    def _show_set(self, selection: Selection) -> None:
        """Show the set that is swept, unless the explorer does."""
        explorer = self.session.explorer
        shown = explorer.show_set and "explorer" not in self.session.controllers
        if self.model.filtration != "height" or not shown:
            self._set.remove_soon()
        else:
            settings = replace(explorer, sigma=0.0)
            self._set.show(self._layer, selection, Field(selection.full, None), settings)

    def limits(self) -> Limits:
        """Return the bounds of the values, and the unit of lengths."""
        layer = self._layer
        if layer is None or problem_with(layer):
            return Limits()
        low, high = getattr(layer, "contrast_limits_range", contrast_limits(layer))
        sides = np.array(levels_of(layer)[0].shape[-2:]) * np.abs(layer.scale[-2:])
        whole, unit = layer.dtype.kind in "iu", str(layer.units[-1])
        return Limits(float(low), float(high), whole, float(np.linalg.norm(sides)), unit)

    def _statements(self) -> list[str]:
        sweep, model = self._sweep, self.model
        if sweep is None or model.curve is None:
            return []
        options = {"part": sweep.selection.where, **sweep.options}
        along = {"directions": [model.direction], **options}
        around = {"directions": model.n_directions, "elevation": model.elevation, **options}
        return [
            call("_, levels, (chi,)", "layer_transform", self._layer, **along),
            call("transform", "layer_transform", self._layer, **around),
        ]

    def curve_table(self) -> dict[str, ArrayLike]:
        """Columns of the curve."""
        curve = self.model.curve
        if curve is None:
            raise ValueError("There is no curve yet.")
        return {self._level: curve.thresholds, "euler_number": curve.values}

    def transform_table(self) -> DataFrame:
        """A row for each direction and height."""
        transform = self.model.transform
        if transform is None or self._missing():
            raise ValueError("The transform is not complete yet.")
        whole = replace(transform, values=transform.values.astype(np.int64))
        return whole.to_pandas().rename(columns={"height": self._level})

    @property
    def _level(self) -> str:
        return "height" if self.model.filtration == "height" else "threshold"

    def _on_step(self, circle: Floats, step: Step) -> None:
        if step.value is None:
            return
        curve, rows = step.value
        self.model.curve = curve
        if rows is not None:
            self._rows = rows
            self.model.transform = ecc.EulerTransform(circle, curve.thresholds, rows)
        if self._sweep is None:
            return
        selection, level, missing = self._sweep.selection, self._sweep.level, self._missing()
        size, coarser = describe(level.full.shape), len(selection.levels) - len(level.levels)
        if coarser:
            size = f"level {coarser}, {size} of {describe(selection.full.shape)}"
        whole = f"{size}, {level.full.dtype} · CPU"
        self.model.status = f"Partial: {self._known()} …" if missing else whole
        state = f"{missing} directions missing" if missing else "complete"
        self.show_part(self._layer, selection.where, state)
        if not isinstance(selection.full, np.ndarray):
            self._show_set(selection)

    def _missing(self) -> int:
        """Return the number of missing rows of the transform."""
        return int(np.isnan(self._rows).any(axis=1).sum())

    def _known(self) -> str:
        return f"{len(self._rows) - self._missing()} of {len(self._rows)} directions"

    def _clear(self) -> None:
        self._sweep, self._rows_key = None, ()
        self.arrow.remove()
        self.marker.remove()
        self._set.remove_soon(self.runner)
        self.model.curve = self.model.transform = None

    def _change_layer(self, *_: Any) -> None:
        """Follow the explorer to another layer or to no layer."""
        if self.layer != self._layer:
            self.show_nothing()
        self._layer = self.layer
        self._watch()
        self.refresh()

    def refresh(self, *_: Any) -> None:
        """Compute everything again."""
        self._version += 1
        self._set.refresh()
        self.limits_changed.emit()
        self.request()

    def _on_dims(self, *_: Any) -> None:
        """Follow the sliders, also of axes that the layer does not have."""
        super()._on_dims()
        self._place_arrow()

    def _draw_arrow(self) -> None:
        if self._sweep is None:
            return
        model, place = self.model, (self._layer, self._sweep.selection, self.model.direction)
        self.marker.show(*place, model.height if model.filtration == "height" else math.nan)
        if model.show_arrow:
            self.arrow.show(*place)
        else:
            self.arrow.remove()

    def mark(self, height: float) -> None:
        """Mark the nearest height of the curve."""
        curve = self.model.curve
        if curve is not None and self.model.filtration == "height":
            self.model.height = stepped(curve.thresholds, height)

    def step(self, count: int) -> None:
        """Move the marked height by a number of steps of the curve."""
        curve = self.model.curve
        if curve is not None and not math.isnan(self.model.height):
            self.mark(stepped(curve.thresholds, self.model.height, count))
