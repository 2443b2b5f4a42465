"""What lies beyond the border of an image, along each of its spatial axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

BorderName = Literal["closed", "periodic", "half-open"]
ComplexBorderName = Literal["closed", "periodic"]
"""The name of a border for which complexes are defined."""
Planes = tuple[tuple[str, int], ...]
"""Planes across an axis, and how often the curve of each counts.

They are the "first" plane, the "last" one, or the maximum (V) or minimum (T) of both, "joined".
"""


@dataclass(frozen=True)
class Border:
    """What lies beyond both ends of an axis."""

    name: BorderName
    about: str
    """What there is at the border, for the help of commands."""
    planes: tuple[Planes, Planes] = ((), ())
    """The signed planes to add to the curve of the closed image, for V and for T."""
    missing: int = 0  # points at the end of the axis whose own cells do not count
    wraps: bool = False  # whether both ends touch

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
    ((("last", -1),), (("first", -1),)),  # the last face and the last cube cancel
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
        """Along which axes opposite sides touch."""
        return tuple(border.wraps for border in self.axes)

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """Number of points at the end of each axis whose own cells do not count."""
        return tuple(border.missing for border in self.axes)

    @cached_property
    def name(self) -> str | tuple[str, ...]:
        """The word for all axes if they agree, otherwise one for each."""
        return shortest_name([border.name for border in self.axes])

    @cached_property
    def sides(self) -> "Sides":
        """The borders of a volume; along axes that the image lacks they are closed."""
        borders = (CLOSED,) * (3 - len(self.axes)) + self.axes
        z, y, x = borders
        return Sides(
            closed=(z.is_closed, y.is_closed, x.is_closed),
            wraps=(z.wraps, y.wraps, x.wraps),
            misses=(z.missing > 0, y.missing > 0, x.missing > 0),
        )

    def taken(self, axes: Sequence[int]) -> Self:
        """Return the boundary of an image with all of the axes, in another order."""
        if isinstance(self.name, str):
            return self
        return type(self)(tuple(self.axes[axis] for axis in axes))


Flags = tuple[bool, bool, bool]
"""Something about the slices, rows and columns of a volume."""


class Sides(NamedTuple):
    """The borders across slices, rows and columns, for what is done block by block."""

    closed: Flags
    wraps: Flags
    misses: Flags  # whether the last points have no cells of their own


@dataclass(frozen=True)
class Domain:
    """The borders for which something is defined; others are errors."""

    borders: tuple[Border, ...] = (CLOSED,)
    reason: str = ""
    """Why others are errors: how the message ends."""

    @property
    def names(self) -> list[str]:
        """The words of the argument `boundary`."""
        return [border.name for border in self.borders]

    @property
    def about(self) -> str:
        """What each border is, in words."""
        first, *others = self.borders
        each = [f"{first.about} ({first.name}, the default)"]
        each += [f"{border.about} ({border.name})" for border in others]
        each[-1] = f"or {each[-1]}" if others else each[-1]
        return ", ".join(each)


COUNTS = Domain((CLOSED, PERIODIC, HALF_OPEN))
"""The domain of everything that counts cells, such as curves and Minkowski functionals."""
COMPLEXES = Domain(
    (CLOSED, PERIODIC), "for Betti numbers and persistence, since cells of a window are no complex"
)
"""The domain of what needs the complex itself."""


def words_of(boundary: str | Sequence[str]) -> tuple[str, ...]:
    """Return the words of a boundary: one for all axes, or one for each."""
    return (boundary,) if isinstance(boundary, str) else tuple(boundary)


def shortest_name(words: Sequence[str]) -> str | tuple[str, ...]:
    """Return the word for all axes if they agree, otherwise one for each."""
    return words[0] if len(set(words)) == 1 else tuple(words)


def check_boundary(boundary: Any, domain: Domain = COUNTS) -> str | tuple[str, ...]:
    """Return a word, or one for each axis, all of which must be of the domain."""
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
    """Refuse a mask or regions of an image that is a window along some axes only.

    Along such axes they would be windows of the image, and along the others stand alone.
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
