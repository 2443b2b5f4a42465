"""Betti curves on a device, from minimum spanning forests.

The forests are those of the CPU backend (docs/design/betti.md). Every point that is not a minimum
follows a neighbour before it in the order of the filtration. Only points whose lower link has
several components can join basins. The edges at these points are added to a forest in any order, by
all threads at once.
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
from ecc_core._backends.cuda.calls import launch as launch_kernel
from ecc_core._backends.cuda.compile import function
from ecc_core._backends.cuda.exact import EVERY_VALUE
from ecc_core._backends.cuda.recode import codes_of
from ecc_core._backends.cuda.scan import pick_levels
from ecc_core._backends.cuda.structures import Struct
from ecc_core._backends.cuda.variants import ELEMENTS, variant_of
from ecc_core._request.filtration import Filtration
from ecc_core.errors import BackendError

VOLUME, FOREST = Struct("betti.cu", "Volume"), Struct("betti.cu", "Forest")
ROOT = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
THREADS, COLUMNS = 256, 32
MOST_BINS = 2048  # that blocks count in shared memory
SLICES = 64  # of a block, at most
BLOCKS = 2048  # that are enough for a device
EACH, RANKS = 16, 64  # as in betti.cu: edges of a thread at most, and ranks of keys
PASSES, FEW_EDGES = 8, 1 << 22  # more edges are added by rank
MOST_POINTS = 1 << 31
EDGES_A_POINT = 0.375  # for which there is room at first; noise has fewer


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
    kinds, found = kinds_of(filtration), []
    for image in codes:
        forests = _Forests(image, kinds, filtration, prepared.rules.levels)
        pairs = zip(kinds, forests.histograms, strict=True)
        found.append([_at_thresholds(counts, kind, filtration, prepared) for kind, counts in pairs])
    del memory
    return found


def _at_thresholds(histogram: Any, kind: Kind, filtration: Filtration, prepared: Prepared) -> Any:
    """Return components at each threshold; of the complement, without that of the frame."""
    reached = cupy.cumsum(histogram)[:-1]  # the last key is that of points that never enter
    if filtration.superlevel:
        reached = reached[::-1]
    at = pick_levels(cupy.ascontiguousarray(reached)[None], prepared)[0]
    return -at if kind.complement else at


class _Forests:
    """Minimum spanning forests of the sets of an image, of their complements, or of both.

    Attributes
    ----------
    histograms : (kinds, levels + 1) int64 array
        Minima less edges, by the key at which they enter: components of the sets are the sum up to
        a key, those of their complements the sum beyond it.
    """

    def __init__(self, codes: Any, kinds: list[Kind], filtration: Filtration, levels: int) -> None:
        *lead, width = codes.shape
        depth, height = lead if len(lead) == 2 else (*lead, *(1,) * (2 - len(lead)))
        self.device, self.size, self.kinds = codes.device.id, codes.size, kinds
        self.shape = depth, height, width
        few = levels < MOST_BINS
        self.macros = {
            "CODE": ELEMENTS[codes.dtype.name],
            "PLANAR": int(filtration.ndim < 3),
            "WIDE": int((kinds[0].connectivity > 1) != kinds[0].complement),
            "REVERSE": int(filtration.superlevel),
            "COUNTS": int(few),
            "THREADS": THREADS,
        }
        self.shared = few * 8 * (levels + 1)
        self.volume = VOLUME(
            codes=codes.data.ptr,
            **dict(zip(("depth", "height", "width"), self.shape, strict=True)),
            top=levels,
            scale=RANKS / (levels + 1),
        )
        self.histograms = cupy.zeros((len(kinds), levels + 1), np.int64)
        labels = cupy.empty((len(kinds), self.size), np.int32)
        edges, counts = self._follow(labels)
        for i, kind in enumerate(kinds):
            nodes, listed = (int(part) for part in counts[i].view(np.uint32))
            joined = cupy.full(nodes, ROOT)
            forest = self._forest(i, labels, edges)
            if listed:
                self._join(kind, forest, listed, joined)
            blocks = min(max(1, -(-nodes // THREADS)), BLOCKS)
            arguments = self.volume, forest, np.uint32(nodes), joined
            self._run("count_edges", [kind], blocks, arguments)

    def _join(self, kind: Kind, forest: Any, listed: int, joined: Any) -> None:
        """Add all edges to a forest: if there are many, by rank, with shorter ways each time."""
        passes, each = (PASSES, EACH) if listed > FEW_EDGES else (1, 1)
        blocks, nodes = -(-listed // (THREADS * each)), joined.size
        for begin in range(0, RANKS, RANKS // passes):
            end = begin + RANKS // passes
            span = np.int32(begin), np.int32(end), np.int32(each)
            arguments = self.volume, forest, np.uint32(listed), joined, *span
            self._run("join_basins", [kind], blocks, arguments)
            if end < RANKS:
                reached = self.volume, np.uint32(nodes), joined, np.int32(end)
                self._run("flatten", [kind], -(-nodes // THREADS), reached)

    def _forest(self, index: int, labels: Any, edges: Any, counts: Any = None) -> NDArray[Any]:
        """Return the kernel's Forest of a kind."""
        return FOREST(
            labels=labels[index].data.ptr,
            edges=edges[index].data.ptr,
            histogram=self.histograms[index].data.ptr,
            counts=0 if counts is None else counts[index].data.ptr,
            room=edges.shape[1],
        )

    def _run(self, name: str, kinds: list[Kind], blocks: int, arguments: tuple[Any, ...]) -> None:
        complements = {kind.complement for kind in kinds}
        asked = {"SETS": int(False in complements), "OUTSIDE": int(True in complements)}
        kernel = function("betti", name, self.device, self.macros | asked)
        launch_kernel(kernel, (blocks,), THREADS, arguments, self.shared)

    def _follow(self, labels: Any) -> tuple[Any, NDArray[np.uint64]]:
        """Label all points. Return the edges, and on the host their numbers and those of basins."""
        depth, height, width = self.shape
        columns = THREADS if self.macros["PLANAR"] else COLUMNS
        tiles = -(-width // columns) * -(-height // (THREADS // columns))
        slices = max(1, min(SLICES, depth * tiles // BLOCKS))
        room = int(EDGES_A_POINT * self.size) + 1
        while True:
            edges = cupy.empty((len(self.kinds), room, 2), np.int32)
            frames = np.array([[kind.complement] for kind in self.kinds], np.uint64)
            counts = cupy.asarray(frames)
            self.histograms.fill(0)
            forests = [self._forest(i, labels, edges, counts) for i in range(len(self.kinds))]
            where = {
                kind.complement: forest for kind, forest in zip(self.kinds, forests, strict=True)
            }
            pair = [where.get(key, forests[0]) for key in (False, True)]
            arguments = self.volume, *pair, np.int32(slices)
            self._run("follow_neighbours", self.kinds, tiles * -(-depth // slices), arguments)
            found = counts.get()
            most = int((found >> np.uint64(32)).max())
            if most <= room:
                return edges, found
            room = most


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
