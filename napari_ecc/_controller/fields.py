"""Data that are thresholded, and what is found in them besides the curve."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, generate_binary_structure, label
from scipy.ndimage import find_objects as bounding_boxes

import ecc_core as ecc
from napari_ecc._controller.layers import is_lazy
from napari_ecc._controller.loading import WORKERS, as_completed, prepared
from napari_ecc._model.explorer import Classes, Curve, Histogram
from napari_ecc._model.levels import even_levels, evenly
from napari_ecc._workers import Step, apart

if TYPE_CHECKING:
    from dask import array as da

BLOCK_POINTS = 1 << 24
"""Points per block of a large image in memory."""
COUNTED = 1 << 23
"""Points per block whose components are counted, about 0.1 s: a job can be cancelled between."""
WIDTH = 1 / 200
"""Width of the line around an object, as a share of the longest side of the image."""
PAIRED = {2: 1 << 23, 3: 1 << 22}
"""Largest number of points whose births and deaths are computed, which takes some seconds."""
BINS = 256
"""Of a histogram, as many as scikit-image takes for Otsu's threshold of real numbers."""
MOST_SAMPLES = 1 << 22
"""Histograms of larger images are those of evenly spaced points."""
Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Field:
    """The data that are thresholded: the selected part, smoothed if requested."""

    data: Any
    """An array in memory, or a dask array."""
    mask: Array | None
    """False where a point never enters."""

    def inside(self, threshold: float, superlevel: bool) -> Any:
        """Return the set at a threshold, as lazily as the data are."""
        if self.data.dtype.kind in "iu" and math.isfinite(threshold):
            # Integers of 64 bits would be rounded to compare them with a float.
            threshold = math.ceil(threshold) if superlevel else math.floor(threshold)
        inside = self.data >= threshold if superlevel else self.data <= threshold
        return inside if self.mask is None else inside & self.mask

    @cached_property
    def range(self) -> tuple[float, float]:
        """The least and the greatest finite value of data in memory, or what float64 has beyond."""
        data = self.data if self.mask is None else self.data[self.mask]
        if data.dtype.kind == "f":
            ends = [data.min(initial=0), data.max(initial=0)]  # There may be no values at all.
            if not np.isfinite(ends).all():
                data = data[np.isfinite(data)]
        if data.size == 0:
            raise ValueError("The image has no finite values here, so there are no thresholds.")
        least = data.min()
        most = data.max()
        low = float(least)
        high = float(most)
        if data.dtype.kind in "iu":  # Integers of 64 bits may have been rounded inward.
            low = low if int(low) <= int(least) else math.nextafter(low, -math.inf)
            high = high if int(high) >= int(most) else math.nextafter(high, math.inf)
        return low, high

    def levels(self, count: int, bounds: tuple[float, float] | None = None) -> NDArray[np.float64]:
        """Return so many thresholds between bounds, or over the range of the values."""
        low, high = bounds or self.range
        return even_levels(low, high, count, whole=self.data.dtype.kind in "biu")

    def blocks(self, points: int) -> "tuple[da.Array, da.Array | None]":
        """Return data and mask as dask arrays, those in memory in blocks of about `points`."""
        from dask.array import Array as DaskArray
        from dask.array.core import normalize_chunks

        data = self.data
        mask = self.mask
        if not isinstance(data, DaskArray):
            limit = points * data.dtype.itemsize
            chunks = normalize_chunks("auto", data.shape, limit, data.dtype)
            data = chunked(data, chunks)
        return data, None if mask is None else chunked(mask, data.chunks)


def chunked(array: Array, chunks: Any) -> Any:
    """Return an array in memory as a dask array."""
    from dask import array as da

    # Without name=False, dask computes a hash of all values.
    return da.from_array(array, chunks=chunks, name=False)


def count_all(field: Field, thresholds: NDArray[np.float64], **sets: Any) -> Iterator[Step]:
    """Compute the Betti curves of a field, block by block if it is large or lazy.

    The value of the last step is the `ecc_core.BettiCurves`; before it is None.
    """
    options: dict[str, Any] = {**sets, "nan": "omit", "axis": range(field.data.ndim)}
    yield from prepared("counts", field.data)
    if isinstance(field.data, np.ndarray) and field.data.size <= COUNTED:
        options |= {"mask": field.mask, "workers": WORKERS}
        yield Step(ecc.betti_curves(field.data, thresholds, **options))
        return
    data, mask = field.blocks(COUNTED)
    lazy = ecc.betti_curves(data, thresholds, mask=mask, **options)
    values: Any = lazy.values
    for found in as_completed(values.to_delayed().ravel().tolist()):
        yield Step(None if found is None else replace(lazy, values=found[1]))


class CriticalPoints(NamedTuple):
    """Points that change the Euler characteristic when they enter."""

    points: NDArray[np.int64]
    effects: NDArray[np.int64]
    """By how much each point changes it: its value of `ecc_core.euler_coefficients`."""
    values: NDArray[Any]
    """Thresholds at which the points enter."""
    total: int
    """How many there are, also of those that were left out."""


def find_critical_points(
    field: Field, window: tuple[float, float], *, most: int, **sets: Any
) -> Iterator[Step]:
    """Find the critical points with values in a window, block by block.

    Each step yields the `CriticalPoints` so far. Of more than `most`, those with the greatest
    effect are kept, and of these the nearest to the middle of the window.
    """
    from dask.array.core import slices_from_chunks
    from dask.delayed import delayed

    data, mask = field.blocks(BLOCK_POINTS)
    effects = ecc.euler_coefficients(data, mask=mask, nan="omit", **sets)

    def in_block(values: Array, effects: Array, place: tuple[slice, ...]) -> CriticalPoints:
        chosen = (effects != 0) & (values >= window[0]) & (values <= window[1])
        points = np.argwhere(chosen) + [at.start for at in place]
        return CriticalPoints(points, effects[chosen].astype(np.int64), values[chosen], len(points))

    find = delayed(in_block, pure=False)
    # Unoptimized graphs share the tasks that read a block, so each block is read once.
    arrays = (array.to_delayed(optimize_graph=False).ravel() for array in (data, effects))
    blocks = zip(*arrays, slices_from_chunks(data.chunks), strict=True)
    parts = [find(*block) for block in blocks]
    none = np.zeros((0, field.data.ndim), np.int64)
    found = CriticalPoints(none, none[:, 0], np.zeros(0), 0)
    done = 0
    for part in as_completed(parts):
        if part is not None:
            done += 1
            pairs = zip(found[:3], part[1][:3], strict=True)
            points, effects, values = (np.concatenate(pair) for pair in pairs)
            if len(points) > most:
                distances = np.abs(values - (window[0] + window[1]) / 2)
                best = np.lexsort((distances, -np.abs(effects)))[:most]
                points = points[best]
                effects = effects[best]
                values = values[best]
            found = CriticalPoints(points, effects, values, found.total + part[1].total)
        yield Step(found, done, len(parts))


def compute_histogram(field: Field, curve: Curve) -> Iterator[Step]:
    """Find the `Histogram` of the values over the range of a curve's thresholds.

    It is None for data that are not in memory, which would be read for it once more, or without
    values in the range.
    """
    if is_lazy(field.data):
        yield Step(None)
        return
    from skimage.filters import threshold_otsu

    step = max(1, round((field.data.size / MOST_SAMPLES) ** (1 / field.data.ndim)))
    sparse = (slice(None, None, step),) * field.data.ndim
    values = field.data[sparse]
    if field.mask is not None:
        values = values[field.mask[sparse]]
    low = float(curve.thresholds[0])
    high = float(curve.thresholds[-1])
    whole = field.data.dtype.kind in "biu" and high - low < BINS
    end = high if low < high else low + 1  # A single threshold is given a bin to the right of it.
    edges = np.arange(low, high + 2) - 0.5 if whole else evenly(low, end, BINS + 1)
    counts = np.histogram(values.astype(np.float64, copy=False), edges)[0]
    if not counts.any():
        yield Step(None)
        return
    middles = edges[1:] / 2 + edges[:-1] / 2
    several = np.count_nonzero(counts) > 1
    # It is found among the numbers of the bins, as squares of values may be beyond float64.
    place = threshold_otsu(hist=(counts, np.arange(counts.size))) if several else counts.argmax()
    yield Step(Histogram(edges, counts, float(middles[place])))


def surroundings(
    sets: NDArray[np.integer],
) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.intp]] | None:
    """Return where a bool array begins, the array, and the boxes around sets numbered 1, 2, ...

    The array is true near the sets, and at the ends of two that touch. The boxes are where each set
    begins and ends along each axis, and its middle point in C order, (sets, axes, 3). None if all
    are empty.
    """
    found = [(k, box) for k, box in enumerate(bounding_boxes(sets), 1) if box]
    if not found:
        return None
    width = max(1, round(WIDTH * max(sets.shape)))
    around = np.zeros(sets.shape, np.bool_)
    boxes = np.empty((len(found), sets.ndim, 3), np.intp)
    for ends, (k, box) in zip(boxes, found, strict=True):
        points = np.flatnonzero(sets[box] == k)
        middle = np.unravel_index(points[points.size // 2], sets[box].shape)
        ends[:] = [(at.start, at.stop, at.start + j) for at, j in zip(box, middle, strict=True)]
        room = _widened(box, width)
        cut = sets[room]
        inside = cut == k
        around[room] |= binary_dilation(inside, iterations=width) & (cut == 0)
        around[room] |= binary_dilation(inside) & ~inside
    low = np.maximum(boxes[..., 0].min(axis=0) - width, 0)
    high = boxes[..., 1].max(axis=0) + width
    return low, around[tuple(map(slice, low, high))], boxes


def without_holes(inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a set with all that it surrounds: what is connected with the outside is not in it."""
    outside, _ = label(~np.pad(inside, 1))
    corner = (0,) * inside.ndim
    within = (slice(1, -1),) * inside.ndim
    return np.asarray(outside != outside[corner])[within]


class Objects(NamedTuple):
    """Components of a set that last, the oldest first."""

    labels: Any
    """Labels are 1 and larger inside objects, and 0 elsewhere."""
    table: pd.DataFrame | None
    """A row for each, as features of a Labels layer: ``index`` (its label), ``birth``, ``death``
    (where it merges with an older one; infinite if it does not), ``persistence`` (their
    difference), ``merges_with`` (the label of the older one, or 0) and ``points`` (their number).
    None where births and deaths are not computed."""
    birth_points: Array | None = None
    """Where they are born, (k, d); None where that is not known."""

    def of_size(self, least: int) -> "Objects":
        """Those of at least so many points, with new labels; all of data that are not in memory."""
        if least <= 1 or is_lazy(self.labels):
            return self
        sizes = np.bincount(self.labels.ravel())
        sizes[0] = 0
        number = np.where(sizes >= least, np.cumsum(sizes >= least), 0).astype(np.int32)
        table = self.table
        if table is not None:
            table = table[sizes[1:] >= least].reset_index(drop=True)
            table = table.assign(index=table.index + 1)
            if "merges_with" in table:
                table = table.assign(merges_with=number[table["merges_with"]])
        points = None if self.birth_points is None else self.birth_points[sizes[1:] >= least]
        return Objects(number[self.labels], table, points)


def why_unpaired(field: Field) -> str:
    """Return why `find_classes` is not for a field, and what can be done; "" if it is.

    It takes too long for large fields, and is exact in float64, which large integers are not.
    """
    data = field.data
    most = PAIRED[field.data.ndim]
    if is_lazy(data):
        return "Births are found of data in memory only: load the data, or crop them."
    if data.dtype.kind in "iu" and data.dtype.itemsize == 8:
        return f"Births are not found of {data.dtype}: convert the data to 32 bits or to float64."
    if data.size > most:
        slices = ", or choose Slice" if data.ndim == 3 else ""
        return (
            f"The {'volume' if data.ndim == 3 else 'image'} has {data.size / 1e6:.1f} million "
            f"points; births are found up to {most / 1e6:.1f}: crop or bin it{slices}."
        )
    return ""


def find_classes(field: Field, levels: NDArray[np.float64], **sets: Any) -> Iterator[Step]:
    """Find the `Classes` of a field, with curves at some levels."""
    yield from prepared("pairs", field.data)
    find = partial(ecc.persistence_pairs, field.data, mask=field.mask, nan="omit", workers=WORKERS)
    pairs = yield from apart(partial(find, **sets))
    yield Step(Classes(pairs, levels))


def _widened(box: tuple[slice, ...], width: int) -> tuple[slice, ...]:
    """Return a box with more room around it, within an array."""
    grown = []
    for at in box:
        start = max(at.start - width, 0)
        grown.append(slice(start, at.stop + width))
    return tuple(grown)


def find_objects(field: Field, threshold: float, least: float, **sets: Any) -> Iterator[Step]:
    """Find the `Objects` of a field at a threshold, of at least some persistence.

    All of those of large data are found, and one for all of the set of data that are not in memory,
    as lazily as they are.
    """
    if is_lazy(field.data):
        inside = field.inside(threshold, sets["superlevel"])
        yield Step(Objects(inside.astype(np.uint8), None))
        return
    if why_unpaired(field):
        inside = field.inside(threshold, sets["superlevel"])
        structure = generate_binary_structure(inside.ndim, sets["connectivity"] or inside.ndim)
        yield Step(Objects(label(inside, structure)[0], None))
        return
    yield from prepared("components", field.data)
    find = partial(ecc.persistent_regions, field.data, least, threshold=threshold, mask=field.mask)
    found = yield from apart(partial(find, nan="omit", workers=WORKERS, **sets))
    yield Step(_objects(found, threshold))


def find_whole_objects(field: Field, least: float, **sets: Any) -> Iterator[Step]:
    """Find the `Objects` of a field of at least some persistence, up to half of their heights."""
    yield from prepared("components", field.data)
    find = partial(ecc.persistent_regions, field.data, least, rel_height=0.5, mask=field.mask)
    found = yield from apart(partial(find, nan="omit", workers=WORKERS, **sets))
    yield Step(_objects(found))


def _objects(found: ecc.PersistentRegions, threshold: float | None = None) -> Objects:
    """Join the regions that have merged at the threshold, if there is one."""
    end = -np.inf if found.superlevel else np.inf
    deaths = np.where(found.essential, end, found.deaths.astype(np.float64))
    births = found.births.astype(np.float64)
    sign = -1 if found.superlevel else 1
    alive = np.ones(len(births), bool)
    if threshold is not None:
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
        "persistence": found.persistence[alive],
        "merges_with": number[found.merged_into[alive]].astype(np.int64),
        "points": np.bincount(labels.ravel(), minlength=int(alive.sum()) + 1)[1:],
    }
    return Objects(labels, pd.DataFrame(columns), found.birth_points[alive])
