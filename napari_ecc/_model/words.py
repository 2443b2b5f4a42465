"""Words for numbers of things, and for the lives of classes."""

import math

from napari_ecc._model.levels import formatted


def counted(number: int, one: str, several: str | None = None) -> str:
    """Return a number with its noun; the plural form is ``one`` with an s, or ``several``."""
    if number == 1:
        return f"1 {one}"
    return f"{number:,} {several or one + 's'}"


def life_in_words(kind: str, birth: float, death: float) -> str:
    """Return what the diagram says of a class."""
    end = f"dies at {formatted(death)}" if math.isfinite(death) else "never dies"
    return f"{kind}, born at {formatted(birth)}, {end}"
