"""Components, tunnels and cavities of a set, slab by slab."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import generate_binary_structure, label
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import ecc_core as ecc
from napari_ecc._model.explorer import Counts
from napari_ecc._workers import Step

__all__ = ["count_set", "slabs"]

SLAB_POINTS = 4_000_000
"""Points that are labelled at a time."""

Read = Callable[[int, int], NDArray[np.bool_]]


def slabs(shape: tuple[int, ...], points: int = SLAB_POINTS) -> list[tuple[int, int]]:
    """Ranges along the first axis with about this many points, that cover it."""
    rows = max(1, points // max(1, int(np.prod(shape[1:]))))
    return [(start, min(start + rows, shape[0])) for start in range(0, shape[0], rows)]


def count_set(
    read: Read, shape: tuple[int, ...], threshold: float, *, connectivity: int | None = None
) -> Iterator[Step]:
    """Count the components, tunnels and cavities of a set.

    Parameters
    ----------
    read : callable
        ``read(start, stop)`` gives these rows of the set, along its first axis, as booleans.
    shape : (2 or 3,) tuple
    threshold : float
        What the set is named by in the result.
    connectivity : {1, d} or None, default None
        Of the set, None: d. The background has the other one.

    Yields
    ------
    Step
        One for each slab. The value of the last is the `Counts`; before it is None.
    """
    ndim = len(shape)
    connectivity = connectivity or ndim
    objects = _Components(generate_binary_structure(ndim, connectivity))
    gaps = _Components(generate_binary_structure(ndim, 1 if connectivity == ndim else ndim))
    parts = slabs(shape)
    euler = 0
    for done, (start, stop) in enumerate(parts):
        # One row more, so that a component has its label of both slabs in the row they share
        above = min(stop + 1, shape[0])
        rows = read(start, above)
        euler += ecc.euler_number(rows, connectivity)
        if above > stop:
            euler -= ecc.euler_number(rows[-1:], connectivity)
        objects.add(rows, last=above == shape[0])
        gaps.add(~rows, last=above == shape[0])
        if done < len(parts) - 1:
            yield Step(None, done + 1, len(parts))
    components, holes = objects.count(), gaps.count(enclosed=True)
    if ndim == 2:
        counts = Counts(threshold, components, holes, 0, ndim)
    else:
        counts = Counts(threshold, components, components + holes - euler, holes, ndim)
    yield Step(counts, len(parts), len(parts))


class _Components:
    """Components of a set that comes in slabs, each of which shares a row with the next."""

    def __init__(self, structure: NDArray[np.bool_]) -> None:
        self._structure = structure
        self._labels = 0
        self._shared: NDArray[Any] | None = None
        self._same: list[NDArray[np.int64]] = []
        self._outside: list[NDArray[np.int64]] = []

    def add(self, rows: NDArray[np.bool_], *, last: bool) -> None:
        labels, found = label(rows, self._structure)
        first, final = labels[0], labels[-1]
        if self._shared is not None:
            self._same.append(_pairs(self._shared[rows[0]], self._numbered(first[rows[0]])))
        sides = [first] if self._shared is None else []
        sides += [final] if last else []
        for axis in range(1, labels.ndim):
            sides += [labels.take(0, axis), labels.take(-1, axis)]
        edge = np.unique(np.concatenate([side.ravel() for side in sides]))
        self._outside.append(self._numbered(edge))
        self._shared = self._numbered(final)
        self._labels += found

    def _numbered(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """Labels of this slab as labels of all slabs; 0 stays 0."""
        return np.where(labels > 0, labels.astype(np.int64) + self._labels, 0)

    def count(self, *, enclosed: bool = False) -> int:
        """All components, or those that do not touch the border of the image."""
        pairs = np.concatenate(self._same, axis=1) if self._same else np.zeros((2, 0), np.int64)
        size = self._labels + 1  # the label 0 stands for what is not in the set
        ones = np.ones(pairs.shape[1], dtype=bool)
        graph = coo_array((ones, (pairs[0], pairs[1])), shape=(size, size))
        total, component = connected_components(graph, directed=False)
        if not enclosed:
            return int(total) - 1
        touching = np.union1d(component[np.concatenate(self._outside)], component[:1])
        return int(total) - touching.size


def _pairs(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """The different pairs of two arrays of labels, (2, k)."""
    span = int(b.max(initial=0)) + 1
    return np.stack(np.divmod(np.unique(a * span + b), span))
