"""Measurements of the objects of a Labels layer."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

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
from napari_ecc._workers import Step

__all__ = [
    "Measure",
    "compute_object_curves",
    "frame_of",
    "measure",
    "measure_of",
    "named_curves",
]

MOST_OBJECTS = 100_000
ESTIMATORS: dict[int, Any] = {2: "crofton-4", 3: "crofton-13"}
"""Estimators of Minkowski functionals, suited to smooth sets, by the number of axes."""


def frame_of(part: Part) -> int | None:
    """Return the frame of a part of a time series; None if it is not one."""
    places = [at for at in part if not isinstance(at, slice)]
    return places[0] if len(places) == 1 else None


class Measure(NamedTuple):
    """Everything that a measurement depends on; see `region_table` for the options."""

    image: Level | None
    labels: Level
    name: str
    frame: int | None
    thresholds: int
    superlevel: bool
    connectivity: int | None
    directions: int = 1
    heights: int = 2
    betti: bool = False
    minkowski: bool = False


def measure_of(labels: Any, image: Any = None, *, part: Part, **options: Any) -> Measure:
    """Return the request for layers in their current state; see `region_table`."""
    objects = selection_of(labels, part)
    found = _copied(fitting_level(objects, labels.name))
    other = None if image is None else _copied(matching_level(labels, objects, found, image))
    return Measure(other, found, labels.name, frame_of(part), **options)


def _copied(level: Level) -> Level:
    """Return the request with a copy of the array, because the user may paint on the layer."""
    return level._replace(array=snapshot(level.array))


def compute_object_curves(what: Measure) -> Iterator[Step]:
    """Compute the curves; the last step yields an `ecc_core.RegionCurves`."""
    assert what.image is not None
    labels = yield from _objects(what)
    image = yield from load(what.image.array)
    yield Step(_curves(what, image, labels))


def named_curves(curves: RegionCurves, name: str, frame: int | None) -> Curves:
    """The curve of each object by a name: the layer's, the frame, and the label."""
    at = "" if frame is None else f" frame {frame}"
    return {f"{name}{at} {label}": curves.select(label) for label in curves.labels.tolist()}


def _objects(what: Measure) -> Generator[Step, None, NDArray[Any]]:
    labels = yield from load(what.labels.array)
    if not labels.any():
        raise ValueError(f"“{what.name}” has no objects here.")
    return labels


def _curves(what: Measure, image: NDArray[Any], labels: NDArray[Any]) -> RegionCurves:
    return ecc.region_curves(
        image,
        labels,
        what.thresholds,
        superlevel=what.superlevel,
        connectivity=what.connectivity,
    )


def measure(what: Measure, features: Any) -> Iterator[Step]:
    """Curves, Betti curves and Minkowski functionals, then transforms, then components.

    The value of the last step is a pair: a `Regions`, and the features with those of its objects.
    """
    labels = yield from _objects(what)
    curves = betti = minkowski = None
    image, thresholds, superlevel = labels != 0, np.ones(1), True
    if what.image is not None:
        image = yield from load(what.image.array)
        curves = _curves(what, image, labels)
        thresholds, superlevel = curves.thresholds, what.superlevel
    sets: Any = {"superlevel": superlevel, "connectivity": what.connectivity}
    if what.betti:
        betti = ecc.region_betti_curves(image, labels, thresholds, **sets)
    if what.minkowski:
        minkowski = ecc.region_minkowski(
            image,
            labels,
            thresholds,
            spacing=what.labels.spacing,
            estimator=ESTIMATORS[labels.ndim],
            **sets,
        )
    count = len(np.unique(labels)) - int(not labels.all())
    if count > MOST_OBJECTS:
        raise ValueError(f"“{what.name}” must have at most {MOST_OBJECTS:,} objects, got {count:,}")
    yield Step(None, 1, 3)
    transforms = ecc.region_transforms(
        labels,
        what.directions,
        what.heights,
        connectivity=what.connectivity,
        spacing=what.labels.spacing,
        normalize="radius",
    )
    yield Step(None, 2, 3)
    of_transforms = principal_components(transforms.values.reshape(count, -1))
    components: dict[Basis, Components] = {"transforms": of_transforms}
    if curves is not None:
        components = {"curves": principal_components(curves.values), **components}
    regions = Regions(curves, betti, minkowski, transforms, components)
    columns = feature_columns(regions)
    yield Step((regions, merged(features, regions.labels, columns, what.frame)), 3, 3)
