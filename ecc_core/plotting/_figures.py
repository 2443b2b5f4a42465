"""Functions and sizes of all figures."""

from typing import TYPE_CHECKING, Any

from ecc_core._optional import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN = 3.5  # The width of a column of a two-column page, in inches.
FAINT = "#d0d0d0"


def new_figure(**settings: Any) -> "Figure":
    """Return a figure made without pyplot, which needs no display and leaves no global state."""
    figures = import_optional("matplotlib.figure", extra="io", purpose="plotting")
    found: Figure = figures.Figure(**settings)
    return found


def new_axes(height: float, **settings: Any) -> "Axes":
    """Return the only axes of a new figure, as wide as a column."""
    figure = new_figure(figsize=(COLUMN, height), layout="constrained")
    found: Axes = figure.add_subplot(**settings)
    return found


def named(quantity: str, units: str | None) -> str:
    """Return the label of an axis, with the units if there are any."""
    return f"{quantity} ({units})" if units else quantity
