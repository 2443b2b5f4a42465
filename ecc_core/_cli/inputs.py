"""The images that the arguments of a command select, with their labels, masks and distances."""

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ecc_core._cli.errors import blame
from ecc_core._cli.paths import STDIN, pair_of
from ecc_core._io.blocks import Blocks, Fitted, Smoothing
from ecc_core._io.formats import Request
from ecc_core._io.labels import as_labels
from ecc_core._io.lazy import Array
from ecc_core._io.meshes import is_mesh
from ecc_core._io.open import open_stream
from ecc_core._io.readers.raw import SUFFIXES as RAW_SUFFIXES
from ecc_core._io.readers.raw import checked_layout
from ecc_core._io.retries import without_secrets
from ecc_core._io.same_place import check_place, check_scale
from ecc_core._io.select import select
from ecc_core._io.stored import View
from ecc_core._io.units import UNITS, converted
from ecc_core._request.boundary import boundary_of
from ecc_core._request.filtration import check_spacing
from ecc_core.errors import InputFileError
from ecc_core.io import StoredImage, open_image


def open_input(path: str, arguments: Namespace) -> StoredImage:
    if is_mesh(path):
        raise InputFileError(
            f"{path}: must be an image, got a mesh, of which ecc curve --values and ecc transform "
            "compute curves and transforms"
        )
    with blame(path):
        layout = checked_layout(arguments.shape, arguments.dtype, arguments.offset, arguments.order)
    request = Request(arguments.series, arguments.level, arguments.axes, *layout)
    if path == STDIN:
        if request.shape is not None:
            raise InputFileError("-: --shape must not be given, stdin is read as NPY")
        if getattr(arguments, "resume", False):
            raise InputFileError("-: an image from stdin is not there any more to --resume with")
        return open_stream(sys.stdin.buffer, request)
    return open_image(path, **request._asdict())


class Calibration(NamedTuple):
    """The distance between points along each spatial axis, or along all, and its unit."""

    spacing: float | list[float] | None = None  # None if neither the file nor an option has one.
    unit: str = ""  # "" if unknown.
    note: str = ""  # A note that ends before the path of the image.


class Lengths:
    """Finds the calibration of each image of a table, which must have the same unit."""

    def __init__(self, arguments: Namespace) -> None:
        self.given = arguments.spacing
        self.wanted = arguments.unit
        self.first: tuple[str, str] | None = None
        self.said: set[str] = set()

    @property
    def unit(self) -> str:
        """The unit of the table, "" if unknown."""
        return self.first[1] if self.first else ""

    def of(self, view: View) -> Calibration:
        """Return the calibration of an image along its spatial axes.

        Raises InputFileError if its unit differs from that of the table, or cannot be converted.
        """
        image = view.source
        path = str(view.source.path)
        if self.given is not None:
            return Calibration(self.given, self.wanted or "")
        spatial = [letter for letter in view.axes if letter in "ZYX"]
        spacing = None
        unit = ""
        if image.spacing.keys() >= {*spatial}:
            spacing = [image.spacing[letter] for letter in spatial]
            unit = image.unit
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
        words = f" {unit}" if unit else " (unknown unit)"
        if spacing is not None:
            note = ",".join(map(str, spacing)) + f"{words}, from"
        else:
            there = ", ".join(f"{axis} {step}" for axis, step in image.spacing.items())
            known = f"only {there} {image.unit}".rstrip() if there else "none"
            note = f"1{words}, as {known} is given by"
        return Calibration(spacing, unit, note)

    def keep(self, path: str, found: Calibration | None) -> None:
        """Record that the table contains an image, and print its calibration if it is new."""
        if found is None:
            return
        self.first = self.first or (path, found.unit)
        if found.note and found.note not in self.said:
            sys.stderr.write(f"ecc: spacing {found.note} {without_secrets(path)}\n")
        self.said.add(found.note)


class Images:
    """The images of a table. An image in several files is taken once, from the first of them."""

    def __init__(self) -> None:
        self.first: dict[tuple[str, ...], str] = {}

    def has(self, path: str, image: StoredImage) -> bool:
        """Whether an image was taken from another of its files. A note is then printed."""
        files = tuple(sorted(map(os.path.realpath, image.described)))
        if len(files) < 2 or os.path.realpath(path) not in files:
            return False
        first = self.first.setdefault(files, path)
        if first == path:
            return False
        sys.stderr.write(f"ecc: {path}: left out, it has a part of the image in {first}\n")
        return True


def select_input(path: str, arguments: Namespace, rule: str = "") -> View:
    """Open an image and select a part, batch axes first; print the notes of its reader on stderr.

    If `rule` is given, the image must have no other axes than Z, Y and X, for this reason.
    """
    stored = open_input(path, arguments)
    for note in stored.notes:
        sys.stderr.write(f"ecc: {without_secrets(path)}: {note}\n")
    with blame(path):
        view = select(stored, channel=arguments.channel, time=arguments.time, roi=arguments.roi)
    for letter, length in view.lengths.items() if rule else ():
        if letter not in "ZYX":
            choice = {"T": "; choose one with --time", "C": "; choose one with --channel"}
            raise InputFileError(
                f"{path}: {rule}, but its axis {letter} has {length}{choice.get(letter, '')}"
            )
    return view


def open_single(
    path: str, rule: str, lengths: Lengths, arguments: Namespace
) -> tuple[View, Blocks, Calibration]:
    """Open an image without other axes than Z, Y and X, with its mask, and find its calibration."""
    view = select_input(path, arguments, rule)
    calibration = lengths.of(view)
    with blame(path):
        return view, open_blocks(path, view, calibration, arguments), calibration


def read_single(
    path: str, rule: str, lengths: Lengths, arguments: Namespace
) -> tuple[View, Array, Array | None, Calibration]:
    """Read an image without other axes than Z, Y and X: its view, values, mask and calibration.

    The mask is None if there is none.
    """
    view, blocks, calibration = open_single(path, rule, lengths, arguments)
    with blame(path):
        image, *mask = blocks.held().whole()
    return view, image, mask[0] if mask else None, calibration


def open_blocks(
    path: str,
    view: View,
    calibration: Calibration,
    arguments: Namespace,
    *,
    labels: str | None = None,
) -> Blocks:
    """Return the blocks of a part of an image, with its smoothing, labels and mask.

    If --unit is given, widths of --smooth are in the unit of the calibration. `labels` is the value
    of the option that names the label image.
    """
    fitted = partial(_fitted, path, view, arguments)
    ndim = view.ndim
    smoothing = None
    if arguments.smooth is not None:
        sigma = np.array(arguments.smooth)
        if sigma.size not in (1, ndim):
            raise InputFileError(f"--smooth must be one number or {ndim} of them, got {sigma.size}")
        steps = check_spacing(calibration.spacing if arguments.unit else None, ndim)
        boundary = getattr(arguments, "boundary", "closed")  # `ecc transform` has no --boundary.
        wraps = boundary_of(boundary, ndim).wraps
        smoothing = Smoothing(tuple((sigma / steps).tolist()), wraps)
    mask = fitted("mask", arguments.mask)
    chosen = getattr(arguments, "mask_label", None)
    if mask is not None and chosen is not None and not mask.has_one_of(chosen):
        labels_in_words = " or ".join(map(str, chosen))
        raise InputFileError(
            f"{mask.view.source.path}: --mask-label must occur in the mask of the selected part, "
            f"got {labels_in_words}, which no point has"
        )
    return Blocks(view, fitted("labels", labels), mask, smoothing, mask_labels=chosen)


def _region(name: str, path: str, arguments: Namespace) -> StoredImage:
    """Open labels or a mask. Raw values have the shape and the order of the image."""
    dtype = getattr(arguments, f"{name}_dtype", None)
    if dtype is None:
        if arguments.shape is not None and Path(path).suffix.lower() in RAW_SUFFIXES:
            raise InputFileError(f"{path}: holds raw values: --{name}-dtype must say what they are")
        return _at_level(path, arguments.level)
    if arguments.shape is None:
        raise InputFileError(f"{path}: --{name}-dtype must be given together with --shape")
    with blame(path):
        return open_image(path, shape=arguments.shape, dtype=dtype, order=arguments.order)


def _fitted(
    image: str, view: View, arguments: Namespace, name: str, given: str | None
) -> Fitted | None:
    """Open the labels or the mask of an image, of the whole image or of the selected part."""
    path = pair_of(name, given, image)
    if path is None:
        if getattr(arguments, f"{name}_dtype", None) is not None:
            raise InputFileError(f"--{name}-dtype must be given together with --{name}")
        return None
    opened = view.source
    axes = view.axes
    stored = _region(name, path, arguments)
    if name == "labels":
        stored = _labels(path, stored, arguments)
    if "S" in stored.axes:
        raise InputFileError(
            f"{path}: a mask or label image must have one channel, got shape {stored.shape}"
        )
    chosen = {opened.axes[axis]: index for axis, index in view.fixed.items()}
    whole = {letter: opened.shape[i] for letter, i in zip(axes, view.order, strict=True)}
    letters = opened.axes if stored.shape == opened.shape else stored.axes
    start = view.start
    lengths = whole
    affine = opened.affine
    found, fixed = _matched(letters, stored.shape, whole, chosen)
    if not {*axes} & {*"ZYX"} <= {*found}:
        letters = axes if stored.shape == view.shape else stored.axes
        start = (0,) * len(axes)
        lengths = view.lengths
        affine = view.affine
        found, fixed = _matched(letters, stored.shape, lengths, chosen)
    if len(found) + len(fixed) < len(letters) or not {*axes} & {*"ZYX"} <= {*found}:
        wanted, there = (
            " x ".join(f"{letter} {n}" for letter, n in pairs)
            for pairs in (whole.items(), zip(letters, stored.shape, strict=True))
        )
        raise InputFileError(f"{path}: --{name} must have the image's shape {wanted}, got {there}")
    with blame(image):
        check_place(f"--{name} {path}", stored.affine, affine, lengths)
        # Without --spacing the spacing of the image counts, with which this one has to agree.
        if getattr(arguments, "spacing", None) is None:
            check_scale(f"--{name} {path}", stored.distances, opened.distances, lengths)
    at = tuple(i for i, letter in enumerate(axes) if letter in found)
    order = tuple(found[axes[i]] for i in at)
    first = tuple(start[i] for i in at)
    shape = tuple(view.shape[i] for i in at)
    return Fitted(View(source=stored, order=order, start=first, shape=shape, fixed=fixed), at)


def _labels(path: str, stored: StoredImage, arguments: Namespace) -> StoredImage:
    """Return labels as integers, with a note on stderr if they are stored as floats."""
    if stored.dtype.kind not in "biuf":
        raise InputFileError(f"{path}: --labels must be integers, got {stored.dtype}")
    return as_labels(stored, partial(say_labels_of_floats, path, stored.dtype, arguments))


def say_labels_of_floats(path: str, dtype: np.dtype[Any], arguments: Namespace) -> None:
    """Print a note on stderr, once for all files, that whole numbers are labels."""
    words = f"whole numbers of {dtype} are taken as labels"
    if words not in arguments.said:
        arguments.said.add(words)
        sys.stderr.write(f"ecc: {path}: {words}\n")


def _at_level(path: str, level: int) -> StoredImage:
    """Open labels or a mask at a level, or their only level, which may be that of the image."""
    stored = open_image(path)
    return open_image(path, level=level) if level and stored.levels > 1 else stored


def _matched(
    letters: str, shape: tuple[int, ...], lengths: Mapping[str, int], chosen: Mapping[str, int]
) -> tuple[dict[str, int], dict[int, int]]:
    """Match the axes of an array with axes of given lengths.

    Returns the axis of the array for each letter, and the index along each axis without one.
    """
    found: dict[str, int] = {}
    fixed: dict[int, int] = {}
    for i, (letter, n) in enumerate(zip(letters, shape, strict=True)):
        if lengths.get(letter) == n:
            found[letter] = i
        elif n == 1:
            fixed[i] = 0
        elif letter in chosen:
            fixed[i] = chosen[letter]
    return found, fixed
