"""Descriptions of images: what a file says of its axes and values.

A reader returns the values as the format's reference library gives them, decoded when they are
read, and a `Description` of what they mean. Nothing else interprets a header. To fill it:

- **Axes.** Take letters from the types and names of the format's own axes: `letter_of` knows the
  usual names, `unnamed_axes` is for axes of which the file says nothing. Never decide by the first
  letter of a name or the length of an axis. `Description.of` adds the step of each axis in the unit
  that the file gives it, and the file's own name of the axis. Steps that are not positive numbers
  are left out, so pass what the header has, but decide here what a negative one means.
- **Place.** An `Affine`: the vector from a point to the next along each axis, and the place of the
  first point, all in the unit of the spacing. `Description.aligned` makes it of an origin where the
  axes of the image are those of the world.
- **Encoding.** How stored values become values. `array` already yields the values; this only says
  what was done, so that `ecc info` can show it.
- **Missing.** What the file declares as missing. `declared_missing` makes it of values of the
  header, and `nan_where_missing` wraps an array of floating-point numbers, in which missing values
  then are NaN. Integers keep their values; commands and `read_image` leave them out by a mask.
- **Notes.** What cannot be known, or is easily overlooked. Commands print each once, on stderr.

A field that a file does not describe keeps its default. A `Format` lists the fields that its reader
looks for, to distinguish "not said by this file" from "not read from this format".
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.affines import Affine
from ecc_core._io.units import calibrated, number_of, unit_named

AXIS_NAMES = {
    "T": "t time",
    "C": "c ch channel channels band bands",
    "Z": "z depth plane slice lev level",
    "Y": "y row rows height lat latitude",
    "X": "x col cols column columns width lon longitude",
    "S": "s sample samples rgb rgba",
}
LETTERS = {name: letter for letter, names in AXIS_NAMES.items() for name in names.split()}
KINDS = {"T": "time", "C": "channel", "S": "colour", "?": "unknown"} | dict.fromkeys("ZYX", "space")
FIELDS = {
    "axes": "axes by type or name",
    "spacing": "spacing and its unit",
    "time": "interval of time points",
    "place": "origin and directions",
    "encoding": "scaling of values",
    "missing": "missing values",
    "channels": "names of channels",
}
"""The fields of a description, in the words of `ecc info` and of the table of formats."""


@dataclass(frozen=True)
class Axis:
    """An axis of an image."""

    letter: str
    """``T``, ``C``, ``Z``, ``Y``, ``X``, ``S`` (samples of a colour), another one, or ``?``."""
    name: str = ""
    """The file's name of the axis; empty if it gives none."""
    step: float | None = None
    """Positive distance between neighbouring points, or between time points; None if unknown."""
    unit: str = ""
    """Unit of `step`; empty if unknown."""

    @property
    def kind(self) -> str:
        """One of "space", "time", "channel", "colour", "other" and "unknown"."""
        return KINDS.get(self.letter, "other")


@dataclass(frozen=True)
class Encoding:
    """The conversion of stored values: by the lookup table, then to slope * value + offset."""

    dtype: str = ""
    """The dtype of the stored values, if it differs from that of the values."""
    slopes: tuple[float, ...] = (1.0,)
    """One slope for all planes, or one for each."""
    offsets: tuple[float, ...] = (0.0,)
    """One offset for all planes, or one for each."""
    table: str = ""
    """The kind of values of a lookup table, such as ``"HU"`` or ``"values"``; empty without one."""
    signedness: str = ""
    """The rule for the sign of stored integers, if not their type determines it."""
    unit: str = ""
    """The unit of the values; empty if unknown."""

    @property
    def is_identity(self) -> bool:
        """Whether values are as stored."""
        return (self.slopes, self.offsets, self.table) == ((1.0,), (0.0,), "")

    def words(self) -> str:
        """Return a line of text; empty if values are as stored and have no unit."""
        parts = [f"stored as {self.dtype}"] if self.dtype else []
        if self.signedness:
            parts.append(self.signedness)
        if self.table:
            parts.append(f"lookup table of {self.table}")
        parts += _several("slope", self.slopes, 1.0) + _several("offset", self.offsets, 0.0)
        if self.unit:
            parts.append(f"in {self.unit}")
        return ", ".join(parts)


def _several(name: str, numbers: Sequence[float], usual: float) -> list[str]:
    if set(numbers) == {usual}:
        return []
    if len(set(numbers)) == 1:
        return [f"{name} {numbers[0]:g}"]
    return [f"{name} {min(numbers):g} to {max(numbers):g}, by plane"]


@dataclass(frozen=True)
class Missing:
    """Values that a file declares to be missing. NaN is among them."""

    ranges: tuple[tuple[Any, Any], ...]
    """First and last value of each range, in the dtype of the image."""
    source: str
    """The declaration, such as ``"GDAL nodata -9999"``."""

    def where(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Return at which points values are missing. In floating-point images they are NaN."""
        if values.dtype.kind == "f":
            found: NDArray[np.bool_] = np.isnan(values)
            return found
        missing = np.zeros(values.shape, np.bool_)
        for low, high in self.ranges:
            missing |= values == low if low == high else (values >= low) & (values <= high)
        return missing

    @property
    def name(self) -> str:
        """The name of these values in messages."""
        return f"missing values ({self.source})"


def declared_missing(
    dtype: np.dtype[Any], ranges: Sequence[tuple[Any, Any] | Any], source: str
) -> Missing | None:
    """Return declared missing values in a dtype, or None if the dtype has none of them.

    `ranges` are numbers of a header, or pairs of the first and the last one. `source` names the
    declaration.
    """
    found = []
    for given in ranges:
        low, high = given if isinstance(given, tuple) else (given, given)
        if dtype.kind == "f":
            with np.errstate(over="ignore"):
                found.append((dtype.type(low), dtype.type(high)))
        elif dtype.kind in "iu" and math.isfinite(low) and math.isfinite(high):
            info = np.iinfo(dtype)
            first = max(math.ceil(low), info.min)
            last = min(math.floor(high), info.max)
            if first <= last:
                found.append((dtype.type(first), dtype.type(last)))
    return Missing(tuple(found), source) if found else None


@dataclass(frozen=True)
class Description:
    """The axes, the position, the encoding and the channels of an image, as its file has them."""

    axes: tuple[Axis, ...]
    place: Affine | None = None
    """The map from indices to world coordinates, in the unit of the spacing."""
    encoding: Encoding = Encoding()
    missing: Missing | None = None
    channels: tuple[str, ...] = ()
    """Names of the channels."""
    notes: tuple[str, ...] = ()
    """Notes for users, such as that 0 is white."""
    read: frozenset[str] = frozenset()
    """The members of `FIELDS` that the reader of the format looks for."""

    @classmethod
    def of(
        cls,
        letters: str,
        *,
        steps: Mapping[str, Any] | None = None,
        units: Mapping[str, str] | str = "",
        names: Sequence[str | None] = (),
        **fields: Any,
    ) -> Self:
        """Return a description of axes with these letters.

        Parameters
        ----------
        letters : str
            A letter for each axis, in the order of the array.
        steps : mapping of str to number, optional
            Distance of neighbouring points, or interval of time points, by letter. What is not a
            positive number is left out.
        units : mapping of str to str or str, optional
            Unit of each step, or that of Z, Y and X.
        names : sequence of str or None, optional
            The file's names of the axes, in their order.
        fields
            The other fields of the description.
        """
        steps = steps or {}
        given = list(names) or [""] * len(letters)
        axes = []
        for letter, name in zip(letters, given, strict=True):
            step = number_of(steps.get(letter))
            known = 0 < step < math.inf and letter in "TZYX"
            if isinstance(units, str):
                unit = units if letter != "T" else ""
            else:
                unit = units.get(letter, "")
            if known:
                axes.append(Axis(letter, name or "", step, unit_named(unit)))
            else:
                axes.append(Axis(letter, name or ""))
        fields = {"channels": tuple(fields.pop("channels", ())), **fields}
        fields["notes"] = tuple(fields.pop("notes", ()))
        return cls(tuple(axes), **fields)

    @property
    def letters(self) -> str:
        return "".join(axis.letter for axis in self.axes)

    def distances(self) -> tuple[Mapping[str, float], str]:
        """Return the spacing along the axes Z, Y and X where it is known, and their common unit."""
        steps = {axis.letter: axis.step for axis in self.axes if axis.step is not None}
        return calibrated(steps, {axis.letter: axis.unit for axis in self.axes})

    def aligned(self, origin: Mapping[str, float]) -> "Description":
        """Return the same description with a place whose axes are those of the image.

        `origin` is the place of the first point along each axis, in the unit of that axis. Nothing
        changes if the spacing of an axis is unknown.
        """
        spacing, unit = self.distances()
        spatial = [axis for axis in self.axes if axis.kind == "space"]
        if not spatial or not spacing.keys() >= {axis.letter for axis in spatial}:
            return self
        first = np.zeros(3)
        steps = {}
        for axis in spatial:
            at = "XYZ".index(axis.letter)
            steps[axis.letter] = spacing[axis.letter] * np.eye(3)[at]
            ratio = spacing[axis.letter] / (axis.step or 1)
            first[at] = ratio * origin.get(axis.letter, 0.0)
        return replace(self, place=Affine(steps, first, "image axes", unit))

    def in_order(self, order: Sequence[int]) -> "Description":
        """Return the description of the array whose axes are in another order."""
        return replace(self, axes=tuple(self.axes[i] for i in order))

    def renamed(self, letters: str) -> "Description":
        """Return the description of an array whose axes the user has named.

        Steps stay with their letters. The place is no longer known.
        """
        known = {axis.letter: axis for axis in self.axes if axis.letter != "?"}
        axes = [known.get(letter, Axis(letter)) for letter in letters]
        return replace(self, axes=tuple(axes), place=None)

    def unsaid(self) -> list[str]:
        """Return the fields that the reader looks for but the file does not describe."""
        return [name for name in self._asked() if name in self.read and name not in self.said()]

    def unread(self) -> list[str]:
        """Return the fields that the reader does not look for, or cannot."""
        return [name for name in self._asked() if name not in self.read]

    def _asked(self) -> list[str]:
        """Return the fields that an image with these axes can have."""
        needed = {"time": "T", "channels": "C"}
        return [name for name in FIELDS if needed.get(name, "") in self.letters]

    def said(self) -> set[str]:
        """Return the members of `FIELDS` that the file describes."""
        said = {
            "axes": "axes" in self.read and "?" not in self.letters,
            "spacing": any(a.step is not None for a in self.axes if a.kind == "space"),
            "time": any(a.step is not None for a in self.axes if a.kind == "time"),
            "place": self.place is not None,
            "encoding": bool(self.encoding.words()),
            "missing": self.missing is not None,
            "channels": bool(self.channels),
        }
        return {name for name, is_said in said.items() if is_said}


def letter_of(name: str | None) -> str:
    """Return the letter of an axis by its whole name, ``?`` if the name is not a usual one."""
    return LETTERS.get((name or "").strip().lower(), "?")


def unnamed_axes(ndim: int) -> str:
    """Return the letters of axes that the file does not name."""
    return "?" * (ndim - 3) + "ZYX"[max(0, 3 - ndim) :]


def named_axes(names: Sequence[str | None]) -> str:
    """Return the letters of axes that have names.

    If no name stands for Z, Y or X, the axes whose names are not known are taken for these, the
    last one for X.
    """
    letters = [letter_of(name) for name in names]
    if not {*letters} & {*"ZYX"}:
        rest = iter(unnamed_axes(letters.count("?")))
        letters = [next(rest) if letter == "?" else letter for letter in letters]
    return "".join(letters)
