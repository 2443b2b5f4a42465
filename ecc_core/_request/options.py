"""The options that functions of images, of shapes, and of complexes share."""

from typing import Any, NamedTuple


def _given(options: Any) -> dict[str, Any]:
    pairs = zip(options._fields, options, strict=True)
    defaults = options._field_defaults
    return {name: value for name, value in pairs if value is not defaults[name]}


class ImageOptions(NamedTuple):
    """How the sets of an image are made, as the public functions take it.

    A function that lacks an option leaves it at its default, which changes nothing. Nothing is
    checked before a `Request` is made of them. This is a named tuple since one is made in each call
    of some 50 microseconds, which a frozen dataclass takes five times as long.
    """

    range: Any = None
    connectivity: Any = None
    superlevel: Any = False
    mask: Any = None
    nan: Any = "raise"
    axis: Any = None
    workers: Any = None
    boundary: Any = "closed"
    direction: Any = None
    direction_scale: Any = None
    spacing: Any = None  # of a direction

    def given(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as keyword arguments."""
        return _given(self)


class ShapeOptions(NamedTuple):
    """How shapes are transformed, as the public functions of transforms take it."""

    range: Any = None
    connectivity: Any = None
    spacing: Any = None
    workers: Any = None
    boundary: Any = "closed"

    def given(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as keyword arguments."""
        return _given(self)


class ComplexOptions(NamedTuple):
    """How the sets of a simplicial complex are made, as the public functions take it."""

    range: Any = None
    superlevel: Any = False
    complete: Any = False
    workers: Any = None
