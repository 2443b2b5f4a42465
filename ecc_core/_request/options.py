"""The options that functions of images, of shapes, and of complexes share."""

from typing import Any, NamedTuple


def _given(options: Any) -> dict[str, Any]:
    """Return the fields of a named tuple that differ from their defaults."""
    pairs = zip(options._fields, options, strict=True)
    defaults = options._field_defaults
    return {name: value for name, value in pairs if value is not defaults[name]}


class ImageOptions(NamedTuple):
    """Options that functions of images have in common, as they are given.

    A function that lacks an option leaves it at its default, which changes nothing. A `Request`
    checks them. They are a named tuple because a frozen dataclass takes five times as long to
    create, which matters in calls of 50 microseconds.
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
    spacing: Any = None
    """The spacing for `direction`."""

    def given(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as keyword arguments."""
        return _given(self)


class ShapeOptions(NamedTuple):
    """Options that transforms of shapes have in common, as they are given."""

    range: Any = None
    connectivity: Any = None
    spacing: Any = None
    workers: Any = None
    boundary: Any = "closed"

    def given(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as keyword arguments."""
        return _given(self)


class ComplexOptions(NamedTuple):
    """Options that functions of simplicial complexes have in common, as they are given."""

    range: Any = None
    superlevel: Any = False
    complete: Any = False
    workers: Any = None
