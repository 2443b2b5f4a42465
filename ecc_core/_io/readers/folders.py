"""Folders of 2-D images, which are the slices of a volume in the natural order of their names."""

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ecc_core._io.description import Axis
from ecc_core._io.formats import Opened
from ecc_core._io.lazy import Array, Box
from ecc_core._io.stored import StoredImage

Opener = Callable[[Path], StoredImage]


class Planes:
    """An array whose first axis numbers planes, which are read when they are needed.

    `names` are the names of their files, and `read` yields the planes with the given numbers.
    `same` are the attributes that must be equal for all planes.
    """

    def __init__(
        self,
        names: Sequence[str],
        read: Callable[[Sequence[int]], Iterable[Any]],
        same: Sequence[str] = ("shape", "dtype"),
    ) -> None:
        self.names = names
        self.read = read
        self.same = same
        (self.first,) = read([0])
        self.shape = (len(names), *self.first.shape)
        self.dtype = self.first.dtype

    def __getitem__(self, box: Box) -> Array:
        at, *rest = box
        numbers = range(at.start, at.stop)
        parts = []
        for number, plane in zip(numbers, self.read(numbers), strict=True):
            for what in self.same:
                self.compare(number, what, getattr(plane, what), getattr(self.first, what))
            parts.append(plane[tuple(rest)])
        return np.stack(parts) if parts else np.empty((0, *self.shape[1:]), self.dtype)

    def compare(self, number: int, what: str, here: Any, there: Any) -> None:
        """Raise an error if a plane differs from the first one."""
        if here != there:
            raise ValueError(f"{self.names[number]} has {what} {here}, {self.names[0]} {there}")


def _of_one_image(image: StoredImage) -> Opened:
    return Opened(
        image.array,
        image.description,
        image.chunks,
        image.parts,
        at_once=True,
        series=image.series,
        levels=image.levels,
        described=image.described,
    )


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Return the key that sorts names in their natural order, with a2 before a10."""
    return [
        (1, int(part), "") if part.isdecimal() else (0, 0, part)
        for part in re.split(r"(\d+)", name)
    ]


def open_folder(path: Path, formats: dict[str, str], open_file: Opener) -> Opened:
    """Open the images of a folder as one image."""
    shown = [file for file in path.iterdir() if not file.name.startswith(".")]
    images = [file for file in shown if file.suffix.lower() in formats]
    files = sorted(images, key=lambda file: natural_key(file.name))
    found = {formats[file.suffix.lower()] for file in files}
    if not files:
        raise ValueError("holds neither a Zarr image nor image files")
    if len(found) > 1:
        kinds = sorted({file.suffix.lower() for file in files})
        raise ValueError(f"holds files of several formats: {', '.join(kinds)}")
    for one, other in itertools.pairwise(files):
        if natural_key(one.stem) == natural_key(other.stem):
            raise ValueError(f"the order of {one.name} and {other.name} is ambiguous")

    def opened(numbers: Iterable[int]) -> Iterator[StoredImage]:
        return (open_file(files[number]) for number in numbers)

    slices = Planes([file.name for file in files], opened, same=("shape", "dtype", "axes"))
    first = slices.first
    named = {os.path.realpath(file) for file in files}
    if len(files) > 1 and {os.path.realpath(file) for file in first.described} == named:
        return _of_one_image(first)  # All files are parts of one image.
    described = first.description
    along = Axis("?" if "Z" in first.axes else "Z")
    description = replace(described, axes=(along, *described.axes), place=None)
    names = [str(file) for file in files]
    return Opened(
        slices,
        description,
        (1, *first.shape),
        described=names,
        file_of=lambda chunk: names[chunk[0]],
    )
