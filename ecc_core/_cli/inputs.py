"""The images that the arguments of a command select."""

import argparse
import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._cli.errors import blame
from ecc_core._io.affines import Affine, check_place
from ecc_core._io.select import select
from ecc_core._io.views import View
from ecc_core.errors import InputFileError
from ecc_core.io import StoredImage, open_image

__all__ = [
    "Region",
    "affine_of",
    "open_input",
    "read_region",
    "select_input",
    "select_single",
]


def open_input(path: str, arguments: argparse.Namespace) -> StoredImage:
    """Open an image according to the arguments."""
    return open_image(path, series=arguments.series, level=arguments.level, axes=arguments.axes)


def select_input(path: str, image: StoredImage, arguments: argparse.Namespace) -> tuple[View, str]:
    """Return the part of an image that the arguments select, batch axes first, and its axes.

    Notes of its reader are shown on stderr.
    """
    for note in image.notes:
        sys.stderr.write(f"ecc: {path}: {note}\n")
    with blame(path):
        return select(image, channel=arguments.channel, time=arguments.time, roi=arguments.roi)


def select_single(
    path: str, arguments: argparse.Namespace, rule: str
) -> tuple[StoredImage, View, str]:
    """Open an image; return it, the selected part, which must have no other axes, and its axes."""
    stored = open_input(path, arguments)
    view, axes = select_input(path, stored, arguments)
    for letter, length in zip(axes, view.shape, strict=True):
        if letter not in "ZYX":
            choice = {"T": "; choose one with --time", "C": "; choose one with --channel"}
            raise InputFileError(
                f"{path}: {rule}, but its axis {letter} has {length}{choice.get(letter, '')}"
            )
    return stored, view, axes


def affine_of(image: StoredImage, view: View, axes: str) -> Affine | None:
    """Return where a part of an image lies, if its file says it."""
    return image.affine and image.affine.moved(dict(zip(axes, view.start, strict=True)))


class Region(NamedTuple):
    """A mask or a label image."""

    path: str
    values: NDArray[Any]
    affine: Affine | None

    def fitted(
        self, name: str, shape: tuple[int, ...], axes: str, affine: Affine | None
    ) -> NDArray[Any]:
        """Return the values broadcast to the shape of an image; `name` is that of the option."""
        ndim = sum(letter in "ZYX" for letter in axes)
        if self.values.shape not in (shape, shape[-ndim:]):
            raise ValueError(f"{name} must have the image's shape {shape}, got {self.values.shape}")
        lengths = dict(zip(axes, shape, strict=True))
        check_place(f"{name} {self.path}", self.affine, affine, lengths)
        return np.broadcast_to(self.values, shape)


def read_region(path: str | None) -> Region | None:
    """Read a mask or a label image."""
    if path is None:
        return None
    image = open_image(path)
    if "S" in image.axes or "C" in image.axes:
        raise InputFileError(
            f"{path}: a mask or label image must have one channel, got shape {image.shape}"
        )
    return Region(path, image.read(), image.affine)
