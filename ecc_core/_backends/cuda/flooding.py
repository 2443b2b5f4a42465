"""Regions of the components that last, on a device.

They are those of the CPU backend (docs/design/betti.md): a point has the label of the oldest
lasting minimum to which steps lead that go down to any lower neighbour, or from a minimum that does
not last to the point where its component dies. Labels spread along these steps until none changes.
Which component each one joins, and where it is cut, is found on the host for the components that
last; the image stays on the device.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.components import kind_of
from ecc_core._backends.cpu.betti.flood import CLOSED, merge_labels
from ecc_core._backends.cpu.betti.relative_height import cut_levels
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.forests import BLOCKS, COLUMNS, NO_CODES, SLICES, THREADS, Forests
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct
from ecc_core._backends.cuda.keys import keys_of
from ecc_core._backends.cuda.torus import Torus, without_circles
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import round_to_levels
from ecc_core._request.persistence import lasting

Array = NDArray[Any]

# Labels spread for so many rounds, an even number, before the host looks whether any changes.
ROUNDS = 32
MOST_BLOCKS = 2048  # So many blocks keep a device busy.
CHUNKS = Struct("flood.cu", "Chunks")
CUBE = 27  # The number of places around a point, and its own.
CENTER = 13
FACES = np.array([4, 10, 12, 14, 16, 22])


class Flooding(NamedTuple):
    """The same arrays as the CPU backend returns (``cpu/betti/flood.py``), on the device."""

    labels: Any
    births: Any
    deaths: Any
    merged_into: Any


def persistent_regions(
    image: Any,
    shown: Any,
    least: float,
    threshold: Any,
    filtration: Filtration,
    *,
    rel_height: float | None = None,
    workers: int | None = None,
) -> Flooding:
    if not image.size:
        none = cupy.empty(0, np.int64)
        return Flooding(cupy.zeros(image.shape, np.int32), none, none, none.astype(np.int32))
    given = least, threshold, rel_height
    if not any(filtration.boundary.wraps):
        return _flooded(image, shown, filtration, *given)
    # A circle, by which the image is multiplied, does not change its components.
    rest, sets = without_circles(image, filtration)
    torus = Torus.of(rest, sets)
    if not any(torus.wraps):
        found = _flooded(rest, shown.reshape(rest.shape), sets, *given)
        return found._replace(labels=found.labels.reshape(image.shape))
    there = torus.laid_out(shown.reshape(rest.shape), False)
    found = _flooded(torus.laid_out(rest, 0), there, sets, *given)
    births, deaths = (torus.places_of(points) for points in (found.births, found.deaths))
    labels = cupy.ascontiguousarray(torus.image_of(found.labels)).reshape(image.shape)
    return Flooding(labels, births, deaths, found.merged_into)


def _flooded(
    image: Any,
    shown: Any,
    filtration: Filtration,
    least: float,
    threshold: Any,
    rel_height: float | None,
) -> Flooding:
    """Return the regions of an image that ends, or is a torus without circles."""
    flood = _Flood(image, shown, least, filtration)
    births = flood.births
    deaths = flood.deaths
    labels = flood.labels()
    merged = flood.merged_into(labels)
    if rel_height is not None or threshold is not None:
        if rel_height is not None:
            shown = _points_within(flood, labels, merged, rel_height)
        if threshold is not None:  # The components that are born before it come first.
            shown = shown & _reaches(image, threshold, filtration.superlevel)
        born = shown.ravel()[births]
        births = births[born]
        deaths = deaths[born]
        merged = merged[: births.size]
        labels = cupy.where(shown, flood.labels_within(births, shown), np.int32(0))
    return Flooding(labels, births, deaths, cupy.asarray(merged))


class _Flood:
    """An image, the components that last, oldest first, and the others."""

    def __init__(self, image: Any, shown: Any, least: float, filtration: Filtration) -> None:
        self.filtration = filtration
        self.image = image
        self.shown = shown
        omitted = replace(filtration, nan="omit")
        keys, never = keys_of(image, None if shown.all() else shown, omitted)
        kind = kind_of(filtration, complement=False)
        self.keys = keys
        torus = any(filtration.boundary.wraps)
        self.forests = Forests(keys, [kind], never, reverse=False, paired=True, torus=torus)
        self.wide = kind.connectivity > 1
        births, deaths = self.forests.pairs(0)
        flat_keys = keys.ravel()
        deaths[(deaths >= 0) & (flat_keys[deaths] == never)] = -1
        flat = image.ravel()
        native = image.dtype.newbyteorder("=")
        born, died = (flat[points].astype(native) for points in (births, deaths))
        lasts = (deaths < 0) | ((born != died) & lasting(born, died, least))
        enters = flat_keys[births] < never  # Minima of points that never enter are no births.
        self.births = births[lasts & enters]
        self.deaths = deaths[lasts & enters]
        self._weak = births[~lasts], deaths[~lasts]
        self._lasts = lasts
        self._enters = enters
        self._earlier = self._find_earlier()

    def labels(self) -> Any:
        """Return labels, numbers of births from 1 on, or 0 for points that never enter.

        The spread begins with a lasting minimum to which steps lead from each point.
        """
        numbers = cupy.cumsum((self._lasts & self._enters).astype(np.int32))
        own = cupy.where(self._lasts & self._enters, numbers, CLOSED).astype(np.int32)
        basins = own[self._lasting_nodes()]
        size = self.keys.size
        labels = cupy.empty(size, np.int32)
        given = self.forests.labels[0], basins, np.int64(size), labels
        self._run("label_basins", ceil_div(size, THREADS), *given)
        return cupy.where(self.shown, self._spread(labels, self._earlier, *self._weak), np.int32(0))

    def labels_within(self, births: Any, shown: Any) -> Any:
        """Return labels of some births, for points that reach them through points shown only."""
        labels = cupy.full(self.keys.size, CLOSED, np.int32)
        labels[births] = cupy.arange(1, births.size + 1, dtype=np.int32)
        flat = shown.ravel()
        earlier = cupy.where(flat, self._earlier, np.uint32(0))
        weak, ends = self._weak
        known = flat[ends]
        return self._spread(labels, earlier, weak[known], ends[known])

    def _lasting_nodes(self) -> Any:
        """Return for each minimum one that lasts, to which steps lead from its basin.

        From all points of a component that does not last, and is part of no larger one that does
        not, steps lead to the point where it dies, and from there to the basin beyond.
        """
        tree = self.forests.tree(0)
        nodes = tree.minima.size
        until = (tree.links + 1).astype(np.uint32)
        elders = cupy.empty(nodes, np.int32)
        numbers = cupy.arange(nodes, dtype=np.int32)
        blocks = ceil_div(nodes, THREADS)
        given = tree.joined, until, numbers, np.uint32(nodes), elders
        plan_call(
            "components",
            "find_roots",
            macros=NO_CODES,
            grid=(blocks,),
            threads=THREADS,
            arguments=given,
        ).launch()
        weak = ~self._lasts
        tops = _followed(cupy.where(weak & weak[elders], elders, numbers))
        last = cupy.flatnonzero(weak & (tops == numbers)).astype(np.int32)
        beyond = cupy.where(weak, tops, numbers)
        if last.size:
            where = (
                self.forests.volume(1),
                self.forests.labels[0],
                tree.edges,
                tree.links.astype(np.int32),
            )
            asked = tops, last, np.int32(last.size), beyond
            self._run("find_beyond", ceil_div(last.size, THREADS), *where, *asked)
        return _followed(beyond)

    def _spread(self, labels: Any, earlier: Any, births: Any, deaths: Any) -> Any:
        """Spread labels until none changes, where `births` get those of `deaths`."""
        births, deaths = (points.astype(np.int32) for points in (births, deaths))
        volume = self.forests.volume(1)
        size = labels.size
        chunks = ceil_div(size, THREADS)
        listed = cupy.ones(chunks, np.int32)
        lists = [cupy.arange(chunks, dtype=np.int32), cupy.empty(chunks, np.int32)]
        counts = cupy.zeros(ROUNDS + 1, np.int32)
        counts[0] = chunks
        blocks = min(chunks, MOST_BLOCKS)
        while True:
            for i in range(ROUNDS):
                now = CHUNKS(
                    listed=listed.data.ptr,
                    now=lists[i % 2].data.ptr,
                    next=lists[1 - i % 2].data.ptr,
                    count=counts.data.ptr + 4 * i,
                    next_count=counts.data.ptr + 4 * (i + 1),
                    size=chunks,
                )
                self._run("spread_labels", blocks, volume, now, earlier, np.int64(size), labels)
                if births.size:
                    leave = volume, now, births, deaths, np.int32(births.size), labels
                    self._run("leave_minima", ceil_div(births.size, THREADS), *leave)
            left = int(counts[ROUNDS])
            if not left:
                break
            counts.fill(0)
            counts[0] = left
        return cupy.where(labels != CLOSED, labels, np.int32(0)).reshape(self.keys.shape)

    def merged_into(self, labels: Any) -> NDArray[np.int32]:
        """Return the label of the component that each one joins when it dies, or 0, (k,)."""
        ends = self.deaths[self.deaths >= 0]
        keys = self.keys.ravel()[ends].astype(np.int64)
        order = cupy.lexsort(cupy.stack([ends, keys]))
        places = ends[order]
        _, height, width = self.forests.shape
        offsets = cupy.asarray(np.indices((3, 3, 3)).reshape(3, CUBE) - 1)
        rows, x = places // width, places % width
        index = [(rows // height)[:, None], (rows % height)[:, None], x[:, None]]
        near = [along + step for along, step in zip(index, offsets, strict=True)]
        inside = cupy.ones(near[0].shape, np.bool_)
        if self.forests.macros["TORUS"]:
            near = [along % length for along, length in zip(near, self.forests.shape, strict=True)]
        for along, length in zip(near, self.forests.shape, strict=True):
            inside &= (along >= 0) & (along < length)
        beside = (near[0] * height + near[1]) * width + near[2]
        beside = cupy.where(inside, beside, 0)
        found = cupy.where(inside, labels.ravel()[beside], np.int32(0)).get()
        keys = self.keys.ravel()[beside]
        if self.forests.macros["TORUS"]:  # On a torus, equal points are not in the order of steps.
            entries = keys.astype(np.uint64) << np.uint64(32) | beside.astype(np.uint64)
            keys = cupy.argsort(cupy.argsort(entries, axis=1), axis=1)
        keys = keys.astype(np.uint32).get()
        connected = np.delete(np.arange(CUBE), CENTER) if self.wide else FACES
        steps = connected - CENTER
        cubes = CUBE * np.arange(len(found), dtype=np.int64) + CENTER
        return merge_labels(
            cubes, keys.ravel(), labels=found.ravel(), steps=steps, count=self.births.size
        )

    def _find_earlier(self) -> Any:
        """Return the set of the connected neighbours of each point that enter before it."""
        depth, height, width = self.forests.shape
        columns = THREADS if self.keys.ndim < 3 else COLUMNS
        tiles = ceil_div(width, columns) * ceil_div(height, THREADS // columns)
        slices = max(1, min(SLICES, depth * tiles // BLOCKS))
        earlier = cupy.empty(self.keys.size, np.uint32)
        given = self.forests.volume(1), np.int32(slices), earlier
        self._run("find_earlier", tiles * ceil_div(depth, slices), *given)
        return earlier

    def _run(self, name: str, blocks: int, *arguments: Any) -> None:
        macros = {
            "CODE": ELEMENTS[self.keys.dtype.name],
            "PLANAR": int(self.keys.ndim < 3),
            "REVERSE": 0,
            "TORUS": self.forests.macros["TORUS"],
            "WIDE": int(self.wide),
        }
        plan_call(
            "flood", name, macros=macros, grid=(blocks,), threads=THREADS, arguments=arguments
        ).launch()


def _followed(nodes: Any) -> Any:
    """Return where paths end, given the node to which each leads: another one, or itself."""
    for _ in range(nodes.size.bit_length()):
        nodes = nodes[nodes]
    return nodes


def _entry_values(values: Any, superlevel: bool) -> Any:
    """Return values that grow in the order in which points enter."""
    values = values.view(np.uint8) if values.dtype.kind == "b" else values
    if superlevel:
        return -values if values.dtype.kind == "f" else ~values
    return values


def _points_within(flood: _Flood, labels: Any, merged: NDArray[np.int32], rel_height: float) -> Any:
    """Return whether points enter up to the level at which the region of their label is cut."""
    superlevel = flood.filtration.superlevel
    flat = flood.image.ravel()
    flat_labels = labels.ravel()
    count = flood.births.size
    entries = flood.keys.ravel().astype(np.uint64) << np.uint64(32)
    entries |= cupy.arange(flat.size, dtype=np.uint64)
    entries[~flood.shown.ravel()] = 0
    last = cupy.zeros(count + 1, np.uint64)
    cupy.maximum.at(last, flat_labels, entries)
    last_entries = last.get()
    # Components that never die end at the last value of their connected part of the image.
    for label in range(count, 0, -1):
        elder = merged[label - 1]
        if elder:
            last_entries[elder] = max(last_entries[elder], last_entries[label])
    last_points = (last_entries & np.uint64(0xFFFF_FFFF)).astype(np.int64)
    deaths = flood.deaths.get()
    ends = cupy.asarray(np.where(deaths < 0, last_points[1:], deaths))
    born, died = (_entry_values(flat[points], superlevel).get() for points in (flood.births, ends))
    if not count:
        return cupy.zeros_like(flood.shown)
    levels = cut_levels(born, died, rel_height, _finite_range(flood, superlevel))
    of_labels = cupy.asarray(np.concatenate([levels[:1], levels]))
    values = _entry_values(flood.image, superlevel)
    return flood.shown & (values <= of_labels[labels])


def _finite_range(flood: _Flood, superlevel: bool) -> tuple[float, float] | None:
    """Return the least and the largest finite float of the points shown, or None."""
    if flood.image.dtype.kind != "f":
        return None
    values = _entry_values(flood.image, superlevel)
    known = values[flood.shown & cupy.isfinite(values)]
    return (float(known.min()), float(known.max())) if known.size else None


def _reaches(image: Any, threshold: Any, superlevel: bool) -> Any:
    """Return whether points enter up to a threshold."""
    levels = round_to_levels(np.array([threshold]), image.dtype.newbyteorder("="), superlevel)
    if not levels.entered[0]:
        return cupy.zeros(image.shape, np.bool_)
    values = image.view(np.uint8) if image.dtype.kind == "b" else image
    level = levels.values[0]
    return values >= level if superlevel else values <= level
