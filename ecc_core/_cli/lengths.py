"""The spacing of the images of a command, and its unit, which is the same in all of a table."""

import argparse
import sys
from typing import Any, NamedTuple

from ecc_core._io.units import UNITS, converted
from ecc_core.errors import InputFileError
from ecc_core.io import StoredImage


class Calibration(NamedTuple):
    """Distance between points along each spatial axis, or along all, and its unit, "" if unknown.

    The distance is None if neither the file nor an option gives it.
    """

    spacing: float | list[float] | None = None
    unit: str = ""
    note: str = ""
    """What to say of it."""

    @property
    def facts(self) -> dict[str, Any]:
        """What the metadata of a table say."""
        return {"spacing": self.spacing, "unit": self.unit or None}


class Lengths:
    """Finds the calibration of each image of a table.

    Parameters
    ----------
    arguments : argparse.Namespace
        With `spacing` and `unit`.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.given, self.wanted = arguments.spacing, arguments.unit
        self.first: tuple[str, str] | None = None
        self.said: set[str] = set()

    @property
    def unit(self) -> str:
        """The unit of the table, "" if unknown."""
        return self.first[1] if self.first else ""

    def of(self, image: StoredImage, axes: str) -> Calibration:
        """Return the calibration of an image along its spatial axes.

        Raises
        ------
        InputFileError
            If its unit is not that of the images in the table, or cannot be converted.
        """
        path = str(image.path)
        if self.given is not None:
            return Calibration(self.given, self.wanted or "")
        spatial = [letter for letter in axes if letter in "ZYX"]
        spacing, unit = None, ""
        if image.spacing.keys() >= {*spatial}:
            spacing, unit = [image.spacing[letter] for letter in spatial], image.unit
        if self.wanted:
            if spacing is None or unit not in UNITS:
                raise InputFileError(
                    f"{path}: it does not say {f'how long a {unit} is' if unit else 'its unit'}, "
                    f"so that --unit {self.wanted} needs --spacing"
                )
            spacing = [converted(step, unit, self.wanted) for step in spacing]
            unit = self.wanted
        if self.first is not None and self.unit != unit:
            names = [name or "an unknown unit" for name in (unit, self.unit)]
            raise InputFileError(
                f"{path}: its lengths are in {names[0]}, those of {self.first[0]} in {names[1]}, "
                "but a table has one unit: give --unit, or --spacing"
            )
        return Calibration(spacing, unit, _note(image, spacing, unit))

    def keep(self, path: str, found: Calibration) -> None:
        """Note that the table contains an image, and say its calibration if that is new."""
        self.first = self.first or (path, found.unit)
        if found.note and found.note not in self.said:
            sys.stderr.write(f"ecc: spacing {found.note} {path}\n")
        self.said.add(found.note)


def _note(image: StoredImage, spacing: list[float] | None, unit: str) -> str:
    """Return what to say of the calibration of an image; its path follows."""
    words = f" {unit}" if unit else " (unknown unit)"
    if spacing is not None:
        return ",".join(map(str, spacing)) + f"{words}, from"
    there = ", ".join(f"{axis} {step}" for axis, step in image.spacing.items())
    return f"1{words}, as {f'only {there} {image.unit}'.rstrip() if there else 'none'} is given by"
