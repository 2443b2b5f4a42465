"""The functions of a backend by the definitions: slices of an image for each kind of cell."""

import itertools

import numpy as np

from ecc_core._request.levels import round_to_levels
from ecc_core.errors import NAN_MESSAGE


def curve(image, thresholds, filtration, *, mask=None, workers=None):
    ranks, levels = _ranked(image, thresholds, filtration, mask)
    never = levels.values.size
    result = np.zeros((len(image), never + 1), np.int64)
    for row, points in zip(result, ranks, strict=True):
        for sign, cells in _cells(points, filtration.connectivity, never, filtration.boundary):
            entered = np.bincount(cells.ravel(), minlength=never + 1)[:never]
            row[1:] += sign * np.cumsum(entered)
    return result[:, levels.entered]


def surface(first, second, thresholds, filtrations, *, mask=None, workers=None):
    ranks, levels = _ranked(first, thresholds[0], filtrations[0], mask)
    result = np.zeros((len(first), levels.values.size + 1, thresholds[1].size), np.int64)
    for row in range(levels.values.size):
        shown = ranks <= row if mask is None else (ranks <= row) & mask
        result[:, row + 1] = curve(second, thresholds[1], filtrations[1], mask=shown)
    if filtrations[1].nan == "raise":
        _filtered(second, filtrations[1], mask)
    return result[:, levels.entered]


def _ranked(image, thresholds, filtration, mask):
    """For each point the number of levels that enter before it, and the levels."""
    image = _filtered(image, filtration, mask)
    levels = round_to_levels(thresholds, image.dtype.newbyteorder("="), filtration.superlevel)
    never = levels.values.size
    native = image.astype(image.dtype.newbyteorder("="))
    native = native.astype(np.uint8) if native.dtype == bool else native
    if filtration.superlevel:
        ranks = never - np.searchsorted(levels.values, native, side="right")
    else:
        ranks = np.searchsorted(levels.values, native, side="left")
    return np.where(_absent(image, mask), never, ranks), levels


def _filtered(image, filtration, mask):
    """Add the direction to the image, and check it for NaN."""
    if filtration.direction is not None:
        image = filtration.direction.add(image, (0,) * filtration.ndim)
    if image.dtype.kind == "f" and filtration.nan == "raise":
        missing = np.isnan(image)
        if (missing if mask is None else missing & mask).any():
            raise ValueError(NAN_MESSAGE)
    return image


def _absent(image, mask):
    """Points that never enter."""
    absent = np.isnan(image) if image.dtype.kind == "f" else np.zeros(image.shape, bool)
    return absent if mask is None else absent | ~np.broadcast_to(mask, image.shape)


def _cells(points, connectivity, never, boundary=None):
    """Signs and values of the cells of each kind, where `points` enter in order."""
    cubes = connectivity > 1
    for kind in itertools.product((0, 1), repeat=points.ndim):
        cells = points
        for axis, pairs in enumerate(kind):
            border = "closed" if boundary is None else boundary.axes[axis].name
            cells = _along(cells, axis, pairs, cubes, never, border)
        dimension = points.ndim - sum(kind) if cubes else sum(kind)
        yield (-1) ** dimension, cells


def _along(cells, axis, pairs, cubes, never, border):
    """Cells of one point along an axis, or those of two."""
    cells = np.moveaxis(cells, axis, 0)
    if pairs:
        if border == "periodic":
            cells = np.concatenate([cells, cells[:1]])
        elif border == "closed" and cubes:
            widths = [(1, 1)] + [(0, 0)] * (cells.ndim - 1)
            cells = np.pad(cells, widths, constant_values=never)
        cells = (np.minimum if cubes else np.maximum)(cells[:-1], cells[1:])
    elif border == "half-open":
        cells = cells[:-1]
    return np.moveaxis(cells, 0, axis)


def coefficients(image, filtration, *, mask=None, workers=None):
    image = _filtered(image, filtration, mask)
    absent = _absent(image, mask)
    result = np.zeros(image.shape, np.int8)
    for out, points, gone in zip(result, image, absent, strict=True):
        order = np.unique(points, return_inverse=True)[1].reshape(points.shape)
        order = order.max(initial=0) - order if filtration.superlevel else order
        index = np.arange(points.size).reshape(points.shape)
        # Of equal points the first owns a cell, whether it is their largest or smallest.
        place = points.size - 1 - index if filtration.connectivity == 1 else index
        never = points.size * (order.max(initial=0) + 1)
        keys = np.where(gone, never, order * points.size + place)
        counts = np.zeros(points.size, np.int64)
        for sign, cells in _cells(keys, filtration.connectivity, never):
            owners = cells[cells < never] % points.size
            if filtration.connectivity == 1:
                owners = points.size - 1 - owners
            counts += sign * np.bincount(owners, minlength=points.size)
        out[...] = counts.reshape(points.shape)
    return result


def exact_curve(image, filtration, *, mask=None, workers=None):
    values = _filtered(image, filtration, mask)[0]
    native = values.astype(values.dtype.newbyteorder("="))
    if not filtration.boundary.is_closed:
        levels = np.unique(native[~_absent(image, mask)[0]])
        sums = curve(image, levels, filtration, mask=mask)[0]
        before = np.append(sums[1:], 0) if filtration.superlevel else np.append(0, sums[:-1])
        return levels[sums != before], sums[sums != before]
    counts = coefficients(image, filtration, mask=mask)[0]
    levels, where = np.unique(native[counts != 0], return_inverse=True)
    jumps = np.zeros(levels.size, np.int64)
    np.add.at(jumps, where, counts[counts != 0])
    levels, jumps = levels[jumps != 0], jumps[jumps != 0]
    order = slice(None, None, -1 if filtration.superlevel else 1)
    return levels, np.cumsum(jumps[order])[order]


def region_curves(image, labels, thresholds, filtration, *, workers=None):
    ids = np.unique(labels[labels != 0])
    rows = [curve(image[None], thresholds, filtration, mask=(labels == i)[None])[0] for i in ids]
    return ids, np.array(rows, np.int64).reshape(ids.size, thresholds.size)


def value_range(image, filtration, *, mask=None, workers=None):
    values = _filtered(image, filtration, mask)
    shown = ~_absent(values, mask)
    finite = values[shown & np.isfinite(values)]
    return (finite.min(), finite.max()) if finite.size else (None, None)


def number(image, level, filtration, *, mask=None, workers=None):
    return int(curve(image, level, filtration, mask=mask).item())
