"""Directional curves and transforms of a layer, as the direction, the set or the slice changes."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import ecc_core as ecc
from ecc_core import EulerCurve, EulerTransform
from napari_ecc._controller.direction_arrow import DirectionArrow
from napari_ecc._controller.layers import Selection, layer_named, problem_with, select
from napari_ecc._controller.loading import Level, fitting_level, load
from napari_ecc._controller.session import Session
from napari_ecc._model.directions import DirectionModel, Filtration
from napari_ecc._workers import Runner, Step

__all__ = ["DirectionController"]

Floats = NDArray[np.float64]

POINTS_A_CALL = 2**27
"""Points times directions of one call, between which a job can be cancelled."""


class Sweep(NamedTuple):
    """All that a curve or a transform depends on, but for the directions."""

    source: tuple[Any, ...]
    level: Level
    filtration: Filtration
    threshold: float
    superlevel: bool
    connectivity: int
    tilt: float
    n_heights: int

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for sweeps of equal results."""
        of_filtration = self.threshold if self.filtration == "height" else self.tilt
        chosen = (self.filtration, of_filtration, self.superlevel, self.connectivity)
        return (*self.source, *chosen, self.n_heights)


class _Held:
    """What the worker keeps from one job to the next; jobs run one at a time."""

    def __init__(self) -> None:
        self._source: tuple[Any, ...] = ()
        self._image: NDArray[Any] = np.zeros((0, 0))
        self._range: tuple[float, float] | None = None
        self._set_key: tuple[Any, ...] = ()
        self._set: NDArray[np.bool_] = np.zeros((0, 0), dtype=np.bool_)

    def image(self, sweep: Sweep) -> Generator[Step, None, NDArray[Any]]:
        """The image in memory."""
        if self._source != sweep.source:
            self._source, self._range, self._set_key = (), None, ()
            self._image = yield from load(sweep.level.array)
            self._source = sweep.source
        return self._image

    def set_at(self, sweep: Sweep, image: NDArray[Any]) -> NDArray[np.bool_]:
        """The set at the threshold."""
        key = (sweep.threshold, sweep.superlevel)
        if self._set_key != key:
            above = sweep.superlevel
            self._set = image >= sweep.threshold if above else image <= sweep.threshold
            self._set_key = key
        return self._set

    def range(self, image: NDArray[Any]) -> tuple[float, float]:
        """Least and greatest finite value."""
        if self._range is None:
            ends = ecc.euler_curve(image, 2, nan="omit").thresholds
            self._range = float(ends[0]), float(ends[1])
        return self._range


class _Result(NamedTuple):
    """What is known after a step; rows are None as long as there is none."""

    curve: EulerCurve
    rows: Floats | None


def _curves(sweep: Sweep, held: _Held, image: NDArray[Any], directions: Floats) -> EulerTransform:
    """The exact curves of directions."""
    spacing, connectivity = sweep.level.spacing, sweep.connectivity
    if sweep.filtration == "height":
        return ecc.euler_transform(
            held.set_at(sweep, image),
            directions,
            sweep.n_heights,
            connectivity=connectivity,
            spacing=spacing,
        )
    low, high = held.range(image)
    reach = abs(sweep.tilt) * float(np.linalg.norm(np.array(image.shape) * spacing / 2))
    curves = [
        ecc.euler_curve(
            image,
            sweep.n_heights,
            range=(low - reach, high + reach),
            connectivity=connectivity,
            superlevel=sweep.superlevel,
            nan="omit",
            direction=direction,
            direction_scale=sweep.tilt,
            spacing=spacing,
        )
        for direction in directions
    ]
    return EulerTransform(
        directions, curves[0].thresholds, np.stack([curve.values for curve in curves])
    )


def _compute(
    sweep: Sweep, held: _Held, direction: Floats, circle: Floats, rows: Floats
) -> Iterator[Step]:
    """The curve of a direction first, then the rows of the transform that are not known."""
    image = yield from held.image(sweep)
    first = _curves(sweep, held, image, direction[None])
    curve = EulerCurve(first.heights, first.values[0])
    missing = np.flatnonzero(np.isnan(rows).any(axis=1))
    if missing.size == 0:
        yield Step(_Result(curve, rows))
        return
    known = rows.copy() if missing.size < len(rows) else None
    yield Step(_Result(curve, known), 0, missing.size)
    at_once = max(1, POINTS_A_CALL // max(image.size, 1)) if sweep.filtration == "height" else 1
    for start in range(0, missing.size, at_once):
        part = missing[start : start + at_once]
        rows[part] = _curves(sweep, held, image, circle[part]).values
        yield Step(_Result(curve, rows.copy()), start + part.size, missing.size)


class DirectionController:
    """Keeps a `DirectionModel` up to date with the viewer.

    A change of the direction alone computes one curve; a change of the set, the slice or the
    elevation computes the transform, too, after the curve. Both are exact.

    Parameters
    ----------
    session : Session

    Attributes
    ----------
    model : DirectionModel
    runner : Runner
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.viewer = session.viewer
        self.model = DirectionModel()
        self.runner = Runner("Euler transform")
        self.arrow = DirectionArrow(self.viewer, self.model.point, self._arrow_removed)
        self._held = _Held()
        self._version = 0
        self._layer: Any = None
        self._where: tuple[Any, ...] = ()
        self._sweep: Sweep | None = None
        self._rows_key: tuple[Any, ...] = ()
        self._rows: Floats = np.zeros((0, 0))
        session.explorer.events.image.connect(self._change_layer)
        for signal in self._explorer_signals():
            signal.connect(self.request)
        for name in ("filtration", "tilt", "n_directions", "n_heights", "show_arrow"):
            getattr(self.model.events, name).connect(self.request)
        self.model.turned.connect(self.request)
        for event in self._dims_events():
            event.connect(self._on_dims)
        session.controllers["directions"] = self
        self._change_layer()

    def close(self) -> None:
        """Stop, let go of the viewer, and take the arrow away."""
        self.runner.close()
        for event in self._dims_events():
            event.disconnect(self._on_dims)
        self.session.explorer.events.image.disconnect(self._change_layer)
        for signal in self._explorer_signals():
            signal.disconnect(self.request)
        self._watch(None)
        self.arrow.close()

    def request(self, *_: Any) -> None:
        """Compute what is not known of the present state."""
        layer = self._layer
        problem = problem_with(layer) if layer is not None else "Choose an Image layer."
        if problem:
            self._show_nothing(problem)
            return
        explorer, model = self.session.explorer, self.model
        selection = select(self.viewer, layer, explorer.scope)
        try:
            level = fitting_level(selection, layer.name)
        except ValueError as error:
            self._show_nothing(str(error))
            return
        if math.isnan(explorer.threshold):
            explorer.threshold = float(np.mean(layer.contrast_limits))  # asks again
            return
        self._where = selection.where
        model.ndim = len(selection.axes)
        self._sweep = sweep = self._sweep_of(selection, level)
        circle = model.directions
        rows_key = (*sweep.key, *circle.ravel().tolist())
        if rows_key != self._rows_key:
            self._rows_key = rows_key
            self._rows = np.full((len(circle), sweep.n_heights), np.nan)
        job = partial(_compute, sweep, self._held, model.direction, circle, self._rows.copy())
        self.runner.submit(job, partial(self._on_step, circle))
        self._place_arrow(selection)

    def cancel(self) -> None:
        """Leave the transform as far as it is known."""
        self.runner.cancel()
        self.model.status = "Cancelled."

    def _sweep_of(self, selection: Selection, level: Level) -> Sweep:
        explorer, model = self.session.explorer, self.model
        where = tuple(i for i in selection.where if not isinstance(i, slice))
        return Sweep(
            source=(self._version, selection.axes, where, *level.array.shape, *level.spacing),
            level=level,
            filtration=model.filtration,
            threshold=explorer.threshold,
            superlevel=explorer.superlevel,
            connectivity=len(selection.axes) if explorer.diagonals else 1,
            tilt=model.tilt,
            n_heights=model.n_heights,
        )

    def _on_step(self, circle: Floats, step: Step) -> None:
        if step.value is None:
            return
        curve, rows = step.value
        self.model.curve = curve
        if rows is not None:
            self._rows = rows
            self.model.transform = EulerTransform(circle, curve.thresholds, rows)
        note = self._sweep.level.note if self._sweep is not None else ""
        self.model.status = f"Exact, {note}." if note else "Exact."

    def _show_nothing(self, why: str) -> None:
        self.runner.cancel()
        self.arrow.hide()
        self._sweep, self._rows_key = None, ()
        self.model.curve = self.model.transform = None
        self.model.status = why

    def _change_layer(self, *_: Any) -> None:
        """Follow the explorer to another layer, or to none."""
        self._watch(layer_named(self.viewer, self.session.explorer.image))
        self._on_data()

    def _watch(self, layer: Any | None) -> None:
        for event, react in (("data", self._on_data), ("scale", self.request)):
            if self._layer is not None:
                getattr(self._layer.events, event).disconnect(react)
            if layer is not None:
                getattr(layer.events, event).connect(react)
        self._layer = layer

    def _on_data(self, *_: Any) -> None:
        self._version += 1
        self.request()

    def _on_dims(self, *_: Any) -> None:
        """React to another slice, but not to what the arrow's own layer makes of the sliders."""
        if self._sweep is None:
            return
        selection = select(self.viewer, self._layer, self.session.explorer.scope)
        if selection.where != self._where:
            self.request()

    def _explorer_signals(self) -> list[Any]:
        events = self.session.explorer.events
        return [events.scope, events.threshold, events.superlevel, events.diagonals]

    def _dims_events(self) -> list[Any]:
        events = self.viewer.dims.events
        return [events.current_step, events.order]

    def _place_arrow(self, selection: Selection) -> None:
        if self.model.show_arrow:
            self.arrow.show(self._layer, selection, self.model.direction)
        else:
            self.arrow.hide()

    def _arrow_removed(self) -> None:
        self.model.show_arrow = False
