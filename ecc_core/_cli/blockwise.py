"""Images as the commands open them, in blocks that fit in memory."""

import math
import sys
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, replace
from typing import Any, NamedTuple

import numpy as np

from ecc_core._arrays import on_host
from ecc_core._cli.block_sizes import (
    HELD_IMAGE_DIVISOR,
    LEAST_MEMORY,
    BlockSizes,
    block_sizes_of,
)
from ecc_core._cli.errors import blame, one_line
from ecc_core._cli.inputs import Calibration, Lengths, open_blocks, select_input
from ecc_core._cli.outputs import (
    has_lengths,
    has_windows,
    settings_of,
    software,
)
from ecc_core._io.blocks import Blocks
from ecc_core._io.lazy import Array, Box
from ecc_core._io.retries import without_secrets
from ecc_core._io.stack_job import StackJob
from ecc_core._io.stored import View
from ecc_core._request.filtration import Filtration, check_spacing, direction_of, filtration_of
from ecc_core._request.thresholds import check_range, check_threshold_array, even_thresholds
from ecc_core.errors import InputFileError
from ecc_core.quantities.registry import quantities_of

MOST_SAMPLED_BLOCKS = 8


class Stack(NamedTuple):
    """An image in blocks that fit in memory, and the computation that was requested."""

    arguments: Namespace
    path: str
    view: View  # The selected part of the file.
    blocks: Blocks
    sizes: BlockSizes
    filtration: Filtration
    spacing: tuple[float, ...] | None  # Along each spatial axis; None if it has no effect.
    calibration: Calibration | None  # The source of the spacing.

    @property
    def batch(self) -> tuple[int, ...]:
        return self.blocks.image.shape[: -self.view.ndim]

    def job(self, at: Array | None = None) -> StackJob:
        """Return the job for some thresholds. Without thresholds, it only describes the image."""
        blocks = self.blocks
        labels = None if blocks.labels is None else blocks.labels.view.dtype.newbyteorder("=")
        return StackJob(
            image=self.facts,
            settings=settings_of(self.arguments),
            software=software(),
            filtration=self.filtration,
            direction=blocks.direction,
            dtype=blocks.dtype,
            masked=blocks.is_masked,
            labels=labels,
            windows=blocks.windows,
            heads=self.heads,
            thresholds=np.empty(0) if at is None else at,
            chunks=blocks.image.chunks(self.sizes.points),
        )

    @property
    def heads(self) -> dict[str, Array]:
        """Columns that identify each image: its index along each batch axis, and its channel."""
        view = self.view
        names = self.view.source.channels
        rows = math.prod(self.batch)
        indices = np.indices(self.batch).reshape((len(self.batch), rows))
        starts = zip(view.axes.lower(), view.start, indices, strict=False)
        heads = {axis: first + along for axis, first, along in starts}
        if names:
            which = heads["c"] if "c" in heads else view.fixed[view.source.axes.index("C")]
            heads["channel"] = np.broadcast_to(np.array(names)[which], rows)
        return heads

    @property
    def unit(self) -> str | None:
        """Unit of the spacing; None if unknown."""
        return (self.calibration and self.calibration.unit) or None

    def description(self) -> list[Any]:
        """Return facts that identify the points and their labels, without values of the files."""
        blocks = self.blocks
        kept = [None if fitted is None else fitted.axes for fitted in (blocks.labels, blocks.mask)]
        views = [[view.source.identity(), *view[1:]] for view in blocks.views]
        direction = blocks.direction and astuple(blocks.direction)
        return [views, kept, blocks.mask_labels, blocks.smoothing, direction]

    @property
    def facts(self) -> dict[str, Any]:
        """The description of the image in the metadata of a table."""
        return {
            "path": without_secrets(self.path),
            "axes": self.view.axes,
            "shape": list(self.view.shape),
            "dtype": self.view.dtype.name,
            "spacing": self.spacing and list(self.spacing),
            "unit": self.unit,
        }


def open_stack(path: str, lengths: Lengths, arguments: Namespace, *, whole: bool = False) -> Stack:
    """Open an image, its labels and its mask, without reading them.

    If `whole` is True, the caller reads it into memory by `held`, so its chunks may have any size.
    """
    view = select_input(path, arguments)
    ndim = view.ndim
    with blame(path):
        calibration = spacing = None
        if has_lengths(arguments):
            calibration = lengths.of(view)
            spacing = tuple(check_spacing(calibration.spacing, ndim).tolist())
        direction = None
        if arguments.direction is not None:
            shape = view.shape[-ndim:]
            direction = direction_of(arguments.direction, arguments.direction_scale, spacing, shape)
        filtration = filtration_of(
            ndim,
            arguments.connectivity,
            superlevel=arguments.superlevel,
            nan=arguments.nan,
            direction=direction,
            boundary=arguments.boundary,
        )
        # The directional term is added to blocks when they are read.
        filtration = replace(filtration, direction=None)
        for one in quantities_of(arguments):
            one.facts(filtration, one.own_of(arguments, spacing))  # This checks its options.
        found = calibration or Calibration()
        blocks = open_blocks(path, view, found, arguments, labels=arguments.labels)
    windows = has_windows(arguments)
    blocks = replace(blocks, direction=direction, device=arguments.device, windows=windows)
    sizes = block_sizes_of(
        blocks,
        ndim,
        arguments,
        LEAST_MEMORY if whole else None,
        alike=getattr(arguments, "part", None) is not None,
    )
    return Stack(
        arguments=arguments,
        path=path,
        view=view,
        blocks=blocks,
        sizes=sizes,
        filtration=filtration,
        spacing=spacing,
        calibration=calibration,
    )


def held(stack: Stack) -> Stack:
    """Read an image into memory, and return it with blocks that take little more memory."""
    blocks = stack.blocks.held()
    share = math.prod(blocks.image.shape) * blocks.bytes_a_point // HELD_IMAGE_DIVISOR
    sizes = block_sizes_of(blocks, stack.view.ndim, stack.arguments, max(LEAST_MEMORY, share))
    return stack._replace(blocks=blocks, sizes=sizes)


def thresholds_of(stack: Stack, *, sampled: bool = True) -> Array:
    """Return the thresholds of an image.

    Without --range, a number of thresholds is spread over the range of the image's values. If
    `sampled` is True, this is the range of the dtype for 8-bit integers, and that of some blocks
    for other dtypes.
    """
    wanted = stack.arguments.thresholds
    given = stack.arguments.range
    try:
        if not isinstance(wanted, int):
            if given is not None:
                raise ValueError("--range must be left out where --thresholds are a list")
            return check_threshold_array(wanted)
        bounds = given or (_usual_range(stack) if sampled else range_of(stack))
        if bounds is None:
            raise ValueError("--range must be given: there is no finite value")
        low, high = check_range(bounds)
    except ValueError as error:
        raise InputFileError(one_line(error)) from None
    dtype = stack.blocks.dtype
    if sampled and dtype.kind in "iu" and (low > np.iinfo(dtype).max or high < np.iinfo(dtype).min):
        raise InputFileError(f"--range {low},{high} has no value of {dtype}")
    # If all values are equal, this is a single threshold.
    return np.unique(even_thresholds(low, high, wanted))


def _usual_range(stack: Stack) -> tuple[Any, Any]:
    dtype = stack.blocks.dtype
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind in "iu" and dtype.itemsize == 1:
        info = np.iinfo(dtype)
        return int(info.min), int(info.max)
    blocks = stack.blocks
    sizes = block_sizes_of(blocks, stack.view.ndim, stack.arguments, alike=True)
    stack = stack._replace(sizes=sizes)
    found = range_of(stack, MOST_SAMPLED_BLOCKS)
    count = math.prod(map(len, blocks.image.chunks(stack.sizes.points)))
    if found is None:
        raise ValueError("--range must be given: there is no finite value in some blocks")
    sampled = min(MOST_SAMPLED_BLOCKS, count)
    sys.stderr.write(f"ecc: range {found[0]},{found[1]}, from {sampled} of {count} blocks\n")
    return found


def range_of(stack: Stack, most: int | None = None) -> tuple[Any, Any] | None:
    """Return the finite minimum and maximum of all blocks, or of `most` blocks.

    None if there is no finite value.
    """
    image = stack.blocks.image
    sizes = stack.sizes.points
    count = math.prod(map(len, image.chunks(sizes)))
    spread = np.linspace(0, count - 1, min(most or count, count))
    numbers = np.unique(spread.astype(int))
    boxes = image.boxes(sizes, numbers)

    def ends(box: Box) -> list[Any]:
        points, *kept = map(on_host, stack.blocks(box))
        used = np.isfinite(points)
        for inside in kept:
            used &= inside != 0
        points = points[used]
        return [points.min(), points.max()] if points.size else []

    with ThreadPoolExecutor(stack.sizes.workers) as pool:
        found = [*pool.map(ends, boxes)]
    values = [value.item() for pair in found for value in pair]
    return (min(values), max(values)) if values else None
