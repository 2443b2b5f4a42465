"""Betti curves of the lasting classes of volumes that do not fit in memory, from pairs of boxes."""

import math
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

import ecc_core
from ecc_core._blocks.window import PURPOSE
from ecc_core._cli.blockwise import Stack
from ecc_core._cli.errors import blame
from ecc_core._io.blocks import Blocks
from ecc_core._io.curve_columns import Curves
from ecc_core._io.lazy import Array, Box
from ecc_core._io.limits import available_bytes
from ecc_core._optional import import_optional
from ecc_core._partition import Partition
from ecc_core._request.boundary import boundary_of
from ecc_core._request.levels import count_alive, count_entered, round_to_levels
from ecc_core.errors import InputFileError
from ecc_core.quantities import CURVES
from ecc_core.quantities.registry import quantities_of

BYTES_OF_PAIRS = 28
"""The bytes for each point, besides its value, while all pairs of a volume are found in memory."""
DIMENSIONS = 0, 1, 2
"""The dimensions of components, tunnels and cavities."""


def fits_in_memory(blocks: Blocks) -> bool:
    """Whether all pairs of an image can be found in memory."""
    needed = math.prod(blocks.image.shape) * (blocks.bytes_a_point + BYTES_OF_PAIRS)
    there = available_bytes()
    return there is None or needed <= there


def is_needed(stack: Stack) -> bool:
    """Whether curves of lasting classes must be computed by boxes, as memory is too small."""
    return lasts_in_volume(stack) and not fits_in_memory(stack.blocks)


def lasts_in_volume(stack: Stack) -> bool:
    """Whether curves of the lasting classes of a volume are requested."""
    return stack.arguments.persistence is not None and stack.view.ndim == 3


def check(path: str, paths: Sequence[str], arguments: Namespace) -> None:
    """Refuse options that need the volume in memory, because its pairs do not fit."""
    known = CURVES["euler"], CURVES["betti"]
    others = [one.name for one in quantities_of(arguments) if one not in known]
    reason = ""
    if len(paths) > 1:
        reason = "must be the only image"
    elif isinstance(arguments.thresholds, str):
        reason = f"must have no --thresholds {arguments.thresholds}"
    elif arguments.labels:
        reason = "must have no --labels"
    elif others:
        reason = f"must have no --{others[0]}"
    elif arguments.plot:
        reason = "must have no --plot"
    elif arguments.scheduler:
        reason = "must have no --scheduler"
    elif arguments.device != "cpu":
        reason = f"must have no --device {arguments.device}"
    if reason:
        raise InputFileError(
            f"{path}: {reason} with --persistence, since pairs of the volume do not fit in memory, "
            "and its boxes give Betti numbers at thresholds only, in this process"
        )


def check_stack(path: str, arguments: Namespace) -> None:
    """Refuse options that `ecc stack` does not support with the pairs of a volume."""
    known = CURVES["euler"], CURVES["betti"]
    others = [one.name for one in quantities_of(arguments) if one not in known]
    refused = ""
    if arguments.part is not None:
        refused = "part"
    elif arguments.resume:
        refused = "resume"
    elif arguments.scheduler:
        refused = "scheduler"
    elif arguments.device != "cpu":
        refused = f"device {arguments.device}"
    elif others:
        refused = others[0]
    if refused:
        raise InputFileError(
            f"{path}: must have no --{refused} with --persistence, since what lasts in a volume is "
            "counted from pairs of the whole image, of which no parts are kept"
        )


def lasting_curves(stack: Stack, at: Array) -> Curves:
    """Return the Betti numbers and the Euler number of an image that is read by boxes."""
    with blame(stack.path):
        places = np.ndindex(*stack.batch)
        found = [_numbers(stack, place, at) for place in places]
    betti: Array = np.array(found)  # Of shape (images, dimensions, thresholds).
    dimensions = range(betti.shape[1])
    signs = np.array([(-1) ** k for k in dimensions])
    measures = {"euler_number": np.tensordot(signs, betti, (0, 1))}
    measures |= {f"b{k}": betti[:, k] for k in dimensions}
    return Curves(stack.facts["path"], at, stack.heads, measures)


def _numbers(stack: Stack, place: tuple[int, ...], at: Array) -> list[Array]:
    """Return the numbers of classes of each dimension that are alive at thresholds."""
    arguments = stack.arguments
    dask = import_optional("dask", **PURPOSE)
    image, mask = _lazy_arrays(stack, place)
    options: dict[str, Any] = {
        name: getattr(arguments, name) for name in ("connectivity", "superlevel", "boundary", "nan")
    }
    options |= {"mask": mask, "min_persistence": arguments.persistence}
    pairs = [ecc_core.persistence_pairs(image, k, **options) for k in DIMENSIONS]
    ends = [(one.births, one.deaths, one.death_points) for one in pairs]
    torus: tuple[Any, ...] = ()
    if all(boundary_of(arguments.boundary, image.ndim).wraps):
        torus = _torus(image, mask, arguments.superlevel)
    # All are computed in one pass, so that each block is read once.
    found, whole = dask.compute(ends, torus, scheduler="threads", num_workers=stack.sizes.workers)
    levels = round_to_levels(at, image.dtype.newbyteorder("="), arguments.superlevel)
    numbers = []
    for births, deaths, points in found:
        dies = points[:, 0] >= 0
        numbers.append(count_alive(births, deaths[dies], levels))
    if torus:
        last, is_torus = whole
        births = np.reshape(last, 1) if is_torus else np.empty(0, last.dtype)
        numbers.append(count_entered(births, levels))
    return numbers


def _torus(image: Any, mask: Any, superlevel: bool) -> tuple[Any, Any]:
    """Return the value at which the last point enters, and whether all points enter.

    If they do, the sublevel set becomes a 3-torus, which has a class of dimension 3.
    """
    last = image.min() if superlevel else image.max()
    all_enter = ~np.isnan(last)  # A point that is NaN never enters.
    if mask is not None:
        all_enter = all_enter & mask.all()
    return last, all_enter


def _lazy_arrays(stack: Stack, place: tuple[int, ...]) -> tuple[Any, Any]:
    """Return one of the images of a stack and its mask, or None, as dask arrays of its blocks."""
    dask = import_optional("dask", **PURPOSE)
    da = import_optional("dask.array", **PURPOSE)
    blocks = stack.blocks
    chunks = blocks.image.chunks(stack.sizes.points)[len(place) :]
    lead = tuple(slice(i, i + 1) for i in place)
    read = dask.delayed(_read, nout=2, pure=True)
    given = dask.delayed(blocks, traverse=False, pure=True)
    partition = Partition.of_blocks(chunks)
    counts = partition.counts
    arrays: list[Any] = [np.empty(counts, object), np.empty(counts, object)]
    for index in partition.indices():
        box = partition.box(index)
        shape = [part.stop - part.start for part in box]
        parts = read(given, (*lead, *box), blocks.is_masked)
        for array, part, dtype in zip(arrays, parts, (blocks.dtype, np.bool_), strict=True):
            array[index] = da.from_delayed(part, shape, dtype)
    image, mask = (da.block(array.tolist()) for array in arrays)
    return image, mask if blocks.is_masked else None


def _read(blocks: Blocks, box: Box, masked: bool) -> tuple[Array, Array | None]:
    """Return a single image in a box, and its mask or None."""
    values, *shown = blocks(box)
    spatial = values.shape[-3:]
    return values.reshape(spatial), shown[0].reshape(spatial) if masked else None
