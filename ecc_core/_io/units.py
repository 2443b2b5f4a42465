"""Units of length, and distances between points."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

UNITS = {
    "kilometer": (1e3, "km kilometers kilometre kilometres"),
    "meter": (1.0, "m meters metre metres"),
    "centimeter": (1e-2, "cm centimeters centimetre centimetres"),
    "millimeter": (1e-3, "mm millimeters millimetre millimetres"),
    "micrometer": (
        1e-6,
        "um micrometers micrometre micrometres micron microns \u00b5m \u03bcm \\u00b5m",
    ),
    "nanometer": (1e-9, "nm nanometers nanometre nanometres"),
    "angstrom": (1e-10, "angstroms \u00e5 \u212b a\u030a"),
    "picometer": (1e-12, "pm picometers picometre picometres"),
    "inch": (0.0254, "in inches"),
}
"""The length of each unit in meters, and its other names."""
NAMES = {name: unit for unit, (_, names) in UNITS.items() for name in (unit, *names.split())}
TIMES = {
    "second": "s sec secs seconds",
    "millisecond": "ms msec milliseconds",
    "microsecond": "us usec microseconds \u00b5s \u03bcs",
    "minute": "min minutes",
    "hour": "h hours",
}
"""Units of time, and their other names."""
NAMES |= {name: unit for unit, names in TIMES.items() for name in (unit, *names.split())}
UNKNOWN = (
    *("", "?", "unknown", "none", "null", "reference frame"),
    *("pixel", "pixels", "px", "voxel"),
)
DIGITS = 12
"""Significant digits of lengths that are converted to another unit."""
Distances = tuple[Mapping[str, float], str]
"""Positive distances between points along Z, Y and X where they are known, and their unit."""


def unit_named(name: str) -> str:
    """Return the usual name of a unit, "" if there is none, or the name itself if unknown."""
    word = name.strip().lower()
    return "" if word in UNKNOWN else NAMES.get(word, name.strip())


def calibrated(steps: Mapping[str, Any], units: Mapping[str, str] | str) -> Distances:
    """Return the distances between points along the axes Z, Y and X, and their unit.

    `units` are those of each axis, or one for all. If they differ, distances are converted to the
    unit of the last axis, and axes whose unit is unknown are left out. Steps that are not positive
    numbers are ignored.
    """
    found = {axis: number_of(steps[axis]) for axis in "ZYX" if axis in steps}
    found = {axis: step for axis, step in found.items() if 0 < step < math.inf}
    if isinstance(units, str):
        named = dict.fromkeys(found, unit_named(units))
    else:
        named = {axis: unit_named(units.get(axis, "")) for axis in found}
    known = [name for name in named.values() if name]
    unit = known[-1] if known else ""
    spacing = {
        axis: converted(step, named[axis], unit)
        for axis, step in found.items()
        if named[axis] == unit or {named[axis], unit} <= UNITS.keys()
    }
    return spacing, unit


def converted(length: float, unit: str, to: str) -> float:
    """Return a length in another unit; raise KeyError if the ratio of the units is unknown."""
    if unit == to:
        return length
    # Rounding makes 0.1 mm 100 um, not 100.00000000000001 um.
    return float(f"{length * UNITS[unit][0] / UNITS[to][0]:.{DIGITS}g}")


def number_of(value: Any) -> float:
    """Return a number of a header as float, NaN if it is none.

    A float32 becomes the number with the fewest digits that rounds to it, such as 0.1.
    """
    try:
        if getattr(value, "dtype", "") == "f4":
            return float(str(np.float32(value)))
        return float(value)
    except (TypeError, ValueError):
        return math.nan
