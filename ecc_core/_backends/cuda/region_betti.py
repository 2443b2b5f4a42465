"""Betti curves of labelled regions on a device, each of which is counted alone.

As on the CPU, the boxes of regions are laid side by side on sheets, one masked point apart, and
each class belongs to the region in which it is born. A region that touches opposite sides of an
image along a periodic axis is an image of its own: its box is periodic along such axes, and closed
along the others.
"""

from dataclasses import replace
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.borders import closed
from ecc_core._backends.components import Kind, complete, kinds_of
from ecc_core._backends.cuda import launch
from ecc_core._backends.cuda.arrays import ArrayView, adopt, as_cupy, thresholds_on_host
from ecc_core._backends.cuda.betti import betti_curves, lasting_points, values_of
from ecc_core._backends.cuda.bins import prepare
from ecc_core._backends.cuda.calls import plan_call
from ecc_core._backends.cuda.forests import THREADS, Forests
from ecc_core._backends.cuda.kernels import ELEMENTS
from ecc_core._backends.cuda.recode import codes_of
from ecc_core._backends.cuda.regions import contiguous_labels, rank_labels
from ecc_core._backends.cuda.samples import Images
from ecc_core._backends.cuda.scan import at_thresholds
from ecc_core._backends.sheets import Sheet, lay_out
from ecc_core._request.boundary import CLOSED, PERIODIC, Boundary
from ecc_core._request.filtration import Filtration

SHEET = (512, 512)
"""Rows and columns of a sheet of volumes."""
SHEET_2D = (4096, 4096)
BOX_BLOCKS = 64  # Blocks that share a box.


def region_betti_curves(
    image: Any,
    labels: Any,
    thresholds: Any,
    filtration: Filtration,
    *,
    workers: int | None = None,
    least: float = 0,
) -> tuple[Any, Any]:
    """Return the ids of the regions, increasing, and their Betti numbers, (ids, classes, n)."""
    flat = closed(filtration, filtration.ndim)
    ids, found = launch.region_curves(image, labels, thresholds, flat)  # It raises for NaN.
    with adopt(image) as view:
        euler = as_cupy(found)
        result = cupy.zeros((len(euler), filtration.classes, euler.shape[1]), np.int64)
        if not result.size:
            return ids, view.wrap(result)
        ranked = rank_labels(contiguous_labels(as_cupy(labels)))
        numbers = ranked.ranks[ranked.labels]
        boxes = _boxes_of(numbers, len(euler))
        own = boxes[:, :, 3 - filtration.ndim :]
        spans = (own[:, 0] == 0) & (own[:, 1] == numbers.shape)
        around = spans & np.array(filtration.boundary.wraps)
        alone = around.any(axis=1)
        for i in np.flatnonzero(alone).tolist():
            box = tuple(map(slice, *own[i].tolist()))
            borders = tuple(PERIODIC if touches else CLOSED for touches in around[i])
            sets = replace(filtration, boundary=Boundary(borders))
            inside = numbers[box] == i + 1
            given = image[box][None], thresholds, sets
            values = as_cupy(betti_curves(*given, mask=inside[None], least=least))[0]
            result[i, : len(values)] = values
        others = np.flatnonzero(~alone)
        if others.size:
            counts = _on_sheets(
                view,
                numbers,
                boxes=boxes,
                regions=others,
                thresholds=thresholds,
                filtration=flat,
                least=least,
                euler=euler,
            )
            result[cupy.asarray(others), : filtration.ndim] = counts[cupy.asarray(others)]
        return ids, view.wrap(result)


def _on_sheets(
    view: ArrayView,
    numbers: Any,
    boxes: NDArray[np.int64],
    regions: NDArray[np.int64],
    thresholds: Any,
    filtration: Filtration,
    least: float,
    euler: Any,
) -> Any:
    """Return the Betti numbers of some regions of a closed image, (ids, d, n)."""
    kinds = kinds_of(filtration)
    images = Images.of(view._replace(array=view.array[None]), filtration)
    prepared = prepare(thresholds_on_host(thresholds), images.variant, view.array.device.id)
    codes, _, memory = codes_of(images, prepared, keep=True)
    keys = codes[0][tuple(map(slice, numbers.shape))]
    levels = prepared.rules.levels
    keys = cupy.ascontiguousarray(levels - keys if filtration.superlevel else keys)
    limits = SHEET if filtration.ndim == 3 else SHEET_2D
    sheets = lay_out(boxes[:, 1] - boxes[:, 0], regions, limits)
    if least > 0:
        given = values_of(view), keys, numbers, filtration, levels, least
        events = [_lasting_events(sheet, boxes, *given) for sheet in sheets]
    else:
        events = [
            _events(sheet, boxes, keys=keys, numbers=numbers, kinds=kinds, levels=levels)
            for sheet in sheets
        ]
    del memory
    counts = []
    for sides in zip(*events, strict=True):
        size = (len(boxes) + 1) * (levels + 1)
        rows = [cupy.concatenate(side) for side in zip(*sides, strict=True)]
        born, died = (cupy.bincount(row, minlength=size) for row in rows)
        alive = (born - died).reshape(-1, levels + 1)[1:]
        counts.append(at_thresholds(alive, prepared, filtration.superlevel))
    if least == 0:
        counts = complete(counts, kinds, euler, filtration.ndim)
    return cupy.stack([*counts], axis=1)


def _boxes_of(numbers: Any, count: int) -> NDArray[np.int64]:
    """Return the bounding box of each region on the host, half open: (count, 2, 3)."""
    shape = (1,) * (3 - numbers.ndim) + numbers.shape
    flat = numbers.ravel()
    first = cupy.ones(numbers.size, np.bool_)  # True where a run of one number begins in a row.
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
    codes, regions = _laid_out(sheet, boxes, codes=keys, numbers=numbers, fill=levels)
    forests = Forests(codes, kinds, levels, reverse=False, paired=True)
    flat = codes.ravel()
    events = []
    for i in range(len(kinds)):
        births, deaths = forests.pairs(i)
        # Pairs of different regions are those of components that meet beyond the last threshold,
        # where all points of the sheet have entered; of a region alone they never end.
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
    """Return what :func:`_events` does for classes of each dimension that last for `least`."""
    places = cupy.arange(values.size).reshape(values.shape)
    origins, regions = _laid_out(sheet, boxes, codes=places, numbers=numbers, fill=-1)
    laid_out = values.ravel()[cupy.maximum(origins, 0)]
    shown = origins >= 0
    origins = origins.ravel()
    keys = keys.ravel()
    sets = filtration.in_axes(laid_out.ndim)  # Sheets of images in 1-D have two axes, too.
    found = lasting_points(
        laid_out, shown, dimensions=range(filtration.ndim), filtration=sets, least=least
    )

    def bins(at: Any) -> Any:
        """Return the bins of points, in a histogram for each region."""
        first = regions[at].astype(np.int64) * (levels + 1)
        return first + keys[origins[at]]

    return [[bins(at) for at in points] for points in found]


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
    plan_call(
        "sheets", "lay_out", macros=macros, grid=grid, threads=THREADS, arguments=arguments
    ).launch()
    return found, regions
