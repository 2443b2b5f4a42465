"""Betti curves on a device, from minimum spanning forests.

The forests are those of the CPU backend (docs/design/betti.md). Every point that is not a minimum
follows its first neighbour in the order of the filtration. Only points whose lower link has several
components can join basins, and Boruvka's algorithm chooses among the edges at these points.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import Kind, complete, kinds_of
from ecc_core._backends.cuda import launch
from ecc_core._backends.cuda.arrays import ArrayView, adopt, as_cupy, numbers
from ecc_core._backends.cuda.bins import Prepared, prepare
from ecc_core._backends.cuda.calls import by_value, pack
from ecc_core._backends.cuda.compile import function
from ecc_core._backends.cuda.exact import EVERY_VALUE
from ecc_core._backends.cuda.recode import codes_of
from ecc_core._backends.cuda.scan import pick_levels
from ecc_core._backends.cuda.variants import ELEMENTS, variant_of
from ecc_core._request.filtration import Filtration
from ecc_core.errors import BackendError

__all__ = ["betti_curves", "exact_betti_curves"]

# As in betti.cu and edges.cuh.
VOLUME = np.dtype([("codes", "i8"), ("shape", "i4", 3), ("top", "i4")])
EDGE, RAW_EDGE = 3, 2  # integers of 32 bits
NONE = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
THREADS = 256
MOST_POINTS = 1 << 31
POINTS_AN_EDGE = 4  # for which there is room at first; noise has fewer edges


def betti_curves(
    image: Any,
    thresholds: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,  # noqa: ARG001
) -> Any:
    """Betti numbers of each image of a batch at sorted thresholds: (batch, d, n) int64."""
    ndim = filtration.ndim
    euler = as_cupy(launch.curve(image, thresholds, filtration, mask=mask))  # raises for NaN
    with adopt(image) as view:
        result = cupy.zeros((len(euler), ndim, euler.shape[-1]), np.int64)
        if result.size and view.array.size:
            host = launch.thresholds_on_host(thresholds)
            ends = _ends(view, host, filtration, as_cupy(mask))
            kinds = kinds_of(filtration)
            for i, counted in enumerate(ends):
                result[i] = complete(counted, kinds, euler[i], ndim)
        return view.wrap(result)


def _ends(
    view: ArrayView, thresholds: NDArray[Any], filtration: Filtration, mask: Any
) -> list[list[Any]]:
    """Return the numbers of components of each kind at each threshold, for each image."""
    device = view.array.device.id
    variant = variant_of(filtration, view.element, masked=mask is not None)
    prepared = prepare(thresholds, variant.element, variant.superlevel, device)
    codes, _, memory = codes_of(view, mask, variant, prepared)
    if codes[0].size >= MOST_POINTS:
        raise BackendError(
            f"`image` must have fewer than 2**31 points on a device, got shape {codes.shape[1:]}"
        )
    found = []
    for image in codes:
        volume = image.reshape((1,) * (3 - image.ndim) + image.shape)
        counts = []
        for kind in kinds_of(filtration):
            forest = _Forest(volume, kind, filtration, prepared.rules.levels)
            counts.append(_at_thresholds(forest.histogram, kind, filtration, prepared))
        found.append(counts)
    del memory
    return found


def _at_thresholds(histogram: Any, kind: Kind, filtration: Filtration, prepared: Prepared) -> Any:
    """Return components at each threshold; of the complement, without that of the frame."""
    ranks = histogram[::-1] if kind.complement else histogram
    reached = cupy.cumsum(ranks)[:-1]  # the last rank is that of points that never enter
    if filtration.superlevel:
        reached = reached[::-1]
    at = pick_levels(cupy.ascontiguousarray(reached)[None], prepared)[0]
    return -at if kind.complement else at


class _Forest:
    """A minimum spanning forest of one kind.

    Attributes
    ----------
    histogram : (levels + 1,) int64 array
        Minima less edges, by their key: the running sum is the number of components.
    """

    def __init__(self, codes: Any, kind: Kind, filtration: Filtration, levels: int) -> None:
        planar = filtration.ndim < 3
        self.device, self.size = codes.device.id, codes.size
        self.frame = int(kind.complement)
        macros = {
            "CODE": ELEMENTS[codes.dtype.name],
            "PLANAR": int(planar),
            "WIDE": int(kind.connectivity > 1),
            "FRAME": self.frame,
            "REVERSE": int(filtration.superlevel != kind.complement),
            "THREADS": THREADS,
        }
        self.macros = {"betti": tuple(macros.items()), "boruvka": (("THREADS", THREADS),)}
        self.volume = by_value(pack(VOLUME, codes.data.ptr, codes.shape, levels))
        self.histogram = cupy.zeros(levels + 1, np.int64)
        labels = cupy.empty(self.size, np.int32)
        nodes, raw, listed = self._follow(labels)
        edges, count = self._kept("betti", "resolve_edges", (self.volume, labels, raw), listed)
        del labels, raw
        best, parents = cupy.empty(nodes, np.uint64), cupy.empty(nodes, np.int32)
        while count:
            best.fill(NONE)
            self._run("boruvka", "propose_edges", count, (edges, np.uint32(count), best))
            arguments = (edges, np.uint32(nodes), best, parents, self.histogram)
            self._run("boruvka", "hook_components", nodes, arguments)
            edges, count = self._kept("boruvka", "keep_edges", (edges,), count, parents)

    def _run(self, source: str, name: str, threads: int, arguments: tuple[Any, ...]) -> None:
        kernel = function(source, name, self.device, self.macros[source])
        kernel((max(1, -(-threads // THREADS)),), (THREADS,), arguments)

    def _follow(self, labels: Any) -> tuple[int, Any, int]:
        """Label all points. Returns the number of basins, the raw edges and their number."""
        room = self.size // POINTS_AN_EDGE + 1
        while True:
            raw = cupy.empty((room, RAW_EDGE), np.int32)
            counts = cupy.asarray(np.array([self.frame], np.uint64))
            self.histogram.fill(0)
            arguments = (self.volume, labels, raw, np.uint32(room), self.histogram, counts)
            self._run("betti", "follow_neighbours", self.size, arguments)
            found = int(counts.get()[0])
            nodes, listed = found & 0xFFFF_FFFF, found >> 32
            if listed <= room:
                return nodes, raw, listed
            room = listed

    def _kept(
        self, source: str, name: str, before: tuple[Any, ...], size: int, *after: Any
    ) -> tuple[Any, int]:
        """Return the edges that a kernel keeps of `size` edges, and their number."""
        edges = cupy.empty((max(size, 1), EDGE), np.int32)
        count = cupy.zeros(1, np.uint32)
        if size:
            self._run(source, name, size, (*before, np.uint32(size), *after, edges, count))
        return edges, int(count.get()[0])


def exact_betti_curves(
    image: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,  # noqa: ARG001
) -> tuple[Any, Any]:
    """Return the levels at which a Betti number of one image changes, and the numbers there."""
    with adopt(image) as view:
        if view.element in EVERY_VALUE:
            levels = launch.every_value(view.element)
        else:
            values = numbers(view).ravel()
            levels = cupy.unique(values[~cupy.isnan(values)]).get()
        found = as_cupy(betti_curves(image, levels, filtration, mask=mask))[0]
        ordered = found[:, ::-1] if filtration.superlevel else found
        before = cupy.concatenate([cupy.zeros_like(ordered[:, :1]), ordered[:, :-1]], axis=1)
        changed = (ordered != before).any(axis=0)
        kept = cupy.flatnonzero(changed[::-1] if filtration.superlevel else changed)
        at = launch.wrap_levels(view, cupy.asarray(levels)[kept])
        return at, view.wrap(cupy.ascontiguousarray(found[:, kept]))
