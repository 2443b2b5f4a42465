"""Words and symbols of quantities and units, for axes of figures and columns."""

EULER = "Euler characteristic"
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
