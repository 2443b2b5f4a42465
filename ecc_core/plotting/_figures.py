"""What all figures share."""

from typing import TYPE_CHECKING, Any

from ecc_core._optional import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN = 3.5  # inches, one column of a two-column page
FAINT = "#d0d0d0"
EULER = "Euler characteristic"


def new_figure(**settings: Any) -> "Figure":
    """Return a figure made without pyplot: it needs no display and leaves no global state."""
    figures = import_optional("matplotlib.figure", extra="io", purpose="plotting")
    found: Figure = figures.Figure(**settings)
    return found


def new_axes(height: float, **settings: Any) -> "Axes":
    """Return the only axes of a new figure, as wide as a column."""
    figure = new_figure(figsize=(COLUMN, height), layout="constrained")
    found: Axes = figure.add_subplot(**settings)
    return found


SYMBOLS = {
    "kilometer": "km",
    "meter": "m",
    "centimeter": "cm",
    "millimeter": "mm",
    "micrometer": "\N{MICRO SIGN}m",
    "um": "\N{MICRO SIGN}m",
    "nanometer": "nm",
    "picometer": "pm",
}
"""Symbols of units of length."""
SUPERSCRIPTS = str.maketrans("-123", "\N{SUPERSCRIPT MINUS}\u00b9\u00b2\u00b3")


def symbol_of(unit: str) -> str:
    """Return the symbol of a power of a unit, such as "mm" for "millimeter"."""
    base, _, exponent = unit.partition("^")
    return SYMBOLS.get(base, base) + exponent.translate(SUPERSCRIPTS)


def named(quantity: str, units: str | None) -> str:
    """Return the label of an axis."""
    return f"{quantity} ({units})" if units else quantity
