"""Betti curves and persistence pairs on a device, from minimum spanning forests.

The forests are those of the CPU backend (docs/design/betti.md). Every point that is not a minimum
follows a neighbour before it in the order of the filtration. Only points whose lower link has
several components can join basins. The edges at these points are added to a forest in any order, by
all threads at once.
"""

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import Kind, complete, kind_of, kinds_of
from ecc_core._backends.cuda import launch
from ecc_core._backends.cuda.arrays import adopt, as_cupy, has_nan, numbers, thresholds_on_host
from ecc_core._backends.cuda.bins import prepare
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.coefficients import EVERY_VALUE, every_value
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct
from ecc_core._backends.cuda.recode import codes_of
from ecc_core._backends.cuda.regions import contiguous_labels, rank_labels
from ecc_core._backends.cuda.samples import Images
from ecc_core._backends.cuda.scan import at_thresholds
from ecc_core._backends.sheets import Sheet, lay_out
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import changes
from ecc_core.errors import NAN_MESSAGE, BackendError

SHEET, SHEET_2D = (512, 512), (4096, 4096)  # rows and columns
BOX_BLOCKS = 64  # that share a box


def betti_curves(
    image: Any,
    thresholds: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,
) -> Any:
    ndim, superlevel = filtration.ndim, filtration.superlevel
    euler = as_cupy(launch.curve(image, thresholds, filtration, mask=mask))  # raises for NaN
    with adopt(image) as view:
        result = cupy.zeros((len(euler), ndim, euler.shape[-1]), np.int64)
        if result.size and view.array.size:
            images, kinds = Images.of(view, filtration, as_cupy(mask)), kinds_of(filtration)
            host = thresholds_on_host(thresholds)
            prepared = prepare(host, images.variant, view.array.device.id)
            codes, _, memory = codes_of(images, prepared)
            for i, code in enumerate(codes):
                forests = Forests(code, kinds, prepared.rules.levels, reverse=superlevel)
                reached = at_thresholds(forests.histograms(), prepared, superlevel)
                signs = (-1 if kind.complement else 1 for kind in kinds)  # without its frame
                ends = [sign * at for sign, at in zip(signs, reached, strict=True)]
                result[i] = complete(ends, kinds, euler[i], ndim)
            del memory
        return view.wrap(result)


def exact_betti_curves(
    image: Any, filtration: Filtration, *, mask: Any = None, workers: int | None = None
) -> tuple[Any, Any]:
    with adopt(image) as view:
        if view.element in EVERY_VALUE:
            levels = every_value(view.element)
        else:
            values = numbers(view).ravel()
            levels = cupy.unique(values[~cupy.isnan(values)]).get()
        found = as_cupy(betti_curves(image, levels, filtration, mask=mask))[0]
        at, changed = changes(cupy.asarray(levels), found, filtration.superlevel)
        return view.wrap_levels(at), view.wrap(cupy.ascontiguousarray(changed))


def persistence_pairs(
    image: Any,
    dimensions: Sequence[int],
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,
) -> list[tuple[Any, Any]]:
    last = filtration.ndim - 1
    if any(0 < k < last for k in dimensions):
        raise BackendError(
            f"`dimension` must be 0 or {last} for a volume on a device: copy the array to the "
            "host for tunnels, which are of dimension 1"
        )
    with adopt(image) as view:
        mask, values = as_cupy(mask), numbers(view)[0]
        if filtration.nan == "raise" and values.dtype.kind == "f" and has_nan(view, mask):
            raise ValueError(NAN_MESSAGE)
        if not values.size:
            return [(cupy.empty(0, np.int64), cupy.empty(0, np.int64))] * len(dimensions)
        shown = None if mask is None else mask[0].view(np.uint8) != 0
        keys, never = _ranks(values, shown, filtration.superlevel)
        kinds = [kind_of(filtration, complement=k > 0) for k in dimensions]
        forests = Forests(keys, kinds, never, reverse=False, paired=True)
        return [_lasting(forests, i) for i in range(len(kinds))]


def _ranks(values: Any, shown: Any, superlevel: bool) -> tuple[Any, int]:
    """Return the ranks of values in the order of the filtration, and that of excluded points."""
    levels, ranks = cupy.unique(values.ravel(), return_inverse=True)
    ranks = ranks.reshape(values.shape)
    never = levels.size
    if superlevel:
        ranks = never - 1 - ranks
    ranks = ranks.astype(np.uint32)
    if values.dtype.kind == "f":
        ranks[cupy.isnan(values)] = never
    if shown is not None:
        ranks[~shown] = never
    return ranks, never


def _lasting(forests: "Forests", index: int) -> tuple[Any, Any]:
    """Return where classes that last are born and die, by birth; -1 if they do not die."""
    births, deaths = forests.pairs(index)
    keys = forests.codes.ravel()
    deaths[(deaths >= 0) & (keys[deaths] == forests.levels)] = -1
    born = keys[births]
    lasts = cupy.flatnonzero((born < forests.levels) & ((deaths < 0) | (born != keys[deaths])))
    births, deaths, born = births[lasts], deaths[lasts], born[lasts].astype(np.int64)
    order = cupy.lexsort(cupy.stack([deaths, births, born]))
    return births[order], deaths[order]


def region_betti_curves(
    image: Any, labels: Any, thresholds: Any, filtration: Filtration, *, workers: int | None = None
) -> tuple[Any, Any]:
    """Ids of the regions, increasing, and their Betti numbers, (ids, d, n) int64.

    As on the CPU, the boxes of regions are laid side by side on sheets, one masked point apart, and
    each class belongs to the region in which it is born.
    """
    ids, found = launch.region_curves(image, labels, thresholds, filtration)  # raises for NaN
    with adopt(image) as view:
        euler = as_cupy(found)
        if not euler.size:
            return ids, view.wrap(cupy.zeros((len(euler), filtration.ndim, euler.shape[1]), int))
        ranked = rank_labels(contiguous_labels(as_cupy(labels)))
        numbers, kinds = ranked.ranks[ranked.labels], kinds_of(filtration)
        images = Images.of(view._replace(array=view.array[None]), filtration)
        host = thresholds_on_host(thresholds)
        prepared = prepare(host, images.variant, view.array.device.id)
        codes, _, memory = codes_of(images, prepared, keep=True)
        keys, levels = codes[0][tuple(map(slice, numbers.shape))], prepared.rules.levels
        keys = cupy.ascontiguousarray(levels - keys if filtration.superlevel else keys)
        boxes = _boxes_of(numbers, len(euler))
        limits = SHEET if filtration.ndim == 3 else SHEET_2D
        sheets = lay_out(boxes[:, 1] - boxes[:, 0], np.arange(len(euler)), limits)
        events = [_events(sheet, boxes, keys, numbers, kinds, levels) for sheet in sheets]
        del memory
        counts = []
        for sides in zip(*events, strict=True):
            rows = (cupy.concatenate(side) for side in zip(*sides, strict=True))
            born, died = (cupy.bincount(r, minlength=(len(euler) + 1) * (levels + 1)) for r in rows)
            alive = (born - died).reshape(-1, levels + 1)[1:]
            counts.append(at_thresholds(alive, prepared, filtration.superlevel))
        values = complete(counts, kinds, euler, filtration.ndim).transpose(1, 0, 2)
        return ids, view.wrap(cupy.ascontiguousarray(values))


def _boxes_of(numbers: Any, count: int) -> NDArray[np.int64]:
    """Return the bounding box of each region on the host, half open: (count, 2, 3)."""
    shape = (1,) * (3 - numbers.ndim) + numbers.shape
    flat, first = numbers.ravel(), cupy.ones(numbers.size, np.bool_)  # of a run in a row
    first[1:] = flat[1:] != flat[:-1]
    first.reshape(-1, shape[2])[:, 0] = True
    ends = first.copy()
    ends[:-1] |= first[1:]
    ends[-1] = True
    places = cupy.flatnonzero(ends & (flat > 0))
    regions, sides = flat[places] - 1, []
    for step, length in zip((shape[1] * shape[2], shape[2], 1), shape, strict=True):
        indices = (places // step % length).astype(np.int32)
        low, high = cupy.full(count, length, np.int32), cupy.zeros(count, np.int32)
        cupy.minimum.at(low, regions, indices)
        cupy.maximum.at(high, regions, indices + 1)
        sides.append(cupy.stack([low, high], axis=1))
    found: NDArray[np.int64] = cupy.stack(sides, axis=2).get().astype(np.int64)
    return found


def _events(
    sheet: Sheet, boxes: NDArray[np.int64], keys: Any, numbers: Any, kinds: list[Kind], levels: int
) -> list[list[Any]]:
    """Return (levels + 1) times the region, plus the key of births and deaths, for each kind."""
    codes = cupy.full(sheet.shape[keys.ndim < 3 :], levels, keys.dtype)
    regions, own = cupy.zeros(codes.size, np.int32), np.array(sheet.regions)
    low, high = boxes[own, 0], boxes[own, 1]
    rows = np.column_stack([own + 1, low, high - low, sheet.places]).astype(np.int32)
    plane: Any = (1, *keys.shape)[-2:]
    sizes = [np.int32(size) for size in (*plane, *sheet.shape[1:])]
    arguments = keys, numbers, *sizes[:2], cupy.asarray(rows), codes, regions, *sizes[2:]
    macros, grid = {"CODE": ELEMENTS[keys.dtype.name]}, (len(rows), BOX_BLOCKS)
    plan_call("sheets", "lay_out", macros, grid, THREADS, arguments).launch()
    forests = Forests(codes, kinds, levels, reverse=False, paired=True)
    flat, events = codes.ravel(), []
    for i in range(len(kinds)):
        births, deaths = forests.pairs(i)
        # Beyond the last threshold components may end that would not end alone.
        deaths = deaths[(deaths >= 0) & (regions[births] == regions[deaths])]
        found = (regions[at].astype(np.int64) * (levels + 1) + flat[at] for at in (births, deaths))
        events.append([*found])
    return events


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


class Forests:
    """The basins and edges of a contiguous image of codes, for forests of some kinds.

    Points that never enter have the key `levels`. If `reverse`, keys are `levels` minus the codes.
    If `paired`, there are :meth:`pairs`, of codes that are keys; otherwise :meth:`histograms`.
    """

    def __init__(
        self, codes: Any, kinds: list[Kind], levels: int, *, reverse: bool, paired: bool = False
    ) -> None:
        if codes.size >= MOST_POINTS:
            raise BackendError(
                f"`image` must have fewer than 2**31 points on a device, got shape {codes.shape}"
            )
        *lead, width = codes.shape
        depth, height = lead if len(lead) == 2 else (*lead, *(1,) * (2 - len(lead)))
        self.codes, self.kinds, self.levels = codes, kinds, levels
        self.shape = depth, height, width
        few = levels < MOST_BINS and not paired
        self.macros = {
            "CODE": ELEMENTS[codes.dtype.name],
            "PLANAR": int(codes.ndim < 3),
            "WIDE": int((kinds[0].connectivity > 1) != kinds[0].complement),
            "REVERSE": int(reverse),
            "COUNTS": int(few),
            "PAIRS": int(paired),
        }
        self.shared = few * 8 * (levels + 1)
        self.counted = cupy.zeros((len(kinds), 0 if paired else levels + 1), np.int64)
        self.labels = cupy.empty((len(kinds), codes.size), np.int32)
        self.edges, self.found = self._follow()

    def histograms(self) -> Any:
        """Return minima less edges, by the key at which they enter: (kinds, levels + 1) int64.

        Components of the sets are the sum up to a key, those of their complements the sum beyond.
        """
        volume = self._volume(self.levels + 1)
        for i, kind in enumerate(self.kinds):
            joined = self._joined(i, volume, self.edges[i])
            nodes = joined.size
            blocks = min(max(1, -(-nodes // THREADS)), BLOCKS)
            arguments = volume, self._forest(i, self.edges[i]), np.uint32(nodes), joined
            self._run("count_edges", [kind], blocks, arguments)
        return self.counted

    def pairs(self, index: int) -> tuple[Any, Any]:
        """Return the points at which classes of a kind are born and die, or -1: int64.

        A class that is a component of the complement is born where this component ends and dies
        where it begins. The frame, which never ends, is left out.
        """
        first, labels = int(self.kinds[index].complement), self.labels[index]
        _, listed = self.found[index].tolist()
        edges = self.edges[index, :listed]
        edges = edges[self._order(edges[:, 0], first)]
        minima = cupy.flatnonzero(labels < -first)
        minima = minima[self._order(minima, first)]
        labels[minima] = cupy.arange(-1 - first, -1 - first - minima.size, -1, dtype=np.int32)
        joined = self._joined(index, self._volume(listed), edges)
        ends = cupy.concatenate([edges[:, 0], cupy.full(1, -1, np.int32)])
        links = (joined[first:] >> np.uint64(32)).astype(np.int64)
        found = minima, ends[cupy.minimum(links, listed)].astype(np.int64)
        return found[::-1] if first else found

    def _order(self, places: Any, reverse: int) -> Any:
        """Return the order in which points enter, or the opposite one."""
        keys = self.codes.ravel()[places].astype(np.uint64) << np.uint64(32)
        order = cupy.argsort(keys | places.astype(np.uint64))
        return order[::-1] if reverse else order

    def _joined(self, index: int, volume: Any, edges: Any) -> Any:
        """Return the links of a forest to which all edges are added.

        If there are many, they are added by rank, with shorter ways each time.
        """
        kind, forest = self.kinds[index], self._forest(index, edges)
        nodes, listed = self.found[index].tolist()
        joined = cupy.full(nodes, ROOT)
        if not listed:
            return joined
        passes, each = (PASSES, EACH) if listed > FEW_EDGES else (1, 1)
        blocks = -(-listed // (THREADS * each))
        for begin in range(0, RANKS, RANKS // passes):
            end = begin + RANKS // passes
            span = np.int32(begin), np.int32(end), np.int32(each)
            arguments = volume, forest, np.uint32(listed), joined, *span
            self._run("join_basins", [kind], blocks, arguments)
            if end < RANKS:
                reached = volume, np.uint32(nodes), joined, np.int32(end)
                self._run("flatten", [kind], -(-nodes // THREADS), reached)
        return joined

    def _volume(self, keys: int) -> NDArray[Any]:
        """Return the kernel's Volume, with ranks of so many keys."""
        return VOLUME(
            codes=self.codes.data.ptr,
            **dict(zip(("depth", "height", "width"), self.shape, strict=True)),
            top=self.levels,
            scale=RANKS / max(keys, 1),
        )

    def _forest(self, index: int, edges: Any, counts: Any = None) -> NDArray[Any]:
        """Return the kernel's Forest of a kind."""
        return FOREST(
            labels=self.labels[index].data.ptr,
            edges=edges.data.ptr,
            histogram=self.counted[index].data.ptr,
            counts=0 if counts is None else counts[index].data.ptr,
            room=len(edges),
        )

    def _run(self, name: str, kinds: list[Kind], blocks: int, arguments: tuple[Any, ...]) -> None:
        complements = {kind.complement for kind in kinds}
        asked = {"SETS": int(False in complements), "OUTSIDE": int(True in complements)}
        macros = self.macros | asked
        plan_call("betti", name, macros, (blocks,), THREADS, arguments, self.shared).launch()

    def _follow(self) -> tuple[Any, NDArray[np.uint32]]:
        """Label all points. Return the edges, and on the host the numbers of basins and edges."""
        depth, height, width = self.shape
        columns = THREADS if self.macros["PLANAR"] else COLUMNS
        tiles = -(-width // columns) * -(-height // (THREADS // columns))
        slices = max(1, min(SLICES, depth * tiles // BLOCKS))
        room = int(EDGES_A_POINT * self.codes.size) + 1
        complements = [kind.complement for kind in self.kinds]
        while True:
            edges = cupy.empty((len(self.kinds), room, 2), np.int32)
            counts = cupy.asarray(np.array(complements, np.uint64)[:, None])
            self.counted.fill(0)
            forests = [self._forest(i, edges[i], counts) for i in range(len(self.kinds))]
            where = dict(zip(complements, forests, strict=True))
            pair = [where.get(key, forests[0]) for key in (False, True)]
            arguments = self._volume(self.levels + 1), *pair, np.int32(slices)
            self._run("follow_neighbours", self.kinds, tiles * -(-depth // slices), arguments)
            found = counts.get().view(np.uint32)
            most = int(found[:, 1].max())
            if most <= room:
                return edges, found
            room = most
