"""Sizes of components on a device, and which of them span the image, at all thresholds at once.

Every point belongs to a basin, and the forest over the basins says to which root a basin is joined
at each key. So each point *enters* a component that is named by a root and a key. A root gains its
points, and at the keys at which other roots are joined to it, all points of these. How many those
are is summed up along the forest of roots, which is copied to the host: it has a node for each
minimum, and the image stays on the device.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import cupy
import numpy as np

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.borders import closed
from ecc_core._backends.components import kind_of
from ecc_core._backends.cpu.betti.root_sums import add_to_parents
from ecc_core._backends.cuda.arrays import (
    ArrayView,
    adopt,
    as_cupy,
    has_nan,
    numbers,
    thresholds_on_host,
)
from ecc_core._backends.cuda.bins import prepare
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.forests import NO_CODES, THREADS, Forests
from ecc_core._backends.cuda.kernels import ELEMENTS
from ecc_core._backends.cuda.recode import codes_of
from ecc_core._backends.cuda.samples import Images
from ecc_core._backends.cuda.scan import at_thresholds
from ecc_core._backends.cuda.torus import Torus, without_circles
from ecc_core._backends.cuda.winding import winding_keys
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

NEVER = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
KEY = np.uint64(0xFFFF_FFFF)
"""The bits of an entry that hold the key."""
ROOT_BITS = np.uint64(32)
"""The bit at which the root of an entry begins."""


def component_curves(
    image: Any,
    thresholds: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,
    ends: tuple[Any, Any] = (None, None),
) -> Any:
    with adopt(image) as view:
        shown = as_cupy(mask)
        inlet, outlet = map(as_cupy, ends)
        pairs = filtration.ndim if inlet is None or outlet is None else 1
        host = thresholds_on_host(thresholds)
        result = cupy.zeros((len(view.array), 2 + pairs, host.size), np.int64)
        if not (result.size and view.array.size):
            return view.wrap(result)
        if filtration.nan == "raise" and "float" in view.element and has_nan(view, shown):
            raise ValueError(NAN_MESSAGE)
        kept = _kept_points(view, shown, filtration)
        images = Images.of(view, closed(filtration, filtration.ndim), shown)
        prepared = prepare(host, images.variant, view.array.device.id)
        codes, _, memory = codes_of(images, prepared, keep=True)
        levels = prepared.rules.levels
        inside = tuple(map(slice, view.array.shape[1:]))
        for i, code in enumerate(codes):
            keys = code[inside]
            keys = cupy.ascontiguousarray(levels - keys if filtration.superlevel else keys)
            reached = _ends_of(
                keys.shape,
                None if kept is None else kept[i],
                inlet=None if inlet is None else _booleans(inlet[i]),
                outlet=None if outlet is None else _booleans(outlet[i]),
            )
            around = _wrapped_axes(filtration) if inlet is None and outlet is None else []
            found = _Growth.of(keys, levels, filtration, around).curves(reached)
            changes = cupy.zeros((2 + pairs, levels + 1), np.int64)
            changes[:, :levels] = found
            changes[:, 1:levels] -= found[:, :-1]
            result[i] = at_thresholds(changes, prepared, filtration.superlevel)
        del memory
        return view.wrap(result)


def _kept_points(view: ArrayView, mask: Any, filtration: Filtration) -> Any:
    """Return which points are neither masked nor omitted as NaN, or None if all are kept."""
    kept = None if mask is None else _booleans(mask)
    if "float" in view.element and filtration.nan == "omit":
        known = ~cupy.isnan(numbers(view))
        kept = known if kept is None else known & kept
    return kept


def _booleans(mask: Any) -> Any:
    """Return a mask in which True is stored as 1, and not as another byte."""
    return mask.view(np.uint8) != 0


def _ends_of(shape: tuple[int, ...], kept: Any, inlet: Any, outlet: Any) -> list[Any]:
    """Return what selects the points of the inlet and the outlet of each pair of ends.

    If one of them is not given, it is the first or the last slice along each axis that has points
    which are kept.
    """
    if inlet is not None and outlet is not None:
        return [inlet, outlet]
    found: list[Any] = []
    for axis, length in enumerate(shape):
        first = 0
        last = length - 1
        if kept is not None:
            axes = range(len(shape))
            across = (*axes[:axis], *axes[axis + 1 :])
            in_slices = kept.any(axis=across) if across else kept
            slices = np.flatnonzero(in_slices.get())
            if slices.size:
                first = int(slices[0])
                last = int(slices[-1])
            else:  # There is no such slice; one behind the image has no points.
                first = last = length
        before = (slice(None),) * axis
        found.append((*before, slice(first, first + 1)) if inlet is None else inlet)
        found.append((*before, slice(last, last + 1)) if outlet is None else outlet)
    return found


def _wrapped_axes(filtration: Filtration) -> list[int]:
    """Return the axes around which components can wind."""
    return [axis for axis, wraps in enumerate(filtration.boundary.wraps) if wraps]


class _Growth(NamedTuple):
    """The components of an image as points enter."""

    counts: Any
    """Points that enter at each key, (levels,)."""
    entries: Any
    """The root of each point in the upper half and its key in the lower half, or `NEVER`, of the
    image's shape."""
    roots: Any
    """The node of which each node is part once it is joined to an older one, (nodes,) int32."""
    deaths: Any
    """The keys at which nodes are joined, or the number of levels, (nodes,) int32."""
    order: Any
    """The nodes that are joined to others, in the order of these keys."""
    windings: dict[int, Any]
    """For some axes, the keys at which the components of nodes first wind around them, or the
    number of levels, (nodes,) int32."""

    @classmethod
    def of(
        cls, image: Any, levels: int, filtration: Filtration, around: Sequence[int]
    ) -> "_Growth":
        """Follow the components of an image of contiguous keys, of which the last never enters.

        For periodic axes in `around`, also find when components wind around them.
        """
        rest, sets = without_circles(image, filtration)
        torus = Torus.of(rest, sets) if any(sets.boundary.wraps) else None
        keys = rest if torus is None else torus.laid_out(rest, levels)
        given = keys, [kind_of(sets, complement=False)], levels
        forests = Forests(*given, reverse=False, paired=True, torus=torus is not None)
        tree = forests.tree(0)
        nodes = tree.minima.size
        counts = cupy.bincount(keys.ravel(), minlength=levels + 1)[:levels]
        at_edges = keys.ravel()[tree.edges[:, 0]].astype(np.int64)
        until = cupy.searchsorted(at_edges, cupy.arange(levels + 1), side="right")
        until = until.astype(np.uint32)
        ends = cupy.concatenate([at_edges, cupy.full(1, levels, np.int64)])
        deaths = ends[tree.links].astype(np.int32)
        volume = forests.volume(1)
        macros = {
            "CODE": ELEMENTS[keys.dtype.name],
            "PLANAR": int(keys.ndim < 3),
            "REVERSE": 0,
            "TORUS": int(torus is not None),
        }

        entries = cupy.empty(keys.shape, np.uint64)
        where = volume, forests.labels[0], tree.joined, until, np.int64(keys.size)
        _run("enter_points", macros, keys.size, *where, entries)
        roots = cupy.empty(nodes, np.int32)
        _run("find_roots", macros, nodes, tree.joined, until, deaths, np.uint32(nodes), roots)
        joins = cupy.flatnonzero(deaths < levels)
        order = joins[cupy.argsort(tree.links[joins])]
        if torus is not None:
            entries = cupy.ascontiguousarray(torus.image_of(entries))
        born = keys.ravel()[tree.minima].astype(np.int32)
        wound = iter(winding_keys(forests, macros, until) if around and torus is not None else [])
        windings = {}
        for axis, wraps in enumerate(filtration.boundary.wraps):
            circle = wraps and image.shape[axis] == 1  # All components wind around a circle.
            keys_there = born if circle else next(wound, None)
            if axis in around:
                windings[axis] = keys_there
        return cls(counts, entries.reshape(image.shape), roots, deaths, order, windings)

    def curves(self, ends: list[Any]) -> Any:
        """Return points, those of the largest component, and components that touch pairs of ends.

        They are (2 + pairs, levels) int64, after each key. `ends` select points of the image. Those
        that wind around an axis touch both of its ends.
        """
        levels = self.counts.size
        gains = self._gains()
        sizes, reached = self._with_joined(*gains, ends)
        found = [cupy.cumsum(self.counts), self._largest(*gains, sizes)]
        for first, second in zip(reached[::2], reached[1::2], strict=True):
            spans = cupy.maximum(first, second)
            lives = cupy.flatnonzero(spans < self.deaths)
            begun, ended = (
                cupy.bincount(keys[lives], minlength=levels + 1) for keys in (spans, self.deaths)
            )
            found.append(cupy.cumsum((begun - ended)[:levels]))
        return cupy.stack(found)

    def _gains(self) -> tuple[Any, Any]:
        """Return roots and keys at which points enter, increasing, and how many points."""
        ordered = cupy.sort(self.entries.ravel())
        entered = int(self.counts.sum())
        ordered = ordered[:entered]
        changes = cupy.ones(entered, np.bool_)
        changes[1:] = ordered[1:] != ordered[:-1]
        firsts = cupy.flatnonzero(changes)
        amounts = cupy.concatenate([firsts[1:], cupy.full(1, entered, np.int64)])
        return ordered[firsts], amounts[: firsts.size] - firsts

    def _with_joined(self, codes: Any, amounts: Any, ends: list[Any]) -> tuple[Any, Any]:
        """Return the sizes of nodes when they are joined, and the keys at which they touch ends.

        The keys, (ends, nodes), are the number of levels for nodes that never touch an end.
        """
        nodes = self.roots.size
        levels = self.counts.size
        sums = cupy.concatenate([cupy.zeros(1, np.int64), cupy.cumsum(amounts)])
        holders = (codes >> ROOT_BITS).astype(np.int64)
        bounds = cupy.searchsorted(holders, cupy.arange(nodes + 1))
        own = sums[bounds[1:]] - sums[bounds[:-1]]
        reached = cupy.full((len(ends), nodes), levels, np.int32)
        touched = cupy.zeros(nodes, np.uint8)
        for i, end in enumerate(ends):
            winding = self.windings.get(i // 2)
            if winding is None:
                entries = self.entries[end].ravel()
                entries = entries[entries != NEVER]
                at = (entries >> ROOT_BITS).astype(np.int64)
                cupy.minimum.at(reached[i], at, (entries & KEY).astype(np.int32))
            else:
                reached[i] = winding
            touched |= (reached[i] < levels).astype(np.uint8) << np.uint8(i)
        sizes = own.get()
        bits = touched.get()
        add_to_parents(self.order.get(), self.roots.get(), sizes, bits)
        touched = cupy.asarray(bits)
        for i in range(len(ends)):
            joins = self.order[cupy.flatnonzero(touched[self.order] >> np.uint8(i) & np.uint8(1))]
            cupy.minimum.at(reached[i], self.roots[joins], self.deaths[joins])
        return cupy.asarray(sizes), reached

    def _largest(self, codes: Any, amounts: Any, sizes: Any) -> Any:
        """Return the size of the largest component after each key, from what nodes gain."""
        joined = sizes[self.order]
        at = self.roots[self.order].astype(np.uint64) << ROOT_BITS
        codes = cupy.concatenate([codes, at | self.deaths[self.order].astype(np.uint64)])
        amounts = cupy.concatenate([amounts, joined])
        order = cupy.argsort(codes)
        codes = codes[order]
        sums = cupy.cumsum(amounts[order])
        holders = codes >> ROOT_BITS
        starts = cupy.searchsorted(holders, holders)  # Where the gains of the same node begin.
        before = cupy.concatenate([cupy.zeros(1, np.int64), sums])[starts]
        largest = cupy.zeros(self.counts.size, np.int64)
        count = np.int64(codes.size)
        _run("raise_largest", NO_CODES, codes.size, codes, sums - before, count, largest)
        return cupy.asarray(np.maximum.accumulate(largest.get()))


def _run(name: str, macros: dict[str, Any], count: int, *arguments: Any) -> None:
    """Launch a kernel with a thread for each of so many items."""
    if count:
        grid = (ceil_div(count, THREADS),)
        plan_call(
            "components", name, macros=macros, grid=grid, threads=THREADS, arguments=arguments
        ).launch()
