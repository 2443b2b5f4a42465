"""Launches of the kernels of soft curves, whose arguments are laid out once per shape."""

import math
from typing import Any, NamedTuple

import numpy as np
import torch

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import Placement, element_of
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.coefficients import coefficient_call
from ecc_core._backends.cuda.kernels import (
    ELEMENTS,
    NAN_NONE,
    Struct,
    Variant,
    function,
    processors,
)
from ecc_core._backends.cuda.samples import SAMPLES, plain_samples

SCAN = Struct("soft_scan.cu", "ScanWork")
SMALL = Struct("soft_small.cu", "SmallWork")
GATHER = Struct("soft_gather.cu", "GatherWork")
TOTALS = Struct("soft.cuh", "Totals")
MOMENTS = 4  # As `kMoments` in soft.cuh.
EACH = 8  # Points of a thread in a turn, as in soft_points.cuh.
RESIDENT_THREADS = 1024  # Threads on a multiprocessor, whose shared memory its blocks divide.
EVALUATION_BYTES = 24  # Bytes of an Evaluation of soft.cuh.
LEVEL_BYTES = 4
RESERVED = 1024  # Bytes of shared memory that the driver takes from each block.

WITHOUT_POSITIONS = 1
"""The positions of curves (images, n), which those of windows have at the end."""

FLUSH_POINTS = 1 << 16  # A block adds its moments to global memory after so many points.
# An image within these limits is summed by one block.
SMALL_POINTS = 15 << 10
SMALL_LEVELS = 128


@programs.plan
def values(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    mask_strides: tuple[int, ...] | None,
    dtype: torch.dtype,
    superlevel: bool,
    directional: bool,
    places: tuple[int, int],
    device: int,
) -> tuple[Call, tuple[int, ...]]:
    """Return the launch that writes the values of images of any strides, which are in samples.

    The places of the addresses of images, masks, heights and values among its words follow.
    `places` are the addresses of images and masks modulo 16.
    """
    steps = tuple(step * dtype.itemsize for step in strides)
    images = Placement(shape, steps, places[0], device)
    mask = None if mask_strides is None else Placement(shape, mask_strides, places[1], device)
    variant = Variant(
        cubes=False,
        superlevel=superlevel,
        nan=NAN_NONE,
        element=element_of(dtype),
        masked=mask_strides is not None,
    )
    samples = plain_samples(images, variant, mask, directional, vector=True)
    macros = {"VALUE": "double" if dtype == torch.float64 else "float"}
    call = samples.plan("soft_values", "soft_values", macros, 0)
    words = (call.places[0] + SAMPLES.word(name) for name in ("data", "mask", "heights"))
    return call, (*words, call.places[1])


@programs.plan
def coefficients(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    address: int,
    masked: bool,
    connectivity: int,
    superlevel: bool,
    device: int,
) -> tuple[Call, int, int, int]:
    """Return the launch that writes the coefficients of contiguous images, int8.

    The places of the addresses of images, masks and coefficients among its words follow. `address`
    is that of images modulo 16. The kernel does not treat NaN specially.
    """
    steps = [math.prod(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape))]
    variant = Variant(
        cubes=connectivity != 1,
        superlevel=superlevel,
        nan=NAN_NONE,
        element=element_of(dtype),
        masked=masked,
    )
    return coefficient_call(Placement(shape, tuple(steps), address, device), variant)


def table_slots(levels: int) -> int:
    """Return an upper bound of the number of slots in the windows around the levels."""
    # A window has at most 2 * kReach / (4/5 * kStep) bins, and slots for the gap and for rounding.
    return 238 * levels


def window_words(levels: int) -> int:
    """Return the words of memory for windows, as ECC_WINDOW_WORDS counts them."""
    return (levels * 6 + 11) & ~3


def total_blocks(levels: int) -> int:
    """Return the number of blocks that sum the gradients of thresholds and sharpness."""
    return ceil_div(levels, 32) + 1


@programs.plan
def preparation(images: int, levels: int, superlevel: bool, _device: int) -> Call:
    """Return the launch that computes the windows around levels and clears moments.

    It takes the addresses of thresholds, sharpness, windows, and moments or 0.
    """
    threads = min(1024, max(256, 32 * ceil_div(levels, 32)))
    given = *[0] * 4, np.int32(levels), np.int32(table_slots(levels))
    macros = {"SUPER": int(superlevel)}
    return plan_call(
        "soft_levels",
        "soft_prepare",
        macros=macros,
        grid=(images,),
        threads=threads,
        arguments=given,
    )


@programs.plan
def evaluation(images: int, levels: int, scale: float, superlevel: bool, _device: int) -> Call:
    """Return the launch that computes curves from moments.

    It takes the addresses of thresholds, sharpness, windows, moments, curves, slopes and spreads.
    """
    sizes = np.int32(levels), np.int32(table_slots(levels)), np.float32(scale)
    macros = {"SUPER": int(superlevel)}
    grid = (ceil_div(levels, 8), images)
    return plan_call(
        "soft_levels",
        "soft_evaluate",
        macros=macros,
        grid=grid,
        threads=256,
        arguments=(*[0] * 7, *sizes),
    )


@programs.plan
def tabulation(
    images: int, first: int, batch: int, levels: int, totals: bool, superlevel: bool, _device: int
) -> Call:
    """Return the launch that computes the tables of some images of a batch, from `first` on.

    With `totals` it also computes the gradients of thresholds and sharpness. It takes the words of
    `Totals`, then the addresses of sharpness, windows and table.
    """
    slots = table_slots(levels)
    sums = total_blocks(levels) if totals else 0
    blocks = min(ceil_div(slots, 256), 8)
    struct = TOTALS(images=batch, levels=levels, blocks=sums)
    given = struct, *[0] * 3, *map(np.int32, (first, blocks, slots))
    macros = {"SUPER": int(superlevel)}
    grid = (sums + blocks * images,)
    return plan_call(
        "soft_levels", "soft_tabulate", macros=macros, grid=grid, threads=256, arguments=given
    )


class Scan(NamedTuple):
    """A launch of soft_small.cu or soft_scan.cu, which takes moments."""

    call: Call
    small: bool = True
    moments: int = 0
    """The number of moments in global memory."""
    scale: float = 0
    """The factor of first moments."""


@programs.plan
def scan(
    images: int, points: int, dtype: torch.dtype, superlevel: bool, levels: int, device: int
) -> Scan:
    """Return the scan of images of so many points."""
    turn = RESIDENT_THREADS * EACH
    # Blocks end by adding their moments, so there are few, each with the same number of turns.
    turns, blocks = _divide(images, points, turn, processors(device))
    small = points <= (FLUSH_POINTS if blocks == 1 else SMALL_POINTS) and levels <= SMALL_LEVELS
    resident = 1  # The number of blocks that share a multiprocessor.
    if small and images > processors(device):
        # Larger images have blocks of more warps, each of which evaluates fewer levels.
        resident = 2 if points > RESIDENT_THREADS // 4 * EACH else 4
    macros = {"ELEMENT": ELEMENTS[element_of(dtype)], "SUPER": int(superlevel)}
    macros |= {"THREADS": RESIDENT_THREADS // resident, "BLOCKS": resident}
    name = "soft_small" if small else "soft_scan"
    found = function(name, name, device, macros)
    found.preferred_shared_memory_carveout = 100
    slots = table_slots(levels)
    moments = MOMENTS * slots
    if small:
        others = (EVALUATION_BYTES + LEVEL_BYTES) * levels + 4 * window_words(levels)
        room = min(moments, _words(found, resident, others))
        work = SMALL(levels=levels, room=room // MOMENTS, scale=_scale(points))
        shared = others + 4 * room
        call = Call(
            function=found,
            grid=(images,),
            threads=RESIDENT_THREADS // resident,
            shared=shared,
            arguments=(work,),
        )
        return Scan(call)
    room = min(moments, _words(found, resident))
    flush = max(1, min(FLUSH_POINTS // turn, turns))
    scale = _scale(turn * flush)
    call = Call(
        function=found,
        grid=(images * blocks,),
        threads=RESIDENT_THREADS,
        shared=4 * room,
        arguments=(
            SCAN(levels=levels, slots=slots, blocks=blocks, room=room, flush=flush, scale=scale),
        ),
    )
    return Scan(call, False, images * (moments + 1), scale)


def _words(found: Any, resident: int, others: int = 0) -> int:
    """Return how many words of shared memory a block has besides `others` bytes."""
    return int(found.max_dynamic_shared_size_bytes // resident - RESERVED - others) // 4


def _divide(images: int, points: int, turn: int, resident: int) -> tuple[int, int]:
    """Return the turns of a block, and the blocks of an image, all of which are resident."""
    units = ceil_div(points, turn)
    turns = ceil_div(units, max(1, resident // images))
    return turns, ceil_div(units, turns)


def _scale(points: int) -> float:
    """Return a scale at which sums over so many points do not overflow."""
    return 2.0 ** min(28 - math.ceil(math.log2(points)), 20)


@programs.plan
def gather(
    images: int,
    points: int,
    dtype: torch.dtype,
    superlevel: bool,
    levels: int,
    out: torch.dtype,
    totals: bool,
    device: int,
) -> tuple[Call, bool]:
    """Return the launch that writes the gradients of images, and whether it needs a table."""
    _, blocks = _divide(images, points, RESIDENT_THREADS * EACH, processors(device))
    small = levels <= SMALL_LEVELS and (points <= SMALL_POINTS or blocks == 1)
    resident = 4 if small and images > processors(device) else 1
    threads = RESIDENT_THREADS // resident
    macros: dict[str, Any] = {"SUPER": int(superlevel), "SMALL": int(small)}
    macros |= {"ELEMENT": ELEMENTS[element_of(dtype)], "OUT": ELEMENTS[element_of(out)]}
    macros |= {"THREADS": threads, "BLOCKS": resident}
    found = function("soft_gather", "soft_gather", device, macros)
    found.preferred_shared_memory_carveout = 100
    slots = table_slots(levels)
    room = min(2 * slots, _words(found, resident))
    _, blocks = _divide(images, points, threads * EACH, resident * processors(device))
    work = GATHER(levels=levels, slots=slots, blocks=blocks, room=room)
    sums = total_blocks(levels) if small and totals else 0
    arguments = (work, TOTALS(images=images, levels=levels, blocks=sums))
    grid = (sums + images * blocks,)
    return Call(
        function=found, grid=grid, threads=threads, shared=4 * room, arguments=arguments
    ), not small
