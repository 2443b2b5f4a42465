"""Colours of plots, which follow napari's theme."""

from typing import NamedTuple

from napari.utils.theme import get_theme
from qtpy.QtGui import QColor, qGray


class PlotColours(NamedTuple):
    """Colours of a plot, as ``#rrggbb``."""

    background: str
    axis: str
    text: str
    curve: str
    faint: str
    accent: str

    def named(self, colour: str) -> QColor:
        """The colour of a name, or of a code, made darker or lighter if it is hard to see."""
        if colour in self._fields:
            return QColor(getattr(self, colour))
        found = QColor(colour)
        gray = qGray(found.rgb())
        light = qGray(QColor(self.background).rgb()) > 127
        limit, end = (LIGHTEST, 0) if light else (DARKEST, 255)
        if (gray > limit) == light:
            share = (gray - limit) / (gray - end)
            channels = [at + share * (end - at) for at in found.getRgb()[:3]]
            found = QColor(*map(round, channels))
        return found


PAPER = PlotColours("#ffffff", "#4d4d4d", "#1a1a1a", "#1a1a1a", "#d9d9d9", "#d55e00")
"""Colours of saved figures: black on white."""
PALETTE = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#0072b2")
"""Colours of groups and classes, for any background (Okabe and Ito)."""
LIGHTEST = 160
DARKEST = 80
"""Gray values of the lightest curves on light backgrounds, and of the darkest on dark ones."""

ON_DARK = {"curve": "#6cc5ff", "accent": "#ff9f43"}
ON_LIGHT = {"curve": "#0072b2", "accent": "#d55e00"}


def colours_of(theme: str) -> PlotColours:
    """Colours that go with a napari theme, such as "dark"."""
    found = get_theme(theme)
    light = sum(found.background.as_rgb_tuple()[:3]) > 3 * 128
    return PlotColours(
        background=found.background.as_hex("long"),
        axis=found.highlight.as_hex("long"),
        text=found.text.as_hex("long"),
        faint=found.foreground.as_hex("long"),
        **(ON_LIGHT if light else ON_DARK),
    )
