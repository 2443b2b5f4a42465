"""Jobs of two channels: the surface, and the points in both sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import ecc_core as ecc
from ecc_core import EulerSurface
from napari_ecc._controller.layers import Part, Selection, selection_of, values_of
from napari_ecc._controller.loading import WORKERS, Level, fitting_level, load
from napari_ecc._controller.region_masks import matching_level
from napari_ecc._workers import Step

__all__ = ["Channels", "Surface", "channels_of", "compute_surface"]


class Channels(NamedTuple):
    """The arguments of a surface."""

    selection: Selection
    """Of the first layer."""
    first: Level
    second: Level
    thresholds: int
    superlevel: tuple[bool, bool]
    connectivity: int | None


class Surface(NamedTuple):
    """A surface and the images that it is of."""

    values: EulerSurface
    images: tuple[NDArray[Any], NDArray[Any]]

    def both(self, place: tuple[float, float]) -> NDArray[np.bool_]:
        """Return the points in both sets at a pair of thresholds."""
        inside = [
            image >= t if above else image <= t
            for image, t, above in zip(self.images, place, self.values.superlevel, strict=True)
        ]
        result: NDArray[np.bool_] = inside[0] & inside[1]
        return result


def channels_of(first: Any, second: Any, *, part: Part, **options: Any) -> Channels:
    """Return the request for layers in their current state; see `layer_surface`."""
    selection = values_of(first, selection_of(first, part))
    level = fitting_level(selection, first.name)
    other = matching_level(first, selection, level, second)
    return Channels(selection, level, other, **options)


def compute_surface(what: Channels) -> Iterator[Step]:
    """Load both channels and compute their surface; the last step yields a `Surface`."""
    first = yield from load(what.first.array)
    second = yield from load(what.second.array)
    surface = ecc.euler_surface(
        first,
        second,
        what.thresholds,
        what.thresholds,
        superlevel=what.superlevel,
        connectivity=what.connectivity,
        nan="omit",
        axis=range(first.ndim),
        workers=WORKERS,
    )
    yield Step(Surface(surface, (first, second)))
