"""Images larger than memory: the arguments of their curves, and how they are opened."""

import argparse
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import on_host
from ecc_core._cli import options
from ecc_core._cli.curve_table import places_of
from ecc_core._cli.errors import blame, one_line
from ecc_core._cli.inputs import open_input, select_input
from ecc_core._cli.lengths import Calibration, Lengths
from ecc_core._cli.outputs import check_measures
from ecc_core._io.affines import check_place
from ecc_core._io.open import IMAGE_SUFFIXES, open_image
from ecc_core._io.stored import StoredImage
from ecc_core._io.views import Blocks, Source, View, grown_chunks
from ecc_core._optional import import_optional
from ecc_core._request.estimator import estimator_of
from ecc_core._request.filtration import (
    Direction,
    Filtration,
    check_direction,
    check_scale,
    check_spacing,
    filtration_of,
)
from ecc_core._request.resources import available_cores
from ecc_core._request.thresholds import check_range, check_threshold_array, even_thresholds
from ecc_core.errors import BackendError, InputFileError

__all__ = ["Stack", "add_blockwise_arguments", "open_stack", "thresholds_of"]

Array = NDArray[Any]

BLOCK_BYTES = 1 << 24  # blocks are grown to this size from smaller chunks
BLOCKS_IN_MEMORY = 5  # for each worker: encoded and decoded points, planes and waiting results
FRONT_SHARE = 4  # of the memory, for planes that wait for later blocks
LEAST_SIDE = 8  # narrower columns would read too many blocks twice
SAMPLED_BLOCKS = 8
STEM_ENDS = (*IMAGE_SUFFIXES, ".ome", ".gz")


def add_blockwise_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the image, the curve and the resources."""
    options.add(
        options.add_selection(parser),
        "--labels",
        metavar="PATH",
        after=". {input} is replaced by the path of the image and {stem} by the path without "
        "suffix, as in {input}/labels/cells or {stem}_labels.tif",
    )
    curve = parser.add_argument_group("curve")
    options.add(curve, "--thresholds")
    usual = (
        " (default: the range of the data type for 8-bit images, else the minimum and maximum of a "
        "few blocks, which are printed)"
    )
    options.add(curve, "--range", after=usual)
    options.add(curve, "--connectivity", "--superlevel", "--boundary", "--betti", "--minkowski")
    options.add(curve, "--nan", "--direction", "--direction-scale")
    options.add(curve, "--spacing", "--unit", before="with --direction or --minkowski: ")
    resources = parser.add_argument_group("resources")
    options.add(resources, "--workers", "--max-memory", "--scheduler", "--device")


class Stack(NamedTuple):
    """An image on disk, in blocks that fit in memory.

    Attributes
    ----------
    blocks : Blocks
    axes : str
        One letter for each axis, batch axes first.
    ndim : int
        Number of spatial axes.
    sizes : tuple of int
        Points of a block along each axis of the source.
    workers : int
        Threads whose blocks fit in memory together.
    side : int
        Blocks of a column across, so that planes fit in memory.
    filtration : Filtration
    spacing : tuple of float or None
        Distance between neighbouring points along each spatial axis; None if it has no effect.
    calibration : Calibration or None
        From which the spacing is; None if it has no effect.
    """

    blocks: Blocks
    axes: str
    ndim: int
    sizes: tuple[int, ...]
    workers: int
    side: int
    filtration: Filtration
    spacing: tuple[float, ...] | None
    calibration: Calibration | None

    @property
    def batch(self) -> tuple[int, ...]:
        return self.blocks.image.shape[: -self.ndim]

    @property
    def places(self) -> NDArray[np.int64]:
        """Indices in the stored image of the entries along the batch axes, one row for each."""
        return places_of(self.batch, self.blocks.image.start[: -self.ndim])

    @property
    def unit(self) -> str | None:
        """Unit of the spacing; None if unknown."""
        return (self.calibration and self.calibration.unit) or None

    @property
    def batch_axes(self) -> str:
        return self.axes[: -self.ndim].lower()

    def description(self) -> list[Any]:
        """What identifies the image and its labels, apart from their values."""
        views = [view for view in (self.blocks.image, self.blocks.labels) if view is not None]
        return [[view.source.description(), *view[1:]] for view in views]


def open_stack(path: str, lengths: Lengths, arguments: argparse.Namespace) -> Stack:
    """Open an image, and its labels, without reading them."""
    _check_together(arguments)
    _check_device(arguments)
    opened = open_input(path, arguments)
    image, axes = select_input(path, opened, arguments)
    ndim = sum(letter in "ZYX" for letter in axes)
    labels: View | None = None
    label_axes: tuple[int, ...] = ()
    if arguments.labels:
        labels, label_axes = _labels(
            _labels_path(arguments.labels, path), opened, image, axes, arguments
        )
    with blame(path):
        calibration = spacing = None
        if arguments.direction is not None or arguments.minkowski:
            calibration = lengths.of(opened, axes)
            spacing = tuple(check_spacing(calibration.spacing, ndim).tolist())
        direction = _direction(image.shape[-ndim:], spacing, arguments)
        filtration = replace(
            filtration_of(
                ndim,
                arguments.connectivity,
                arguments.superlevel,
                arguments.nan,
                direction,
                arguments.boundary,
            ),
            direction=None,  # the blocks contain the term
        )
        if arguments.minkowski:
            estimator_of(arguments.minkowski, spacing, filtration)
    blocks = Blocks(image, labels, label_axes, direction, arguments.device)
    sizes, workers, side = _means(image.source, blocks, ndim, arguments)
    return Stack(blocks, axes, ndim, sizes, workers, side, filtration, spacing, calibration)


def _check_together(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    if arguments.betti and arguments.labels:
        raise InputFileError("--betti must not be given together with --labels: use ecc curve")
    if arguments.betti and arguments.device != "cpu":
        raise InputFileError(f"--betti must be given with --device cpu, got {arguments.device}")
    check_measures(arguments)
    if arguments.direction is None and arguments.direction_scale is not None:
        raise InputFileError("--direction-scale needs --direction, without which it has no effect")
    for name in ("spacing", "unit"):
        given = getattr(arguments, name) is not None
        if given and arguments.direction is None and not arguments.minkowski:
            raise InputFileError(
                f"--{name} needs --direction or --minkowski, without which it has no effect"
            )


def _check_device(arguments: argparse.Namespace) -> None:
    """Raise an error if a CUDA device is needed and there is none."""
    if arguments.device == "cpu" or arguments.scheduler:
        return
    cupy = import_optional("cupy", extra="cuda12", purpose="--device cuda")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise BackendError(f"--device cuda needs a CUDA device: {error}") from None


def _labels_path(pattern: str, image: str) -> str:
    """Return the path of the label image of an image."""
    stem = image
    while (suffix := Path(stem).suffix.lower()) in STEM_ENDS:
        stem = stem[: -len(suffix)]
    return pattern.replace("{input}", image).replace("{stem}", stem)


def _labels(
    path: str, opened: StoredImage, image: View, axes: str, arguments: argparse.Namespace
) -> tuple[View, tuple[int, ...]]:
    """Return the labels of the selected part of an image, and which of its axes they have."""
    stored = open_image(path, level=arguments.level)
    shape = stored.shape
    letters = opened.axes if shape == opened.shape else stored.axes
    if stored.dtype.kind not in "biu":
        raise InputFileError(f"{path}: labels must be integers, got {stored.dtype}")
    whole = {letter: image.source.shape[i] for letter, i in zip(axes, image.order, strict=True)}
    chosen = {"C": arguments.channel, "T": arguments.time}
    fixed: dict[int, int] = {}
    found: dict[str, int] = {}
    for i, (letter, n) in enumerate(zip(letters, shape, strict=True)):
        if whole.get(letter) == n:
            found[letter] = i
        elif n == 1:
            fixed[i] = 0
        elif letter not in whole and isinstance(chosen.get(letter), int):
            fixed[i] = chosen[letter]
    if len(found) + len(fixed) < len(shape) or not {*axes} & {*"ZYX"} <= {*found}:
        wanted = " x ".join(f"{letter} {n}" for letter, n in whole.items())
        there = " x ".join(f"{letter} {n}" for letter, n in zip(letters, shape, strict=True))
        raise InputFileError(f"{path}: labels must have the image's shape {wanted}, got {there}")
    with blame(str(image.source.path)):
        check_place(f"--labels {path}", stored.affine, opened.affine, whole)
    at = tuple(i for i, letter in enumerate(axes) if letter in found)
    order = tuple(found[axes[i]] for i in at)
    start, lengths = (tuple(of[i] for i in at) for of in (image.start, image.shape))
    return View(stored, order, start, lengths, fixed), at


def _direction(
    shape: tuple[int, ...], spacing: tuple[float, ...] | None, arguments: argparse.Namespace
) -> Direction | None:
    """Return the directional term to add to the image, or None."""
    if arguments.direction is None or spacing is None:
        return None
    unit = check_direction(arguments.direction, len(shape))
    scale = 1.0 if arguments.direction_scale is None else arguments.direction_scale
    return Direction(tuple(unit), check_scale(scale), spacing, shape)


def _means(
    source: Source, blocks: Blocks, ndim: int, arguments: argparse.Namespace
) -> tuple[tuple[int, ...], int, int]:
    """Return the sizes of blocks, and the number of workers and blocks that fit in memory."""
    point, shape = blocks.bytes_a_point, source.shape
    workers = arguments.workers or available_cores()
    limit = min(BLOCK_BYTES, arguments.max_memory // BLOCKS_IN_MEMORY // workers)
    order = blocks.image.order
    sizes = list(grown_chunks(source.chunks, shape, sorted(order[-ndim:]), point, limit))
    if blocks.labels is not None or arguments.betti:
        for axis in order[:-ndim]:
            sizes[axis] = 1
    block = [sizes[axis] for axis in order]
    room = arguments.max_memory // (math.prod(block) * point * BLOCKS_IN_MEMORY)
    if room < 1:
        needed = -(-math.prod(block) * point * BLOCKS_IN_MEMORY // (1 << 20))
        raise InputFileError(
            f"{source.path}: its chunks of shape {tuple(sizes)} need --max-memory of at "
            f"least {needed}M, got {arguments.max_memory >> 20}M"
        )
    planes = point * sum(2 * math.prod(block) // n for n in block[-ndim:])
    across = arguments.max_memory // FRONT_SHARE // planes
    side = max(LEAST_SIDE, across if ndim < 3 else math.isqrt(across))
    return tuple(sizes), min(room, workers), side


def thresholds_of(stack: Stack, arguments: argparse.Namespace) -> Array:
    """Return the thresholds over the given range, that of the dtype, or that of some blocks."""
    wanted = arguments.thresholds
    if isinstance(wanted, str):
        raise InputFileError(
            "--thresholds must be a number or a list; exact needs the image in memory"
        )
    try:
        if not isinstance(wanted, int):
            if arguments.range is not None:
                raise ValueError("--range must be left out where --thresholds are a list")
            return check_threshold_array(wanted)
        low, high = check_range(arguments.range or _usual_range(stack))
    except ValueError as error:
        raise InputFileError(one_line(error)) from None
    dtype = stack.blocks.dtype
    if dtype.kind in "iu" and (low > np.iinfo(dtype).max or high < np.iinfo(dtype).min):
        raise InputFileError(f"--range {low},{high} has no value of {dtype}")
    return even_thresholds(low, high, wanted)


def _usual_range(stack: Stack) -> tuple[Any, Any]:
    dtype = stack.blocks.dtype
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind in "iu" and dtype.itemsize == 1:
        info = np.iinfo(dtype)
        return int(info.min), int(info.max)
    chunks = stack.blocks.image.chunks(stack.sizes)
    counts = tuple(map(len, chunks))
    edges = [np.cumsum([0, *lengths]).tolist() for lengths in chunks]
    numbers = np.unique(np.linspace(0, math.prod(counts) - 1, SAMPLED_BLOCKS).astype(int))
    low: Any = np.inf
    high: Any = -np.inf
    for number in numbers:
        at = np.unravel_index(number, counts)
        box = tuple(slice(e[i], e[i + 1]) for e, i in zip(edges, at, strict=True))
        points = on_host(stack.blocks(box)[0])
        finite = points[np.isfinite(points)]
        if finite.size:
            low, high = min(low, finite.min()), max(high, finite.max())
    if low > high:
        raise ValueError("--range must be given: there is no finite value in some blocks")
    sys.stderr.write(
        f"ecc: range {low},{high}, from {numbers.size} of {math.prod(counts)} blocks\n"
    )
    return low.item(), high.item()
