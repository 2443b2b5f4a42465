"""Betti curves and persistence pairs on a device, from minimum spanning forests."""

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.components import Kind, complete, kind_of, kinds_of
from ecc_core._backends.cuda import launch
from ecc_core._backends.cuda.arrays import (
    ArrayView,
    adopt,
    as_cupy,
    numbers,
    on_host,
    thresholds_on_host,
)
from ecc_core._backends.cuda.bins import prepare
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.exact import EVERY_VALUE, every_value
from ecc_core._backends.cuda.forests import THREADS, Forests
from ecc_core._backends.cuda.kernels import ELEMENTS
from ecc_core._backends.cuda.recode import codes_of
from ecc_core._backends.cuda.regions import contiguous_labels, rank_labels
from ecc_core._backends.cuda.samples import Images
from ecc_core._backends.cuda.scan import at_thresholds
from ecc_core._backends.cuda.torus import periodic_curves
from ecc_core._backends.cuda.tunnels import tunnel_pairs
from ecc_core._backends.sheets import Sheet, lay_out
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import changes
from ecc_core._request.persistence import lasting
from ecc_core.errors import NAN_MESSAGE

SHEET, SHEET_2D = (512, 512), (4096, 4096)  # rows and columns
BOX_BLOCKS = 64  # that share a box
KEYS_A_THREAD = 8


def betti_curves(
    image: Any,
    thresholds: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,
    least: float = 0,
) -> Any:
    if least > 0:
        return _lasting_curves(image, thresholds, filtration, mask, least)
    if not filtration.boundary.is_closed:
        return periodic_curves(image, thresholds, filtration, mask)
    ndim = filtration.ndim
    superlevel = filtration.superlevel
    euler = as_cupy(launch.curve(image, thresholds, filtration, mask=mask))  # raises for NaN
    with adopt(image) as view:
        result = cupy.zeros((len(euler), ndim, euler.shape[-1]), np.int64)
        if result.size and view.array.size:
            images = Images.of(view, filtration, as_cupy(mask))
            kinds = kinds_of(filtration)
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


def _lasting_curves(
    image: Any, thresholds: Any, filtration: Filtration, mask: Any, least: float
) -> Any:
    """Return Betti numbers of classes that last for at least `least`, (images, d, n) int64."""
    with adopt(image) as view:
        host = thresholds_on_host(thresholds)
        mask = as_cupy(mask)
        result = cupy.zeros((len(view.array), filtration.ndim, host.size), np.int64)
        if not (result.size and view.array.size):
            return view.wrap(result)
        images = Images.of(view, filtration, mask)
        prepared = prepare(host, images.variant, view.array.device.id)
        codes, _, memory = codes_of(images, prepared, keep=True)
        values = _values(view)
        levels = prepared.rules.levels
        inside = tuple(map(slice, values.shape[1:]))
        dimensions = range(filtration.ndim)
        for i, own in enumerate(values):
            flat = codes[i][inside].ravel()
            shown = None if mask is None else mask[i]
            found = _lasting_points(own, shown, dimensions, filtration, least)
            alive = []
            for points in found:
                born, died = (cupy.bincount(flat[at], minlength=levels + 1) for at in points)
                counts = born - died
                alive.append(counts[::-1] if filtration.superlevel else counts)
            result[i] = at_thresholds(cupy.stack(alive), prepared, filtration.superlevel)
        del memory
        return view.wrap(result)


def _lasting_points(
    values: Any, mask: Any, dimensions: Sequence[int], filtration: Filtration, least: float
) -> list[tuple[Any, Any]]:
    """Return the points at which classes that last are born and die; not all of them die."""
    flat = values.ravel()
    listed = []
    for births, deaths in _pairs(values, mask, dimensions, filtration):
        dies = deaths >= 0
        if least > 0:
            lasts = lasting(flat[births], flat[deaths], least)
            births = births[cupy.flatnonzero(lasts | ~dies)]
            dies = dies & lasts
        listed.append((births, deaths[cupy.flatnonzero(dies)]))
    return listed


def _values(view: ArrayView) -> Any:
    """Return the images as numbers; True is any byte but 0."""
    values = numbers(view)
    return values.view(np.uint8) != 0 if values.dtype.kind == "b" else values


def exact_betti_curves(
    image: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,
    least: float = 0,
) -> tuple[Any, Any]:
    with adopt(image) as view:
        if least > 0:
            levels = _levels_of_lasting(view, as_cupy(mask), filtration, least)
        elif view.element in EVERY_VALUE:
            levels = every_value(view.element)
        else:
            values = numbers(view).ravel()
            levels = cupy.unique(values[~cupy.isnan(values)]).get()
        found = as_cupy(betti_curves(image, levels, filtration, mask=mask, least=least))[0]
        at, changed = changes(cupy.asarray(levels), found, filtration.superlevel)
        return view.wrap_levels(at), view.wrap(cupy.ascontiguousarray(changed))


def _levels_of_lasting(
    view: ArrayView, mask: Any, filtration: Filtration, least: float
) -> NDArray[Any]:
    """Return the values at which classes that last of the only image are born and die."""
    values = _values(view)[0]
    shown = None if mask is None else mask[0]
    dimensions = range(filtration.ndim)
    found = _lasting_points(values, shown, dimensions, filtration, least)
    points = cupy.concatenate([points for pair in found for points in pair])
    levels: NDArray[Any] = cupy.unique(values.ravel()[points]).get()
    return levels


def persistence_pairs(
    image: Any,
    dimensions: Sequence[int],
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,
) -> list[tuple[Any, Any]]:
    with adopt(image) as view:
        shown = None if mask is None else as_cupy(mask)[0]
        return _pairs(_values(view)[0], shown, dimensions, filtration)


def _pairs(
    values: Any, mask: Any, dimensions: Sequence[int], filtration: Filtration
) -> list[tuple[Any, Any]]:
    """Return the points at which classes of an image are born and die, for each dimension."""
    if not values.size:
        return [(cupy.empty(0, np.int64), cupy.empty(0, np.int64)) for _ in dimensions]
    keys, never = keys_of(values, mask, filtration)
    inner = [k for k in dimensions if 0 < k < filtration.ndim - 1]
    outer = [0, filtration.ndim - 1] if inner else list(dimensions)
    kinds = [kind_of(filtration, complement=k > 0) for k in outer]
    forests = Forests(keys, kinds, never, reverse=False, paired=True)
    for i in range(len(kinds)):
        forests.tree(i)  # before the host waits for the numbers of pairs of any of them
    return [
        tunnel_pairs(forests) if k in inner else forests.lasting_pairs(outer.index(k))
        for k in dimensions
    ]


def keys_of(values: Any, mask: Any, filtration: Filtration) -> tuple[Any, int]:
    """Return keys in the order of the filtration, and that of points that never enter."""
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    if values.dtype.itemsize > 2 and values.dtype != np.float32:
        return _ranks(values, mask, filtration)
    code, first, never = _key_range(values.dtype, masked=mask is not None)
    is_float = values.dtype.kind == "f"
    values = cupy.ascontiguousarray(values)
    shown = 0 if mask is None else cupy.ascontiguousarray(mask.view(np.uint8))
    keys = cupy.empty(values.shape, code)
    nan = cupy.zeros(1, np.int64)
    macros = {
        "VALUE": "unsigned" if is_float else ELEMENTS[values.dtype.name],
        "CODE": ELEMENTS[code.name],
        "FLOAT": int(is_float),
        "BOOL": int(values.dtype.kind == "b"),
        "SUPER": int(filtration.superlevel),
        "MASK": int(mask is not None),
    }
    blocks = ceil_div(values.size, KEYS_A_THREAD * THREADS)
    numbers = np.int64(values.size), np.int32(first), np.uint32(never)
    arguments = values, shown, keys, *numbers, nan
    plan_call("keys", "list_keys", macros, (blocks,), THREADS, arguments).launch()
    if is_float and filtration.nan == "raise" and on_host(nan)[0]:
        raise ValueError(NAN_MESSAGE)
    return keys, never


def _key_range(dtype: np.dtype[Any], *, masked: bool) -> tuple[np.dtype[Any], int, int]:
    """Return the type of keys of values, the value whose key is 0, and a key beyond all others."""
    if dtype.kind == "f":
        return np.dtype(np.uint32), 0, (1 << 32) - 1  # beyond that of infinity
    never = 1 << 8 * dtype.itemsize
    fits = dtype.itemsize == 1 or not masked
    return np.dtype(np.uint16 if fits else np.uint32), -never // 2 * (dtype.kind == "i"), never


def _ranks(values: Any, mask: Any, filtration: Filtration) -> tuple[Any, int]:
    """Return the ranks of values, and that of points that never enter."""
    levels, ranks = cupy.unique(values.ravel(), return_inverse=True)
    ranks = ranks.reshape(values.shape)
    never = levels.size
    if filtration.superlevel:
        ranks = never - 1 - ranks
    ranks = ranks.astype(np.uint32)
    shown = None if mask is None else mask.view(np.uint8) != 0
    if values.dtype.kind == "f":
        absent = cupy.isnan(values)
        if shown is not None:
            absent &= shown
        if filtration.nan == "raise" and absent.any():
            raise ValueError(NAN_MESSAGE)
        ranks[absent] = never
    if shown is not None:
        ranks[~shown] = never
    return ranks, never


def region_betti_curves(
    image: Any,
    labels: Any,
    thresholds: Any,
    filtration: Filtration,
    *,
    workers: int | None = None,
    least: float = 0,
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
        numbers = ranked.ranks[ranked.labels]
        kinds = kinds_of(filtration)
        images = Images.of(view._replace(array=view.array[None]), filtration)
        host = thresholds_on_host(thresholds)
        prepared = prepare(host, images.variant, view.array.device.id)
        codes, _, memory = codes_of(images, prepared, keep=True)
        keys = codes[0][tuple(map(slice, numbers.shape))]
        levels = prepared.rules.levels
        keys = cupy.ascontiguousarray(levels - keys if filtration.superlevel else keys)
        boxes = _boxes_of(numbers, len(euler))
        limits = SHEET if filtration.ndim == 3 else SHEET_2D
        sheets = lay_out(boxes[:, 1] - boxes[:, 0], np.arange(len(euler)), limits)
        if least > 0:
            given = _values(view), keys, numbers, filtration, levels, least
            events = [_lasting_events(sheet, boxes, *given) for sheet in sheets]
        else:
            events = [_events(sheet, boxes, keys, numbers, kinds, levels) for sheet in sheets]
        del memory
        counts = []
        for sides in zip(*events, strict=True):
            rows = (cupy.concatenate(side) for side in zip(*sides, strict=True))
            born, died = (cupy.bincount(r, minlength=(len(euler) + 1) * (levels + 1)) for r in rows)
            alive = (born - died).reshape(-1, levels + 1)[1:]
            counts.append(at_thresholds(alive, prepared, filtration.superlevel))
        if least == 0:
            counts = complete(counts, kinds, euler, filtration.ndim)
        return ids, view.wrap(cupy.stack([*counts], axis=1))


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
    regions = flat[places] - 1
    sides = []
    for step, length in zip((shape[1] * shape[2], shape[2], 1), shape, strict=True):
        indices = (places // step % length).astype(np.int32)
        low = cupy.full(count, length, np.int32)
        high = cupy.zeros(count, np.int32)
        cupy.minimum.at(low, regions, indices)
        cupy.maximum.at(high, regions, indices + 1)
        sides.append(cupy.stack([low, high], axis=1))
    found: NDArray[np.int64] = cupy.stack(sides, axis=2).get().astype(np.int64)
    return found


def _events(
    sheet: Sheet, boxes: NDArray[np.int64], keys: Any, numbers: Any, kinds: list[Kind], levels: int
) -> list[list[Any]]:
    """Return (levels + 1) times the region, plus the key of births and deaths, for each kind."""
    codes, regions = _laid_out(sheet, boxes, keys, numbers, levels)
    forests = Forests(codes, kinds, levels, reverse=False, paired=True)
    flat = codes.ravel()
    events = []
    for i in range(len(kinds)):
        births, deaths = forests.pairs(i)
        # Beyond the last threshold components may end that would not end alone.
        deaths = deaths[(deaths >= 0) & (regions[births] == regions[deaths])]
        found = (regions[at].astype(np.int64) * (levels + 1) + flat[at] for at in (births, deaths))
        events.append([*found])
    return events


def _lasting_events(
    sheet: Sheet,
    boxes: NDArray[np.int64],
    values: Any,
    keys: Any,
    numbers: Any,
    filtration: Filtration,
    levels: int,
    least: float,
) -> list[list[Any]]:
    """Return the same for each dimension, but only of classes that last for at least `least`."""
    places = cupy.arange(values.size).reshape(values.shape)
    origins, regions = _laid_out(sheet, boxes, places, numbers, -1)
    laid_out = values.ravel()[cupy.maximum(origins, 0)]
    shown = origins >= 0
    origins = origins.ravel()
    keys = keys.ravel()
    found = _lasting_points(laid_out, shown, range(filtration.ndim), filtration, least)
    return [
        [regions[at].astype(np.int64) * (levels + 1) + keys[origins[at]] for at in points]
        for points in found
    ]


def _laid_out(
    sheet: Sheet, boxes: NDArray[np.int64], codes: Any, numbers: Any, fill: int
) -> tuple[Any, Any]:
    """Return a sheet with the codes of regions, and the numbers of these in C order."""
    found = cupy.full(sheet.shape[codes.ndim < 3 :], fill, codes.dtype)
    regions = cupy.zeros(found.size, np.int32)
    own = np.array(sheet.regions)
    low = boxes[own, 0]
    high = boxes[own, 1]
    rows = np.column_stack([own + 1, low, high - low, sheet.places]).astype(np.int32)
    plane: Any = (1, *codes.shape)[-2:]
    sizes = [np.int32(size) for size in (*plane, *sheet.shape[1:])]
    arguments = codes, numbers, *sizes[:2], cupy.asarray(rows), found, regions, *sizes[2:]
    macros = {"CODE": ELEMENTS[codes.dtype.name]}
    grid = (len(rows), BOX_BLOCKS)
    plan_call("sheets", "lay_out", macros, grid, THREADS, arguments).launch()
    return found, regions
