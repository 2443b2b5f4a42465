"""Curves and counts of small images without kernels, for the time in which those are compiled.

Compiling takes some seconds, once on a machine. What is found here, by the definitions and by
labelling each set, is the same numbers: a new user sees them at once. This is one of several ways
from values to a curve (docs/design/ways.md).
"""

import itertools
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import find_objects as bounding_boxes
from scipy.ndimage import generate_binary_structure, label

import ecc_core as ecc
from napari_ecc._controller.fields import Field
from napari_ecc._controller.layers import is_lazy
from napari_ecc._controller.loading import device_name
from napari_ecc._model.levels import evenly
from napari_ecc._workers import Step

MOST_POINTS = 1 << 22
"""Points of an image whose curve is found in some tenths of a second."""
MOST_LABELLED = {2: 1 << 26, 3: 1 << 24}
"""Points of all sets together whose components are counted in a second, by the number of axes."""
MOST_REGIONS = 5000
"""Regions whose curves are found in a second or two, besides the time for their points."""
MOST_POINTS_OF_BOXES = 1 << 23
"""Points of the boxes around all regions, which overlap where regions are scattered."""
LABELLED_AT_ONCE = 1 << 21
"""Points of the sets that are labelled between two looks whether the job is cancelled."""
Array = NDArray[Any]


def is_quick(image: Any) -> bool:
    """Whether the curve of an image can be found here, and soon.

    Values are compared with thresholds in float64, and a device has its own kernels.
    """
    if is_lazy(image) or image.size > MOST_POINTS or device_name():
        return False
    small = image.dtype.itemsize <= 4 and image.dtype.kind in "biuf"
    return bool(small or image.dtype == np.float64)


def can_be_counted(field: Field, thresholds: NDArray[np.float64]) -> bool:
    """Whether components, holes and cavities can be counted here, and soon."""
    data = field.data
    return is_quick(data) and data.size * thresholds.size <= MOST_LABELLED[data.ndim]


def are_few(labels: Array) -> bool:
    """Whether the curves of all regions can be found here, and soon."""
    known, numbers = _numbered(labels)
    if known.size > MOST_REGIONS:
        return False
    sizes = [numbers[box].size for box in bounding_boxes(numbers)]
    return bool(sum(sizes) <= MOST_POINTS_OF_BOXES)


def euler_curve(
    field: Field, thresholds: NDArray[np.float64], *, superlevel: bool, connectivity: int | None
) -> NDArray[np.int64]:
    """Return the Euler characteristics at increasing thresholds: signed numbers of cells."""
    ranks = _ranks(field, thresholds, superlevel=superlevel)
    values = _curve_of_ranks(ranks, thresholds.size, connectivity)
    return values[::-1] if superlevel else values


def region_curves(
    image: Array,
    labels: Array,
    thresholds: int,
    *,
    superlevel: bool,
    connectivity: int | None,
) -> ecc.RegionCurves:
    """Return the curves of regions as `ecc_core.region_curves`, at so many even thresholds.

    Labels must not be negative.
    """
    inside = Field(image, labels != 0)
    low, high = inside.range
    at = evenly(low, high, thresholds)
    ranks = _ranks(inside, at, superlevel=superlevel)
    known, numbers = _numbered(labels)
    found = []
    for number, box in enumerate(bounding_boxes(numbers), 1):
        own = np.where(numbers[box] == number, ranks[box], thresholds)
        found.append(_curve_of_ranks(own, thresholds, connectivity))
    values = np.stack(found)
    return ecc.RegionCurves(
        known,
        at,
        values[:, ::-1] if superlevel else values,
        connectivity=connectivity or labels.ndim,
        superlevel=superlevel,
        ndim=labels.ndim,
    )


def _numbered(labels: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return the labels that occur besides 0, and the places of labels among them, from 1."""
    known = np.unique(labels[labels != 0])
    numbers = np.where(labels != 0, np.searchsorted(known, labels) + 1, 0)
    return known, numbers


def count_all(
    field: Field, thresholds: NDArray[np.float64], *, superlevel: bool, connectivity: int | None
) -> Iterator[Step]:
    """Find the Betti curves of a field by labelling the set at each threshold.

    The value of the last step is the `ecc_core.BettiCurves`; before it is None. Tunnels, or holes
    of a picture, follow from the Euler characteristics.
    """
    ndim = field.data.ndim
    full = connectivity in (None, ndim)
    ranks = _ranks(field, thresholds, superlevel=superlevel)
    count = thresholds.size
    euler = _curve_of_ranks(ranks, count, connectivity)
    components = yield from _numbers_of_components(ranks, count, full=full)
    numbers = [components, components - euler]
    if ndim == 3:
        # In the complement, what enters last comes first, and what is around the image is added.
        outside = np.pad(count - ranks, 1)
        complements = yield from _numbers_of_components(outside, count, full=not full)
        cavities = complements[::-1] - 1
        numbers = [components, components + cavities - euler, cavities]
    values = np.stack(numbers)
    yield Step(
        ecc.BettiCurves(
            thresholds,
            values[:, ::-1] if superlevel else values,
            connectivity=connectivity or ndim,
            superlevel=superlevel,
            ndim=ndim,
        )
    )


def _ranks(field: Field, thresholds: NDArray[np.float64], *, superlevel: bool) -> Array:
    """Return how many of the sets at thresholds, in the order of growth, exclude each point.

    All exclude points outside of the mask, and NaN.
    """
    data = field.data
    count = thresholds.size
    if superlevel:
        ranks = count - np.searchsorted(thresholds, data, side="right")
    else:
        ranks = np.searchsorted(thresholds, data, side="left")
    never = np.isnan(data) if data.dtype.kind == "f" else np.zeros(data.shape, np.bool_)
    if field.mask is not None:
        never |= ~field.mask
    ranks[never] = count
    return np.asarray(ranks, np.min_scalar_type(count))


def _curve_of_ranks(ranks: Array, count: int, connectivity: int | None) -> NDArray[np.int64]:
    """Return the Euler characteristics of sets, the smallest first.

    A cell enters with the last of its vertices, or with the first of the cubes that it belongs to.
    """
    cubes = connectivity in (None, ranks.ndim)
    changes = np.zeros(count + 1, np.int64)
    for several in itertools.product((False, True), repeat=ranks.ndim):
        cells = ranks
        for axis in range(ranks.ndim):
            if not several[axis]:
                continue
            if cubes:
                cells = np.pad(cells, _ends(ranks.ndim, axis), constant_values=count)
            low, high = _neighbours(cells, axis)
            cells = np.minimum(low, high) if cubes else np.maximum(low, high)
        dimension = ranks.ndim - sum(several) if cubes else sum(several)
        changes += (-1) ** dimension * np.bincount(cells.ravel(), minlength=count + 1)
    return changes[:count].cumsum()


def _ends(ndim: int, axis: int) -> list[tuple[int, int]]:
    """Return the widths of one more point at both ends of an axis."""
    return [(1, 1) if at == axis else (0, 0) for at in range(ndim)]


def _neighbours(cells: Array, axis: int) -> tuple[Array, Array]:
    """Return the lower and the upper end of each pair along an axis."""
    before = (slice(None),) * axis
    return cells[(*before, slice(None, -1))], cells[(*before, slice(1, None))]


def _numbers_of_components(
    ranks: Array, count: int, *, full: bool
) -> Generator[Step, None, NDArray[np.int64]]:
    """Return the numbers of components of sets, the smallest first.

    Some sets are labelled together, as slices that are not connected.
    """
    within = generate_binary_structure(ranks.ndim, ranks.ndim if full else 1)
    apart = np.zeros_like(within)
    structure = np.stack([apart, within, apart])
    together = max(1, LABELLED_AT_ONCE // ranks.size)
    levels = np.arange(count, dtype=ranks.dtype).reshape((-1,) + (1,) * ranks.ndim)
    numbers = []
    for start in range(0, count, together):
        sets = ranks <= levels[start : start + together]
        labels, _ = label(sets, structure)
        last = np.maximum.accumulate(labels.reshape(len(sets), -1).max(axis=1))
        numbers.append(np.diff(last, prepend=0))
        yield Step(None)
    return np.concatenate(numbers).astype(np.int64)
