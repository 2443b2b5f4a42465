"""Jobs that find the classes of an image, and the objects of a set: the components that last."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import ecc_core as ecc
from napari_ecc._controller.fields import Field
from napari_ecc._controller.loading import WORKERS
from napari_ecc._controller.warming import prepared
from napari_ecc._model.persistence import Classes
from napari_ecc._workers import Step, apart

__all__ = ["Objects", "can_be_paired", "find_classes", "find_objects"]

PAIRED = 1 << 22
"""Largest number of points whose births and deaths are computed, which takes some seconds."""


class Objects(NamedTuple):
    """Components of a set that last, the oldest first."""

    labels: NDArray[np.int32]  # from 1 on, 0 elsewhere
    births: NDArray[np.float64]
    deaths: NDArray[np.float64]  # where they merge with an older one; infinite if they do not
    points: NDArray[np.int64]  # where they are born
    elders: NDArray[np.int64]  # label of the object that they merge with, or 0
    sizes: NDArray[np.int64]  # numbers of points

    def table(self) -> pd.DataFrame:
        """Features of a Labels layer."""
        return pd.DataFrame(
            {
                "index": np.arange(1, len(self.births) + 1),
                "birth": self.births,
                "death": self.deaths,
                "merges_with": self.elders,
                "points": self.sizes,
            }
        )


def can_be_paired(field: Field) -> bool:
    """Whether `find_classes` is quick enough, and exact: in float64 for all but large integers."""
    data = field.data
    large = data.dtype.kind in "iu" and data.dtype.itemsize == 8
    return isinstance(data, np.ndarray) and data.size <= PAIRED and not large


def find_classes(field: Field, levels: NDArray[np.float64], **sets: Any) -> Iterator[Step]:
    """Find the `Classes` of a field, with curves at some levels."""
    yield from prepared("classes", field.data)
    find = partial(ecc.persistence_pairs, field.data, mask=field.mask, nan="omit", workers=WORKERS)
    pairs = yield from apart(partial(find, **sets))
    yield Step(Classes.of(pairs, levels))


def find_objects(field: Field, threshold: float, least: float, **sets: Any) -> Iterator[Step]:
    """Find the `Objects` of a field at a threshold, of at least some persistence."""
    yield from prepared("classes", field.data)
    found = yield from apart(
        partial(
            ecc.persistent_regions,
            field.data,
            least,
            threshold=threshold,
            mask=field.mask,
            nan="omit",
            workers=WORKERS,
            **sets,
        )
    )
    yield Step(_objects(found, threshold))


def _objects(found: ecc.PersistentRegions, threshold: float) -> Objects:
    """Join the regions that have merged at the threshold."""
    end = -np.inf if found.superlevel else np.inf
    deaths = np.where(found.essential, end, found.deaths.astype(np.float64))
    births = found.births.astype(np.float64)
    sign = -1 if found.superlevel else 1
    alive = (sign * births <= sign * threshold) & (sign * threshold < sign * deaths)
    roots = np.arange(len(births) + 1)
    roots[1:] = np.where(alive, roots[1:], found.merged_into)
    while (roots[roots] != roots).any():
        roots = roots[roots]
    number = np.zeros(len(births) + 1, np.int32)
    number[1:][alive] = np.arange(1, alive.sum() + 1)
    labels = number[roots][found.labels]
    elders = number[found.merged_into[alive]].astype(np.int64)
    sizes = np.bincount(labels.ravel(), minlength=int(alive.sum()) + 1)[1:]
    return Objects(labels, births[alive], deaths[alive], found.birth_points[alive], elders, sizes)
