"""The images that the arguments of a command select."""

import argparse
import sys

from ecc_core._cli.errors import blame
from ecc_core._io.affines import Affine
from ecc_core._io.select import select
from ecc_core._io.views import View
from ecc_core.errors import InputFileError
from ecc_core.io import StoredImage, open_image

__all__ = ["affine_of", "open_input", "select_input", "select_single"]


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
