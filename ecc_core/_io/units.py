"""Units of length, as the headers of files name them."""

from collections.abc import Mapping
from typing import Any

__all__ = ["in_micrometers"]

NAMES = {
    "m": (1e6, "meter metre"),
    "cm": (1e4, "centimeter centimetre"),
    "mm": (1e3, "millimeter millimetre"),
    "um": (1.0, "micrometer micrometre micron microns \u00b5m \u03bcm \\u00b5m"),
    "nm": (1e-3, "nanometer nanometre"),
    "angstrom": (1e-4, "\u00e5 \u212b"),
    "inch": (25400.0, "in"),
}
FACTORS = {
    name: factor for unit, (factor, names) in NAMES.items() for name in (unit, *names.split())
}


def in_micrometers(steps: Mapping[str, Any], units: Mapping[str, str]) -> dict[str, float]:
    """Return distances by axis in micrometers, except those with an unknown unit."""
    found = {}
    for axis, step in steps.items():
        factor = FACTORS.get(units.get(axis, "").strip().lower())
        try:
            number = float(step)
        except (TypeError, ValueError):
            continue
        if factor is not None:
            # the nearest number of 12 digits: 0.1 mm are 100 and not 100.00000000000001
            found[axis] = float(f"{number * factor:.12g}")
    return found
