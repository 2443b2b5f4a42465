"""Measurements of the objects of a Labels layer."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ecc_core as ecc
from ecc_core import RegionCurves
from napari_ecc._controller.layers import Part, selection_of, snapshot
from napari_ecc._controller.loading import Level, fitting_level, load
from napari_ecc._controller.region_features import merged
from napari_ecc._controller.region_masks import matching_level
from napari_ecc._model.compare import Curves
from napari_ecc._model.regions import (
    Basis,
    Components,
    Regions,
    feature_columns,
    principal_components,
)
from napari_ecc._workers import Job, Step

__all__ = ["frame_of", "measure_job", "named_curves", "object_curves_job"]

MOST_OBJECTS = 100_000
ESTIMATORS: dict[int, Any] = {2: "crofton-4", 3: "crofton-13"}
"""Estimators of Minkowski functionals, suited to smooth sets, by the number of axes."""


def frame_of(part: Part) -> int | None:
    """Return the frame of a part of a time series; None if it is not one."""
    places = [at for at in part if not isinstance(at, slice)]
    return places[0] if len(places) == 1 else None


def _levels(labels: Any, image: Any, part: Part) -> tuple[Level, Level | None]:
    """Return copies of the objects and of the image, because the user may paint on the layers."""
    selection = selection_of(labels, part)
    objects = fitting_level(selection, labels.name)
    values = None if image is None else matching_level(labels, selection, objects, image)
    return _copied(objects), None if values is None else _copied(values)


def _copied(level: Level) -> Level:
    return level._replace(array=snapshot(level.array))


def _objects(level: Level, name: str) -> Generator[Step, None, NDArray[Any]]:
    labels = yield from load(level.array)
    if not labels.any():
        raise ValueError(f"“{name}” has no objects here.")
    return labels


def object_curves_job(labels: Any, image: Any, *, part: Part, thresholds: int, **sets: Any) -> Job:
    """Return the job of the `ecc_core.RegionCurves` of layers in their current state."""
    objects, values = _levels(labels, image, part)
    assert values is not None
    name = labels.name

    def compute() -> Iterator[Step]:
        found = yield from _objects(objects, name)
        loaded = yield from load(values.array)
        yield Step(ecc.region_curves(loaded, found, thresholds, **sets))

    return compute


def named_curves(curves: RegionCurves, name: str, frame: int | None) -> Curves:
    """The curve of each object by a name: the layer's, the frame, and the label."""
    at = "" if frame is None else f" frame {frame}"
    return {f"{name}{at} {label}": curves.select(label) for label in curves.labels.tolist()}


def measure_job(
    labels: Any,
    image: Any = None,
    *,
    features: Any,
    part: Part,
    thresholds: int,
    directions: int,
    heights: int,
    betti: bool,
    minkowski: bool,
    superlevel: bool,
    connectivity: int | None,
) -> Job:
    """Return the job that measures the objects of layers in their current state.

    Curves, Betti curves and Minkowski functionals come first, then transforms, then components. The
    value of the last step is a pair: a `Regions`, and `features` with those of its objects.
    """
    objects, values = _levels(labels, image, part)
    name = labels.name

    def compute() -> Iterator[Step]:
        found = yield from _objects(objects, name)
        curves = of_betti = of_minkowski = None
        of_image, levels, above = found != 0, np.ones(1), True
        if values is not None:
            of_image = yield from load(values.array)
            curves = ecc.region_curves(
                of_image, found, thresholds, superlevel=superlevel, connectivity=connectivity
            )
            levels, above = curves.thresholds, superlevel
        sets: Any = {"superlevel": above, "connectivity": connectivity}
        if betti:
            of_betti = ecc.region_betti_curves(of_image, found, levels, **sets)
        if minkowski:
            how = {"spacing": objects.spacing, "estimator": ESTIMATORS[found.ndim]}
            of_minkowski = ecc.region_minkowski(of_image, found, levels, **how, **sets)
        count = len(np.unique(found)) - int(not found.all())
        if count > MOST_OBJECTS:
            raise ValueError(f"“{name}” must have at most {MOST_OBJECTS:,} objects, got {count:,}")
        yield Step(None, 1, 3)
        transforms = ecc.region_transforms(
            found,
            directions,
            heights,
            connectivity=connectivity,
            spacing=objects.spacing,
            normalize="radius",
        )
        yield Step(None, 2, 3)
        components: dict[Basis, Components] = {}
        if curves is not None:
            components["curves"] = principal_components(curves.values)
        components["transforms"] = principal_components(transforms.values.reshape(count, -1))
        regions = Regions(curves, of_betti, of_minkowski, transforms, components)
        columns = feature_columns(regions)
        yield Step((regions, merged(features, regions.labels, columns, frame_of(part))), 3, 3)

    return compute
