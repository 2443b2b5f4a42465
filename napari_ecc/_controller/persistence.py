"""Jobs that find the classes of an image, and the objects of a set: the components that last."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.ndimage import generate_binary_structure, label

import ecc_core as ecc
from napari_ecc._controller.fields import Field
from napari_ecc._controller.layers import is_lazy
from napari_ecc._controller.loading import WORKERS
from napari_ecc._controller.warming import prepared
from napari_ecc._model.persistence import Classes
from napari_ecc._workers import Step, apart

PAIRED = 1 << 22
"""Largest number of points whose births and deaths are computed, which takes some seconds."""


class Objects(NamedTuple):
    """Components of a set that last, the oldest first."""

    labels: Any  # from 1 on, 0 elsewhere
    table: pd.DataFrame | None
    """A row for each, as features of a Labels layer: ``index`` (its label), ``birth``, ``death``
    (where it merges with an older one; infinite if it does not), ``merges_with`` (the label of that
    one, or 0) and ``points`` (their number). None where births and deaths are not computed."""

    def of_size(self, least: int) -> Objects:
        """Those of at least so many points, with new labels; all of data that are not in memory."""
        if least <= 1 or is_lazy(self.labels):
            return self
        sizes = np.bincount(self.labels.ravel())
        sizes[0] = 0
        number = np.where(sizes >= least, np.cumsum(sizes >= least), 0).astype(np.int32)
        table = self.table
        if table is not None:
            table = table[sizes[1:] >= least].reset_index(drop=True)
            table = table.assign(index=table.index + 1, merges_with=number[table["merges_with"]])
        return Objects(number[self.labels], table)


def can_be_paired(field: Field) -> bool:
    """Whether `find_classes` is quick enough, and exact: in float64 for all but large integers."""
    data = field.data
    large = data.dtype.kind in "iu" and data.dtype.itemsize == 8
    return isinstance(data, np.ndarray) and data.size <= PAIRED and not large


def find_classes(field: Field, levels: NDArray[np.float64], **sets: Any) -> Iterator[Step]:
    """Find the `Classes` of a field, with curves at some levels."""
    yield from prepared("pairs", field.data)
    find = partial(ecc.persistence_pairs, field.data, mask=field.mask, nan="omit", workers=WORKERS)
    pairs = yield from apart(partial(find, **sets))
    yield Step(Classes.of(pairs, levels))


def find_objects(field: Field, threshold: float, least: float, **sets: Any) -> Iterator[Step]:
    """Find the `Objects` of a field at a threshold, of at least some persistence.

    All of those of large data are found, and one for all of the set of data that are not in memory,
    as lazily as they are.
    """
    if is_lazy(field.data):
        yield Step(Objects(field.inside(threshold, sets["superlevel"]).astype(np.uint8), None))
        return
    if not can_be_paired(field):
        inside = field.inside(threshold, sets["superlevel"])
        structure = generate_binary_structure(inside.ndim, sets["connectivity"] or inside.ndim)
        yield Step(Objects(label(inside, structure)[0], None))
        return
    yield from prepared("components", field.data)
    find = partial(ecc.persistent_regions, field.data, least, threshold=threshold, mask=field.mask)
    found = yield from apart(partial(find, nan="omit", workers=WORKERS, **sets))
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
    columns = {
        "index": np.arange(1, alive.sum() + 1),
        "birth": births[alive],
        "death": deaths[alive],
        "merges_with": number[found.merged_into[alive]].astype(np.int64),
        "points": np.bincount(labels.ravel(), minlength=int(alive.sum()) + 1)[1:],
    }
    return Objects(labels, pd.DataFrame(columns))
