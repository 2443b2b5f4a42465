"""The components, holes, tunnels and cavities that the user has chosen, and labels of them."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.ndimage import generate_binary_structure, label

from napari_ecc._controller.fields import Field, Objects
from napari_ecc._controller.lasting import Lasting, find_solid_objects
from napari_ecc._controller.layers import (
    Part,
    Selection,
    corresponding,
    is_lazy,
    levels_of,
)
from napari_ecc._controller.places import check_place
from napari_ecc._model.explorer import BETTI_NAMES, Classes
from napari_ecc._model.words import counted
from napari_ecc._workers import Step

Array = NDArray[Any]


def find_chosen(
    field: Field,
    classes: Classes,
    chosen: Sequence[int],
    threshold: float,
    *,
    least_of_holes: float = 0.0,
    known: Lasting | None = None,
    **sets: Any,
) -> Iterator[Step]:
    """Find those of some classes that the set at a threshold has, as `Objects`.

    Components and holes (cavities) are labelled as a whole, the former with their holes of less
    persistence than `least_of_holes` (see `find_solid_objects`), the latter as what they surround.
    Tunnels have no points of their own: they are labelled where they begin and where they are
    filled. The table has the columns ``index``, ``kind``, ``birth``, ``death``, ``persistence`` and
    ``points``.
    """
    ndim = classes.ndim
    some = np.array(chosen, np.intp)
    some = some[classes.alive(threshold)[some]]
    numbers = np.arange(1, some.size + 1)
    kinds = classes.dimensions[some]
    labels = np.zeros(field.data.shape, np.int32)
    first = kinds == 0
    last = kinds == ndim - 1
    if first.any():
        found: Any = None
        least = float(classes.persistence[some[first]].min())
        of_holes: Any = {"least_of_holes": least_of_holes, "known": known}
        for step in find_solid_objects(field, threshold, least, **of_holes, **sets):
            found = step.value
            yield Step(None)
        labels += _numbered(found.labels, classes.birth_points[some[first]], numbers[first])
    if last.any():
        full = sets["connectivity"] in (None, ndim)
        structure = generate_binary_structure(ndim, 1 if full else ndim)
        outside = label(~field.inside(threshold, sets["superlevel"]), structure)[0]
        surrounded = _numbered(outside, classes.death_points[some[last]], numbers[last])
        labels = np.where(surrounded > 0, surrounded, labels)
    for number, k in zip(numbers[~first & ~last], some[~first & ~last], strict=True):
        for point in (classes.birth_points[k], classes.death_points[k]):
            if (point >= 0).all():
                labels[tuple(point)] = number
    columns = {
        "index": numbers,
        "kind": [BETTI_NAMES[ndim][kind][0] for kind in kinds.tolist()],
        "birth": classes.births[some],
        "death": classes.deaths[some],
        "persistence": classes.persistence[some],
        "points": np.bincount(labels.ravel(), minlength=some.size + 1)[1:],
    }
    yield Step(Objects(labels, pd.DataFrame(columns)))


def _numbered(labels: Array, points: Array, numbers: Array) -> Array:
    """Return labels in which those at some points have numbers, and all others are 0.

    Points outside, of holes that nothing fills, are left out.
    """
    known = (points >= 0).all(axis=1)
    new = np.zeros(int(labels.max(initial=0)) + 1, np.int32)
    new[labels[tuple(points[known].T)]] = numbers[known]
    new[0] = 0
    return new[labels]


def labels_at_chosen(
    image: Any, selection: Selection, classes: Classes, chosen: Sequence[int], other: Any
) -> tuple[Part, tuple[int, ...]]:
    """Find the labels of another layer where some classes of an image are.

    A hole or cavity is where it is filled last, everything else where it is born. Returns the part
    of the other layer that lies where the image's selection does, and the labels there. There are
    none in layers that lie elsewhere, or are not in memory.
    """
    found = corresponding(image, selection, other)
    nothing = found.where, ()
    if is_lazy(found.full) or tuple(found.full.shape) != tuple(selection.full.shape):
        return nothing
    try:
        check_place(image, selection, other, found, levels_of(other)[0].shape)
    except ValueError:  # The layer of the objects lies elsewhere.
        return nothing
    some = np.array(chosen, np.intp)
    surrounded = (classes.dimensions[some] > 0) & (classes.dimensions[some] == classes.ndim - 1)
    points = np.where(surrounded[:, None], classes.death_points[some], classes.birth_points[some])
    points = points[(points >= 0).all(axis=1)]
    labels = np.asarray(found.full)[tuple(points.T)]
    return found.where, tuple(dict.fromkeys(labels[labels != 0].tolist()))


def chosen_in_words(classes: Classes, chosen: Sequence[int], threshold: float) -> str:
    """Say how many classes are chosen, and how many of each kind the set at a threshold has."""
    if not chosen:
        return ""
    some = np.array(chosen, np.intp)
    inside = some[classes.alive(threshold)[some]]
    counts = np.bincount(classes.dimensions[inside], minlength=classes.ndim).tolist()
    parts = [
        counted(count, one, many)
        for count, (one, many) in zip(counts, BETTI_NAMES[classes.ndim], strict=True)
        if count
    ]
    here = ", ".join(parts) or "none of them"
    return f"{some.size:,} chosen; in this set {here}"
