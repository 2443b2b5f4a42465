"""Where layers are in the world: distances of their points, units, and layers that lie apart."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 0.1
"""Points by which layers may lie apart that belong together: rounded scales of files."""
PERPENDICULAR = 1e-3
"""Largest cosine of the angle between two axes that are taken as perpendicular."""
Floats = NDArray[np.float64]


class Distances(NamedTuple):
    """How far neighbouring points are apart along some axes of a layer."""

    spacing: Floats
    unit: str
    """The unit of the spacing; several where they cannot be converted into each other."""
    problem: str
    """Why lengths across these axes are not known, or ""."""


def factor(unit: Any, to: Any) -> float | None:
    """Return the length of a unit in another one; None if they are of different kinds.

    Examples
    --------
    >>> import pint
    >>> from napari_ecc._controller.places import factor
    >>> units = pint.get_application_registry()
    >>> factor(units.micrometer, units.nanometer), factor(units.pixel, units.nanometer)
    (1000.0, None)
    """
    if unit == to:
        return 1.0
    if not unit.is_compatible_with(to):
        return None
    # With 12 digits, 0.1 mm are 100 um and not 100.00000000000001 um.
    return float(f"{(1 * unit).to(to).magnitude:.12g}")


def distances(layer: Any, axes: Sequence[int]) -> Distances:
    """Return the distances of neighbouring points along axes, by all transforms of a layer.

    They are converted to the unit of the last of these axes.
    """
    zero = np.asarray(layer.data_to_world(np.zeros(layer.ndim)))
    unit_vectors = np.eye(layer.ndim)[list(axes)]
    steps = np.stack([layer.data_to_world(vector) for vector in unit_vectors]) - zero
    units = [unit for unit, along in zip(layer.units, steps.T, strict=True) if along.any()]
    factors = [factor(unit, layer.units[axes[-1]]) for unit in units]
    names = list(dict.fromkeys(map(str, units)))
    if None in factors:
        of_kinds = f"“{layer.name}” must have axes of one kind of unit for lengths"
        problem = f"{of_kinds}, got {' and '.join(names)}."
        return Distances(np.linalg.norm(steps, axis=1), ", ".join(names), problem)
    steps = steps[:, steps.any(axis=0)] * np.array(factors, dtype=np.float64)
    spacing = np.linalg.norm(steps, axis=1)
    pairs = itertools.combinations(steps / spacing[:, None], 2)
    cosines = [abs(float(one @ other)) for one, other in pairs]
    shear = max(cosines, default=0.0)
    problem = ""
    if shear > PERPENDICULAR:
        angle = np.degrees(np.arccos(min(shear, 1.0)))
        problem = (
            f"“{layer.name}” must have perpendicular axes for lengths, got {angle:.3g} degrees "
            "between two of them. Resample it to a grid of perpendicular axes."
        )
    return Distances(spacing, str(layer.units[axes[-1]]), problem)


def first_point(part: Sequence[int | slice]) -> list[int]:
    """Return the first point of a part of a layer: 0 along the axes that it keeps."""
    return [0 if isinstance(at, slice) else at for at in part]


def converted(position: Any, units: Sequence[Any] | None, to: Sequence[Any]) -> Floats:
    """Return a position with the number of axes and in the units of a layer.

    Axes are matched from the last one on, as napari does, and missing ones are 0. Without units,
    which napari does not know of layers of several kinds, and between kinds, numbers are kept.
    """
    ndim = len(to)
    given = np.asarray(position, dtype=np.float64)[-ndim:]
    found = np.pad(given, (ndim - given.size, 0))
    for axis, (unit, own) in enumerate(zip((units or ())[::-1], to[::-1], strict=False), 1):
        if axis <= given.size:
            found[-axis] *= factor(unit, own) or 1.0
    return found


def data_position(layer: Any, position: Any, units: Sequence[Any] | None) -> Floats:
    """Return where a place in the world is in the points of a layer."""
    return np.asarray(
        layer.world_to_data(converted(position, units, layer.units)), dtype=np.float64
    )


def position_in_view(viewer: Any, layer: Any) -> Floats:
    """Return where the viewer's sliders are in the points of a layer."""
    return data_position(layer, viewer.dims.point, viewer.dims.units)


def check_place(layer: Any, selection: Any, other: Any, found: Any, full: tuple[int, ...]) -> None:
    """Raise ValueError if what was `found` in another layer lies elsewhere than a selection.

    The parts have the same shape. Axes of the other layer, of the shape `full`, with a single index
    are not compared unless they are selected.
    """
    shape = np.array(selection.full.shape)
    ends = itertools.product((0, 1), repeat=len(shape))
    corners = np.array(list(ends)) * (shape - 1)
    own = np.array(first_point(selection.where), dtype=np.float64)
    places = np.repeat(own[None], len(corners), axis=0)
    places[:, list(selection.axes)] = corners
    in_world = [layer.data_to_world(place) for place in places]
    there = np.array([data_position(other, place, layer.units) for place in in_world])
    kept = list(found.axes)
    moved = there[:, kept] - corners
    fixed = [axis for axis, at in enumerate(found.where) if not isinstance(at, slice)]
    fixed = [axis for axis in fixed if full[axis] > 1]
    beside = there[:, fixed] - [found.where[axis] for axis in fixed]
    if not fixed or np.abs(beside).max() <= 0.5 + TOLERANCE:
        if np.abs(moved).max(initial=0) <= TOLERANCE:
            return
        how = _moved_in_words(there[:, kept], shape, other, kept)
    else:
        how = f"{np.abs(beside).max():.3g} points beside the selected slice"
    raise ValueError(
        f"“{other.name}” must lie where “{layer.name}” does, but is {how}. To align them, use "
        "“Copy all to clipboard” in the menu of one layer (right-click on it), and “Apply "
        "scale/transforms from Clipboard” in that of the other."
    )


def _moved_in_words(there: Floats, shape: Any, other: Any, axes: Sequence[int]) -> str:
    """Say how a part of another layer is scaled, turned or shifted; `there` are its corners."""
    count = len(shape)
    # The number of the corner at the end of each axis.
    ends = [2 ** (count - 1 - axis) for axis in range(count)]
    sides = there[ends] - there[0]
    names = [axis_name(other, axis) for axis in axes]
    along = sides.diagonal()
    if np.abs(sides - np.diag(along)).max() > TOLERANCE:
        return "rotated, or sheared"
    words = []
    for name, length, n in zip(names, along, shape - 1, strict=True):
        if abs(length - n) > TOLERANCE and length:
            mirrored = f"mirrored along {name}" if abs(length + n) <= TOLERANCE else ""
            words.append(mirrored or f"scaled by {n / length:.4g} along {name}")
    if not words:
        pairs = zip(names, -there[0], strict=True)
        words = [
            f"shifted by {shift:.4g} points along {name}"
            for name, shift in pairs
            if abs(shift) > TOLERANCE
        ]
    return " and ".join(words) or "displaced"


def axis_name(layer: Any, axis: int) -> str:
    """Return the name of an axis, or its number if it has no name."""
    name = str(layer.axis_labels[axis])
    return name if name[:1].isalpha() else f"axis {axis}"


def unit_of(layer: Any, part: Sequence[int | slice]) -> str:
    """Return the unit of lengths along the axes of a part; of several kinds, all of them."""
    axes = [axis for axis, at in enumerate(part) if isinstance(at, slice)]
    return distances(layer, axes).unit if axes else ""
