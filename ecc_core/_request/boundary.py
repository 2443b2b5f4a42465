"""What lies beyond the border of an image, along each of its spatial axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

BorderName = Literal["closed", "periodic", "half-open"]
ComplexBorderName = Literal["closed", "periodic"]
"""The name of a border for which complexes are defined."""
Planes = tuple[tuple[str, int], ...]
"""Planes across an axis, and the factors by which their curves are added.

A plane is the "first" one, the "last" one, or "joined", the maximum (V) or minimum (T) of both.
"""


@dataclass(frozen=True)
class Border:
    """What lies beyond both ends of an axis."""

    name: BorderName
    about: str
    """A description of the border, for the help of commands."""
    planes: tuple[Planes, Planes] = ((), ())
    """The planes whose curves are added to that of the closed image, for V and for T."""
    missing: int = 0
    """The number of points at the end of the axis whose own cells do not count."""
    wraps: bool = False
    """Whether both ends of the axis touch."""

    @property
    def is_closed(self) -> bool:
        """Whether the image ends there."""
        return not any(self.planes)


CLOSED = Border("closed", "the image ends at its border")
PERIODIC = Border(
    "periodic",
    "opposite sides touch",
    ((("joined", -1),), (("joined", 1), ("first", -1), ("last", -1))),
    wraps=True,
)
HALF_OPEN = Border(
    "half-open",
    "it is a window of a larger image",
    ((("last", -1),), (("first", -1),)),  # In T the last face and the last cube cancel.
    missing=1,
)
BORDERS: dict[str, Border] = {border.name: border for border in (CLOSED, PERIODIC, HALF_OPEN)}


@dataclass(frozen=True)
class Boundary:
    """The border of an image: one for each spatial axis, in their order."""

    axes: tuple[Border, ...]

    @classmethod
    def alike(cls, border: Border, ndim: int) -> Self:
        """Return the boundary of an image with the same border along all axes."""
        return cls((border,) * ndim)

    @cached_property
    def is_closed(self) -> bool:
        """Whether the image ends at its border along every axis."""
        return all(border.is_closed for border in self.axes)

    @cached_property
    def is_window(self) -> bool:
        """Whether the image is a window of a larger one along all axes.

        A mask or a region of the image is then a window, too.
        """
        return all(border.missing > 0 for border in self.axes)

    @cached_property
    def wraps(self) -> tuple[bool, ...]:
        """For each axis, whether opposite sides touch."""
        return tuple(border.wraps for border in self.axes)

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """For each axis, the number of points at its end whose own cells do not count."""
        return tuple(border.missing for border in self.axes)

    @cached_property
    def name(self) -> str | tuple[str, ...]:
        """The name of the border if it is the same for all axes, otherwise one for each."""
        return shortest_name([border.name for border in self.axes])

    @cached_property
    def sides(self) -> "Sides":
        """The borders of the image as a volume, closed along the axes that the image lacks."""
        borders = (CLOSED,) * (3 - len(self.axes)) + self.axes
        z, y, x = borders
        return Sides(
            closed=(z.is_closed, y.is_closed, x.is_closed),
            wraps=(z.wraps, y.wraps, x.wraps),
            misses=(z.missing > 0, y.missing > 0, x.missing > 0),
        )

    def taken(self, axes: Sequence[int]) -> Self:
        """Return the boundary of the image with its axes in another order."""
        if isinstance(self.name, str):
            return self
        return type(self)(tuple(self.axes[axis] for axis in axes))


Flags = tuple[bool, bool, bool]
"""A flag for each axis of a volume: slices, rows and columns."""


class Sides(NamedTuple):
    """The borders of a volume, for computations block by block.

    They tell for each axis whether the image ends there, whether both ends touch, and whether the
    cells of the last points do not count.
    """

    closed: Flags
    wraps: Flags
    misses: Flags


@dataclass(frozen=True)
class Domain:
    """The borders for which a quantity is defined; others are errors."""

    borders: tuple[Border, ...] = (CLOSED,)
    reason: str = ""
    """The end of the message for other borders, which says why they are errors."""

    @property
    def names(self) -> list[str]:
        """The names of the borders, as in the argument `boundary`."""
        return [border.name for border in self.borders]

    @property
    def about(self) -> str:
        """The borders in words, for the help of commands."""
        first, *others = self.borders
        each = [f"{first.about} ({first.name}, the default)"]
        each += [f"{border.about} ({border.name})" for border in others]
        each[-1] = f"or {each[-1]}" if others else each[-1]
        return ", ".join(each)


COUNTS = Domain((CLOSED, PERIODIC, HALF_OPEN))
"""The domain of quantities that count cells, such as curves and Minkowski functionals."""
COMPLEXES = Domain(
    (CLOSED, PERIODIC), "for Betti numbers and persistence, since cells of a window are no complex"
)
"""The domain of quantities that are defined for complexes only."""


def words_of(boundary: str | Sequence[str]) -> tuple[str, ...]:
    """Return the words of a boundary: one for all axes, or one for each."""
    return (boundary,) if isinstance(boundary, str) else tuple(boundary)


def shortest_name(words: Sequence[str]) -> str | tuple[str, ...]:
    """Return one word if it is the same for all axes, otherwise one for each."""
    return words[0] if len(set(words)) == 1 else tuple(words)


def check_boundary(boundary: Any, domain: Domain = COUNTS) -> str | tuple[str, ...]:
    """Return the argument: a name of the domain, or a tuple of such names, one for each axis."""
    if hasattr(boundary, "tolist"):
        boundary = boundary.tolist()
    words = boundary if isinstance(boundary, tuple | list) else (boundary,)
    unknown = [word for word in words if not isinstance(word, str) or word not in BORDERS]
    allowed = domain.names
    if not words or any(word not in allowed for word in words):
        *others, last = [f'"{name}"' for name in allowed]
        names = f"{', '.join(others)} or {last}" if others else last
        each = " (one word, or one for each spatial axis)" if others else ""
        reason = "" if unknown or not domain.reason else f" {domain.reason}"
        raise ValueError(f"`boundary` must be {names}{each}{reason}, got {boundary!r}")
    return boundary if isinstance(boundary, str) else tuple(words)


def check_window(boundary: Boundary) -> None:
    """Refuse a mask or regions of an image that is half-open along some axes only.

    They would be windows of the image along these axes, and stand alone along the others.
    """
    if any(boundary.missing) and not boundary.is_window:
        raise ValueError(
            '`boundary` must be "half-open" along all axes or along none with `mask` or `labels`, '
            "which are windows of the image along half-open axes, and stand alone along others, "
            f"got {boundary.name!r}"
        )


def boundary_of(boundary: Any, ndim: int, domain: Domain = COUNTS) -> Boundary:
    """Return the boundary of an image with `ndim` axes, described by one word or by `ndim`."""
    words = check_boundary(boundary, domain)
    if isinstance(words, str):
        return Boundary.alike(BORDERS[words], ndim)
    if len(words) != ndim:
        raise ValueError(
            f"`boundary` must be one word, or one for each of the {ndim} spatial axes, "
            f"got {boundary!r}"
        )
    return Boundary(tuple(BORDERS[word] for word in words))
