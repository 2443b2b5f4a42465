"""Betti curves of labelled regions on a device, each of which is counted alone.

As on the CPU, the boxes of regions are laid side by side on sheets, one masked point apart, and
each class belongs to the region in which it is born.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import Kind, complete, kinds_of
from ecc_core._backends.cuda import launch
from ecc_core._backends.cuda.arrays import adopt, as_cupy
from ecc_core._backends.cuda.bins import prepare
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.forests import Forests
from ecc_core._backends.cuda.recode import codes_of
from ecc_core._backends.cuda.regions import contiguous_labels, rank_labels
from ecc_core._backends.cuda.scan import pick_levels
from ecc_core._backends.cuda.variants import ELEMENTS, variant_of
from ecc_core._backends.sheets import Sheet, lay_out
from ecc_core._request.filtration import Filtration

SHEET, SHEET_2D = (512, 512), (4096, 4096)  # rows and columns
THREADS, BLOCKS = 256, 64  # that share a box


def region_betti_curves(
    image: Any,
    labels: Any,
    thresholds: Any,
    filtration: Filtration,
    *,
    workers: int | None = None,  # noqa: ARG001
) -> tuple[Any, Any]:
    """Ids of the regions, increasing, and their Betti numbers, (ids, d, n) int64."""
    ids, found = launch.region_curves(image, labels, thresholds, filtration)  # raises for NaN
    with adopt(image) as view:
        euler = as_cupy(found)
        if not euler.size:
            return ids, view.wrap(cupy.zeros((len(euler), filtration.ndim, euler.shape[1]), int))
        ranked = rank_labels(contiguous_labels(as_cupy(labels)))
        numbers, kinds = ranked.ranks[ranked.labels], kinds_of(filtration)
        variant = variant_of(filtration, view.element, masked=False)
        given = launch.thresholds_on_host(thresholds), variant.element, variant.superlevel
        prepared = prepare(*given, view.array.device.id)
        single = view._replace(array=view.array[None])
        codes, _, memory = codes_of(single, None, variant, prepared, keep=True)
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
            alive = cupy.cumsum((born - died).reshape(-1, levels + 1)[1:, :-1], axis=1)
            alive = alive[:, ::-1] if filtration.superlevel else alive
            counts.append(pick_levels(cupy.ascontiguousarray(alive), prepared))
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
    boxes: NDArray[np.int64] = cupy.stack(sides, axis=2).get().astype(np.int64)
    return boxes


def _events(
    sheet: Sheet,
    boxes: NDArray[np.int64],
    keys: Any,
    numbers: Any,
    kinds: list[Kind],
    levels: int,
) -> list[list[Any]]:
    """Return (levels + 1) times the region, plus the key of births and deaths, for each kind."""
    codes = cupy.full(sheet.shape[keys.ndim < 3 :], levels, keys.dtype)
    regions, own = cupy.zeros(codes.size, np.int32), np.array(sheet.regions)
    low, high = boxes[own, 0], boxes[own, 1]
    rows = np.column_stack([own + 1, low, high - low, sheet.places]).astype(np.int32)
    plane: Any = (1, *keys.shape)[-2:]
    sizes = [np.int32(size) for size in (*plane, *sheet.shape[1:])]
    arguments = keys, numbers, *sizes[:2], cupy.asarray(rows), codes, regions, *sizes[2:]
    macros, grid = {"CODE": ELEMENTS[keys.dtype.name]}, (len(rows), BLOCKS)
    plan_call("sheets", "lay_out", macros, grid, THREADS, arguments).launch()
    forests = Forests(codes, kinds, levels, reverse=False, paired=True)
    flat, events = codes.ravel(), []
    for i, kind in enumerate(kinds):
        births, deaths = forests.pairs(i)
        if kind.complement:
            births, deaths = deaths, births
        # Beyond the last threshold components may end that would not end alone.
        deaths = deaths[(deaths >= 0) & (regions[births] == regions[deaths])]
        found = (regions[at].astype(np.int64) * (levels + 1) + flat[at] for at in (births, deaths))
        events.append([*found])
    return events
