"""Units of length, as the headers of files name them."""

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
"""Meters in each unit, and its other names."""
NAMES = {name: unit for unit, (_, names) in UNITS.items() for name in (unit, *names.split())}
UNKNOWN = ("", "unknown", "none", "null", "pixel", "pixels", "px", "voxel", "reference frame")
DIGITS = 12

Distances = tuple[Mapping[str, float], str]
"""Positive distances of points along those of the axes Z, Y and X where it is known; their unit."""


def unit_named(name: str) -> str:
    """Return the usual name of a unit; "" for none, and an unusual name as it is."""
    word = name.strip().lower()
    return "" if word in UNKNOWN else NAMES.get(word, name.strip())


def calibrated(steps: Mapping[str, Any], units: Mapping[str, str] | str) -> Distances:
    """Return the distances of points along the axes Z, Y and X, and their unit.

    `units` are those of each axis, or that of all. If the axes have different ones, distances are
    converted to that of the last axis, and axes whose unit is unknown are left out. What is not a
    positive number is ignored.
    """
    found = {axis: _number(steps[axis]) for axis in "ZYX" if axis in steps}
    found = {axis: step for axis, step in found.items() if 0 < step < math.inf}
    named = {
        axis: unit_named(units if isinstance(units, str) else units.get(axis, "")) for axis in found
    }
    unit = next((name for name in reversed(named.values()) if name), "")
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
    # the nearest number of 12 digits: 0.1 mm are 100 um and not 100.00000000000001
    return float(f"{length * UNITS[unit][0] / UNITS[to][0]:.{DIGITS}g}")


def _number(value: Any) -> float:
    """Return a number of a header, or NaN. Of single precision: the shortest that is stored so."""
    try:
        return float(str(np.float32(value)) if getattr(value, "dtype", "") == "f4" else value)
    except (TypeError, ValueError):
        return math.nan
